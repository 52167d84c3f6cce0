//! Groups of flags that several programs share, converted into settings, with one help text and one set of
//! messages. What a program does with the settings is not part of this module.

mod dataset;
mod format;
mod rows;
mod start;

pub use dataset::{DatasetArguments, FilesArguments, ReportArguments, VocabularyArguments};
pub use format::{FormatArguments, parse_line_bytes};
pub use rows::{ReadFromS3, RowArguments, STOP_WORDS_BYTES_MAX};
pub use start::{described, parse, run};
