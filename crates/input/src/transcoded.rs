//! Decodes a stream in any encoding into UTF-8. Bytes that the encoding does not have become U+FFFD. Half a unit of UTF-16
//! at the end is an error.

use std::io::{self, Read};

use encoding_rs::{Decoder, Encoding, UTF_8};

use crate::ContentError;
use crate::form::is_utf16;

const BUFFER_BYTES: usize = 64 << 10;

/// Decodes while it is read. UTF-8 is returned as it is, also where it is invalid.
#[derive(Debug)]
pub struct Transcoded<R> {
    source: R,
    /// `None` for UTF-8.
    decoding: Option<Decoding>,
}

struct Decoding {
    decoder: Decoder,
    buffer: Box<[u8]>,
    decoded: Box<[u8]>,
    /// The part of `decoded` that was not returned yet.
    rest: std::ops::Range<usize>,
    /// Number of bytes read so far.
    offset: u64,
    is_over: bool,
}

impl<R: Read> Transcoded<R> {
    /// Reads a source in this encoding.
    pub fn of(source: R, encoding: &'static Encoding) -> Self {
        Self::behind(0, source, encoding)
    }

    /// Reads a source in this encoding, whose byte-order mark of this number of bytes was read.
    pub(crate) fn behind(mark_bytes: usize, source: R, encoding: &'static Encoding) -> Self {
        let decoding = || {
            let decoder = encoding.new_decoder_without_bom_handling();
            // Three bytes for each, and some for the rest of the previous read.
            let decoded = vec![0; 3 * BUFFER_BYTES + 64].into();
            let (buffer, offset) = (vec![0; BUFFER_BYTES].into(), mark_bytes as u64);
            Decoding { decoder, buffer, decoded, rest: 0..0, offset, is_over: false }
        };
        Self { source, decoding: (encoding != UTF_8).then(decoding) }
    }
}

impl<R: Read> Read for Transcoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(decoding) = &mut self.decoding else { return self.source.read(buffer) };
        while decoding.rest.is_empty() && !decoding.is_over {
            let n = self.source.read(&mut decoding.buffer)?;
            decoding.offset += n as u64;
            decoding.is_over = n == 0;
            if n == 0 && decoding.offset % 2 == 1 && is_utf16(decoding.decoder.encoding()) {
                let found = format!("the UTF-16 is cut off at byte {}, within a character", decoding.offset);
                return Err(ContentError::Other(format!("{found}; fetch the file again")).into());
            }
            let read = &decoding.buffer[..n];
            let (_, _, written, _) = decoding.decoder.decode_to_utf8(read, &mut decoding.decoded, n == 0);
            decoding.rest = 0..written;
        }
        let bytes = (&decoding.decoded[decoding.rest.clone()]).read(buffer)?;
        decoding.rest.start += bytes;
        Ok(bytes)
    }
}

impl std::fmt::Debug for Decoding {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.decoder.encoding().name())
    }
}
