//! The flags that a user passed. Commands check them after they have detected the family of a model.

use clap::ArgMatches;
use clap::parser::ValueSource;

/// Names of flags, with underscores.
#[derive(Clone, Debug, Default)]
pub struct Given(Vec<String>);

impl Given {
    /// The flags of a command that have a value from the command line.
    pub fn of(matches: &ArgMatches) -> Self {
        let is_given = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        Self(matches.ids().filter(is_given).map(|id| id.as_str().to_owned()).collect())
    }

    /// The first of these flags that was passed, as it is written.
    pub fn first_of(&self, flags: &[&str]) -> Option<String> {
        let given = flags.iter().find(|flag| self.0.iter().any(|given| given == *flag))?;
        Some(format!("--{}", given.replace('_', "-")))
    }
}
