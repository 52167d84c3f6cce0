//! Groups of flags that several programs share, converted into settings, with one help text and one set of
//! messages. What a program does with the settings is not part of this module.

mod dataset;
mod format;
mod line_bytes;
mod parse;
mod rows;

pub use dataset::{DatasetArguments, ReportArguments};
pub use format::FormatArguments;
pub use line_bytes::parse_line_bytes;
pub use parse::{described, parse};
pub use rows::{ReadFromS3, RowArguments, STOP_WORDS_BYTES_MAX};
