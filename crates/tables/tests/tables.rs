//! Tables of all types, written by any number of threads and read back.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use proptest::prelude::*;
use tables::{Column, Error, Kind, ROWS_MAX, RowGroup, Schema, TableWriter, Value, Written, verify};

fn schema() -> Schema {
    Schema::new(vec![
        Column::repeating("small", Kind::U8),
        Column::new("short", Kind::U16),
        Column::new("number", Kind::U32),
        Column::new("hash", Kind::U64),
        Column::new("text", Kind::Text),
        Column::repeating("file", Kind::Text),
        Column::new("ids", Kind::ListOfU16),
        Column::repeating("votes", Kind::ListOfU32),
    ])
}

/// A row: two integers, a text and a list.
type Row = (u16, u64, String, Vec<u16>);

fn write(path: &Path, rows: &[Row], threads: usize) -> Written {
    let schema = schema();
    let threads = NonZeroUsize::new(threads).unwrap();
    let mut table = TableWriter::create(path, &schema, &[("labels", "bad\ngood")], threads).unwrap();
    let mut group = RowGroup::of(&schema);
    for (short, hash, text, list) in rows {
        let ids: Vec<u32> = list.iter().map(|&id| id.into()).collect();
        let votes = [u32::from(*short), u32::MAX, 0, *hash as u32, 5];
        group.push(&[
            Value::Number((short % 256).into()),
            Value::Number((*short).into()),
            Value::Number(hash & u64::from(u32::MAX)),
            Value::Number(*hash),
            Value::Text(text.as_bytes()),
            Value::Text(if short % 2 == 0 { b"even.json" } else { b"odd.json" }),
            Value::List(&ids),
            Value::List(&votes),
        ]);
        if group.is_full() {
            table.write(std::mem::replace(&mut group, RowGroup::of(&schema))).unwrap();
        }
    }
    table.write(group).unwrap();
    table.finish().unwrap()
}

fn check(path: &Path, written: &Written, threads: usize) -> Result<(), Error> {
    let threads = NonZeroUsize::new(threads).unwrap();
    verify(path, &schema(), written, threads, |_| Ok(()), |_| Ok(()))
}

/// Rows of several row groups.
fn many() -> Vec<Row> {
    let row = |n: u64| {
        let hash = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (n as u16, hash, format!("word{hash} größe"), (0..n as u16 % 7).collect())
    };
    (0..2 * ROWS_MAX as u64 + 100).map(row).collect()
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let [one, three] = [1, 3].map(|threads| {
        let path = folder.path().join(threads.to_string());
        let written = write(&path, &many(), threads);
        assert_eq!(written.n_rows(), 2 * ROWS_MAX as u64 + 100);
        check(&path, &written, threads).unwrap();
        (fs::read(path).unwrap(), written)
    });
    assert!(one == three);
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    fs::write(&path, "kept").unwrap();
    let refused = TableWriter::create(&path, &schema(), &[], NonZeroUsize::MIN);
    assert!(
        matches!(refused.err().unwrap(), Error::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists)
    );
    assert_eq!(fs::read(&path).unwrap(), b"kept");
}

#[test]
fn a_row_group_ends_at_a_number_of_rows_or_bytes() {
    let schema = Schema::new(vec![Column::new("text", Kind::Text)]);
    let rows_of = |text: &[u8]| {
        let mut rows = RowGroup::of(&schema);
        while !rows.is_full() {
            rows.push(&[Value::Text(text)]);
        }
        rows.n_rows()
    };
    assert_eq!(rows_of(b"x"), ROWS_MAX);
    assert_eq!(rows_of(&[b'x'; 1 << 20]), 8);
}

#[test]
fn what_is_wrong_with_rows_is_returned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    let mut table = TableWriter::create(&path, &schema(), &[], NonZeroUsize::MIN).unwrap();
    table.write_with(|| Err("a text has another hash".to_owned())).unwrap();
    assert_eq!(table.finish().unwrap_err().to_string(), "a text has another hash");

    fs::remove_file(&path).unwrap();
    let written = write(&path, &many()[..10], 1);
    let check = |rows: &RowGroup| match rows.text(4, 3) {
        b"word7 good" => Ok(()),
        other => Err(format!("{} of {}", String::from_utf8_lossy(other), rows.number(3, 3))),
    };
    let error =
        verify::<Error>(&path, &schema(), &written, NonZeroUsize::MIN, check, |_| Ok(())).unwrap_err();
    let hash = 3u64.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    assert_eq!(error.to_string(), format!("word{hash} größe of {hash}"));
}

#[test]
fn an_interruption_stops_the_verification() {
    #[derive(Debug)]
    enum Stop {
        Interrupted,
        Failed,
    }
    impl From<Error> for Stop {
        fn from(_: Error) -> Self {
            Self::Failed
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    let written = write(&path, &many(), 2);
    let stopped =
        verify(&path, &schema(), &written, NonZeroUsize::MIN, |_| Ok(()), |_| Err(Stop::Interrupted));
    assert!(matches!(stopped, Err(Stop::Interrupted)));
}

#[test]
fn another_table_differs() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    let rows = &many()[..1000];
    let written = write(&one, rows, 1);
    let mut changed = rows.to_vec();
    changed[999].1 += 1;
    let expected = write(&other, &changed, 1);
    assert_eq!(check(&one, &expected, 1).unwrap_err().to_string(), "row group 0 has other values");
    let none = write(&folder.path().join("none"), &[], 1);
    let error = check(&one, &none, 1).unwrap_err();
    assert_eq!(error.to_string(), "another schema or number of row groups");
    check(&one, &written, 1).unwrap();
}

#[test]
fn a_flipped_bit_of_the_rows_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    let written = write(&path, &many()[..300], 1);
    let whole = fs::read(&path).unwrap();
    // The values of `text`, whose snappy blocks have literals.
    let at = whole.windows(5).position(|bytes| bytes == "größ".as_bytes().split_at(5).0).unwrap();
    let mut flipped = whole.clone();
    flipped[at] ^= 1;
    fs::write(&path, &flipped).unwrap();
    assert!(matches!(check(&path, &written, 1).unwrap_err(), Error::Differs(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_values_are_read_back(
        rows in prop::collection::vec(
            (any::<u16>(), any::<u64>(), "[a-zé ]{0,12}", prop::collection::vec(any::<u16>(), 0..5)),
            0..50,
        ),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.parquet");
        let written = write(&path, &rows, 2);
        let expected = rows.clone();
        let compare = |read: &RowGroup| {
            for (row, (short, hash, text, _)) in expected.iter().enumerate() {
                let found = (read.number(1, row), read.number(3, row), read.text(4, row));
                if found != ((*short).into(), *hash, text.as_bytes()) {
                    return Err(format!("row {row}"));
                }
            }
            Ok(())
        };
        let threads = NonZeroUsize::MIN;
        verify::<Error>(&path, &schema(), &written, threads, compare, |_| Ok(())).unwrap();
    }
}
