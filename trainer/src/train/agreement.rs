//! What the ranks tell each other after a step, or at the end of a round.

use batches::balance::Measured;
use launch::interrupt::Requested;

use crate::error::Result;
use crate::ranks::Ranks;

/// What a rank sends to the others in a step, or at the end of a round.
pub(super) struct Own {
    /// Weighted sum of the losses of its share.
    pub loss: f64,
    /// Number of words with gradients.
    pub n_touched: usize,
    /// What was requested.
    pub asked: Option<Requested>,
    /// Its mean share of a batch.
    pub measured: Measured,
    /// Work of a share that did not fit into memory.
    pub failed: Option<u64>,
}

/// Values that are equal on all ranks after a step.
pub(super) struct Agreed {
    /// Weighted sum of the step's losses.
    pub loss: f64,
    /// What any rank requested.
    pub asked: Option<Requested>,
    /// Number of words with gradients on each rank.
    pub n_touched: Vec<usize>,
    /// The time of each rank.
    pub measured: Vec<Measured>,
    /// Work of a share that did not fit into memory, by rank.
    pub failed: Vec<Option<u64>>,
}

/// A small exchange among the ranks: losses, words with gradients, times and requests.
pub(super) fn agree(ranks: &Ranks, own: &Own) -> Result<Agreed> {
    let asked_for = |what| f64::from(u8::from(own.asked == Some(what)));
    // Integers below 2^53 are exact: more than a hundred days in nanoseconds.
    let Measured { rows, work, nanoseconds } = own.measured;
    let [n_touched, rows] = [own.n_touched, rows].map(|number| number as f64);
    let [work, nanoseconds, failed] =
        [work, nanoseconds, own.failed.unwrap_or(0)].map(|number| number as f64);
    let [stop, checkpoint] = [Requested::Stop, Requested::Checkpoint].map(asked_for);
    let own = [own.loss, n_touched, stop, checkpoint, rows, work, nanoseconds, failed];
    let mut agreed =
        Agreed { loss: 0.0, asked: None, n_touched: Vec::new(), measured: Vec::new(), failed: Vec::new() };
    // Summed in rank order, so that all ranks get identical bits.
    for [loss, n_touched, stop, checkpoint, rows, work, nanoseconds, failed] in ranks.gather_f64(own)? {
        let [work, nanoseconds, failed] = [work, nanoseconds, failed].map(|number| number as u64);
        agreed.measured.push(Measured { rows: rows as usize, work, nanoseconds });
        agreed.failed.push(Some(failed).filter(|&failed| failed > 0));
        agreed.loss += loss;
        agreed.n_touched.push(n_touched as usize);
        if stop > 0.0 {
            agreed.asked = Some(Requested::Stop);
        } else if checkpoint > 0.0 {
            agreed.asked = agreed.asked.or(Some(Requested::Checkpoint));
        }
    }
    Ok(agreed)
}

/// The request that matters more.
pub(super) fn later(asked: Option<Requested>, before: Option<Requested>) -> Option<Requested> {
    if before == Some(Requested::Stop) { before } else { asked.or(before) }
}
