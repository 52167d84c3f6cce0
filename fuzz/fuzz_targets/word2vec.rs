//! Binary files of word2vec: an accepted file has the words and vectors of its entries, and is read back as it is written,
//! unless it has a word with white space or NUL, which is not written.
//!
//! The input has the number of words, the dimension, and the rest of the file.
#![no_main]

use embeddings::files::{self, Format};
use libfuzzer_sys::fuzz_target;

mod scratch;

fuzz_target!(|data: &[u8]| {
    let Some((&[n_words, dim], rest)) = data.split_first_chunk() else { return };
    // Without a valid first line, a file has another format.
    let file = [format!("{n_words} {dim}\n").as_bytes(), rest].concat();
    let Ok(embedding) = files::read(&scratch::file("vectors.w2v", &file)) else { return };
    let written = scratch::file("again.w2v", b"");
    std::fs::remove_file(&written).expect("a temporary file can be deleted");
    let stored = files::write(&written, Format::Word2Vec, &embedding, None);
    if embedding.words.words().iter().flatten().any(|byte| b" \t\n\r\x0b\x0c\0".contains(byte)) {
        assert!(stored.is_err(), "such a word is refused");
        return;
    }
    stored.expect("a file that was read can be written");
    if looks_like_text(&std::fs::read(&written).expect("a written file is there")) {
        return;
    }
    let again = files::read(&written).expect("a written file is accepted");
    assert_eq!((again.words.n_words(), again.dim), (embedding.words.n_words(), embedding.dim));
    for word in 0..embedding.words.n_words() as u32 {
        assert_eq!(again.words.name(word), embedding.words.name(word));
    }
});

/// Whether the first word and its vector may be a line of text: printable, or with a number at its end.
fn looks_like_text(file: &[u8]) -> bool {
    let line = file.split(|&byte| byte == b'\n').nth(1).unwrap_or_default().trim_ascii_end();
    line.last().is_some_and(|&last| last.is_ascii_alphanumeric() || last == b'.')
        || !line.iter().any(u8::is_ascii_control)
}
