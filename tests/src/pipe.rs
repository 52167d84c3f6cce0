//! Runs the whole job as a pipe of processes, split and combined in any way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use program::hadoop::partition;

use crate::lines::{in_parts, sorted_as_c, split};
use crate::programs::{Finished, program, run};

/// One way to run the job. Every way should give the same dataset.
#[derive(Clone, Debug)]
pub struct Pipe {
    /// Number of reduce partitions.
    pub partitions: u32,
    /// One entry per part of the mapper's output: the number of combiner passes over that part after sorting
    /// it.
    pub passes_before_sort: Vec<u32>,
    /// Number of combiner passes over the whole sorted stream.
    pub passes_after_sort: u32,
    /// How each reducer gets its partition.
    pub splitter: Splitter,
    /// Further arguments of the mapper.
    pub mapper: Vec<String>,
    /// Further arguments of each reducer.
    pub reducer: Vec<String>,
    /// Further arguments of merge.
    pub merge: Vec<String>,
}

/// How each reducer gets its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splitter {
    /// The stream is split before the reducers, as by Hadoop.
    Hadoop,
    /// Each reducer selects its partition from the whole stream.
    Select,
}

impl Default for Pipe {
    /// `mapper | sort | reducer`, then `merge`.
    fn default() -> Self {
        Self {
            partitions: 1,
            passes_before_sort: vec![0],
            passes_after_sort: 0,
            splitter: Splitter::Hadoop,
            mapper: Vec::new(),
            reducer: Vec::new(),
            merge: Vec::new(),
        }
    }
}

impl Pipe {
    /// Converts raw lines into the dataset `reviews.h5` in a new folder, with a balanced ledger.
    pub fn dataset(&self, raw: &[u8], folder: &Path) -> PathBuf {
        fs::create_dir_all(folder).expect("a test can make a folder");
        let counts = folder.join("mapper.json");
        let records = mapped_with(&self.mapper, raw, &counts);
        self.reduce(&self.sorted(&records), &folder.join("run"));
        self.merged(folder, &["--counts", text_of(&counts)])
    }

    /// Converts records into the dataset `reviews.h5` in a new folder.
    pub fn dataset_of_records(&self, records: &[u8], folder: &Path) -> PathBuf {
        self.reduce(&self.sorted(records), &folder.join("run"));
        self.merged(folder, &[])
    }

    /// Combines and sorts the mapper's records.
    pub fn sorted(&self, records: &[u8]) -> Vec<u8> {
        let mut parts = in_parts(records, self.passes_before_sort.len());
        for (part, &passes) in parts.iter_mut().zip(&self.passes_before_sort) {
            for _ in 0..passes {
                *part = combined(&sorted_as_c(part));
            }
        }
        let mut sorted = sorted_as_c(&parts.concat());
        for _ in 0..self.passes_after_sort {
            sorted = combined(&sorted);
        }
        sorted
    }

    /// Reduces sorted records to the shards of a run.
    pub fn reduce(&self, sorted: &[u8], run_folder: &Path) {
        let split = match self.splitter {
            Splitter::Hadoop => split_by_hadoop(sorted, self.partitions),
            Splitter::Select => Vec::new(),
        };
        for number in 0..self.partitions {
            let mut reducer = reducer(run_folder, number, self.partitions);
            let input = match self.splitter {
                Splitter::Hadoop => &split[number as usize],
                Splitter::Select => {
                    reducer.arg("--select");
                    sorted
                }
            };
            run(reducer.args(&self.reducer), input).succeeded();
        }
    }

    fn merged(&self, folder: &Path, more: &[&str]) -> PathBuf {
        let dataset = folder.join("reviews.h5");
        let mut merge = merge(&folder.join("run"), &dataset);
        run(merge.args(&self.merge).args(more), b"").succeeded();
        dataset
    }
}

/// Maps raw lines and writes the counts to a file.
pub fn mapped(raw: &[u8], counts: &Path) -> Vec<u8> {
    mapped_with(&[], raw, counts)
}

/// Maps raw lines with further arguments.
pub fn mapped_with(more: &[String], raw: &[u8], counts: &Path) -> Vec<u8> {
    run(program("mapper").arg("--counts").arg(counts).args(more), raw).succeeded().stdout
}

/// Runs the combiner over records.
pub fn combined(records: &[u8]) -> Vec<u8> {
    run(&mut program("combiner"), records).succeeded().stdout
}

/// The reducer of one partition, ready to run.
pub fn reducer(run_folder: &Path, partition: u32, partitions: u32) -> Command {
    let mut reducer = program("reducer");
    reducer.arg("--run").arg(run_folder);
    reducer.args(["--partition", &partition.to_string(), "--partitions", &partitions.to_string()]);
    reducer
}

/// Merge of one run, ready to run.
pub fn merge(run_folder: &Path, dataset: &Path) -> Command {
    let mut merge = program("merge");
    merge.arg("--run").arg(run_folder).arg("--out").arg(dataset);
    merge
}

/// Runs merge with these arguments, without input.
pub fn merge_with(arguments: &[&str]) -> Finished {
    run(program("merge").args(arguments), b"")
}

/// Splits records into partitions by Hadoop's rule, in their order.
pub fn split_by_hadoop(records: &[u8], partitions: u32) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new(); partitions as usize];
    for record in split(records) {
        let key = record.split(|&byte| byte == b'\t').next().unwrap_or_default();
        parts[partition(key, partitions) as usize].extend_from_slice(record);
    }
    parts
}

/// A path as an argument. The paths of tests are UTF-8.
pub fn text_of(path: &Path) -> &str {
    path.to_str().expect("a test's own paths are UTF-8")
}
