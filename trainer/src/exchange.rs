//! Sums of rows over the ranks. Each row has an owner among the ranks. All ranks send it their rows; it adds them up in rank
//! order, and sends the sums to all. Rows that no rank has are not sent.
//!
//! Rows are numbered, and row i belongs to rank i modulo the number of ranks: frequent words have low numbers, so this spreads
//! them evenly. With a lossy [`Wire`], a rank keeps the difference between a row and what it has sent of it, and adds it to the
//! next one with this number (error feedback, Seide et al. 2014; Karimireddy et al. 2019); the owner does so with the sums.

mod table;
mod wire;

use c10d::ProcessGroup;
use tch::{Kind, Tensor};

pub(crate) use self::table::Table;
use self::wire::Coding;
use crate::error::{Error, Result};
use runs::recipe::Wire;

/// The sums of rows. The same bits on all ranks.
pub(crate) struct Summed {
    /// The rows that any rank had.
    pub ids: Tensor,
    /// Their sums or means, `[ids, width]`.
    pub rows: Tensor,
    /// Number of bytes that this rank sent.
    pub sent: u64,
}

/// What is divided by what, in an exchange.
#[derive(Clone, Copy)]
pub(crate) enum Of {
    /// Sums.
    Sums,
    /// Means of the rows by the weights of the ranks that had them.
    Means,
}

/// The exchange of a rank.
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

    /// Sums the rows of a table over all ranks. `has` says which rows this rank has, and `weight` is that of the rank.
    /// `unsent` is what was not sent of former rows, if the wire is lossy.
    pub(crate) fn sums(
        &self,
        table: &Tensor,
        has: impl Fn(usize) -> bool,
        weight: f64,
        of: Of,
        mut unsent: Option<&mut Tensor>,
    ) -> Result<Summed> {
        let (rank, n_ranks) = (self.group.rank(), self.group.world_size());
        let (n_rows, width) = table.size2()?;
        let n_rows = n_rows as usize;
        let mut ids: Vec<i64> = Vec::new();
        let mut counts = Vec::with_capacity(n_ranks);
        for owner in 0..n_ranks {
            let before = ids.len();
            ids.extend((owner..n_rows).step_by(n_ranks).filter(|&id| has(id)).map(|id| id as i64));
            counts.push(ids.len() - before);
        }
        let head = Head { weight, counts };
        let heads = self.group.all_gather_bytes(&head.to_bytes())?;
        let heads: Vec<Head> =
            heads.iter().map(|bytes| Head::from_bytes(bytes, n_ranks)).collect::<Result<_>>()?;
        let n_received: Vec<usize> = heads.iter().map(|head| head.counts[rank]).collect();

        let ids = Tensor::from_slice(&ids).to_device(table.device());
        let coding = self.coding;
        let mut rows = table.f_index_select(0, &ids)?;
        let message = coding.sent(&ids, &mut rows, unsent.as_deref_mut(), None)?;
        let received = self.group.all_to_all(&message, &head.counts, &n_received)?;

        // The rows of this rank, by their number divided by the number of ranks.
        let n_own = n_rows.saturating_sub(rank).div_ceil(n_ranks) as i64;
        let place = (table.kind(), table.device());
        let mut sums = Tensor::f_zeros([n_own, width], place)?;
        let mut weights = Tensor::f_zeros([n_own], place)?;
        let mut is_there = Tensor::f_zeros([n_own], (Kind::Bool, table.device()))?;
        let parts: Vec<i64> = n_received.iter().map(|&n| n as i64).collect();
        for (head, part) in heads.iter().zip(received.f_split_with_sizes(&parts[..], 0)?) {
            let (ids, rows) = coding.decoded(&part, width, table.kind())?;
            let own = ids.f_divide_scalar_mode(n_ranks as i64, "floor")?;
            let _ = sums.f_index_add_(0, &own, &rows)?;
            let _ =
                weights.f_index_add_(0, &own, &Tensor::f_full([own.numel() as i64], head.weight, place)?)?;
            let _ = is_there.f_index_fill_(0, &own, 1)?;
        }
        let own = is_there.f_nonzero()?.f_flatten(0, -1)?;
        let ids = own.f_mul_scalar(n_ranks as i64)?.f_add_scalar(rank as i64)?;
        let mut rows = sums.f_index_select(0, &own)?;
        let divisors = match of {
            Of::Sums => None,
            Of::Means => Some(weights.f_index_select(0, &own)?.f_unsqueeze(1)?),
        };
        let sums = coding.sent(&ids, &mut rows, unsent, divisors.as_ref())?;
        let all = Tensor::f_cat(&self.group.all_gather_unequal(&sums)?, 0)?;
        let (ids, rows) = coding.decoded(&all, width, table.kind())?;

        let row_bytes = coding.row_bytes(width, table.kind()) as u64;
        let to_others = head.counts.iter().sum::<usize>() - head.counts[rank];
        // A ring passes the sums of all ranks on, except those of one.
        let of_others = all.size()[0] as u64 * (n_ranks as u64 - 1) / n_ranks as u64;
        Ok(Summed { ids, rows, sent: (to_others as u64 + of_others) * row_bytes })
    }
}

/// What the ranks tell each other before they send rows.
struct Head {
    weight: f64,
    /// Number of rows for each owner.
    counts: Vec<usize>,
}

impl Head {
    fn to_bytes(&self) -> Vec<u8> {
        let counts = self.counts.iter().flat_map(|&count| (count as u32).to_le_bytes());
        self.weight.to_le_bytes().into_iter().chain(counts).collect()
    }

    fn from_bytes(bytes: &[u8], n_ranks: usize) -> Result<Self> {
        let (weight, counts) = bytes.split_first_chunk().ok_or_else(|| of_another_version(bytes))?;
        let (counts, rest) = counts.as_chunks::<4>();
        if counts.len() != n_ranks || !rest.is_empty() {
            return Err(of_another_version(bytes));
        }
        let counts = counts.iter().map(|count| u32::from_le_bytes(*count) as usize).collect();
        Ok(Self { weight: f64::from_le_bytes(*weight), counts })
    }
}

fn of_another_version(bytes: &[u8]) -> Error {
    training::Error::setting(
        "a message of another rank",
        format!("{} bytes", bytes.len()),
        "a weight and numbers of rows; start the same version of trainer on all ranks",
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

    use super::*;

    const ROWS: i64 = 13;
    const WIDTH: i64 = 5;

    /// The numbers of a rank in a round, which rows it has, and its weight. Row 7 is of no rank.
    fn of_rank(rank: usize, round: u64) -> (Tensor, Vec<bool>, f64) {
        let mut random = Purpose::Order.stream(&[rank as u64, round]);
        let has: Vec<bool> = (0..ROWS).map(|row| random.below(3) > 0 && row != 7).collect();
        let numbers: Vec<f64> = (0..ROWS * WIDTH).map(|_| random.below(2001) as f64 / 1000.0 - 1.0).collect();
        (Tensor::from_slice(&numbers).view([ROWS, WIDTH]), has, [0.5, 0.2, 0.1, 0.2][rank])
    }

    /// The sums over all ranks and the weights of the ranks that had each row, by a loop.
    fn expected(n_ranks: usize, round: u64) -> (Tensor, Tensor) {
        let place = (Kind::Double, tch::Device::Cpu);
        let (mut sums, mut weights) = (Tensor::zeros([ROWS, WIDTH], place), Tensor::zeros([ROWS, 1], place));
        for (rows, has, weight) in (0..n_ranks).map(|rank| of_rank(rank, round)) {
            let has = Tensor::from_slice(&has).to_kind(Kind::Double).unsqueeze(1);
            sums += rows * &has;
            weights += has * weight;
        }
        (sums, weights)
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
                let (rows, has, weight) = of_rank(group.rank(), 0);
                for of in [Of::Sums, Of::Means] {
                    let found = exchange.sums(&rows, |row| has[row], weight, of, None).unwrap();
                    let (sums, weights) = expected(n_ranks, 0);
                    let expected = match of {
                        Of::Sums => sums,
                        Of::Means => sums / weights,
                    };
                    let expected = expected.index_select(0, &found.ids);
                    assert!(bool::try_from(found.rows.isclose(&expected, 1e-12, 0.0, false).all()).unwrap());
                    let mut ids = Vec::<i64>::try_from(&found.ids).unwrap();
                    ids.sort_unstable();
                    let has = |&row: &i64| (0..n_ranks).any(|rank| of_rank(rank, 0).1[row as usize]);
                    assert_eq!(ids, (0..ROWS).filter(has).collect::<Vec<_>>());
                }
            });
        }
    }

    /// What all ranks received in several rounds, and what each has kept back, are together what there was.
    #[test]
    fn what_is_lost_in_a_round_is_sent_in_later_ones() {
        for wire in [Wire::Bf16, Wire::Int8] {
            on_ranks(3, |group| {
                let exchange = Exchange::new(&group, wire);
                let place = (Kind::Double, tch::Device::Cpu);
                let mut unsent = Tensor::zeros([ROWS, WIDTH], place);
                let (mut received, mut whole) = (unsent.zeros_like(), unsent.zeros_like());
                for round in 0..20 {
                    let (rows, has, weight) = of_rank(group.rank(), round);
                    let found =
                        exchange.sums(&rows, |row| has[row], weight, Of::Sums, Some(&mut unsent)).unwrap();
                    let _ = received.index_add_(0, &found.ids, &found.rows);
                    whole += expected(3, round).0;
                }
                let kept: Tensor = group.all_gather(&unsent).unwrap().iter().sum();
                let difference = (&received + &kept - &whole).abs().max().double_value(&[]);
                assert!(difference < 1e-9, "{wire:?}: {difference}");
                // An error of one round, not of twenty.
                assert!(kept.abs().max().double_value(&[]) < 0.06, "{wire:?}");
                assert!(kept.abs().max().double_value(&[]) > 1e-4, "{wire:?}");
            });
        }
    }
}
