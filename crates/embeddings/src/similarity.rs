//! How well cosines order pairs of words as people do: files of word similarity, and Spearman's rank correlation.
//!
//! ```text
//! tiger   cat       7.35
//! book    paper     7.46
//! ```
//!
//! Each line has two words and a score, separated by tabs, commas, semicolons or spaces. Words are looked up as they are, then
//! in lower case. The first line may have the names of the columns, as in WordSim-353 (`Word 1,Word 2,Human (mean)`)
//! and SimLex-999 (`word1 word2 POS SimLex999 …`). Without it, the score is the first number behind the words, and a part of
//! speech may precede it, as in SimVerb-3500 (`take remove V 6.81 SYNONYMS`).

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;

use crate::embedding::Embedding;
use crate::error::{Error, Result};
use crate::files::{self, Content};

const FILE_BYTES_MAX: u64 = 256 << 20;
const REMEDY: &str =
    "pass a file of word similarity, such as WordSim-353; in a header, name the score `score`";
/// Names of the column of the score, in lower case, in the order in which they are looked for.
const SCORES: [&str; 9] =
    ["human (mean)", "simlex999", "score", "mean", "similarity", "sim", "rating", "human", "relatedness"];
/// Parts of speech between the words and the score, in lower case.
const PARTS_OF_SPEECH: [&str; 10] = ["n", "v", "a", "r", "j", "noun", "verb", "adj", "adjective", "adverb"];

/// The result for a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Similarity {
    /// The file as passed.
    pub file: String,
    /// Spearman's rank correlation of the cosines and the scores of the pairs found; none if it is undefined.
    pub spearman: Option<f64>,
    /// Number of pairs.
    pub pairs: usize,
    /// Number of pairs whose words both have a vector.
    pub found: usize,
}

/// The pairs of a file.
#[derive(Clone, Debug)]
pub struct Pairs {
    file: String,
    pairs: Vec<([Vec<u8>; 2], f64)>,
}

impl Pairs {
    /// Reads a file.
    ///
    /// # Errors
    /// If a line is not a pair with a score.
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self {
            file: path.display().to_string(),
            pairs: parse(path, &Content::open(path)?.into_bytes(FILE_BYTES_MAX)?)?,
        })
    }

    /// Compares the cosines of the vectors that `find` returns with the scores.
    pub fn compare<'a>(&self, find: impl Fn(&[u8]) -> Option<Cow<'a, [f32]>>) -> Similarity {
        let (mut cosines, mut scores) = (Vec::new(), Vec::new());
        for ([first, second], score) in &self.pairs {
            if let (Some(first), Some(second)) = (find(first), find(second)) {
                cosines.push(cosine(&first, &second));
                scores.push(*score);
            }
        }
        let spearman = spearman(&cosines, &scores);
        Similarity { file: self.file.clone(), spearman, pairs: self.pairs.len(), found: scores.len() }
    }
}

/// Compares the cosines of an embedding with the scores of a file.
///
/// # Errors
/// If a line is not a pair with a score.
pub fn similarity(embedding: &Embedding, path: &Path) -> Result<Similarity> {
    Ok(Pairs::read(path)?.compare(|word| embedding.find(word)))
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<([Vec<u8>; 2], f64)>> {
    let mut columns = Columns::Unnamed;
    let mut pairs = Vec::new();
    let lines = bytes.split(|&byte| byte == b'\n').zip(1..);
    for (at, (line, number)) in lines.filter(|(line, _)| !line.trim_ascii().is_empty()).enumerate() {
        let separator = separator(line);
        let fields = fields(line, separator);
        if at == 0
            && let Some(named) = Columns::named(&fields)
        {
            columns = named;
            continue;
        }
        // A line of word vectors is no pair with one more field.
        let is_pair = separator.is_some() || columns.are_all(&fields);
        let pair = columns.pair(&fields).filter(|_| is_pair);
        let Some((words, score)) = pair else {
            let line = line.trim_ascii_end();
            return Err(match files::has_decimal_commas(line) {
                true => {
                    let expected = "two words and a score with a decimal point, found a decimal comma";
                    Error::line(path, number, line, expected, files::DECIMAL_COMMAS)
                }
                false => Error::line(path, number, line, "two words and a score", REMEDY),
            });
        };
        pairs.push((words.map(<[u8]>::to_vec), score));
    }
    Ok(pairs)
}

/// Where a line has its words and its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Columns {
    /// Those of the words and of the score, by the names on the first line.
    Named([usize; 3]),
    /// The words are first.
    Unnamed,
}

impl Columns {
    /// The columns of a first line of names.
    fn named(names: &[&[u8]]) -> Option<Self> {
        let names: Vec<String> = names.iter().map(|name| lower(name)).collect();
        let score = SCORES.iter().find_map(|score| names.iter().position(|name| name == score))?;
        let mut words = (0..names.len()).filter(|&at| is_of_words(&names[at]));
        let [first, second] = [words.next().unwrap_or(0), words.next().unwrap_or(1)];
        (score != first && score != second).then_some(Self::Named([first, second, score]))
    }

    fn pair<'a>(self, fields: &[&'a [u8]]) -> Option<([&'a [u8]; 2], f64)> {
        let [first, second, score] = self.of(fields);
        let words = [*fields.get(first)?, *fields.get(second)?];
        let has_words = words.iter().all(|word| !word.is_empty());
        has_words.then_some((words, number_of(fields.get(score)?)?))
    }

    /// Whether the score is the last field of a line without names.
    fn are_all(self, fields: &[&[u8]]) -> bool {
        self != Self::Unnamed || self.of(fields)[2] + 1 == fields.len()
    }

    /// The columns of the words and of the score.
    fn of(self, fields: &[&[u8]]) -> [usize; 3] {
        match self {
            Self::Named(columns) => columns,
            Self::Unnamed => {
                let is_part = |field: &&[u8]| PARTS_OF_SPEECH.contains(&lower(field).as_str());
                [0, 1, if fields.get(2).is_some_and(is_part) { 3 } else { 2 }]
            }
        }
    }
}

/// The separator of fields that may contain spaces, if a line has it at least twice.
fn separator(line: &[u8]) -> Option<u8> {
    let n = |separator: u8| line.iter().filter(|&&byte| byte == separator).count();
    b"\t;,".iter().copied().find(|&separator| n(separator) >= 2)
}

/// The fields of a line, without quotes. White space separates words only if there is no other separator.
fn fields(line: &[u8], separator: Option<u8>) -> Vec<&[u8]> {
    match separator {
        Some(separator) => line.split(|&byte| byte == separator).map(bare).collect(),
        None => line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).collect(),
    }
}

/// `word`, `word1`, `word 2`, `word_2`.
fn is_of_words(name: &str) -> bool {
    let number = name.strip_prefix("word").map(|rest| rest.trim_start_matches([' ', '_', '.']));
    number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

fn bare(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field)
}

fn lower(field: &[u8]) -> String {
    String::from_utf8_lossy(field).to_lowercase()
}

fn number_of(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.parse().ok().filter(|score: &f64| score.is_finite())
}

/// The cosine of two vectors; 0 if one is zero.
pub(crate) fn cosine(first: &[f32], second: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    let norms = (dot(first, first) * dot(second, second)).sqrt();
    if norms > 0.0 { dot(first, second) / norms } else { 0.0 }
}

/// Spearman's rank correlation; none if there are less than two pairs or one of the lists is constant.
pub fn spearman(first: &[f64], second: &[f64]) -> Option<f64> {
    let (first, second) = (ranks(first), ranks(second));
    let mean = (first.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let norms = (product(&first, &first) * product(&second, &second)).sqrt();
    (norms > 0.0).then(|| product(&first, &second) / norms)
}

/// Ranks from 1. Equal values have the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = before as f64 + (equal.len() as f64 + 1.0) / 2.0;
        equal.iter().for_each(|&at| ranks[at] = rank);
        before += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::names;

    fn of(text: &str) -> Result<Similarity> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pairs.txt");
        std::fs::write(&path, text).unwrap();
        let vectors = vec![1.0, 0.0, 1.0, 0.1, 1.0, 1.0, 0.0, 1.0];
        similarity(&Embedding::new(names(&["a", "b", "c", "d"]), None, 2, vectors), &path)
    }

    #[test]
    fn equal_values_have_the_mean_of_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0, 3.0]), [4.0, 1.0, 4.0, 2.0, 4.0]);
    }

    #[test]
    fn spearman_is_that_of_scipy() {
        // scipy.stats.spearmanr([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]), and with ties in both lists.
        let found = spearman(&[1.0, 2.0, 3.0, 4.0, 5.0], &[5.0, 6.0, 7.0, 8.0, 7.0]).unwrap();
        assert!((found - 0.820_782_681_668_123_3).abs() < 1e-15, "{found}");
        let found = spearman(&[1.0, 1.0, 2.0, 3.0], &[2.0, 1.0, 2.0, 9.0]).unwrap();
        assert!((found - 0.833_333_333_333_333_4).abs() < 1e-15, "{found}");
        assert_eq!(spearman(&[1.0], &[2.0]), None);
        assert_eq!(spearman(&[1.0, 1.0], &[2.0, 3.0]), None);
    }

    #[test]
    fn pairs_found_are_compared_by_cosine() {
        let found = of("A\tb\t9\r\na c 5\n\na d 1.5\nx y 3\n").unwrap();
        assert_eq!((found.spearman, found.pairs, found.found), (Some(1.0), 4, 3));
        let found = of("a b 1\na c 5\na d 9").unwrap();
        assert_eq!(found.spearman, Some(-1.0));
        assert_eq!(of("x y 1").unwrap().spearman, None);
    }

    #[test]
    fn layouts_of_well_known_files_are_read() {
        for (name, text) in [
            ("WordSim-353, combined.csv", "Word 1,Word 2,Human (mean)\na,b,9\na,c,5\na,d,1.5\n"),
            ("combined.tab", "Word 1\tWord 2\tHuman (mean)\r\na\tb\t9\r\na\tc\t5\r\na\td\t1.5\r\n"),
            ("set1.csv", "Word 1,Word 2,Human (mean),1,2\na,b,9,1,2\na,c,5,9,9\na,d,1.5,10,10\n"),
            (
                "SimLex-999",
                "word1\tword2\tPOS\tSimLex999\tconc(w1)\na\tb\tN\t9\t1\na\tc\tV\t5\t2\na\td\tA\t1.5\t3\n",
            ),
            ("SimVerb-3500", "a\tb\tV\t9\tSYNONYMS\na\tc\tV\t5\tNONE\na\td\tV\t1.5\tNONE\n"),
            ("rare words", "a\tb\t9\t8\t10\na\tc\t5\t0\t10\na\td\t1.5\t9\t9\n"),
            ("RG-65", "a;b;9\na;c;5\na;d;1.5\n"),
            ("an index", ",score,word1,word2\n0,9,a,b\n1,5,a,c\n2,1.5,a,d\n"),
            ("two scores", "word1,word2,rating,score\na,b,1,9\na,c,2,5\na,d,3,1.5\n"),
            ("word counts", "wordcount,word,word,wordnet,sim\n7,a,b,x,9\n8,a,c,y,5\n9,a,d,z,1.5\n"),
            (
                "quotes, and a mark",
                "\u{feff}\"word1\",\"word2\",\"score\"\n\"a\",\"b\",\"9\"\n\"a\",\"c\",5\na,d,1.5",
            ),
        ] {
            let found = of(text).unwrap();
            assert_eq!((found.spearman, found.pairs, found.found), (Some(1.0), 3, 3), "{name}");
        }
    }

    #[test]
    fn a_line_without_a_score_is_refused() {
        let told = of("a\tb\t7,35\n").unwrap_err().to_string();
        assert!(
            told.contains("expected two words and a score with a decimal point, found a decimal comma;"),
            "{told}"
        );
        // The type of WordSim-353 with annotations precedes the words.
        let told = of("t\ta\tb\t6.77\n").unwrap_err().to_string();
        assert!(told.contains("line 1 is \"t\\ta\\tb\\t6.77\", expected two words and a score;"), "{told}");
        for (text, line, found) in [
            ("a b 1\na b\n", 2, "a b"),
            ("a b x", 1, "a b x"),
            ("a b nan", 1, "a b nan"),
            ("a 1 2 3", 1, "a 1 2 3"),
        ] {
            let told = of(text).unwrap_err().to_string();
            let expected =
                format!("pairs.txt: line {line} is \"{found}\", expected two words and a score; pass");
            assert!(told.contains(&expected), "{told}");
        }
    }
}
