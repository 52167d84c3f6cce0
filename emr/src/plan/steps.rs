//! The steps of a job: the Hadoop Streaming job, then merge, by one program or by another Hadoop job.

use serde_json::{Value, json};

use super::merging::Merging;
use super::price::merge_tasks;
use super::programs::{MERGE, Program};
use crate::finding::Finding;
use crate::job::{Job, Place};

/// The program with which EMR runs a command on the primary node.
const COMMAND_RUNNER: &str = "command-runner.jar";
/// The script of the second step; its arguments are in its first lines.
pub const MERGE_STEP: &str = include_str!("merge_step.sh");
/// What separates the commands of the second step.
const NEXT: &str = "--";
/// The program of EMR that submits a job of Hadoop Streaming.
const STREAMING: &str = "hadoop-streaming";
/// Jobs write their results to the run, and nothing to Hadoop's output folder.
const NO_OUTPUT: &str = "org.apache.hadoop.mapred.lib.NullOutputFormat";
/// Maps of one line each.
const ONE_LINE_PER_MAP: &str = "org.apache.hadoop.mapred.lib.NLineInputFormat";

/// Schemes of S3 in URLs for Hadoop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Amazon EMR.
    S3,
    /// Other distributions of Hadoop.
    S3a,
}

/// The name of the Hadoop job. It ends with the id of the run, by which the merge step finds the job.
pub fn job_name(job: &Job) -> String {
    format!("{} {}", job.name, job.run_id())
}

/// The steps of a job on EMR.
pub fn steps(job: &Job, programs: &[Program], merge_tasks: u32, action_on_failure: &str) -> Vec<Value> {
    let streaming = [vec![STREAMING.to_owned()], streaming(job, programs, Scheme::S3, &[])].concat();
    let merge = merge(job, programs, merge_tasks);
    [("Hadoop job", streaming), (MERGE, merge)]
        .map(|(name, args)| {
            json!({
                "Name": format!("{name} of {}", job_name(job)),
                "ActionOnFailure": action_on_failure,
                "HadoopJarStep": { "Jar": COMMAND_RUNNER, "Args": args },
            })
        })
        .to_vec()
}

/// The arguments of `hadoop-streaming`, or of `hadoop jar hadoop-streaming.jar`. `environment` is that of the tasks.
pub fn streaming(
    job: &Job,
    programs: &[Program],
    scheme: Scheme,
    environment: &[(String, String)],
) -> Vec<String> {
    let settings = [
        ("mapreduce.job.name", job_name(job)),
        ("mapreduce.job.reduces", job.hadoop.reducers.to_string()),
        // As sentimill reads folders.
        ("mapreduce.input.fileinputformat.input.dir.recursive", "true".to_owned()),
    ];
    let files = files(programs.iter().filter(|program| program.name != MERGE), scheme);
    let combiner = job.hadoop.combiner.then(|| ("-combiner", "combiner".to_owned()));
    let mut options = vec![("-files", files), ("-mapper", command("mapper", &job.mapper_flags()))];
    options.extend(combiner);
    options.push(("-reducer", command("reducer", &reducer_flags(job))));
    options.extend(job.input.places.iter().map(|place| ("-input", url(place, scheme))));
    arguments(job, &settings, options, environment)
}

/// The same for the job of maps alone that runs the tasks of a merge, one per map. `input` is their list for Hadoop.
pub fn streaming_of_tasks(
    job: &Job,
    programs: &[Program],
    scheme: Scheme,
    environment: &[(String, String)],
    tasks: u32,
    input: String,
) -> Vec<String> {
    let settings = [
        // It does not end with the id of the run, so that the merge step does not find its counters.
        ("mapreduce.job.name", format!("{} {MERGE}", job_name(job))),
        ("mapreduce.job.reduces", "0".to_owned()),
        ("mapreduce.input.lineinputformat.linespermap", "1".to_owned()),
        // Tasks read lines, without their positions in the list.
        ("stream.map.input.ignoreKey", "true".to_owned()),
    ];
    let files = files(programs.iter().filter(|program| program.name == MERGE), scheme);
    let work = Merging::new(job, tasks, s3_flag(job)).work();
    let options = vec![
        ("-files", files),
        ("-mapper", command(MERGE, &work)),
        ("-inputformat", ONE_LINE_PER_MAP.to_owned()),
        ("-input", input),
    ];
    arguments(job, &settings, options, environment)
}

/// The arguments of Hadoop Streaming: the settings of a job of this name and those of the job file, then options.
fn arguments(
    job: &Job,
    settings: &[(&str, String)],
    options: Vec<(&str, String)>,
    environment: &[(String, String)],
) -> Vec<String> {
    let of_file = job.hadoop.settings.iter().map(|(name, value)| (name.as_str(), value));
    let settings = settings.iter().map(|(name, value)| (*name, value)).chain(of_file);
    let settings = settings.map(|(name, value)| ("-D", format!("{name}={value}")));
    let environment = environment.iter().map(|(name, value)| ("-cmdenv", format!("{name}={value}")));
    let output = [("-outputformat", NO_OUTPUT.to_owned()), ("-output", format!("/tmp/{}", job.run_id()))];
    let all = settings.chain(options).chain(environment).chain(output);
    all.flat_map(|(name, value)| [name.to_owned(), value]).collect()
}

/// The value of `-files`.
fn files<'p>(programs: impl Iterator<Item = &'p Program>, scheme: Scheme) -> String {
    let files = programs.map(|program| format!("{}#{}", url(&program.url, scheme), program.name));
    files.collect::<Vec<_>>().join(",")
}

/// The arguments of the second step.
fn merge(job: &Job, programs: &[Program], tasks: u32) -> Vec<String> {
    let program = programs.iter().find(|program| program.name == MERGE);
    let (url, sha256) =
        program.map(|program| (program.url.to_string(), program.sha256.clone())).unwrap_or_default();
    let step = ["bash", "-c", MERGE_STEP, MERGE, &job.run_id(), &url, &sha256].map(str::to_owned);
    let merging = Merging::new(job, tasks, s3_flag(job));
    let merge = |arguments: Vec<String>| [vec![format!("./{MERGE}")], arguments].concat();
    let counted = |arguments: Vec<String>| {
        [merge(arguments), ["--counts", "counters"].map(str::to_owned).to_vec()].concat()
    };
    let commands = if merging.is_whole() {
        vec![counted(merging.whole())]
    } else {
        let list = url_of_list(&job.run.join(&merging.list()));
        let arguments = streaming_of_tasks(job, programs, Scheme::S3, &[], tasks, list);
        let work = [vec![STREAMING.to_owned()], arguments].concat();
        vec![counted(merging.plan()), work, merge(merging.assemble())]
    };
    [&step, &commands.join(&NEXT.to_owned())[..]].concat()
}

/// The list in a run, for Hadoop on EMR. A run on this machine is in a folder that all nodes share.
fn url_of_list(list: &Place) -> String {
    match list {
        Place::Local(path) => format!("file://{}", path.display()),
        list => url(list, Scheme::S3),
    }
}

fn reducer_flags(job: &Job) -> Vec<String> {
    let run = ["--run".to_owned(), job.run.to_string()];
    run.into_iter().chain(s3_flag(job)).chain(job.reducer_flags()).collect()
}

/// `--s3` on the nodes. A profile applies to this machine only.
fn s3_flag(job: &Job) -> Vec<String> {
    let mut options = job.s3_options_of_programs();
    options.retain(|option| !option.starts_with("profile="));
    if options.is_empty() { Vec::new() } else { vec!["--s3".to_owned(), options.join(",")] }
}

fn url(place: &Place, scheme: Scheme) -> String {
    let url = place.to_string();
    match (place, scheme) {
        (Place::S3 { .. }, Scheme::S3a) => url.replacen("s3://", "s3a://", 1),
        _ => url,
    }
}

/// A command as Hadoop Streaming splits it: at spaces; a quoted argument begins and ends with the same quote.
fn command(program: &str, flags: &[String]) -> String {
    let quoted = |flag: &String| match (flag.contains([' ', '\'']), flag.contains('"')) {
        (true, false) => format!("\"{flag}\""),
        (_, true) => format!("'{flag}'"),
        (false, false) => flag.clone(),
    };
    let flags = flags.iter().map(quoted);
    [program.to_owned()].into_iter().chain(flags).collect::<Vec<_>>().join(" ")
}

/// Findings about values that Hadoop would split or read as patterns.
pub fn check(job: &Job) -> Vec<Finding> {
    let mut findings = Vec::new();
    let flags = [("input", job.mapper_flags()), ("rows", reducer_flags(job))];
    for (table, flags) in flags {
        for flag in flags.iter().filter(|flag| !survives(flag)) {
            findings.push(
                Finding::error(
                    job.thing(table),
                    format!("the value {flag:?}"),
                    "a value that is not empty and does not have both ' and \", because Hadoop Streaming has no escapes",
                )
                .remedy("rename the field or the folder"),
            );
        }
    }
    // Hadoop reads the list of tasks in the run.
    let run = (merge_tasks(job) > 1).then_some(("run", &job.run));
    for (key, place) in job.input.places.iter().map(|place| ("input.places", place)).chain(run) {
        let url = place.to_string();
        if url.contains([',', '*', '?', '[', '{', '\\']) {
            findings.push(
                Finding::error(
                    job.thing(key),
                    format!("{url:?}"),
                    "a URL without commas and patterns, which Hadoop reads differently",
                )
                .remedy("name a folder"),
            );
        }
    }
    let staging = job.staging.as_ref().map(ToString::to_string).unwrap_or_default();
    if staging.contains([',', ' ', '#']) {
        let expected = "a URL without commas, spaces and #, which separate files in Hadoop's -files";
        findings.push(Finding::error(job.thing("staging"), format!("{staging:?}"), expected));
    }
    findings
}

/// Whether a flag is one argument after Hadoop has split the command.
fn survives(flag: &str) -> bool {
    let is_quotable = !(flag.contains('"') && flag.contains('\''));
    is_quotable && !flag.is_empty() && !flag.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ::tests::hadoop::split_args;

    use super::*;
    use crate::job::EXAMPLE;

    #[test]
    fn tasks_outside_of_emr_get_the_program_of_this_machine_and_an_environment() {
        let job = Job::parse(
            Path::new("/jobs/JOB.toml"),
            &EXAMPLE.replace("run = \"s3", "s3 = \"profile=x\"\nrun = \"s3"),
        );
        let job = job.unwrap();
        let program = |name: &str| Program {
            name: name.to_owned(),
            path: name.into(),
            url: Place::Local(format!("/programs/{name}").into()),
            sha256: String::new(),
            bytes: 0,
            needs: None,
        };
        let environment = [("AWS_REGION".to_owned(), "x".to_owned())];
        let programs = [program("mapper"), program(MERGE)];
        let input = "/tmp/id/tasks-3/tasks.txt".to_owned();
        let arguments = streaming_of_tasks(&job, &programs, Scheme::S3a, &environment, 3, input).join(" ");
        // merge reads the run itself, so its URL is not one for Hadoop. A profile is of this machine.
        let mapper = "-mapper merge work --run s3://bucket/runs/reviews-1 --plan tasks-3 --s3 region=eu-central-1 --threads 1";
        for expected in [" merge -D ", " -files /programs/merge#merge ", mapper, " -cmdenv AWS_REGION=x "] {
            assert!(arguments.contains(expected), "{expected}: {arguments}");
        }
    }

    #[test]
    fn hadoop_splits_a_command_into_its_flags() {
        let flags = [
            "--text-field",
            r"the text,a\.b\,c\\",
            "--rating-field",
            "it's",
            "--x",
            "a\"b",
            "--run",
            "s3://b/c",
        ];
        let flags = flags.map(str::to_owned);
        let split = split_args(&command("mapper", &flags));
        assert_eq!(split[0], "mapper");
        assert_eq!(split[1..], flags);
        assert!(!survives("") && !survives("'\"") && survives("it's"));
    }
}
