//! Trains vectors that are on parameter servers, as one of several workers; `ranks` has the same steps.
//!
//! A step pulls the rows of its pairs and samples, trains them by the kernels of all trainings, and pushes what has changed.
//! Its sentences, rows and random numbers depend on the settings, the worker and the step only: a worker that is started
//! again repeats the step that was interrupted.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use embeddings::skipgram::Vocabulary;
use launch::interrupt::Interrupts;
use parameters::{Client, ClientOptions, Joined, Moment, Spec, Statistics};
use program::exit::{Exit, Failed};
use program::hexadecimal::encode;
use report::whole;
use serde::Serialize;
use serde_json::Value;
use training::print::print_json;
use training::tell::tell;
use training::texts_out::TextsOut;
use training::{Error, Result};

use super::checks::check;
use super::comparisons::{Compared, Comparisons};
use super::input::digest_of;
use super::model::{Model, shared_skip_gram};
use super::out;
use super::progress::Progress;
use super::settings::{Processes, recipe};
use super::shares::Share;
use super::spelled::shared::SharedTraining;
use super::steps::{Measured, Plan, Steps, read_all};
use crate::arguments::{ModelName, Place, Train};
use crate::commands::serve::token;

/// The summary that `--json` prints.
#[derive(Debug, Serialize)]
struct WorkerSummary {
    /// The worker, and the number of workers.
    worker: u32,
    workers: u32,
    /// The model folder, of worker 0.
    model: Option<std::path::PathBuf>,
    /// Number of words with a vector.
    words: u64,
    /// Number of tokens of the input.
    tokens: u64,
    /// Steps of this worker, and of those the ones of this process.
    steps: u64,
    done_steps: u64,
    /// Mean loss of this process.
    loss: Option<f64>,
    #[serde(flatten)]
    measured: Measured,
    /// Pairs of words per second of this process.
    pairs_per_s: f64,
    /// Bytes of row numbers and values per step, in both directions.
    bytes_per_step: f64,
    /// Share of the time in which this process waited for servers and other workers.
    waiting_share: f64,
    /// The last comparisons with the files of `--similarity` and with `--reference`.
    #[serde(flatten)]
    compared: Compared,
}

/// Checks the flags of a worker. Returns the recipe of the training and what its vectors are compared with.
pub(super) fn checked(arguments: &Train) -> Result<(Value, Comparisons)> {
    check(arguments)?;
    let mut recipe = recipe(arguments, Processes::Several)?;
    recipe["workers"] = arguments.served.worker.of.into();
    Ok((recipe, Comparisons::read(arguments)?))
}

/// Trains as a worker. Worker 0 also writes the model.
pub(super) fn train(arguments: &Train) -> Result<()> {
    let (recipe, comparisons) = checked(arguments)?;
    let worker = arguments.served.worker;
    let out = (worker.number == 0).then(|| out::take(arguments)).transpose()?;
    let interrupts = Interrupts::listen().map_err(Error::Signals)?;
    let complete = match &out {
        Some(out) if out::is_complete(out, &recipe)? => Some(out),
        _ => None,
    };
    if let Some(out) = complete
        && !is_awaited(arguments, &interrupts)
    {
        return out::finish_again(out, arguments);
    }
    let is_complete = complete.is_some();
    // Before the input is read, which takes long: it refuses invalid addresses, tokens and certificates.
    let client = client(arguments, &interrupts, arguments.served.patience)?;
    let who = format!("worker {} of {}", worker.number, worker.of);
    let (vocabulary, share) = Share::read(arguments, worker, &who)?;
    let worker =
        Worker { arguments, interrupts, client, out, is_complete, recipe, vocabulary, share, comparisons };
    match arguments.model {
        ModelName::SkipGram => {
            let training = shared_skip_gram(arguments, &worker.vocabulary)?;
            worker.train(training)
        }
        ModelName::CharLstm => {
            let training = SharedTraining::new(arguments, &worker.vocabulary)?;
            worker.train(training)
        }
    }
}

/// A worker that has read its input.
struct Worker<'a> {
    arguments: &'a Train,
    interrupts: Interrupts,
    client: Client,
    /// The training folder, of worker 0.
    out: Option<TextsOut>,
    /// Whether worker 0 has written the model.
    is_complete: bool,
    recipe: Value,
    vocabulary: Vocabulary,
    share: Share,
    comparisons: Comparisons,
}

impl Worker<'_> {
    fn train<M: Model>(mut self, model: M) -> Result<()> {
        let arguments = self.arguments;
        if self.out.is_some() {
            model.read_held_out(arguments, &self.vocabulary, &mut self.comparisons)?;
        }
        let content = content(arguments, &model, &self.vocabulary, &self.share)?;
        let joined = join(&mut self.client, arguments, &model.specs(&content), arguments.served.worker);
        let joined = joined.and_then(|joined| check_removed(&joined).map(|()| joined));
        if let Some(out) = self.out.as_ref().filter(|_| self.is_complete) {
            // Servers with the tables of another training are left alone.
            if joined.is_ok() {
                self.client.leave()?;
            }
            return out::finish_again(out, arguments);
        }
        let joined = joined?;
        if let Some(out) = &self.out {
            out::begin_served(out, arguments, &self.recipe)?;
        }
        let Self { interrupts, client, out, recipe, vocabulary, share, mut comparisons, .. } = self;
        let steps = Steps {
            arguments,
            interrupts: Some(&interrupts),
            share: &share,
            joined: &joined,
            client: &client,
            vocabulary: &vocabulary,
            plan: Plan {
                n_steps: share.n_most_steps(arguments.epochs()),
                steps_of_epoch: share.n_steps_of_epoch(),
                period: 1,
            },
        };
        let progress = out.as_ref().map(|out| Progress::new(out, steps.n_tokens())).transpose()?;
        let (mut model, measured, done) = steps.run(model, progress, &mut comparisons, |_, _| Ok(()))?;
        let words = vocabulary.n_words() as u64;
        if let Some(out) = &out {
            tell("waiting for the other workers");
            read_all(&client, &mut model, Moment::End)?;
            // Before the model is written, which may take longer than --remove-after.
            tell_removed(&client)?;
            out::finish(out, &mut model.into_vectors(), &vocabulary, &recipe)?;
        }
        client.leave()?;
        let pairs_per_s = done.n_pairs as f64 / measured.seconds.max(f64::MIN_POSITIVE);
        let model = out.as_ref().map(TextsOut::shown_model);
        tell_end(words, done.n_pairs, measured.seconds, model.as_deref());
        if arguments.json {
            let Place { number, of } = arguments.served.worker;
            print_json(&WorkerSummary {
                worker: number,
                workers: of,
                model,
                words,
                tokens: vocabulary.n_tokens(),
                steps: share.n_steps(arguments.epochs()),
                done_steps: measured.exchanges,
                loss: done.loss(),
                pairs_per_s,
                bytes_per_step: measured.bytes as f64 / measured.exchanges.max(1) as f64,
                waiting_share: measured.waiting_s / measured.seconds.max(f64::MIN_POSITIVE),
                compared: comparisons.into_last(),
                measured,
            })?;
        }
        Ok(())
    }
}

/// Creates the tables on the servers, or finds those of the other processes, and joins.
pub(super) fn join(client: &mut Client, arguments: &Train, specs: &[Spec], place: Place) -> Result<Joined> {
    for (expected, spec) in (0..).zip(specs) {
        // Tables of another program, or of a model with fewer of them.
        let number = client.create(spec)?;
        if number != expected {
            let servers = arguments.served.servers.join(",");
            let message = format!(
                "--async {servers}: the servers have other tables: {} is table {number}, expected table {expected}; start \
                 them with new folders",
                spec.name
            );
            return Err(Failed::new(Exit::Settings, message).into());
        }
    }
    Ok(client.join(place.number, place.of)?)
}

/// Whether servers wait for worker 0: it was killed after it had written the model. Servers that have ended are not awaited.
fn is_awaited(arguments: &Train, interrupts: &Interrupts) -> bool {
    let statistics = client(arguments, interrupts, 0.0).and_then(|client| Ok(client.statistics()?));
    let has_trained = |server: &Statistics| {
        server.workers.first().is_some_and(|worker| worker.steps.is_some_and(|steps| steps > 0))
    };
    statistics.is_ok_and(|servers| servers.iter().any(has_trained))
}

/// Tells the user what several processes trained.
pub(super) fn tell_end(words: u64, n_pairs: u64, seconds: f64, model: Option<&Path>) {
    let place = model.map_or_else(String::new, |model| format!("; the model is in {}", model.display()));
    let per_s = n_pairs as f64 / seconds.max(f64::MIN_POSITIVE);
    let (words, n_pairs, per_s) = (whole(words), whole(n_pairs), whole(per_s as u64));
    tell(&format!("{words} words; {n_pairs} pairs in {seconds:.1} s, {per_s} pairs/s{place}"));
}

/// Warns of workers whose sentences the model lacks.
pub(super) fn tell_removed(client: &Client) -> Result<()> {
    let mut removed = BTreeSet::new();
    for server in client.statistics()? {
        let of_server = server.workers.iter().enumerate().filter(|(_, worker)| worker.removed);
        removed.extend(of_server.map(|(number, _)| number));
    }
    for worker in removed {
        tell(&format!(
            "warning: worker {worker} was removed, because it was silent for too long; the model lacks the rest of its \
             sentences"
        ));
    }
    Ok(())
}

/// The client of the servers, which contacts none of them yet.
pub(super) fn client(arguments: &Train, interrupts: &Interrupts, patience_s: f64) -> Result<Client> {
    let served = &arguments.served;
    let options = ClientOptions {
        servers: served.servers.clone(),
        token: token(&served.security)?,
        tls: served.security.tls(),
        wire: served.wire,
        patience: Duration::from_secs_f64(patience_s.min(1e9)),
        stop: interrupts.stop_flag(),
    };
    Ok(Client::new(&options)?)
}

/// A worker that was removed trains no more; worker 0 writes what the others have trained.
pub(super) fn check_removed(joined: &Joined) -> Result<()> {
    match joined.worker {
        _ if !joined.is_removed => Ok(()),
        0 => {
            tell(
                "worker 0 was removed because it was silent for too long; the others continue without its sentences",
            );
            Ok(())
        }
        worker => {
            let message = format!(
                "worker {worker} was removed because it was silent for too long; the others have continued without it: let \
                 them end, or start a training in new folders"
            );
            Err(Failed::new(Exit::Settings, message).into())
        }
    }
}

/// What all workers must agree on: the settings, and digests of the vocabulary and of the sentences in their order.
pub(super) fn content(
    arguments: &Train,
    model: &impl Model,
    vocabulary: &Vocabulary,
    share: &Share,
) -> Result<String> {
    let (vocabulary, sentences) = (digest_of(vocabulary), encode(&share.digest()[..8]));
    let mut lines = settings_content(arguments, model)?;
    lines.extend([format!("vocabulary {vocabulary}"), format!("sentences {sentences}")]);
    Ok(lines.join("\n"))
}

/// The settings that all workers must agree on, one a line: a message shows only the first that differs.
pub(super) fn settings_content(arguments: &Train, model: &impl Model) -> Result<Vec<String>> {
    // The model first: another one has other settings too.
    let mut lines =
        vec![format!("model {}", arguments.model.name()), format!("epochs {}", arguments.epochs())];
    if arguments.model == ModelName::SkipGram {
        lines.push(format!("step_pairs {}", arguments.step_pairs()));
    }
    lines.push(format!("wire {:?}", arguments.served.wire));
    let settings = model.settings_written()?;
    lines.extend(settings.iter().map(|(name, value)| format!("{name} {value}")));
    Ok(lines)
}
