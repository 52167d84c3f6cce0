//! The version of a program: on one line for `-V`, and followed by the versions of its libraries for
//! `--version`.

/// A program's version and the commit that it was built from, on one line: `0.1.0 (commit 1f8a92f)`.
///
/// Only a program's `main.rs` expands `option_env!("SENTIMILL_COMMIT")`, so that a new commit compiles no library again.
pub fn short(commit: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match commit {
        Some(commit) if !commit.is_empty() => format!("{version} (commit {commit})"),
        _ => version.to_owned(),
    }
}

/// The line of [`short`], followed by one line per library with its name and version.
pub fn long(commit: Option<&str>, libraries: &[(&str, &str)]) -> String {
    let libraries = libraries.iter().map(|(name, version)| format!("\n{name} {version}"));
    short(commit) + &libraries.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_the_commit_and_the_libraries() {
        let version = env!("CARGO_PKG_VERSION");
        let libraries = [("Unicode", "17.0.0"), ("HDF5", "2.2.0")];
        let expected = format!("{version} (commit 1f8a92f)\nUnicode 17.0.0\nHDF5 2.2.0");
        assert_eq!(long(Some("1f8a92f"), &libraries), expected);
        assert_eq!(short(Some("1f8a92f")), format!("{version} (commit 1f8a92f)"));
    }

    #[test]
    fn a_version_without_a_commit_names_none() {
        assert_eq!(short(None), env!("CARGO_PKG_VERSION"));
        assert_eq!(long(Some(""), &[]), env!("CARGO_PKG_VERSION"));
    }
}
