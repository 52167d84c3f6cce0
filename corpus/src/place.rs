//! Names of places: a path of this machine told from a URL, and secrets in a URL masked.

use std::path::PathBuf;

use thiserror::Error;

/// A URL where the path of a local file or folder was expected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{scheme}:// is not supported here, expected the path of a local file or folder; write it locally, then copy it"
)]
pub struct NotLocal {
    scheme: String,
}

/// Refuses a URL as the name of an output. A file system would take `s3://bucket/x` as a path, whose first folder is
/// `s3:`; who means that writes `./s3:`. For arguments: `PathBufValueParser::new().try_map(local_path)`.
pub fn local_path(path: PathBuf) -> Result<PathBuf, NotLocal> {
    match path.to_str().and_then(scheme_of) {
        None => Ok(path),
        Some(scheme) => Err(NotLocal { scheme: scheme.to_owned() }),
    }
}

/// The scheme of a URL, as RFC 3986 spells it; `None` where the text does not begin with one and `://`.
fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme.then_some(scheme)
}

/// The text with `***` in place of the user information of each URL in it, `s3://KEY:SECRET@bucket`. A secret may hold
/// a slash, so all before a word's last `@` is masked.
pub fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        masked.push_str(before);
        masked.push_str("://");
        let end = after.find(|c: char| c.is_whitespace() || "'\"".contains(c)).unwrap_or(after.len());
        match after[..end].rfind('@') {
            Some(at) => {
                masked.push_str("***");
                rest = &after[at..];
            }
            None => rest = after,
        }
    }
    masked + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_no_local_path() {
        for url in ["s3://bucket/x.h5", "S3A://bucket", "https://host/x", "file:///x", "git+ssh://host"] {
            let refused = local_path(PathBuf::from(url)).unwrap_err().to_string();
            assert!(refused.starts_with(url.split('/').next().unwrap()), "{refused}");
        }
        for path in ["x.h5", "/x.h5", "./s3://bucket", "s3:/x", "a b://c", "1://x", "://x", "", "x/s3://y"] {
            assert_eq!(local_path(PathBuf::from(path)), Ok(PathBuf::from(path)));
        }
    }

    #[test]
    fn user_information_is_masked_in_each_url() {
        let given = "invalid value 's3://KEY:SEC/RET@bucket/x' for '--out': https://u@h/ and s3://bucket/x";
        let expected = "invalid value 's3://***@bucket/x' for '--out': https://***@h/ and s3://bucket/x";
        assert_eq!(masked(given), expected);
        assert_eq!(masked("no URL, a@b"), "no URL, a@b");
        assert_eq!(masked("s3://a@b@c"), "s3://***@c");
    }
}
