//! The arguments of the program `combiner`.

use clap::Parser;

const EXAMPLES: &str = "\
Examples:
  mapper reviews.json | LC_ALL=C sort | combiner | reducer
      Combine the records of equal texts before the reducer reads them

  hadoop jar hadoop-streaming.jar ... -mapper mapper -combiner combiner ...
      Combine the records of each map task before they go over the network";

/// Combine adjacent records of the same text into one
///
/// Reads records on standard input and writes records in the same order to standard output. The votes of adjacent
/// records with the same text are added. The combiner is optional. It reduces the number of records and does not
/// change the result. It can run before or after the sort, any number of times.
#[derive(Parser, Clone, Debug)]
#[command(version, after_long_help = EXAMPLES)]
pub struct Arguments {}
