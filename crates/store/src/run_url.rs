//! Converts `--run` into a folder or a bucket, and a folder into the URL that records contain.
//!
//! URLs are percent-encoded (RFC 3986, RFC 8089). Each folder has one URL that decodes to exactly that
//! folder, also with spaces, `%` and bytes that are not UTF-8. Symbolic links are not resolved, so the URL
//! contains the name that the user passed.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf, absolute};
use std::{env, io};

use program::location::{S3Url, is_bucket};
use program::url::user_info;

use crate::key::KEY_BYTES_MAX;
use crate::s3::BucketPlace;
use crate::{Error, Key};

/// The location of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// An absolute folder.
    Folder(PathBuf),
    /// A prefix in a bucket.
    Bucket(BucketPlace),
}

/// The location of `run`. `s3a` and `s3n` are Hadoop's schemes for S3.
pub(crate) fn place(run: &str) -> Result<Run, Error> {
    match scheme(run) {
        Some(scheme @ ("s3" | "s3a" | "s3n")) => {
            check_user_info(run)?;
            let place = place_in_bucket(&run[scheme.len() + "://".len()..]);
            place.map(Run::Bucket).map_err(|found| Error::BadRun { run: run.to_owned(), found })
        }
        _ => folder(run).map(Run::Folder),
    }
}

/// Refuses credentials before the name of a bucket. The error does not contain them.
fn check_user_info(url: &str) -> Result<(), Error> {
    let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
    match user_info(rest) {
        0 => Ok(()),
        hidden => Err(Error::UserInfo { place: format!("{scheme}://***{}", &rest[hidden..]) }),
    }
}

/// S3 allows names of 1,024 bytes. The name of an object in the run follows the prefix.
const PREFIX_BYTES_MAX: usize = 1_024 - KEY_BYTES_MAX - 1;

/// Bucket and prefix as written: an S3 URL is not percent-encoded.
fn place_in_bucket(rest: &str) -> Result<BucketPlace, &'static str> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let bucket = bucket_of(bucket)?;
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if prefix.is_empty() {
        return Err("it is a whole bucket, expected a prefix of the run's own");
    }
    check_prefix(prefix)?;
    Ok(BucketPlace { bucket, prefix: prefix.to_owned() })
}

/// The name of an object to be written, in its folder.
pub(crate) fn output(url: &S3Url) -> Result<Key, Error> {
    let refused = |found| Error::BadOutput { url: url.to_string(), found };
    if !url.folder().is_empty() {
        check_prefix(url.folder()).map_err(refused)?;
    }
    Key::new(url.file_name()).map_err(|error| match error {
        Error::BadKey { found, .. } => refused(found),
        other => other,
    })
}

/// Checks the prefix of objects that this project writes.
fn check_prefix(prefix: &str) -> Result<(), &'static str> {
    if prefix.len() > PREFIX_BYTES_MAX {
        return Err("the prefix is longer than 511 bytes");
    }
    if prefix.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err("a segment of the prefix is empty, . or ..");
    }
    if prefix.contains(|character: char| character.is_control() || "\\?#".contains(character)) {
        return Err("the prefix has a control character, a backslash, a ? or a #");
    }
    Ok(())
}

/// The bucket and prefix of an input URL `s3://bucket/name`, in which `name` may be empty.
pub(crate) fn objects_of(url: &str) -> Result<BucketPlace, Error> {
    let refused = |found| Error::BadObjects { url: url.to_owned(), found };
    let Some(scheme @ ("s3" | "s3a" | "s3n")) = scheme(url) else {
        return Err(refused("the scheme is not s3"));
    };
    check_user_info(url)?;
    let rest = &url[scheme.len() + "://".len()..];
    let (bucket, name) = rest.split_once('/').unwrap_or((rest, ""));
    let bucket = bucket_of(bucket).map_err(refused)?;
    Ok(BucketPlace { bucket, prefix: name.to_owned() })
}

fn bucket_of(name: &str) -> Result<String, &'static str> {
    if is_bucket(name) { Ok(name.to_owned()) } else { Err("the bucket's name is invalid") }
}

/// The absolute folder of `run`, without `.` and double slashes.
pub(crate) fn folder(run: &str) -> Result<PathBuf, Error> {
    let refused = |found| Error::BadRun { run: run.to_owned(), found };
    let folder = match scheme(run) {
        None if run.is_empty() => return Err(refused("the name is empty")),
        None => folder_of_path(run).map_err(|_| refused("the working folder was deleted"))?,
        Some("file") => folder_of_url(&run["file:".len()..]).map_err(refused)?,
        Some(scheme) => {
            return Err(Error::NoSuchStore { run: run.to_owned(), scheme: scheme.to_owned() });
        }
    };
    if folder.as_os_str().as_bytes().contains(&0) {
        return Err(refused("it has a zero byte"));
    }
    if folder.components().any(|component| component == Component::ParentDir) {
        return Err(refused("a segment is .., expected the folder's own name"));
    }
    if folder.parent().is_none() {
        return Err(refused("it is the root folder, expected one of the run's own"));
    }
    Ok(folder.components().collect())
}

/// The absolute folder of a path. `..` at its start are folders above the working folder, whose path has no links.
fn folder_of_path(path: &str) -> io::Result<PathBuf> {
    let path = Path::new(path);
    let mut folder = if path.starts_with("..") { env::current_dir()? } else { PathBuf::new() };
    let mut rest = path;
    while let Ok(below) = rest.strip_prefix("..") {
        folder.pop();
        rest = below;
    }
    absolute(folder.join(rest))
}

/// The URL of an absolute folder. Characters allowed in a path segment are kept; every other byte becomes
/// `%XX`.
pub(crate) fn url(folder: &Path) -> String {
    let mut url = String::from("file://");
    for &byte in folder.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            url.push(char::from(byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    url
}

/// The scheme of a URL, `s3` for `s3://bucket`. Hadoop writes the URL of a file with one slash, so `file:` is
/// sufficient.
fn scheme(run: &str) -> Option<&str> {
    if run.starts_with("file:") {
        return Some("file");
    }
    let (scheme, _) = run.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    is_scheme.then_some(scheme)
}

fn folder_of_url(rest: &str) -> Result<PathBuf, &'static str> {
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err("a host or a relative path follows file:, expected three slashes and a path");
    }
    if path.contains(['?', '#']) {
        return Err("it has a query or a fragment; in a path, write %3F for ? and %23 for #");
    }
    Ok(PathBuf::from(OsString::from_vec(percent_decoded(path)?)))
}

fn percent_decoded(path: &str) -> Result<Vec<u8>, &'static str> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err("a % is not followed by two hexadecimal digits; in a URL, write %25 for %");
        };
        match (high * 16 + low) as u8 {
            b'/' => return Err("a slash is written as %2F, expected / between segments"),
            byte => decoded.push(byte),
        }
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use program::exit::{Exit, Fails};

    use super::*;

    #[test]
    fn a_run_has_one_url() {
        for (run, expected) in [
            ("/data/run-7", "file:///data/run-7"),
            ("//data/./run-7//", "file:///data/run-7"),
            ("file:///data/run-7", "file:///data/run-7"),
            ("file:///data/run-7/", "file:///data/run-7"),
            ("file:/data/run-7", "file:///data/run-7"),
            ("file:///data/a%20b", "file:///data/a%20b"),
            ("/data/a b", "file:///data/a%20b"),
            ("/data/a%20b", "file:///data/a%2520b"),
            ("/data/run=7,é#?", "file:///data/run=7,%C3%A9%23%3F"),
            ("/data/a:b", "file:///data/a:b"),
            ("file:///data/%ff", "file:///data/%FF"),
        ] {
            let folder = folder(run).unwrap();
            assert_eq!(url(&folder), expected, "{run}");
            assert_eq!(super::folder(expected).unwrap(), folder, "{run} read back");
        }
    }

    #[test]
    fn a_relative_run_is_in_the_working_folder() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(folder("runs/7").unwrap(), here.join("runs/7"));
        assert_eq!(folder("./7/").unwrap(), here.join("7"));
        assert_eq!(folder("../7").unwrap(), here.parent().unwrap().join("7"));
        assert_eq!(folder("..//../a").unwrap(), here.parent().unwrap().parent().unwrap().join("a"));
    }

    #[test]
    fn a_run_that_names_no_folder_is_refused() {
        #[rustfmt::skip]
        let refused = [
            "", "/", "file:///", "file://", "file:", "file://host/run", "file:run", "/data/../run", "../a/../b", "run/..",
            "file:///data/%2E%2E/run", "file:///a?b", "file:///a#b", "file:///a%", "file:///a%2", "file:///a%zz",
            "file:///a%2Fb", "file:///a%00", "a\0b",
        ];
        for run in refused {
            assert!(matches!(folder(run), Err(Error::BadRun { .. })), "{run:?}");
        }
    }

    #[test]
    fn an_unsupported_storage_is_refused_by_name() {
        for (run, expected) in
            [("gs://bucket/run", "gs"), ("hdfs://name/run", "hdfs"), ("FILE:///run", "FILE")]
        {
            let Err(Error::NoSuchStore { scheme, .. }) = folder(run) else { panic!("{run} was accepted") };
            assert_eq!(scheme, expected);
        }
    }

    #[test]
    fn a_run_in_a_bucket_has_one_url() {
        for (run, expected) in [
            ("s3://bucket/run-7", "s3://bucket/run-7"),
            ("s3a://my.bucket/a b/run=7/", "s3://my.bucket/a b/run=7"),
            ("s3n://bucket/é%20", "s3://bucket/é%20"),
        ] {
            let Ok(Run::Bucket(place)) = place(run) else { panic!("{run} was refused") };
            assert_eq!(place.url(), expected);
            assert_eq!(super::place(expected).unwrap(), Run::Bucket(place), "{run} read back");
        }
    }

    #[test]
    fn a_run_that_names_no_prefix_of_a_bucket_is_refused() {
        let long = format!("s3://bucket/{}", "a".repeat(512));
        #[rustfmt::skip]
        let refused = [
            "s3://", "s3://b/run", "s3://bucket", "s3://bucket/", "s3://bucket//", "s3://bucket//run", "s3://bucket/run//",
            "s3://bucket/../run", "s3://bucket/./run", "s3://bucket/a\nb", "s3://bucket/a?b", &long,
        ];
        for run in refused {
            assert!(matches!(place(run), Err(Error::BadRun { .. })), "{run:?}");
        }
    }
    #[test]
    fn credentials_before_a_bucket_are_refused_and_not_shown() {
        for (url, shown) in [
            ("s3://AKIA:c2VjcmV0@bucket/run", "s3://***@bucket/run"),
            ("s3a://AKIA:c2V/jcm+V0=@bucket/run", "s3a://***@bucket/run"),
            ("s3://c2VjcmV0@bucket/run", "s3://***@bucket/run"),
            ("s3n://AKIA:c2VjcmV0/run", "s3n://***"),
        ] {
            for refused in [place(url).unwrap_err(), objects_of(url).unwrap_err()] {
                let message = refused.to_string();
                assert!(
                    message.starts_with(&format!("{shown:?}: ")) && !message.contains("c2V"),
                    "{message}"
                );
                assert_eq!(refused.exit(), Exit::Usage);
            }
        }
        assert!(place("s3://bucket/user@host/run").is_ok());
    }
}
