//! Reads the members of a compressed file, one after the other, as one stream of bytes.

use std::io::{self, Read};

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use crate::source::Source;
use crate::{Compression, ContentError, MAGIC_BYTES};

/// Reader of the members, one after the other.
#[derive(Debug)]
pub struct Members<R: Read> {
    compression: Compression,
    state: State<R>,
    /// Offset of the current member.
    member: u64,
    /// Offset at which reading pauses.
    pause: Option<u64>,
}

enum State<R: Read> {
    Between(Source<R>),
    Within(Decoder<R>),
    /// An error was returned; nothing more can be read.
    Broken,
}

enum Decoder<R: Read> {
    Gzip(Box<GzDecoder<Source<R>>>),
    Bzip2(BzDecoder<Source<R>>),
    Zstd(ZstdDecoder<'static, Source<R>>),
}

impl<R: Read> Members<R> {
    pub(crate) fn of(source: Source<R>, compression: Compression) -> Self {
        Self { compression, state: State::Between(source), member: 0, pause: None }
    }

    /// Reads the members of a file from byte `at`, where one starts. `bytes` are the bytes from `at`.
    pub fn from(bytes: R, compression: Compression, at: u64) -> Self {
        Self::of(Source::at(bytes, at), compression)
    }

    /// Makes reading pause, as at the end of the input, when a member ends at this offset of the file; `None`
    /// resumes. A member that extends past the offset is an error.
    pub fn pause_at(&mut self, byte: Option<u64>) {
        self.pause = byte;
    }

    /// Converts an error of the decoder: damage of the file, or an error of the underlying reader.
    fn explain(&self, error: io::Error, source: &Source<R>) -> io::Error {
        if source.has_failed() {
            return error;
        }
        self.broken(&match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                format!("is cut off at byte {}, the end of the file", source.offset())
            }
            _ => format!("is damaged ({error})"),
        })
    }

    fn broken(&self, found: &str) -> io::Error {
        let member = format!("the {} member at byte {}", self.compression.name(), self.member);
        ContentError::Other(format!("{member} {found}; fetch the file again")).into()
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            self.state = match std::mem::replace(&mut self.state, State::Broken) {
                State::Broken => return Err(io::Error::other("a read after a failed one")),
                State::Between(mut source) => {
                    let at = source.offset();
                    match self.pause {
                        Some(pause) if at == pause => {
                            self.state = State::Between(source);
                            return Ok(0);
                        }
                        Some(pause) if at > pause => {
                            let found = format!("is damaged (expected its end at byte {pause})");
                            return Err(self.broken(&found));
                        }
                        _ => {}
                    }
                    let beginning = source.peek(MAGIC_BYTES)?;
                    if beginning.is_empty() {
                        self.state = State::Between(source);
                        return Ok(0);
                    }
                    if Compression::of(beginning) != Some(self.compression) {
                        let found = format!("bytes that are not {} follow", self.compression.name());
                        let fault = format!("{found} its members from byte {at} on; remove them");
                        return Err(ContentError::Other(fault).into());
                    }
                    self.member = at;
                    State::Within(Decoder::of(self.compression, source)?)
                }
                State::Within(mut decoder) => match decoder.read(buffer) {
                    Ok(0) => State::Between(decoder.into_source()),
                    Ok(bytes) => {
                        self.state = State::Within(decoder);
                        return Ok(bytes);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => State::Within(decoder),
                    Err(error) => return Err(self.explain(error, &decoder.into_source())),
                },
            }
        }
    }
}

impl<R: Read> Decoder<R> {
    fn of(compression: Compression, source: Source<R>) -> io::Result<Self> {
        Ok(match compression {
            Compression::Gzip => Self::Gzip(Box::new(GzDecoder::new(source))),
            Compression::Bzip2 => Self::Bzip2(BzDecoder::new(source)),
            Compression::Zstd => Self::Zstd(ZstdDecoder::with_buffer(source)?.single_frame()),
        })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Bzip2(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
        }
    }

    /// The bytes after the member.
    fn into_source(self) -> Source<R> {
        match self {
            Self::Gzip(decoder) => decoder.into_inner(),
            Self::Bzip2(decoder) => decoder.into_inner(),
            Self::Zstd(decoder) => decoder.finish(),
        }
    }
}

impl<R: Read> std::fmt::Debug for State<R> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Between(_) => "Between",
            Self::Within(_) => "Within",
            Self::Broken => "Broken",
        })
    }
}
