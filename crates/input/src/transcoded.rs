//! Decodes a stream in any encoding into UTF-8. Bytes that the encoding does not have become U+FFFD.

use std::io::{self, Read};

use encoding_rs::{Decoder, Encoding, UTF_8};

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
    is_over: bool,
}

impl<R: Read> Transcoded<R> {
    /// Reads a source in this encoding.
    pub fn of(source: R, encoding: &'static Encoding) -> Self {
        let decoding = || {
            let decoder = encoding.new_decoder_without_bom_handling();
            // Three bytes for each, and some for the rest of the previous read.
            let decoded = vec![0; 3 * BUFFER_BYTES + 64].into();
            Decoding { decoder, buffer: vec![0; BUFFER_BYTES].into(), decoded, rest: 0..0, is_over: false }
        };
        Self { source, decoding: (encoding != UTF_8).then(decoding) }
    }
}

impl<R: Read> Read for Transcoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(decoding) = &mut self.decoding else { return self.source.read(buffer) };
        while decoding.rest.is_empty() && !decoding.is_over {
            let n = self.source.read(&mut decoding.buffer)?;
            decoding.is_over = n == 0;
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
