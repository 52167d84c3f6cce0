use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::job::EXAMPLE;

const FLEETS: &str = "[[cluster.fleets]]\nrole = \"primary\"\ntypes = { \"m6i.xlarge\" = 1 }\non-demand = 1\n\
                      [[cluster.fleets]]\nrole = \"core\"\ntypes = { \"m6i.2xlarge\" = 8 }\non-demand = 16\ndisk-gib = 100\n\
                      [[cluster.fleets]]\nrole = \"task\"\ntypes = { \"m6i.2xlarge\" = 8, \"m5.4xlarge\" = 16 }\nspot = 64\n\
                      spot-timeout-action = \"terminate-cluster\"\n";

/// An ELF header for this machine, without sections.
fn elf(machine: u8) -> Vec<u8> {
    let mut header = vec![0_u8; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[16..21].copy_from_slice(&[3, 0, machine, 0, 1]);
    (header[52], header[54], header[58]) = (64, 56, 64);
    header
}

const X86_64: u8 = 62;
const AARCH64: u8 = 183;

/// A folder with programs of this machine.
fn programs(machine: u8) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["mapper", "combiner", "reducer", "merge"] {
        let content = [elf(machine), name.as_bytes().to_vec()].concat();
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

fn job(text: &str, programs: &Path) -> Job {
    let folder = format!("programs = \"{}\"\n", programs.display());
    let first = text.find("\n[").unwrap() + 1;
    let text = [&text[..first], &folder, &text[first..]].concat();
    Job::parse(Path::new("/jobs/JOB.toml"), &text)
        .unwrap_or_else(|error| panic!("{error}: {:?}", error.details()))
}

fn planned(text: &str) -> Plan {
    let programs = programs(X86_64);
    Plan::of(&job(text, programs.path()), None).unwrap()
}

fn with_fleets() -> String {
    let groups = EXAMPLE.find("[[cluster.groups]]").unwrap()..EXAMPLE.find("# Fleets").unwrap();
    EXAMPLE.replace(&EXAMPLE[groups], FLEETS)
}

fn running() -> String {
    let cluster = EXAMPLE.find("[cluster]").unwrap()..EXAMPLE.find("[prices]").unwrap();
    EXAMPLE.replace(&EXAMPLE[cluster], "[cluster]\nid = \"j-2AXXXXXXGAPLF\"\nregion = \"eu-central-1\"\n")
}

/// The findings of a plan, as text.
fn found(plan: &Plan) -> Vec<String> {
    plan.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn the_requests_are_the_golden_ones() {
    for (name, text) in [("groups", EXAMPLE.to_owned()), ("fleets", with_fleets()), ("running", running())] {
        let plan = planned(&text);
        assert!(plan.is_runnable(), "{:#?}", plan.findings);
        let requests = serde_json::to_string_pretty(&json!(plan.requests)).unwrap() + "\n";
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/plan/golden/{name}.json"));
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(golden.parent().unwrap()).unwrap();
            fs::write(&golden, &requests).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap();
        assert_eq!(requests, expected, "UPDATE_GOLDEN=1 renews {}", golden.display());
    }
}

/// The commands of the second step, each as one line.
fn merge_commands(plan: &Plan) -> Vec<String> {
    let step = &plan.requests.steps()[1]["HadoopJarStep"]["Args"];
    let words: Vec<_> = step.as_array().unwrap()[7..].iter().map(|word| word.as_str().unwrap()).collect();
    words.split(|word| *word == "--").map(|command| command.join(" ")).collect()
}

#[test]
fn tasks_merge_a_run_between_a_plan_and_its_result() {
    let one = planned(&EXAMPLE.replace("combiner = true", "merge-tasks = 1"));
    let merge = "./merge --run s3://bucket/runs/reviews-1 --out s3://bucket/datasets/reviews.h5 --s3 region=eu-central-1 \
                 --vocabulary-size 10000 --bad-lines-max 0.01 --counts counters";
    assert_eq!((one.merge_tasks, merge_commands(&one)), (1, vec![merge.to_owned()]));

    let three = planned(&EXAMPLE.replace("combiner = true", "merge-tasks = 3"));
    assert_eq!(three.record, one.record);
    let [plan, work, assemble] = merge_commands(&three).try_into().unwrap();
    let of_plan = "--run s3://bucket/runs/reviews-1 --plan tasks-3 --s3 region=eu-central-1";
    let flags = "--vocabulary-size 10000 --bad-lines-max 0.01 --counts counters";
    assert_eq!(plan, format!("./merge plan {of_plan} --tasks 3 {flags}"));
    assert_eq!(assemble, format!("./merge assemble {of_plan} --out s3://bucket/datasets/reviews.h5"));
    let sha256 = &three.programs.iter().find(|program| program.name == MERGE).unwrap().sha256;
    let expected = format!(
        "hadoop-streaming -D mapreduce.job.name=reviews sentimill-9d82e807b723d02b merge \
         -D mapreduce.job.reduces=0 -D mapreduce.input.lineinputformat.linespermap=1 \
         -D stream.map.input.ignoreKey=true -D mapreduce.map.output.compress=true -D mapreduce.reduce.memory.mb=2048 \
         -files s3://bucket/runs/programs/{sha256}/merge#merge -mapper merge work {of_plan} --threads 1 \
         -inputformat org.apache.hadoop.mapred.lib.NLineInputFormat \
         -input s3://bucket/runs/reviews-1/merge/tasks-3/tasks.txt \
         -outputformat org.apache.hadoop.mapred.lib.NullOutputFormat -output /tmp/sentimill-9d82e807b723d02b"
    );
    assert_eq!(work, expected);
}

#[test]
fn the_second_step_runs_its_commands_up_to_the_first_that_fails() {
    let (_, commands) = steps::MERGE_STEP.split_once("\ndone\n").unwrap();
    let run = |words: &[&str]| {
        let script = format!("set -euo pipefail\n{commands}");
        let ran = Command::new("bash").args(["-c", &script, "merge"]).args(words).output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap())
    };
    let said = run(&["echo", "a b", "*", "--", "printf", "%s;", "c", "", "--", "echo", "d"]);
    assert_eq!(said, (Some(0), "a b *\nc;;d\n".to_owned()));
    assert_eq!(
        run(&["echo", "a", "--", "sh", "-c", "exit 66", "--", "echo", "b"]),
        (Some(66), "a\n".to_owned())
    );
}

#[test]
fn a_folder_of_the_run_is_a_file_system_for_hadoop() {
    let text = EXAMPLE
        .replace("\"s3://bucket/runs/reviews-1\"", "\"/shared/run,1\"\nstaging = \"s3://bucket/programs\"");
    let commands = merge_commands(&planned(&text));
    assert!(
        commands[1].contains(" -input file:///shared/run,1/merge/tasks-48/tasks.txt "),
        "{}",
        commands[1]
    );
    let plan = planned(&text);
    assert!(
        found(&plan)
            .iter()
            .any(|found| found.contains("run: \"/shared/run,1\", expected a URL without commas"))
    );
    assert!(planned(&text.replace("combiner = true", "merge-tasks = 1")).is_runnable());
}

#[test]
fn a_plan_has_no_credentials_of_the_environment() {
    let plan = planned(EXAMPLE);
    let all = format!("{:?}", plan.requests);
    for secret in ["AWS_SECRET", "aws_secret", "session_token"] {
        assert!(!all.contains(secret), "{all}");
    }
}

#[test]
fn the_second_step_is_valid_bash_and_stops_at_the_first_failure() {
    let checked = Command::new("bash").args(["-n", "-c", steps::MERGE_STEP]).status().unwrap();
    assert!(checked.success());
    let shellcheck = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.deps/bin/shellcheck");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/plan/merge_step.sh");
    let mut command = Command::new(&shellcheck);
    let checked = command.arg("--norc").arg(script).stdout(Stdio::piped()).output();
    let checked = checked.unwrap_or_else(|error| panic!("{}: {error}", shellcheck.display()));
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn wrong_jobs_are_refused_before_any_request() {
    #[rustfmt::skip]
    let cases = [
        ("\"s3://bucket/reviews/\"", "\"reviews.json\"", "input.places: \"/jobs/reviews.json\", expected s3:// or hdfs:// URLs"),
        ("\"s3://bucket/reviews/\"", "\"https://host/x\"", "input.places: \"https://host/x\", expected s3://"),
        ("\"s3://bucket/reviews/\"", "\"s3://bucket/a,b\"", "input.places: \"s3://bucket/a,b\", expected a URL without commas"),
        ("dataset = \"s3://bucket/datasets/reviews.h5\"", "dataset = \"reviews.h5\"", "dataset: \"/jobs/reviews.h5\", expected an s3:// URL"),
        ("vocabulary-size = 10000", "without = \"x.h5\"", "output.without: \"/jobs/x.h5\", expected an s3:// URL"),
        ("preset = \"amazon2018\"", "text-field = \"'\\\"\"", "input: the value \"'\\\"\", expected a value that is not empty"),
        ("preset = \"amazon2018\"", "format = \"csv\"", "input.format: \"csv\", expected a format of lines, which mappers can read in parts"),
        ("preset = \"amazon2018\"", "encoding = \"utf-16le\"", "input.encoding: \"utf-16le\", expected an encoding whose lines end at the byte 0A"),
        ("release = \"emr-7.14.0\"", "release = \"emr-6.12.1\"", "cluster.release: emr-6.12.1 does not exist"),
        ("release = \"emr-7.14.0\"", "release = \"emr-5.36.0\"", "cluster.release: emr-5.36.0 is too old, expected emr-6.1.0 or newer"),
        ("release = \"emr-7.14.0\"", "release = \"emr-6.0.1\"", "cluster.release: emr-6.0.1 is too old"),
        ("release = \"emr-7.14.0\"", "release = \"7\"", "cluster.release: \"7\", expected a release"),
        ("\"m6i.xlarge\"", "\"p3.2xlarge\"", "cluster.groups[0].type: p3.2xlarge has GPUs that CUDA 13 no longer supports"),
        ("\"g6.12xlarge\"", "\"p3.2xlarge\"", "gpus.type: p3.2xlarge has NVIDIA V100 GPUs with compute capability 7.0"),
        ("\"m6i.xlarge\"", "\"t3.xlarge\"", "cluster.groups[0].type: t3.xlarge is burstable; EMR does not have it"),
        ("\"m6i.xlarge\"", "\"m6i.5xlarge\"", "cluster.groups[0].type: m6i has no such size, expected one of xlarge, 2xlarge"),
        ("\"m6i.xlarge\"", "\"m7g.xlarge\"", "cluster.groups[0].type: m7g.xlarge has aarch64 processors, expected x86_64"),
    ];
    for (from, to, expected) in cases {
        assert!(EXAMPLE.contains(from), "{from}");
        let plan = planned(&EXAMPLE.replacen(from, to, 1));
        assert!(!plan.is_runnable(), "{to}");
        assert!(found(&plan).iter().any(|found| found.contains(expected)), "{expected}: {:#?}", found(&plan));
    }
}

#[test]
fn what_may_be_newer_than_the_lists_is_a_warning() {
    #[rustfmt::skip]
    let cases = [
        ("region = \"eu-central-1\"", "region = \"eu-central-9\"", "cluster.region: eu-central-9 is not in the list"),
        ("region = \"eu-central-1\"", "region = \"eu-centrl-1\"", "; the nearest name is eu-central-1; check the spelling"),
        ("release = \"emr-7.14.0\"", "release = \"emr-7.20.0\"", "cluster.release: emr-7.20.0 is newer than the list"),
        ("\"m6i.xlarge\"", "\"m99i.xlarge\"", "cluster.groups[0].type: m99i.xlarge is not in the list"),
        ("keep = false", "keep = true", "cluster.keep: the cluster waits for 900 s after the job"),
        ("log = \"s3://bucket/logs/\"\n", "", "cluster.log: no log folder"),
    ];
    for (from, to, expected) in cases {
        let plan = planned(&EXAMPLE.replacen(from, to, 1));
        assert!(plan.is_runnable(), "{:#?}", found(&plan));
        assert!(found(&plan).iter().any(|found| found.contains(expected)), "{expected}: {:#?}", found(&plan));
    }
    assert_eq!(found(&planned(EXAMPLE)), Vec::<String>::new());
}

#[test]
fn a_step_of_more_than_10240_characters_is_refused() {
    let places =
        (0..400).map(|n| format!("\"s3://bucket/reviews/part-{n:05}\"")).collect::<Vec<_>>().join(", ");
    let plan = planned(&EXAMPLE.replace("\"s3://bucket/reviews/\"", &places));
    let jar = &plan.requests.steps()[0]["HadoopJarStep"];
    let args = jar["Args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap().len());
    let characters = jar["Jar"].as_str().unwrap().len() + args.sum::<usize>();
    let expected = format!("has {characters} characters, expected at most 10240, the limit of EMR");
    assert!(!plan.is_runnable() && found(&plan)[0].contains(&expected), "{:?}", found(&plan));
}

#[test]
fn programs_that_the_nodes_cannot_run_are_refused() {
    let arm = programs(AARCH64);
    let plan = Plan::of(&job(EXAMPLE, arm.path()), None).unwrap();
    assert_eq!(plan.findings.iter().filter(|finding| finding.found.contains("x86_64 processors")).count(), 3);
    let graviton = EXAMPLE.replace("m6i.", "m7g.");
    assert!(Plan::of(&job(&graviton, arm.path()), None).unwrap().is_runnable());

    // The program of this test requires a newer glibc than that of emr-6.
    let mixed = programs(X86_64);
    fs::copy(env::current_exe().unwrap(), mixed.path().join("merge")).unwrap();
    let plan = Plan::of(&job(&EXAMPLE.replace("emr-7.14.0", "emr-6.15.0"), mixed.path()), None).unwrap();
    let found = found(&plan);
    assert!(found.len() == 1 && found[0].contains("/merge: requires glibc 2.3"), "{found:?}");
    assert!(
        found[0].contains("expected at most 2.26, that of emr-6.15.0; build with `make dist`"),
        "{found:?}"
    );

    fs::write(mixed.path().join("reducer"), "#!/bin/sh\n").unwrap();
    fs::remove_file(mixed.path().join("mapper")).unwrap();
    fs::write(mixed.path().join("combiner"), "").unwrap();
    let plan = Plan::of(&job(EXAMPLE, mixed.path()), None).unwrap();
    let found = self::found(&plan);
    assert!(found.iter().any(|found| found.contains("/reducer: not a 64-bit ELF file")), "{found:?}");
    assert!(
        found.iter().any(|found| found.contains("/combiner: an empty file, expected a program")),
        "{found:?}"
    );
    assert!(
        found.iter().any(|found| found.contains("/mapper: no such file, expected the program mapper")),
        "{found:?}"
    );
}

#[test]
fn stop_words_are_sent_to_the_tasks_under_one_name() {
    let folder = programs(X86_64);
    let words = folder.path().join("my words");
    fs::write(&words, "the\n").unwrap();
    let text =
        EXAMPLE.replace("stopwords = \"none\"", &format!("stopwords = {:?}", words.display().to_string()));
    let plan = Plan::of(&job(&text, folder.path()), None).unwrap();
    let args = plan.requests.steps()[0]["HadoopJarStep"]["Args"].to_string();
    assert!(
        args.contains("/stopwords.txt#stopwords.txt") && args.contains("--stopwords stopwords.txt"),
        "{args}"
    );
    assert!(plan.is_runnable() && plan.record.programs.contains_key("stopwords.txt"));
}

#[test]
fn a_job_without_a_cluster_cannot_be_planned() {
    let small = "name = \"x\"\nrun = \"run\"\ndataset = \"x.h5\"\n[input]\nplaces = [\"x\"]\n";
    let folder = programs(X86_64);
    let error = Plan::of(&job(small, folder.path()), None).unwrap_err().to_string();
    let expected = "/jobs/JOB.toml: cluster: no such table, so there is nothing to plan or to run on EMR; run the job with \
                    --runner local or --runner hadoop, or add the table; emr plan --example prints one";
    assert_eq!(error, expected);
}
