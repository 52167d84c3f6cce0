//! The dataset is the same file, byte for byte, in whatever way the job is split, combined, ordered and
//! spilled.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tests::demo::{DEMO, raw};
use tests::files::assert_same_bytes;
use tests::lines::{shuffled, sorted_as_c, sorted_by_key_only};
use tests::pipe::{Pipe, Splitter, combined, mapped, merge, reducer, split_by_hadoop, text_of};
use tests::programs::{folder_of_programs, run, without_hadoop};

use crate::made::{commits, manifest};

fn check(pipe: &Pipe) {
    let folder = tempfile::tempdir().unwrap();
    let dataset = pipe.dataset_of_records(&DEMO.records, folder.path());
    assert_same_bytes(&dataset, &DEMO.dataset, &format!("{pipe:?}"));
}

#[test]
fn the_number_of_partitions_changes_no_byte() {
    // Merge reads up to 64 shards at once, and more in groups.
    for partitions in [1, 2, 7, 64, 100] {
        check(&Pipe { partitions, ..Pipe::default() });
    }
}

#[test]
fn the_number_of_threads_of_merge_changes_no_byte() {
    for (partitions, threads) in [(1, 1), (1, 2), (7, 1), (7, 3), (7, 12), (100, 2)] {
        let merge = vec!["--threads".to_owned(), threads.to_string()];
        check(&Pipe { partitions, merge, ..Pipe::default() });
    }
}

#[test]
fn selecting_from_the_whole_stream_gives_the_same_bytes_as_a_split() {
    for partitions in [1, 2, 7, 64] {
        check(&Pipe { partitions, splitter: Splitter::Select, ..Pipe::default() });
    }
}

#[test]
fn the_number_of_combiner_passes_changes_no_byte() {
    let before = [vec![0], vec![1], vec![2], vec![3], vec![1, 1, 1], vec![0, 1], vec![3, 0, 1, 2, 0]];
    for passes_before_sort in before {
        for passes_after_sort in 0..=3 {
            let passes_before_sort = passes_before_sort.clone();
            check(&Pipe { partitions: 2, passes_before_sort, passes_after_sort, ..Pipe::default() });
        }
    }
}

#[test]
fn combining_unsorted_records_loses_nothing() {
    let unsorted = combined(&shuffled(&DEMO.records, 1));
    let folder = tempfile::tempdir().unwrap();
    let dataset = Pipe::default().dataset_of_records(&unsorted, folder.path());
    assert_same_bytes(&dataset, &DEMO.dataset, "combined before any sort");
}

#[test]
fn the_order_of_a_keys_values_changes_no_byte() {
    // Combined in parts first, so that the values of one key differ in more than their rating.
    let pipe = Pipe { partitions: 7, passes_before_sort: vec![1, 0, 1], ..Pipe::default() };
    let records = pipe.sorted(&DEMO.records);
    for seed in 1..=3 {
        let folder = tempfile::tempdir().unwrap();
        let (run_folder, dataset) = (folder.path().join("run"), folder.path().join("reviews.h5"));

        pipe.reduce(&sorted_by_key_only(&records, seed), &run_folder);
        run(&mut merge(&run_folder, &dataset), b"").succeeded();

        assert_same_bytes(&dataset, &DEMO.dataset, &format!("values in order {seed}"));
    }
}

#[test]
fn the_order_of_the_input_changes_no_byte() {
    for seed in 1..=3 {
        let folder = tempfile::tempdir().unwrap();
        let dataset = Pipe::default().dataset(&shuffled(&DEMO.raw, seed), folder.path());
        assert_same_bytes(&dataset, &DEMO.dataset, &format!("lines in order {seed}"));
    }
}

#[test]
fn the_number_of_mappers_changes_neither_dataset_nor_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let parts = tests::lines::in_parts(&DEMO.raw, 5);
    let counts: Vec<_> = (0..parts.len()).map(|i| folder.path().join(format!("{i}.json"))).collect();
    let records: Vec<u8> =
        parts.iter().zip(&counts).flat_map(|(part, counts)| mapped(part, counts)).collect();
    let pipe = Pipe {
        merge: ["--counts"]
            .into_iter()
            .chain(counts.iter().map(|path| text_of(path)))
            .map(str::to_owned)
            .collect(),
        ..Pipe::default()
    };

    let dataset = pipe.dataset_of_records(&records, folder.path());

    assert_same_bytes(&dataset, &DEMO.dataset, "five mappers");
    let ledger = serde_json::to_value(manifest(&dataset).seal.ledger.mapper).unwrap();
    assert_eq!(ledger, serde_json::to_value(&DEMO.facts).unwrap());
}

#[test]
fn a_reducer_that_spills_writes_the_same_shard() {
    // Several times the minimum memory of a reducer.
    let folder = tempfile::tempdir().unwrap();
    let (lines, _) = raw(60_000, 1);
    let records = sorted_as_c(&mapped(&lines, &folder.path().join("mapper.json")));
    let shard = |name: &str, memory: &[&str]| {
        let run_folder = folder.path().join(name);
        run(reducer(&run_folder, 0, 1).args(memory), &records).succeeded();
        let commit = commits(&run_folder).remove(0);
        (commit.sha256, commit.bytes, commit.row_digest, commit.counts, commit.distinct_words)
    };

    let (spilled, held) = (shard("spilled", &["--memory", "1MiB"]), shard("held", &[]));

    assert_eq!(spilled, held);
}

#[test]
fn a_shell_pipe_with_the_real_sort_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mapper | LC_ALL=C sort | combiner | reducer --run \"$1\" --partition 0 --partitions 1";
    let mut bash = without_hadoop(Path::new("bash"));
    let path = format!("{}:{}", folder_of_programs().display(), std::env::var("PATH").unwrap());
    let run_folder = folder.path().join("run");
    bash.args(["-o", "pipefail", "-c", script, "bash", text_of(&run_folder)]).env("PATH", path);

    run(&mut bash, &DEMO.raw).succeeded();

    let dataset = folder.path().join("reviews.h5");
    run(&mut merge(&run_folder, &dataset), b"").succeeded();
    assert_same_bytes(&dataset, &DEMO.dataset, "a shell pipe");
}

#[test]
fn another_partitioner_is_accepted_only_with_its_flag() {
    // Given a split by the partition after the one that Hadoop computes.
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, dataset) = (folder.path().join("run"), folder.path().join("reviews.h5"));
    let mut split = split_by_hadoop(&sorted_as_c(&DEMO.records), 3);
    split.rotate_left(1);

    let refused = run(&mut reducer(&run_folder, 0, 3), &split[0]).with_code(65);
    for (number, part) in (0..).zip(&split) {
        run(reducer(&run_folder, number, 3).arg("--any-partitioner"), part).succeeded();
    }

    assert!(
        refused.stderr.contains("the text belongs to partition 1 of 3, expected 0"),
        "{}",
        refused.stderr
    );
    run(&mut merge(&run_folder, &dataset), b"").succeeded();
    assert_same_bytes(&dataset, &DEMO.dataset, "another splitter");
}

#[test]
fn a_text_in_two_partitions_is_refused() {
    // With few shards, which are read at once, and with many, in two groups.
    for (one, other, partitions) in [(0, 1, 2), (3, 99, 100)] {
        let folder = tempfile::tempdir().unwrap();
        let run_folder = folder.path().join("run");
        for number in 0..partitions {
            let records: &[u8] =
                if number == one || number == other { b"one text in two\t0,0,0,0,1\n" } else { b"" };
            run(reducer(&run_folder, number, partitions).arg("--any-partitioner"), records).succeeded();
        }

        let refused = run(&mut merge(&run_folder, &folder.path().join("reviews.h5")), b"").with_code(65);

        let shards = [one, other].map(|number| format!("data/part-{number:05}."));
        assert!(shards.iter().all(|shard| refused.stderr.contains(shard)), "{}", refused.stderr);
        assert!(!folder.path().join("reviews.h5").exists());
    }
}

/// Few by default; more with PROVE=1.
fn cases() -> u32 {
    if tests::prove() { 256 } else { 16 }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_pipe_gives_the_same_bytes(
        partitions in 1u32..12,
        passes_before_sort in prop::collection::vec(0u32..4, 1..5),
        passes_after_sort in 0u32..4,
        select: bool,
        spills: bool,
        seed: u64,
    ) {
        let pipe = Pipe {
            partitions,
            passes_before_sort,
            passes_after_sort,
            splitter: if select { Splitter::Select } else { Splitter::Hadoop },
            reducer: if spills { vec!["--memory=1MiB".to_owned()] } else { Vec::new() },
            ..Pipe::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let dataset = pipe.dataset(&shuffled(&DEMO.raw, seed), folder.path());
        assert_same_bytes(&dataset, &DEMO.dataset, &format!("{pipe:?}"));
    }
}
