//! A dataset as rows to train on and to evaluate: checked once from end to end, divided into parts, each row cut to
//! what a model reads; in memory where it fits, else in blocks. Several threads read and check it.
//!
//! Whether it fits is judged before a row is read, by the dataset's head: all rows with all their tokens, or with as
//! many as are read, whichever is less. So ranks that are told the same decide the same.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use corpus::digest::Digest;
use corpus::settings::{Difference, Settings};
use dataset::card::{Summary, card};
use dataset::dataset_file::{DatasetReader, DatasetSettings};
use dataset::vocabulary::Vocabulary;
use dataset::{Row, WordList};

use crate::blocks::{BlockSize, Blocks, Plan};
use crate::division::{Division, Part};
use crate::error::{Error, Result};
use crate::smallest::Smallest;
use crate::table::{ROW_BYTES, Table, token_bytes};

/// Threads that read a dataset when it is opened: each holds a block of rows, and ranks of one machine open it together.
const READING_THREADS_MAX: NonZeroUsize = NonZeroUsize::new(4).expect("4 is more than 0");

/// How a dataset is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What each row is for.
    pub division: Division,
    /// The tokens of a row that are read, the first ones; 0 for all.
    pub tokens_max: u32,
    /// What rows may take. Readers of chunks and batches that wait take some megabytes besides.
    pub memory_bytes: u64,
}

/// What there is of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Rows.
    pub rows: u64,
    /// Rows with label 1.
    pub positive: u64,
    /// Tokens that are read.
    pub tokens: u64,
    /// Rows of each rating, from 1 to 5.
    pub ratings: [u64; 5],
}

impl Census {
    fn count(&mut self, row: &Row, tokens: &[u32]) {
        self.rows += 1;
        self.positive += u64::from(row.label);
        self.tokens += tokens.len() as u64;
        self.ratings[usize::from(row.votes.mode()) - 1] += 1;
    }

    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.positive += other.positive;
        self.tokens += other.tokens;
        self.ratings.iter_mut().zip(other.ratings).for_each(|(sum, n)| *sum += n);
    }

    /// The `pos_weight` with which both labels weigh the same: negative rows / positive rows; `None` without positive
    /// rows.
    pub fn balanced_pos_weight(&self) -> Option<f64> {
        (self.positive > 0).then(|| (self.rows - self.positive) as f64 / self.positive as f64)
    }
}

/// The rows of a dataset, opened and found to be sound.
pub struct Rows {
    path: PathBuf,
    settings: DatasetSettings,
    id_digest: Digest,
    vocabulary: Vocabulary,
    card: Vec<(&'static str, String)>,
    census: [Census; 3],
    smallest: Smallest,
    known: [u64; 3],
    source: Source,
    memory_bytes: u64,
}

/// What is found out of rows while they are read.
#[derive(Clone, Debug, Default)]
struct Findings {
    census: [Census; 3],
    summary: Summary,
    /// Of the training rows.
    smallest: Smallest,
    /// Rows of each part that were known.
    known: [u64; 3],
}

impl Findings {
    fn count(&mut self, row: &Row, part: Part, tokens: &[u32], known: &Smallest) {
        self.summary.count(row);
        self.census[part as usize].count(row, tokens);
        self.known[part as usize] += u64::from(known.contains(row.hash));
        if part == Part::Training {
            self.smallest.push(row.hash);
        }
    }

    /// Adds those of rows that follow.
    fn add(&mut self, other: Self) {
        self.summary.add(other.summary);
        self.census.iter_mut().zip(other.census).for_each(|(sum, counted)| sum.add(counted));
        self.known.iter_mut().zip(other.known).for_each(|(sum, counted)| *sum += counted);
        self.smallest.append(&other.smallest);
    }
}

/// Where rows come from.
pub(crate) enum Source {
    /// Each part in memory.
    Memory([Arc<Table>; 3]),
    /// The file, block by block.
    Blocks(Arc<Blocks>),
}

impl Rows {
    /// Opens a dataset, reads it once and checks all that [`DatasetReader::verify`] does, so that each token is an id
    /// of the vocabulary and no row is empty.
    pub fn open(path: &Path, reading: &Reading) -> Result<Self> {
        Self::open_knowing(path, reading, &Smallest::default())
    }

    /// The same, and counts the rows that are among `known`.
    pub fn open_knowing(path: &Path, reading: &Reading, known: &Smallest) -> Result<Self> {
        let reader = DatasetReader::open(path)?;
        if u32::try_from(reader.n_rows()).is_err() {
            return Err(Error::TooManyRows { path: path.to_owned(), found: reader.n_rows() });
        }
        let settings = reader.settings().clone();
        let vocabulary = reader.vocabulary().clone();
        let mut findings = Findings::default();
        let digests = reader.digests();
        let source = if memory_bytes(&reader, reading.tokens_max) <= reading.memory_bytes {
            Source::Memory(read_tables(&reader, reading, known, &mut findings)?.map(Arc::new))
        } else {
            let sizes = measure_blocks(&reader, reading, known, &mut findings)?;
            Source::Blocks(Arc::new(Blocks::new(reader, *reading, sizes)))
        };
        let Findings { census, summary, smallest, known } = findings;
        let card = card(&settings, &digests, &vocabulary, &summary);
        Ok(Self {
            path: path.to_owned(),
            settings,
            id_digest: digests.id_digest,
            vocabulary,
            card,
            census,
            smallest,
            known,
            source,
            memory_bytes: reading.memory_bytes,
        })
    }

    /// The dataset.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &DatasetSettings {
        &self.settings
    }

    /// The digest of its rows; a training that goes on compares it.
    pub fn id_digest(&self) -> Digest {
        self.id_digest
    }

    /// The words of its ids.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// What it holds, as `merge --describe` tells it: names, and what stands behind them.
    pub fn card(&self) -> &[(&'static str, String)] {
        &self.card
    }

    /// What there is of a part.
    pub fn census(&self, part: Part) -> Census {
        self.census[part as usize]
    }

    /// The smallest hashes of the training rows.
    pub fn smallest(&self) -> &Smallest {
        &self.smallest
    }

    /// How many rows of a part were known when it was opened.
    pub fn known(&self, part: Part) -> u64 {
        self.known[part as usize]
    }

    /// Refuses a part without rows.
    pub fn check_rows(&self, part: Part) -> Result<()> {
        match self.census(part).rows {
            0 => Err(Error::NoRows { path: self.path.clone(), part }),
            _ => Ok(()),
        }
    }

    /// Refuses a part without rows or with a single label: there is nothing to tell apart.
    pub fn check_classes(&self, part: Part) -> Result<()> {
        self.check_rows(part)?;
        let Census { rows, positive, .. } = self.census(part);
        if positive == 0 || positive == rows {
            let label = u8::from(positive > 0);
            return Err(Error::OneClass { path: self.path.clone(), part, rows, label });
        }
        Ok(())
    }

    /// Refuses rows whose ids are of other words, or were made of texts by other settings. `of`: what has those expected.
    pub fn check_fits(&self, words: &WordList, preparation: &Settings, of: &Path) -> Result<()> {
        let (path, of) = (self.path.clone(), of.to_owned());
        if self.vocabulary.words != *words {
            return Err(Error::OtherVocabulary { path, of });
        }
        match self.settings.rows.difference(preparation) {
            None => Ok(()),
            Some(Difference { setting, ours, theirs }) => {
                Err(Error::OtherPreparation { path, of, setting, found: ours, expected: theirs })
            }
        }
    }

    /// The rows of a part, by their place in the dataset; `None` where they are not in memory.
    pub fn table(&self, part: Part) -> Option<&Table> {
        match &self.source {
            Source::Memory(tables) => Some(&tables[part as usize]),
            Source::Blocks(_) => None,
        }
    }

    /// How blocks are read for batches of so many rows, on which their order depends; `None` where rows are in
    /// memory. A training that goes on compares it.
    pub fn plan(&self, part: Part, batch_rows: usize) -> Result<Option<Plan>> {
        match &self.source {
            Source::Memory(_) => Ok(None),
            Source::Blocks(blocks) => blocks.plan(part, batch_rows, self.memory_bytes, &self.path).map(Some),
        }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }
}

/// What all rows take at most.
fn memory_bytes(reader: &DatasetReader, tokens_max: u32) -> u64 {
    let n_tokens = match tokens_max {
        0 => reader.n_tokens(),
        most => reader.n_tokens().min(reader.n_rows() * u64::from(most)),
    };
    reader.n_rows() * ROW_BYTES + n_tokens * token_bytes(reader.vocabulary().token_type())
}

fn read_tables(
    reader: &DatasetReader,
    reading: &Reading,
    known: &Smallest,
    findings: &mut Findings,
) -> Result<[Table; 3]> {
    let token_type = reader.vocabulary().token_type();
    let empty = || Part::ALL.map(|_| Table::with_capacity(token_type, 0, 0));
    let push = |tables: &mut [Table; 3], at, row: &Row, part, tokens: &[u32]| {
        tables[part as usize].push(at, row, tokens);
    };
    let mut tables = empty();
    each_block(reader, reading, known, findings, empty, push, |block| {
        tables.iter_mut().zip(&block).for_each(|(table, of_block)| table.append(of_block));
    })?;
    tables.iter_mut().for_each(Table::shrink);
    Ok(tables)
}

fn measure_blocks(
    reader: &DatasetReader,
    reading: &Reading,
    known: &Smallest,
    findings: &mut Findings,
) -> Result<Vec<[BlockSize; 3]>> {
    let block_rows = Blocks::rows_of_a_block() as u32;
    let mut sizes = Vec::new();
    // What is read in one go begins with a block of ours and may have several.
    let count = |sizes: &mut Vec<[BlockSize; 3]>, at: u32, _: &Row, part, tokens: &[u32]| {
        if at.is_multiple_of(block_rows) {
            sizes.push(<[BlockSize; 3]>::default());
        }
        sizes.last_mut().expect("a block has begun")[part as usize].count(tokens);
    };
    each_block(reader, reading, known, findings, Vec::new, count, |of_blocks| sizes.extend(of_blocks))?;
    Ok(sizes)
}

/// Verifies the dataset by several threads and counts its rows. `add` puts each row, with its place, part and the
/// tokens that are read, into what `empty` made for its block; `take` gets that of one block after the other.
fn each_block<B: Send>(
    reader: &DatasetReader,
    reading: &Reading,
    known: &Smallest,
    findings: &mut Findings,
    empty: impl Fn() -> B + Sync,
    add: impl Fn(&mut B, u32, &Row, Part, &[u32]) + Sync,
    mut take: impl FnMut(B),
) -> Result<()> {
    let threads = dataset::threads(READING_THREADS_MAX);
    let each = |(found, block): &mut (Findings, B), at, row: &Row| {
        let (part, tokens) = (reading.division.part(row.split), reading.read_of(row));
        found.count(row, part, tokens, known);
        add(block, at as u32, row, part, tokens);
    };
    reader.verify_blocks(
        threads,
        || (Findings::default(), empty()),
        each,
        |(of_block, block)| {
            findings.add(of_block);
            take(block);
        },
    )?;
    Ok(())
}

impl Reading {
    /// The tokens of a row that are read.
    pub(crate) fn read_of<'a>(&self, row: &'a Row) -> &'a [u32] {
        match self.tokens_max as usize {
            0 => &row.tokens,
            most => &row.tokens[..row.tokens.len().min(most)],
        }
    }
}
