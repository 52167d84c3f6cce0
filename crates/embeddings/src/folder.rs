//! The folder of a model of word vectors.
//!
//! ```text
//! model/
//!   config.json   family, settings of the training, sizes, and the digests of the next files
//!   words.txt     the words in order of their numbers, one per line, each with its count; all 0 if unknown
//!   vectors.npy   f32 [V, D]: the vectors of words
//!   outputs.npy   f32 [V, D], optional: the output vectors of a training by negative sampling
//!   characters.txt, generator.safetensors
//!                 optional: the characters and the weights of a generator, as in [`crate::generator`]
//!   ngrams.npy    f32 [V + B, D], only with character n-grams: the own rows of words, then the rows of buckets
//!   SHA256SUMS    digests of all files, for `sha256sum --check`
//! ```
//!
//! It is written as a [`durable::NewFolder`] and verified by [`durable::sums`]. Arrays are those of [`durable::npy`].

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use crate::spelling::Generator;
use classifiers::files::folder::parse_document;
use classifiers::files::{family, words_file};
use classifiers::{Dictionary, Names};
use durable::sums::{Sums, verified};
use durable::{NewFolder, Output, REMEDY, Summary};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::array;
use crate::embedding::{CharacterNgrams, Embedding};
use crate::error::Result;
use crate::generator;

/// Incremented if older programs would misread newer folders.
const FORMAT_VERSION: u32 = 1;
/// The family in `config.json`.
pub const FAMILY: &str = "word-vectors";
/// The configuration.
pub(crate) const CONFIG: &str = "config.json";
const WORDS: &str = "words.txt";
const VECTORS: &str = "vectors.npy";
const OUTPUTS: &str = "outputs.npy";
const NGRAMS: &str = "ngrams.npy";
const CONFIG_BYTES_MAX: u64 = 16 << 20;
/// Longer vectors do not occur: 4 MiB per word.
pub(crate) const DIM_MAX: usize = 1 << 20;
/// Characters of an n-gram; the limit of fastText's files.
pub(crate) const CHARACTERS_MAX: usize = 255;
/// Larger sizes of a generator do not occur.
const GENERATOR_MAX: usize = 1 << 16;
const HIDDEN_MULTIPLE: usize = crate::spelling::SpellingSettings::HIDDEN_MULTIPLE;

/// Writes the row with this number into a slice of `D` floats.
pub type WriteRow<'a> = &'a (dyn Fn(usize, &mut [f32]) + Sync);

/// What is written. Rows come from functions, so that tables which threads share need not be copied.
pub struct Parts<'a> {
    /// The words in order of their numbers, with their counts. Labels are not written.
    pub words: &'a Dictionary,
    /// Dimension.
    pub dim: usize,
    /// `[V, D]`: the vectors of words.
    pub vectors: WriteRow<'a>,
    /// `[V, D]`: the output vectors of words.
    pub outputs: Option<WriteRow<'a>>,
    /// Character n-grams.
    pub characters: Option<CharacterRows<'a>>,
    /// The generator of the vectors.
    pub generator: Option<&'a Generator>,
    /// Settings of the training.
    pub settings: Value,
}

/// The rows of words and of character n-grams.
#[derive(Clone, Copy)]
pub struct CharacterRows<'a> {
    /// Characters of the shortest n-gram.
    pub min: usize,
    /// Characters of the longest n-gram.
    pub max: usize,
    /// Number of buckets.
    pub buckets: usize,
    /// `[V + B, D]`: the own rows of words, then the rows of buckets.
    pub rows: WriteRow<'a>,
}

/// The content of `config.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format_version: u32,
    /// The version of the program that wrote the model.
    sentimill: String,
    family: String,
    /// Settings of the training.
    settings: Value,
    /// Number of words.
    words: usize,
    dim: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    characters: Option<NgramSizes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generator: Option<GeneratorSizes>,
    files: BTreeMap<String, Summary>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NgramSizes {
    min: usize,
    max: usize,
    buckets: usize,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GeneratorSizes {
    char_dim: usize,
    hidden: usize,
}

/// Whether a folder has word vectors, by the family in its `config.json`.
pub fn is_folder(folder: &Path) -> bool {
    family(folder).is_some_and(|family| family == FAMILY)
}

/// Writes the folder of a model. An existing path is refused. On return, the folder is durable.
///
/// # Errors
/// If a value is not finite, a word contains a line break, or a file cannot be written.
pub fn write(folder: &Path, parts: &Parts<'_>) -> Result<()> {
    finish(NewFolder::begin(folder)?, folder, parts)
}

/// Writes the folder of a model in place of the older one, if there is one. It stays until the new one is complete.
///
/// # Errors
/// As [`write()`].
pub fn replace(folder: &Path, parts: &Parts<'_>) -> Result<()> {
    finish(NewFolder::replacing(folder)?, folder, parts)
}

fn finish(mut new: NewFolder, folder: &Path, parts: &Parts<'_>) -> Result<()> {
    check_words(&folder.join(WORDS), parts.words)?;
    let n_words = parts.words.n_words();
    new.put(WORDS, |out| words_file::write(parts.words, out))?;
    let with_characters = parts.characters.map(|characters| (n_words + characters.buckets, characters.rows));
    let arrays = [
        (VECTORS, Some((n_words, parts.vectors))),
        (OUTPUTS, parts.outputs.map(|outputs| (n_words, outputs))),
        (NGRAMS, with_characters),
    ];
    for (name, array) in arrays {
        if let Some((n_rows, rows)) = array {
            put_checked(&mut new, folder, name, |out| array::write(out, [n_rows, parts.dim], rows))?;
        }
    }
    if let Some(generator) = parts.generator {
        new.put(generator::CHARACTERS, |out| generator::write_characters(out, generator.characters()))?;
        put_checked(&mut new, folder, generator::WEIGHTS, |out| generator::write(out, generator.weights()))?;
    }
    let document = Document {
        format_version: FORMAT_VERSION,
        sentimill: env!("CARGO_PKG_VERSION").to_owned(),
        family: FAMILY.to_owned(),
        settings: parts.settings.clone(),
        words: n_words,
        dim: parts.dim,
        characters: parts.characters.map(|CharacterRows { min, max, buckets, .. }| NgramSizes {
            min,
            max,
            buckets,
        }),
        generator: parts.generator.map(|generator| {
            let &crate::spelling::Sizes { char_dim, hidden, .. } = generator.weights().sizes();
            GeneratorSizes { char_dim, hidden }
        }),
        files: new.files().clone(),
    };
    new.put(CONFIG, |out| {
        serde_json::to_writer_pretty(&mut *out, &document)?;
        out.write_all(b"\n")
    })?;
    Ok(new.finish()?)
}

/// Writes an embedding as a folder.
///
/// # Errors
/// As [`write()`].
pub fn write_embedding(
    folder: &Path,
    embedding: &Embedding,
    outputs: Option<&[f32]>,
    settings: Value,
) -> Result<()> {
    let Embedding { words, dim, vectors, characters, generator } = embedding;
    let row_of =
        |values: &[f32], row: usize, to: &mut [f32]| to.copy_from_slice(&values[row * dim..][..*dim]);
    let outputs = outputs.map(|outputs| move |row: usize, to: &mut [f32]| row_of(outputs, row, to));
    let rows = characters.as_ref().map(|characters| {
        move |row: usize, to: &mut [f32]| match row.checked_sub(words.n_words()) {
            Some(bucket) => row_of(&characters.rows, bucket, to),
            None => row_of(&characters.own, row, to),
        }
    });
    let sizes = characters.as_ref().map(|found| (found.min, found.max, found.buckets));
    let characters =
        sizes.zip(rows.as_ref()).map(|((min, max, buckets), rows)| CharacterRows { min, max, buckets, rows });
    let parts = Parts {
        words,
        dim: *dim,
        vectors: &|row, to| row_of(vectors, row, to),
        outputs: outputs.as_ref().map(|outputs| outputs as WriteRow<'_>),
        characters,
        generator: generator.as_ref(),
        settings,
    };
    write(folder, &parts)
}

/// Reads the vectors of a folder, after verifying the digests of its files.
pub fn read(folder: &Path) -> Result<Embedding> {
    Files::open(folder)?.embedding()
}

/// Reads the vectors and output vectors `[V, D]` of a folder.
pub fn read_with_outputs(folder: &Path) -> Result<(Embedding, Option<Vec<f32>>)> {
    let files = Files::open(folder)?;
    let embedding = files.embedding()?;
    let outputs = match files.document.files.contains_key(OUTPUTS) {
        true => Some(files.array(OUTPUTS, embedding.n_words())?),
        false => None,
    };
    Ok((embedding, outputs))
}

/// Reads the settings of the training.
pub fn settings(folder: &Path) -> Result<Value> {
    Ok(Files::open(folder)?.document.settings)
}

/// Writes a file of values. `write` returns the first value that a reader would refuse.
fn put_checked(
    new: &mut NewFolder,
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut Output<'_>) -> io::Result<Option<f32>>,
) -> Result<()> {
    let mut bad = None;
    new.put(name, |out| {
        bad = write(out)?;
        Ok(())
    })?;
    match bad {
        None => Ok(()),
        Some(value) => Err(durable::Error::Unstorable {
            path: folder.join(name),
            field: "a value",
            found: value.to_string(),
            allowed: format!("finite values of a magnitude below {:e}", array::VALUE_LIMIT),
            remedy: "train with a lower learning rate",
        }
        .into()),
    }
}

fn check_words(path: &Path, words: &Dictionary) -> Result<()> {
    match words.words().iter().find(|word| word.is_empty() || word.contains(&b'\n')) {
        None => Ok(()),
        Some(word) => Err(durable::Error::Unstorable {
            path: path.to_owned(),
            field: "a word",
            found: format!("{:?}", String::from_utf8_lossy(word)),
            allowed: "words of at least one byte without a line break".to_owned(),
            remedy: "remove the word",
        }
        .into()),
    }
}

/// The files of a folder, whose arrays are not read yet.
struct Files<'a> {
    folder: &'a Path,
    sums: Sums,
    document: Document,
}

impl<'a> Files<'a> {
    fn open(folder: &'a Path) -> Result<Self> {
        let sums = Sums::read(folder)?;
        let json = sums.content(CONFIG, CONFIG_BYTES_MAX)?;
        let document: Document = parse_document(&folder.join(CONFIG), &json, (FAMILY, FORMAT_VERSION))?;
        let files = Self { folder, sums, document };
        files.check_sizes()?;
        Ok(files)
    }

    fn embedding(&self) -> Result<Embedding> {
        let Document { words: n_words, dim, characters, .. } = self.document;
        let path = self.folder.join(WORDS);
        let (words, counts) = words_file::read(&path, self.summary(WORDS)?)?;
        if words.len() != n_words {
            let found = words.len();
            return Err(
                durable::Error::unexpected(&path, "the number of words", found, n_words, REMEDY).into()
            );
        }
        let vectors = self.array(VECTORS, n_words)?;
        let characters = match characters {
            None => None,
            Some(NgramSizes { min, max, buckets }) => {
                let mut own = self.array(NGRAMS, n_words + buckets)?;
                let rows = own.split_off(n_words * dim);
                Some(CharacterNgrams { min, max, buckets, rows, own })
            }
        };
        let generator = self.generator()?;
        let words = Dictionary::new(words, counts, Names::default(), Vec::new());
        Ok(Embedding { words, dim, vectors, characters, generator })
    }

    fn generator(&self) -> Result<Option<Generator>> {
        let Document { dim, generator: Some(GeneratorSizes { char_dim, hidden }), .. } = self.document else {
            return Ok(None);
        };
        let list = self.folder.join(generator::CHARACTERS);
        let bytes = self.sums.content(generator::CHARACTERS, generator::CHARACTERS_BYTES_MAX)?;
        let characters = generator::parse_characters(&list, &bytes)?;
        let sizes = crate::spelling::Sizes { ids: characters.n_ids(), char_dim, hidden, dim };
        let path = self.folder.join(generator::WEIGHTS);
        let summary = self.summary(generator::WEIGHTS)?;
        let weights = verified(&path, summary, || generator::read(&path, sizes))?;
        Ok(Some(Generator::new(characters, weights)))
    }

    /// An array of this number of rows, while another thread verifies its digest.
    fn array(&self, name: &str, n_rows: usize) -> Result<Vec<f32>> {
        let path = self.folder.join(name);
        let shape = [n_rows, self.document.dim];
        Ok(verified(&path, self.summary(name)?, || array::read_of_shape(&path, shape, REMEDY))?)
    }

    fn summary(&self, name: &str) -> Result<&Summary> {
        let summary = self.document.files.get(name).ok_or_else(|| self.sums.missing(name))?;
        self.sums.check(name, summary)?;
        Ok(summary)
    }

    fn check_sizes(&self) -> Result<()> {
        let Document { words, dim, characters, generator, .. } = self.document;
        let GeneratorSizes { char_dim, hidden } =
            generator.unwrap_or(GeneratorSizes { char_dim: 1, hidden: HIDDEN_MULTIPLE });
        let NgramSizes { min, max, buckets } =
            characters.unwrap_or(NgramSizes { min: 1, max: 1, buckets: 1 });
        let limits = [
            ("words", words, 1, u32::MAX as usize - 2),
            ("dim", dim, 1, DIM_MAX),
            ("characters.max", max, 1, CHARACTERS_MAX),
            ("characters.min", min, 0, max),
            ("generator.char_dim", char_dim, 1, GENERATOR_MAX),
            ("generator.hidden", hidden, 1, GENERATOR_MAX),
            ("characters.buckets", buckets, 1, (u32::MAX as usize - 1).saturating_sub(words)),
        ];
        if let Some(GeneratorSizes { hidden, .. }) = generator
            && !hidden.is_multiple_of(HIDDEN_MULTIPLE)
        {
            let expected = format!("a multiple of {HIDDEN_MULTIPLE}");
            let path = self.folder.join(CONFIG);
            return Err(
                durable::Error::unexpected(&path, "generator.hidden", hidden, expected, REMEDY).into()
            );
        }
        match limits.into_iter().find(|&(_, found, least, most)| !(least..=most).contains(&found)) {
            None => Ok(()),
            Some((field, found, least, most)) => {
                let path = self.folder.join(CONFIG);
                let expected = format!("{least} to {most}");
                Err(durable::Error::unexpected(&path, field, found, expected, REMEDY).into())
            }
        }
    }
}
