//! The result of a training, and its folder: settings, checkpoints and model.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use classifiers::{Dictionary, Names};
use embeddings::folder::{self, CharacterRows, Parts};
use embeddings::skipgram::{SkipGramTraining, Vocabulary};
use embeddings::spelling;
use program::temporary::{self, TemporaryFolder};
use runs::training::{DatasetRecord, clear};
use serde::Serialize;
use serde_json::Value;
use training::out::Existing;
use training::print::print_json;
use training::tell::tell;
use training::texts_out::TextsOut;
use training::{Error, Result};

use super::progress::Speed;
use crate::arguments::Train;

/// Size of a chunk of lines.
pub(super) const CHUNK_BYTES: usize = 1 << 20;
/// What was taken from a stream and is in no checkpoint.
const TAKEN: &str = ".taken";

/// Vectors that were trained.
pub(super) enum Vectors {
    Table(Box<SkipGramTraining>),
    Spelled(Box<spelling::SpellingTraining>),
}

impl Vectors {
    /// Number of tokens trained on, by all processes.
    pub(super) fn n_tokens(&self) -> u64 {
        match self {
            Self::Table(training) => training.n_tokens(),
            Self::Spelled(training) => training.n_tokens(),
        }
    }
}

/// The result of a training.
pub(super) struct Trained {
    pub vectors: Vectors,
    pub vocabulary: Vocabulary,
    pub n_lines: u64,
    pub n_skipped: u64,
    pub n_lost: u64,
    /// Tokens that this process trained on.
    pub n_tokens: u64,
    pub loss: Option<f64>,
    /// The speed of this process.
    pub speed: Speed,
    /// Whether `--resume` continues with more lines, from the checkpoint.
    pub is_open: bool,
}

/// The summary that `--json` prints if there is nothing to do.
#[derive(Debug, Serialize)]
pub(super) struct CompleteSummary {
    /// The path or URL of the training folder.
    training: PathBuf,
    /// The path or URL of the model folder.
    model: PathBuf,
    /// Whether `--resume` found the training complete, so that nothing was computed.
    was_complete: bool,
}

impl CompleteSummary {
    pub(super) fn new(out: &TextsOut, was_complete: bool) -> Self {
        Self { training: out.shown().to_owned(), model: out.shown_model(), was_complete }
    }
}

/// Locks the folder, or claims the prefix in S3. It must be new, empty or, as the flags allow, a training.
pub(super) fn take(arguments: &Train) -> Result<TextsOut> {
    let existing = Existing::of_flags(arguments.resume, arguments.force);
    let s3 = arguments.storage.options();
    TextsOut::take(arguments.out.as_ref(), &arguments.input, "vectors", &s3, existing)
}

/// Whether the training is complete. Errors: the existing training has other settings.
pub(super) fn is_complete(out: &TextsOut, recipe: &Value) -> Result<bool> {
    Ok(out.has_model(recipe)? && !out.has_checkpoint()?)
}

/// Reports a training that is complete.
pub(super) fn finish_again(out: &TextsOut, arguments: &Train) -> Result<()> {
    out.finish_again()?;
    if arguments.json { print_json(&CompleteSummary::new(out, true)) } else { Ok(()) }
}

/// Writes the settings, and deletes the training that is replaced.
pub(super) fn begin(out: &TextsOut, arguments: &Train, recipe: &Value) -> Result<()> {
    clear_replaced(out)?;
    if out.has_checkpoint()? {
        tell("resuming from the checkpoint");
        return Ok(());
    }
    if out.is_resumed() {
        tell("no checkpoint to resume from: starting from the first line");
    }
    write_settings(out, arguments, recipe)
}

/// Writes the settings of a training on parameter servers, which has no checkpoints here.
pub(super) fn begin_served(out: &TextsOut, arguments: &Train, recipe: &Value) -> Result<()> {
    clear_replaced(out)?;
    write_settings(out, arguments, recipe)
}

/// Deletes the training that is replaced, if any.
fn clear_replaced(out: &TextsOut) -> Result<()> {
    out.clear()?;
    if out.is_resumed() { Ok(()) } else { delete_taken(out) }
}

/// Deletes what was taken from a stream.
pub(super) fn delete_taken(out: &TextsOut) -> Result<()> {
    moved(&taken(out), &temporary(out)?.path().join("taken"))
}

fn write_settings(out: &TextsOut, arguments: &Train, recipe: &Value) -> Result<()> {
    out.delete_metrics();
    let dataset = DatasetRecord {
        path: arguments.input.join(" "),
        rows: [0; 3],
        positive: [0; 3],
        classes: Vec::new(),
        card: Vec::new(),
    };
    out.write_settings(dataset, recipe.clone(), 0)
}

/// The state of the newest checkpoint of a training that is resumed, if there is one.
pub(super) fn state(out: &mut TextsOut) -> Result<Option<(PathBuf, BufReader<File>)>> {
    Ok(out.state()?.map(|(path, file)| (path, BufReader::with_capacity(1 << 20, file))))
}

/// Saves a checkpoint.
pub(super) fn save(
    out: &mut TextsOut,
    training: &SkipGramTraining,
    vocabulary: &Vocabulary,
    place: &[u8],
) -> Result<()> {
    out.save(|file| training.save(vocabulary, place, file))
}

/// A folder in the training folder, which is deleted with its content.
fn temporary(out: &TextsOut) -> Result<TemporaryFolder> {
    temporary::folder_in(out.folder()).map_err(|error| Error::io(out.folder(), error.kind().into()))
}

/// Moves a folder, if it exists.
fn moved(folder: &Path, to: &Path) -> Result<()> {
    match fs::rename(folder, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(folder, error)),
        _ => Ok(()),
    }
}

/// Deletes what a process has written that had nothing to train on, so that the command can be repeated.
pub(super) fn forget_untrained(out: &TextsOut) -> Result<()> {
    if out.is_resumed() || out.model().exists() || out.checkpoints().exists() {
        return Ok(());
    }
    delete_taken(out)?;
    Ok(clear(out.folder())?)
}

/// Writes the model.
pub(super) fn write(
    out: &TextsOut,
    vectors: &mut Vectors,
    vocabulary: &Vocabulary,
    recipe: &Value,
) -> Result<()> {
    match vectors {
        Vectors::Table(training) => write_model(out, training, vocabulary, recipe),
        Vectors::Spelled(training) => write_spelled(out, training, vocabulary, recipe),
    }
}

/// Writes the model, and deletes the checkpoints.
pub(super) fn finish(
    out: &TextsOut,
    vectors: &mut Vectors,
    vocabulary: &Vocabulary,
    recipe: &Value,
) -> Result<()> {
    write(out, vectors, vocabulary, recipe)?;
    // A process that is killed while it deletes them leaves no damaged ones.
    let older = temporary(out)?;
    moved(out.checkpoints(), &older.path().join("checkpoints"))?;
    moved(&taken(out), &older.path().join("taken"))?;
    drop(older);
    out.model_saved()
}

/// The folder of what was taken from a stream and is in no checkpoint.
pub(super) fn taken(out: &TextsOut) -> PathBuf {
    out.folder().join(TAKEN)
}

/// The words that occur often enough, the most frequent first, with the numbers that they have in the training.
fn ranked(vocabulary: &Vocabulary, min_count: u64) -> (Dictionary, Vec<u32>) {
    let (ranked, numbers) = vocabulary.ranked(min_count);
    let mut rows = vec![0; ranked.n_words()];
    for (old, new) in (0..).zip(&numbers) {
        if let Some(new) = new {
            rows[*new as usize] = old;
        }
    }
    let words: Names = ranked.iter().map(|(word, _)| word).collect();
    (Dictionary::new(words, ranked.counts(), Names::default(), Vec::new()), rows)
}

/// Writes the words that occur often enough, in place of an older model.
pub(super) fn write_model(
    out: &TextsOut,
    training: &SkipGramTraining,
    vocabulary: &Vocabulary,
    recipe: &Value,
) -> Result<()> {
    let (words, rows) = ranked(vocabulary, training.settings().min_count);
    let vectors = |word: usize, values: &mut [f32]| {
        let mut characters = Vec::new();
        training.characters_of(words.name(word as u32), &mut characters);
        training.read_vector(rows[word], &characters, values);
    };
    let of_rows = |row: usize, values: &mut [f32]| match row.checked_sub(rows.len()) {
        None => training.input().read(rows[row], 0, values),
        Some(bucket) => training.read_bucket(bucket as u32, values),
    };
    let parts = Parts {
        words: &words,
        dim: training.settings().dim,
        vectors: &vectors,
        outputs: Some(&|word, values: &mut [f32]| training.output().read(rows[word], 0, values)),
        characters: training.settings().characters.map(|of| CharacterRows {
            min: of.min as usize,
            max: of.max as usize,
            buckets: of.buckets as usize,
            rows: &of_rows,
        }),
        generator: None,
        settings: recipe.clone(),
    };
    Ok(folder::replace(&out.model(), &parts)?)
}

/// Writes the words that occur often enough, their vectors and the generator of these, in place of an older model.
pub(super) fn write_spelled(
    out: &TextsOut,
    training: &mut spelling::SpellingTraining,
    vocabulary: &Vocabulary,
    recipe: &Value,
) -> Result<()> {
    let (words, rows) = ranked(vocabulary, training.settings().min_count);
    let (vectors, outputs, dim) = (training.vectors(&rows), training.outputs(&rows), training.settings().dim);
    let parts = Parts {
        words: &words,
        dim,
        vectors: &|word, values: &mut [f32]| values.copy_from_slice(&vectors[word * dim..][..dim]),
        outputs: Some(&|word, values: &mut [f32]| values.copy_from_slice(&outputs[word * dim..][..dim])),
        characters: None,
        generator: Some(&training.generator()),
        settings: recipe.clone(),
    };
    Ok(folder::replace(&out.model(), &parts)?)
}
