//! The sentence below the title: the accuracy, and the best run.

use super::{are_comparable, part_name};
use crate::numbers::{counted, percent, whole};
use crate::run::{Evaluated, Run};

/// Returns the sentence.
pub fn lead(runs: &[Run]) -> String {
    if let Some(lead) = super::folds::lead(runs) {
        return lead;
    }
    let tested: Vec<(&Run, Evaluated)> = runs.iter().filter_map(|run| Some((run, run.rates()?))).collect();
    match (runs, &tested[..]) {
        ([_], [(_, metrics)]) => {
            let part = part_name(metrics.part);
            format!(
                "{} of {} {part} rows are predicted correctly. {}",
                percent(metrics.accuracy),
                whole(metrics.rows),
                majority(metrics)
            )
        }
        ([run], _) if run.is_of_words() => {
            "A next-word model, for the initial weights of other trainings; it has no accuracy.".to_owned()
        }
        ([run], _) if run.is_of_vectors() => of_vectors(run),
        ([_], _) => "No metrics of held-out rows yet.".to_owned(),
        (runs, []) if runs.iter().all(Run::is_of_vectors) => {
            format!("{} trainings of word vectors.", runs.len())
        }
        (_, []) => "None of these trainings has metrics of held-out rows.".to_owned(),
        (_, [(run, metrics)]) => format!(
            "{} has {} accuracy; no other training has metrics of held-out rows.",
            run.name,
            percent(metrics.accuracy)
        ),
        (_, tested) => {
            let mut order: Vec<&(&Run, Evaluated)> = tested.iter().collect();
            order.sort_by(|one, other| other.1.accuracy.total_cmp(&one.1.accuracy));
            // At least two runs.
            let ((best, of_best), (next, of_next)) = (order[0], order[1]);
            let points = 100.0 * (of_best.accuracy - of_next.accuracy);
            let accuracy = percent(of_best.accuracy);
            let why = match are_comparable(runs) {
                Some(true) => None,
                Some(false) => Some(
                    "They were tested on different rows or classes, so these numbers cannot be compared.",
                ),
                None => Some(
                    "It is not known whether they were tested on the same rows, so do not compare these numbers.",
                ),
            };
            if let Some(why) = why {
                let of_next = percent(of_next.accuracy);
                return format!("{} has {accuracy} accuracy, {} has {of_next}. {why}", best.name, next.name);
            }
            let baseline = if of_best.accuracy > of_best.baseline {
                String::new()
            } else {
                format!(" {}", majority(of_best))
            };
            // Half of the 95 % interval of one accuracy.
            let error = 196.0 * (of_best.accuracy * (1.0 - of_best.accuracy) / of_best.rows as f64).sqrt();
            let within = if points < error {
                format!(", within the sampling error of {} rows, ± {error:.1} points", whole(of_best.rows))
            } else {
                String::new()
            };
            format!(
                "{} is ahead, with {accuracy} accuracy, {points:.1} points before {}{within}.{baseline}",
                best.name, next.name
            )
        }
    }
}

fn of_vectors(run: &Run) -> String {
    let tokens = counted(run.last_step, "token");
    match &run.words {
        Some(words) => {
            let n_words = counted(words.n_words, "word");
            format!("Vectors of {n_words} with {} dimensions, from {tokens}.", words.dim)
        }
        None => format!("Word vectors, from {tokens} so far."),
    }
}

/// The accuracy of always predicting the most frequent label.
fn majority(of: &Evaluated) -> String {
    format!("A model that always answers {} is right for {}.", of.largest, percent(of.baseline))
}
