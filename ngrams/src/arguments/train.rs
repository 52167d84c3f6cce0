//! Arguments of the training of a model, and the flags with which other commands read lines.

use std::num::NonZeroUsize;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use classifiers::Words;
use classifiers::fasttext::Optimizer;
use corpus::arguments::FormatArguments;
use corpus::ledger::Share;
use program::location::Location;
use program::size::parse_memory;
use training::arguments::numbers::{at_least, cost, not_negative, positive, share, whole};
use training::arguments::{CharNgrams, ChoiceFlags, ClassWeight, Rated, Storage};

/// Flags of the training of an n-gram model.
#[derive(Clone, Debug, Args)]
pub struct Train {
    /// Files of lines, folders, patterns, s3:// URLs, a dataset, or -
    ///
    /// The places that sentimill reads, plain or compressed. - is standard input. A dataset, a file of sentimill or merge, is
    /// read by itself; make it with --stopwords none --max-tokens 0.
    #[arg(long, required = true, value_name = "FILE", num_args = 1..)]
    pub input: Vec<String>,
    /// Training folder [default: FILE as .ngrams]
    ///
    /// It receives the model, checkpoints and metrics. The default is the name of the first FILE with .ngrams, in the current
    /// folder. With s3://bucket/folder, finished checkpoints and the model are put there, and nothing is replaced.
    #[arg(long, short, value_name = "FOLDER", value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub out: Option<Location>,
    /// Test lines, or a test dataset
    ///
    /// They have the format of --input and are evaluated once, at the end.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "test_fraction")]
    pub test: Vec<String>,
    /// Test split of --input [default: 0]
    ///
    /// Share of texts that are used for the test only. Texts that are equal after cleaning, which removes digits and
    /// punctuation, are in the same split; it is that of `trainer fit` on a dataset with all words.
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share, hide_default_value = true)]
    pub test_fraction: f64,
    /// Validation split of --input [default: 0]
    ///
    /// Share of texts that are held out for the choice of settings, thresholds and calibrations. It is evaluated at the end
    /// unless there is a test.
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share, hide_default_value = true, hide_short_help = true)]
    pub validation_fraction: f64,
    /// fasttext: test after every epoch [default: at the end only]
    ///
    /// The accuracy of the test texts and of the validation split is then printed for each epoch, before threshold and
    /// calibration. With one of at most five labels per text, all metrics are logged for the report. Do not choose
    /// epochs or other settings by those of the test texts: the test metrics of the chosen model would be too good. Use
    /// the validation split for choices.
    #[arg(long, hide_short_help = true)]
    pub test_every: bool,
    /// Maximum share of bad lines
    ///
    /// A number from 0 to 1. With a greater share no model is trained, and the exit code is 65.
    #[arg(long, value_name = "SHARE", default_value_t = Share::OF_BAD_LINES, hide_short_help = true)]
    pub bad_lines_max: Share,
    /// Maximum share of lines that are not UTF-8
    ///
    /// A number from 0 to 1. With a greater share no model is trained, and the exit code is 65. Lines of the format fasttext
    /// are words of any bytes.
    #[arg(long, value_name = "SHARE", default_value_t = Share::OF_INVALID_UTF8, hide_short_help = true)]
    pub invalid_utf8_max: Share,
    /// The format of lines.
    #[command(flatten)]
    pub format: FormatArguments,
    /// Labels of ratings.
    #[command(flatten)]
    pub rated: Rated,
    /// linear or fasttext [default: linear]
    ///
    /// linear: one weight per n-gram and label, trained with a convex loss; the most accurate choice for sentiment. fasttext: the
    /// mean of embeddings, then a linear layer, as in the fastText program, which can read the model. A flag of fasttext, such
    /// as --dim, selects fasttext.
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true, help_heading = "Model")]
    pub model: Option<ModelName>,
    /// Maximum words per n-gram [default: 3; fasttext: 2]
    #[arg(long, value_name = "N", value_parser = whole::<u8>(1..=NGRAMS_MAX), help_heading = "Model")]
    pub ngrams: Option<u8>,
    /// What a word is: spaces, punctuation, cleaned or cleaned-punctuation
    ///
    /// spaces: bytes between white space, as in the fastText program. punctuation: letters and digits, in lower case; each other
    /// visible character is a word. cleaned: words of letters, as in a dataset. cleaned-punctuation: as in a dataset of --punctuation.
    /// The default is punctuation; with --model fasttext and --format fasttext it is spaces. A dataset requires its own words.
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true, help_heading = "Model")]
    pub words: Option<Words>,
    /// Minimum occurrences [default: 3; fasttext: 1]
    ///
    /// linear: texts that contain an n-gram; rarer n-grams have no weight. fasttext: occurrences of a word; rarer words have no
    /// row of their own.
    #[arg(long, value_name = "N", value_parser = at_least::<u64>(1), hide_short_help = true, help_heading = "Model")]
    pub min_count: Option<u64>,
    /// Maximum number of words in the vocabulary
    ///
    /// Words that arrive when the vocabulary is full are hashed.
    #[arg(long, value_name = "N", value_parser = at_least::<usize>(1), hide_short_help = true, help_heading = "Model")]
    pub words_max: Option<usize>,
    /// Rows for hashed n-grams [default: 2^24; fasttext: 2000000]
    ///
    /// N-grams share these rows. linear: the next power of two; 0 for one exact row per n-gram. fasttext: rows of n-grams of two
    /// and more words.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..=BUCKETS_MAX), help_heading = "Model")]
    pub buckets: Option<u64>,
    /// fasttext: character n-grams, such as 3-6 [default: none]
    #[arg(long, value_name = "MIN-MAX", hide_short_help = true, help_heading = "Model")]
    pub char_ngrams: Option<CharNgrams>,
    /// fasttext: embedding dimension [default: 10]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=DIM_MAX), help_heading = "Model")]
    pub dim: Option<usize>,
    /// Initial weights: model of the same kind
    ///
    /// A model or training folder of `ngrams train`, with the labels of the texts and the --words, --ngrams, --buckets,
    /// --dim, --char-ngrams and --loss of this training. Its vocabulary is extended by new words and n-grams; those
    /// that no text has keep their weights. linear: the difference from its weights is regularized. Not with --weights
    /// tf-idf, --loss hierarchical-softmax, and of fasttext not with --words-max and a --min-count above 1.
    #[arg(
        long,
        value_name = "PATH",
        value_parser = PathBufValueParser::new().try_map(Location::of_folder),
        hide_short_help = true,
        help_heading = "Model"
    )]
    pub init_from: Option<Location>,
    /// fasttext: initial embeddings of words
    ///
    /// Word vectors of `vectors train` or of any format that `vectors` reads, such as .vec, of the dimension that --dim sets.
    /// Words without a vector and n-grams begin with random embeddings.
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with = "init_from",
        value_parser = PathBufValueParser::new().try_map(Location::of_folder),
        hide_short_help = true,
        help_heading = "Model"
    )]
    pub pretrained_vectors: Option<Location>,
    /// linear: nb, tf-idf or none [default: nb]
    ///
    /// The weights of n-grams. nb: an n-gram that a text contains counts as its naive-Bayes log-ratio of the labels (Wang and
    /// Manning 2012). tf-idf: its frequency, weighted by its rarity. none: 1.
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true, help_heading = "Model")]
    pub weights: Option<WeightsName>,
    /// Training objective
    ///
    /// fasttext: softmax, whose probabilities sum to 1; hierarchical-softmax, also accepted as hs, a softmax over a
    /// tree of labels, which is faster for hundreds of labels and more; or bce, an independent
    /// probability per label. The default is softmax. linear: logistic or squared-hinge; the default is logistic.
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true, help_heading = "Model")]
    pub loss: Option<NgramLossName>,
    /// Loss weights of labels [default: 1 each]
    ///
    /// `balanced`, or one number above 0 per label, separated by commas, in the order of --labels, or else of their names.
    /// balanced: the number of texts divided by the number of labels and by the number of texts of the label. It increases
    /// the macro F1 if few texts have a label. A text with several labels has the mean of their weights.
    #[arg(long, value_name = "WEIGHTS", hide_short_help = true, help_heading = "Model")]
    pub class_weight: Option<ClassWeight>,
    /// Threshold and calibration.
    #[command(flatten)]
    pub choice: ChoiceFlags,
    /// Number of epochs [default: 5]
    #[arg(long, alias = "num-epochs", value_name = "N", value_parser = whole::<u32>(1..=EPOCHS_MAX), help_heading = "Optimisation")]
    pub epochs: Option<u32>,
    /// fasttext: learning rate [default: 0.5; adam: 0.005]
    ///
    /// It decreases linearly to 0. Also accepted as --lr and --learning-rate.
    #[arg(long, aliases = ["lr", "learning-rate"], value_name = "RATE", value_parser = positive, help_heading = "Optimisation")]
    pub rate: Option<f64>,
    /// fasttext: sgd, adagrad or adam [default: sgd]
    ///
    /// adam updates only the rows of a text.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        hide_possible_values = true,
        hide_short_help = true,
        help_heading = "Optimisation"
    )]
    pub optimizer: Option<Optimizer>,
    /// linear: inverse of the regularization [default: 1]
    ///
    /// A larger value fits the training texts more closely.
    #[arg(long, value_name = "C", value_parser = cost, help_heading = "Optimisation")]
    pub c: Option<f64>,
    /// linear: L1 regularization in place of L2
    ///
    /// Most weights become 0, and the model is smaller.
    #[arg(long, hide_short_help = true, help_heading = "Optimisation")]
    pub l1: bool,
    /// fasttext: L2 regularization
    ///
    /// With --loss hierarchical-softmax, of the nodes above the labels of a text only.
    #[arg(long, value_name = "RATE", value_parser = not_negative, hide_short_help = true, help_heading = "Optimisation")]
    pub l2: Option<f64>,
    /// fasttext: share of n-grams dropped from each text
    #[arg(long, value_name = "SHARE", value_parser = share, hide_short_help = true, help_heading = "Optimisation")]
    pub dropout: Option<f64>,
    /// fasttext: subsampling threshold of frequent words
    ///
    /// A word whose share of all tokens is above the threshold is dropped from some texts; 1e-4 is usual.
    #[arg(long, value_name = "SHARE", value_parser = share, hide_short_help = true, help_heading = "Optimisation")]
    pub subsample: Option<f64>,
    /// Random seed
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least::<u64>(0), hide_short_help = true, help_heading = "Optimisation")]
    pub seed: u64,
    /// Number of threads [default: one per core]
    #[arg(long, short = 'j', value_name = "N", value_parser = whole::<u16>(1..=1024), help_heading = "Running")]
    pub threads: Option<u16>,
    /// Repeatable training
    ///
    /// The same number of threads gives the same bits. Training is slower.
    #[arg(long, help_heading = "Running")]
    pub deterministic: bool,
    /// Memory for texts and their n-grams
    ///
    /// Texts that need more are kept in an unnamed temporary file, in TMPDIR. If the lists of their n-grams do not fit as
    /// well, fasttext computes them in each epoch, which takes longer. A size such as 512MiB or 4GiB.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_memory, hide_short_help = true, help_heading = "Running")]
    pub memory: usize,
    /// fasttext: seconds between two checkpoints [default: 600]
    ///
    /// --resume continues from the newest one. 0: no checkpoints. A linear training takes seconds and has none.
    #[arg(long, value_name = "SECONDS", value_parser = not_negative, hide_short_help = true, help_heading = "Running")]
    pub checkpoint_every: Option<f64>,
    /// Resume the training in --out
    ///
    /// It continues from its newest checkpoint, or starts again if there is none, as for a linear model. Pass the flags and the
    /// input of the interrupted training again. With --deterministic, the model has the same bits as without the
    /// interruption.
    #[arg(long, help_heading = "Running")]
    pub resume: bool,
    /// Replace an existing training in --out
    ///
    /// Only a training folder written by ngrams is replaced, and only if its files are unchanged.
    #[arg(long, conflicts_with = "resume", help_heading = "Running")]
    pub force: bool,
    /// Print the final summary as JSON on standard output
    #[arg(long, help_heading = "Running")]
    pub json: bool,
    /// Print errors only
    #[arg(long, short, help_heading = "Running")]
    pub quiet: bool,
    /// Storage.
    #[command(flatten)]
    pub storage: Storage,
}

/// Maximum of `--ngrams`.
const NGRAMS_MAX: i64 = 8;
/// Maximum of `--dim`.
const DIM_MAX: i64 = 4096;
/// Maximum of `--epochs`.
const EPOCHS_MAX: i64 = 100_000;
/// Maximum of `--buckets`: a row has an index of 32 bits.
const BUCKETS_MAX: i64 = 1 << 31;

/// `--model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelName {
    /// One weight per n-gram and label.
    Linear,
    /// The mean of embeddings, then a linear layer.
    #[value(name = "fasttext")]
    FastText,
}

impl ModelName {
    /// The name in arguments and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::FastText => "fasttext",
        }
    }
}

/// `--weights`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WeightsName {
    /// Naive-Bayes log-ratios.
    Nb,
    /// Term frequency and inverse document frequency.
    TfIdf,
    /// 1.
    None,
}

/// `--loss` of an n-gram model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NgramLossName {
    /// One label of several.
    Softmax,
    /// One label of several, by a tree of labels.
    #[value(alias = "hs")]
    HierarchicalSoftmax,
    /// Each label by itself.
    Bce,
    /// Logistic regression.
    Logistic,
    /// Support vector machine with a squared hinge.
    SquaredHinge,
}

impl NgramLossName {
    /// The model that has this loss.
    pub fn model(self) -> ModelName {
        match self {
            Self::Softmax | Self::HierarchicalSoftmax | Self::Bce => ModelName::FastText,
            Self::Logistic | Self::SquaredHinge => ModelName::Linear,
        }
    }
}

impl Train {
    /// The model that is trained. A flag that only one model has selects it.
    ///
    /// Errors: the flag that belongs to the other model, with this model.
    pub fn model(&self) -> Result<ModelName, (String, ModelName)> {
        let of_fasttext = self.of(ModelName::FastText);
        let model = self.model.unwrap_or(match of_fasttext {
            Some(_) => ModelName::FastText,
            None => ModelName::Linear,
        });
        let foreign = match model {
            // It has no checkpoints, because its training takes seconds.
            ModelName::Linear => {
                of_fasttext.or_else(|| self.checkpoint_every.map(|_| "--checkpoint-every".to_owned()))
            }
            ModelName::FastText => self.of(ModelName::Linear),
        };
        foreign.map_or(Ok(model), |flag| Err((flag, model)))
    }

    /// The first flag that was passed and that only this model has.
    fn of(&self, model: ModelName) -> Option<String> {
        let flags: &[(&str, bool)] = match model {
            ModelName::FastText => &[
                ("--dim", self.dim.is_some()),
                ("--rate", self.rate.is_some()),
                ("--char-ngrams", self.char_ngrams.is_some()),
                ("--optimizer", self.optimizer.is_some()),
                ("--l2", self.l2.is_some()),
                ("--dropout", self.dropout.is_some()),
                ("--subsample", self.subsample.is_some()),
                ("--pretrained-vectors", self.pretrained_vectors.is_some()),
                ("--test-every", self.test_every),
            ],
            ModelName::Linear => {
                &[("--weights", self.weights.is_some()), ("--c", self.c.is_some()), ("--l1", self.l1)]
            }
        };
        let flag = flags.iter().find(|(_, is_set)| *is_set).map(|(flag, _)| (*flag).to_owned());
        let loss = self.loss.filter(|loss| loss.model() == model).and_then(|loss| loss.to_possible_value());
        flag.or_else(|| loss.map(|loss| format!("--loss {}", loss.get_name())))
    }

    /// Number of threads.
    pub fn n_threads(&self) -> NonZeroUsize {
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.threads.and_then(|threads| NonZeroUsize::new(usize::from(threads))).unwrap_or_else(cores)
    }
}
