//! Trains as one of several ranks: rank 0 has a parameter server in its process, and all ranks are its workers with a
//! staleness of 0. Without `--sync-every`, the result has the bits of parameter servers with `--staleness 0`.
//!
//! Only rank 0 decides when all save a checkpoint or stop: no row changes between its pull and its push of a step. A rank that
//! fails ends all ranks, and so does one that is lost.

use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use embeddings::skipgram::Vocabulary;
use launch::interrupt::{Interrupts, Requested};
use launch::{Launch, key};
use parameters::{
    Client, ClientOptions, Ending, Moment, Optimizer, Server, ServerOptions, Stage, Tables, TlsFiles, Token,
    Wire,
};
use program::exit::{Exit, Failed, Fails, chain};
use serde::{Deserialize, Serialize};
use training::print::print_json;
use training::tell::{set_quiet, tell};
use training::texts_out::TextsOut;
use training::{Error, Result};

use super::checks::{check, check_several};
use super::comparisons::{Compared, Comparisons};
use super::model::{Model, shared_skip_gram};
use super::out;
use super::progress::Progress;
use super::served;
use super::settings::{Processes, recipe};
use super::shares::Share;
use super::spelled::shared::SharedTraining;
use super::steps::{Plan, Steps, read_all};
use crate::arguments::{ModelName, Place, Train};

/// Time limit of the start of all ranks, and of a step of the slowest rank.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// Time in which rank 0 waits until all ranks know why they end.
const TELL_LIMIT: Duration = Duration::from_secs(3);
/// Time between two looks at the other ranks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The summary that `--json` prints.
#[derive(Debug, Serialize)]
struct RankSummary {
    ranks: u32,
    /// The model folder.
    model: PathBuf,
    /// Number of words with a vector.
    words: u64,
    /// Number of tokens of the input.
    tokens: u64,
    /// Number of steps, of the rank with the most.
    steps: u64,
    /// Mean loss of rank 0 in this process.
    loss: Option<f64>,
    /// Exchanges of this process, and what rank 0 sent and received in them.
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
struct RankCheckpoint {
    /// Number of completed steps.
    step: u64,
    n_steps: u64,
    n_tokens: u64,
    n_ranks: u32,
    /// What all ranks agree on: settings and digests of the input.
    content: String,
}

/// This process among the ranks.
struct Ranks {
    place: Place,
    client: Client,
    /// Of rank 0.
    server: Option<Server>,
    /// Signals, as soon as they are handled.
    interrupts: Arc<OnceLock<Interrupts>>,
}

/// Trains as one of several ranks. Every rank calls it with the same arguments; rank 0 writes.
pub(super) fn train_ranks(arguments: &Train, launch: &Launch) -> Result<()> {
    set_quiet(arguments.quiet || launch.rank > 0);
    let mut ranks = Ranks::join(launch)?;
    let Err(error) = train(arguments, &mut ranks) else { return Ok(()) };
    ranks.end(&ending(&error, ranks.place.number));
    match error {
        Error::Parameters(parameters::Error::Ended(ending)) if ending.code == 0 => Ok(()),
        error => Err(error),
    }
}

/// With what the others end if this rank ends with an error. Settings and interruptions are those of all.
fn ending(error: &Error, rank: u32) -> Ending {
    let message = chain(error);
    match error {
        Error::Parameters(parameters::Error::Ended(ending)) => ending.clone(),
        Error::Interrupted { .. } => Ending { code: Exit::TryAgain as u32, message },
        _ if error.exit() == Exit::Settings => Ending { code: Exit::Settings as u32, message },
        _ => Ending { code: Exit::TryAgain as u32, message: format!("rank {rank} failed: {message}") },
    }
}

impl Ranks {
    /// Starts the server on rank 0, and waits for it on the others.
    fn join(launch: &Launch) -> Result<Self> {
        let place = Place { number: launch.rank as u32, of: launch.world_size as u32 };
        let token = key::of_this_process()?.map(|secret| Token::of_key(secret.bytes())).transpose()?;
        let mut server = None;
        if place.number == 0 {
            if token.is_none() {
                tell(&format!(
                    "warning: {} is not set, so anyone who can connect to rank 0 at {} can change this training; set it to \
                     the path of a file with mode 600 that all ranks can read",
                    key::KEY_FILE,
                    launch.server()
                ));
            }
            let options = ServerOptions::of_ranks(launch.listen(), place.of, token.clone());
            server = Some(Server::start(&options)?);
        }
        let client = Client::new(&ClientOptions {
            servers: vec![launch.server()],
            token,
            tls: TlsFiles::default(),
            wire: Wire::F32,
            patience: WAIT_MAX,
            stop: Arc::default(),
        })?;
        let interrupts = Arc::new(OnceLock::new());
        let of_process = Arc::clone(&interrupts);
        let asked = move || number_of(of_process.get().and_then(Interrupts::requested));
        client.begin(place.number, asked).map_err(|error| of_contact(error, launch))?;
        Ok(Self { place, client, server, interrupts })
    }

    /// Waits on rank 0 until all ranks have done this.
    fn wait_for_all(&self, stage: Stage) -> Result<()> {
        let Some(server) = &self.server else { return Ok(()) };
        let began = Instant::now();
        loop {
            let first = server.first_before(stage);
            // Also if none is left: a rank that ends all has reached the last stage.
            if let Some(ending) = server.ending() {
                return Err(parameters::Error::Ended(ending).into());
            }
            let Some(rank) = first else { return Ok(()) };
            if began.elapsed() > WAIT_MAX {
                let done = if stage == Stage::Started { "started" } else { "read its input" };
                let (n_ranks, waited_s) = (self.place.of, WAIT_MAX.as_secs());
                let message =
                    format!("rank {rank} of {n_ranks} has not {done} within {waited_s} s; start all again");
                return Err(Failed::new(Exit::TryAgain, message).into());
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Ends all ranks, and waits until they know it.
    fn end(&self, ending: &Ending) {
        self.client.end_all(self.place.number, ending);
        let began = Instant::now();
        let is_untold = |server: &Server| server.first_before(Stage::Told).is_some();
        while self.server.as_ref().is_some_and(is_untold) && began.elapsed() < TELL_LIMIT {
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The server and the training folder of rank 0.
    fn leader<'a>(&'a self, out: &'a mut Option<TextsOut>) -> Option<(&'a Server, &'a mut TextsOut)> {
        self.server.as_ref().zip(out.as_mut())
    }
}

/// The number by which a rank tells rank 0 what it is asked for. The largest one counts.
fn number_of(asked: Option<Requested>) -> u32 {
    match asked {
        None => 0,
        Some(Requested::Checkpoint) => 1,
        Some(Requested::Stop) => 2,
    }
}

/// Steps of a round; none if changes are added after each step.
fn steps_of_round(arguments: &Train) -> Option<u64> {
    arguments.sync_every.filter(|&steps| steps > 1)
}

fn train(arguments: &Train, ranks: &mut Ranks) -> Result<()> {
    // Otherwise, a rank that starts later would not hear why the others have ended.
    ranks.wait_for_all(Stage::Started)?;
    check(arguments)?;
    check_ranks(arguments)?;
    let mut recipe = recipe(arguments, Processes::Several)?;
    recipe["ranks"] = ranks.place.of.into();
    if arguments.model == ModelName::SkipGram {
        recipe["average-every"] = steps_of_round(arguments).into();
    }
    let comparisons = Comparisons::read(arguments)?;
    let out = ranks.server.is_some().then(|| out::take(arguments)).transpose()?;
    if let Some(out) = &out
        && out::is_complete(out, &recipe)?
    {
        ranks.end(&Ending { code: 0, message: "the training is complete".to_owned() });
        return out::finish_again(out, arguments);
    }
    let interrupts = Interrupts::listen().map_err(Error::Signals)?;
    let _ = ranks.interrupts.set(interrupts);
    let (vocabulary, share) = Share::read(arguments, ranks.place, &format!("{} ranks", ranks.place.of))?;
    let rank = Rank { arguments, ranks, vocabulary, share, recipe, comparisons, out };
    match arguments.model {
        ModelName::SkipGram => {
            let model = shared_skip_gram(arguments, &rank.vocabulary)?;
            rank.train(model)
        }
        ModelName::CharLstm => {
            let model = SharedTraining::new(arguments, &rank.vocabulary)?;
            rank.train(model)
        }
    }
}

/// Refuses what ranks cannot train.
fn check_ranks(arguments: &Train) -> Result<()> {
    if !arguments.served.servers.is_empty() {
        return Err(Error::setting(
            "--async",
            "set on several ranks",
            "workers that are started without launch and torchrun",
        ));
    }
    if let Some(threads) = arguments.threads.filter(|threads| *threads != 1) {
        return Err(Error::setting(
            "--threads",
            format!("{threads} on several ranks"),
            "one thread per rank; start more ranks",
        ));
    }
    check_several("on several ranks", arguments)
}

/// A rank that has read its input.
struct Rank<'a> {
    arguments: &'a Train,
    ranks: &'a mut Ranks,
    vocabulary: Vocabulary,
    share: Share,
    recipe: serde_json::Value,
    comparisons: Comparisons,
    /// The training folder, of rank 0.
    out: Option<TextsOut>,
}

impl Rank<'_> {
    fn train<M: Model>(self, mut model: M) -> Result<()> {
        let Self { arguments, ranks, vocabulary, share, recipe, mut comparisons, mut out } = self;
        let content = served::content(arguments, &model, &vocabulary, &share)?;
        let n_steps = share.n_most_steps(arguments.epochs());
        let plan = Plan {
            n_steps,
            steps_of_epoch: n_steps / u64::from(arguments.epochs()),
            period: steps_of_round(arguments).unwrap_or(1),
        };
        let mut specs = model.specs(&content);
        if steps_of_round(arguments).is_some() {
            specs.iter_mut().for_each(|spec| spec.optimizer = Optimizer::Mean);
        }
        let (n_tokens, n_ranks) = (vocabulary.n_tokens(), ranks.place.of);
        let mut reached = RankCheckpoint { step: 0, n_steps, n_tokens, n_ranks, content };
        if let Some((server, out)) = ranks.leader(&mut out) {
            let mut tables = Tables::new(specs.clone());
            if let Some(state) = out::state(out)? {
                reached.restore(&mut model, &mut tables, state)?;
            }
            model.read_held_out(arguments, &vocabulary, &mut comparisons)?;
            server.open(tables, plan.exchanges_before(reached.step))?;
        }
        let joined = served::join(&mut ranks.client, arguments, &specs, ranks.place);
        let joined = joined.map_err(|error| of_join(error, ranks.place.number))?;
        let ranks = &*ranks;
        // Before a training is replaced, all ranks have the same settings.
        ranks.wait_for_all(Stage::Joined)?;
        if let Some(out) = &out {
            out::begin(out, arguments, &recipe)?;
        }
        let steps = Steps {
            arguments,
            interrupts: None,
            client: &ranks.client,
            joined: &joined,
            vocabulary: &vocabulary,
            share: &share,
            plan,
        };
        let progress = out.as_ref().map(|out| Progress::new(out, steps.n_tokens())).transpose()?;
        let every = Duration::from_secs_f64(arguments.checkpoint_every.min(1e9));
        let mut pauses =
            BetweenSteps { ranks, vocabulary: &vocabulary, reached, every, saved_at: Instant::now() };
        let pause = |model: &mut M, step| pauses.pause(model, step, &mut out);
        let (mut model, measured, done) = steps.run(model, progress, &mut comparisons, pause)?;
        if out.is_some() {
            read_all(&ranks.client, &mut model, Moment::End)?;
        }
        ranks.client.leave_with(done.n_pairs)?;
        let Some((server, out)) = ranks.leader(&mut out) else { return Ok(()) };
        let n_pairs = server.sum();
        let specs = model.specs("");
        out::finish(out, &mut model.into_vectors(), &vocabulary, &recipe)?;
        let words = vocabulary.n_words() as u64;
        served::tell_end(words, n_pairs, measured.seconds, Some(&out.shown_model()));
        if arguments.json {
            let seconds = measured.seconds.max(f64::MIN_POSITIVE);
            let per_exchange = |n: u64| n as f64 / measured.exchanges.max(1) as f64;
            print_json(&RankSummary {
                ranks: n_ranks,
                model: out.shown_model(),
                words,
                tokens: n_tokens,
                steps: n_steps,
                loss: done.loss(),
                exchanges: measured.exchanges,
                rows_per_exchange: per_exchange(measured.pushed_rows),
                bytes_per_exchange: per_exchange(measured.bytes),
                table_bytes: specs.iter().map(|spec| 4 * spec.n_rows * u64::from(spec.dim)).sum(),
                seconds: measured.seconds,
                exchanging_share: measured.waiting_s / seconds,
                pairs_per_s: n_pairs as f64 / seconds,
                compared: comparisons.into_last(),
            })?;
        }
        Ok(())
    }
}

/// What rank 0 does between steps.
struct BetweenSteps<'a> {
    ranks: &'a Ranks,
    vocabulary: &'a Vocabulary,
    reached: RankCheckpoint,
    /// Time between two checkpoints; 0: none is due.
    every: Duration,
    saved_at: Instant,
}

impl BetweenSteps<'_> {
    /// Saves a checkpoint if a rank was asked for one or it is due. Ends if a rank was asked to stop.
    fn pause<M: Model>(&mut self, model: &mut M, step: u64, out: &mut Option<TextsOut>) -> Result<()> {
        let Some((server, out)) = self.ranks.leader(out) else { return Ok(()) };
        let own = number_of(self.ranks.interrupts.get().and_then(Interrupts::requested));
        let asked = server.requested().max(own);
        let is_due = !self.every.is_zero() && self.saved_at.elapsed() >= self.every;
        if asked > 0 || is_due {
            self.reached.step = step;
            let place = serde_json::to_vec(&self.reached).map_err(|error| Error::internal(&error))?;
            read_all(&self.ranks.client, model, Moment::Now)?;
            model.save_shared(server, out, self.vocabulary, &place)?;
            self.saved_at = Instant::now();
        }
        if asked >= number_of(Some(Requested::Stop)) {
            out.checkpoints_saved()?;
            return Err(Error::Interrupted { resume: out.shown_checkpoints() });
        }
        Ok(())
    }
}

impl RankCheckpoint {
    /// Restores a checkpoint of an unchanged training.
    fn restore(
        &mut self,
        model: &mut impl Model,
        tables: &mut Tables,
        (path, mut file): (PathBuf, impl Read),
    ) -> Result<()> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| Error::io(&path, source))?;
        model.restore_shared(tables, &bytes, |place| {
            let found: Self = serde_json::from_slice(place).map_err(|error| Error::internal(&error))?;
            self.step = found.step;
            match found == *self {
                true => Ok(()),
                false => Err(Error::other_input(&path, self.n_tokens, found.n_tokens)),
            }
        })
    }
}

/// The error of a rank that rank 0 does not answer or refuses.
fn of_contact(error: parameters::Error, launch: &Launch) -> Error {
    let server = launch.server();
    match error.exit() {
        Exit::Unavailable => {
            let waited_s = WAIT_MAX.as_secs();
            let message =
                format!("rank 0 has not answered on {server} within {waited_s} s; start all ranks again");
            Failed::new(Exit::TryAgain, message).into()
        }
        Exit::Settings if !matches!(error, parameters::Error::Ended(_)) => {
            let remedy =
                format!("expected the key of rank 0; set {} on all ranks to the same key", key::KEY_FILE);
            let rank = launch.rank;
            Failed::new(Exit::Settings, format!("rank 0 on {server} refused rank {rank}, {remedy}")).into()
        }
        _ => error.into(),
    }
}

/// The error of a rank with another input or other settings than rank 0.
fn of_join(error: Error, rank: u32) -> Error {
    match error {
        Error::Parameters(parameters::Error::Failed(Failed { exit: Exit::Settings, .. })) => {
            let remedy = "start all ranks with the same input and flags";
            let message = format!("rank {rank} has other texts or settings than rank 0; {remedy}");
            Failed::new(Exit::Settings, message).into()
        }
        other => other,
    }
}
