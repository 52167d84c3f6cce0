//! The job file, JOB.toml, as checked settings. It has one description of a job for all runners: this machine, a
//! Hadoop cluster, Amazon EMR.

mod cluster;
mod cluster_checks;
mod file;
mod flags;
mod identity;
mod place;
mod programs;
mod reader;
mod values;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use corpus::encoding::{UTF_16BE, UTF_16LE, parse_encoding};
use corpus::format::FormatName;
use program::bounded;
use program::exit::{Exit, Failed};
use store::S3Options;

pub use cluster::{
    Bootstrap, ClusterTable, Fleet, Group, InstancePrice, Prices, Role, SpotAllocation, TimeoutAction,
};
pub use identity::{JobRecord, RUN_TAG};
pub use place::Place;
pub use programs::STOP_WORDS;

use crate::Error;
use reader::KeyLines;

/// Maximum size of a job file.
const JOB_BYTES_MAX: u64 = 1 << 20;

/// A complete job file with comments.
pub const EXAMPLE: &str = include_str!("job/example.toml");

/// A checked job file.
#[derive(Debug)]
pub struct Job {
    /// The name of the job.
    pub name: String,
    /// The folder of the run: in S3 or local.
    pub run: Place,
    /// The dataset to write: in S3 or local.
    pub dataset: Place,
    /// The folder of the programs on this machine.
    pub programs: PathBuf,
    /// The folder in S3 to which programs are uploaded; `None` if the run is local and the file names none.
    pub staging: Option<Place>,
    /// The value of `--s3`, without a region that the job file does not name.
    pub s3: Option<String>,
    /// The same options, parsed.
    pub s3_options: S3Options,
    /// The reviews.
    pub input: Input,
    /// The settings of rows.
    pub rows: RowSettings,
    /// The settings of the dataset.
    pub output: Output,
    /// The settings of the Hadoop job.
    pub hadoop: Hadoop,
    /// The cluster on EMR, if the file has one.
    pub cluster: Option<ClusterTable>,
    /// The prices.
    pub prices: Prices,
    /// The machines for training, if the file has them.
    pub gpus: Option<Gpus>,
    /// The lines of the file, for messages.
    lines: KeyLines,
}

/// The reviews.
#[derive(Clone, Debug)]
pub struct Input {
    /// Files, folders and URLs.
    pub places: Vec<Place>,
    /// The size of all of them, if the file states it.
    pub bytes: Option<u64>,
    /// Flags of the format, which `mapper` and `sentimill` have.
    pub format_flags: Vec<String>,
    /// The value of `mapper --line-bytes-max`.
    pub line_bytes_max: Option<String>,
    /// The value of `--bad-lines-max` of `mapper`, `merge` and `sentimill`.
    pub bad_lines_max: Option<String>,
    /// The value of `--invalid-utf8-max` of the same programs.
    pub invalid_utf8_max: Option<String>,
}

impl Input {
    /// The format, if it is a table with a header, which only `sentimill` reads.
    pub fn table_format(&self) -> Option<&str> {
        self.value("--format").filter(|format| ["csv", "tsv"].contains(format))
    }

    /// The encoding, if its lines do not end at the byte 0A. Only `sentimill` reads it.
    pub fn wide_encoding(&self) -> Option<&str> {
        let is_wide = |label: &&str| parse_encoding(label).is_ok_and(|of| of == UTF_16LE || of == UTF_16BE);
        self.value("--encoding").filter(is_wide)
    }

    /// Flags of the format for `sentimill`, which would otherwise read each extension differently from `mapper`.
    pub fn format_flags_of_sentimill(&self) -> Vec<String> {
        let default = match self.value("--format") {
            None => vec!["--format".to_owned(), FormatName::default().to_string()],
            Some(_) => Vec::new(),
        };
        [self.format_flags.clone(), default].concat()
    }

    fn value(&self, flag: &str) -> Option<&str> {
        self.format_flags.iter().skip_while(|found| *found != flag).nth(1).map(String::as_str)
    }
}

/// The settings of rows.
#[derive(Clone, Debug)]
pub struct RowSettings {
    /// Flags of `reducer` and `sentimill`. `--stopwords` is one of them, unless the stop words are in a file.
    pub flags: Vec<String>,
    /// The file of stop words.
    pub stop_words: Option<PathBuf>,
}

/// The settings of the dataset.
#[derive(Clone, Debug)]
pub struct Output {
    /// Flags of `merge` and `sentimill`, without `--vocabulary`, `--without` and `--texts`.
    pub flags: Vec<String>,
    /// The dataset whose vocabulary is used.
    pub vocabulary: Option<Place>,
    /// The dataset whose texts are omitted.
    pub without: Option<Place>,
    /// Whether reducers and `sentimill` write the texts of rows.
    pub texts: bool,
}

/// The settings of the Hadoop job.
#[derive(Clone, Debug)]
pub struct Hadoop {
    /// The number of reducers.
    pub reducers: u32,
    /// Whether map tasks combine records.
    pub combiner: bool,
    /// Whether reducers keep what merging with other runs needs.
    pub keep_words: bool,
    /// The value of `reducer --memory`.
    pub reducer_memory: Option<String>,
    /// The number of tasks that merge the run, if the file states it; 1 for one program.
    pub merge_tasks: Option<u32>,
    /// Settings that are passed with `-D`.
    pub settings: BTreeMap<String, String>,
    /// The credentials of its tasks, without EMR.
    pub credentials: Option<Credentials>,
}

/// Where the tasks of a Hadoop job find credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// The role of their nodes.
    Role,
    /// A file on each node.
    File(String),
}

/// The machines for training.
#[derive(Clone, Debug)]
pub struct Gpus {
    /// The instance type.
    pub instance_type: String,
    /// The number of machines.
    pub machines: u32,
    /// The AMI.
    pub image: String,
    /// The subnet.
    pub subnet: Option<String>,
    /// The region.
    pub region: String,
    /// The instance profile.
    pub instance_profile: String,
    /// The folder in S3 with the trainer, the scripts and the wheels.
    pub files: Place,
    /// The SHA-256 of their list `SHA256SUMS`.
    pub sha256: String,
    /// The folder that all machines share.
    pub shared: Option<Shared>,
    /// The training folder.
    pub out: Place,
    /// More arguments of `trainer fit`.
    pub arguments: Vec<String>,
}

/// A folder that machines share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shared {
    /// A folder of an NFS server.
    Nfs {
        /// The server's name.
        server: String,
        /// The exported path.
        path: String,
    },
    /// A file system of Amazon EFS.
    Efs {
        /// Its id.
        id: String,
    },
}

impl Job {
    /// Reads a job file. Relative paths in it are relative to its folder and become absolute, because tasks on other
    /// machines get them, and because the record of a job is the same from every working folder.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::read_for(path, Purpose::Emr)
    }

    /// Reads a job file for a runner that has no use for the table `cluster`, which may be incomplete.
    pub fn read_without_cluster(path: &Path) -> Result<Self, Error> {
        Self::read_for(path, Purpose::NoCluster)
    }

    /// Parses the text of the job file `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        Self::parse_for(path, text, Purpose::Emr)
    }

    fn read_for(path: &Path, purpose: Purpose) -> Result<Self, Error> {
        let unreadable = |source| {
            let message =
                format!("{}: cannot read the job file; `emr plan --example` prints one", path.display());
            Failed::caused(Exit::MissingInput, message, &source)
        };
        let text = bounded::read_text(path, JOB_BYTES_MAX).map_err(unreadable)?;
        Self::parse_for(path, &text, purpose)
    }

    fn parse_for(path: &Path, text: &str, purpose: Purpose) -> Result<Self, Error> {
        let name = path.display().to_string();
        let folder = folder_of(path);
        let findings = |findings| Error::BadJob { path: path.to_owned(), findings };
        let (file, lines) = reader::read(&name, text).map_err(|finding| findings(vec![finding]))?;
        values::checked(file, lines, &folder, purpose).map_err(findings)
    }

    /// The key as the thing of a finding, with the name and line of the file: `JOB.toml:7: cluster.region`.
    pub fn thing(&self, key: &str) -> String {
        self.lines.thing(key)
    }

    /// Options for the buckets of the job: those of the job file. If they name no region, it is that of the cluster;
    /// without a cluster, that of the environment.
    pub fn bucket_options(&self) -> S3Options {
        let mut options = self.s3_options.clone();
        let of_cluster = self.cluster.as_ref().map(|cluster| &cluster.region);
        options.region = options.region.or_else(|| of_cluster.filter(|region| !region.is_empty()).cloned());
        options
    }

    /// The same options as the value of `--s3`, one per entry.
    pub fn s3_options_of_programs(&self) -> Vec<String> {
        let of_file = self.s3.as_deref().unwrap_or_default().split(',');
        let of_file = of_file.filter(|option| !option.is_empty() && !option.starts_with("region="));
        let region = self.bucket_options().region.map(|region| format!("region={region}"));
        of_file.map(str::to_owned).chain(region).collect()
    }

    /// The cluster of a job for EMR.
    pub fn cluster(&self) -> Result<&ClusterTable, Error> {
        self.cluster.as_ref().ok_or_else(|| {
            self.no_table(
                "cluster",
                "so there is nothing to plan or to run on EMR; run the job with --runner local or --runner hadoop, or add \
                 the table",
            )
        })
    }

    /// The error about a table that the job file lacks: what needs it, and what does not.
    pub fn no_table(&self, table: &str, remedy: &str) -> Error {
        let thing = self.thing(table);
        Error::new(Exit::Settings, format!("{thing}: no such table, {remedy}; emr plan --example prints one"))
    }
}

/// What a job file is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A job on EMR: the table `cluster` must be complete.
    Emr,
    /// Another runner: the table `cluster` may be incomplete.
    NoCluster,
}

/// The absolute folder of a job file. Links and `..` are resolved if the folder exists.
fn folder_of(job: &Path) -> PathBuf {
    let folder = program::place::folder_of(job);
    fs::canonicalize(folder).or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.to_owned())
}

#[cfg(test)]
mod tests;
