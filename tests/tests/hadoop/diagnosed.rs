//! Jobs that fail, each for another reason, and the cause that `emr diagnose` names from their logs: the output of the
//! job client and the logs of the containers on both nodes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use serde_json::Value;
use tests::fault_proxy::{Fault, FaultProxy};
use tests::pipe::text_of;
use tests::programs::{program, run};
use tests::{prove, say, skipped};

use crate::cluster::{Cluster, cluster};
use crate::left_behind::{KEY_ID, MARK, SECRET};

/// Number of concurrent jobs. The machine is mostly busy with starting JVMs.
const JOBS_AT_ONCE: usize = 2;

/// How a job fails, and the rule that names the cause.
struct Failure {
    rule: &'static str,
    /// A folder of `/in`.
    input: &'static str,
    mapper: &'static str,
    reducer: Option<&'static str>,
    settings: &'static [&'static str],
    /// Whether `make test` runs it too.
    is_quick: bool,
}

const fn maps(rule: &'static str, input: &'static str, mapper: &'static str) -> Failure {
    Failure { rule, input, mapper, reducer: None, settings: &[], is_quick: false }
}

const fn reduces(rule: &'static str, input: &'static str, reducer: &'static str) -> Failure {
    Failure { reducer: Some(reducer), ..maps(rule, input, "mapper") }
}

const FAILURES: [Failure; 17] = [
    Failure { is_quick: true, ..maps("architecture", "few", "foreign") },
    Failure {
        settings: &[
            "mapreduce.job.output.key.comparator.class=org.apache.hadoop.mapreduce.lib.partition.KeyFieldBasedComparator",
            "mapreduce.partition.keycomparator.options=-k1,1r",
        ],
        is_quick: true,
        ..reduces("keys-out-of-order", "few", "reducer --run s3://bucket/runs/order")
    },
    Failure { is_quick: true, ..maps("input-missing", "no-such-input", "mapper") },
    Failure { is_quick: true, ..maps("output-exists", "few", "mapper") },
    maps("bad-lines", "garbage", "mapper"),
    reduces("wrong-partition", "few", "reducer --run s3://bucket/runs/wrong --partition 0 --partitions 2"),
    maps("arguments", "few", "mapper --formt json"),
    maps("memory-physical", "few", "failing.sh hungry"),
    Failure {
        settings: &["mapreduce.task.timeout=10000"],
        ..maps("task-timeout", "few", "failing.sh silent")
    },
    maps("program-missing", "few", "no-such-program"),
    maps("counters-limit", "few", "failing.sh counting"),
    maps("exit-137", "few", "failing.sh killed"),
    maps("broken-pipe", "many", "failing.sh hasty"),
    reduces("store-no-bucket", "few", "reducer --run s3://no-such-bucket/run"),
    reduces("store-refused", "few", "reducer --run s3://bucket/runs/refused"),
    reduces("program-disk-full", "many", "failing.sh full reducer --run s3://bucket/runs/full"),
    Failure { settings: &["mapreduce.map.memory.mb=99999"], ..maps("memory-request", "few", "mapper") },
];

#[test]
fn the_causes_of_provoked_failures_are_named() {
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();
    put_programs(cluster);
    let refusing = FaultProxy::start(cluster.s3.address(), |request| {
        if request.method == "PUT" { Fault::Status(403) } else { Fault::None }
    })
    .unwrap();
    let all =
        FAILURES.iter().filter(|failure| failure.is_quick || prove()).filter(|failure| is_possible(failure));
    let (waiting, wrong) = (Mutex::new(all), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..JOBS_AT_ONCE {
            scope.spawn(|| {
                while let Some(failure) = { waiting.lock().unwrap().next() } {
                    let result = provoke(cluster, failure, &refusing);
                    wrong.lock().unwrap().extend(result.err());
                }
            });
        }
    });
    if !prove() {
        say("SKIPPED most provoked failures: PROVE=1 has the time");
    }
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A full disk requires a mount that only the task sees.
fn is_possible(failure: &Failure) -> bool {
    if failure.rule != "program-disk-full" {
        return true;
    }
    let unshared = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "true"])
        .stderr(Stdio::null())
        .status();
    let is_permitted = unshared.is_ok_and(|status| status.success());
    if !is_permitted {
        skipped("a full disk in a task: unshare --user --mount is not permitted");
    }
    is_permitted
}

/// Copies the programs of the failing jobs into HDFS: a script, and a program for another processor.
fn put_programs(cluster: &Cluster) {
    let folder = cluster.own_folder("failing");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hadoop/failing.sh");
    fs::copy(script, folder.join("failing.sh")).unwrap();
    fs::write(folder.join("foreign"), foreign_program()).unwrap();
    cluster.fs(&["-put", text_of(&folder), "/"]);
}

/// A 64-bit ELF file for ARM: a header and one segment.
fn foreign_program() -> Vec<u8> {
    const ARM_64: u16 = 183;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    // Type, machine, version, entry, offsets of segments and sections, flags, sizes and numbers.
    file.extend([2_u16, ARM_64].iter().flat_map(|value| value.to_le_bytes()));
    file.extend(1_u32.to_le_bytes());
    file.extend([0x0040_0078_u64, 64, 0].iter().flat_map(|value| value.to_le_bytes()));
    file.extend(0_u32.to_le_bytes());
    file.extend([64_u16, 56, 1, 0, 0, 0].iter().flat_map(|value| value.to_le_bytes()));
    file.extend([1_u32, 5].iter().flat_map(|value| value.to_le_bytes()));
    file.extend(
        [0_u64, 0x0040_0000, 0x0040_0000, 120, 120, 4096].iter().flat_map(|value| value.to_le_bytes()),
    );
    file
}

/// Runs a job, and checks the cause that is named. The error is for people.
fn provoke(cluster: &Cluster, failure: &Failure, refusing: &FaultProxy) -> Result<(), String> {
    let begin = Instant::now();
    let folder = cluster.own_folder(&format!("diagnosed-{}", failure.rule));
    let said = run_job(cluster, failure, refusing);
    fs::write(folder.join("job.log"), &said).unwrap();
    let logs = [vec![folder.join("job.log")], container_logs(cluster, &said)].concat();
    let diagnosed = run(program("emr").args(["diagnose", "--json"]).args(&logs), b"");
    let text = diagnosed.said();
    say(&format!("failure {}: diagnosed after {:.0} s", failure.rule, begin.elapsed().as_secs_f64()));
    let report: Value = serde_json::from_str(&text)
        .map_err(|error| format!("{}: {error}: {}", failure.rule, diagnosed.stderr))?;
    for secret in [KEY_ID, SECRET, MARK] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    let cause = &report["causes"][0];
    let is_named = diagnosed.code == 0 && cause["rule"] == failure.rule;
    let has_remedy = cause["remedy"].as_str().is_some_and(|remedy| remedy.len() > 10);
    let is_shown = cause["evidence"][0]["text"].as_str().is_some_and(|line| !line.is_empty());
    if is_named && has_remedy && is_shown { Ok(()) } else { Err(format!("{}: {text}\n{said}", failure.rule)) }
}

/// The output of the job client.
fn run_job(cluster: &Cluster, failure: &Failure, refusing: &FaultProxy) -> String {
    let mut client = cluster.command("streaming");
    let settings = [
        "mapreduce.input.fileinputformat.split.minsize=1000000000",
        "mapreduce.map.maxattempts=1",
        "mapreduce.reduce.maxattempts=1",
        // A failing task waits for two of these intervals.
        "mapreduce.task.progress-report.interval=1000",
        if failure.reducer.is_some() { "mapreduce.job.reduces=1" } else { "mapreduce.job.reduces=0" },
    ];
    for setting in settings.iter().chain(failure.settings) {
        client.args(["-D", setting]);
    }
    let files = ["programs/mapper", "programs/reducer", "failing/failing.sh", "failing/foreign"];
    client.args([
        "-files",
        &files.map(|name| format!("hdfs:///{name}")).join(","),
        "-mapper",
        failure.mapper,
    ]);
    if let Some(reducer) = failure.reducer {
        client.args(["-reducer", reducer]);
    }
    let is_refused = failure.rule == "store-refused";
    let endpoint = if is_refused { refusing.url() } else { format!("http://{}", cluster.s3.address()) };
    for (name, value) in [
        ("AWS_SHARED_CREDENTIALS_FILE", text_of(&cluster.credentials())),
        ("AWS_ENDPOINT_URL_S3", &endpoint),
        ("AWS_REGION", "eu-central-1"),
    ] {
        client.args(["-cmdenv", &format!("{name}={value}")]);
    }
    let output = if failure.rule == "output-exists" {
        "/in/few".to_owned()
    } else {
        format!("/out/diagnosed-{}", failure.rule)
    };
    client.args(["-input", &format!("/in/{}", failure.input), "-output", &output]);
    run(&mut client, b"").stderr
}

/// The folders with the logs of a job's containers, on both nodes.
fn container_logs(cluster: &Cluster, said: &str) -> Vec<PathBuf> {
    let id = said.split("Running job: job_").nth(1).and_then(|rest| rest.lines().next());
    let Some(id) = id else { return Vec::new() };
    let folders = ["node1", "node2"]
        .map(|node| cluster.folder.join(node).join("logs").join(format!("application_{id}")));
    folders.into_iter().filter(|folder| folder.is_dir()).collect()
}
