//! Reads the input of a training.

use batches::{Division, Part};
use classifiers::{Reading, Texts};
use corpus::ledger::Limits;
use training::Result;
use training::inputs::{Input, ReadInput, or_by_extension};
use training::lines::FastTextLine;
use training::texts::Wanted;

use crate::arguments::Train;

/// The flags with the format of the extensions of --input, --test and `more`, unless --format was passed.
pub fn with_format(arguments: &Train, more: &[String]) -> Result<Train> {
    let places = arguments.input.iter().chain(&arguments.test).chain(more);
    let format = or_by_extension(&arguments.format, places, &arguments.storage.options())?;
    Ok(Train { format, ..arguments.clone() })
}

/// The input of a training. `tell` is [`Input::tell`].
pub fn input(arguments: &Train, tell: fn(&str)) -> Input<'_> {
    Input {
        format: &arguments.format,
        rated: &arguments.rated,
        fasttext: FastTextLine::Words,
        limits: Limits {
            bad_lines_max: arguments.bad_lines_max,
            invalid_utf8_max: arguments.invalid_utf8_max,
        },
        threads: arguments.n_threads(),
        rows: None,
        s3: arguments.storage.options(),
        tell,
    }
}

/// Reads a split of --input. Skipped lines are reported.
pub fn read_split(input: &Input<'_>, arguments: &Train, part: Part, reading: Reading) -> Result<Texts> {
    let wanted = vec![Wanted { part, reading }];
    let ReadInput { mut splits, .. } = input.read_splits(&arguments.input, division(arguments)?, wanted)?;
    Ok(splits.remove(0))
}

/// The division of --input into splits.
pub fn division(arguments: &Train) -> Result<Division> {
    Ok(Division::by_fractions(arguments.test_fraction, arguments.validation_fraction)?)
}
