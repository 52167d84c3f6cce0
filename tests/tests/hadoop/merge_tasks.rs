//! A merge by tasks, which a job of maps alone runs: the dataset equals that of one program, and each result is stored once.

use std::fs;
use std::path::Path;

use tests::fault_proxy::{Fault, FaultProxy, Request};
use tests::pipe::text_of;
use tests::programs::run;

use crate::by_emr::{emr, prepare};
use crate::cluster::cluster;
use crate::given::{MANY, WHOLE};
use crate::job::{Job, Ran, is_dataset};
use crate::killed::kill;
use crate::left_behind::{KEY_ID, SECRET, no_key_is_left, no_text_is_in_logs};

/// Number of tasks of each kind.
const TASKS: u32 = 3;
/// The task of rows that is killed before its result is stored.
const BEFORE: u32 = 1;
/// The task of rows whose result is stored, and which is killed before it gets the answer.
const AFTER: u32 = 2;

#[test]
fn a_job_with_merge_tasks_makes_the_same_dataset_as_a_pipe() {
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();
    let folder = cluster.own_folder("merge-tasks-by-emr");
    prepare(&folder);
    let credentials = cluster.credentials();
    let job = format!(
        "name = \"whole\"\nrun = \"s3://bucket/runs/merge-tasks-by-emr\"\ndataset = \"reviews.h5\"\n\
         programs = \"programs\"\ns3 = \"region=eu-central-1\"\n[input]\nplaces = [\"hdfs:///in/whole\"]\n\
         [hadoop]\nreducers = 2\nmerge-tasks = {TASKS}\ncredentials = \"{}\"\n",
        credentials.display()
    );
    fs::write(folder.join("JOB.toml"), job).unwrap();
    let run_job = || {
        let mut emr = emr(cluster, &folder, &["run", "JOB.toml", "--runner", "hadoop"]);
        emr.env("AWS_ENDPOINT_URL_S3", format!("http://{}", cluster.s3.address()));
        run(emr.env("AWS_ACCESS_KEY_ID", KEY_ID).env("AWS_SECRET_ACCESS_KEY", SECRET), b"").succeeded()
    };

    let first = run_job();

    is_dataset(&folder.join("reviews.h5"), &WHOLE);
    // A split is a map task, of which slow ones may have several attempts.
    let splits = each_after(&first.stderr, "number of splits:");
    assert_eq!(splits[1..], [(3 * TASKS).to_string()], "{}", first.stderr);
    for id in each_after(&first.stderr, "Running job: ") {
        no_text_is_in_logs(cluster, id);
        no_key_is_left(cluster, id);
    }
    // With the dataset there is nothing to run.
    let again = run_job();
    assert!(!again.stderr.contains("Running job: "), "{}", again.stderr);
    // Another machine has no dataset: results that exist are not made again, and the file is the same.
    fs::remove_file(folder.join("reviews.h5")).unwrap();
    fs::remove_file(folder.join("reviews.manifest.json")).unwrap();
    let other = run_job();
    assert_eq!(other.stderr.matches("Running job: ").count(), 1, "{}", other.stderr);
    is_dataset(&folder.join("reviews.h5"), &WHOLE);
}

/// What follows each occurrence of `label` in its line.
fn each_after<'a>(said: &'a str, label: &str) -> Vec<&'a str> {
    said.split(label).skip(1).filter_map(|rest| rest.lines().next()).collect()
}

/// Kills a task of rows while its result is put.
fn fault(request: &Request, folder: &Path) -> Fault {
    let is_put = |number: u32| {
        request.method == "PUT" && request.target.contains(&format!("/merge/merge/rows-{number:05}"))
    };
    match request.earlier {
        0 if is_put(BEFORE) => kill(folder, map_of(folder, BEFORE)),
        0 if is_put(AFTER) => Fault::LoseAnswer,
        1 if is_put(AFTER) => kill(folder, map_of(folder, AFTER)),
        _ => Fault::None,
    }
}

/// The map task that runs a task of rows. Hadoop orders maps by the size of their input, which is a line, so its offset shows
/// the task. A split other than the first one starts one byte before its line.
fn map_of(folder: &Path, number: u32) -> u32 {
    let others = TASKS * ("shards 00000\n".len() + "words 00000\n".len()) as u32;
    let offset = others + number * "rows 00000\n".len() as u32 - 1;
    let is_of_task = |map: &u32| {
        let environment = fs::read_to_string(folder.join(format!("{map}.0.environment"))).unwrap_or_default();
        environment.lines().any(|line| line == format!("mapreduce_map_input_start={offset}"))
    };
    (0..3 * TASKS).find(is_of_task).unwrap()
}

#[test]
fn killed_tasks_of_a_merge_store_each_result_once() {
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();
    let reduced = Job::new(cluster, "merge-tasks", "many", 2).run().succeeded();
    let merge = |command: &str, more: &[&str]| {
        let mut merge = reduced.with_s3("merge");
        run(merge.args([command, "--run", &reduced.run_url]).args(more), b"").succeeded()
    };
    let log = reduced.folder.join("job.log");
    merge("plan", &["--tasks", &TASKS.to_string(), "--counts", text_of(&log)]);
    let work = format!("merge work --run {} --threads 1", reduced.run_url);
    let name = "merge-tasks-list";
    fs::write(reduced.folder.join(name), reduced.object("merge/merge/tasks.txt")).unwrap();
    cluster.fs(&["-put", text_of(&reduced.folder.join(name)), &format!("/in/{name}")]);
    let maps = Job::of_maps(cluster, name, name, &work).of_lines().with_file("hdfs:///programs/merge");
    let folder = maps.folder();
    let proxy = FaultProxy::start(cluster.s3.address(), move |request| fault(request, &folder)).unwrap();

    let maps = maps.by(&proxy).with_luck(&[]).run().succeeded();

    assert_eq!(maps.said.matches("subprocess failed with code 137").count(), 2, "{}", maps.said);
    assert_eq!(maps.counters("Job Counters")["Failed map tasks"], 2);
    let of_rows: Vec<_> = results(&maps).into_iter().filter(|line| line.starts_with("rows")).collect();
    assert_eq!(of_rows, ["rows 00000\tstored", "rows 00001\tstored", "rows 00002\talready stored"]);
    assert_eq!(results(&maps).len(), 3 * TASKS as usize);
    let mut stored = reduced.objects("merge/merge/rows-");
    stored.sort();
    assert_eq!(stored, (0..TASKS).map(|number| format!("merge/merge/rows-{number:05}")).collect::<Vec<_>>());
    let dataset = reduced.folder.join("reviews.h5");
    merge("assemble", &["--out", text_of(&dataset)]);
    is_dataset(&dataset, &MANY);
}

/// What the tasks of a job printed, in order.
fn results(ran: &Ran<'_>) -> Vec<String> {
    let mut lines: Vec<_> = ran.output().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}
