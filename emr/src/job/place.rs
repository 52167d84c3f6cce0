//! Locations in a job file: objects in S3, local paths, and URLs of other schemes.

use std::fmt;
use std::path::{Path, PathBuf};

use program::exit::Exit;
use program::location::S3Url;
use program::url::user_info;

use crate::Error;

/// A file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An object or a prefix in a bucket.
    S3 {
        /// The bucket.
        bucket: String,
        /// The name of the object or prefix, without slashes at its ends.
        key: String,
    },
    /// A path on this machine.
    Local(PathBuf),
    /// A URL of another scheme, as written: `https`, `hdfs`.
    Url(String),
}

impl Place {
    /// Parses a path or URL. Relative paths are relative to `folder`. The error states what was found and what was
    /// expected.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, (String, &'static str)> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return match text.strip_prefix("file:") {
                Some(path) if path.starts_with('/') => Ok(Self::Local(PathBuf::from(path))),
                _ if text.is_empty() => Err(("an empty text".to_owned(), "a path or a URL")),
                _ => Ok(Self::Local(folder.join(text))),
            };
        };
        if user_info(rest) > 0 {
            return Err((
                format!("{scheme}://*** contains a key or a password"),
                "a URL without credentials; they are taken from the environment and the role of the machine",
            ));
        }
        match scheme {
            "s3" | "s3a" | "s3n" => in_bucket(text, rest),
            "file" if rest.starts_with('/') => Ok(Self::Local(PathBuf::from(rest))),
            "https" | "hdfs" => Ok(Self::Url(text.to_owned())),
            _ => Err((format!("{text:?} has the scheme {scheme}"), "s3, hdfs, https, file, or a path")),
        }
    }

    /// Whether the names show that this is the other place.
    pub fn is_same(&self, other: &Self) -> bool {
        self == other || self.contains(other) && other.contains(self)
    }

    /// Whether the names show that this folder contains the other place, or is it. Patterns, and URLs of web servers,
    /// do not show it.
    pub fn contains(&self, other: &Self) -> bool {
        let is_pattern = |url: &str| url.contains(['*', '?', '[', '{', '\\']);
        match (self, other) {
            (Self::S3 { bucket, key }, Self::S3 { bucket: bucket_of_other, key: key_of_other }) => {
                bucket == bucket_of_other && is_prefix(key, key_of_other)
            }
            (Self::Local(folder), Self::Local(path)) => path.starts_with(folder),
            (Self::Url(folder), Self::Url(url)) if !is_pattern(folder) && !is_pattern(url) => {
                let parts = |url: &str| {
                    let (authority, path) = url.strip_prefix("hdfs://")?.split_once('/')?;
                    Some((authority.to_owned(), path.to_owned()))
                };
                let (folder, url) = (parts(folder), parts(url));
                folder.zip(url).is_some_and(|((host, folder), (host_of_url, path))| {
                    host == host_of_url && is_prefix(&folder, &path)
                })
            }
            _ => false,
        }
    }

    /// Bucket and key of a place in S3.
    pub fn s3(&self) -> Option<(&str, &str)> {
        match self {
            Self::S3 { bucket, key } => Some((bucket, key)),
            Self::Local(_) | Self::Url(_) => None,
        }
    }

    /// The URL of a place in S3, for the store.
    pub fn s3_url(&self) -> Result<S3Url, Error> {
        S3Url::parse(&self.to_string())
            .map_err(|error| Error::new(Exit::Settings, format!("{self}: {error}")))
    }

    /// The path of a local place.
    pub fn local(&self) -> Option<&Path> {
        match self {
            Self::Local(path) => Some(path),
            Self::S3 { .. } | Self::Url(_) => None,
        }
    }

    /// The place `name` in this folder.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        match self {
            Self::S3 { bucket, key } if key.is_empty() => {
                Self::S3 { bucket: bucket.clone(), key: name.to_owned() }
            }
            Self::S3 { bucket, key } => Self::S3 { bucket: bucket.clone(), key: format!("{key}/{name}") },
            Self::Local(path) => Self::Local(path.join(name)),
            Self::Url(url) => Self::Url(format!("{}/{name}", url.trim_end_matches('/'))),
        }
    }

    /// The folder that contains a place in S3; `None` for other places.
    pub fn s3_parent(&self) -> Option<Self> {
        let (bucket, key) = self.s3()?;
        let (parent, _) = key.rsplit_once('/').unwrap_or(("", key));
        Some(Self::S3 { bucket: bucket.to_owned(), key: parent.to_owned() })
    }
}

/// The URL or path, as programs accept it.
impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::S3 { bucket, key } => write!(out, "s3://{bucket}/{key}"),
            Self::Local(path) => path.display().fmt(out),
            Self::Url(url) => out.write_str(url),
        }
    }
}

/// The places whose names show that an earlier or later one has the same reviews.
pub fn named_twice(places: &[Place]) -> Vec<String> {
    let end = "and its reviews would count twice";
    let inner = |(n, place): (usize, &Place)| {
        let is_twice = places[..n].iter().any(|other| place.is_same(other));
        let folder = || places.iter().find(|folder| !folder.is_same(place) && folder.contains(place));
        match is_twice {
            true => Some(format!("\"{place}\" is named twice, {end}")),
            false => folder().map(|folder| format!("\"{place}\" is in \"{folder}\", {end}")),
        }
    };
    places.iter().enumerate().filter_map(inner).collect()
}

/// Whether the first segments of a path are those of the folder. Empty segments do not count.
fn is_prefix(folder: &str, path: &str) -> bool {
    let mut of_path = segments(path);
    segments(folder).all(|segment| of_path.next() == Some(segment))
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

fn in_bucket(text: &str, rest: &str) -> Result<Place, (String, &'static str)> {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    if !is_bucket(bucket) {
        return Err((
            format!("{text:?} has the bucket {bucket:?}"),
            "3 to 63 lower-case letters, digits, dots and hyphens, with a letter or digit at both ends",
        ));
    }
    let key = key.strip_suffix('/').unwrap_or(key);
    if !key.is_empty() && key.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err((
            format!("{text:?} has a segment that is empty, . or .."),
            "a plain name between slashes",
        ));
    }
    if key.contains(|character: char| character.is_control() || "\\?#".contains(character)) {
        return Err((
            format!("{text:?} has a control character, a backslash, a ? or a #"),
            "a name without these characters",
        ));
    }
    Ok(Place::S3 { bucket: bucket.to_owned(), key: key.to_owned() })
}

/// Amazon's rules for the names of buckets.
fn is_bucket(name: &str) -> bool {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (3..=63).contains(&name.len())
        && name.bytes().all(|byte| is_alphanumeric(&byte) || b".-".contains(&byte))
        && name.bytes().next().is_some_and(|byte| is_alphanumeric(&byte))
        && name.bytes().last().is_some_and(|byte| is_alphanumeric(&byte))
        && !name.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, String> {
        Place::parse(text, Path::new("/job")).map(|place| place.to_string()).map_err(|(found, _)| found)
    }

    #[test]
    fn a_place_is_an_object_a_path_or_a_url() {
        for (text, expected) in [
            ("s3://bucket/a/b/", "s3://bucket/a/b"),
            ("s3a://bucket/a b", "s3://bucket/a b"),
            ("s3://bucket", "s3://bucket/"),
            ("file:///data/run", "/data/run"),
            ("file:/data/run", "/data/run"),
            ("/data/run", "/data/run"),
            ("reviews.json", "/job/reviews.json"),
            ("hdfs:///reviews", "hdfs:///reviews"),
            ("https://host/reviews.gz", "https://host/reviews.gz"),
        ] {
            assert_eq!(parsed(text), Ok(expected.to_owned()));
        }
    }

    #[test]
    fn a_place_that_no_program_can_use_is_refused() {
        for text in [
            "",
            "gs://bucket/x",
            "s3://Bucket/x",
            "s3://b/x",
            "s3://bucket/a//b",
            "s3://bucket/../x",
            "s3://-ab/x",
            "s3://bucket/a?b",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
        let refused = parsed("s3://KEY:SECRET@bucket/x").unwrap_err();
        assert_eq!(refused, "s3://*** contains a key or a password");
    }

    #[test]
    fn a_name_is_joined_and_its_folder_is_found() {
        let run = Place::parse("s3://bucket/runs/7", Path::new("")).unwrap();
        assert_eq!(run.s3_parent().unwrap().join("programs").to_string(), "s3://bucket/runs/programs");
        let run = Place::parse("s3://bucket/run7", Path::new("")).unwrap();
        assert_eq!(run.s3_parent().unwrap().join("programs").to_string(), "s3://bucket/programs");
    }
}
