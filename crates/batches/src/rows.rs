//! Opens a dataset for training and evaluation. Verifies it completely, divides it into splits and truncates each row
//! to the model's maximum length. Rows are kept in memory if they fit, and read in blocks otherwise. Several threads
//! read and verify.
//!
//! The decision depends only on the settings and on the dataset's header. The header determines the size of all
//! rows with all their tokens, and with the maximum number of tokens per row. The smaller size counts. All ranks
//! with the same settings therefore make the same decision.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use corpus::digest::{Digest, SPLITS, of_labelled};
use corpus::settings::{Difference, Settings};
use dataset::DatasetSettings;
use dataset::card::{Card, Summary};
use dataset::dataset_file::DatasetReader;
use dataset::vocabulary::Vocabulary;
use dataset::{Row, WordList};
use program::exit::{Exit, Failed};

use crate::blocks::{BlockSize, Blocks, Plan};
use crate::division::Division;
use crate::error::{Error, Result};
use crate::overlap::{shared_rows, training_texts_in};
use crate::part::Part;
use crate::reading::Reading;
use crate::smallest::Smallest;
use crate::table::{ROW_BYTES, Table, token_bytes};

/// Maximum threads that read a dataset when it is opened. Each thread holds a block of rows, and all ranks of a
/// machine open the dataset at the same time.
const READING_THREADS_MAX: NonZeroUsize = NonZeroUsize::new(4).expect("4 is more than 0");

/// Number of rows per label.
type Labels = [u64; 5];

/// Counts of one split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Number of rows.
    pub rows: u64,
    /// Number of rows with label 1.
    pub positive: u64,
    /// Number of rows per label.
    pub labels: Labels,
    /// Number of tokens, after truncation.
    pub tokens: u64,
    /// Number of rows per rating, from 1 to 5.
    pub ratings: [u64; 5],
    /// The sum of the digests of the text hashes, by label.
    pub digests: [Digest; 5],
}

impl Census {
    fn count(&mut self, row: &Row, tokens: &[u32]) {
        self.rows += 1;
        self.positive += u64::from(row.label == 1);
        if let Some(rows) = self.labels.get_mut(usize::from(row.label)) {
            *rows += 1;
            self.digests[usize::from(row.label)] += Digest::of(&row.hash.to_le_bytes());
        }
        self.tokens += tokens.len() as u64;
        self.ratings[usize::from(row.votes.mode()) - 1] += 1;
    }

    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.positive += other.positive;
        self.labels.iter_mut().zip(other.labels).for_each(|(sum, n)| *sum += n);
        self.tokens += other.tokens;
        self.ratings.iter_mut().zip(other.ratings).for_each(|(sum, n)| *sum += n);
        self.digests.iter_mut().zip(other.digests).for_each(|(sum, digest)| *sum += digest);
    }

    /// The `pos_weight` that balances both labels: negative rows / positive rows. `None` without positive rows.
    pub fn balanced_pos_weight(&self) -> Option<f64> {
        (self.positive > 0).then(|| (self.rows - self.positive) as f64 / self.positive as f64)
    }
}

/// The rows of a verified dataset.
pub struct Rows {
    path: PathBuf,
    /// The URL, if the file is a copy.
    url: Option<String>,
    settings: DatasetSettings,
    id_digest: Digest,
    text_digest: Digest,
    vocabulary: Vocabulary,
    card: Vec<(&'static str, String)>,
    census: [Census; 3],
    smallest: Smallest,
    known: [u64; 3],
    /// Number of rows of the sample per split number and label.
    by_split_number: Vec<Labels>,
    /// Number of rows in the file.
    n_rows: u64,
    /// Number of rows without labels that were added to the training split.
    n_unlabelled: u64,
    /// Maximum memory of all rows.
    memory_bytes: u64,
    source: Source,
    reading: Reading,
}

/// Facts collected while rows are read.
#[derive(Clone, Debug, Default)]
struct Findings {
    census: [Census; 3],
    summary: Summary,
    /// The smallest hashes of the training split.
    smallest: Smallest,
    /// Number of rows per split whose hash is known.
    known: [u64; 3],
    /// Number of rows of the sample per split number and label, or empty.
    by_split_number: Vec<Labels>,
    text_digest: Digest,
}

impl Findings {
    fn count(&mut self, row: &Row, reading: &Reading, known: &Smallest) {
        self.summary.count(row);
        self.text_digest += Digest::of(&row.hash.to_le_bytes());
        self.by_split_number.resize(usize::from(SPLITS), Labels::default());
        if reading.division.samples(row.hash) {
            // The reader refuses larger split numbers and labels.
            self.by_split_number[usize::from(row.split)][usize::from(row.label)] += 1;
        }
        let Some(part) = reading.part_of(row) else { return };
        self.census[part as usize].count(row, reading.read_of(row));
        self.known[part as usize] += u64::from(known.contains(row.hash));
        if part == Part::Training {
            self.smallest.push(row.hash);
        }
    }

    /// Adds the findings of the rows that follow.
    fn add(&mut self, other: Self) {
        self.summary.add(other.summary);
        self.census.iter_mut().zip(other.census).for_each(|(sum, counted)| sum.add(counted));
        self.known.iter_mut().zip(other.known).for_each(|(sum, counted)| *sum += counted);
        self.smallest.append(&other.smallest);
        self.by_split_number.resize(usize::from(SPLITS), Labels::default());
        for (sums, counted) in self.by_split_number.iter_mut().zip(other.by_split_number) {
            sums.iter_mut().zip(counted).for_each(|(sum, n)| *sum += n);
        }
        self.text_digest += other.text_digest;
    }
}

/// The source of rows.
pub(crate) enum Source {
    /// One table per split.
    Memory([Arc<Table>; 3]),
    /// The file, read in blocks.
    Blocks(Arc<Blocks>),
}

impl Rows {
    /// Opens a dataset, reads it once and checks everything that [`DatasetReader::verify`] does. Afterwards each
    /// token is an id of the vocabulary, and no row is empty.
    pub fn open(path: &Path, reading: &Reading) -> Result<Self> {
        Self::open_knowing(path, reading, &Smallest::default())
    }

    /// Opens a dataset as [`Rows::open`] does, and counts the rows whose hash is in `known`.
    pub fn open_knowing(path: &Path, reading: &Reading, known: &Smallest) -> Result<Self> {
        let reader = DatasetReader::open(path)?;
        if u32::try_from(reader.n_rows()).is_err() {
            return Err(Error::too_many_rows(path, reader.n_rows()));
        }
        let settings = reader.settings().clone();
        let vocabulary = reader.vocabulary().clone();
        let mut findings = Findings::default();
        let digests = reader.digests();
        let (n_rows, memory_bytes) = (reader.n_rows(), memory_bytes(&reader, reading.tokens_max));
        let source = if memory_bytes <= reading.memory_bytes {
            Source::Memory(read_tables(&reader, reading, known, &mut findings)?.map(Arc::new))
        } else {
            let sizes = measure_blocks(&reader, reading, known, &mut findings)?;
            Source::Blocks(Arc::new(Blocks::new(reader, *reading, sizes)))
        };
        let Findings { census, summary, smallest, known, by_split_number, text_digest } = findings;
        let card = Card::of(&settings, &digests, &vocabulary, &summary).lines();
        Ok(Self {
            path: path.to_owned(),
            url: None,
            settings,
            id_digest: digests.id_digest,
            text_digest,
            vocabulary,
            card,
            census,
            smallest,
            known,
            by_split_number,
            n_rows,
            n_unlabelled: 0,
            memory_bytes,
            source,
            reading: *reading,
        })
    }

    /// Adds the rows of a dataset without labels to the training split. Their indices follow those of this dataset.
    /// They are not in [`Rows::census`], whose labels and ratings they do not have. Rows whose text is in this dataset
    /// are omitted, because it can be in a split that is held out; their number is returned. Both datasets must be in
    /// memory, and all rows of `other` in its training split.
    pub fn add_unlabelled(&mut self, other: &Self) -> Result<u64> {
        other.check_fits(&self.vocabulary.words, &self.settings.rows, &self.name())?;
        let expected_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        let memory =
            || Error::Memory { path: other.name(), found_bytes: self.reading.memory_bytes, expected_bytes };
        let found = self.n_rows + other.n_rows;
        if u32::try_from(found).is_err() {
            return Err(Error::too_many_rows(&other.name(), found));
        }
        let Some(table) = other.table(Part::Training).filter(|_| expected_bytes <= self.reading.memory_bytes)
        else {
            return Err(memory());
        };
        let shared = shared_rows(&other.path, &self.path)?;
        let is_new = |row: u32| shared.binary_search_by_key(&row, |&(shared, _)| shared).is_err();
        let places = (0..table.n_rows()).filter(|&place| is_new(table.rows()[place]));
        let first_row = self.n_rows as u32;
        match &mut self.source {
            Source::Memory(tables) => {
                Arc::make_mut(&mut tables[Part::Training as usize]).append_after(table, places, first_row);
            }
            Source::Blocks(_) => return Err(memory()),
        }
        let n_shared = shared.len() as u64;
        let is_new = |hash: &u64| shared.binary_search_by_key(hash, |&(_, shared)| shared).is_err();
        self.smallest.merge(other.smallest.all().iter().copied().filter(is_new));
        self.n_unlabelled = table.n_rows() as u64 - n_shared;
        self.memory_bytes = expected_bytes;
        Ok(n_shared)
    }

    /// Sets the URL of the dataset, whose local copy was opened.
    pub fn from_url(self, url: String) -> Self {
        Self { url: Some(url), ..self }
    }

    /// Path of the dataset.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The dataset for messages: its URL, or its path.
    pub fn name(&self) -> PathBuf {
        self.url.as_ref().map_or_else(|| self.path.clone(), PathBuf::from)
    }

    /// The dataset for records: its URL, or its absolute path.
    pub fn place(&self) -> String {
        let absolute = || std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        self.url.clone().unwrap_or_else(|| absolute().to_string_lossy().into_owned())
    }

    /// The settings with which the dataset was made.
    pub fn settings(&self) -> &DatasetSettings {
        &self.settings
    }

    /// The digest of the dataset's rows. A resumed training compares it.
    pub fn id_digest(&self) -> Digest {
        self.id_digest
    }

    /// The sum of the XXH3-128 of each row's `hash`. Datasets of the same texts have the same one, whatever their
    /// vocabulary and labels. Their rows have the same order.
    pub fn text_digest(&self) -> Digest {
        self.text_digest
    }

    /// The dataset's vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The data card: names and values, as `merge --describe` prints them.
    pub fn card(&self) -> &[(&'static str, String)] {
        &self.card
    }

    /// Number of rows of a split, with rows that were added to it.
    pub fn n_rows(&self, part: Part) -> u64 {
        let n_unlabelled = if part == Part::Training { self.n_unlabelled } else { 0 };
        self.census(part).rows + n_unlabelled
    }

    /// Number of rows of the sample, in any split or in none, without rows that were added to it.
    pub fn n_sampled(&self) -> u64 {
        self.by_split_number.iter().flatten().sum()
    }

    /// Number of rows in the file, in any split or in none.
    pub fn n_rows_of_file(&self) -> u64 {
        self.n_rows
    }

    /// The counts of a split, without rows that were added to it.
    pub fn census(&self, part: Part) -> Census {
        self.census[part as usize]
    }

    /// The digest of the texts of a split and of the names of their labels. A model of n-grams that is evaluated on the
    /// same texts has the same one.
    pub fn labelled_digest(&self, part: Part) -> Digest {
        let Census { labels, digests, .. } = self.census(part);
        let names = self.settings.rows.labels.names();
        let rows = names.into_iter().zip(labels.into_iter().zip(digests)).filter(|(_, (rows, _))| *rows > 0);
        of_labelled(&rows.map(|(name, (_, sum))| (name.to_owned(), sum)).collect())
    }

    /// The smallest hashes of the training split.
    pub fn smallest(&self) -> &Smallest {
        &self.smallest
    }

    /// Number of rows of a split that were in `known`.
    pub fn known(&self, part: Part) -> u64 {
        self.known[part as usize]
    }

    /// Number of rows that another division would put into a split, with rows that were added to it.
    pub fn rows_under(&self, division: Division, part: Part) -> u64 {
        let labelled: u64 = self.labels_under(division, part).iter().sum();
        labelled + if part == Part::Training { self.n_unlabelled } else { 0 }
    }

    /// The rows per label of a split under another division.
    fn labels_under(&self, division: Division, part: Part) -> Labels {
        let of_part =
            (0..).zip(&self.by_split_number).filter(|(split, _)| division.part(*split) == Some(part));
        of_part.fold(Labels::default(), |mut sums, (_, labels)| {
            sums.iter_mut().zip(labels).for_each(|(sum, n)| *sum += n);
            sums
        })
    }

    /// Number of rows whose text is in a training split of `training`. Metrics of such rows are too good.
    pub fn n_trained_on(&self, training: &[&Self]) -> Result<u64> {
        let training: Vec<_> = training.iter().map(|rows| (rows.path(), rows.reading.division)).collect();
        training_texts_in(&self.path, &training)
    }

    /// Refuses a split without rows.
    pub fn check_rows(&self, part: Part) -> Result<()> {
        match self.census(part).rows {
            0 => Err(Error::no_rows(&self.name(), part)),
            _ => Ok(()),
        }
    }

    /// Refuses a split without rows, with only one label, or without rows of a named class.
    pub fn check_classes(&self, part: Part) -> Result<()> {
        self.check_labels(self.census(part).labels, part)
    }

    /// [`Rows::check_classes`] for a split under another division.
    pub fn check_classes_under(&self, division: Division, part: Part) -> Result<()> {
        self.check_labels(self.labels_under(division, part), part)
    }

    fn check_labels(&self, labels: Labels, part: Part) -> Result<()> {
        let (path, rows) = (self.name(), labels.iter().sum::<u64>());
        if rows == 0 {
            return Err(Error::no_rows(&path, part));
        }
        if let Some(classes) = self.settings.rows.labels.classes() {
            let names = classes.each().map(|(_, name)| name);
            return match names.zip(labels).find(|(_, rows)| *rows == 0) {
                Some((class, _)) => {
                    let remedy = "check the ratings of the reviews, or make the dataset with other --labels";
                    let found = format!("no rows for {part} have class {class}");
                    Err(Error::rows(&path, &format!("{found}, expected one or more; {remedy}")))
                }
                None => Ok(()),
            };
        }
        let label = match labels {
            [0, ..] => 1,
            [_, 0, ..] => 0,
            _ => return Ok(()),
        };
        let found = format!("all {rows} rows for {part} have label {label}, expected both labels");
        Err(Error::rows(&path, &format!("{found}; check the ratings of the reviews, or add reviews")))
    }

    /// Refuses a dataset with another vocabulary or other text settings. `of`: the model or dataset that defines
    /// them.
    pub fn check_fits(&self, words: &WordList, preparation: &Settings, of: &Path) -> Result<()> {
        let path = self.name();
        if self.vocabulary.words != *words {
            return Err(Error::OtherVocabulary { path, of: of.to_owned() });
        }
        match self.settings.rows.row_difference(preparation) {
            None => Ok(()),
            Some(Difference { setting, ours, theirs }) => {
                let message = format!(
                    "{}: {setting} {ours}, expected {theirs} as in {}; make it again with `sentimill --vocabulary \
                     TRAINING.h5`, which also adopts the settings of TRAINING.h5, the dataset of the training",
                    path.display(),
                    of.display()
                );
                Err(Failed::new(Exit::Settings, message).into())
            }
        }
    }

    /// The rows of a split, in dataset order. `None` if they are not in memory.
    pub fn table(&self, part: Part) -> Option<&Table> {
        match &self.source {
            Source::Memory(tables) => Some(&tables[part as usize]),
            Source::Blocks(_) => None,
        }
    }

    /// How blocks are read for this batch size; the order depends on it. `None` if rows are in memory. A resumed
    /// training compares it.
    pub fn plan(&self, part: Part, batch_rows: usize) -> Result<Option<Plan>> {
        match &self.source {
            Source::Memory(_) => Ok(None),
            Source::Blocks(blocks) => {
                blocks.plan(part, batch_rows, self.reading.memory_bytes, &self.path).map(Some)
            }
        }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }
}

/// Maximum memory of all rows.
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
    let push = |tables: &mut [Table; 3], at, row: &Row, part: Option<Part>, tokens: &[u32]| {
        if let Some(part) = part {
            tables[part as usize].push(at, row, tokens);
        }
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
    // A block of the reader starts where a block of this module starts, and may contain several of them.
    let count = |sizes: &mut Vec<[BlockSize; 3]>, at: u32, _: &Row, part: Option<Part>, tokens: &[u32]| {
        if at.is_multiple_of(block_rows) {
            sizes.push(<[BlockSize; 3]>::default());
        }
        let size = sizes.last_mut().expect("the first row of a block adds a size");
        if let Some(part) = part {
            size[part as usize].count(tokens);
        }
    };
    each_block(reader, reading, known, findings, Vec::new, count, |of_blocks| sizes.extend(of_blocks))?;
    Ok(sizes)
}

/// Verifies the dataset in several threads. `empty` creates a block's result. `add` adds a row to it: the row's
/// index, its split, if it is in one, and its tokens after truncation. `take` receives the results in dataset order.
fn each_block<B: Send>(
    reader: &DatasetReader,
    reading: &Reading,
    known: &Smallest,
    findings: &mut Findings,
    empty: impl Fn() -> B + Sync,
    add: impl Fn(&mut B, u32, &Row, Option<Part>, &[u32]) + Sync,
    mut take: impl FnMut(B),
) -> Result<()> {
    let threads = dataset::threads(READING_THREADS_MAX);
    let each = |(found, block): &mut (Findings, B), at, row: &Row| {
        found.count(row, reading, known);
        add(block, at as u32, row, reading.part_of(row), reading.read_of(row));
    };
    reader.verify_blocks(
        threads,
        || (Findings::default(), empty()),
        each,
        |(of_block, block)| {
            findings.add(of_block);
            take(block);
            Ok(())
        },
    )
}

impl Reading {
    /// The split of a row.
    fn part_of(&self, row: &Row) -> Option<Part> {
        self.division.part_of(row.hash, row.split)
    }

    /// The tokens of a row after truncation.
    pub(crate) fn read_of<'a>(&self, row: &'a Row) -> &'a [u32] {
        match self.tokens_max as usize {
            0 => &row.tokens,
            most => &row.tokens[..row.tokens.len().min(most)],
        }
    }
}
