//! The names, types and sizes of everything in a file. No other crate names a dataset or an attribute.

/// The version of the formats of shard and dataset; a reader refuses any other.
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

/// The rows of a padded dataset.
pub(crate) const ROWS: &str = "rows";

/// The table of digests.
pub(crate) const DIGESTS: &str = "digests";

// Attributes, in the order in which they are written.
pub(crate) const FORMAT: &str = "format";
pub(crate) const SCHEMA: &str = "schema_version";
pub(crate) const CLEANING: &str = "cleaning_version";
pub(crate) const UNICODE: &str = "unicode_version";
pub(crate) const STOP_WORDS: &str = "stop_words";
pub(crate) const MAX_TOKENS: &str = "max_tokens";
pub(crate) const KEEP: &str = "keep";
pub(crate) const POSITIVE_FROM: &str = "positive_from";
pub(crate) const VOCABULARY_SIZE: &str = "vocabulary_size";
pub(crate) const VOCABULARY_OF: &str = "vocabulary_of";
pub(crate) const WITHOUT: &str = "without";
pub(crate) const ROW_DIGEST: &str = "row_digest";
pub(crate) const ID_DIGEST: &str = "id_digest";
pub(crate) const VOCABULARY_DIGEST: &str = "vocabulary_digest";

/// The level of deflate. Ids are close to random: level 6 makes a dataset of IMDB 1.8 % smaller, and writing it takes
/// a quarter longer.
pub(crate) const DEFLATE_LEVEL: u8 = 1;

/// Rows or elements in a chunk of a column; a shorter column is one chunk of its own length. BENCHMARKS.md has the
/// measurement: with smaller chunks files grow, with larger ones a single row takes longer to read, and both gain
/// little.
pub(crate) fn chunk_rows(name: &str, width: usize) -> usize {
    match name {
        VOTES => 16 << 10,
        // As many padded rows as come near half a megabyte of 16-bit ids.
        ROWS => ((256 << 10) / width).max(1),
        LABEL | SPLIT | TOKENS => 64 << 10,
        _ if name.ends_with("bytes") => 256 << 10,
        _ => 32 << 10,
    }
}
