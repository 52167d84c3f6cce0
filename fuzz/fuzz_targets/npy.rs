//! Headers of NumPy's arrays: those that are accepted have the shape that an expression finds, and a header that is
//! written is read back. A file of word vectors with such a header is read or refused.
#![no_main]

use std::sync::LazyLock;

use durable::npy::{Header, header};
use embeddings::files;
use libfuzzer_sys::fuzz_target;
use regex::Regex;

mod scratch;

static SHAPE: LazyLock<Regex> = LazyLock::new(|| {
    let shape = r"^\{'descr':'<f4','fortran_order':False,'shape':\(\+?([0-9]+),\+?([0-9]+)\),\}$";
    Regex::new(shape).expect("the expression is valid")
});

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    let Ok(Some(found)) = Header::read(&mut rest) else { return };
    assert_eq!(data.len() as u64 - rest.len() as u64, found.bytes);
    let dict: String = found.dict.chars().filter(|character| !character.is_whitespace()).collect();
    let expected = SHAPE.captures(&dict).and_then(|shape| {
        let number = |at: usize| shape[at].parse::<u64>().ok().filter(|&n| n > 0);
        Some([number(1)?, number(2)?])
    });
    assert_eq!(found.shape(), expected, "{dict}");
    let Some([rows, columns]) = expected else { return };
    if let (Ok(rows), Ok(columns)) = (usize::try_from(rows), usize::try_from(columns))
        && rows.max(columns) < 1 << 32
    {
        let again = Header::read(&mut &header(rows, columns)[..]).expect("memory can be read");
        assert_eq!(again.and_then(|header| header.shape()), Some([rows as u64, columns as u64]));
    }
    scratch::file("vectors.txt", b"one\ntwo\n");
    if let Ok(embedding) = files::read(&scratch::file("vectors.npy", data)) {
        assert_eq!((rows, embedding.dim as u64), (2, columns));
        assert_eq!(rest.len() as u64, 4 * rows * columns);
    }
});
