//! The inputs of map tasks, from the logs of their containers.

use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of splits that are remembered.
const SPLITS_MAX: usize = 100_000;

/// The split of each task.
#[derive(Debug, Default)]
pub struct Splits(BTreeMap<String, Split>);

/// A part of a file, which one map task reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// URL of the file.
    pub file: String,
    begin: u64,
    bytes: u64,
}

impl Splits {
    /// Reads a line of a log. `task` is its container, or the log itself.
    pub fn read(&mut self, task: &str, line: &str) {
        if let Some(split) = split(line).filter(|_| self.0.len() < SPLITS_MAX) {
            self.0.insert(task.to_owned(), split);
        }
    }

    /// The split of a task.
    pub fn of(&self, task: &str) -> Option<&Split> {
        self.0.get(task)
    }
}

/// `hdfs://host/part.gz, bytes 0 to 1234`
impl fmt::Display for Split {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, bytes {} to {}", self.file, self.begin, self.begin + self.bytes)
    }
}

/// `… INFO [main] org.apache.hadoop.mapred.MapTask: Processing split: hdfs://host/part.gz:0+1234`
fn split(line: &str) -> Option<Split> {
    let (_, text) = line.split_once("Processing split: ")?;
    // A combined split has a list of paths, and no scheme first.
    let (file, range) = text.trim_end().rsplit_once(':').filter(|(file, _)| file.contains("://"))?;
    let (begin, bytes) = range.split_once('+')?;
    Some(Split { file: file.to_owned(), begin: begin.parse().ok()?, bytes: bytes.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_split_is_read_with_its_range() {
        let shown = |text: &str| split(text).map(|split| split.to_string());
        for (line, expected) in [
            (
                "INFO [main] org.apache.hadoop.mapred.MapTask: Processing split: hdfs://127.0.0.1:19000/in/a.json.gz:0+133220",
                Some("hdfs://127.0.0.1:19000/in/a.json.gz, bytes 0 to 133220"),
            ),
            (
                "MapTask: Processing split: s3a://bucket/a b/part:1.bz2:134217728+10",
                Some("s3a://bucket/a b/part:1.bz2, bytes 134217728 to 134217738"),
            ),
            ("MapTask: Processing split: Paths:/in/a:0+1,/in/b:0+2 Locations:h", None),
            ("MapTask: Processing split: Paths:/in/a:0+1,/in/b:0+2", None),
            ("MapTask: Processing split: ", None),
            ("MapTask: numReduceTasks: 1", None),
        ] {
            assert_eq!(shown(line).as_deref(), expected, "{line}");
        }
    }
}
