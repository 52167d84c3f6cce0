//! Damaged and hostile files: damage is detected before a row is used, or it changes no row.
#![allow(clippy::unwrap_used)]

mod fixture;

use std::env;
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use dataset::dataset_file::DatasetReader;
use dataset::shard::ShardReader;
use dataset::{Error, Row};
use fixture::{many_rows, push, rows, write_dataset, write_shard};
use hdf5::filters::Filter;

/// A file, and the function that reads all of it.
struct Subject {
    _folder: tempfile::TempDir,
    path: PathBuf,
    file: File,
    whole: Vec<u8>,
    rows: Vec<Row>,
    read: Read,
}

/// Reads and verifies a file. Adds each row to the list, also if the file is damaged.
type Read = fn(&Path, &mut Vec<Row>) -> Result<(), Error>;

fn read_shard(path: &Path, seen: &mut Vec<Row>) -> Result<(), Error> {
    let mut shard = ShardReader::open(path)?;
    shard.keep_dictionary(1 << 20)?;
    shard.verify_blocks(NonZeroUsize::new(2).unwrap(), Vec::new, push, |block| seen.extend(block))
}

fn read_dataset(path: &Path, seen: &mut Vec<Row>) -> Result<(), Error> {
    DatasetReader::open(path)?.verify(|row| {
        seen.push(row.clone());
        Ok(())
    })
}

fn read_dataset_by_threads(path: &Path, seen: &mut Vec<Row>) -> Result<(), Error> {
    let push = |block: &mut Vec<Row>, _, row: &Row| block.push(row.clone());
    let threads = NonZeroUsize::new(2).unwrap();
    DatasetReader::open(path)?.verify_blocks(threads, Vec::new, push, |block| {
        seen.extend(block);
        Ok(())
    })
}

impl Subject {
    fn new(write: fn(&Path, &[Row]), rows: &[Row], read: Read) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        write(&path, rows);
        let file = File::options().write(true).open(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut rows = Vec::new();
        read(&path, &mut rows).unwrap();
        Self { _folder: folder, path, file, whole, rows, read }
    }

    /// Whether a change of one byte is detected. Asserts that no row was read with other content: if the change is
    /// detected, some of the original rows were read; otherwise all of them.
    fn notices(&self, at: usize, mask: u8) -> bool {
        let mut seen = Vec::new();
        self.file.write_all_at(&[self.whole[at] ^ mask], at as u64).unwrap();
        let read = (self.read)(&self.path, &mut seen);
        self.file.write_all_at(&[self.whole[at]], at as u64).unwrap();
        match read {
            Ok(()) => assert!(seen == self.rows, "byte {at} ^ {mask:#x}: other rows"),
            Err(_) => assert!(self.rows.starts_with(&seen), "byte {at} ^ {mask:#x}: a damaged row was seen"),
        }
        read.is_err()
    }
}

fn small() -> [Subject; 2] {
    [
        Subject::new(write_shard, &rows(), read_shard),
        Subject::new(write_dataset, &rows(), read_dataset_by_threads),
    ]
}

#[test]
fn no_flipped_byte_changes_a_row_undetected() {
    for subject in small() {
        let n = subject.whole.len();
        let noticed = (0..n).filter(|&at| subject.notices(at, 1 << (at % 8))).count();
        // The other bytes are unused: gaps between objects, and reserved space.
        assert!(noticed > n / 2, "{noticed} of {n}");
    }
}

#[test]
fn every_cut_file_is_refused() {
    for subject in small() {
        for length in (0..subject.whole.len()).rev() {
            subject.file.set_len(length as u64).unwrap();
            let mut seen = Vec::new();
            let error = (subject.read)(&subject.path, &mut seen).unwrap_err().to_string();
            assert!(error.contains("the file is not readable as HDF5"), "{length} bytes: {error}");
            assert!(seen.is_empty());
        }
    }
}

/// One hundred bytes by default; ten thousand with PROVE=1.
fn flips() -> usize {
    if env::var_os("PROVE").is_some() { 10_000 } else { 100 }
}

#[test]
fn no_flipped_byte_of_a_larger_file_changes_a_row_undetected() {
    let rows = many_rows(40_000);
    let subjects = [
        Subject::new(write_shard, &rows, read_shard),
        Subject::new(write_dataset, &rows, read_dataset),
        Subject::new(write_dataset, &rows, read_dataset_by_threads),
    ];
    let mut random = 1;
    for n in 0..flips() {
        let subject = &subjects[n % subjects.len()];
        let at = next(&mut random) as usize % subject.whole.len();
        let mask = 1 + next(&mut random) % 255;
        subject.notices(at, mask as u8);
    }
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[test]
fn a_file_truncated_while_open_is_reported_as_damaged() {
    for by_threads in [false, true] {
        let subject = Subject::new(write_dataset, &many_rows(40_000), read_dataset);
        let dataset = DatasetReader::open(&subject.path).unwrap();
        subject.file.set_len(1000).unwrap();
        let error = if by_threads {
            dataset.columns().hash.read(NonZeroUsize::new(2).unwrap()).unwrap_err()
        } else {
            dataset.verify(|_| Ok(())).unwrap_err()
        };
        let expected = "chunk 0 of hash does not match its digest: the file was damaged or altered";
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// The error for a dataset whose column `label` another program has replaced.
fn with_other_label(other: impl FnOnce(&hdf5::File)) -> String {
    let subject = Subject::new(write_dataset, &many_rows(70_000), read_dataset);
    let file = hdf5::File::open_rw(&subject.path).unwrap();
    file.unlink("label").unwrap();
    other(&file);
    file.close().unwrap();
    let error = DatasetReader::open(&subject.path).unwrap_err().to_string();
    error.strip_prefix(&format!("{}: ", subject.path.display())).unwrap().to_owned()
}

#[test]
fn a_column_without_its_chunks_is_refused() {
    let said = with_other_label(|file| {
        let columns = file.new_dataset::<u8>().shape(70_000).chunk(65_536);
        let column = columns.shuffle().deflate(1).fletcher32().create("label").unwrap();
        column.write_slice(&vec![1_u8; 65_536], 0..65_536).unwrap();
    });
    let remedy = "the file was damaged or altered; fetch or make it again";
    assert_eq!(said, format!("chunk 1 of label is absent, expected a stored chunk; {remedy}"));
}

#[test]
fn a_column_of_another_layout_is_refused() {
    let of = |filters: &[Filter], rows: usize, chunk: usize| {
        with_other_label(|file| {
            let column = file.new_dataset::<u8>().shape(rows).chunk(chunk).set_filters(filters);
            column.create("label").unwrap();
        })
    };
    let [shuffle, deflate, fletcher] = [Filter::Shuffle, Filter::Deflate(1), Filter::Fletcher32];
    let as_written = [shuffle.clone(), deflate.clone(), fletcher.clone()];
    for said in [
        of(&[], 70_000, 65_536),
        of(&[shuffle.clone(), deflate.clone()], 70_000, 65_536),
        of(&[fletcher, shuffle, deflate], 70_000, 65_536),
        of(&as_written, 70_001, 65_536),
        // A chunk of four gigabytes.
        of(&as_written, 1 << 40, u32::MAX as usize),
    ] {
        let expected = "the layout of label does not match its digest: the file was damaged or altered; fetch or make \
                        it again";
        assert_eq!(said, expected);
    }
}
