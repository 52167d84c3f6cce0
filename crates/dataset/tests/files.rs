//! Shards and datasets survive the round trip through files, with the same bytes each time.
#![allow(clippy::unwrap_used)]

mod fixture;

use std::num::NonZeroUsize;

use corpus::digest::Digest;
use corpus::settings::Settings;
use dataset::dataset_file::DatasetReader;
use dataset::shard::{ShardReader, ShardSize, ShardWriter};
use dataset::{Error, Row};
use fixture::{many_rows, read_shard, row_digest, rows, write_dataset, write_shard, write_shard_of};

#[test]
fn a_shard_survives_the_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    write_shard(&path, &rows());
    assert_eq!(read_shard(&path).unwrap(), rows());
    let mut shard = ShardReader::open(&path).unwrap();
    assert_eq!(shard.settings(), &Settings::original());
    assert_eq!(shard.rows_with_hash(7).unwrap(), 1..2);
    assert_eq!(shard.rows_with_hash(6).unwrap(), 1..1);
    let mut joined = Vec::new();
    shard.join_words(&rows()[1], &mut joined).unwrap();
    assert_eq!(joined, "größe größe größe".as_bytes());
    let mut row = Row::default();
    shard.row(1, &mut row).unwrap();
    assert_eq!(row, rows()[1]);
    assert_eq!(shard.digest_of(&row).unwrap(), row_digest(&[row]));
}

#[test]
fn equal_rows_are_in_order_also_at_the_border_of_a_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    let mut many = many_rows(40_000);
    for at in [5, 32_768] {
        many[at] = many[at - 1].clone();
    }
    write_shard(&path, &many);
    assert!(read_shard(&path).unwrap() == many);
}

#[test]
fn a_dictionary_above_the_limit_of_memory_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    let words: [(&[u8], u64); 3] = [(b"fit", 1), (b"good", 2), ("größe".as_bytes(), 3)];
    write_shard_of(&path, &words, &rows(), Digest(5));
    let verified = |bytes_max| {
        let mut shard = ShardReader::open(&path).unwrap();
        shard.keep_dictionary(bytes_max).unwrap();
        shard.verify_blocks(NonZeroUsize::MIN, || (), |(), _| (), |()| ())
    };
    // The row digest is computed from words in memory only.
    verified(1).unwrap();
    let error = verified(1 << 20).unwrap_err().to_string();
    assert!(error.contains("the row digest of the rows"), "{error}");
}

#[test]
fn a_shard_without_rows_survives_the_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    let size = ShardSize::default();
    ShardWriter::create(&path, &Settings::original(), size).unwrap().finish(Digest::default()).unwrap();
    assert_eq!(read_shard(&path).unwrap(), []);
}

#[test]
fn equal_rows_give_equal_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = ["a", "b"].map(|name| {
        let path = folder.path().join(name);
        write_dataset(&path, &rows());
        std::fs::read(path).unwrap()
    });
    assert!(bytes[0] == bytes[1]);
    // A reference digest: object times or another version of the library would change it.
    assert_eq!(Digest::of(&bytes[0]).to_string(), "9ff7b453b7d7134dfae798848bb50244");
}

#[test]
fn more_rows_than_a_chunk_survive_the_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    let many = many_rows(70_000);
    write_shard(&path, &many);
    assert!(read_shard(&path).unwrap() == many);
}

#[test]
fn fewer_rows_than_declared_are_an_internal_error() {
    let folder = tempfile::tempdir().unwrap();
    let size = ShardSize { rows: 1, tokens: 0, words: 0, word_bytes: 0 };
    let shard = ShardWriter::create(&folder.path().join("shard.h5"), &Settings::original(), size).unwrap();
    assert!(matches!(shard.finish(Digest::default()), Err(Error::Internal { .. })));
}

#[test]
fn a_dataset_survives_the_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dataset.h5");
    write_dataset(&path, &rows());
    let dataset = DatasetReader::open(&path).unwrap();
    assert_eq!(dataset.settings().without, Some(Digest(9)));
    assert_eq!(dataset.vocabulary().counts, [10, 9, 8]);
    assert_eq!((dataset.vocabulary().largest_id(), dataset.n_tokens()), (4, 6));
    let mut read = Vec::new();
    let result = dataset.verify(|row| {
        read.push(row.tokens.clone());
        Ok(())
    });
    result.unwrap();
    assert_eq!(read, [vec![3, 2], vec![4, 4, 4], vec![2]]);
}

#[test]
fn a_shard_is_not_read_as_a_dataset_nor_a_text_as_either() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    write_shard(&path, &rows());
    let error = DatasetReader::open(&path).err().unwrap().to_string();
    assert!(
        error.contains("attribute format is \"sentimill shard\", expected \"sentimill dataset\""),
        "{error}"
    );
    std::fs::write(&path, "reviews").unwrap();
    let error = DatasetReader::open(&path).err().unwrap().to_string();
    assert!(error.contains("the file is not readable as HDF5"), "{error}");
}
