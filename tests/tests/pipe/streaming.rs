//! The programs under Hadoop Streaming: what it reads on standard error, the environment it sets, how it
//! splits a command.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;

use proptest::prelude::*;
use rustix::pipe::{PipeFlags, pipe_with};
use tests::demo::DEMO;
use tests::hadoop::{Heard, as_task, split_args};
use tests::lines::sorted_as_c;
use tests::pipe::reducer;
use tests::programs::{Finished, program, run};

/// Capacity of a pipe without a reader. Hadoop reads standard error only after the first record.
const PIPE_BYTES: usize = 65_536;

const LINES: [&str; 10] = [
    "",
    "[1]",
    "{}",
    "reporter:counter:mapper,lines,9",
    "reporter:status:x",
    r#"{"reviewText": "ok, fine", "overall": 5}"#,
    r#"{"reviewText": "reporter:counter:a,b,1", "overall": 1}"#,
    r#"{"reviewText": "the", "overall": 2}"#,
    r#"{"reviewText": "5", "overall": 2}"#,
    r#"{"reviewText": "x"}"#,
];

/// Runs mapper, combiner and reducer over these lines. Returns their results and the mapper's counters.
fn mapped_and_reduced(raw: &[u8]) -> ([Finished; 3], BTreeMap<String, i64>) {
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("counts.json");
    let mut mapper = program("mapper");
    mapper.args(["--bad-lines-max", "1", "--counts"]).arg(&counts);
    let map = run(as_task(&mut mapper), raw).succeeded();
    let sorted = sorted_as_c(&map.stdout);
    let combine = run(as_task(&mut program("combiner")), &sorted).succeeded();
    let reduce = run(as_task(&mut reducer(folder.path(), 0, 1)), &sorted).succeeded();
    ([map, combine, reduce], serde_json::from_slice(&fs::read(counts).unwrap()).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn hadoop_counters_equal_those_of_the_programs(
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 0..40),
    ) {
        let (finished, counts) = mapped_and_reduced(lines.join("\n").as_bytes());
        let [map, combine, reduce] = finished.map(|finished| Heard::of(&finished.stderr));

        prop_assert!(counts.iter().map(|(name, &sum)| (name.as_str(), sum)).eq(map.group("mapper")));
        prop_assert_eq!(map.group("mapper")["reviews"], reduce.group("reducer")["reviews"]);
        prop_assert_eq!((map.counters.len(), reduce.counters.len()), (8, 4));
        prop_assert_eq!(combine, Heard::default());
        prop_assert!(map.lost.is_empty() && reduce.lost.is_empty());
        prop_assert!(map.log.iter().all(|line| line.starts_with("mapper: ")), "{:?}", map.log);
        prop_assert!(reduce.log.is_empty(), "{:?}", reduce.log);
    }
}

#[test]
fn standard_error_fits_into_a_pipe_without_a_reader() {
    let bad: String = (0..100_000).map(|line| format!("{}\n", LINES[line % LINES.len()])).collect();
    for raw in [&b""[..], bad.as_bytes(), &DEMO.raw] {
        for finished in mapped_and_reduced(raw).0 {
            assert!(finished.stderr.len() < PIPE_BYTES, "{} bytes", finished.stderr.len());
        }
    }
}

#[test]
fn each_line_on_standard_error_is_one_write() {
    // Another program's line, or the JVM's, can come between the two parts of a line written in two calls.
    let folder = tempfile::tempdir().unwrap();
    let sorted = sorted_as_c(&DEMO.records);
    let cases = [(program("mapper"), &DEMO.raw), (reducer(folder.path(), 0, 1), &sorted)];
    for (mut program, input) in cases {
        // A packet pipe keeps writes separate: each read returns one of them.
        let (packets, stderr) = pipe_with(PipeFlags::DIRECT | PipeFlags::CLOEXEC).unwrap();
        let mut child =
            as_task(&mut program).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        // The command holds the other end of the pipe too.
        drop(program);
        child.stdin.take().unwrap().write_all(input).unwrap();
        let mut packets = File::from(packets);
        let mut packet = [0; 4096];
        let mut n_lines = 0;
        loop {
            let bytes = packets.read(&mut packet).unwrap();
            if bytes == 0 {
                break;
            }
            let text = str::from_utf8(&packet[..bytes]).unwrap();
            assert!(text.ends_with('\n'), "{text:?} is no whole line");
            n_lines += text.lines().count();
        }
        assert!(child.wait().unwrap().success());
        assert!(n_lines >= 5, "{n_lines} lines");
    }
}

#[test]
fn outside_hadoop_no_counters_or_states_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let map = run(&mut program("mapper"), &DEMO.raw).succeeded();
    let combine = run(&mut program("combiner"), &sorted_as_c(&map.stdout)).succeeded();
    let first = run(&mut reducer(folder.path(), 0, 1), &combine.stdout).succeeded();
    let second = run(&mut reducer(folder.path(), 0, 1), &combine.stdout).succeeded();
    for said in [&map.stderr, &combine.stderr, &first.stderr, &second.stderr] {
        assert!(!said.contains("reporter:"), "{said}");
    }
    let facts = &DEMO.facts;
    assert!(map.stderr.ends_with(&format!(" + {} reviews\n", facts.reviews)), "{}", map.stderr);
    assert_eq!((first.stderr.as_str(), combine.stderr.as_str()), ("", ""));
    assert_eq!(second.stderr, "reducer: partition 0 was already committed, with the same rows\n");
    assert_eq!((first.said().lines().count(), second.said()), (1, first.said()));
}

#[test]
fn two_megabytes_of_environment_change_nothing() {
    // Hadoop puts the whole configuration of a job there. Linux limits a variable to 128 KiB.
    let settings: Vec<(String, String)> =
        (0..20).map(|n| (format!("mapreduce_job_setting_{n}"), "x".repeat(100_000))).collect();
    let folder = tempfile::tempdir().unwrap();
    let with_settings = |mut command: std::process::Command, input: &[u8]| {
        run(command.envs(settings.iter().map(|(name, value)| (name, value))), input).succeeded()
    };
    let map = with_settings(program("mapper"), &DEMO.raw);
    assert!(map.stdout == DEMO.records);
    let sorted = sorted_as_c(&map.stdout);
    let combined = with_settings(program("combiner"), &sorted);
    assert!(combined.stdout == run(&mut program("combiner"), &sorted).stdout);
    let reduced = with_settings(reducer(folder.path(), 0, 1), &sorted);
    for said in [map.stderr, reduced.stderr, reduced.stdout.escape_ascii().to_string()] {
        assert!(!said.contains("xxxx"), "the environment is shown");
    }
}

#[test]
fn arguments_survive_the_command_splitting_of_hadoop() {
    let command =
        r#"mapper --text-field 'review text' --rating-field "reviewer's stars" --bad-lines-max 0.5"#;
    let line = br#"{"review text": "ok", "reviewer's stars": 4}"#;
    let arguments = split_args(command);
    let mapped = run(program(&arguments[0]).args(&arguments[1..]), line).succeeded();
    assert_eq!(mapped.said(), "ok\t0,0,0,1,0\n");
    // Commas and backslashes, as emr passes them.
    let command = r#"mapper --text-field 'a\.b,the text.c\,d' --rating-field e\\"#;
    let line = br#"{"a.b": "one", "the text": {"c,d": "two"}, "e\\": 4}"#;
    let arguments = split_args(command);
    let mapped = run(program(&arguments[0]).args(&arguments[1..]), line).succeeded();
    assert_eq!(mapped.said(), "one two\t0,0,0,1,0\n");
}
