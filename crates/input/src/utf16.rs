//! Decodes UTF-16 into UTF-8. A lone surrogate becomes U+FFFD. Half a unit at the end
//! is a fault.

use std::io::{self, Read};

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

use crate::Fault;

const BUFFER_BYTES: usize = 64 << 10;

/// The byte order of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The byte-order mark is FF FE.
    LittleEndian,
    /// The byte-order mark is FE FF.
    BigEndian,
}

impl ByteOrder {
    /// The byte order of an encoding, if it is UTF-16.
    pub fn of(encoding: &'static Encoding) -> Option<Self> {
        [(UTF_16LE, Self::LittleEndian), (UTF_16BE, Self::BigEndian)]
            .into_iter()
            .find_map(|(utf16, order)| (encoding == utf16).then_some(order))
    }

    /// The byte-order mark.
    pub(crate) fn mark(self) -> &'static [u8] {
        match self {
            Self::LittleEndian => b"\xff\xfe",
            Self::BigEndian => b"\xfe\xff",
        }
    }
}

/// Decodes while it is read.
#[derive(Debug)]
pub(crate) struct Utf16Reader<R> {
    source: R,
    order: ByteOrder,
    buffer: Box<[u8]>,
    /// Number of bytes read so far.
    offset: u64,
    /// The first byte of a unit whose second byte has not been read.
    half: Option<u8>,
    /// A high surrogate whose low surrogate has not been read.
    high: Option<u16>,
    decoded: String,
    /// Number of bytes of `decoded` that were returned.
    given: usize,
}

impl<R: Read> Utf16Reader<R> {
    /// Reads a source, of which the byte-order mark was read.
    pub fn behind(mark: &[u8], source: R, order: ByteOrder) -> Self {
        Self {
            source,
            order,
            buffer: vec![0; BUFFER_BYTES].into(),
            offset: mark.len() as u64,
            half: None,
            high: None,
            decoded: String::new(),
            given: 0,
        }
    }

    /// Decodes the result of one read of the source. Returns `false` at its end.
    fn decode_more(&mut self) -> io::Result<bool> {
        self.decoded.clear();
        self.given = 0;
        let n = self.source.read(&mut self.buffer)?;
        self.offset += n as u64;
        if n == 0 {
            if self.half.is_some() {
                return Err(Fault::CutUtf16 { end: self.offset }.into());
            }
            if self.high.take().is_some() {
                self.decoded.push(char::REPLACEMENT_CHARACTER);
            }
            return Ok(!self.decoded.is_empty());
        }
        for at in 0..n {
            let byte = self.buffer[at];
            match self.half.take() {
                None => self.half = Some(byte),
                Some(first) => self.push(match self.order {
                    ByteOrder::LittleEndian => u16::from_le_bytes([first, byte]),
                    ByteOrder::BigEndian => u16::from_be_bytes([first, byte]),
                }),
            }
        }
        Ok(true)
    }

    fn push(&mut self, unit: u16) {
        let is_high = matches!(unit, 0xd800..=0xdbff);
        let units = self.high.take().into_iter().chain((!is_high).then_some(unit));
        let characters = char::decode_utf16(units);
        self.decoded.extend(characters.map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER)));
        self.high = is_high.then_some(unit);
    }
}

impl<R: Read> Read for Utf16Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.decoded.len() {
            if !self.decode_more()? {
                return Ok(0);
            }
        }
        let bytes = (&self.decoded.as_bytes()[self.given..]).read(buffer)?;
        self.given += bytes;
        Ok(bytes)
    }
}
