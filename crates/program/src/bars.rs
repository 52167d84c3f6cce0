//! Shows the progress of long work. On a terminal, it is a bar with rate and remaining time; elsewhere, it is
//! a line every 30 seconds.

use std::fmt;
use std::io::{self, IsTerminal, Read, Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// Time between two lines of a stage.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Progress output of a program.
pub struct ProgressBars {
    program: &'static str,
    shown: Shown,
}

enum Shown {
    Bars,
    Lines,
    Nothing,
}

/// The unit of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Items,
    Bytes,
}

impl ProgressBars {
    /// Shows bars if standard error is a terminal, else lines.
    pub fn to_stderr(program: &'static str) -> Self {
        Self { program, shown: if stderr().is_terminal() { Shown::Bars } else { Shown::Lines } }
    }

    /// Shows nothing, for --quiet and for a caller with its own progress output.
    pub fn to_nobody() -> Self {
        Self { program: "", shown: Shown::Nothing }
    }

    /// Starts a stage with this number of items.
    pub fn stage(&self, doing: &str, items: u64) -> Stage {
        self.line(&format!("{doing} ({items})"));
        self.begin(doing, Unit::Items, Some(items))
    }

    /// Starts a stage that reads bytes. `bytes` is their number, if it is known.
    pub fn reading(&self, bytes: Option<u64>) -> Stage {
        self.line(&bytes.map_or_else(|| "reading".to_owned(), |bytes| format!("reading ({bytes} bytes)")));
        self.begin("reading", Unit::Bytes, bytes)
    }

    /// Starts a stage that downloads a file of this number of bytes, if it is known.
    pub fn fetching(&self, bytes: Option<u64>) -> Stage {
        self.begin("fetching", Unit::Bytes, bytes)
    }

    /// Starts a stage that sends this number of bytes to a store.
    pub fn storing(&self, bytes: u64) -> Stage {
        self.line(&format!("storing ({bytes} bytes)"));
        self.begin("storing", Unit::Bytes, Some(bytes))
    }

    /// Counts the bytes that are read from a stream. A short stream has no line.
    pub fn counting<R: Read>(&self, stream: R) -> Counting<R> {
        Counting { stream, bytes: 0, stage: self.begin("reading", Unit::Bytes, None) }
    }

    /// Prints an informational line, except with --quiet.
    pub fn notice(&self, notice: &str) {
        if !matches!(self.shown, Shown::Nothing) {
            print_line(self.program, notice);
        }
    }

    /// Prints a line, except on a terminal, where the bar has its content, and with --quiet.
    pub fn line(&self, text: &str) {
        if let Shown::Lines = self.shown {
            print_line(self.program, text);
        }
    }

    fn begin(&self, doing: &str, unit: Unit, total: Option<u64>) -> Stage {
        let lines = || Lines {
            program: self.program,
            doing: doing.to_owned(),
            unit,
            total,
            begin: Instant::now(),
            last: Mutex::new(Instant::now()),
        };
        let (bar, lines) = match self.shown {
            Shown::Bars => (bar(doing, unit, total), None),
            Shown::Lines => (ProgressBar::hidden(), Some(lines())),
            Shown::Nothing => (ProgressBar::hidden(), None),
        };
        Stage { bar, lines }
    }
}

fn bar(doing: &str, unit: Unit, total: Option<u64>) -> ProgressBar {
    let template = match (unit, total) {
        (Unit::Items, _) => "{msg:24} {wide_bar} {human_pos}/{human_len} {rate} {eta} left",
        (Unit::Bytes, Some(_)) => "{msg:24} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
        (Unit::Bytes, None) => "{msg:24} {bytes} {bytes_per_sec} in {elapsed}",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
    bar.with_style(style.with_key("rate", write_rate)).with_message(doing.to_owned())
}

/// Writes the items per second as a whole number; `{per_sec}` has four decimals.
fn write_rate(state: &ProgressState, output: &mut dyn fmt::Write) {
    // A string can always be written to.
    let _ = write!(output, "{}/s", HumanCount(state.per_sec() as u64));
}

/// A stage of the work.
pub struct Stage {
    bar: ProgressBar,
    lines: Option<Lines>,
}

impl Stage {
    /// Sets the number of units that are done.
    pub fn set_position(&self, done: u64) {
        self.bar.set_position(done);
        if let Some(lines) = &self.lines {
            lines.report(done, Instant::now());
        }
    }

    /// Adds units that are done.
    pub fn inc(&self, units: u64) {
        self.set_position(self.bar.position() + units);
    }

    /// Sets the text before the bar.
    pub fn set_message(&self, message: String) {
        self.bar.set_message(message);
    }

    /// Ends the stage and removes its bar.
    pub fn finish_and_clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The lines of a stage without a terminal.
struct Lines {
    program: &'static str,
    doing: String,
    unit: Unit,
    total: Option<u64>,
    begin: Instant,
    /// Time at which the last line was printed; before the first line, the start of the stage.
    last: Mutex<Instant>,
}

impl Lines {
    fn report(&self, done: u64, now: Instant) {
        if self.is_due(now) {
            let text = line(&self.doing, self.unit, done, self.total, now.duration_since(self.begin));
            print_line(self.program, &text);
        }
    }

    /// Whether a line is due; then the next one is due 30 seconds later.
    fn is_due(&self, now: Instant) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = now.saturating_duration_since(*last) >= LINE_EVERY;
        if is_due {
            *last = now;
        }
        is_due
    }
}

/// The text of a line: `writing rows: 45 % (450000 of 1000000, 15000/s, 37 seconds left)`.
fn line(doing: &str, unit: Unit, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let shown = |amount: u64| match unit {
        Unit::Items => amount.to_string(),
        Unit::Bytes => HumanBytes(amount).to_string(),
    };
    let per_s = done as f64 / elapsed.as_secs_f64().max(f64::EPSILON);
    let rate = shown(per_s as u64);
    match total {
        Some(total) if done == 0 => format!("{doing}: 0 % (0 of {})", shown(total)),
        Some(total) if total > 0 => {
            let percent = 100 * done.min(total) / total;
            let left_s = total.saturating_sub(done) as f64 / per_s.max(f64::EPSILON);
            let left = Duration::try_from_secs_f64(left_s.ceil()).unwrap_or(Duration::MAX);
            let (done, total, left) = (shown(done), shown(total), HumanDuration(left));
            format!("{doing}: {percent} % ({done} of {total}, {rate}/s, {left} left)")
        }
        _ => format!("{doing}: {} ({rate}/s)", shown(done)),
    }
}

fn print_line(program: &str, text: &str) {
    // A closed standard error does not stop the work. The line is one write, so that lines of other programs
    // cannot interrupt it.
    let _ = stderr().write_all(format!("{program}: {text}\n").as_bytes());
}

/// A stream whose bytes are counted.
pub struct Counting<R> {
    stream: R,
    bytes: u64,
    stage: Stage,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.stream.read(buffer)?;
        self.bytes += n as u64;
        match n {
            0 => self.stage.finish_and_clear(),
            _ => self.stage.set_position(self.bytes),
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_share_the_rate_and_the_time_left() {
        let elapsed = Duration::from_secs(30);
        assert_eq!(
            line("writing rows", Unit::Items, 450_000, Some(1_000_000), elapsed),
            "writing rows: 45 % (450000 of 1000000, 15000/s, 37 seconds left)"
        );
        assert_eq!(
            line("reading", Unit::Bytes, 3 << 30, Some(4 << 30), elapsed),
            "reading: 75 % (3.00 GiB of 4.00 GiB, 102.40 MiB/s, 10 seconds left)"
        );
        assert_eq!(line("reading", Unit::Bytes, 30 << 20, None, elapsed), "reading: 30.00 MiB (1.00 MiB/s)");
    }

    #[test]
    fn a_line_without_progress_has_no_time_left() {
        let waiting = line("shards", Unit::Items, 0, Some(64), LINE_EVERY);
        assert_eq!(waiting, "shards: 0 % (0 of 64)");
    }

    #[test]
    fn a_line_without_progress_or_units_divides_by_nothing() {
        for (done, total, elapsed) in
            [(0, Some(10), Duration::ZERO), (0, Some(0), Duration::ZERO), (5, Some(3), LINE_EVERY)]
        {
            assert!(line("x", Unit::Items, done, total, elapsed).starts_with("x: "));
        }
    }

    #[test]
    fn a_line_is_due_every_30_seconds() {
        let begin = Instant::now();
        let lines = Lines {
            program: "test",
            doing: "reading".to_owned(),
            unit: Unit::Bytes,
            total: None,
            begin,
            last: Mutex::new(begin),
        };
        let due = [0, 29, 30, 31, 59, 60, 100, 101].map(|s| lines.is_due(begin + Duration::from_secs(s)));
        assert_eq!(due, [false, false, true, false, false, true, true, false]);
    }

    #[test]
    fn a_counted_stream_is_unchanged() {
        let mut read = Vec::new();
        let mut counting = ProgressBars::to_nobody().counting(&b"some bytes"[..]);
        counting.read_to_end(&mut read).unwrap();
        assert_eq!((&read[..], counting.bytes, counting.stage.bar.position()), (&b"some bytes"[..], 10, 10));
    }
}
