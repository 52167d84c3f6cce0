//! One check: what was found, whether that is enough, and the remedy if it is not.

use program::exit::one_line;
use serde::Serialize;
use serde_json::{Value, json};

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// Enough for all programs.
    Ok,
    /// Not checked, or not known.
    Unknown,
    /// Enough for some uses only.
    Warning,
    /// A program cannot run without it.
    Missing,
}

/// A check.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its name, such as `memory`.
    pub name: &'static str,
    /// Its result.
    pub state: CheckState,
    /// What was found, for people.
    pub found: String,
    /// What to do; empty if the state is [`CheckState::Ok`] or [`CheckState::Unknown`].
    pub remedy: String,
    /// What was found, for JSON.
    pub facts: Vec<(String, Value)>,
}

impl Check {
    pub(super) fn text(&self) -> String {
        let state = match self.state {
            CheckState::Ok => "ok",
            CheckState::Unknown => "unknown",
            CheckState::Warning => "warning",
            CheckState::Missing => "missing",
        };
        let mut text = format!("{:<12}{state:<9}{}\n", self.name, one_line(&self.found));
        if !self.remedy.is_empty() {
            text += &format!("{:<21}{}\n", "", self.remedy);
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        json!({ "name": self.name, "state": self.state, "found": one_line(&self.found), "remedy": self.remedy })
    }
}

/// The checks so far.
#[derive(Default)]
pub(super) struct Checks {
    pub checks: Vec<Check>,
}

impl Checks {
    /// Adds a check that is met.
    pub fn ok(&mut self, name: &'static str, found: impl Into<String>) -> &mut Self {
        self.add(name, CheckState::Ok, found.into(), "")
    }

    /// Adds a check whose result is not known.
    pub fn unknown(&mut self, name: &'static str, found: impl Into<String>) -> &mut Self {
        self.add(name, CheckState::Unknown, found.into(), "")
    }

    /// Adds a check that is not met for some uses.
    pub fn warning(&mut self, name: &'static str, found: impl Into<String>, remedy: &str) -> &mut Self {
        self.add(name, CheckState::Warning, found.into(), remedy)
    }

    /// Adds a check that is not met.
    pub fn missing(&mut self, name: &'static str, found: impl Into<String>, remedy: &str) -> &mut Self {
        self.add(name, CheckState::Missing, found.into(), remedy)
    }

    /// Adds a fact to the last check.
    pub fn fact(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        if let Some(last) = self.checks.last_mut() {
            last.facts.push((name.to_owned(), value.into()));
        }
        self
    }

    fn add(&mut self, name: &'static str, state: CheckState, found: String, remedy: &str) -> &mut Self {
        self.checks.push(Check { name, state, found, remedy: remedy.to_owned(), facts: Vec::new() });
        self
    }
}
