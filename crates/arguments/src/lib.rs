//! Groups of flags that several programs have → the settings that they stand for, with one help text and one set of
//! messages. Knows nothing of what programs do with them.

mod format;
mod parse;
mod rows;

pub use format::FormatArguments;
pub use parse::{described, parse};
pub use rows::RowArguments;
