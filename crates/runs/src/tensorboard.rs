//! Writes TensorBoard event files: TFRecord frames, each with a protocol buffer of one step's values.
//!
//! ```text
//! length u64 · its masked CRC-32C u32 · the event, `length` bytes · its masked CRC-32C u32      little-endian
//! ```
//!
//! The messages contain the required fields of TensorFlow's `event.proto` and `summary.proto`. Each process writes
//! its own file. TensorBoard joins the files of a folder. If a later file starts at an earlier step, its values
//! replace those of earlier files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crc_fast::{CrcAlgorithm, checksum};
use prost::Message;

use crate::training::{EpochLine, Line, PipLine, SimilarityLine, StepsLine, TokensLine};

/// TensorFlow adds this constant to a CRC, because the CRC of data that contains CRCs is unreliable.
const MASK: u32 = 0xa282_ead8;

/// A file that events are appended to.
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Creates a file in this folder, for the events after `step` steps.
    pub fn create(folder: &Path, step: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let now = unix_s();
        // TensorBoard finds files by `tfevents` in their names, and reads them in name order.
        let name = format!(
            "events.out.tfevents.{:010}.{:09}.{}.sentimill",
            now as u64,
            (now.fract() * 1e9) as u64,
            std::process::id()
        );
        let path = folder.join(name);
        let file = File::options().append(true).create_new(true).open(&path)?;
        let mut events = Self { path, file };
        events.write(&Event { file_version: Some("brain.Event:2".to_owned()), ..Event::at(now, 0) })?;
        let start = SessionLog { status: SESSION_START };
        events.write(&Event { session_log: Some(start), ..Event::at(now, step + 1) })?;
        Ok(events)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the values of a line, if it has any.
    pub fn add(&mut self, line: &Line) -> io::Result<()> {
        let value = |(tag, value): (String, f64)| Value { tag, simple_value: Some(value as f32) };
        let values: Vec<Value> = scalars(line).into_iter().map(value).collect();
        if values.is_empty() {
            return Ok(());
        }
        self.write(&Event { summary: Some(Summary { value: values }), ..Event::at(unix_s(), line.step()) })
    }

    /// Writes a record in one call. A killed process leaves at most a partial record, where TensorBoard stops
    /// reading.
    fn write(&mut self, event: &Event) -> io::Result<()> {
        self.file.write_all(&framed(&event.encode_to_vec()))
    }
}

fn framed(event: &[u8]) -> Vec<u8> {
    let length = (event.len() as u64).to_le_bytes();
    let mut record = length.to_vec();
    record.extend(masked_crc(&length).to_le_bytes());
    record.extend(event);
    record.extend(masked_crc(event).to_le_bytes());
    record
}

fn masked_crc(bytes: &[u8]) -> u32 {
    let crc = checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32;
    crc.rotate_right(15).wrapping_add(MASK)
}

fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Tags and values of a line.
fn scalars(line: &Line) -> Vec<(String, f64)> {
    let mut scalars: Vec<(String, f64)> = Vec::new();
    let mut add = |tag: &str, value: f64| scalars.push((tag.to_owned(), value));
    match line {
        Line::Start { .. } | Line::Lost { .. } | Line::Joined { .. } => {}
        Line::Shares { decision, .. } => {
            for (rank, part) in decision.fractions().enumerate() {
                add(&format!("rank_{rank}/share"), part);
            }
        }
        Line::Tokens(TokensLine { loss, tokens_per_s, words, skipped_lines, .. }) => {
            if let Some(loss) = loss {
                add("training/loss", *loss);
            }
            add("speed/tokens_per_s", *tokens_per_s);
            add("vocabulary/words", *words as f64);
            add("input/skipped_lines", *skipped_lines as f64);
        }
        Line::Similarity(SimilarityLine { file, spearman, .. }) => {
            if let Some(spearman) = spearman {
                let name = file.rsplit('/').next().unwrap_or(file);
                add(&format!("similarity/{name}"), *spearman);
            }
        }
        Line::HeldOut { loss, .. } => add("held_out/loss", *loss),
        Line::Pip(PipLine { loss, .. }) => add("similarity/pip_loss", *loss),
        Line::Steps(StepsLine {
            loss,
            rate,
            gradient_norm,
            drift,
            reviews_per_s,
            waited_share,
            shares,
            ..
        }) => {
            add("training/loss", *loss);
            add("training/rate", *rate);
            if let Some(norm) = gradient_norm {
                add("training/gradient_norm", *norm);
            }
            if let Some(drift) = drift {
                add("training/drift", *drift);
            }
            add("speed/reviews_per_s", *reviews_per_s);
            add("speed/waited_share", *waited_share);
            for (rank, share) in shares.iter().enumerate() {
                add(&format!("rank_{rank}/share_rows"), share.rows);
                if let Some(work) = share.work {
                    add(&format!("rank_{rank}/share_work"), work);
                }
                add(&format!("rank_{rank}/share_computed_s"), share.computed_s);
                add(&format!("rank_{rank}/share_rest_s"), share.rest_s);
            }
        }
        Line::Epoch(EpochLine { loss, seconds, validation, test, ranks, .. }) => {
            if let Some(loss) = loss {
                add("training/epoch_loss", *loss);
            }
            if let Some(seconds) = seconds {
                add("speed/epoch_seconds", *seconds);
            }
            if let Some(metrics) = validation {
                add_metrics("validation", metrics, &mut add);
            }
            // Another name than that of the final test, which has the same step as the last epoch.
            if let Some(metrics) = test {
                add_metrics("test_by_epoch", metrics, &mut add);
            }
            for times in ranks.iter().filter(|times| times.seconds > 0.0) {
                let tag = |what: &str| format!("rank_{}/{what}", times.rank);
                add(&tag("reviews_per_s"), times.rows as f64 / times.seconds);
                add(&tag("waited_for_batches_share"), times.waited_for_batches_s / times.seconds);
                if let Some(waited_s) = times.waited_for_ranks_s {
                    add(&tag("waited_for_ranks_share"), waited_s / times.seconds);
                }
                if let Some(profile) = &times.profile {
                    for (phase, seconds) in profile.phases() {
                        add(&tag(&format!("{phase}_share")), seconds / times.seconds);
                    }
                    add(&tag("sent_bytes"), profile.sent_bytes as f64);
                }
            }
        }
        Line::Test { metrics, .. } => add_metrics("test", metrics, &mut add),
    }
    scalars
}

fn add_metrics(part: &str, metrics: &scoring::Measured, add: &mut impl FnMut(&str, f64)) {
    for (name, number) in metrics.named() {
        let is_mean = metrics.has_classes() && ["f1", "precision", "recall"].contains(&name);
        if let Some(number) = number {
            add(&format!("{part}/{}{name}", if is_mean { "macro_" } else { "" }), number);
        }
    }
}

const SESSION_START: i32 = 1;

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(string, optional, tag = "3")]
    file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
    #[prost(message, optional, tag = "7")]
    session_log: Option<SessionLog>,
}

impl Event {
    fn at(wall_time: f64, step: u64) -> Self {
        Self { wall_time, step: step as i64, ..Self::default() }
    }
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct SessionLog {
    #[prost(int32, tag = "1")]
    status: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_matches_tensorflows_bytes() {
        // The first bytes of a file written by TensorFlow: an event of 24 bytes with wall time and version.
        let event = Event { file_version: Some("brain.Event:2".to_owned()), ..Event::at(1.5, 0) };
        let record = framed(&event.encode_to_vec());
        assert_eq!(&record[..12], b"\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22");
        assert_eq!(&record[12..21], b"\x09\0\0\0\0\0\0\xf8\x3f");
        assert_eq!(&record[21..36], b"\x1a\x0dbrain.Event:2");
        assert_eq!(record.len(), 8 + 4 + 24 + 4);
    }

    #[test]
    fn a_masked_crc_matches_tensorflows() {
        // The CRC-32C of "123456789" is e3069283.
        assert_eq!(masked_crc(b"123456789"), 0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8));
    }

    #[test]
    fn means_over_classes_have_their_own_names() {
        let line = r#"{"event":"test","step":9,"metrics":{"loss":0.5,"accuracy":0.5,"f1":0.25,"precision":0.75,
            "recall":0.125,"auc":null,"confusion":[[1,0,0],[0,1,0],[1,1,0]],"rows":4}}"#;
        let line: Line = serde_json::from_str(line).unwrap();
        let found: Vec<String> = scalars(&line).iter().map(|(tag, value)| format!("{tag} {value}")).collect();
        assert_eq!(
            found,
            [
                "test/loss 0.5",
                "test/accuracy 0.5",
                "test/macro_f1 0.25",
                "test/macro_precision 0.75",
                "test/macro_recall 0.125"
            ]
        );
    }

    #[test]
    fn a_line_becomes_its_scalars() {
        let line = r#"{"event":"epoch","epoch":1,"step":9,"loss":0.5,"seconds":2.0,
            "ranks":[{"rank":0,"rows":10,"seconds":2.0,"waited_for_batches_s":0.5,"waited_for_ranks_s":null}]}"#;
        let line: Line = serde_json::from_str(line).unwrap();
        let found: Vec<String> = scalars(&line).iter().map(|(tag, value)| format!("{tag} {value}")).collect();
        assert_eq!(
            found,
            [
                "training/epoch_loss 0.5",
                "speed/epoch_seconds 2",
                "rank_0/reviews_per_s 5",
                "rank_0/waited_for_batches_share 0.25"
            ]
        );
    }
}
