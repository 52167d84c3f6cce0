//! Parquet and Arrow files: metadata and rows are read or refused. Each row comes once, in its order.
//!
//! The first byte of the input selects the kind of the file.
#![no_main]

use std::num::NonZeroUsize;

use corpus::encoding::UTF_8;
use corpus::format::{Fields, Format};
use libfuzzer_sys::fuzz_target;
use reading::{Error, InputEntry, Reading, ReadingOptions, find};
use store::S3Options;

mod scratch;

fuzz_target!(|data: &[u8]| {
    scratch::allow_panics_of(&["/parquet-", "/arrow-", "/flatbuffers-"]);
    let Some((&kind, file)) = data.split_first() else { return };
    let (name, marks): (_, &[&[u8]]) = match kind % 3 {
        0 => ("a.parquet", &[b"PAR1", b"PAR1"]),
        1 => ("a.arrow", &[b"ARROW1\0\0", b"ARROW1"]),
        _ => ("b.arrow", &[&[0xff; 4], b""]),
    };
    // A footer is found by the mark after it.
    let path = scratch::file(name, &[marks[0], file, marks[1]].concat());
    let Ok(sources) = find(&[path.display().to_string()], &S3Options::default()) else { return };
    let options = ReadingOptions {
        format: Format::Json(Fields::default()),
        encoding: UTF_8,
        line_bytes_max: 1 << 16,
        threads: NonZeroUsize::MIN,
        streams_max: NonZeroUsize::MIN,
        batches_bytes: 1 << 20,
        columns: reading::KeptColumns::OfFields,
    };
    let Ok(reading) = Reading::start(sources, &options) else { return };
    let mut before = None;
    let visit = |entry: InputEntry<'_>| -> Result<(), Error> {
        assert!(before < Some(entry.place), "{before:?} before {:?}", entry.place);
        before = Some(entry.place);
        Ok(())
    };
    let _ = reading.each(visit);
});
