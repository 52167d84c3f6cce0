//! The steps of a job: the Hadoop Streaming job, then merge.

use serde_json::{Value, json};

use super::programs::{MERGE, Program};
use crate::finding::Finding;
use crate::job::{Job, Place};

/// The program with which EMR runs a command on the primary node.
const COMMAND_RUNNER: &str = "command-runner.jar";
/// The script of the second step; its arguments are in its first lines.
pub const MERGE_STEP: &str = include_str!("merge_step.sh");
/// The job writes shards to the run, and nothing to Hadoop's output folder.
const NO_OUTPUT: &str = "org.apache.hadoop.mapred.lib.NullOutputFormat";

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
pub fn steps(job: &Job, programs: &[Program], action_on_failure: &str) -> Vec<Value> {
    let streaming = [vec!["hadoop-streaming".to_owned()], streaming(job, programs, Scheme::S3, &[])].concat();
    let merge = merge(job, programs);
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
    let mut settings = vec![
        ("mapreduce.job.name", job_name(job)),
        ("mapreduce.job.reduces", job.hadoop.reducers.to_string()),
        // As sentimill reads folders.
        ("mapreduce.input.fileinputformat.input.dir.recursive", "true".to_owned()),
    ];
    settings.extend(job.hadoop.settings.iter().map(|(name, value)| (name.as_str(), value.clone())));
    let files = programs.iter().filter(|program| program.name != MERGE);
    let files = files.map(|program| format!("{}#{}", url(&program.url, scheme), program.name));
    let mut arguments: Vec<String> = Vec::new();
    for (name, value) in settings {
        arguments.extend(["-D".to_owned(), format!("{name}={value}")]);
    }
    let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    option("-files", files.collect::<Vec<_>>().join(","));
    option("-mapper", command("mapper", &job.mapper_flags()));
    if job.hadoop.combiner {
        option("-combiner", "combiner".to_owned());
    }
    option("-reducer", command("reducer", &reducer_flags(job)));
    for (name, value) in environment {
        option("-cmdenv", format!("{name}={value}"));
    }
    option("-outputformat", NO_OUTPUT.to_owned());
    for place in &job.input.places {
        option("-input", url(place, scheme));
    }
    option("-output", format!("/tmp/{}", job.run_id()));
    arguments
}

/// The arguments of the second step.
fn merge(job: &Job, programs: &[Program]) -> Vec<String> {
    let program = programs.iter().find(|program| program.name == MERGE);
    let (url, sha256) =
        program.map(|program| (program.url.to_string(), program.sha256.clone())).unwrap_or_default();
    let mut arguments: Vec<String> =
        ["bash", "-c", MERGE_STEP, MERGE, &job.run_id(), &url, &sha256].map(str::to_owned).to_vec();
    arguments.extend(["--run".to_owned(), job.run.to_string(), "--out".to_owned(), job.dataset.to_string()]);
    arguments.extend(s3_flag(job));
    arguments.extend(job.merge_flags());
    arguments
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
    for place in &job.input.places {
        let url = place.to_string();
        if url.contains([',', '*', '?', '[', '{', '\\']) {
            findings.push(
                Finding::error(
                    job.thing("input.places"),
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
    use ::tests::hadoop::split_args;

    use super::*;

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
