//! Measures how fast the columns of a dataset are read: by this crate with one thread and with two, and by
//! the HDF5 library.
//!
//! usage: read DATASET
//!
//! Prints lines with TABs between fields. The first has `bytes`, the size of all elements, the seconds to
//! open and check the file, and the seconds to read and check all rows. One line per reader follows, with its
//! name and its seconds, which include opening the file. `crates/dataset/bench/compare.py` compares these
//! figures with h5py.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, not a program of the project")]

use std::env;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use dataset::dataset_file::DatasetReader;
use dataset::{Row, TokenColumn};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [path] = &arguments[..] else { panic!("usage: read DATASET") };
    let path: &Path = path.as_ref();
    println!("bytes\t{}", with_threads(path, 1));
    timed("open", || DatasetReader::open(path).unwrap().n_rows() as usize);
    timed("open and check", || {
        let (mut n_tokens, one) = (0, NonZeroUsize::MIN);
        let dataset = DatasetReader::open(path).unwrap();
        let count = |block: &mut usize, _, row: &Row| *block += row.tokens.len();
        let sum = |block| -> dataset::Result<()> {
            n_tokens += block;
            Ok(())
        };
        dataset.verify_blocks(one, || 0, count, sum).unwrap();
        n_tokens
    });
    timed("1 thread", || with_threads(path, 1));
    timed("2 threads", || with_threads(path, 2));
    timed("HDF5 library", || with_library(path));
}

fn timed(name: &str, read: impl FnOnce() -> usize) {
    let begin = Instant::now();
    black_box(read());
    println!("{name}\t{}", begin.elapsed().as_secs_f64());
}

/// Reads all columns of rows. Returns the size of their elements in bytes.
fn with_threads(path: &Path, threads: usize) -> usize {
    let threads = NonZeroUsize::new(threads).unwrap();
    let dataset = DatasetReader::open(path).unwrap();
    let columns = dataset.columns();
    let tokens = match &columns.tokens {
        TokenColumn::U16(column) => size_of_val(&column.read(threads).unwrap()[..]),
        TokenColumn::U32(column) => size_of_val(&column.read(threads).unwrap()[..]),
    };
    tokens
        + size_of_val(&columns.offsets.read(threads).unwrap()[..])
        + size_of_val(&columns.label.read(threads).unwrap()[..])
        + size_of_val(&columns.votes.read(threads).unwrap()[..])
        + size_of_val(&columns.hash.read(threads).unwrap()[..])
        + size_of_val(&columns.split.read(threads).unwrap()[..])
}

fn with_library(path: &Path) -> usize {
    let file = hdf5::File::open(path).unwrap();
    let column = |name: &str| file.dataset(name).unwrap();
    let tokens = column("tokens");
    let tokens = if tokens.dtype().unwrap().is::<u16>() {
        size_of_val(&tokens.read_raw::<u16>().unwrap()[..])
    } else {
        size_of_val(&tokens.read_raw::<u32>().unwrap()[..])
    };
    tokens
        + size_of_val(&column("offsets").read_raw::<u64>().unwrap()[..])
        + size_of_val(&column("label").read_raw::<u8>().unwrap()[..])
        + size_of_val(&column("votes").read_raw::<u32>().unwrap()[..])
        + size_of_val(&column("hash").read_raw::<u64>().unwrap()[..])
        + size_of_val(&column("split").read_raw::<u16>().unwrap()[..])
}
