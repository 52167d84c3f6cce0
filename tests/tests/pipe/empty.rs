//! Nothing is a result too.

use tests::files::assert_same_bytes;
use tests::oracle;
use tests::pipe::{Pipe, combined, merge_with, text_of};
use tests::programs::{program, run};

use crate::made::{commits, manifest, objects, open};

#[test]
fn partitions_without_a_record_become_a_dataset_without_rows() {
    for partitions in [2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let raw = folder.path().join("raw.json");
        std::fs::write(&raw, "").unwrap();
        let pipe =
            Pipe { partitions, merge: vec!["--padded".to_owned(), "10".to_owned()], ..Pipe::default() };

        let dataset = pipe.dataset_of_records(b"", folder.path());

        let commits = commits(&folder.path().join("run"));
        assert_eq!(
            commits.iter().map(|commit| commit.counts.rows).collect::<Vec<_>>(),
            vec![0; partitions as usize]
        );
        assert_eq!(objects(&folder.path().join("run")).len(), partitions as usize);
        let reader = open(&dataset);
        assert_eq!((reader.n_rows(), reader.n_tokens(), reader.vocabulary().words.len()), (0, 0, 0));
        assert_eq!(manifest(&dataset).rows, 0);
        oracle::agrees(&dataset, &[&raw], &[]);
        oracle::padded_agrees(&dataset.with_file_name("reviews.padded.h5"), &dataset);
        merge_with(&["--check", text_of(&dataset)]).succeeded();
        let card = merge_with(&["--describe", text_of(&dataset)]).succeeded().said();
        assert!(card.contains(" 0 distinct texts of 0 reviews\n"), "{card}");
    }
}

#[test]
fn input_without_a_review_becomes_a_dataset_without_rows() {
    // Blank, no text, nothing left after cleaning, stop words only, no JSON.
    let raw = b"\n \t\n{\"overall\": 5}\n{\"reviewText\": \"5/5 :)\", \"overall\": 5}\n\
        {\"reviewText\": \"Would get the product\", \"overall\": 5}\nnonsense";
    let folder = tempfile::tempdir().unwrap();

    let reducer = ["--profile", "original"].map(str::to_owned).to_vec();
    let dataset = Pipe { reducer, ..Pipe::default() }.dataset(raw, folder.path());

    let ledger = manifest(&dataset).seal.ledger;
    let mapper = ledger.mapper.unwrap();
    assert_eq!((mapper.lines, mapper.blank, mapper.no_text, mapper.bad_line), (6, 2, 1, 1));
    assert_eq!((mapper.empty_text, mapper.reviews), (1, 1));
    assert_eq!((ledger.reducer.distinct, ledger.reducer.only_stopwords, ledger.reducer.rows), (1, 1, 0));
    assert_eq!(open(&dataset).n_rows(), 0);
}

#[test]
fn an_empty_partition_among_others_changes_no_byte() {
    let raw = b"{\"reviewText\": \"Lovely soap\", \"overall\": 5}\n{\"reviewText\": \"Broken on day 2\", \"overall\": 1}\n";
    let folder = tempfile::tempdir().unwrap();
    let one = Pipe::default().dataset(raw, &folder.path().join("one"));

    let many = Pipe { partitions: 7, ..Pipe::default() }.dataset(raw, &folder.path().join("many"));

    let empty =
        commits(&folder.path().join("many/run")).iter().filter(|commit| commit.counts.rows == 0).count();
    assert!(empty >= 5, "{empty} empty partitions");
    assert_same_bytes(&many, &std::fs::read(one).unwrap(), "two reviews in seven partitions");
}

#[test]
fn mapper_and_combiner_of_nothing_write_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("mapper.json");
    let refused = run(program("mapper").arg("--counts").arg(&counts), b"").with_code(65);
    assert!(refused.stdout.is_empty() && !counts.exists());
    assert!(combined(b"").is_empty());
}
