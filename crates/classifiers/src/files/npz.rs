//! Writes a model as arrays that `numpy.load` reads, without pickled objects: a ZIP archive of uncompressed `.npy` files.
//!
//! ```text
//! config    u8: the JSON document of the folder's `config.json`, with the settings, the labels and the strongest n-grams.
//!           With words of punctuation, `alphanumeric` is the content of a class of a regular expression: `0-9A-Za-z…`
//! words     u8: the words in order of their numbers, one per line; none if n-grams are hashed
//! ```
//!
//! The other arrays are those of the folder's weights.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crc_fast::{CrcAlgorithm, Digest};
use durable::{Error, Result, new_file, npy};

use super::folder::{Document, Written};
use super::tensors::{ElementType, Tensor};
use crate::Words;

/// The ends of files and of the archive are 32-bit numbers. The directory has room behind the files.
const BYTES_MAX: u64 = u32::MAX as u64 - (1 << 20);

/// The document of `config`.
pub(super) fn config(model: &Written<'_>) -> String {
    let document = Document::of(model);
    let mut config = serde_json::to_value(document).expect("plain values are JSON");
    if config["settings"]["words"] == Words::Punctuation.name() {
        config["alphanumeric"] = Words::alphanumeric().into();
    }
    config.to_string()
}

/// The lines of `words`.
pub(super) fn words(model: &Written<'_>) -> Vec<u8> {
    model.dictionary.words().iter().flat_map(|word| [word, b"\n"].concat()).collect()
}

/// The arrays of a model. `path` is that of the file, for messages.
pub(super) fn arrays<'a>(path: &Path, model: Written<'a>) -> Result<Vec<Tensor<'a>>> {
    let (config, words) = (config(&model).into_bytes(), words(&model));
    let bytes = |name, bytes: Vec<u8>| Tensor {
        name,
        kind: ElementType::U8,
        shape: vec![bytes.len() as u64],
        write: Box::new(move |out| out.write_all(&bytes)),
    };
    let arrays: Vec<_> =
        [bytes("config", config), bytes("words", words)].into_iter().chain(model.weights).collect();
    let n_bytes: u64 = arrays.iter().map(Tensor::n_bytes).sum();
    if n_bytes > BYTES_MAX {
        return Err(Error::Unstorable {
            path: path.to_owned(),
            field: "the number of bytes",
            found: n_bytes.to_string(),
            allowed: format!("at most {BYTES_MAX}"),
            remedy: "export it as a file of ONNX or of the fastText program",
        });
    }
    Ok(arrays)
}

/// Writes a new file.
pub(super) fn write(path: &Path, arrays: Vec<Tensor<'_>>) -> Result<()> {
    new_file(path, |file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        archive(arrays, &mut out)?;
        out.flush()
    })
}

/// Writes the archive.
pub(super) fn archive(arrays: Vec<Tensor<'_>>, out: &mut impl Write) -> io::Result<()> {
    let (mut directory, mut offset, n) = (Vec::new(), 0_u32, arrays.len() as u16);
    for array in arrays {
        let name = format!("{}.npy", array.name);
        let header = npy::header_of(array.kind.in_numpy(), &array.shape);
        let size = header.len() as u32 + array.n_bytes() as u32;
        // The CRC is known after the file, and follows it.
        let local = [b"PK\x03\x04", &fields(0, 0, &name)[..], name.as_bytes()].concat();
        out.write_all(&local)?;
        let mut file = Summed { out, crc: Digest::new(CrcAlgorithm::Crc32IsoHdlc) };
        file.write_all(&header)?;
        (array.write)(&mut file)?;
        let crc = file.crc.finalize() as u32;
        out.write_all(b"PK\x07\x08")?;
        [crc, size, size].iter().try_for_each(|number| out.write_all(&number.to_le_bytes()))?;
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(fields(crc, size, &name));
        // No comment, on the first disk, without attributes.
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
        offset += local.len() as u32 + size + 16;
    }
    out.write_all(&directory)?;
    out.write_all(b"PK\x05\x06\0\0\0\0")?;
    [n, n].iter().try_for_each(|number| out.write_all(&number.to_le_bytes()))?;
    [directory.len() as u32, offset].iter().try_for_each(|number| out.write_all(&number.to_le_bytes()))?;
    out.write_all(&[0; 2])
}

/// What both records of a file have: version 2.0, a CRC that follows the file, no compression, 1 January 1980, the CRC, the size
/// twice, the length of the name, nothing extra.
fn fields(crc: u32, size: u32, name: &str) -> Vec<u8> {
    let begin = [20_u16, 8, 0, 0, 0x21].into_iter().flat_map(u16::to_le_bytes);
    let middle = [crc, size, size].into_iter().flat_map(u32::to_le_bytes);
    begin.chain(middle).chain([name.len() as u16, 0].into_iter().flat_map(u16::to_le_bytes)).collect()
}

/// Computes the CRC of what is written.
struct Summed<'a, W> {
    out: &'a mut W,
    crc: Digest,
}

impl<W: Write> Write for Summed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.crc.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
