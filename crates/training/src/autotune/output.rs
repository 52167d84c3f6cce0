//! Progress and results of a search: lines or a bar on standard error, the log, and the command or JSON on standard output.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar};
use program::exit::{Exit, Failed};
use report::whole;
use serde::Serialize;

use super::command::line;
use super::plan::{End, Plan, Reason, Trial};
use super::search::Flags;
use crate::arguments::MetricName;
use crate::error::{Error, Result, STANDARD_OUTPUT};
use crate::print::print_json;
use crate::tell::{bar, tell, tell_above};

/// Shows trials, and keeps them for the result.
pub struct Output {
    metric: MetricName,
    is_json: bool,
    bar: ProgressBar,
    log: Option<(PathBuf, File)>,
    trials: Vec<Trial>,
    /// Index of the best trial. Of equal trials it is the first.
    best: Option<usize>,
}

/// The object that `--json` prints.
#[derive(Serialize)]
struct Found<'a> {
    /// The best command as a line for a shell.
    command: String,
    /// The words of the best command.
    words: Vec<String>,
    /// The metric by which trials were compared.
    metric: &'static str,
    /// The trial with the best settings.
    best: Row<'a>,
    /// The trial with the flags that the user passed; `null` if it did not end.
    default: Option<Row<'a>>,
    /// Why the search ended: `time`, `trials`, `exhausted` or `interrupted`.
    end: Reason,
    /// Seconds of the whole search.
    seconds: f64,
    /// The seed.
    seed: u64,
    /// All trials.
    trials: Vec<Row<'a>>,
}

/// A trial in `--json` and in the log.
#[derive(Serialize)]
struct Row<'a> {
    trial: u32,
    /// The flags that the search added.
    settings: Vec<&'a str>,
    accuracy: Option<f64>,
    f1: Option<f64>,
    loss: Option<f64>,
    seconds: f64,
    /// Whether it was stopped because it took too long or was worse than others.
    is_stopped: bool,
    /// Why these settings cannot be trained.
    error: Option<&'a str>,
}

impl<'a> From<&'a Trial> for Row<'a> {
    fn from(trial: &'a Trial) -> Self {
        let (metrics, error) = match &trial.end {
            End::Measured(metrics) => (Some(metrics), None),
            End::Failed(error) => (None, Some(error.as_str())),
            End::Stopped => (None, None),
        };
        Self {
            trial: trial.number,
            settings: trial.flags.iter().flat_map(|(flag, value)| [*flag, value.as_str()]).collect(),
            accuracy: metrics.map(|metrics| metrics.accuracy),
            f1: metrics.map(|metrics| metrics.f1),
            loss: metrics.map(|metrics| metrics.loss),
            seconds: trial.seconds,
            is_stopped: matches!(trial.end, End::Stopped),
            error,
        }
    }
}

impl Output {
    /// Creates the log.
    pub fn new(plan: &Plan) -> Result<Self> {
        let bar = bar(None, "{msg}")?;
        let log = plan.arguments.log.as_ref().map(|path| {
            let file = File::create(path).map_err(|source| Error::io(path, source))?;
            Ok::<_, Error>((path.clone(), file))
        });
        Ok(Self {
            metric: plan.arguments.metric,
            is_json: plan.is_json,
            bar,
            log: log.transpose()?,
            trials: Vec::new(),
            best: None,
        })
    }

    /// Notes a trial. It is printed if it is the best so far.
    pub fn note(&mut self, trial: Trial) -> Result<()> {
        if let Some((path, file)) = &mut self.log {
            let json = serde_json::to_string(&Row::from(&trial)).map_err(|error| Error::internal(&error))?;
            writeln!(file, "{json}").map_err(|source| Error::io(path, source))?;
        }
        let score = trial.score(self.metric);
        let best = self.best.and_then(|best| self.trials[best].score(self.metric));
        if score > best {
            self.best = Some(self.trials.len());
            self.tell(&format!(
                "trial {}: {}, {:.1} s: {}",
                trial.number,
                self.value(&trial),
                trial.seconds,
                text(&trial.flags)
            ));
        }
        self.trials.push(trial);
        Ok(())
    }

    /// Shows the progress on a terminal.
    pub fn show(&self, end: Instant) {
        let left = Duration::from_secs(end.saturating_duration_since(Instant::now()).as_secs());
        let best =
            self.best.map_or_else(String::new, |best| format!(", best {}", self.value(&self.trials[best])));
        self.bar.set_message(format!("trial {}{best}, {} left", self.trials.len() + 1, HumanDuration(left)));
    }

    /// Prints the best command.
    pub fn finish(self, plan: &Plan, reason: Reason) -> Result<()> {
        self.bar.finish_and_clear();
        let Some(best) = self.best.map(|best| &self.trials[best]) else {
            return Err(match reason {
                Reason::Interrupted => {
                    let message = "interrupted before a trial ended; run the command again";
                    Failed::new(Exit::TryAgain, message).into()
                }
                _ => self.nothing_measured(plan),
            });
        };
        self.tell_result(best, reason);
        let words = plan.trained.words(&best.flags);
        let command = line(&words);
        if self.is_json {
            print_json(&Found {
                command: String::from_utf8_lossy(&command).into_owned(),
                words: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
                metric: self.metric.name(),
                best: best.into(),
                default: self.trials.first().map(Row::from),
                end: reason,
                seconds: plan.began.elapsed().as_secs_f64(),
                seed: plan.seed,
                trials: self.trials.iter().map(Row::from).collect(),
            })?;
        } else {
            let mut out = io::stdout();
            let written =
                out.write_all(&command).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
            written.map_err(|source| Error::io(STANDARD_OUTPUT.as_ref(), source))?;
        }
        match reason {
            Reason::Interrupted => {
                let n = self.trials.len();
                let trials = if n == 1 { "trial" } else { "trials" };
                let message =
                    format!("interrupted after {n} {trials}; the printed settings are the best of them");
                Err(Failed::new(Exit::TryAgain, message).into())
            }
            _ => Ok(()),
        }
    }

    fn tell_result(&self, best: &Trial, reason: Reason) {
        let n = self.trials.len();
        let trials = if n == 1 { "1 trial".to_owned() } else { format!("{} trials", whole(n as u64)) };
        if reason == Reason::Exhausted {
            tell("all settings were tried");
        }
        let of = |wanted: fn(&End) -> bool| self.trials.iter().filter(|trial| wanted(&trial.end)).count();
        let (stopped, failed) =
            (of(|end| matches!(end, End::Stopped)), of(|end| matches!(end, End::Failed(_))));
        let others = match (stopped, failed) {
            (0, 0) => String::new(),
            (stopped, 0) => format!(" ({stopped} stopped)"),
            (0, failed) => format!(" ({failed} failed)"),
            _ => format!(" ({stopped} stopped, {failed} failed)"),
        };
        tell(&format!("best of {trials}{others}: {}", self.value(best)));
        if best.number == 1 {
            tell("the best settings are the defaults");
            return;
        }
        if let Some(first) = self.trials.first() {
            tell(&format!("default settings: {}", self.value(first)));
        }
        tell(
            "the best of many trials is too optimistic; evaluate the trained model on other texts, as with --test",
        );
    }

    fn nothing_measured(&self, plan: &Plan) -> Error {
        let failed = self.trials.iter().find_map(|trial| match &trial.end {
            End::Failed(error) => Some(error.as_str()),
            End::Measured(_) | End::Stopped => None,
        });
        Error::setting(
            "--minutes",
            plan.arguments.minutes,
            match failed {
                None => "a longer time, because no trial ended within it".to_owned(),
                Some(failed) => format!("a longer time, because no trial ended within it ({failed})"),
            },
        )
    }

    /// The metric of a trial in words.
    fn value(&self, trial: &Trial) -> String {
        match &trial.end {
            End::Measured(metrics) => format!("{} {:.4}", self.metric.name(), metrics.value(self.metric)),
            End::Stopped => "stopped".to_owned(),
            End::Failed(error) => error.clone(),
        }
    }

    fn tell(&self, text: &str) {
        tell_above(&self.bar, text);
    }
}

/// Flags in words.
fn text(flags: &Flags) -> String {
    if flags.is_empty() {
        return "defaults".to_owned();
    }
    flags.iter().map(|(flag, value)| format!("{flag} {value}")).collect::<Vec<_>>().join(" ")
}
