//! The task of a reducer: its partition, attempt, host and settings, from flags or from Hadoop's environment.

use std::path::PathBuf;

use corpus::settings::Settings;
use program::hadoop::Runner;
use store::naming;

/// The task of a reducer.
#[derive(Clone, Debug)]
pub struct Task {
    /// The partition, from 0.
    pub partition: u32,
    /// Number of partitions.
    pub partitions: u32,
    /// What to do with texts of other partitions.
    pub others: Others,
    /// The host, in the form used in names.
    pub host: String,
    /// The attempt, in the form used in names.
    pub attempt: String,
    /// The job, under Hadoop.
    pub job: Option<String>,
    /// What runs the reducer.
    pub runner: Runner,
    /// The settings that determine the content.
    pub settings: Settings,
    /// Whether the texts of the rows are stored beside the shard.
    pub texts: bool,
    /// Whether what rows lack is stored beside the shard.
    pub keeps_words: bool,
    /// Approximate memory for rows and texts.
    pub memory_bytes: usize,
    /// Folder for temporary files.
    pub scratch: PathBuf,
}

impl Task {
    /// Approximate memory for rows, and the same again for texts if they are stored.
    pub fn memory_of_rows(&self) -> usize {
        let of_rows = self.memory_bytes - self.memory_of_rest();
        if self.texts { of_rows / 2 } else { of_rows }
    }

    /// Approximate memory for what rows lack.
    pub fn memory_of_rest(&self) -> usize {
        if self.keeps_words { self.memory_bytes / 4 } else { 0 }
    }
}

/// What to do with a text that belongs to another partition by Hadoop's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Error: the stream was split by another rule.
    Refuse,
    /// Skip it: the stream is the whole input, of which only this partition is reduced.
    LeaveOut,
    /// Accept it: the stream was split by another rule on purpose.
    Take,
}

/// The name of this machine, in the form used in object names.
pub fn host() -> String {
    let name = hostname::get().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name_part(if name.is_empty() { "unknown" } else { &name })
}

/// 16 random hexadecimal digits, the name of an attempt outside Hadoop.
pub fn random_attempt() -> std::io::Result<String> {
    Ok(format!("{:016x}", naming::random()?))
}

/// Replaces the characters of a name that may not be used between the dots of an object's name.
pub fn name_part(name: &str) -> String {
    const LONGEST: usize = 63;
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    name.chars().map(fit).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_fit_into_object_names() {
        assert_eq!(name_part("ip-10-0-3-9.ec2.internal"), "ip-10-0-3-9-ec2-internal");
        assert_eq!(name_part("../é"), "-----".get(..4).unwrap());
        assert_eq!(name_part(&"x".repeat(100)).len(), 63);
    }

    #[test]
    fn attempts_outside_hadoop_have_unique_names_of_16_hexadecimal_digits() {
        let (one, two) = (random_attempt().unwrap(), random_attempt().unwrap());
        assert!(one.len() == 16 && one.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(one, two);
    }
}
