//! Standard streams that are closed: libraries that the trainer links are initialized before it, and must not hide them.
#![allow(clippy::unwrap_used)]

use std::process::Command;

#[test]
fn a_closed_standard_stream_is_refused_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    for (redirection, stream) in [("<&-", "standard input"), (">&-", "standard output"), ("2>&-", "")] {
        let output = Command::new("/bin/sh")
            .args(["-c", &format!("exec \"$0\" \"$@\" {redirection}"), env!("CARGO_BIN_EXE_trainer")])
            .args(["fit", "none.h5", "--out", "sentiment"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let message = match stream {
            "" => String::new(),
            _ => format!(
                "trainer: {stream} is closed, expected an open stream; redirect it to a file or to /dev/null\n"
            ),
        };
        assert_eq!(String::from_utf8_lossy(&output.stderr), message);
        assert_eq!(output.status.code(), Some(74), "{redirection}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
