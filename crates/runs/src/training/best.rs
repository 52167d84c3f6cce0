//! The validated epochs of a training, and the best: that with the lowest validation loss, whose weights are in the model.

use std::fs;
use std::path::Path;

use super::{EpochLine, Line, METRICS};
use scoring::{Measured, Metrics};

/// The epochs so far and their metrics of the validation split, from the events in a training folder. None without a
/// validation split, and if the events cannot be read.
pub fn validated_epochs(folder: &Path) -> Vec<(u32, Metrics)> {
    epochs_of(&fs::read_to_string(folder.join(METRICS)).unwrap_or_default())
}

/// The best of [`validated_epochs`].
pub fn best_epoch(folder: &Path) -> Option<(u32, Metrics)> {
    best_of(validated_epochs(folder))
}

fn best_of(epochs: Vec<(u32, Metrics)>) -> Option<(u32, Metrics)> {
    // Of equal losses, the first is the lowest, as in the training loop.
    epochs.into_iter().min_by(|(_, one), (_, other)| one.loss.total_cmp(&other.loss))
}

fn epochs_of(lines: &str) -> Vec<(u32, Metrics)> {
    let mut epochs: Vec<(u64, u32, Metrics)> = Vec::new();
    // A killed training can leave half a line.
    for line in lines.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        match line {
            Line::Start { step, .. } => epochs.retain(|(at, ..)| *at <= step),
            Line::Epoch(EpochLine { step, epoch, validation: Some(Measured::Few(metrics)), .. }) => {
                epochs.retain(|(_, earlier, _)| *earlier < epoch);
                epochs.push((step, epoch, metrics));
            }
            _ => {}
        }
    }
    epochs.into_iter().map(|(_, epoch, metrics)| (epoch, metrics)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(epoch: u32, loss: f64) -> String {
        let confusion = r#"{"true_negative":1,"false_positive":0,"false_negative":0,"true_positive":1}"#;
        format!(
            r#"{{"event":"epoch","epoch":{epoch},"step":{},"loss":0.5,"validation":{{"loss":{loss},"accuracy":1.0,
            "f1":1.0,"precision":1.0,"recall":1.0,"auc":1.0,"confusion":{confusion},"rows":2}}}}"#,
            10 * epoch
        )
        .replace('\n', "")
    }

    fn start(step: u32) -> String {
        format!(r#"{{"event":"start","version":2,"unix_s":0.0,"step":{step},"world_size":1,"device":"cpu"}}"#)
    }

    #[test]
    fn the_best_epoch_has_the_lowest_validation_loss_of_the_epochs_that_count() {
        let best = |lines: &[String]| {
            best_of(epochs_of(&lines.join("\n"))).map(|(epoch, metrics)| (epoch, metrics.loss))
        };
        assert_eq!(best(&[start(0)]), None);
        let first = [start(0), epoch(1, 0.4), epoch(2, 0.2), epoch(3, 0.2)];
        assert_eq!(best(&first), Some((2, 0.2)));
        // A process that resumes from step 15 repeats the second epoch.
        let resumed = [&first[..], &[start(15), epoch(2, 0.5), "{\"event\":\"epo".to_owned()]].concat();
        assert_eq!(best(&resumed), Some((1, 0.4)));
    }
}
