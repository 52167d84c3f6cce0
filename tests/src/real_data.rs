//! Real reviews, if they are available. They are not part of the project.

use std::env;
use std::path::{Path, PathBuf};

use crate::programs::{run, without_hadoop};
use crate::say;

/// The raw lines of one input. `None`, with a notice on standard error, if there is no real data.
pub fn raw(name: &str) -> Option<Vec<u8>> {
    let file = file(name)?;
    let unzipped = run(without_hadoop(Path::new("gzip")).arg("-dc").arg(&file), b"").succeeded();
    Some(unzipped.stdout)
}

/// The compressed file of one input, in the same folder as for [`raw`].
pub fn file(name: &str) -> Option<PathBuf> {
    let endings = [".json.gz", ".jsonl.gz", ".csv.gz"];
    let found = folder().and_then(|folder| {
        endings.iter().map(|ending| folder.join(format!("{name}{ending}"))).find(|file| file.is_file())
    });
    if found.is_none() {
        say(&format!(
            "SKIPPED real data: {name} is not in $SENTIMILL_DATA or in shared/data beside the project"
        ));
    }
    found
}

/// `$SENTIMILL_DATA`, else `shared/data` in the parent folder of the project or above.
fn folder() -> Option<PathBuf> {
    const FOLDERS_ABOVE: usize = 3;
    if let Some(named) = env::var_os("SENTIMILL_DATA") {
        let folder = PathBuf::from(named);
        assert!(folder.is_dir(), "SENTIMILL_DATA is {}, expected a folder", folder.display());
        return Some(folder);
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let above = tests.ancestors().skip(1).take(FOLDERS_ABOVE);
    above.map(|folder| folder.join("shared/data")).find(|folder| folder.is_dir())
}
