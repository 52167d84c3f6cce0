//! What people and programs see of a training: a bar on a terminal, plain lines elsewhere, and a file of JSON lines.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::train::Event;

/// Between two plain lines, or two lines of the file.
const INTERVAL: Duration = Duration::from_secs(5);

/// Shows a training and writes its metrics; on rank 0.
pub struct Progress {
    bar: ProgressBar,
    metrics: PathBuf,
    file: File,
    /// Steps of an epoch, after which there is a line in any case.
    steps_of_epoch: u64,
    /// Steps between two lines, where that is asked for.
    log_steps: Option<u64>,
    since: Window,
    /// The first error of the file, for which a training is not ended in the middle.
    failed: Option<Error>,
}

/// What has happened since the last line.
struct Window {
    begin: Instant,
    rows: u64,
    steps: u64,
    loss: f64,
    waited: Duration,
}

impl Window {
    fn new() -> Self {
        Self { begin: Instant::now(), rows: 0, steps: 0, loss: 0.0, waited: Duration::ZERO }
    }
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line<'a> {
    Steps {
        epoch: u32,
        step: u64,
        loss: f64,
        rate: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        gradient_norm: Option<f64>,
        reviews_per_s: f64,
        waited_share: f64,
    },
    Epoch {
        epoch: u32,
        step: u64,
        loss: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        validation: Option<&'a Metrics>,
    },
    Test {
        step: u64,
        metrics: &'a Metrics,
    },
}

impl Progress {
    /// Shows a training of so many steps, `done` of which are past, and adds its metrics to a file.
    pub fn new(
        steps: u64,
        done: u64,
        steps_of_epoch: u64,
        log_steps: Option<u64>,
        metrics: &Path,
    ) -> Result<Self> {
        let bar = if io::stderr().is_terminal() {
            let template = "{msg} {wide_bar} {pos}/{len} steps, {eta} left";
            let style = ProgressStyle::with_template(template).map_err(|error| Error::internal(&error))?;
            ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr()).with_style(style)
        } else {
            ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden())
        };
        bar.set_position(done);
        let file = OpenOptions::new().create(true).append(true).open(metrics);
        let file = file.map_err(|source| Error::io(metrics, source))?;
        Ok(Self {
            bar,
            metrics: metrics.to_owned(),
            file,
            steps_of_epoch,
            log_steps,
            since: Window::new(),
            failed: None,
        })
    }

    /// Takes note of an event.
    pub fn note(&mut self, event: &Event<'_>) {
        match *event {
            Event::Step { position, loss, rate, norm, rows, waited, .. } => {
                self.since.rows += rows;
                self.since.steps += 1;
                self.since.loss += loss;
                self.since.waited += waited;
                self.bar.set_position(position.steps);
                let took = self.since.begin.elapsed();
                let is_due =
                    self.log_steps.map_or(took >= INTERVAL, |every| position.steps.is_multiple_of(every));
                if !is_due && !position.steps.is_multiple_of(self.steps_of_epoch) {
                    return;
                }
                let mean = self.since.loss / self.since.steps as f64;
                let speed = self.since.rows as f64 / took.as_secs_f64();
                self.say(&format!(
                    "epoch {} step {}: loss {mean:.4}, {speed:.0} reviews/s",
                    position.epoch + 1,
                    position.steps
                ));
                self.write(&Line::Steps {
                    epoch: position.epoch + 1,
                    step: position.steps,
                    loss: mean,
                    rate,
                    gradient_norm: norm,
                    reviews_per_s: speed,
                    waited_share: self.since.waited.as_secs_f64() / took.as_secs_f64(),
                });
                self.since = Window::new();
            }
            Event::Epoch { position, loss, validation } => {
                let shown = validation.map_or_else(String::new, |metrics| {
                    format!(", validation loss {:.4}, accuracy {:.4}", metrics.loss, metrics.accuracy)
                });
                self.bar.println(format!("epoch {} is over: loss {loss:.4}{shown}", position.epoch));
                if self.bar.is_hidden() {
                    tell(&format!("epoch {} is over: loss {loss:.4}{shown}", position.epoch));
                }
                self.write(&Line::Epoch { epoch: position.epoch, step: position.steps, loss, validation });
                self.since = Window::new();
            }
        }
    }

    /// The metrics of the test rows.
    pub fn note_test(&mut self, step: u64, metrics: &Metrics) {
        self.write(&Line::Test { step, metrics });
    }

    /// Ends the bar. Errors: the metrics could not be written.
    pub fn finish(self) -> Result<()> {
        self.bar.finish_and_clear();
        self.failed.map_or(Ok(()), Err)
    }

    fn say(&self, text: &str) {
        if self.bar.is_hidden() {
            tell(text);
        } else {
            self.bar.set_message(text.to_owned());
        }
    }

    fn write(&mut self, line: &Line<'_>) {
        let written = serde_json::to_string(line).map_err(|error| Error::internal(&error)).and_then(|json| {
            writeln!(self.file, "{json}").map_err(|source| Error::io(&self.metrics, source))
        });
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

/// A line on standard error.
pub(crate) fn tell(text: &str) {
    // Where nobody listens, the metrics file has it too.
    let _ = writeln!(io::stderr(), "trainer: {text}");
}
