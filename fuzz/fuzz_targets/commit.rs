//! Commit records: bytes are accepted exactly if they have the shape of a record, and are written as they were read.
#![no_main]

use dataset::commit::Commit;
use libfuzzer_sys::fuzz_target;

mod shape;

use shape::{REDUCER_COUNTS, SETTINGS, Shape};

const COMMIT: Shape = Shape::Object(&[
    ("schema_version", Shape::U32),
    ("run", Shape::Text),
    ("partition", Shape::U32),
    ("partitions", Shape::U32),
    ("object", Shape::Text),
    ("bytes", Shape::U64),
    ("sha256", Shape::Text),
    ("etag", Shape::OrNull(&Shape::Text)),
    ("host", Shape::Text),
    ("attempt", Shape::Text),
    ("job", Shape::OrNull(&Shape::Text)),
    ("committed_unix_s", Shape::U64),
    ("counts", REDUCER_COUNTS),
    ("kept_words", Shape::U64),
    ("distinct_words", Shape::U64),
    ("row_digest", Shape::Digest),
    ("settings", SETTINGS),
]);

fuzz_target!(|data: &[u8]| shape::check::<Commit>(data, &COMMIT));
