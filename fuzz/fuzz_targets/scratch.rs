//! A file with the input, for readers of paths.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// One per target. A process that is killed leaves it to the next one.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    // In memory, if there is a file system for it.
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let program = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_owned()));
    let folder = parent.join("sentimill-fuzz").join(program.unwrap_or_default());
    fs::create_dir_all(&folder).expect("a temporary folder can be made");
    folder
});

/// Writes a file of this name, and returns its path.
pub fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = FOLDER.join(name);
    fs::write(&path, content).expect("a temporary file can be written");
    path
}

/// Libraries panic on some damaged files, and their callers catch this. Any other panic is an error.
#[allow(dead_code, reason = "not all targets have such a library")]
pub fn allow_panics_of(libraries: &'static [&'static str]) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let abort = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_of = |library: &&str| panic.location().is_some_and(|at| at.file().contains(*library));
            if !libraries.iter().any(is_of) {
                abort(panic);
            }
        }));
    });
}
