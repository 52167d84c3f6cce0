//! The dictionary of a model in the file: words, labels, their counts, and the buckets that remain after pruning.

use std::collections::HashSet;
use std::io::{self, BufRead, Write};

use super::args::Args;
use crate::files::COUNT_MAX;
use crate::words::is_space;
use crate::{Dictionary, LABEL_PREFIX, Names};
use durable::{Result, Source};

/// An entry has at least a byte, NUL, a count and a type.
const ENTRY_BYTES_MIN: u64 = 1 + 1 + 8 + 1;
const NO_PRUNING: i64 = -1;

/// The dictionary as the program stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entries {
    dictionary: Dictionary,
    /// Whether all labels have the prefix `__label__`. If not, the dictionary has their names as stored.
    has_prefix: bool,
    n_tokens: u64,
    /// Buckets and their rows behind the words, sorted by bucket; `None` if every bucket has its row.
    pruned: Option<Vec<(u32, u32)>>,
}

impl From<Dictionary> for Entries {
    fn from(dictionary: Dictionary) -> Self {
        Self { has_prefix: true, n_tokens: dictionary.n_tokens(), pruned: None, dictionary }
    }
}

impl Entries {
    /// Words and labels.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The name of a label, as the program prints it.
    pub fn label(&self, label: u32) -> Vec<u8> {
        let prefix = if self.has_prefix { LABEL_PREFIX } else { b"" };
        [prefix, self.dictionary.labels().get(label)].concat()
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.dictionary.labels().len()
    }

    /// The remaining buckets and their rows behind the words, sorted by bucket; `None` if every bucket has its row.
    pub fn pruned(&self) -> Option<&[(u32, u32)]> {
        self.pruned.as_deref()
    }

    /// Whether the program takes a token of a text for a label, which has no row.
    pub(super) fn is_label(&self, token: &[u8]) -> bool {
        let is_label =
            token.starts_with(LABEL_PREFIX) || (!self.has_prefix && self.dictionary.label(token).is_some());
        is_label && self.dictionary.word(token).is_none()
    }

    /// The dictionary with only these rows, words or buckets, and all labels; and the rows in their new order.
    pub(super) fn prune(&self, rows: &[u32]) -> (Self, Vec<u32>) {
        let n_words = self.dictionary.n_words() as u32;
        let (mut words, buckets): (Vec<u32>, Vec<u32>) = rows.iter().partition(|&&row| row < n_words);
        words.sort_unstable();
        let names = words.iter().map(|&word| self.dictionary.name(word)).collect();
        let counts = words.iter().map(|&word| self.dictionary.count(word)).collect();
        let dictionary =
            Dictionary::new(names, counts, self.dictionary.labels().clone(), self.dictionary.label_counts());
        let mut pruned: Vec<(u32, u32)> =
            (0..).zip(&buckets).map(|(row, &bucket)| (bucket - n_words, row)).collect();
        pruned.sort_unstable();
        words.extend(buckets);
        (Self { dictionary, pruned: Some(pruned), ..self.clone() }, words)
    }

    pub(super) fn parse(source: &mut Source<'_, impl BufRead>, args: &Args) -> Result<Self> {
        let n_entries = source.size_i32("the number of entries", i32::MAX as u32)?;
        let n_words = source.size_i32("the number of words", i32::MAX as u32)?;
        let n_labels = source.size_i32("the number of labels", i32::MAX as u32)?;
        let n_tokens = source.i64("the number of tokens")?;
        let n_pruned = source.i64("the number of pruned buckets")?;
        if n_words + n_labels != n_entries {
            let expected = format!("{n_words} words + {n_labels} labels");
            return Err(source.unexpected("the number of entries", n_entries, expected));
        }
        if n_labels == 0 && !args.kind.is_of_words() {
            return Err(source.unexpected("the number of labels", 0, "1 or more"));
        }
        let Ok(n_tokens) = u64::try_from(n_tokens) else {
            return Err(source.unexpected("the number of tokens", n_tokens, "0 or more"));
        };
        let n_max = source.left() / ENTRY_BYTES_MIN;
        if n_entries as u64 > n_max {
            let expected = format!("at most {n_max}, because {} bytes remain", source.left());
            return Err(source.unexpected("the number of entries", n_entries, expected));
        }
        let (words, counts) = parse_names(source, 0, n_words, 0)?;
        let (labels, label_counts) = parse_names(source, n_words, n_labels, 1)?;
        let has_prefix = labels.iter().all(|label| label.starts_with(LABEL_PREFIX) && label != LABEL_PREFIX);
        let labels = match has_prefix {
            true => labels.iter().map(|label| &label[LABEL_PREFIX.len()..]).collect(),
            false => labels,
        };
        let dictionary = Dictionary::new(words, counts, labels, label_counts);
        let mut entries = Self { dictionary, has_prefix, n_tokens, pruned: None };
        if let Some((entry, name)) = entries.repeated() {
            let found = format!("{:?}", String::from_utf8_lossy(&name));
            return Err(source.unexpected(
                format_args!("entry {entry}"),
                found,
                "a name that no other entry has",
            ));
        }
        entries.pruned = match n_pruned {
            NO_PRUNING => None,
            n => Some(parse_pruned(source, n, args.n_buckets)?),
        };
        Ok(entries)
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let size =
            |size: usize| i32::try_from(size).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
        let (n_words, n_labels) = (self.dictionary.n_words(), self.n_labels());
        out.write_all(&size(n_words + n_labels)?.to_le_bytes())?;
        out.write_all(&size(n_words)?.to_le_bytes())?;
        out.write_all(&size(n_labels)?.to_le_bytes())?;
        out.write_all(&self.n_tokens.to_le_bytes())?;
        let n_pruned = self.pruned.as_ref().map_or(NO_PRUNING, |pruned| pruned.len() as i64);
        out.write_all(&n_pruned.to_le_bytes())?;
        for word in 0..n_words as u32 {
            write_entry(out, self.dictionary.name(word), self.dictionary.count(word), 0)?;
        }
        for label in 0..n_labels as u32 {
            write_entry(out, &self.label(label), self.dictionary.label_count(label), 1)?;
        }
        for (bucket, row) in self.pruned.iter().flatten() {
            out.write_all(&bucket.to_le_bytes())?;
            out.write_all(&row.to_le_bytes())?;
        }
        Ok(())
    }

    /// The first entry whose name an earlier entry has.
    fn repeated(&self) -> Option<(usize, Vec<u8>)> {
        let n_words = self.dictionary.n_words();
        let mut words = self.dictionary.words().iter().zip(0..);
        if let Some((name, word)) = words.find(|&(name, word)| self.dictionary.word(name) != Some(word)) {
            return Some((word as usize, name.to_vec()));
        }
        (0..self.n_labels() as u32).find_map(|label| {
            let is_repeated = self.dictionary.label(self.dictionary.labels().get(label)) != Some(label)
                || self.dictionary.word(&self.label(label)).is_some();
            is_repeated.then(|| (n_words + label as usize, self.label(label)))
        })
    }
}

/// Reads `n` entries of one type, the first of which has the number `first`.
fn parse_names(
    source: &mut Source<'_, impl BufRead>,
    first: usize,
    n: usize,
    kind: u8,
) -> Result<(Names, Vec<u64>)> {
    let mut names = Names::default();
    let mut counts = Vec::with_capacity(n);
    let mut name = Vec::new();
    for at in first..first + n {
        name.clear();
        source.until_nul(format_args!("entry {at}"), &mut name)?;
        if name.is_empty() || name.iter().copied().any(is_space) {
            let found = format!("{:?}", String::from_utf8_lossy(&name));
            return Err(source.unexpected(format_args!("entry {at}"), found, "a word without white space"));
        }
        let field = format_args!("the count of entry {at}");
        let count = source.i64(field)?;
        match u64::try_from(count).ok().filter(|&count| count <= COUNT_MAX) {
            Some(count) => counts.push(count),
            None => {
                let field = format_args!("the count of entry {at}");
                return Err(source.unexpected(field, count, format_args!("0 to {COUNT_MAX}")));
            }
        }
        let found = source.u8(format_args!("the type of entry {at}"))?;
        if found != kind {
            let expected = if kind == 0 { "0, a word" } else { "1, a label" };
            return Err(source.unexpected(format_args!("the type of entry {at}"), found, expected));
        }
        names.push(&name);
    }
    Ok((names, counts))
}

fn parse_pruned(source: &mut Source<'_, impl BufRead>, n: i64, n_buckets: usize) -> Result<Vec<(u32, u32)>> {
    let n_max = source.left() / 8;
    let Some(n) = u64::try_from(n).ok().filter(|&n| n <= n_max) else {
        let expected = format!("-1, or 0 to {n_max}, because {} bytes remain", source.left());
        return Err(source.unexpected("the number of pruned buckets", n, expected));
    };
    let mut pruned = Vec::with_capacity(n as usize);
    let mut rows = HashSet::with_capacity(n as usize);
    for _ in 0..n {
        let bucket = source.size_i32("a pruned bucket", i32::MAX as u32)?;
        let row = source.size_i32("the row of a pruned bucket", i32::MAX as u32)?;
        if bucket >= n_buckets {
            return Err(source.unexpected("a pruned bucket", bucket, format_args!("less than {n_buckets}")));
        }
        if row as u64 >= n || !rows.insert(row) {
            let expected = format!("less than {n}, and the row of one bucket only");
            return Err(source.unexpected("the row of a pruned bucket", row, expected));
        }
        pruned.push((bucket as u32, row as u32));
    }
    pruned.sort_unstable();
    match pruned.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(source.unexpected("a pruned bucket", pair[0].0, "each bucket once")),
        None => Ok(pruned),
    }
}

fn write_entry(out: &mut impl Write, name: &[u8], count: u64, kind: u8) -> io::Result<()> {
    out.write_all(name)?;
    out.write_all(&[0])?;
    out.write_all(&count.min(COUNT_MAX).to_le_bytes())?;
    out.write_all(&[kind])
}
