//! What the ranks tell each other after a step, or at the end of a round.

use batches::balance::Measured;
use launch::interrupt::Requested;

use crate::error::Result;
use crate::ranks::Ranks;

/// What a rank sends to the others in a step, or at the end of a round.
pub(super) struct Own {
    /// Weighted sum of the losses of its share.
    pub loss: f64,
    /// What was requested.
    pub asked: Option<Requested>,
    /// Its mean share of a batch.
    pub measured: Measured,
    /// Work of a share that did not fit into memory.
    pub failed: Option<u64>,
    /// Whether it knows of ranks that wait to join.
    pub has_arrivals: bool,
    /// Its announcement of an exchange.
    pub announcement: Vec<u8>,
}

/// Values that are equal on all ranks after a step.
#[derive(Default)]
pub(super) struct Agreed {
    /// Weighted sum of the step's losses.
    pub loss: f64,
    /// What any rank requested.
    pub asked: Option<Requested>,
    /// Whether any rank knows of ranks that wait to join.
    pub has_arrivals: bool,
    /// The time of each rank.
    pub measured: Vec<Measured>,
    /// Work of a share that did not fit into memory, by rank.
    pub failed: Vec<Option<u64>>,
    /// The announcements of all ranks.
    pub announced: Vec<Vec<u8>>,
}

/// A small exchange among the ranks: losses, times and requests.
pub(super) fn agree(ranks: &Ranks, own: &Own) -> Result<Agreed> {
    let asked_for = |what| f64::from(u8::from(own.asked == Some(what)));
    // Integers below 2^53 are exact: more than a hundred days in nanoseconds.
    let Measured { rows, work, nanoseconds } = own.measured;
    let [rows, work, nanoseconds, failed] =
        [rows as u64, work, nanoseconds, own.failed.unwrap_or(0)].map(|number| number as f64);
    let [stop, checkpoint] = [Requested::Stop, Requested::Checkpoint].map(asked_for);
    let arrivals = f64::from(u8::from(own.has_arrivals));
    let numbers = [own.loss, stop, checkpoint, arrivals, rows, work, nanoseconds, failed];
    let mut agreed = Agreed::default();
    // Summed in rank order, so that all ranks get identical bits.
    for (numbers, announcement) in ranks.gather(numbers, &own.announcement)? {
        let [loss, stop, checkpoint, arrivals, rows, work, nanoseconds, failed] = numbers;
        agreed.has_arrivals |= arrivals > 0.0;
        agreed.announced.push(announcement);
        let [work, nanoseconds, failed] = [work, nanoseconds, failed].map(|number| number as u64);
        agreed.measured.push(Measured { rows: rows as usize, work, nanoseconds });
        agreed.failed.push(Some(failed).filter(|&failed| failed > 0));
        agreed.loss += loss;
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
