//! Real reducers of one partition that race in S3, behind a proxy that injects network faults.
//!
//! The servers check a name and store an object in two steps, so the proxy serializes conditional puts of one
//! name, as S3 does.

use std::io::Write;
use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dataset::commit::commit_key;
use synthetic::random::Random;
use tests::fault_proxy::{Fault, FaultProxy, Request};
use tests::programs::{Finished, finish, program, run, start};
use tests::s3_server::{S3Server, with_s3};
use tests::seeds::{each_seed, seeds};

use crate::attempts::{Corpus, VOCABULARY_SIZE};
use crate::hadoop::{Maps, with_a_review_more};
use crate::scratch;

/// Attempts check for a commit before they read input. Within this time, all attempts of a race have checked.
const START_LIMIT: Duration = Duration::from_secs(60);

#[test]
fn exactly_one_attempt_wins_in_each_s3_server() {
    let corpus = Corpus::of(60, 1);
    for server in S3Server::each() {
        let (n_requests, n_faults) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let seeds = seeds(4, 1_000);
        each_seed(&seeds, |seed| {
            let proxy = FaultProxy::start(server.address(), now_and_then).unwrap();
            play(&corpus, &proxy, seed);
            let seen = proxy.seen();
            n_requests.fetch_add(seen.len(), Ordering::Relaxed);
            n_faults
                .fetch_add(seen.iter().filter(|(_, fault)| *fault != Fault::None).count(), Ordering::Relaxed);
        });
        let (races, name, n_faults) = (seeds.end - seeds.start, server.name(), n_faults.into_inner());
        tests::say(&format!(
            "{races} races in {name}: {n_faults} faults in {} requests",
            n_requests.into_inner()
        ));
        assert!(n_faults > 0, "nothing went wrong");
    }
}

/// Injects a fault into one request in ten, and into one conditional put in eight, depending on its name and
/// the number of earlier requests.
fn now_and_then(request: &Request) -> Fault {
    let name: u64 = request
        .target
        .bytes()
        .fold(request.earlier as u64, |sum, byte| sum * 31 % 1_000_003 + u64::from(byte));
    match Random::new(name).below(40) {
        0 => Fault::LoseAnswer,
        1 => Fault::Reset,
        2 => Fault::Status(500),
        3 => Fault::Status(503),
        4 if request.is_conditional() => Fault::Status(409),
        _ => Fault::None,
    }
}

/// Runs one race of 2 to 8 attempts, some of which may read other input.
fn play(corpus: &Corpus, proxy: &FaultProxy, seed: u64) {
    let mut random = Random::new(seed);
    let mut wrong = vec![false; 2 + random.below(7)];
    if random.one_in(4) {
        wrong[0] = true;
    }
    let name = format!("race-{seed}");
    let ended = race(corpus, proxy, &name, seed, &wrong);

    let well: Vec<_> = ended.iter().filter(|attempt| attempt.code == 0).collect();
    let echo = well.first().expect("somebody wins").said();
    let (_, elected) =
        echo.split_once(" committed by attempt attempt-").expect("a commit is told in one line");
    let winner: usize = elected.split_once(':').unwrap().0.parse().unwrap();
    for (attempt, is_wrong) in ended.iter().zip(&wrong) {
        let (code, said) = (attempt.code, &attempt.stderr);
        assert_eq!(code, if *is_wrong == wrong[winner] { 0 } else { 70 }, "{said}");
        assert!(code != 0 || attempt.said() == echo, "two were elected: {echo}{}", attempt.said());
    }
    if !wrong[winner] {
        let folder = scratch();
        let out = folder.path().join("reviews.h5");
        let mut merge = with_s3(program("merge"), &proxy.url());
        merge
            .args(["--run", &url(&name), "--vocabulary-size", &VOCABULARY_SIZE.to_string(), "--out"])
            .arg(&out);
        run(merge.env("TMPDIR", folder.path()), b"").succeeded();
        corpus.assert_is_dataset(&out);
    }
}

/// Starts attempts, feeds them once all have found no commit, and waits for them.
fn race(corpus: &Corpus, proxy: &FaultProxy, name: &str, seed: u64, wrong: &[bool]) -> Vec<Finished> {
    let (mut random, maps, folder) = (Random::new(seed), Maps::of(&corpus.lines, 2, 1), scratch());
    let mut attempts: Vec<Child> = (0..wrong.len())
        .map(|number| {
            let mut reducer = with_s3(program("reducer"), &proxy.url());
            reducer.args(["--run", &url(name), "--partition", "0", "--partitions", "1"]);
            reducer.args(["--attempt", &format!("attempt-{number}")]);
            start(reducer.env("TMPDIR", folder.path()))
        })
        .collect();
    let record = format!("/{name}/{}", commit_key(0));
    let begin = Instant::now();
    let is_answered = |(request, fault): &&(Request, Fault)| {
        // The client library retries failed requests.
        *fault == Fault::None && request.method == "GET" && request.target.contains(&record)
    };
    while proxy.seen().iter().filter(is_answered).count() < wrong.len() {
        assert!(begin.elapsed() < START_LIMIT, "attempts do not begin");
        thread::sleep(Duration::from_millis(5));
    }
    for (attempt, is_wrong) in attempts.iter_mut().zip(wrong) {
        let input = maps.input(0, &mut random);
        let more = is_wrong.then(|| with_a_review_more(&input, &mut random).expect("a corpus with reviews"));
        attempt
            .stdin
            .take()
            .expect("standard input is piped")
            .write_all(more.as_ref().unwrap_or(&input))
            .unwrap();
    }
    let finishing: Vec<_> =
        attempts.into_iter().map(|attempt| thread::spawn(|| finish(attempt, "an attempt"))).collect();
    finishing.into_iter().map(|attempt| attempt.join().unwrap()).collect()
}

fn url(name: &str) -> String {
    format!("s3://bucket/{name}")
}
