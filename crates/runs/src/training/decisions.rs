//! The decisions about shares in a training's metrics.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use batches::balance::Decision;
use serde_json::Value;

use super::{Line, METRICS};
use crate::error::{Error, Result};

/// The decisions of a training, without those after a checkpoint from which it was resumed. A decision replaces those for
/// the same and later batches: a training that was resumed in another folder repeats the decisions of its checkpoint.
/// Half a line, which a killed training may leave, is skipped. Decisions of older versions, which divided rows and not
/// tokens, are refused.
pub fn decisions(folder: &Path) -> Result<Vec<Decision>> {
    let path = folder.join(METRICS);
    let failed = |source| Error::io(&path, source);
    let mut found: Vec<(u64, Decision)> = Vec::new();
    for line in BufReader::new(File::open(&path).map_err(failed)?).split(b'\n') {
        let line = line.map_err(failed)?;
        match serde_json::from_slice(&line) {
            Ok(Line::Start { step, .. }) => found.retain(|(decided, _)| *decided <= step),
            Ok(Line::Shares { step, decision }) => {
                found.retain(|(_, before)| before.from_batch < decision.from_batch);
                found.push((step, decision));
            }
            Ok(_) => {}
            Err(error) => {
                let line: Value = serde_json::from_slice(&line).unwrap_or_default();
                if line["event"] == "shares" {
                    let found =
                        format!("a decision of another version of this program: {error}; train again");
                    return Err(Error::unreadable(&path, &found));
                }
            }
        }
    }
    Ok(found.into_iter().map(|(_, decision)| decision).collect())
}

#[cfg(test)]
mod tests {
    use batches::balance::Reason;

    use super::*;

    fn decision(from_batch: u64) -> Decision {
        Decision { from_batch, parts: vec![3, 5], reason: Reason::Faster { before: 20, after: 10 } }
    }

    fn start(step: u64) -> Line {
        Line::Start { version: 2, unix_s: 0.0, step, world_size: 2, device: "CPU".to_owned() }
    }

    fn shares(step: u64, from_batch: u64) -> Line {
        Line::Shares { step, decision: decision(from_batch) }
    }

    /// The decisions in these lines, which a part of a line follows.
    fn of(lines: &[Line]) -> Vec<Decision> {
        let lines: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(METRICS), format!("{}\n{{\"event\":\"sha", lines.join("\n")))
            .unwrap();
        decisions(folder.path()).unwrap()
    }

    #[test]
    fn decisions_after_the_checkpoint_of_a_resumed_training_are_void() {
        let found = of(&[start(0), shares(5, 11), shares(25, 31), start(20), shares(22, 28)]);
        assert_eq!(found, [decision(11), decision(28)]);
    }

    #[test]
    fn decisions_that_are_repeated_replace_those_before() {
        let found =
            of(&[start(20), shares(20, 11), start(20), shares(20, 5), shares(20, 11), shares(22, 28)]);
        assert_eq!(found, [decision(5), decision(11), decision(28)]);
    }

    #[test]
    fn decisions_of_another_version_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(decisions(&folder.path().join("none")).is_err());

        let older = r#"{"event":"shares","step":3,"decision":{"from_step":9,"sizes":[5,3],"reason":{"epoch":{"left_out":0}}}}"#;
        std::fs::write(folder.path().join(METRICS), older).unwrap();
        let error = decisions(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("a decision of another version of this program: missing field `from_batch`"),
            "{error}"
        );
    }
}
