//! The files of a generator: its characters, and its weights in a safetensors file that PyTorch reads.
//!
//! ```text
//! characters.txt          the characters in order of their ids, one per line; ids 0 to 2 are an unknown character, the
//!                         beginning and the end of a word
//! generator.safetensors   bytes 0..8: length of the header, little-endian
//!                         then the header: JSON with the name, type, shape and place of each weight, padded with spaces
//!                         then the weights, f32, little-endian, in the order of `crate::spelling::Sizes::shapes`
//! ```
//!
//! The header is a function of the sizes. A file with any other header is refused, so that nothing in it is interpreted.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;

use crate::spelling::{Characters, Sizes, Weights};
use durable::output::WriteNumbers;
use durable::{At, Error, Output, REMEDY, Result, Source};

use crate::array::VALUE_LIMIT;

pub(crate) const CHARACTERS: &str = "characters.txt";
pub(crate) const WEIGHTS: &str = "generator.safetensors";
/// Four bytes per character and a line break.
pub(crate) const CHARACTERS_BYTES_MAX: u64 = 5 * Characters::MAX as u64;

/// Writes the characters.
pub(crate) fn write_characters(out: &mut Output<'_>, characters: &Characters) -> io::Result<()> {
    characters.all().iter().try_for_each(|character| writeln!(out, "{character}"))
}

/// Converts the content of the list of characters.
pub(crate) fn parse_characters(path: &Path, bytes: &[u8]) -> Result<Characters> {
    let refused = |found: String, expected: &str| Error::unexpected(path, "a line", found, expected, REMEDY);
    let mut all = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let text = std::str::from_utf8(line).ok().and_then(|line| line.strip_suffix('\n'));
        let mut characters = text.unwrap_or_default().chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => all.push(character),
            _ => return Err(refused(format!("{:?}", String::from_utf8_lossy(line)), "one character")),
        }
    }
    Characters::of(all).map_err(|character| refused(format!("{character:?} again"), "each character once"))
}

/// Writes the weights. Returns the first value that [`read`] would refuse.
pub(crate) fn write(out: &mut Output<'_>, weights: &Weights) -> io::Result<Option<f32>> {
    let is_bad = |value: &&f32| !crate::array::is_sound(value);
    if let Some(&bad) = weights.all().iter().flatten().find(is_bad) {
        return Ok(Some(bad));
    }
    out.write_all(&header(weights.sizes()))?;
    weights.all().iter().try_for_each(|values| out.floats(values))?;
    Ok(None)
}

/// Reads weights of these sizes. The size of the file is compared before memory is allocated.
pub(crate) fn read(path: &Path, sizes: Sizes) -> Result<Weights> {
    let file = File::open(path).at(path, "open it")?;
    let n_bytes = file.metadata().at(path, "read its metadata")?.len();
    let mut source = Source::new(BufReader::with_capacity(1 << 20, file), n_bytes, path, REMEDY);
    let expected = header(&sizes);
    if source.bytes("the header", expected.len() as u64)? != expected {
        let found = "of other weights";
        return Err(source.unexpected("the header", found, format_args!("that of a generator of {sizes:?}")));
    }
    let mut all: [Vec<f32>; 7] = Default::default();
    for (values, (name, shape)) in all.iter_mut().zip(sizes.shapes()) {
        let n: u64 = shape.iter().map(|&n| n as u64).product();
        *values = source.floats(name, n, VALUE_LIMIT)?;
    }
    source.end("the weights")?;
    Ok(Weights::of(sizes, all))
}

/// The length of the header, and the header.
fn header(sizes: &Sizes) -> Vec<u8> {
    let mut begin = 0;
    let entries = sizes.shapes().map(|(name, shape)| {
        let end = begin + 4 * shape.iter().map(|&n| n as u64).product::<u64>();
        let entry =
            format!("\"{name}\":{{\"dtype\":\"F32\",\"shape\":{shape:?},\"data_offsets\":[{begin},{end}]}}");
        begin = end;
        entry
    });
    let mut json = format!("{{{}}}", entries.join(",")).into_bytes();
    json.resize(json.len().next_multiple_of(8), b' ');
    [&(json.len() as u64).to_le_bytes()[..], &json].concat()
}
