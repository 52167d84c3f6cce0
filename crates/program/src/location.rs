//! Converts an argument into a local path or the URL of an object in S3. Reads nothing and sends nothing: programs
//! without an S3 client can parse a location, too.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use crate::place::local_path;
use crate::url::{scheme_of, user_info};

/// Schemes of S3. `s3a` and `s3n` are Hadoop's.
pub const S3_SCHEMES: [&str; 3] = ["s3", "s3a", "s3n"];

/// A file or folder, on this machine or in S3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A path.
    Local(PathBuf),
    /// An object or a prefix of objects.
    S3(S3Url),
}

/// `s3://bucket/name`. The name is as written: an S3 URL is not percent-encoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct S3Url {
    bucket: String,
    /// Not empty, without a slash at its end.
    name: String,
}

/// Why an argument is not a location. The message does not repeat the argument, which a caller prints before it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadLocation {
    /// Neither a path nor in S3.
    #[error(
        "{scheme}:// is not supported here, expected a local path or s3://bucket/name; {}",
        remedy(scheme)
    )]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The URL contains credentials.
    #[error(
        "found a user name or key before the bucket, expected none; keys come from AWS_PROFILE, ~/.aws or the machine's \
         role; remove it from the URL, and replace the key, since shells and logs keep it"
    )]
    UserInfo,
    /// The URL does not name an object.
    #[error("{found}; expected s3://bucket/name")]
    S3 {
        /// What is wrong with it.
        found: &'static str,
    },
}

impl Location {
    /// The location of a file or an object. For arguments: `PathBufValueParser::new().try_map(Location::of_file)`.
    pub fn of_file(path: PathBuf) -> Result<Self, BadLocation> {
        match path.to_str() {
            Some(url) if is_in_s3(url) && url.ends_with('/') => {
                Err(BadLocation::S3 { found: "the name ends in a slash" })
            }
            _ => Self::of_folder(path),
        }
    }

    /// The location of a folder, or of a prefix in a bucket, which may end in a slash.
    pub fn of_folder(path: PathBuf) -> Result<Self, BadLocation> {
        match path.to_str() {
            Some(url) if is_in_s3(url) => S3Url::parse(url).map(Self::S3),
            _ => local_path(path)
                .map(Self::Local)
                .map_err(|error| BadLocation::Scheme { scheme: error.scheme().to_owned() }),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => path.display().fmt(out),
            Self::S3(url) => url.fmt(out),
        }
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self::Local(path)
    }
}

impl S3Url {
    /// Parses `s3://bucket/name`, also with Hadoop's schemes. A slash at the end is dropped.
    pub fn parse(url: &str) -> Result<Self, BadLocation> {
        let refused = |found| BadLocation::S3 { found };
        let Some((_, rest)) = url.split_once("://").filter(|(scheme, _)| S3_SCHEMES.contains(scheme)) else {
            let scheme = scheme_of(url).ok_or(refused("the scheme s3:// is missing"))?;
            return Err(BadLocation::Scheme { scheme: scheme.to_owned() });
        };
        if user_info(rest) > 0 {
            return Err(BadLocation::UserInfo);
        }
        let (bucket, name) = rest.split_once('/').unwrap_or((rest, ""));
        let name = name.strip_suffix('/').unwrap_or(name);
        if !is_bucket(bucket) {
            return Err(refused("the bucket's name is invalid"));
        }
        if name.is_empty() {
            return Err(refused("it is a whole bucket"));
        }
        if name.contains(char::is_control) {
            return Err(refused("the name has a control character"));
        }
        Ok(Self { bucket: bucket.to_owned(), name: name.to_owned() })
    }

    /// The bucket.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The full name in the bucket.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The part of the name before its last slash, `""` if there is none.
    pub fn folder(&self) -> &str {
        self.name.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// The part of the name after its last slash.
    pub fn file_name(&self) -> &str {
        self.name.rsplit_once('/').map_or(&self.name, |(_, name)| name)
    }

    /// Another name in the same folder.
    pub fn with_file_name(&self, name: &str) -> Self {
        let folder = self.name.len() - self.file_name().len();
        Self { bucket: self.bucket.clone(), name: format!("{}{name}", &self.name[..folder]) }
    }

    /// A name below this one.
    pub fn join(&self, name: &str) -> Self {
        Self { bucket: self.bucket.clone(), name: format!("{}/{name}", self.name) }
    }
}

impl fmt::Display for S3Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "s3://{}/{}", self.bucket, self.name)
    }
}

/// Whether a text is a URL of S3, valid or not.
pub fn is_in_s3(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| S3_SCHEMES.contains(&scheme))
}

/// Whether this is a name that a bucket may have, in S3 or in a compatible store.
pub fn is_bucket(name: &str) -> bool {
    let is_of_it = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (3..=255).contains(&name.len()) && name.bytes().all(is_of_it)
}

fn remedy(scheme: &str) -> &'static str {
    match scheme.to_ascii_lowercase().as_str() {
        "file" => "pass the path after file://",
        "s3" | "s3a" | "s3n" => "write the scheme in lower case",
        _ => "copy it to this machine or to S3",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Result<Location, BadLocation> {
        Location::of_file(PathBuf::from(text))
    }

    #[test]
    fn an_object_has_one_url() {
        for (given, expected) in [
            ("s3://bucket/a/reviews.h5", "s3://bucket/a/reviews.h5"),
            ("s3a://my.bucket/reviews.h5", "s3://my.bucket/reviews.h5"),
            ("s3n://bucket/a b%20/é", "s3://bucket/a b%20/é"),
        ] {
            let location = file(given).unwrap();
            assert!(matches!(location, Location::S3(_)));
            assert_eq!(location.to_string(), expected);
            assert_eq!(file(expected), Ok(location));
        }
        let folder = Location::of_folder(PathBuf::from("s3://bucket/a/")).unwrap();
        assert_eq!(folder.to_string(), "s3://bucket/a");
    }

    #[test]
    fn a_path_is_local_also_if_it_looks_like_a_url() {
        for path in ["x.h5", "/x.h5", "./s3://bucket", "s3:/x", "", "x/s3://y"] {
            assert_eq!(file(path), Ok(Location::Local(PathBuf::from(path))));
        }
    }

    #[test]
    fn another_scheme_is_refused_with_a_remedy() {
        for (url, remedy) in [
            ("https://host/x", "; copy it to this machine or to S3"),
            ("file:///x", "; pass the path after file://"),
            ("S3://bucket/x", "; write the scheme in lower case"),
        ] {
            let refused = file(url).unwrap_err().to_string();
            let scheme = url.split("//").next().unwrap();
            assert!(refused.starts_with(&format!("{scheme}// is not supported here, ")), "{refused}");
            assert!(refused.ends_with(remedy), "{refused}");
        }
    }

    #[test]
    fn a_url_that_names_no_object_is_refused() {
        for url in ["s3://", "s3://b/x", "s3://bucket", "s3://bucket/", "s3://bucket/x/", "s3://bucket/a\nb"]
        {
            assert!(matches!(file(url), Err(BadLocation::S3 { .. })), "{url}");
        }
        for url in ["s3://KEY:SECRET@bucket/x", "s3a://KEY:SE/CRET@bucket/x", "s3://KEY:SECRET/x"] {
            let refused = file(url).unwrap_err();
            assert_eq!(refused, BadLocation::UserInfo);
            assert!(!refused.to_string().contains("CRET"));
        }
    }

    #[test]
    fn names_beside_and_below_an_object() {
        let url = S3Url::parse("s3://bucket/a/reviews.h5").unwrap();
        assert_eq!((url.folder(), url.file_name()), ("a", "reviews.h5"));
        assert_eq!(url.with_file_name("x").to_string(), "s3://bucket/a/x");
        assert_eq!(url.join("x").to_string(), "s3://bucket/a/reviews.h5/x");
        let url = S3Url::parse("s3://bucket/reviews.h5").unwrap();
        assert_eq!((url.folder(), url.file_name()), ("", "reviews.h5"));
        assert_eq!(url.with_file_name("x").to_string(), "s3://bucket/x");
    }
}
