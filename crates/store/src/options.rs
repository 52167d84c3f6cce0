//! Options for reaching S3, in addition to the environment.

use std::str::FromStr;

use aws_sdk_s3::config::Credentials;

/// Options of runs in S3. Defaults come from the sources that all AWS tools use: the environment
/// (`AWS_REGION`, `AWS_PROFILE`, `AWS_ENDPOINT_URL_S3`), `~/.aws`, the role of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Options {
    /// The region of the bucket.
    pub region: Option<String>,
    /// A profile of `~/.aws`.
    pub profile: Option<String>,
    /// The URL of an S3-compatible store.
    pub endpoint: Option<String>,
    /// Credentials of the caller. No flag sets them, because arguments of a process are visible to others.
    pub credentials: Option<Box<Credentials>>,
    /// Puts the bucket name into the path instead of the host. This is the default if an endpoint is set.
    pub path_style: bool,
    /// The SSE-KMS key with which objects are encrypted.
    pub kms_key: Option<String>,
    /// The account that must own the bucket.
    pub bucket_owner: Option<String>,
    /// A larger object is sent and fetched in parts of this size.
    pub part_bytes: u64,
    /// Number of concurrent parts. Each is held in memory.
    pub parts_at_once: usize,
}

/// The help of a flag that takes these options, for `-h`.
pub const S3_HELP: &str = "Options for S3: region=, endpoint=, … (see --help)";

/// The help of a flag that takes these options, for `--help`.
pub const S3_LONG_HELP: &str = "\
Options for S3, separated by commas. Those that are not set come from the environment (AWS_REGION, AWS_PROFILE), from ~/.aws \
and from the role of the machine.
  region=NAME         region of the bucket
  endpoint=URL        server of a compatible store; implies path-style
  profile=NAME        profile in ~/.aws
  path-style          bucket name in the path, not in the host name
  kms-key=KEY         SSE-KMS key that encrypts written objects
  bucket-owner=ID     account that the bucket must belong to
  part-mib=5 to 1024  MiB per part of a large object [default: 8]
  parts=1 to 64       parts in transfer at once [default: 4]";

/// Minimum size of a part other than the last, set by S3.
pub const PART_BYTES_MIN: u64 = 5 << 20;

impl Default for S3Options {
    fn default() -> Self {
        S3Options {
            region: None,
            profile: None,
            endpoint: None,
            credentials: None,
            path_style: false,
            kms_key: None,
            bucket_owner: None,
            part_bytes: 8 << 20,
            parts_at_once: 4,
        }
    }
}

/// Parses a list such as `endpoint=https://s3.example,path-style,parts=16`.
impl FromStr for S3Options {
    type Err = BadOption;

    fn from_str(list: &str) -> Result<S3Options, BadOption> {
        let mut options = S3Options::default();
        for option in list.split(',') {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let text = (!value.is_empty()).then(|| value.to_owned());
            match (name, &text) {
                ("path-style", None) if option == name => options.path_style = true,
                ("region", Some(_)) => options.region = text,
                ("profile", Some(_)) => options.profile = text,
                ("endpoint", Some(_)) => options.endpoint = text,
                ("kms-key", Some(_)) => options.kms_key = text,
                ("bucket-owner", Some(_)) => options.bucket_owner = text,
                ("part-mib", Some(_)) => {
                    let mib =
                        value.parse().ok().filter(|mib| (PART_BYTES_MIN >> 20..=PART_MIB_MAX).contains(mib));
                    options.part_bytes = mib.ok_or_else(|| BadOption(option.to_owned()))? << 20;
                }
                ("parts", Some(_)) => {
                    let parts = value.parse().ok().filter(|parts| (1..=PARTS_AT_ONCE_MAX).contains(parts));
                    options.parts_at_once = parts.ok_or_else(|| BadOption(option.to_owned()))?;
                }
                _ => return Err(BadOption(option.to_owned())),
            }
        }
        Ok(options)
    }
}

const PART_MIB_MAX: u64 = 1 << 10;
const PARTS_AT_ONCE_MAX: usize = 64;

/// A list item is not an S3 option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an option; expected region=, profile=, endpoint=, path-style, kms-key=, bucket-owner=, part-mib=5 to 1024 \
     or parts=1 to 64, separated by commas"
)]
pub struct BadOption(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_options_is_parsed() {
        let options: S3Options =
            "endpoint=https://s3.example:9000,path-style,kms-key=arn:aws:kms:eu:1:key/a=b,part-mib=16,parts=2"
                .parse()
                .unwrap();
        assert_eq!(options.endpoint.as_deref(), Some("https://s3.example:9000"));
        assert_eq!(options.kms_key.as_deref(), Some("arn:aws:kms:eu:1:key/a=b"));
        assert_eq!((options.path_style, options.part_bytes, options.parts_at_once), (true, 16 << 20, 2));
    }

    #[test]
    fn an_unknown_option_is_refused_by_name() {
        for list in [
            "",
            "secret=x",
            "region",
            "region=",
            "path-style=no",
            "parts=0",
            "parts=65",
            "part-mib=4",
            "parts=1,",
        ] {
            let wrong = list.rsplit(',').next().unwrap_or_default();
            assert_eq!(list.parse::<S3Options>().err(), Some(BadOption(wrong.to_owned())), "{list:?}");
        }
    }
}
