//! Dataset manifests with the run's manifest inside, and run manifests alone: bytes are accepted exactly if they have
//! the shape of the record, and are written as they were read.
#![no_main]

use dataset::manifest::{DatasetManifest, Seal};
use libfuzzer_sys::fuzz_target;

mod shape;

use shape::{REDUCER_COUNTS, SETTINGS, Shape};

const MANIFEST: Shape = Shape::Object(&[
    ("schema_version", Shape::U32),
    ("seal", SEAL),
    ("settings", DATASET_SETTINGS),
    ("padded", Shape::OrNull(&Shape::U64)),
    ("bytes", Shape::U64),
    ("sha256", Shape::Text),
    ("padded_sha256", Shape::OrNull(&Shape::Text)),
    ("rows", Shape::U64),
    ("left_out", Shape::U64),
    (
        "digests",
        Shape::Object(&[
            ("row_digest", Shape::Digest),
            ("id_digest", Shape::Digest),
            ("vocabulary_digest", Shape::Digest),
        ]),
    ),
]);

const SEAL: Shape = Shape::Object(&[
    ("schema_version", Shape::U32),
    ("run", Shape::Text),
    ("shards", Shape::List(&SHARD)),
    ("row_digest", Shape::Digest),
    ("ledger", Shape::Object(&[("mapper", Shape::OrNull(&MAPPER_COUNTS)), ("reducer", REDUCER_COUNTS)])),
    ("settings", SETTINGS),
]);

const SHARD: Shape = Shape::Object(&[
    ("object", Shape::Text),
    ("bytes", Shape::U64),
    ("sha256", Shape::Text),
    ("host", Shape::Text),
    ("attempt", Shape::Text),
    ("committed_unix_s", Shape::U64),
    ("rows", Shape::U64),
    ("row_digest", Shape::Digest),
]);

const MAPPER_COUNTS: Shape = Shape::Object(&[
    ("lines", Shape::U64),
    ("blank", Shape::U64),
    ("line_too_long", Shape::U64),
    ("bad_line", Shape::U64),
    ("no_text", Shape::U64),
    ("bad_rating", Shape::U64),
    ("unrated", Shape::Optional(&Shape::U64)),
    ("empty_text", Shape::U64),
    ("reviews", Shape::U64),
    ("invalid_utf8", Shape::Optional(&Shape::U64)),
]);

const DATASET_SETTINGS: Shape = Shape::Object(&[
    ("rows", SETTINGS),
    ("vocabulary_size", Shape::U64),
    ("vocabulary_of", Shape::OrNull(&Shape::Digest)),
    ("without", Shape::OrNull(&Shape::Digest)),
]);

fuzz_target!(|data: &[u8]| {
    shape::check::<DatasetManifest>(data, &MANIFEST);
    shape::check::<Seal>(data, &SEAL);
});
