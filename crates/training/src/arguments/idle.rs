//! The flags that have no effect because of other flags.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};
use program::location::Location;

/// A flag, and whether it has no effect because of other flags.
#[derive(Clone, Copy)]
pub struct Idle {
    id: &'static str,
    is_idle: bool,
    /// The flags with which this flag has an effect.
    needs: &'static str,
}

/// A flag by its name with underscores.
pub fn idle(id: &'static str, is_idle: bool, needs: &'static str) -> Idle {
    Idle { id, is_idle, needs }
}

/// `--s3` without an s3:// URL.
pub fn s3(has_url: bool) -> Idle {
    idle("s3", !has_url, "an s3:// URL")
}

/// The flags of texts with labels.
const LABELLED: [&str; 14] = [
    "format",
    "preset",
    "text_field",
    "with_title",
    "rating_field",
    "class_ratings",
    "rating_scale",
    "unrated",
    "delimiter",
    "quote",
    "encoding",
    "label_field",
    "positive_from",
    "labels",
];

/// The flags of texts with labels, in an evaluation of datasets only.
pub fn of_labelled(has_texts: bool) -> Vec<Idle> {
    LABELLED.map(|id| idle(id, !has_texts, "a file of texts")).to_vec()
}

/// Refuses a flag without an effect if it was passed to a command of the program `A`.
pub fn refuse_idle<A: CommandFactory>(idle: &[Idle], given: &ArgMatches) -> Result<(), clap::Error> {
    let is_given = |id: &str| {
        given.try_contains_id(id).is_ok() && given.value_source(id) == Some(ValueSource::CommandLine)
    };
    match idle.iter().find(|Idle { id, is_idle, .. }| *is_idle && is_given(id)) {
        None => Ok(()),
        Some(Idle { id, needs, .. }) => {
            let flag = id.replace('_', "-");
            Err(conflict::<A>(format!(
                "--{flag} has no effect without {needs}; omit --{flag}, or pass {needs}"
            )))
        }
    }
}

/// An error of flags that cannot be combined.
pub fn conflict<A: CommandFactory>(message: impl std::fmt::Display) -> clap::Error {
    A::command().error(ErrorKind::ArgumentConflict, message)
}

/// Refuses `--force` for a result in S3.
pub fn refuse_replaced<A: CommandFactory>(out: Option<&Location>, force: bool) -> Result<(), clap::Error> {
    match out.filter(|out| force && matches!(out, Location::S3(_))) {
        None => Ok(()),
        Some(out) => Err(conflict::<A>(format!(
            "--force has no effect on {out}: nothing in S3 is replaced; choose another --out"
        ))),
    }
}
