//! Names of objects, relative to the run. A [`Key`] cannot refer to anything outside the run, even if its
//! name comes from an untrusted record.

use std::fmt;

use crate::Error;

/// Maximum length of a name. S3 allows 1,024 bytes, which include the prefix of the run.
pub const KEY_BYTES_MAX: usize = 512;

/// Maximum length of a segment: the limit of a file name.
pub const SEGMENT_BYTES_MAX: usize = 255;

/// Maximum number of characters of a refused name in an error.
const SHOWN_CHARS_MAX: usize = 80;

/// A checked object name such as `commit/part-00007.json`: segments of `[A-Za-z0-9._-]` joined by `/`, none
/// of which is empty or starts with a dot. Ordered by bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Key, Error> {
        check_length(name)?;
        for segment in name.split('/') {
            if segment.is_empty() {
                return Err(refused(name, "a segment is empty"));
            }
            check_segment(name, segment)?;
        }
        Ok(Key(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Checks a prefix of names. Returns the folder, `""` or `data/`, of all names with this prefix.
pub(crate) fn folder_of_prefix(prefix: &str) -> Result<&str, Error> {
    check_length(prefix)?;
    let (folder, last) = match prefix.rfind('/') {
        Some(slash) => prefix.split_at(slash + 1),
        None => ("", prefix),
    };
    if let Some(folder) = folder.strip_suffix('/') {
        Key::new(folder)?;
    }
    check_segment(prefix, last)?;
    Ok(folder)
}

fn check_length(name: &str) -> Result<(), Error> {
    if name.len() > KEY_BYTES_MAX {
        return Err(refused(name, "the name is too long"));
    }
    Ok(())
}

fn check_segment(name: &str, segment: &str) -> Result<(), Error> {
    if segment.starts_with('.') {
        return Err(refused(name, "a segment begins with a dot"));
    }
    if segment.len() > SEGMENT_BYTES_MAX {
        return Err(refused(name, "a segment is too long"));
    }
    if !segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
        return Err(refused(name, "it has a character outside the allowed ones"));
    }
    Ok(())
}

fn refused(name: &str, found: &'static str) -> Error {
    Error::BadKey { name: name.chars().take(SHOWN_CHARS_MAX).collect(), found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_project_are_valid_keys() {
        for name in ["manifest.json", "data/part-00007.ip-10-0-3-9.attempt_1_0001_r_000007_0.h5", "a/b/c"] {
            assert_eq!(Key::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn a_name_that_leaves_the_run_is_refused() {
        let long_segment = "a".repeat(SEGMENT_BYTES_MAX + 1);
        let long_name = "a/".repeat(KEY_BYTES_MAX / 2) + "ab";
        #[rustfmt::skip]
        let hostile = [
            "", "/", "/etc/passwd", "..", "../x", "data/../../x", "data/..", ".", "./x", "data//x", "data/", ".hidden",
            "data/.put-0", "a b", "a\\b", "a\nb", "a\0b", "é", "a:b", "a%2e", "~", "*", &long_segment, &long_name,
        ];
        for name in hostile {
            assert!(matches!(Key::new(name), Err(Error::BadKey { .. })), "{name:?}");
        }
    }

    #[test]
    fn names_of_maximum_length_are_valid_keys() {
        Key::new(&"a".repeat(SEGMENT_BYTES_MAX)).unwrap();
        Key::new(&("a/".repeat(KEY_BYTES_MAX / 2 - 1) + "ab")).unwrap();
    }

    #[test]
    fn an_error_truncates_a_hostile_name() {
        let message = Key::new(&"\u{1b}[2J".repeat(100_000)).unwrap_err().to_string();
        assert!(message.len() < 1_000 && !message.contains('\u{1b}'), "{message}");
    }

    #[test]
    fn a_prefix_has_the_folder_before_its_last_slash() {
        for (prefix, folder) in
            [("", ""), ("data/", "data/"), ("data/part-0", "data/"), ("ma", ""), ("a/b/c", "a/b/")]
        {
            assert_eq!(folder_of_prefix(prefix).unwrap(), folder);
        }
        for hostile in ["/", "//", "../", "..", "data/.", ".put", "a//b", "a b"] {
            assert!(folder_of_prefix(hostile).is_err(), "{hostile:?}");
        }
    }
}
