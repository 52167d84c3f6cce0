//! Trainings, models and reports in S3: killed and resumed on another machine, damaged, occupied, and compared with
//! local ones.
#![allow(clippy::unwrap_used)]

mod command;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use command::{ended, plain, program, run};
use fixtures::reviews;
use rustix::process::Signal;
use tempfile::TempDir;
use tests::fault_proxy::{Fault, FaultProxy, Request};
use tests::ranks::Rank;
use tests::s3_server::{S3Server, SECRET_KEY, with_s3};

/// Maximum time until a request is seen.
const LIMIT: Duration = Duration::from_secs(120);
const TRAINING: &str = "s3://bucket/sentiment";

/// A bucket with the dataset of a small training, behind a proxy.
struct World {
    server: S3Server,
    proxy: FaultProxy,
    /// The caches of several machines, and local trainings.
    folder: TempDir,
    dataset: PathBuf,
    _data: TempDir,
}

impl World {
    fn of(server: S3Server, plan: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> Self {
        let (data, dataset) = reviews(600);
        server.put("reviews.h5", &fs::read(&dataset).unwrap());
        let proxy = FaultProxy::start(server.address(), plan).unwrap();
        Self { server, proxy, folder: tempfile::tempdir().unwrap(), dataset, _data: data }
    }

    fn new(plan: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> Self {
        Self::of(S3Server::start_s3s_fs(), plan)
    }

    /// A command on a machine, which has a cache of its own.
    fn on(&self, machine: &str, arguments: &[&str]) -> Command {
        self.run("trainer", machine, arguments)
    }

    fn run(&self, of: &str, machine: &str, arguments: &[&str]) -> Command {
        let mut command = with_s3(program(of), &self.proxy.url());
        command.env("SENTIMILL_CACHE", self.cache(machine)).current_dir(self.folder.path()).args(arguments);
        command
    }

    fn cache(&self, machine: &str) -> PathBuf {
        self.folder.path().join(machine)
    }

    fn fit(&self, machine: &str, dataset: &str, out: &str, more: &[&str]) -> Command {
        let sizes =
            ["--embedding=64", "--hidden=128", "--linear=16", "--epochs=6", "--batch=32", "--layers=2"];
        let option = |setting: &str| setting.split('=').next().unwrap().to_owned();
        let has = |setting: &&&str| !more.iter().any(|more| option(more) == option(setting));
        let sizes = sizes.iter().filter(has).copied();
        let asked: Vec<&str> =
            more.iter().copied().chain(sizes).chain(["--device=cpu", "--log-steps=1"]).collect();
        self.on(machine, &[&["fit", dataset, "--out", out], &plain(&asked)[..]].concat())
    }

    fn fit_in_s3(&self, machine: &str, more: &[&str]) -> Command {
        self.fit(machine, "s3://bucket/reviews.h5", TRAINING, &[&["--checkpoint-steps=5"], more].concat())
    }

    fn train_locally(&self) -> PathBuf {
        let (code, told) = ended(self.fit("local", self.dataset.to_str().unwrap(), "local-model", &[]));
        assert_eq!(code, Some(0), "{told}");
        self.folder.path().join("local-model")
    }

    fn train_in_s3(&self, more: &[&str]) {
        let (code, told) = ended(self.fit_in_s3("one", more));
        assert_eq!(code, Some(0), "{told}");
    }

    fn object(&self, name: &str) -> Option<Vec<u8>> {
        self.server.get(&format!("sentiment/{name}"))
    }

    /// Waits until the proxy sees such a request.
    fn wait_for(&self, is_wanted: impl Fn(&Request) -> bool) {
        let begin = Instant::now();
        while !self.proxy.seen().iter().any(|(request, _)| is_wanted(request)) {
            assert!(begin.elapsed() < LIMIT, "no such request");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The names of the checkpoints that are complete in S3, from the oldest to the newest.
    fn checkpoints(&self) -> Vec<String> {
        let of = |(request, _): &(Request, Fault)| {
            let below = request.target.split("checkpoints/").nth(1)?;
            let name = below.split_once("/SHA256SUMS")?.0;
            let is_of_logs = name.contains('/');
            (request.method == "PUT"
                && !is_of_logs
                && self.object(&format!("checkpoints/{name}/SHA256SUMS")).is_some())
            .then(|| name.to_owned())
        };
        let mut names: Vec<String> = self.proxy.seen().iter().filter_map(of).collect();
        names.sort();
        names.dedup();
        names
    }

    fn requests(&self, method: &str, name: &str) -> usize {
        let is_alike = |request: &Request| request.method == method && request.target.contains(name);
        self.proxy.seen().iter().filter(|(request, _)| is_alike(request)).count()
    }
}

fn is_put(request: &Request, name: &str) -> bool {
    request.method == "PUT" && request.target.contains(name)
}

/// The step of a checkpoint.
fn step(name: &str) -> u64 {
    name.trim_start_matches("step-").parse().unwrap()
}

fn killed(mut rank: Rank) {
    rank.signal(Signal::KILL);
    rank.end();
}

fn model_files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named =
        |path: PathBuf| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap());
    entries.map(named).collect()
}

#[test]
fn a_training_in_s3_that_is_killed_twice_and_resumed_elsewhere_has_the_weights_of_a_local_one() {
    // At the same time, because a resumed training waits for heartbeats.
    std::thread::scope(|scope| {
        for server in S3Server::each() {
            // A failure names its thread.
            let thread = std::thread::Builder::new().name(server.name().to_owned());
            thread.spawn_scoped(scope, move || is_killed_twice_and_resumed_elsewhere(server)).unwrap();
        }
    });
}

fn is_killed_twice_and_resumed_elsewhere(server: S3Server) {
    let is_slow = Arc::new(AtomicBool::new(false));
    let slow = Arc::clone(&is_slow);
    let world = World::of(server, move |request| {
        let is_slow = is_put(request, "/optimizer.safetensors") && slow.load(Ordering::Relaxed);
        if is_slow { Fault::Delay(Duration::from_secs(60)) } else { Fault::None }
    });
    let local = world.train_locally();

    let mut first = Rank::start(0, world.fit_in_s3("one", &[]));
    first.wait_for(" step 13: ");
    world.wait_for(|request| is_put(request, "/SHA256SUMS") && !request.target.contains("/log/"));
    killed(first);

    // It is killed between the objects of a checkpoint.
    let mut second = Rank::start(0, world.fit_in_s3("two", &["--resume"]));
    second.wait_for(" has not released it; waiting 20 s for a heartbeat");
    is_slow.store(true, Ordering::Relaxed);
    second.wait_for("resuming after step ");
    let n_uploads = world.requests("PUT", "/optimizer.safetensors");
    while world.requests("PUT", "/optimizer.safetensors") == n_uploads {
        std::thread::sleep(Duration::from_millis(20));
    }
    killed(second);
    is_slow.store(false, Ordering::Relaxed);
    let newest = step(world.checkpoints().last().unwrap());
    let cut = world.proxy.seen().into_iter().rfind(|(request, _)| is_put(request, "/optimizer.safetensors"));
    let cut =
        cut.unwrap().0.target.split("checkpoints/").nth(1).unwrap().split('/').next().unwrap().to_owned();
    assert!(step(&cut) > newest && !world.checkpoints().contains(&cut), "{cut} {newest}");

    let (code, told) = ended(world.fit_in_s3("three", &["--resume"]));
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains(&format!("resuming after step {newest}, ")), "{told}");
    assert!(told.contains("the model is in s3://bucket/sentiment/model"), "{told}");
    for (name, content) in model_files(&local.join("model")) {
        assert!(world.object(&format!("model/{name}")).as_deref() == Some(&content), "{name}");
    }
    let local_scores = fs::read(local.join("scores.npy")).unwrap();
    assert!(world.object("scores.npy").as_deref() == Some(&local_scores));
    // The metrics are those of the first process up to its checkpoint, and of the last one.
    let metrics = String::from_utf8(world.object("metrics.jsonl").unwrap()).unwrap();
    let starts = metrics.lines().filter(|line| line.contains("\"start\"")).count();
    assert!(starts >= 2, "{metrics}");
    assert!(fs::read_dir(world.cache("three").join("trainings")).unwrap().next().is_none());

    let (code, told) = ended(world.fit_in_s3("four", &["--resume"]));
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(told, "trainer: already complete: the model is in s3://bucket/sentiment/model");
}

#[test]
fn a_cross_validation_in_s3_that_is_resumed_elsewhere_has_the_metrics_of_a_local_one() {
    let world = World::new(|_| Fault::None);
    let flags = ["--folds=2", "--epochs=4", "--checkpoint-steps=5"];
    let local = world.folder.path().join("local-folds");
    let (code, told) = ended(world.fit("local", "s3://bucket/reviews.h5", local.to_str().unwrap(), &flags));
    assert_eq!(code, Some(0), "{told}");
    let in_s3 = |machine: &str, more: &[&str]| {
        world.fit(machine, "s3://bucket/reviews.h5", TRAINING, &[&flags[..], more].concat())
    };
    let mut first = Rank::start(0, in_s3("one", &[]));
    assert!(first.wait_for_lines(" step 7: ", 2));
    first.signal(Signal::TERM);
    assert_eq!(first.end().0, Some(75));
    assert!(world.object("fold-1/model/SHA256SUMS").is_some());
    assert!(world.object("fold-2/model/SHA256SUMS").is_none() && world.object("folds.json").is_none());

    let (code, told) = ended(in_s3("two", &[]));
    assert_eq!(code, Some(64), "{told}");
    assert!(told.contains("s3://bucket/sentiment: already exists: found a cross-validation"), "{told}");
    for machine in ["two", "three"] {
        let (code, told) = ended(in_s3(machine, &["--resume"]));
        assert_eq!(code, Some(0), "{told}");
        assert!(told.contains("the metrics of the folds are in s3://bucket/sentiment/folds.json"), "{told}");
        assert_eq!(world.object("folds.json"), Some(fs::read(local.join("folds.json")).unwrap()));
    }
    for fold in ["fold-1", "fold-2"] {
        for (name, content) in model_files(&local.join(fold).join("model")) {
            assert!(
                world.object(&format!("{fold}/model/{name}")).as_deref() == Some(&content),
                "{fold} {name}"
            );
        }
    }
    let (code, told) = ended(world.on("four", &["report", TRAINING, "--out", "folds.html"]));
    assert_eq!(code, Some(0), "{told}");
    let page = fs::read_to_string(world.folder.path().join("folds.html")).unwrap();
    assert!(page.contains("2 folds: ") && page.contains("s3://bucket/sentiment/fold-2"));
}

#[test]
fn a_model_in_s3_gives_the_answers_of_a_local_one() {
    for server in S3Server::each() {
        let world = World::of(server, |_| Fault::None);
        let local = world.train_locally();
        world.train_in_s3(&[]);
        let lines = "{\"reviewText\": \"waaaab waaacd\"}\nno json\n{\"reviewText\": \"waaaac\"}\n";
        world.server.put("lines/a.json", lines.as_bytes());
        fs::write(world.folder.path().join("a.json"), lines).unwrap();
        let local = local.to_str().unwrap();

        let dataset = world.dataset.to_str().unwrap();
        let answers = |model: &str, dataset: &str, lines: &str| {
            [["evaluate", model, dataset], ["predict", model, lines]].map(|arguments| {
                let (code, said, told) = run(world.on("other", &arguments));
                assert_eq!(code, Some(0), "{told}");
                said.replace(dataset, "DATASET").replace(lines, "LINES")
            })
        };
        let expected = answers(local, dataset, "a.json");
        for model in [TRAINING, "s3://bucket/sentiment/model/"] {
            let found = answers(model, "s3://bucket/reviews.h5", "s3://bucket/lines/a.json");
            assert_eq!(found, expected, "{model}");
        }
        assert!(expected[1].contains("\"file\":\"LINES\",\"line\":3"), "{}", expected[1]);
        // The model and the dataset are fetched once per machine.
        assert_eq!(world.requests("GET", "/sentiment/model/model.safetensors"), 1);

        let (code, told) = ended(world.on("other", &["export", TRAINING, "--out", "s3://bucket/exported"]));
        assert_eq!(code, Some(0), "{told}");
        assert!(told.contains("wrote s3://bucket/exported: weights, vocabulary, configuration"), "{told}");
        let (code, told) = ended(world.on("other", &["export", local, "--out", "exported"]));
        assert_eq!(code, Some(0), "{told}");
        // The card of a model in S3 has no metrics, because only the model is fetched.
        let files = model_files(&world.folder.path().join("exported"));
        for (name, content) in files.into_iter().filter(|(name, _)| *name != "README.md") {
            let found = world.server.get(&format!("exported/{name}")).expect(&name);
            let [found, content] = [found, content].map(|bytes| {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let of_card = |line: &&str| name == "SHA256SUMS" && line.ends_with("  README.md");
                text.lines().filter(|line| !of_card(line)).collect::<Vec<_>>().join("\n")
            });
            assert!(found == content, "{name}: {found:.300} {content:.300}");
        }
        let (code, told) = ended(world.on("other", &["export", TRAINING, "--out", "s3://bucket/exported"]));
        assert_eq!(code, Some(64), "{told}");
        assert!(told.contains("s3://bucket/exported: already exists: found a model folder"), "{told}");

        let report = ["report", TRAINING, local, "--out", "s3://bucket/pages/report.html"];
        let (code, told) = ended(world.on("other", &report));
        assert_eq!((code, &*told), (Some(0), "trainer: the report is in s3://bucket/pages/report.html"));
        let page = String::from_utf8(world.server.get("pages/report.html").unwrap()).unwrap();
        assert!(page.contains("s3://bucket/sentiment") && page.contains("ROC"), "{page}");
        let (code, told) = ended(world.on("other", &report));
        assert_eq!(code, Some(64), "{told}");
        assert!(told.contains("report.html: already exists: found an object, expected a new name"), "{told}");
    }
}

#[test]
fn a_damaged_object_is_refused_by_name() {
    let world = World::new(|_| Fault::None);
    world.train_in_s3(&["--keep-checkpoints=9"]);
    let damaged = |name: &str| {
        let name = format!("sentiment/{name}");
        let mut content = world.server.get(&name).unwrap();
        let middle = content.len() / 2;
        content[middle] ^= 1;
        world.server.put(&name, &content);
    };
    damaged("model/model.safetensors");
    damaged("evaluation.json");
    for (arguments, object) in [
        (&["evaluate", TRAINING, "s3://bucket/reviews.h5"][..], "sentiment/model/model.safetensors"),
        (&["export", "s3://bucket/sentiment/model"], "sentiment/model/model.safetensors"),
        (&["report", TRAINING], "sentiment/evaluation.json"),
    ] {
        let (code, told) = ended(world.on("two", arguments));
        assert_eq!(code, Some(66), "{told}");
        assert!(told.contains(&format!("s3://bucket/{object}: its SHA-256 is ")), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }

    // An unfinished training resumes from the newest checkpoint that is not damaged.
    fs::remove_file(world.server.path("sentiment/model/SHA256SUMS")).unwrap();
    let checkpoints = world.checkpoints();
    let [.., older, newest] = &checkpoints[..] else { panic!("{checkpoints:?}") };
    damaged(&format!("checkpoints/{newest}/optimizer.safetensors"));
    let mut rank = Rank::start(0, world.fit_in_s3("three", &["--resume"]));
    let line = rank.wait_for("skipped a damaged checkpoint: ");
    assert!(line.contains(&format!("checkpoints/{newest}/optimizer.safetensors: its SHA-256 is ")), "{line}");
    rank.wait_for(&format!("resuming after step {}, ", step(older)));
    let (code, output) = rank.end();
    assert_eq!(code, Some(0), "{output:?}");
    let (code, told) = ended(world.on("four", &["evaluate", TRAINING, "s3://bucket/reviews.h5"]));
    assert_eq!(code, Some(0), "the objects of the model that was not complete are replaced: {told}");

    let mut dataset = fs::read(&world.dataset).unwrap();
    let middle = dataset.len() / 2;
    dataset[middle] ^= 1;
    world.server.put("damaged.h5", &dataset);
    let (code, told) = ended(world.fit("two", "s3://bucket/damaged.h5", "out", &[]));
    assert_eq!((code, told.lines().count()), (Some(66), 1), "{told}");
    assert!(told.contains("s3://bucket/damaged.h5, fetched as "), "{told}");
}

#[test]
fn a_second_training_below_a_prefix_is_refused_and_the_first_goes_on() {
    let world = World::new(|_| Fault::None);
    let mut first = Rank::start(0, world.fit_in_s3("one", &["--epochs=100000"]));
    first.wait_for(" step 5: ");
    let holder = " is training below this prefix; wait until it exits, or choose another --out";
    for (machine, more, code, expected) in [
        (
            "two",
            &[][..],
            64,
            "s3://bucket/sentiment: already exists: found a training, expected an unused prefix; resume",
        ),
        ("two", &["--epochs=100000", "--resume"], 75, holder),
        ("one", &["--epochs=100000", "--resume"], 75, " is training in this folder"),
    ] {
        let (found, told) = ended(world.fit_in_s3(machine, more));
        assert_eq!(found, Some(code), "{told}");
        assert!(told.contains(expected) && told.contains("s3://bucket/sentiment"), "{told}");
    }
    // An orderly end releases the prefix, with a checkpoint at its last step.
    first.signal(Signal::TERM);
    let (code, output) = first.end();
    assert_eq!(code, Some(75), "{output:?}");
    let last = output.last().unwrap();
    assert!(
        last.contains("interrupted; a checkpoint is in s3://bucket/sentiment/checkpoints; resume"),
        "{last}"
    );
    let mut second = Rank::start(0, world.fit_in_s3("two", &["--epochs=100000", "--resume"]));
    second.wait_for("resuming after step ");
    second.signal(Signal::TERM);
    let (_, output) = second.end();
    assert!(!output.iter().any(|line| line.contains("waiting 20 s")), "{output:?}");
}

#[test]
fn a_training_that_was_resumed_elsewhere_stops_and_replaces_nothing() {
    let world = World::new(|_| Fault::None);
    let mut first = Rank::start(0, world.fit_in_s3("one", &["--epochs=100000"]));
    let begin = Instant::now();
    while world.checkpoints().is_empty() {
        assert!(begin.elapsed() < LIMIT, "no checkpoint");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Stopped for longer than a heartbeat may take.
    first.signal(Signal::STOP);
    let mut second = Rank::start(0, world.fit_in_s3("two", &["--epochs=100000", "--resume"]));
    second.wait_for("waiting 20 s for a heartbeat");
    second.wait_for("resuming after step ");
    second.signal(Signal::TERM);
    assert_eq!(second.end().0, Some(75));
    first.signal(Signal::CONT);
    let (code, output) = first.end();
    assert_eq!(code, Some(75), "{output:?}");
    assert!(
        output.last().unwrap().contains(" has resumed this training, so this process stops"),
        "{output:?}"
    );
}

#[test]
fn older_checkpoints_are_deleted_after_the_newer_one_is_complete_and_their_last_object_first() {
    let world = World::new(|_| Fault::None);
    world.train_in_s3(&["--keep-checkpoints=1"]);
    let seen = world.proxy.seen();
    let at = |method: &str, name: &str| {
        let is_it =
            |(request, _): &(Request, Fault)| request.method == method && request.target.contains(name);
        seen.iter().position(is_it)
    };
    let deleted = seen.iter().filter(|(request, _)| request.method == "DELETE");
    let first =
        deleted.map(|(request, _)| request.target.clone()).find(|target| target.contains("checkpoints/"));
    let first = first.expect("older checkpoints are deleted");
    let step = first.split('/').find(|part| part.starts_with("step-")).unwrap();
    assert!(first.contains(&format!("{step}/SHA256SUMS")), "{first}");
    let newer =
        seen.iter().filter(|(request, _)| request.method == "PUT" && request.target.contains("/SHA256SUMS"));
    let newer = newer.map(|(request, _)| request.target.clone()).find(|target| {
        target.contains("checkpoints/") && !target.contains("/log/") && !target.contains(step)
    });
    assert!(
        at("PUT", newer.unwrap().split('?').next().unwrap()) < at("DELETE", &format!("{step}/SHA256SUMS"))
    );
    assert!(world.object(&format!("checkpoints/{step}/model.safetensors")).is_none());
    assert_eq!(world.checkpoints().len(), 1);
}

#[test]
fn a_store_that_is_away_at_the_end_leaves_a_folder_from_which_the_model_is_put_later() {
    let world = World::new(|request| match is_put(request, "/model/") && request.earlier < 30 {
        true => Fault::Reset,
        false => Fault::None,
    });
    let (code, told) = ended(world.fit_in_s3("one", &[]));
    assert_eq!(code, Some(69), "{told}");
    let last = told.lines().last().unwrap();
    assert!(
        last.contains("has all files of the training: repeat the command with --resume on this machine"),
        "{told}"
    );
    assert!(!told.contains(SECRET_KEY));
    let local = world.train_locally();
    // It is put without a step.
    let mut resumed = world.fit_in_s3("one", &["--resume"]);
    resumed.env("AWS_ENDPOINT_URL_S3", format!("http://{}", world.server.address()));
    let (code, told) = ended(resumed);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(told, "trainer: already complete: the model is in s3://bucket/sentiment/model");
    for (name, content) in model_files(&local.join("model")) {
        assert!(world.object(&format!("model/{name}")).as_deref() == Some(&content), "{name}");
    }
}

#[test]
fn two_ranks_of_a_machine_fetch_the_dataset_once_and_one_of_them_writes() {
    let world = World::new(|_| Fault::None);
    let fit = world.fit_in_s3("one", &[]);
    let arguments: Vec<&str> = fit.get_args().map(|argument| argument.to_str().unwrap()).collect();
    let (code, told) = ended(world.on("one", &[&["launch", "--nproc", "2", "--"], &arguments[..]].concat()));
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(world.requests("GET", "/bucket/reviews.h5"), 1);
    assert_eq!(world.requests("PUT", "claims/000001.json"), 1);
    assert!(world.object("model/SHA256SUMS").is_some());
}

#[test]
fn a_claim_without_a_checkpoint_is_withdrawn_when_the_dataset_is_refused() {
    let world = World::new(|_| Fault::None);
    let (code, told) = ended(world.fit("one", "s3://bucket/no-such.h5", TRAINING, &[]));
    assert_eq!(code, Some(66), "{told}");
    assert!(told.contains("s3://bucket/no-such.h5: no such object"), "{told}");
    world.train_in_s3(&[]);
}

#[test]
fn a_place_that_a_command_cannot_use_is_refused_by_name_before_any_work() {
    let within = tempfile::tempdir().unwrap();
    let scheme = "is not supported here, expected a local path or s3://bucket/name";
    for (arguments, expected) in [
        ("fit https://host/a.h5", scheme),
        ("fit a.h5 --test https://host/b.h5", scheme),
        ("fit a.h5 --init-from hdfs://host/b", scheme),
        ("fit a.h5 --out hdfs://host/b", scheme),
        ("fit a.h5 --out s3://bucket", "it is a whole bucket"),
        ("fit a.h5 --out s3://KEY:SECRET@bucket/x", "found a user name or key before the bucket"),
        ("fit a.h5 --out b --resume ftp://host/b", scheme),
        ("fit a.h5 --out s3://bucket/b --force", "--force has no effect on s3://bucket/b"),
        ("pretrain https://host/a.h5", scheme),
        ("pretrain a.h5 --out gs://bucket/b", scheme),
        ("evaluate gs://bucket/m a.h5", scheme),
        ("evaluate m https://host/a.h5", scheme),
        ("predict gs://bucket/m", scheme),
        ("predict m https://host/a.json", scheme),
        ("export gs://bucket/m", scheme),
        ("export m --out gs://bucket/e", scheme),
        ("export m --out s3://bucket/e --force", "--force has no effect on s3://bucket/e"),
        ("report gs://bucket/r", scheme),
        ("report r --out gs://bucket/r.html", scheme),
        ("report r --out s3://bucket/", "the name ends in a slash"),
        ("launch --nproc 1 --log-dir s3://bucket/logs -- fit a.h5", "s3:// is not supported here"),
    ] {
        let mut command = program("trainer");
        // No request can be sent.
        command
            .args(arguments.split(' '))
            .current_dir(within.path())
            .env("HTTPS_PROXY", "http://127.0.0.1:9");
        let (code, told) = ended(command);
        assert_eq!(code, Some(64), "{arguments}: {told}");
        assert!(told.contains(expected) && told.lines().count() == 1, "{arguments}: {told}");
        assert!(!told.contains("SECRET"), "{arguments}: {told}");
        assert!(fs::read_dir(within.path()).unwrap().next().is_none(), "{arguments}");
    }
}

#[test]
fn a_second_resume_beside_one_that_ends_finds_word_vectors_that_are_complete_and_no_checkpoint() {
    // The first process waits for its last object while the second one lists the prefix.
    let world = World::new(|request| match is_put(request, "/vectors/model/SHA256SUMS") {
        true => Fault::Delay(Duration::from_secs(3)),
        false => Fault::None,
    });
    let lines: String =
        (0..20_000).map(|n| format!("word{} stands beside word{} here\n", n % 50, n % 7)).collect();
    fs::write(world.folder.path().join("lines.txt"), lines).unwrap();
    let embed = |more: &[&str]| {
        let asked = ["train", "--input", "lines.txt", "--format", "text", "--out", "s3://bucket/vectors"];
        let sizes = ["--dim", "16", "--epochs", "4", "--threads", "1", "--checkpoint-every", "0.001"];
        world.run("vectors", "one", &[&asked[..], &sizes, more].concat())
    };
    let mut first = Rank::start(0, embed(&[]));
    world.wait_for(|request| is_put(request, "/vectors/model/SHA256SUMS"));
    assert!(world.requests("PUT", "/vectors/checkpoints/step-") > 0, "no checkpoint");

    let (code, told) = ended(embed(&["--resume"]));

    assert_eq!(
        (code, told.as_str()),
        (Some(0), "vectors: already complete: the model is in s3://bucket/vectors/model")
    );
    let (code, output) = first.end();
    assert_eq!(code, Some(0), "{output:?}");
    // The server keeps empty folders.
    let left = tests::files::snapshot(&world.server.path("vectors/checkpoints"));
    assert!(left.is_empty(), "checkpoints of a complete training: {:?}", left.keys());
}
