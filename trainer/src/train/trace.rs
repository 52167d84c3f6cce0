//! Writes the phases of some steps in the format of Chrome's trace viewer, for all ranks.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use training::tell::tell;

use crate::error::Result;
use crate::ranks::Ranks;
use crate::train::times::{Phase, Span};

/// Collects the phases of steps.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    steps: RangeInclusive<u64>,
    /// The end of the first exchange. All ranks leave it at almost the same time, so it aligns their clocks.
    origin: Option<Instant>,
    spans: Vec<(u64, Span)>,
    is_written: bool,
    /// The error of the write. It is reported at the end, because it does not stop the training.
    failed: Option<training::Error>,
}

/// A phase as ranks send it: step, number of the phase, and begin and duration in nanoseconds.
type Sent = [i64; 4];

/// An event of the trace viewer. Times are in microseconds.
#[derive(Serialize)]
struct TraceEvent {
    name: &'static str,
    cat: &'static str,
    ph: &'static str,
    pid: usize,
    tid: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    args: serde_json::Value,
}

impl Trace {
    /// Starts without phases. `path` is a new file, `steps` are those that are written, from 1.
    pub fn new(path: PathBuf, steps: RangeInclusive<u64>) -> Self {
        Self { path, steps, origin: None, spans: Vec::new(), is_written: false, failed: None }
    }

    /// Notes the phases of a step. After the last step, all ranks gather them, and rank 0 writes the file.
    ///
    /// # Errors
    /// If the ranks cannot communicate.
    pub fn note(&mut self, step: u64, spans: Vec<Span>, ranks: &Ranks) -> Result<()> {
        if self.is_written || !self.steps.contains(&step) {
            return Ok(());
        }
        if self.origin.is_none() {
            let exchange = spans.iter().find(|span| span.phase == Phase::Waiting);
            self.origin = exchange.map(|span| span.begin + span.took);
        }
        self.spans.extend(spans.into_iter().map(|span| (step, span)));
        if step < *self.steps.end() { Ok(()) } else { self.write(ranks) }
    }

    /// Writes the file, if it is not written yet and there are phases. After a restart past the last step there are none,
    /// and the file is that of the process before.
    ///
    /// # Errors
    /// If the ranks cannot communicate.
    pub fn write(&mut self, ranks: &Ranks) -> Result<()> {
        if std::mem::replace(&mut self.is_written, true) {
            return Ok(());
        }
        let own: Vec<i64> = self.spans.iter().flat_map(|(step, span)| self.sent(*step, span)).collect();
        // Ranks have different numbers of phases.
        let lengths = ranks.gather_i64(&[own.len() as i64])?;
        if lengths.iter().all(|&length| length == 0) {
            if ranks.is_first() {
                let (path, first, last) = (self.path.display(), self.steps.start(), self.steps.end());
                tell(&format!(
                    "{path}: not written, because steps {first} to {last} were not trained by this process"
                ));
            }
            return Ok(());
        }
        let all = ranks.gather_i64(&own)?;
        if !ranks.is_first() {
            return Ok(());
        }
        let mut rest = &all[..];
        let of_ranks = lengths.iter().map(|&length| rest.split_off(..length as usize).unwrap_or_default());
        let of_ranks: Vec<&[Sent]> = of_ranks.map(|of_rank| of_rank.as_chunks().0).collect();
        let written = write_events(&self.path, &of_ranks);
        self.failed = written.err().map(|source| training::Error::io(&self.path, source));
        Ok(())
    }

    /// Returns the error of the write.
    pub fn finish(self) -> training::Result<()> {
        self.failed.map_or(Ok(()), Err)
    }

    fn sent(&self, step: u64, span: &Span) -> Sent {
        let origin = self.origin.unwrap_or(span.begin);
        let nanoseconds =
            |duration: std::time::Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        let begin = match span.begin.checked_duration_since(origin) {
            Some(after) => nanoseconds(after),
            None => -nanoseconds(origin.duration_since(span.begin)),
        };
        [step as i64, span.phase as i64, begin, nanoseconds(span.took)]
    }
}

/// Refuses a file that exists.
///
/// # Errors
/// If there is a file, or the folder is not writable.
pub fn check(path: &Path) -> training::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => std::fs::remove_file(path),
        Err(source) => Err(source),
    }
    .map_err(|source| training::Error::io(path, source))
}

fn write_events(path: &Path, of_ranks: &[&[Sent]]) -> std::io::Result<()> {
    let first = of_ranks.iter().flat_map(|of_rank| of_rank.iter()).map(|[_, _, begin, _]| *begin).min();
    let micros = |nanoseconds: i64| Some(nanoseconds as f64 / 1e3);
    let mut events = Vec::new();
    for (pid, of_rank) in of_ranks.iter().enumerate() {
        let args = serde_json::json!({ "name": format!("rank {pid}") });
        events.push(TraceEvent {
            name: "process_name",
            cat: "",
            ph: "M",
            pid,
            tid: 0,
            ts: None,
            dur: None,
            args,
        });
        for &[step, phase, begin, took] in *of_rank {
            let Some(phase) = Phase::ALL.get(phase as usize) else { continue };
            events.push(TraceEvent {
                name: phase.name(),
                cat: "step",
                ph: "X",
                pid,
                tid: 0,
                ts: micros(begin - first.unwrap_or(0)),
                dur: micros(took),
                args: serde_json::json!({ "step": step }),
            });
        }
    }
    let mut file = BufWriter::new(File::create(path)?);
    serde_json::to_writer(&mut file, &serde_json::json!({ "traceEvents": events }))?;
    writeln!(file)?;
    file.into_inner()?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A trace of steps 1 and 2 in one process, after steps with one phase each.
    fn after(steps: RangeInclusive<u64>, path: &Path) -> Trace {
        let mut trace = Trace::new(path.to_owned(), 1..=2);
        for step in steps {
            let span = Span { phase: Phase::Forward, begin: Instant::now(), took: Duration::from_millis(1) };
            trace.note(step, vec![span], &Ranks::Alone).unwrap();
        }
        trace.write(&Ranks::Alone).unwrap();
        trace
    }

    #[test]
    fn a_process_that_restarts_after_the_last_step_keeps_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json");
        after(1..=4, &path).finish().unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        assert_eq!(written.matches("forward").count(), 2, "{written}");

        after(3..=4, &path).finish().unwrap();

        assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
    }

    #[test]
    fn a_failed_write_is_reported_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let error = after(1..=4, &folder.path().join("none/trace.json")).finish().unwrap_err().to_string();
        assert!(error.contains("none/trace.json"), "{error}");
    }
}
