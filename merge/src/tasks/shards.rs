//! Verifies a group of shards and counts their rows by range.

use corpus::digest::Digest;
use dataset::commit::RECORD_BYTES_MAX;
use dataset::manifest::Seal;
use dataset::{Digests, RowsSize, in_order};
use making::Size;
use program::exit::Failed;
use serde::{Deserialize, Serialize};
use store::Key;

use crate::plan::{Planned, Task};
use crate::tasks::{WorkOptions, record};
use crate::verify::{KnownShard, Role, ShardFile, verify_all};
use crate::{Omitted, Result};

const KIND: &str = "shards";

/// The result of verifying a group of shards.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct VerifiedGroup {
    shards: Vec<VerifiedShard>,
    /// The size of each range in all these shards, without the omitted rows.
    sizes: Vec<RowsSize>,
    /// Number of omitted rows.
    left_out: u64,
    /// Digest of the rows, without the omitted ones.
    row_digest: Digest,
}

corpus::read_from_objects!(VerifiedGroup, VerifiedShard);

/// A shard that matches its commit record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct VerifiedShard {
    pub(crate) digests: Digests,
    pub(crate) n_words: u64,
    /// The size of each range.
    pub(crate) sizes: Vec<RowsSize>,
}

/// Verifies the shards of a task, and returns the record of the result.
pub(crate) fn verify(planned: &Planned, number: u32, options: &WorkOptions) -> Result<Vec<u8>> {
    let commits: Vec<_> = planned.shards(number).map(|at| planned.commit(at)).collect::<Result<_>>()?;
    let (ranges, threads) = (planned.all_ranges(), options.threads);
    let progress = planned.store().progress();
    let of_task: Vec<_> = commits.iter().map(|commit| (planned.store(), commit.clone())).collect();
    let shards = verify_all(&of_task, None, &options.scratch, &ranges, threads, || progress.advance(1))?;
    let mut group = VerifiedGroup {
        shards: Vec::with_capacity(shards.len()),
        sizes: vec![RowsSize::default(); ranges.n()],
        left_out: 0,
        row_digest: Digest::default(),
    };
    for (shard, commit) in shards.iter().zip(&commits) {
        group.row_digest += commit.row_digest;
        group.sizes.iter_mut().zip(&shard.sizes).for_each(|(sum, size)| *sum += *size);
    }
    let (_, _, inputs) = planned.inputs(&options.s3)?;
    if let Some(without) = inputs.without() {
        let omitted = Omitted::of_all(&shards, without, &ranges, threads)?;
        group.left_out = omitted.take_from(&mut group.sizes);
        group.row_digest -= omitted.row_digest;
    }
    let verified = |KnownShard { digests, n_words, sizes, .. }| VerifiedShard { digests, n_words, sizes };
    group.shards = shards.into_iter().map(verified).collect();
    Ok(record::of(KIND, planned.identity(Task::Shards(number)), &group))
}

/// All shards of a run, verified.
pub(crate) struct VerifiedRun {
    pub(crate) shards: Vec<VerifiedShard>,
    /// The size of each range, without the omitted rows.
    pub(crate) sizes: Vec<RowsSize>,
    pub(crate) size: Size,
}

impl VerifiedRun {
    /// Reads the results of all tasks that verify shards.
    pub(crate) fn read(planned: &Planned) -> Result<Self> {
        let n_ranges = planned.all_ranges().n();
        let mut run =
            Self { shards: Vec::new(), sizes: vec![RowsSize::default(); n_ranges], size: Size::default() };
        for number in 0..planned.plan.tasks {
            let task = Task::Shards(number);
            let key = planned.result_key(task)?;
            let object = planned.url(&key);
            let bytes =
                planned.store().get_small(&key, RECORD_BYTES_MAX)?.ok_or_else(|| planned.missing(task))?;
            let (group, _) =
                record::read::<VerifiedGroup>(KIND, planned.identity(task), &bytes[..], &object)?;
            let is_of_plan = group.shards.len() == planned.shards(number).len()
                && group
                    .shards
                    .iter()
                    .map(|shard| &shard.sizes)
                    .chain([&group.sizes])
                    .all(|sizes| sizes.len() == n_ranges);
            if !is_of_plan {
                return Err(record::unexpected(&object, "of other numbers of shards or ranges"));
            }
            run.sizes.iter_mut().zip(&group.sizes).for_each(|(sum, size)| *sum += *size);
            run.size.row_digest += group.row_digest;
            run.size.left_out += group.left_out;
            run.shards.extend(group.shards);
        }
        for of_range in &run.sizes {
            run.size.rows += of_range.rows;
            run.size.tokens += of_range.tokens;
        }
        run.check(planned)?;
        Ok(run)
    }

    /// Compares the totals with the run's manifest.
    fn check(&self, planned: &Planned) -> Result<()> {
        let Seal { ledger, row_digest, .. } = &planned.plan.seal;
        let is_whole = self.size.rows + self.size.left_out == ledger.reducer.rows
            && (planned.plan.without.is_some() || self.size.row_digest == *row_digest);
        if is_whole {
            return Ok(());
        }
        let objects = format!("{}/shards-*", planned.folder());
        Err(record::unexpected(&objects, "of other rows than the manifest of the run"))
    }

    /// The shards, of which only parts are read.
    pub(crate) fn open(&self, planned: &Planned, options: &WorkOptions) -> Result<Vec<KnownShard>> {
        let mut shards = Vec::with_capacity(self.shards.len());
        let fetch = |at: usize, put: &mut dyn FnMut(KnownShard)| {
            let (name, VerifiedShard { digests, n_words, sizes }) =
                (planned.plan.seal.shards[at].object.clone(), self.shards[at].clone());
            let file = ShardFile::partial(planned.store(), &Key::new(&name)?, &options.scratch)?;
            let name = format!("{}/{name}", planned.store().url());
            put(KnownShard { file, name, role: Role::Run, n_words, sizes, hashes: 0..0, digests });
            Ok::<_, Failed>(())
        };
        in_order(self.shards.len(), options.threads, 1, fetch, |shard| {
            shards.push(shard);
            Ok(())
        })?;
        Ok(shards)
    }
}
