//! Trains as one of several ranks. In a step, all ranks train on rows of the same moment, and then exchange what changes the
//! rows. Without `--average-every`, the result has the bits of parameter servers with `--staleness 0`.

mod differences;
mod exchange;
mod replicas;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use launch::interrupt::{Asked, Interrupts};
use report::whole;
use serde::{Deserialize, Serialize};
use skipgram::{Decay, Distribution, Done, Vocabulary};
use tch::Device;

use self::differences::Differences;
use self::exchange::RankModel;
use self::replicas::Replicas;
use super::comparisons::{Compared, Comparisons};
use super::model::Model;
use super::out;
use super::progress::{Counts, Progress};
use super::served::{self, shares::Share};
use super::{Processes, epochs, place, spelled};
use crate::arguments::{Embed, EmbedModel, Place};
use crate::commands::group::{self, Group};
use crate::commands::print::print_json;
use crate::commands::texts_out::TextsOut;
use crate::error::{Error, Result};
use crate::ranks::Ranks;
use crate::tell::{set_quiet, tell};

/// Time between two lines.
const INTERVAL: Duration = Duration::from_secs(5);

/// The summary that `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
    ranks: usize,
    /// The model folder.
    model: std::path::PathBuf,
    /// Number of words with a vector.
    words: u64,
    /// Number of tokens of the input.
    tokens: u64,
    /// Number of steps, of the rank with the most.
    steps: u64,
    /// Mean loss of rank 0 in this process.
    loss: Option<f64>,
    /// Exchanges of this process, and what rank 0 sent in them.
    exchanges: u64,
    rows_per_exchange: f64,
    bytes_per_exchange: f64,
    /// Bytes of all rows, which an exchange of whole tables would send.
    table_bytes: u64,
    /// Seconds of all steps, and the share of them in which rank 0 exchanged rows and waited for other ranks.
    seconds: f64,
    exchanging_share: f64,
    /// Pairs of words per second of all ranks.
    pairs_per_s: f64,
    #[serde(flatten)]
    compared: Compared,
}

/// The place of a checkpoint, which an unchanged training has again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Reached {
    /// Number of completed steps.
    step: u64,
    n_steps: u64,
    n_tokens: u64,
    n_ranks: usize,
    /// What all ranks agree on: settings and digests of the input.
    content: String,
}

/// Trains as one of several ranks. Every rank calls it with the same arguments; rank 0 writes.
pub(in crate::commands) fn on_ranks(arguments: &Embed) -> Result<()> {
    let ranks = Ranks::join(Device::Cpu)?;
    set_quiet(arguments.quiet || !ranks.is_first());
    // Otherwise the optimizer finds that all ranks are of this type and refers to its methods, and with them to
    // libtorch, in the executable without it.
    embed(arguments, black_box(&ranks))
}

fn embed(arguments: &Embed, ranks: &dyn group::Ranks) -> Result<()> {
    super::check(arguments)?;
    check(arguments)?;
    let group = Group { ranks };
    let recipe = recipe(arguments, group.world_size())?;
    let comparisons = Comparisons::read(arguments)?;
    let mut out = group.on_first(|| out::take(arguments))?;
    if group.of_rank_0(|| out.as_ref().map_or(Ok(false), |out| out::is_complete(out, &recipe)))? {
        let Some(out) = &out else { return Ok(()) };
        out.finish_again()?;
        return if arguments.json { print_json(&place(out, true)) } else { Ok(()) };
    }
    let interrupts = Interrupts::listen().map_err(Error::Signals)?;
    let rank = Place { number: ranks.rank() as u32, of: group.world_size() as u32 };
    let (vocabulary, share) = Share::read(arguments, rank, &format!("{} ranks", rank.of))?;
    let input = RankInput { arguments, group, interrupts, vocabulary, share, recipe };
    match arguments.model {
        EmbedModel::SkipGram => {
            let model = Differences::new(arguments, &input.vocabulary)?;
            input.train(model, &mut out, comparisons)
        }
        EmbedModel::CharLstm => {
            let model = Replicas::new(spelled::SharedTraining::new(arguments, &input.vocabulary)?);
            input.train(model, &mut out, comparisons)
        }
    }
}

/// Refuses what ranks cannot train.
fn check(arguments: &Embed) -> Result<()> {
    if !arguments.served.servers.is_empty() {
        return Err(Error::Setting {
            setting: "--async",
            found: "set on several ranks".to_owned(),
            expected: "workers that are started without launch and torchrun".to_owned(),
        });
    }
    if let Some(threads) = arguments.threads.filter(|threads| *threads != 1) {
        return Err(Error::Setting {
            setting: "--threads",
            found: format!("{threads} on several ranks"),
            expected: "one thread per rank; start more ranks".to_owned(),
        });
    }
    served::check_of("on several ranks", arguments)
}

/// The settings by which a resumed training is compared.
fn recipe(arguments: &Embed, n_ranks: usize) -> Result<serde_json::Value> {
    let mut recipe = super::recipe(arguments, Processes::Several)?;
    recipe["ranks"] = n_ranks.into();
    if arguments.model == EmbedModel::SkipGram {
        recipe["step-pairs"] = arguments.step_pairs().into();
        recipe["average-every"] = arguments.average_every.into();
    }
    Ok(recipe)
}

/// What a rank trains on.
struct RankInput<'a> {
    arguments: &'a Embed,
    group: Group<'a>,
    interrupts: Interrupts,
    vocabulary: Vocabulary,
    share: Share,
    recipe: serde_json::Value,
}

impl RankInput<'_> {
    fn train<E: RankModel>(
        self,
        model: E,
        out: &mut Option<TextsOut>,
        mut comparisons: Comparisons,
    ) -> Result<()> {
        let Self { arguments, group, vocabulary, recipe, .. } = &self;
        let content = served::content(arguments, model.model(), vocabulary, &self.share)?;
        group.compare_all(&content)?;
        group.on_first(|| out.as_ref().map_or(Ok(()), |out| out::begin(out, arguments, recipe)))?;
        let mut run = Run::begin(&self, content, model, out)?;
        if out.is_some() {
            run.model.model().read_held_out(arguments, vocabulary, &mut comparisons)?;
        }
        run.finish(out, &mut comparisons)?;
        let n_pairs = group.sum(run.done.n_pairs)?;
        let Some(out) = out else { return Ok(()) };
        let Run { model, reached, done, seconds, exchanging_s, .. } = run;
        let sent = model.sent();
        let model = model.into_model()?;
        let values = model.specs("").iter().map(|spec| spec.n_rows * u64::from(spec.dim)).sum::<u64>();
        out::finish(out, &mut model.into_vectors(), vocabulary, recipe)?;
        let pairs_per_s = n_pairs as f64 / seconds.max(f64::MIN_POSITIVE);
        let words = vocabulary.n_words() as u64;
        served::tell_end(words, n_pairs, seconds, Some(&out.shown_model()));
        if arguments.json {
            let per_exchange = |n: u64| n as f64 / sent.exchanges.max(1) as f64;
            print_json(&Summary {
                ranks: group.world_size(),
                model: out.shown_model(),
                words,
                tokens: vocabulary.n_tokens(),
                steps: reached.n_steps,
                loss: done.loss(),
                exchanges: sent.exchanges,
                rows_per_exchange: per_exchange(sent.rows),
                bytes_per_exchange: per_exchange(sent.bytes),
                table_bytes: values * size_of::<f32>() as u64,
                seconds,
                exchanging_share: exchanging_s / seconds.max(f64::MIN_POSITIVE),
                pairs_per_s,
                compared: comparisons.into_last(),
            })?;
        }
        Ok(())
    }
}

/// The training of this rank.
struct Run<'a, E> {
    input: &'a RankInput<'a>,
    model: E,
    distribution: Arc<Distribution>,
    decay: Decay,
    reached: Reached,
    done: Done,
    of_epoch: Done,
    seconds: f64,
    exchanging_s: f64,
}

impl<'a, E: RankModel> Run<'a, E> {
    /// A new training, or one that is resumed from the newest checkpoint of rank 0.
    fn begin(
        input: &'a RankInput<'a>,
        content: String,
        mut model: E,
        out: &mut Option<TextsOut>,
    ) -> Result<Self> {
        let RankInput { arguments, group, vocabulary, share, .. } = input;
        let n_own = share.n_steps(epochs(arguments));
        let mut reached = Reached {
            step: 0,
            n_steps: share.n_most_steps(epochs(arguments)),
            n_tokens: vocabulary.n_tokens(),
            n_ranks: group.world_size(),
            content,
        };
        let state = group.on_first(|| out.as_mut().map_or(Ok(None), out::state))?.flatten();
        if group.of_rank_0(|| Ok(state.is_some()))? {
            reached.step = restore(&mut model, *group, state, &reached)?;
            model.model_mut().set_n_tokens(share.n_words_before(reached.step.min(n_own)));
        }
        Ok(Self {
            input,
            distribution: Arc::new(model.model().distribution(vocabulary)),
            model,
            decay: Decay::Linear { n_tokens: share.n_words_before(n_own) },
            reached,
            done: Done::default(),
            of_epoch: Done::default(),
            seconds: 0.0,
            exchanging_s: 0.0,
        })
    }

    /// Trains the steps that are left.
    fn finish(&mut self, out: &mut Option<TextsOut>, comparisons: &mut Comparisons) -> Result<()> {
        let RankInput { arguments, group, interrupts, .. } = self.input;
        let n_tokens = self.model.model().n_tokens();
        let mut progress = out.as_ref().map(|out| Progress::new(out, n_tokens)).transpose()?;
        let (began, mut told, mut saved_at) = (Instant::now(), Instant::now(), Instant::now());
        let period = arguments.average_every.unwrap_or(1);
        let interval = Duration::from_secs_f64(arguments.checkpoint_every.min(1e9));
        while self.reached.step < self.reached.n_steps {
            self.train_step()?;
            let step = self.reached.step;
            let is_last = step == self.reached.n_steps;
            let is_epoch = step.is_multiple_of(self.steps_of_epoch());
            if step.is_multiple_of(period) || is_epoch || is_last {
                // Only rank 0 reads the clock; the ranks then agree on the result.
                let is_due = out.is_some() && !interval.is_zero() && saved_at.elapsed() >= interval;
                let asked = self.exchange(interrupts.asked().or(is_due.then_some(Asked::Checkpoint)))?;
                if asked.is_some() && !is_last {
                    self.save(out)?;
                    saved_at = Instant::now();
                }
                if asked == Some(Asked::Stop) && !is_last {
                    let saved = |out: &TextsOut| out.checkpoints_saved().map(|()| out.shown_checkpoints());
                    let resume = group.of_rank_0(|| out.as_ref().map(saved).transpose())?;
                    return Err(Error::Interrupted { resume: resume.unwrap_or_default() });
                }
            }
            self.seconds = began.elapsed().as_secs_f64();
            let Some(progress) = &mut progress else { continue };
            if told.elapsed() >= INTERVAL {
                told = Instant::now();
                self.tell(progress);
            }
            if is_epoch {
                self.end_epoch(progress, comparisons)?;
            }
        }
        progress.map_or(Ok(()), |mut progress| progress.finish())
    }

    /// Steps of an epoch of the rank with the most.
    fn steps_of_epoch(&self) -> u64 {
        (self.reached.n_steps / u64::from(epochs(self.input.arguments))).max(1)
    }

    /// Trains a step on the own rows.
    fn train_step(&mut self) -> Result<()> {
        let RankInput { arguments, share, .. } = self.input;
        let sentences = share.work(self.reached.step, epochs(arguments), &self.distribution)?;
        self.reached.step += 1;
        let done = self.model.step(sentences, self.decay)?;
        self.done.add(&done);
        self.of_epoch.add(&done);
        Ok(())
    }

    /// Exchanges what has changed since the last time. Returns the action for all ranks.
    fn exchange(&mut self, asked: Option<Asked>) -> Result<Option<Asked>> {
        let began = Instant::now();
        let asked = self.model.exchange(self.input.group, asked, self.reached.step)?;
        self.exchanging_s += began.elapsed().as_secs_f64();
        Ok(asked)
    }

    fn save(&self, out: &mut Option<TextsOut>) -> Result<()> {
        let RankInput { group, vocabulary, .. } = self.input;
        let place = serde_json::to_vec(&self.reached).map_err(|error| Error::internal(&error))?;
        let save = || out.as_mut().map_or(Ok(()), |out| self.model.save(out, vocabulary, &place));
        group.on_first(save).map(drop)
    }

    /// Tells the user about the steps so far, and logs them.
    fn tell(&mut self, progress: &mut Progress) {
        let loss = self.model.model_mut().take_loss();
        let loss_text = loss.map_or_else(String::new, |loss| format!(", loss {loss:.4}"));
        tell(&format!(
            "step {} of {}, {} pairs/s on rank 0, {:.0} % exchanging{loss_text}",
            whole(self.reached.step),
            whole(self.reached.n_steps),
            whole((self.done.n_pairs as f64 / self.seconds) as u64),
            100.0 * self.exchanging_s / self.seconds
        ));
        let n_tokens = self.model.model().n_tokens();
        progress.write(n_tokens, loss, progress.tokens_per_s(n_tokens), Counts::default());
    }

    fn end_epoch(&mut self, progress: &mut Progress, comparisons: &mut Comparisons) -> Result<()> {
        let RankInput { arguments, vocabulary, .. } = self.input;
        let epoch = (self.reached.step / self.steps_of_epoch()) as u32;
        let loss = std::mem::take(&mut self.of_epoch).loss();
        progress.end_epoch(epoch, epochs(arguments), self.model.model().n_tokens(), loss);
        if comparisons.is_asked() {
            self.model.refresh()?;
        }
        self.model.model().compare(comparisons, vocabulary, progress);
        Ok(())
    }
}

/// Reads the state of rank 0 on all ranks. Returns the number of completed steps.
fn restore(
    model: &mut impl RankModel,
    group: Group<'_>,
    state: Option<(std::path::PathBuf, impl std::io::Read)>,
    expected: &Reached,
) -> Result<u64> {
    // The ranks of other machines do not have the folder.
    let mut from = std::path::PathBuf::from("the checkpoint of rank 0");
    let bytes = group.on_first(|| {
        let mut bytes = Vec::new();
        if let Some((path, mut file)) = state {
            file.read_to_end(&mut bytes).map_err(|source| Error::io(&path, source))?;
            from = path;
        }
        Ok(bytes)
    })?;
    let bytes = group.broadcast(&bytes.unwrap_or_default())?;
    let mut step = 0;
    model.restore(&bytes, |place| {
        let found: Reached = serde_json::from_slice(place).map_err(|error| Error::internal(&error))?;
        step = found.step;
        match (Reached { step, ..expected.clone() }) == found {
            true => Ok(()),
            false => Err(Error::other_input(&from, expected.n_tokens, found.n_tokens)),
        }
    })?;
    Ok(step)
}
