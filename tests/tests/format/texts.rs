//! The example's texts as rows: each number is computed from the text and compared with the shards.

use std::collections::BTreeMap;
use std::fmt::Write;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::file::{File, hex, hex128};

pub struct Text {
    text: String,
    votes: Vec<u32>,
    words: Vec<String>,
    kept: Vec<String>,
    hash: u64,
    label: u8,
    partition: usize,
}

/// The distinct texts of the records, in row order.
pub fn texts(records: &str, stop_words: &str, shards: &[File]) -> Vec<Text> {
    let mut votes: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for record in records.lines() {
        let (text, numbers) = record.split_once('\t').unwrap();
        let sums = votes.entry(text).or_insert_with(|| vec![0; 5]);
        for (sum, n) in sums.iter_mut().zip(numbers.split(',')) {
            *sum += n.parse::<u32>().unwrap();
        }
    }
    let mut texts: Vec<Text> = votes
        .into_iter()
        .map(|(text, votes)| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let words: Vec<String> =
                words.into_iter().filter(|word| !stop_words.lines().any(|stop| stop == word)).collect();
            in_its_shard(text, votes, words, shards)
        })
        .collect();
    texts.sort_by_key(|text| text.hash);
    texts
}

/// Finds the row in the shard of its partition, and checks every column against the text.
fn in_its_shard(text: &str, votes: Vec<u32>, words: Vec<String>, shards: &[File]) -> Text {
    let partition = hash_bytes(text) as usize % shards.len();
    let shard = &shards[partition];
    let hash = xxh3_64(text.as_bytes());
    let row = shard.values("hash").iter().position(|&other| other == hash).unwrap();
    let dictionary = shard.words("dictionary");
    let kept: Vec<String> =
        shard.tokens(row).iter().map(|&place| dictionary[place as usize].clone()).collect();
    let label = u8::from(mode(&votes) >= 4);
    assert_eq!(kept, words[..kept.len()]);
    assert_eq!(shard.values("label")[row], u64::from(label));
    assert_eq!(shard.values("split")[row], xxh3_64(kept.join(" ").as_bytes()) % 1000);
    assert_eq!(shard.values("votes")[5 * row..][..5], votes.iter().map(|&n| n.into()).collect::<Vec<u64>>());
    Text { text: text.to_owned(), votes, words, kept, hash, label, partition }
}

/// Hadoop's hash of a key, without its sign.
fn hash_bytes(key: &str) -> u32 {
    let step = |hash: u32, byte: u8| hash.wrapping_mul(31).wrapping_add(byte as i8 as u32);
    key.bytes().fold(1, step) & 0x7fff_ffff
}

/// The most frequent rating, of equals the smaller.
fn mode(votes: &[u32]) -> usize {
    votes.iter().position(|n| n == votes.iter().max().unwrap()).unwrap() + 1
}

impl Text {
    pub fn description(&self) -> String {
        let Self { text, words, kept, partition, .. } = self;
        let h = hash_bytes(text);
        let split = xxh3_64(kept.join(" ").as_bytes());
        let votes: Vec<String> = self.votes.iter().map(u32::to_string).collect();
        format!(
            "{text}\n\
             \u{20} hash {:016x}, partition {h:08x} mod 2 = {partition}, votes {}, \
             most frequent rating {}: label {}\n\
             \u{20} words {}\n\
             \u{20} kept {}, split {split:016x} mod 1000 = {}\n",
            self.hash,
            votes.join(","),
            mode(&self.votes),
            self.label,
            words.join(" "),
            kept.join(" "),
            split % 1000,
        )
    }

    fn head(&self) -> Vec<u8> {
        let mut bytes = self.hash.to_le_bytes().to_vec();
        bytes.push(self.label);
        bytes.extend(self.votes.iter().flat_map(|n| n.to_le_bytes()));
        bytes.extend((self.kept.len() as u32).to_le_bytes());
        bytes
    }

    /// The bytes covered by the row digest.
    fn with_words(&self) -> Vec<u8> {
        let words: String = self.kept.iter().map(|word| format!("{word}\n")).collect();
        [self.head(), words.into_bytes()].concat()
    }

    /// The bytes covered by the id digest.
    fn with_ids(&self, ids: &[u64]) -> Vec<u8> {
        [self.head(), ids.iter().flat_map(|&id| (id as u32).to_le_bytes()).collect()].concat()
    }

    fn ids(&self, dataset: &File) -> Vec<u64> {
        let row = dataset.values("hash").iter().position(|&hash| hash == self.hash).unwrap();
        dataset.tokens(row).to_vec()
    }
}

/// What the digests of rows and of the vocabulary cover, and how row digests add up.
pub fn digests(texts: &[Text], shards: &[File], dataset: &File) -> String {
    format!("{}\n{}\n{}", covered(&texts[1], dataset), sums(texts, shards, dataset), vocabulary(dataset))
}

/// The parts of the bytes that the digests of one row cover.
fn covered(text: &Text, dataset: &File) -> String {
    let mut out = String::new();
    let mut line = |bytes: &[u8], meaning: &str| writeln!(out, "{:<62}{meaning}", hex(bytes)).unwrap();
    let head = text.head();
    line(&head[..8], &format!("hash {:016x}", text.hash));
    line(&head[8..9], "label");
    line(&head[9..29], "votes");
    line(&head[29..], "kept words");
    for word in &text.kept {
        line(format!("{word}\n").as_bytes(), &format!("{word} LF"));
    }
    let ids = text.ids(dataset);
    for (id, word) in ids.iter().zip(&text.kept) {
        line(&(*id as u32).to_le_bytes(), &format!("id of {word}"));
    }
    let (by_words, by_ids) = (text.with_words(), text.with_ids(&ids));
    format!(
        "{out}{}  row digest: fixed fields and words, {} bytes\n{}  id digest: fixed fields and ids, {} bytes\n",
        hex128(&by_words),
        by_words.len(),
        hex128(&by_ids),
        by_ids.len()
    )
}

/// How the digests of rows add up to those of shards and dataset.
fn sums(texts: &[Text], shards: &[File], dataset: &File) -> String {
    let mut out = format!("{:<18}{:<11}{:<34}{}\n", "row", "partition", "row digest", "id digest");
    let mut sum = [0u128; 2];
    let mut by_partition = vec![0u128; shards.len()];
    for text in texts {
        let (by_words, by_ids) = (text.with_words(), text.with_ids(&text.ids(dataset)));
        sum = [sum[0].wrapping_add(xxh3_128(&by_words)), sum[1].wrapping_add(xxh3_128(&by_ids))];
        let partial = &mut by_partition[text.partition];
        *partial = partial.wrapping_add(xxh3_128(&by_words));
        writeln!(out, "{:016x}  {:<11}{}  {}", text.hash, text.partition, hex128(&by_words), hex128(&by_ids))
            .unwrap();
    }
    for (partition, (partial, shard)) in by_partition.iter().zip(shards).enumerate() {
        assert_eq!(shard.text("row_digest"), format!("{partial:032x}"));
        writeln!(out, "{:<18}{partition:<11}{partial:032x}", "sum, shard").unwrap();
    }
    assert_eq!(dataset.text("row_digest"), format!("{:032x}", sum[0]));
    assert_eq!(dataset.text("id_digest"), format!("{:032x}", sum[1]));
    writeln!(out, "{:<29}{:032x}  {:032x}", "sum, dataset", sum[0], sum[1]).unwrap();
    out
}

fn vocabulary(dataset: &File) -> String {
    let words = dataset.words("vocabulary");
    let lines = words.iter().zip(dataset.values("vocabulary/count"));
    let lines: String = lines.map(|(word, count)| format!("{word}\t{count}\n")).collect();
    assert_eq!(dataset.text("vocabulary_digest"), hex128(lines.as_bytes()));
    format!("{}\n{}  vocabulary digest\n", lines.escape_debug(), hex128(lines.as_bytes()))
}
