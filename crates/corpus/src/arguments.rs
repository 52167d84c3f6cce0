//! Groups of flags that several programs share, converted into settings, with one help text and one set of
//! messages. What a program does with the settings is not part of this module.

mod dataset;
mod format;
mod parse;
mod rows;

pub use dataset::{DatasetArguments, ReportArguments};
pub use format::FormatArguments;
pub use parse::{described, parse, parse_line_bytes, run};
pub use rows::{ReadFromS3, RowArguments, STOP_WORDS_BYTES_MAX};
