//! Files of fastText's program: an accepted file is written as it was read, and a model answers without a failure.
//!
//! The first byte of the input is the length of a line; the line and the file follow.
#![no_main]

use std::path::Path;

use classifiers::files::bin::BinModel;
use classifiers::files::bin::answers::{BinScratch, best};
use libfuzzer_sys::fuzz_target;

/// The version that has no character n-grams; it is written as the newer one.
const OLD: [u8; 4] = [11, 0, 0, 0];

fuzz_target!(|data: &[u8]| {
    let Some((&length, rest)) = data.split_first() else { return };
    let (line, file) = rest.split_at(usize::from(length).min(rest.len()));
    let Some(model) = parse(file) else { return };
    let written = bytes_of(&model);
    // The program does not sort pruned buckets.
    if model.entries().pruned().is_none() && file[4..8] != OLD {
        assert!(written == file);
    }
    let again = parse(&written).expect("a written file is accepted");
    assert!(bytes_of(&again) == written);
    let mut scratch = BinScratch::default();
    let Some(scores) = model.scores(line, &mut scratch) else { return };
    assert_eq!(scores.len(), model.entries().n_labels());
    assert!(scores.iter().all(|score| !score.is_nan()));
    let best = best(scores, 2);
    assert!(best.windows(2).all(|pair| scores[pair[0]] >= scores[pair[1]]));
});

fn parse(file: &[u8]) -> Option<BinModel> {
    BinModel::parse(file, file.len() as u64, Path::new("model.bin")).ok()
}

fn bytes_of(model: &BinModel) -> Vec<u8> {
    let mut bytes = Vec::new();
    model.write_to(&mut bytes).expect("memory takes bytes");
    bytes
}
