//! Detects how a regular file is read: in parts, or from its start only.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use corpus::encoding::{Encoding, UTF_8};
use corpus::format::Format;
use input::{Compression, Form};

use crate::error::Error;
use crate::options::ReadingOptions;
use crate::parquet::MAGIC;
use crate::source::{Kind, Source};
use crate::{arrow, entries};

/// How a regular file is read.
pub(crate) enum Manner {
    Plain {
        bytes: u64,
    },
    Compressed(Compression),
    /// UTF-16, CSV or a JSON array, which can only be split from the start.
    Sequential,
    Parquet,
    Arrow,
}

impl Manner {
    pub fn of(file: &File, path: &Path, format: &Format, encoding: &'static Encoding) -> io::Result<Self> {
        let mut beginning = Vec::new();
        file.take(input::FORM_BYTES as u64).read_to_end(&mut beginning)?;
        if let Some(by) = Compression::of(&beginning) {
            return Ok(Self::Compressed(by));
        }
        if beginning.starts_with(MAGIC) {
            return Ok(Self::Parquet);
        }
        if arrow::is_beginning(&beginning) {
            return Ok(Self::Arrow);
        }
        let form = Form::of(&beginning, encoding)?;
        input::check_name(path, &beginning)?;
        Ok(match form {
            Form::Lines if !is_sequential(&beginning, format) => {
                Self::Plain { bytes: file.metadata()?.len() }
            }
            Form::Lines | Form::Utf16(_) => Self::Sequential,
        })
    }
}

/// Whether content with this beginning is not lines, which can be split anywhere.
fn is_sequential(beginning: &[u8], format: &Format) -> bool {
    match format {
        Format::Json(_) => entries::may_be_array(beginning),
        Format::Delimited { .. } => true,
        Format::PolarityCsv { .. } | Format::FastText { .. } => false,
    }
}

/// Whether the content of a compressed file is lines in UTF-8, which can be split anywhere. If the file
/// cannot be read, the thread that reads it reports the error.
pub(crate) fn has_lines_inside(mut file: &File, options: &ReadingOptions) -> bool {
    let content = file.rewind().and_then(|()| input::of_encoding(file, options.encoding));
    let Some(mut content) = content.ok().filter(|content| !content.is_utf16()) else { return false };
    entries::beginning(&mut content).is_ok_and(|beginning| !is_sequential(&beginning, &options.format))
}

impl Source {
    /// Whether the source is a file with columns, in the format Parquet or Arrow.
    pub fn is_table(&self) -> Result<bool, Error> {
        let Kind::File(path) = &self.kind else { return Ok(false) };
        let unreadable = |error| self.unreadable("read its first bytes", error);
        let mut beginning = Vec::new();
        let file = File::open(path).map_err(unreadable)?;
        file.take(input::FORM_BYTES as u64).read_to_end(&mut beginning).map_err(unreadable)?;
        Ok(beginning.starts_with(MAGIC) || arrow::is_beginning(&beginning))
    }

    /// The path of a regular file whose bytes are its lines in this format; `None` if its content is compressed, encoded
    /// or not divided at line ends. A file of another kind is refused.
    pub fn lines_file(&self, format: &Format, encoding: &'static Encoding) -> Result<Option<&Path>, Error> {
        let Kind::File(path) = &self.kind else { return Ok(None) };
        let unreadable = |error| self.unreadable("read its first bytes", error);
        let file = File::open(path).map_err(unreadable)?;
        let kind = match Manner::of(&file, path, format, encoding).map_err(unreadable)? {
            Manner::Plain { .. } if encoding == UTF_8 => return Ok(Some(path)),
            Manner::Plain { .. } | Manner::Compressed(_) | Manner::Sequential => return Ok(None),
            Manner::Parquet => "a Parquet",
            Manner::Arrow => "an Arrow",
        };
        Err(self.not_lines(kind, format))
    }
}
