//! The decisions about shares in a training's metrics.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use balance::Decision;
use serde_json::Value;

use super::{Line, METRICS};
use crate::error::{Error, Result};

/// The decisions of a training, without those after a checkpoint from which it was resumed. Half a line, which a killed
/// training may leave, is skipped. Decisions of older versions, which divided rows and not tokens, are refused.
pub fn decisions(folder: &Path) -> Result<Vec<Decision>> {
    let path = folder.join(METRICS);
    let failed = |source| Error::io(&path, source);
    let mut found: Vec<(u64, Decision)> = Vec::new();
    for line in BufReader::new(File::open(&path).map_err(failed)?).split(b'\n') {
        let line = line.map_err(failed)?;
        match serde_json::from_slice(&line) {
            Ok(Line::Start { step, .. }) => found.retain(|(decided, _)| *decided <= step),
            Ok(Line::Shares { step, decision }) => found.push((step, decision)),
            Ok(_) => {}
            Err(error) => {
                let line: Value = serde_json::from_slice(&line).unwrap_or_default();
                if line["event"] == "shares" {
                    let found =
                        format!("a decision of another version of this program: {error}; train again");
                    return Err(Error::Unreadable { path, found });
                }
            }
        }
    }
    Ok(found.into_iter().map(|(_, decision)| decision).collect())
}

#[cfg(test)]
mod tests {
    use balance::Reason;

    use super::*;

    #[test]
    fn decisions_after_the_checkpoint_of_a_resumed_training_are_void() {
        let decision = |from_batch| Decision {
            from_batch,
            parts: vec![3, 5],
            reason: Reason::Faster { before: 20, after: 10 },
        };
        let start =
            |step| Line::Start { version: 2, unix_s: 0.0, step, world_size: 2, device: "CPU".to_owned() };
        let shares = |step, from_batch| Line::Shares { step, decision: decision(from_batch) };
        let lines = [start(0), shares(5, 11), shares(25, 31), start(20), shares(22, 28)];
        let lines: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(METRICS), format!("{}\n{{\"event\":\"sha", lines.join("\n")))
            .unwrap();
        assert_eq!(decisions(folder.path()).unwrap(), [decision(11), decision(28)]);
        assert!(decisions(&folder.path().join("none")).is_err());

        let older = r#"{"event":"shares","step":3,"decision":{"from_step":9,"sizes":[5,3],"reason":{"epoch":{"left_out":0}}}}"#;
        std::fs::write(folder.path().join(METRICS), older).unwrap();
        let told = decisions(folder.path()).unwrap_err().to_string();
        assert!(
            told.contains("a decision of another version of this program: missing field `from_batch`"),
            "{told}"
        );
    }
}
