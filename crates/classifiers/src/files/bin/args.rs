//! The settings of a model: the block of arguments of the program.

use std::io::{self, BufRead, Write};

use crate::Features;
use durable::{Result, Source};

/// Longer rows do not occur: 4 KiB per word.
const DIM_MAX: u32 = 1 << 20;
/// Bounds the n-grams of a text: at most this number starts at each token.
const NGRAMS_MAX: u32 = 255;

/// The kind of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Word vectors by continuous bag of words.
    Cbow,
    /// Word vectors by skip-gram.
    SkipGram,
    /// A classifier.
    Supervised,
}

impl Kind {
    /// Whether the output matrix has a row per word, in place of one per label.
    pub(super) fn is_of_words(self) -> bool {
        self != Self::Supervised
    }

    pub(super) fn number(self) -> i32 {
        match self {
            Self::Cbow => 1,
            Self::SkipGram => 2,
            Self::Supervised => 3,
        }
    }
}

/// The kinds that a caller accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Supervised,
    WordVectors,
}

/// The loss of a model, which determines how outputs become probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinLoss {
    /// A Huffman tree of labels, with a logistic function per node.
    HierarchicalSoftmax,
    /// A logistic function per label, trained with sampled negatives.
    NegativeSampling,
    /// Softmax over all labels.
    Softmax,
    /// A logistic function per label.
    OneVersusAll,
}

/// The settings of a model. Those that only affect training are stored as they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Args {
    /// The kind of the model.
    pub kind: Kind,
    /// Embedding dimension.
    pub dim: usize,
    /// Window; only of word vectors.
    pub window: i32,
    /// Number of epochs.
    pub epochs: i32,
    /// Minimum count of a word.
    pub min_count: i32,
    /// Sampled negatives.
    pub negatives: i32,
    /// Longest word n-gram.
    pub word_ngrams: usize,
    /// The loss.
    pub loss: BinLoss,
    /// Number of buckets for word n-grams and character n-grams.
    pub n_buckets: usize,
    /// Characters of the shortest character n-gram.
    pub shortest: usize,
    /// Characters of the longest character n-gram; 0 without character n-grams.
    pub longest: usize,
    /// Tokens between two changes of the learning rate.
    pub update_rate: i32,
    /// Sampling threshold; only of word vectors.
    pub threshold: f64,
}

impl Default for Args {
    /// The program's defaults of a supervised model. Except for the dimension, they do not affect answers.
    fn default() -> Self {
        Self {
            kind: Kind::Supervised,
            dim: 100,
            window: 5,
            epochs: 5,
            min_count: 1,
            negatives: 5,
            word_ngrams: 1,
            loss: BinLoss::Softmax,
            n_buckets: 0,
            shortest: 0,
            longest: 0,
            update_rate: 100,
            threshold: 1e-4,
        }
    }
}

impl Args {
    pub(super) fn parse(source: &mut Source<'_, impl BufRead>, wanted: Wanted) -> Result<Self> {
        let dim = source.size_i32("the dimension", DIM_MAX)?;
        if dim == 0 {
            return Err(source.unexpected("the dimension", 0, format_args!("1 to {DIM_MAX}")));
        }
        let window = source.i32("the window")?;
        let epochs = source.i32("the number of epochs")?;
        let min_count = source.i32("the minimum count")?;
        let negatives = source.i32("the number of negatives")?;
        let word_ngrams = source.size_i32("the length of word n-grams", NGRAMS_MAX)?;
        let loss = match source.i32("the loss")? {
            1 => BinLoss::HierarchicalSoftmax,
            2 => BinLoss::NegativeSampling,
            3 => BinLoss::Softmax,
            4 => BinLoss::OneVersusAll,
            other => return Err(source.unexpected("the loss", other, "1 to 4")),
        };
        let kind = parse_kind(source, wanted)?;
        let n_buckets = source.size_i32("the number of buckets", i32::MAX as u32)?;
        let shortest = source.size_i32("the length of the shortest character n-gram", NGRAMS_MAX)?;
        let longest = source.size_i32("the length of the longest character n-gram", NGRAMS_MAX)?;
        let update_rate = source.i32("the update rate")?;
        let threshold = source.f64("the sampling threshold")?;
        if n_buckets == 0 && (word_ngrams > 1 || longest > 0) {
            return Err(source.unexpected(
                "the number of buckets",
                0,
                "1 or more, because the model has n-grams",
            ));
        }
        Ok(Self {
            kind,
            dim,
            window,
            epochs,
            min_count,
            negatives,
            word_ngrams,
            loss,
            n_buckets,
            shortest,
            longest,
            update_rate,
            threshold,
        })
    }

    /// Which words and n-grams of a line have a row.
    pub fn features(&self) -> Features {
        Features {
            ngrams: self.word_ngrams as u32,
            buckets: self.n_buckets as u32,
            characters_min: self.shortest as u32,
            characters_max: self.longest as u32,
            hashes_unknown: false,
        }
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let loss = match self.loss {
            BinLoss::HierarchicalSoftmax => 1,
            BinLoss::NegativeSampling => 2,
            BinLoss::Softmax => 3,
            BinLoss::OneVersusAll => 4,
        };
        let size =
            |size: usize| i32::try_from(size).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
        let fields = [
            size(self.dim)?,
            self.window,
            self.epochs,
            self.min_count,
            self.negatives,
            size(self.word_ngrams)?,
            loss,
            self.kind.number(),
            size(self.n_buckets)?,
            size(self.shortest)?,
            size(self.longest)?,
            self.update_rate,
        ];
        for field in fields {
            out.write_all(&field.to_le_bytes())?;
        }
        out.write_all(&self.threshold.to_le_bytes())
    }
}

fn parse_kind(source: &mut Source<'_, impl BufRead>, wanted: Wanted) -> Result<Kind> {
    let number = source.i32("the kind of model")?;
    let (kind, found) = match number {
        1 => (Some(Kind::Cbow), "1, word vectors by CBOW".to_owned()),
        2 => (Some(Kind::SkipGram), "2, word vectors by skip-gram".to_owned()),
        3 => (Some(Kind::Supervised), "3, a supervised model".to_owned()),
        other => (None, other.to_string()),
    };
    let is_wanted = |kind: &Kind| kind.is_of_words() == (wanted == Wanted::WordVectors);
    let expected = match wanted {
        Wanted::Supervised => "3, a supervised model",
        Wanted::WordVectors => "1 or 2, word vectors",
    };
    kind.filter(is_wanted).ok_or_else(|| source.unexpected("the kind of model", found, expected))
}
