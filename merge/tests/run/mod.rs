//! Runs of synthetic texts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use corpus::digest::{Digest, RowDigester, split};
use corpus::ledger::ReducerCounts;
use corpus::record::Votes;
use corpus::settings::Settings;
use dataset::commit::{Commit, PartObject, commit_key};
use dataset::shard::{ShardSize, ShardWriter};
use dataset::{Row, RowsSize, SCHEMA_VERSION};

/// A text: its hash, its words and its votes.
pub type Text = (u64, Vec<String>, Votes);

/// The n-th text of [`texts`]. Hashes are distributed evenly; two in a hundred texts share theirs with another one.
pub fn text(n: u64) -> Text {
    let hash = (n - u64::from(n % 50 == 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let words = (0..1 + n % 7).map(|at| word((n * 7 + at * at) % 90)).chain([word(1000 + n)]);
    let rating = (n % 5) as usize;
    let mut votes = [0; 5];
    votes[rating] = 1 + (n % 3) as u32;
    (hash, words.collect(), Votes(votes))
}

/// A word for each number, because cleaned words have no digits.
fn word(n: u64) -> String {
    n.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

pub fn texts(n: u64) -> Vec<Text> {
    (0..n).map(text).collect()
}

fn settings() -> Settings {
    Settings { max_tokens: 0, ..Settings::default() }
}

/// Writes a run of these texts, which are dealt to this number of shards.
pub fn write_run(folder: &Path, texts: &[Text], n_shards: u32) {
    for name in ["data", "commit"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    for partition in 0..n_shards {
        let of_shard = texts.iter().skip(partition as usize).step_by(n_shards as usize);
        let commit = write_shard(folder, &of_shard.cloned().collect::<Vec<_>>(), (partition, n_shards));
        fs::write(folder.join(commit_key(partition)), serde_json::to_vec(&commit).unwrap()).unwrap();
    }
}

fn write_shard(folder: &Path, texts: &[Text], (partition, partitions): (u32, u32)) -> Commit {
    let settings = settings();
    let words: BTreeSet<&String> = texts.iter().flat_map(|(_, words, _)| words).collect();
    let words: Vec<&String> = words.into_iter().collect();
    let (mut digester, mut row_digest) = (RowDigester::default(), Digest::default());
    let mut counts = vec![0; words.len()];
    let mut rows: Vec<Row> = Vec::new();
    for (hash, text, votes) in texts {
        let tokens: Vec<u32> = text.iter().map(|word| words.binary_search(&word).unwrap() as u32).collect();
        tokens.iter().for_each(|&token| counts[token as usize] += 1);
        let (joined, label) = (text.join(" "), settings.label(*votes).unwrap());
        row_digest += digester.of_words(*hash, label, *votes, text.len(), joined.as_bytes());
        rows.push(Row {
            hash: *hash,
            tokens,
            votes: *votes,
            label,
            split: split(joined.as_bytes()),
            source: 0,
        });
    }
    rows.sort_unstable();
    let RowsSize { rows: n_rows, tokens } = RowsSize::of(&rows);
    let word_bytes = words.iter().map(|word| word.len() as u64).sum();
    let size = ShardSize { rows: n_rows, tokens, words: words.len() as u64, word_bytes };
    let object = PartObject::Shard.key(partition, "host", "attempt");
    let path = folder.join(&object);
    let mut shard = ShardWriter::create(&path, &settings, size).unwrap();
    words.iter().zip(&counts).for_each(|(word, count)| shard.word(word.as_bytes(), *count).unwrap());
    rows.iter().for_each(|row| shard.row(row).unwrap());
    shard.finish(row_digest).unwrap();
    let reviews = rows.iter().map(|row| row.votes.total()).sum();
    let counts = ReducerCounts { reviews, distinct: n_rows, rows: n_rows, ..ReducerCounts::none(&settings) };
    Commit {
        schema_version: SCHEMA_VERSION,
        run: "run".to_owned(),
        partition,
        partitions,
        object,
        bytes: fs::metadata(&path).unwrap().len(),
        sha256: durable::sha256::of_file(&path).unwrap(),
        etag: None,
        host: "host".to_owned(),
        attempt: "attempt".to_owned(),
        job: None,
        committed_unix_s: 0,
        counts,
        kept_words: tokens,
        distinct_words: words.len() as u64,
        row_digest,
        settings,
        texts: None,
        rest: None,
    }
}
