//! Sums of rows over the ranks. Each row has an owner among the ranks. All ranks send it their rows; it adds them up in rank
//! order, and sends the sums to all. Rows that no rank has are not sent.
//!
//! Rows are numbered, and row i belongs to rank i modulo the number of ranks: frequent words have low numbers, so this spreads
//! them evenly. Before the exchange, each rank announces which rows it has ([`announcement`]), so that all know what follows.
//!
//! With a lossy [`Wire`], a rank keeps the difference between a row and what it has sent of it, and adds it to the next one with
//! this number (error feedback, Seide et al. 2014; Karimireddy et al. 2019); the owner does so with the sums.

mod table;
mod wire;

use c10d::ProcessGroup;
use runs::recipe::Wire;
use tch::Tensor;

pub(crate) use self::table::Table;
use self::wire::Coding;
use crate::error::{Error, Result};

/// The sums of rows. The same bits on all ranks.
pub(crate) struct Summed {
    /// The rows that any rank had.
    pub ids: Tensor,
    /// Their sums or means, `[ids, width]`.
    pub rows: Tensor,
    /// Number of bytes that this rank sent.
    pub sent: u64,
}

/// What an exchange computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    /// The sum of the rows of all ranks.
    Sums,
    /// Their mean with the weights of the ranks. A rank that does not have a row counts as zeros.
    Means,
    /// The mean over the ranks that have the row.
    MeansOfHolders,
}

/// The exchange of a rank.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'r> {
    group: &'r ProcessGroup,
    coding: Coding,
}

impl<'r> Exchange<'r> {
    pub(crate) fn new(group: &'r ProcessGroup, wire: Wire) -> Self {
        Self { group, coding: Coding(wire) }
    }

    /// Number of ranks.
    pub(crate) fn world_size(&self) -> usize {
        self.group.world_size()
    }

    /// Checks without communication that no call has failed and no rank is lost.
    pub(crate) fn check(&self) -> Result<()> {
        Ok(self.group.check()?)
    }

    /// Sums the rows of a table over all ranks, of which `announced` has the [`announcement`]s. `unsent` is what was not sent of
    /// former rows, if the wire is lossy.
    pub(crate) fn sums(
        &self,
        table: &Tensor,
        announced: &[Vec<u8>],
        reduction: Reduction,
        mut unsent: Option<&mut Tensor>,
    ) -> Result<Summed> {
        let (n_rows, width) = table.size2()?;
        let (kind, device, n_ranks) = (table.kind(), table.device(), self.world_size());
        let plan = Plan::of(self.group.rank(), announced, n_rows as usize, reduction)?;
        let numbered = |ids: &[i64]| Tensor::f_from_slice(ids)?.f_to_device(device);

        let ids = numbered(&plan.to_owners.concat())?;
        let mut rows = table.f_index_select(0, &ids)?;
        if let Some(factor) = plan.factor {
            let _ = rows.f_mul_scalar_(factor)?;
        }
        let message = self.coding.sent(&ids, &mut rows, unsent.as_deref_mut(), None)?;
        let received =
            self.group.all_to_all(&message, &lengths(&plan.to_owners), &lengths(&plan.from_ranks))?;
        let rows = self.coding.decoded(&received, width, kind)?;

        // The number of a row of this rank, divided by the number of ranks.
        let own = |ids: &Tensor| ids.f_divide_scalar_mode(n_ranks as i64, "floor");
        let mut sums = Tensor::f_zeros([(n_rows as usize).div_ceil(n_ranks) as i64, width], (kind, device))?;
        let parts: Vec<i64> = plan.from_ranks.iter().map(|rows| rows.len() as i64).collect();
        for (ids, rows) in plan.from_ranks.iter().zip(rows.f_split_with_sizes(&parts[..], 0)?) {
            let _ = sums.f_index_add_(0, &own(&numbered(ids)?)?, &rows)?;
        }
        let held = &plan.held[self.group.rank()];
        let ids = numbered(held)?;
        let mut rows = sums.f_index_select(0, &own(&ids)?)?;
        let divisors = plan.divisors.as_ref().map(|divisors| -> Result<Tensor> {
            Ok(Tensor::f_from_slice(divisors)?.f_to_kind(kind)?.f_to_device(device)?.f_unsqueeze(1)?)
        });
        let divisors = divisors.transpose()?;
        let message = self.coding.sent(&ids, &mut rows, unsent, divisors.as_ref())?;
        let to_each = message.f_repeat([n_ranks as i64, 1])?;
        let all = self.group.all_to_all(&to_each, &vec![held.len(); n_ranks], &lengths(&plan.held))?;

        let to_owners = plan.to_owners.concat().len() - plan.to_owners[self.group.rank()].len();
        let n_rows_sent = to_owners + (n_ranks - 1) * held.len();
        let announced = (n_ranks - 1) * announced[self.group.rank()].len();
        Ok(Summed {
            ids: numbered(&plan.held.concat())?,
            rows: self.coding.decoded(&all, width, kind)?,
            sent: announced as u64 + n_rows_sent as u64 * self.coding.row_bytes(width, kind) as u64,
        })
    }
}

/// Which rows a rank sends and receives. It follows from the announcements.
struct Plan {
    /// This rank's rows, by owner.
    to_owners: Vec<Vec<i64>>,
    /// The rows that this rank owns, by the rank that has them.
    from_ranks: Vec<Vec<i64>>,
    /// The rows that any rank has, by owner.
    held: Vec<Vec<i64>>,
    /// What this rank's rows are multiplied by, for means.
    factor: Option<f64>,
    /// What the sums of the rows that this rank owns are divided by.
    divisors: Option<Vec<f64>>,
}

impl Plan {
    fn of(rank: usize, announced: &[Vec<u8>], n_rows: usize, reduction: Reduction) -> Result<Self> {
        let ranks = announced.iter().map(|bytes| Announced::from_bytes(bytes)).collect::<Result<Vec<_>>>()?;
        let total_weight: f64 = ranks.iter().map(|of_rank| of_rank.weight).sum();
        let mut bits = ranks[rank].bits.to_vec();
        ranks.iter().for_each(|of_rank| bits.iter_mut().zip(of_rank.bits).for_each(|(all, own)| *all |= own));
        let any = Announced { weight: total_weight, bits: &bits };
        let rows_of = |owner: usize, of_rank: &Announced<'_>| -> Vec<i64> {
            let rows = (owner..n_rows).step_by(ranks.len()).filter(|&row| of_rank.has(row));
            rows.map(|row| row as i64).collect()
        };
        let held: Vec<_> = (0..ranks.len()).map(|owner| rows_of(owner, &any)).collect();
        let holders = |row: i64| ranks.iter().filter(move |of_rank| of_rank.has(row as usize));
        let part = |row: &i64| holders(*row).map(|of_rank| of_rank.weight).sum::<f64>() / total_weight;
        Ok(Self {
            to_owners: (0..ranks.len()).map(|owner| rows_of(owner, &ranks[rank])).collect(),
            from_ranks: ranks.iter().map(|of_rank| rows_of(rank, of_rank)).collect(),
            factor: (reduction != Reduction::Sums).then(|| ranks[rank].weight / total_weight),
            divisors: (reduction == Reduction::MeansOfHolders).then(|| held[rank].iter().map(part).collect()),
            held,
        })
    }
}

fn lengths(rows: &[Vec<i64>]) -> Vec<usize> {
    rows.iter().map(Vec::len).collect()
}

/// What a rank with this weight tells the others before an exchange: which of the first rows of its table it has. It has all
/// rows behind them.
pub(crate) fn announcement(weight: f64, has: &[bool]) -> Vec<u8> {
    let bits = has
        .chunks(8)
        .map(|has| (0..8).fold(0, |bits, at| bits | u8::from(has.get(at).is_none_or(|&has| has)) << at));
    weight.to_le_bytes().into_iter().chain(bits).collect()
}

/// An [`announcement`].
struct Announced<'a> {
    weight: f64,
    bits: &'a [u8],
}

impl<'a> Announced<'a> {
    fn from_bytes(bytes: &'a [u8]) -> Result<Self> {
        let (weight, bits) = bytes.split_first_chunk().ok_or_else(|| of_another_version(bytes))?;
        Ok(Self { weight: f64::from_le_bytes(*weight), bits })
    }

    fn has(&self, row: usize) -> bool {
        self.bits.get(row / 8).is_none_or(|bits| bits >> (row % 8) & 1 == 1)
    }
}

fn of_another_version(bytes: &[u8]) -> Error {
    training::Error::setting(
        "a message of another rank",
        format!("{} bytes", bytes.len()),
        "a weight and a bit for each word; start the same version of trainer on all ranks",
    )
    .into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use batches::random::Purpose;
    use c10d::TcpStore;
    use ranks::{as_threads, options};
    use tch::{Device, Kind};

    use super::*;

    const ROWS: i64 = 13;
    const WIDTH: i64 = 5;

    /// The numbers of a rank in a round, which of the first 9 rows it has, and its weight. Row 7 is of no rank.
    fn of_rank(rank: usize, round: u64) -> (Tensor, Vec<bool>, f64) {
        let mut random = Purpose::Order.stream(&[rank as u64, round]);
        let has: Vec<bool> = (0..9).map(|row| row != 7 && (row == 3 || random.below(3) > 0)).collect();
        let numbers: Vec<f64> = (0..ROWS * WIDTH).map(|_| random.below(2001) as f64 / 1000.0 - 1.0).collect();
        (Tensor::from_slice(&numbers).view([ROWS, WIDTH]), has, [5.0, 2.0, 1.0, 2.0][rank])
    }

    fn announced(n_ranks: usize, round: u64) -> Vec<Vec<u8>> {
        let of_ranks = (0..n_ranks).map(|rank| of_rank(rank, round));
        of_ranks.map(|(_, has, weight)| announcement(weight, &has)).collect()
    }

    /// The same by a loop.
    fn expected(n_ranks: usize, round: u64, reduction: Reduction) -> Tensor {
        let place = (Kind::Double, Device::Cpu);
        let (mut sums, mut weights) = (Tensor::zeros([ROWS, WIDTH], place), Tensor::zeros([ROWS, 1], place));
        let mut whole = 0.0;
        for (rows, has, weight) in (0..n_ranks).map(|rank| of_rank(rank, round)) {
            let has: Vec<bool> = (0..ROWS as usize).map(|row| has.get(row).is_none_or(|&has| has)).collect();
            let has = Tensor::from_slice(&has).to_kind(Kind::Double).unsqueeze(1);
            sums += rows * &has * if reduction == Reduction::Sums { 1.0 } else { weight };
            weights += has * weight;
            whole += weight;
        }
        match reduction {
            Reduction::Sums => sums,
            Reduction::Means => sums / whole,
            Reduction::MeansOfHolders => sums / weights,
        }
    }

    fn on_ranks(n_ranks: usize, body: impl Fn(ProcessGroup) + Sync) {
        let store = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(60)).unwrap();
        as_threads(&store, n_ranks, |_| options(), body);
    }

    #[test]
    fn every_rank_has_the_sums_and_means_of_the_rows_of_all() {
        for n_ranks in [2, 3, 4] {
            on_ranks(n_ranks, |group| {
                let exchange = Exchange::new(&group, Wire::Full);
                let rows = of_rank(group.rank(), 0).0;
                for reduction in [Reduction::Sums, Reduction::Means, Reduction::MeansOfHolders] {
                    let found = exchange.sums(&rows, &announced(n_ranks, 0), reduction, None).unwrap();
                    let expected = expected(n_ranks, 0, reduction);
                    let expected = expected.index_select(0, &found.ids);
                    assert!(bool::try_from(found.rows.isclose(&expected, 1e-12, 0.0, false).all()).unwrap());
                    let mut ids = Vec::<i64>::try_from(&found.ids).unwrap();
                    ids.sort_unstable();
                    assert_eq!(ids, (0..ROWS).filter(|&row| row != 7).collect::<Vec<_>>());
                }
            });
        }
    }

    /// What all ranks received in several rounds, and what each has kept back, are together what there was.
    #[test]
    fn what_is_lost_in_a_round_is_sent_in_later_ones() {
        for (wire, most) in [(Wire::Bf16, 0.06), (Wire::Int8, 0.06), (Wire::Int4, 0.3)] {
            on_ranks(3, |group| {
                let exchange = Exchange::new(&group, wire);
                let place = (Kind::Double, Device::Cpu);
                let mut unsent = Tensor::zeros([ROWS, WIDTH], place);
                let (mut received, mut whole) = (unsent.zeros_like(), unsent.zeros_like());
                for round in 0..20 {
                    let rows = of_rank(group.rank(), round).0;
                    let announced = announced(3, round);
                    let found =
                        exchange.sums(&rows, &announced, Reduction::Means, Some(&mut unsent)).unwrap();
                    let _ = received.index_add_(0, &found.ids, &found.rows);
                    whole += expected(3, round, Reduction::Means);
                }
                let kept: Tensor = group.all_gather(&unsent).unwrap().iter().sum();
                let difference = (&received + &kept - &whole).abs().max().double_value(&[]);
                assert!(difference < 1e-9, "{wire:?}: {difference}");
                // An error of one round, not of twenty.
                assert!(kept.abs().max().double_value(&[]) < most, "{wire:?}");
                assert!(kept.abs().max().double_value(&[]) > 1e-4, "{wire:?}");
            });
        }
    }
}
