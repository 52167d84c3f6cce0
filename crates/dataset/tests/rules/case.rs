//! A file that breaks a rule, and how it is refused.

use std::num::NonZeroUsize;
use std::path::Path;

use corpus::digest::Digest;
use dataset::Row;
use dataset::dataset_file::DatasetReader;
use dataset::shard::ShardReader;
use hdf5::File;

use crate::fixture::reseal::{altered, reseal};
use crate::fixture::{Given, rows, write_dataset, write_shard_of};

/// How to make a file that breaks a rule, and the expected error.
pub struct Case {
    pub rule: &'static str,
    pub said: &'static str,
    when: When,
    write: Box<dyn FnOnce(&Path)>,
}

/// The step at which the file is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// When it is opened, before any row can be read.
    Opened,
    /// When its rows are read.
    Read,
    /// When a shard is verified, or opened for that.
    Verified,
}

impl Case {
    pub fn new(
        rule: &'static str,
        said: &'static str,
        when: When,
        write: impl FnOnce(&Path) + 'static,
    ) -> Self {
        Self { rule, said, when, write: Box::new(write) }
    }

    /// A dataset written with other words, settings or rows.
    pub fn given(
        rule: &'static str,
        said: &'static str,
        when: When,
        alter: impl FnOnce(&mut Given) + 'static,
    ) -> Self {
        Self::new(rule, said, when, |path| {
            let mut given = Given::sound();
            alter(&mut given);
            given.write(path);
        })
    }

    /// A dataset with these words and without rows.
    pub fn words(rule: &'static str, said: &'static str, words: &[&[u8]]) -> Self {
        let words = words.iter().map(|word| word.to_vec()).collect();
        Self::new(rule, said, When::Opened, |path| Given::of(words).write(path))
    }

    /// A dataset with another row in the middle.
    pub fn row(rule: &'static str, said: &'static str, alter: impl FnOnce(&mut Row) + 'static) -> Self {
        Self::given(rule, said, When::Read, |given| alter(&mut given.rows[1]))
    }

    /// A dataset that another program has altered, with a valid table of digests.
    pub fn altered(rule: &'static str, said: &'static str, alter: impl FnOnce(&File) + 'static) -> Self {
        Self::new(rule, said, When::Opened, |path| {
            write_dataset(path, &rows());
            altered(path, alter);
        })
    }

    /// A dataset with another table of digests.
    pub fn table(
        rule: &'static str,
        said: &'static str,
        alter: impl FnOnce(String) -> String + 'static,
    ) -> Self {
        Self::new(rule, said, When::Opened, |path| {
            write_dataset(path, &rows());
            reseal(path, alter);
        })
    }

    /// A shard with these words and rows.
    pub fn shard(
        rule: &'static str,
        said: &'static str,
        words: &'static [(&'static [u8], u64)],
        rows: Vec<Row>,
    ) -> Self {
        Self::new(rule, said, When::Verified, move |path| write_shard_of(path, words, &rows, Digest(0)))
    }

    pub fn refused(self) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        (self.write)(&path);
        let error = match self.when {
            When::Opened => DatasetReader::open(&path).err(),
            When::Read => {
                let dataset = DatasetReader::open(&path).unwrap();
                let (mut reader, mut row) = (dataset.rows(), Row::default());
                let by_place = (0..dataset.n_rows()).try_for_each(|at| reader.read(at, &mut row));
                let in_order = dataset.verify(|_| Ok(())).err();
                let broken = by_place.err().map(|error| error.to_string());
                // Reading single rows either finds no violation or the same one.
                assert!(
                    broken.is_none() || broken == in_order.as_ref().map(ToString::to_string),
                    "{broken:?}"
                );
                in_order
            }
            When::Verified => ShardReader::open(&path)
                .and_then(|mut shard| {
                    shard.keep_dictionary(1 << 20)?;
                    shard.verify_blocks(NonZeroUsize::MIN, || (), |(), _| (), |()| ())
                })
                .err(),
        };
        let error = error
            .unwrap_or_else(|| panic!("{} {}: it was taken for sound", self.rule, self.said))
            .to_string();
        error.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&error).to_owned()
    }
}
