//! Files that break a rule of the rows of datasets and shards.

use corpus::digest::{Digest, split};
use corpus::labels::Labels;
use corpus::record::Votes;
use dataset::Row;

use crate::case::{Case as C, When};
use crate::fixture::reseal::{altered, put_column, put_number, put_text};
use crate::fixture::{Given, many_rows, rows, write_dataset, write_shard};

/// Rows of datasets and shards.
pub fn of_rows() -> Vec<C> {
    let offsets = |rule, said, offsets: &'static [u64]| {
        C::altered(rule, said, move |file| put_column(file, "offsets", offsets))
    };
    let length = |said, tokens: Vec<u32>| {
        C::given("F27", said, When::Opened, move |given| given.rows[1].tokens = tokens)
    };
    vec![
        C::altered("F25", "the length of label is 2, expected 3 for 3 hashes", |file| {
            put_column::<u8>(file, "label", &[1, 0]);
        }),
        offsets("F25", "the first of offsets is 1, expected 0", &[1, 2, 5, 6]),
        offsets("F25", "the last of offsets is 5, expected 6", &[0, 2, 4, 5]),
        offsets("F25", "the length of offsets is 3, expected 4 for 3 hashes", &[0, 2, 6]),
        C::altered("F26", "the type of tokens is 32 bits, expected 16 bits, for ids up to 4", |file| {
            put_column::<u32>(file, "tokens", &[3, 2, 4, 4, 4, 2]);
        }),
        length("the number of tokens of row 1 is 0, expected 1 to 100", Vec::new()),
        length("the number of tokens of row 1 is 101, expected 1 to 100", vec![4; 101]),
        offsets("F27", "the end of row 1 is 1, expected at least 2", &[0, 2, 1, 6]),
        offsets("F27", "the end of row 1 is 1, expected at least 7", &[0, 7, 1, 6]),
        C::row("F28", "a token of row 1 is 0, expected 1 to 4", |row| row.tokens[1] = 0),
        C::row("F28", "a token of row 1 is 5, expected 1 to 4", |row| row.tokens[1] = 5),
        C::row("F28", "a token of row 1 is 5, expected 1 to 4", |row| row.tokens = vec![1, 5, 4]),
        C::shard("F28", "a token of row 1 is 2, expected 0 to 1", &[(b"fit", 1), (b"good", 1)], rows()),
        C::row("F29", "the number of votes of row 1 is 0, expected 1 or more", |row| {
            row.votes = Votes([0; 5]);
        }),
        C::row("F30", "the label of row 1 is 1, expected 0, computed from its votes", |row| row.label = 1),
        of_classes("the label of row 1 is 0, expected 1, computed from its votes", "5=good,1=bad,4=fine"),
        of_classes(
            "the label of row 1 is 0, expected no row, because rating 1 has no class",
            "2=bad,4-5=good",
        ),
        C::row("F31", "the split of row 1 is 1000, expected less than 1000", |row| row.split = 1000),
        C::new("F31", "the split of row 1 is ", When::Verified, |path| {
            let mut rows = rows();
            rows[1].split = (rows[1].split + 1) % 1000;
            write_shard(path, &rows);
        }),
        C::given("F32", "row 1 is less than the previous row", When::Opened, |given| given.rows.swap(0, 1)),
        // In the second chunk of hashes.
        C::new("F32", "row 40000 is less than the previous row", When::Opened, |path| {
            let mut rows = many_rows(50_000);
            rows[40_000].hash = 0;
            write_dataset(path, &rows);
        }),
        // Between two blocks of rows, and within the second one.
        C::new("F32", "row 32768 is less than the previous row", When::Verified, |path| {
            let mut rows = many_rows(40_000);
            rows[32_767].hash = 50_000;
            write_shard(path, &rows);
        }),
        C::new("F32", "row 39000 is less than the previous row", When::Verified, |path| {
            let mut rows = many_rows(40_000);
            rows[39_000].hash = 0;
            write_shard(path, &rows);
        }),
        C::given("F32", "row 1 is less than the previous row", When::Read, |given| {
            let of = |id: u32, word: &[u8]| Row {
                hash: 5,
                tokens: vec![id],
                split: split(word),
                ..given.rows[2].clone()
            };
            given.rows = vec![of(3, b"good"), of(2, b"fit")];
        }),
        C::given("F32", "row 1 is less than the previous row", When::Read, |given| {
            let of = |votes| Row { votes: Votes(votes), hash: 5, ..given.rows[2].clone() };
            given.rows = vec![of([0, 0, 0, 2, 0]), of([0, 0, 0, 1, 0])];
        }),
        C::given("F32", "row 1 is less than the previous row", When::Read, |given| {
            let row = Row { hash: 5, ..given.rows[2].clone() };
            let longer = Row { tokens: vec![2, 1], ..row.clone() };
            given.rows = vec![longer, row];
        }),
        C::new("F32", "row 1 is less than the previous row", When::Verified, |path| {
            let mut rows = rows();
            rows.swap(0, 1);
            write_shard(path, &rows);
        }),
        C::new("F33", "the id digest of the rows is ", When::Read, |path| {
            write_dataset(path, &rows());
            altered(path, |file| put_text::<32>(file, "id_digest", &Digest(5).to_string()));
        }),
        C::new("F33", "the id digest of the rows is ", When::Verified, |path| {
            write_shard(path, &rows());
            altered(path, |file| put_text::<32>(file, "id_digest", &Digest(5).to_string()));
        }),
        C::new("F34", "the row digest of the rows is ", When::Verified, |path| {
            write_shard(path, &rows());
            altered(path, |file| put_text::<32>(file, "row_digest", &Digest(5).to_string()));
        }),
        C::given(
            "F35",
            "the hash of row 1 is 0000000580000000, expected a hash in the sample of 0.5",
            When::Read,
            |given| of_half(given, 0x5_8000_0000),
        ),
        C::new("F35", "the hash of row 0 is 0000000000000005", When::Verified, |path| {
            write_shard(path, &rows());
            altered(path, |file| put_number(file, "sample", 1));
        }),
    ]
}

/// Makes the rows a sample of half of the texts. The row in the middle has this hash.
pub fn of_half(given: &mut Given, hash: u64) {
    given.settings.rows.sample = "0.5".parse().unwrap();
    for (row, hash) in given.rows.iter_mut().zip([0x1_7fff_ffff, hash, 0x9_0000_0000]) {
        row.hash = hash;
    }
}

/// A file with named classes, whose rows have the labels of another split: 1, 0 and 1.
fn of_classes(said: &'static str, classes: &'static str) -> C {
    C::given("F30", said, When::Read, |given| {
        given.settings.rows.labels = Labels::Classes(classes.parse().unwrap());
        given.rows[0].label = given.settings.rows.label(given.rows[0].votes).unwrap();
    })
}
