//! Emulates Hadoop Streaming: how it splits a command into arguments, and how it parses standard error.
//!
//! Follows the behaviour of Hadoop 3.4 (`PipeMapRed.splitArgs`, `MRErrorThread`), including its oddities.

use std::collections::BTreeMap;
use std::process::Command;

/// The limits of Hadoop's counters. A task that exceeds one of them fails.
const COUNTERS_MAX: usize = 120;
const GROUP_CHARACTERS_MAX: usize = 128;
const COUNTER_CHARACTERS_MAX: usize = 64;

const PREFIX: &str = "reporter:";

/// Sets the environment of a Hadoop task with a short report interval, so that a failing program does not
/// wait long.
pub fn as_task(program: &mut Command) -> &mut Command {
    program
        .env("mapreduce_task_attempt_id", "attempt_1700000000000_0007_m_000000_0")
        .env("mapreduce_task_progress_report_interval", "1")
}

/// The result of reading a task's standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The sums by group and name.
    pub counters: BTreeMap<(String, String), i64>,
    /// The statuses, in order.
    pub statuses: Vec<String>,
    /// The lines of the task's log.
    pub log: Vec<String>,
    /// Lines with the prefix that Hadoop cannot parse. Hadoop logs a warning and continues.
    pub lost: Vec<String>,
}

impl Heard {
    /// Reads standard error as Hadoop does: lines end at LF, CR or CRLF.
    pub fn of(stderr: &str) -> Self {
        let mut heard = Self::default();
        for line in stderr.replace("\r\n", "\n").replace('\r', "\n").lines() {
            heard.hear(line);
        }
        assert!(heard.counters.len() <= COUNTERS_MAX, "Hadoop fails a task with so many counters");
        heard
    }

    fn hear(&mut self, line: &str) {
        let Some(said) = line.strip_prefix(PREFIX) else {
            return self.log.push(line.to_owned());
        };
        if let Some(counter) = said.strip_prefix("counter:") {
            match increment(counter) {
                Some((group, name, amount)) => {
                    let limits = [(&group, GROUP_CHARACTERS_MAX), (&name, COUNTER_CHARACTERS_MAX)];
                    for (name, most) in limits {
                        assert!(
                            name.chars().count() <= most,
                            "Hadoop fails a task with the counter {name:?}"
                        );
                    }
                    *self.counters.entry((group, name)).or_default() += amount;
                }
                None => self.lost.push(line.to_owned()),
            }
        } else if let Some(status) = said.strip_prefix("status:") {
            self.statuses.push(java_trim(status).to_owned());
        } else {
            self.lost.push(line.to_owned());
        }
    }

    /// The counters of one group.
    pub fn group(&self, group: &str) -> BTreeMap<&str, i64> {
        let of_group = self.counters.iter().filter(|((named, _), _)| named == group);
        of_group.map(|((_, name), &sum)| (name.as_str(), sum)).collect()
    }
}

/// Group, name and amount. The whole text is trimmed, but its parts are not. Empty parts at the end do not
/// count.
fn increment(counter: &str) -> Option<(String, String, i64)> {
    let mut parts: Vec<&str> = java_trim(counter).split(',').collect();
    while parts.len() > 1 && parts.last().is_some_and(|part| part.is_empty()) {
        parts.pop();
    }
    let [group, name, amount] = parts[..] else { return None };
    Some((group.to_owned(), name.to_owned(), amount.parse().ok()?))
}

/// Java's `trim` removes all characters up to the space.
fn java_trim(text: &str) -> &str {
    text.trim_matches(|character| character <= ' ')
}

/// The arguments of a command. Spaces and quotes separate arguments, even if a quote is adjacent to other
/// characters. `'` encloses spaces and `"`, and vice versa. There are no escapes, and an empty argument is
/// impossible.
pub fn split_args(command: &str) -> Vec<String> {
    let mut arguments = vec![String::new()];
    let mut quote = None;
    for character in command.chars() {
        let parts = match (character, quote) {
            ('\'' | '"', None) => {
                quote = Some(character);
                true
            }
            (_, Some(open)) if character == open => {
                quote = None;
                true
            }
            (character, quote) => character == ' ' && quote.is_none(),
        };
        if parts {
            arguments.push(String::new());
        } else {
            arguments.last_mut().expect("it begins with one").push(character);
        }
    }
    arguments.retain(|argument| !argument.is_empty());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_error_is_read_as_hadoop_does() {
        let heard = Heard::of(
            "reporter:counter:g,a,1\nreporter:counter: g,a,2 \nreporter:counter:g,a, 3\nreporter:counter:g,a\n\
             reporter:counter:g,a,b,4\nreporter:counter:g,a,5,\nreporter:status: busy \r\nreporter:other\nlog reporter:status:x\n",
        );
        assert_eq!(heard.group("g"), BTreeMap::from([("a", 8)]));
        assert_eq!(heard.statuses, ["busy"]);
        assert_eq!(heard.log, ["log reporter:status:x"]);
        let lost = ["counter:g,a, 3", "counter:g,a", "counter:g,a,b,4", "other"];
        assert_eq!(heard.lost, lost.map(|line| format!("reporter:{line}")));
    }

    #[test]
    fn arguments_are_split_at_spaces_outside_of_quotes() {
        assert_eq!(
            split_args("mapper  --text-field 'the text' \"x\""),
            ["mapper", "--text-field", "the text", "x"]
        );
        assert_eq!(split_args(r"a\ b '' $HOME|c"), [r"a\", "b", "$HOME|c"]);
        assert_eq!(split_args("--a='b c' d'\"'"), ["--a=", "b c", "d", "\""]);
    }
}
