//! The arguments of the program `reducer`.

use clap::Parser;
use corpus::arguments::RowArguments;
use program::hadoop::Variable;
use program::size::parse_memory;
use store::S3Options;

const EXAMPLES: &str = "\
Examples:
  mapper reviews.json | LC_ALL=C sort | reducer
      Write one shard to the folder run, which merge reads by default

  reducer --run run4 --partition 0 --partitions 4 --select <sorted-records
      Write the first of four shards, out of all records";

/// Convert sorted records to one shard, committed to a run exactly once
///
/// Reads records on standard input, in the order of `LC_ALL=C sort`, and writes one HDF5 shard to the folder of a
/// run. Under Hadoop the partition and the attempt come from the environment. Elsewhere the defaults are partition 0
/// of 1 and the folder `run`.
#[derive(Parser, Clone, Debug)]
#[command(version, after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Folder of the run [default: run; Hadoop: none]
    ///
    /// A path, file:///path or s3://bucket/prefix, the same for all reducers of the run. Required under Hadoop.
    #[arg(long, value_name = "URL", help_heading = "Output")]
    pub run: Option<String>,
    /// Also write the texts as Parquet
    ///
    /// The file, an object beside the shard, has the columns of sentimill --texts: text, label, rating, votes, hash and
    /// split of each row. All reducers of a run need the flag, or none.
    #[arg(long, help_heading = "Output")]
    pub texts: bool,
    /// Print no progress, only warnings and errors
    ///
    /// The flag has no effect in a Hadoop task.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// The partition.
    #[arg(long, value_name = "P", help_heading = "Input", help = "Number of this partition, from 0 [default: 0]",
        long_help = format!("Number of this partition, from 0. [default: 0; Hadoop: {}]", Variable::Partition.name()))]
    pub partition: Option<u32>,
    /// The number of partitions.
    #[arg(long, value_name = "R", help_heading = "Input", help = "Number of partitions of the run [default: 1]",
        long_help = format!("Number of partitions of the run. [default: 1; Hadoop: {}]", Variable::Partitions.name()))]
    pub partitions: Option<u32>,
    /// Read all records and use those of this partition
    ///
    /// For input that was not split into partitions.
    #[arg(long, conflicts_with = "any_partitioner", help_heading = "Input")]
    pub select: bool,
    /// Accept records of other partitions
    ///
    /// For input that was split by another partitioner than Hadoop's default.
    #[arg(long, help_heading = "Input")]
    pub any_partitioner: bool,
    /// The attempt.
    #[arg(long, value_name = "NAME", help_heading = "Input", help = "Name of this attempt [default: random]",
        long_help = format!("Name of this attempt, unique within the run. [default: random; Hadoop: {}]", Variable::Attempt.name()))]
    pub attempt: Option<String>,
    /// The settings of rows.
    #[command(flatten)]
    pub rows: RowArguments,
    /// Keep what merging with other runs needs
    ///
    /// Puts the texts that rows do not describe completely beside the shard: those with more than --max-tokens words, those
    /// whose rating has no class, and those of stop words only. merge needs them if a text may be in several runs.
    #[arg(long, help_heading = "Output")]
    pub keep_words: bool,
    /// Options for S3.
    #[arg(long, value_name = "LIST", help_heading = "Storage", help = store::S3_HELP, long_help = store::S3_LONG_HELP)]
    pub s3: Option<S3Options>,
    /// Memory for rows
    ///
    /// A size such as 512MiB or 2GB. Rows that do not fit are sorted in files in TMPDIR. With --texts, half of it is for
    /// texts.
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = parse_memory, help_heading = "Resources")]
    pub memory: usize,
}
