//! Names, types and sizes of all parts of a file. No other crate uses the name of a dataset or an attribute.

/// Version of the formats of shard and dataset. A reader refuses any other version.
pub const SCHEMA_VERSION: u32 = 1;

/// The value of the attribute [`FORMAT`] of a shard.
pub(crate) const SHARD: &str = "sentimill shard";
/// The value of the attribute [`FORMAT`] of a dataset, and of its padded copy.
pub(crate) const DATASET: &str = "sentimill dataset";

// Columns of rows, in shards and in datasets.
pub(crate) const TOKENS: &str = "tokens";
pub(crate) const OFFSETS: &str = "offsets";
pub(crate) const LABEL: &str = "label";
pub(crate) const VOTES: &str = "votes";
pub(crate) const HASH: &str = "hash";
pub(crate) const SPLIT: &str = "split";

// Columns of words, in a group: a shard's dictionary or a dataset's vocabulary. Their offsets are
// [`OFFSETS`].
pub(crate) const WORD_BYTES: &str = "bytes";
pub(crate) const COUNT: &str = "count";

/// The rows of a padded dataset.
pub(crate) const ROWS: &str = "rows";

/// The table of digests.
pub(crate) const DIGESTS: &str = "digests";

// Attributes, in the order of writing.
pub(crate) const FORMAT: &str = "format";
pub(crate) const SCHEMA: &str = "schema_version";
pub(crate) const CLEANING: &str = "cleaning_version";
pub(crate) const UNICODE: &str = "unicode_version";
pub(crate) const STOP_WORDS: &str = "stop_words";
pub(crate) const MAX_TOKENS: &str = "max_tokens";
pub(crate) const KEEP: &str = "keep";
pub(crate) const POSITIVE_FROM: &str = "positive_from";
/// In place of [`POSITIVE_FROM`], for named classes.
pub(crate) const LABELS: &str = "labels";
/// Only if the rows are a sample.
pub(crate) const SAMPLE: &str = "sample";
pub(crate) const VOCABULARY_SIZE: &str = "vocabulary_size";
pub(crate) const VOCABULARY_OF: &str = "vocabulary_of";
pub(crate) const WITHOUT: &str = "without";
pub(crate) const ROW_DIGEST: &str = "row_digest";
pub(crate) const ID_DIGEST: &str = "id_digest";
pub(crate) const VOCABULARY_DIGEST: &str = "vocabulary_digest";

/// All attributes of a shard. One with named classes has [`LABELS`] in place of [`POSITIVE_FROM`], a sample has
/// [`SAMPLE`] in addition.
pub(crate) const SHARD_ATTRIBUTES: [&str; 11] = [
    FORMAT,
    SCHEMA,
    CLEANING,
    UNICODE,
    STOP_WORDS,
    MAX_TOKENS,
    KEEP,
    POSITIVE_FROM,
    ROW_DIGEST,
    ID_DIGEST,
    VOCABULARY_DIGEST,
];
/// All attributes of a dataset. One with named classes has [`LABELS`] in place of [`POSITIVE_FROM`], a sample has
/// [`SAMPLE`] in addition.
pub(crate) const DATASET_ATTRIBUTES: [&str; 14] = [
    FORMAT,
    SCHEMA,
    CLEANING,
    UNICODE,
    STOP_WORDS,
    MAX_TOKENS,
    KEEP,
    POSITIVE_FROM,
    VOCABULARY_SIZE,
    VOCABULARY_OF,
    WITHOUT,
    ROW_DIGEST,
    ID_DIGEST,
    VOCABULARY_DIGEST,
];

/// The declared deflate level. Chunks are compressed by this crate, not by the library.
pub(crate) const DEFLATE_LEVEL: u8 = 1;

/// Number of rows per chunk of each column, by the last part of its name. A shorter column is one chunk.
/// docs/experiments.md, "Chunks of a dataset", has the measurements. Smaller chunks make files larger, and larger chunks make reading a
/// single row slower. Neither has a considerable advantage.
pub const CHUNK_ROWS: [(&str, usize); 8] = [
    (TOKENS, 64 << 10),
    (OFFSETS, 32 << 10),
    (LABEL, 64 << 10),
    (VOTES, 16 << 10),
    (HASH, 32 << 10),
    (SPLIT, 64 << 10),
    (WORD_BYTES, 256 << 10),
    (COUNT, 32 << 10),
];

/// Number of ids per chunk of padded rows. A chunk holds as many whole rows as fit, at least one: half a
/// megabyte for ids of 16 bits.
pub const PADDED_CHUNK_IDS: usize = 256 << 10;

/// Number of rows per chunk of this column, whose rows have `width` elements.
pub(crate) fn chunk_rows(name: &str, width: usize) -> usize {
    if name == ROWS {
        return (PADDED_CHUNK_IDS / width).max(1);
    }
    let last = name.rsplit('/').next().unwrap_or(name);
    let listed = CHUNK_ROWS.iter().find(|(column, _)| *column == last);
    listed.expect("every column of every format is in the table").1
}
