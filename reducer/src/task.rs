//! Who this reducer is: its run, partition, attempt and host, from flags or from Hadoop's environment.

use std::path::PathBuf;

use corpus::settings::Settings;
use hadoop::Runner;
use rustix::rand::{GetRandomFlags, getrandom};

/// What a reducer is to do, and as whom.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its partition, from 0.
    pub partition: u32,
    /// The number of partitions.
    pub partitions: u32,
    /// What to do with texts of other partitions.
    pub others: Others,
    /// The host, as it stands in names.
    pub host: String,
    /// The attempt, as it stands in names.
    pub attempt: String,
    /// The job, under Hadoop.
    pub job: Option<String>,
    /// Who runs it.
    pub runner: Runner,
    /// The settings that decide the content.
    pub settings: Settings,
    /// About how much memory rows may take.
    pub memory_bytes: usize,
    /// Where temporary files go.
    pub scratch: PathBuf,
}

/// What to do with a text that Hadoop's rule gives to another partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// It is an error: the stream was split by another rule.
    Refuse,
    /// Leave it out: the stream is the whole input, of which this partition is wanted.
    LeaveOut,
    /// Take it: the stream was split by another rule on purpose.
    Take,
}

/// This machine's name, fit for the name of an object.
pub fn host() -> String {
    let name = hostname::get().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    in_names(if name.is_empty() { "unknown" } else { &name })
}

/// 16 random hexadecimal digits: an attempt outside Hadoop.
pub fn random_attempt() -> std::io::Result<String> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

/// What of a name can stand between the dots of an object's name.
pub fn in_names(name: &str) -> String {
    const LONGEST: usize = 63;
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    name.chars().map(fit).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_fit_into_object_names() {
        assert_eq!(in_names("ip-10-0-3-9.ec2.internal"), "ip-10-0-3-9-ec2-internal");
        assert_eq!(in_names("../é"), "-----".get(..4).unwrap());
        assert_eq!(in_names(&"x".repeat(100)).len(), 63);
    }

    #[test]
    fn attempts_outside_hadoop_are_16_hexadecimal_digits_that_differ() {
        let (one, two) = (random_attempt().unwrap(), random_attempt().unwrap());
        assert!(one.len() == 16 && one.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(one, two);
    }
}
