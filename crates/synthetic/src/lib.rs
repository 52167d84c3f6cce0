//! Synthetic product reviews in the layout of the Amazon 2018 dumps, with the irregularities of real ones.
//!
//! A corpus is a function of its seed, on every platform. A shorter corpus is a prefix of a longer one. The
//! words depend on the rating so much that a linear model classifies nine of ten texts correctly. One text in
//! seven repeats an earlier one, with other spelling or markup and a new rating. One line in a hundred is
//! unusual; the kinds are used one after the other, so 3,000 lines contain all of them.
//!
//! [`Facts`] are the counts that a mapper should report. They are computed without the mapper's code.

mod awkward;
mod encode;
pub mod new_words;
pub mod random;
mod review;
mod sentences;
mod words;

use std::io::{self, Write};

use awkward::{AWKWARD, Outcome};
use encode::{NonAscii, respelled, write_marked_up};
use random::Random;
use review::{Review, write_review};
use sentences::{Product, write_summary, write_text};

/// Number of lines of a corpus for each counter of the mapper's ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs, reason = "the names are the ledger's")]
pub struct Facts {
    pub lines: u64,
    pub blank: u64,
    pub line_too_long: u64,
    pub bad_line: u64,
    pub no_text: u64,
    pub bad_rating: u64,
    pub empty_text: u64,
    pub reviews: u64,
    pub invalid_utf8: u64,
}

/// Writes a corpus of this number of lines.
pub fn write(n_lines: u64, seed: u64, output: &mut impl Write) -> io::Result<Facts> {
    let mut corpus = Corpus::new(seed);
    let mut facts = Facts::default();
    let mut line = Vec::new();
    for _ in 0..n_lines {
        line.clear();
        let outcome = corpus.next_line(&mut line);
        output.write_all(&line)?;
        facts.lines += 1;
        facts.invalid_utf8 += u64::from(str::from_utf8(&line).is_err());
        match outcome {
            Outcome::Blank => facts.blank += 1,
            Outcome::BadLine => facts.bad_line += 1,
            Outcome::NoText => facts.no_text += 1,
            Outcome::BadRating => facts.bad_rating += 1,
            Outcome::EmptyText => facts.empty_text += 1,
            Outcome::Review => facts.reviews += 1,
        }
    }
    Ok(facts)
}

/// Percentage of reviews per rating, 1 to 5, about as in the Amazon dumps.
const RATING_PERCENT: [usize; 5] = [9, 6, 10, 20, 55];
const DUPLICATE_PERCENT: usize = 15;
const AWKWARD_ONE_IN: usize = 100;
/// Number of texts from which duplicates are chosen. Each new text replaces a random one.
const REMEMBERED_TEXTS: usize = 4_096;
/// 1 January 2004. The reviews are from the following fourteen years.
const FIRST_DAY: u64 = 12_418;
const N_DAYS: usize = 5_113;

struct Corpus {
    random: Random,
    n_awkward: usize,
    earlier_texts: Vec<String>,
}

impl Corpus {
    fn new(seed: u64) -> Corpus {
        Corpus { random: Random::new(seed), n_awkward: 0, earlier_texts: Vec::new() }
    }

    fn next_line(&mut self, line: &mut Vec<u8>) -> Outcome {
        let review = self.next_review();
        if !self.random.one_in(AWKWARD_ONE_IN) {
            write_review(line, &review);
            line.push(b'\n');
            return Outcome::Review;
        }
        let awkward = AWKWARD[self.n_awkward % AWKWARD.len()];
        self.n_awkward += 1;
        awkward.write(line, &review, &mut self.random);
        awkward.outcome()
    }

    fn next_review(&mut self) -> Review {
        let random = &mut self.random;
        let rating = 1 + random.weighted(&RATING_PERCENT);
        let product = Product::draw(random);
        let plain = if !self.earlier_texts.is_empty() && random.percent(DUPLICATE_PERCENT) {
            respelled(&self.earlier_texts[random.below(self.earlier_texts.len())], random)
        } else {
            let mut plain = String::new();
            write_text(&mut plain, rating, &product, random);
            if self.earlier_texts.len() < REMEMBERED_TEXTS {
                self.earlier_texts.push(plain.clone());
            } else {
                plain.clone_into(&mut self.earlier_texts[random.below(REMEMBERED_TEXTS)]);
            }
            plain
        };
        let mut text = String::with_capacity(plain.len() + 64);
        write_marked_up(&mut text, &plain, random);
        let mut summary = String::new();
        write_summary(&mut summary, rating, random);
        let reviewer = random.zipf(20);
        let day = FIRST_DAY + random.below(N_DAYS) as u64;
        let votes = if random.one_in(6) { 2 + random.below(100) } else { 0 };
        let non_ascii = if random.percent(70) { NonAscii::Escaped } else { NonAscii::Kept };
        Review { product, rating, text, summary, reviewer, day, votes, non_ascii }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::Value;

    fn corpus(n_lines: u64, seed: u64) -> (Vec<u8>, Facts) {
        let mut lines = Vec::new();
        let facts = write(n_lines, seed, &mut lines).unwrap();
        (lines, facts)
    }

    #[test]
    fn equal_seeds_give_equal_bytes_on_every_platform() {
        let (lines, _) = corpus(2_000, 1);
        assert_eq!((lines.len(), xxhash_rust::xxh3::xxh3_64(&lines)), (929_968, 14_003_086_620_466_063_759));
    }

    #[test]
    fn another_seed_gives_another_corpus() {
        assert_ne!(corpus(10, 1), corpus(10, 2));
    }

    #[test]
    fn a_shorter_corpus_is_a_prefix_of_a_longer_one() {
        assert!(corpus(1_000, 1).0.starts_with(&corpus(500, 1).0));
    }

    #[test]
    fn each_line_is_counted_once_and_few_are_bad() {
        let (lines, facts) = corpus(20_000, 1);
        assert_eq!(facts.lines, 20_000);
        assert_eq!(facts.lines, lines.iter().filter(|&&byte| byte == b'\n').count() as u64);
        let bad = facts.line_too_long + facts.bad_line + facts.no_text + facts.bad_rating;
        assert_eq!(facts.lines, facts.blank + bad + facts.empty_text + facts.reviews);
        assert!(bad * 100 < facts.lines * 2, "{facts:?}");
    }

    #[test]
    fn three_thousand_lines_have_every_kind_of_unusual_line() {
        let mut corpus = Corpus::new(1);
        for _ in 0..3_000 {
            corpus.next_line(&mut Vec::new());
        }
        assert!(corpus.n_awkward > AWKWARD.len(), "{}", corpus.n_awkward);
    }

    #[test]
    fn an_ordinary_line_is_an_object_with_a_rating_and_words() {
        let mut corpus = Corpus::new(1);
        for _ in 0..20_000 {
            let (mut line, before) = (Vec::new(), corpus.n_awkward);
            corpus.next_line(&mut line);
            if corpus.n_awkward > before {
                continue;
            }
            let review: Value = serde_json::from_slice(&line).unwrap();
            assert!((1.0..=5.0).contains(&review["overall"].as_f64().unwrap()));
            assert!(review["reviewText"].as_str().unwrap().contains(char::is_alphabetic), "{review}");
            assert!(review["unixReviewTime"].is_u64() && review["asin"].is_string());
        }
    }

    #[test]
    fn irregularities_of_real_reviews_occur() {
        let lines = String::from_utf8_lossy(&corpus(20_000, 1).0).into_owned();
        #[rustfmt::skip]
        let hard = [
            "&amp;", "&AMP;", "&#34;", "&quot;", "&#39;", "&rsquo;", "&eacute;", "&#xE9;", "&nbsp;", "&lt;3", "<br />", "<a href=",
            "<video", "<!--", "\u{2019}", "\\u2019", "caf\\u00e9", "cafe\\u0301", "cafe\u{301}", "ΤΕΛΕΙΟΣ", "όπως", "\\u03c2",
            "Отлично", "最高", "\\ud83d\\ude0d", "👍", "\\xe9", "\\U0001f44d", "\u{200d}", "\\\"", "\\n", "\\r", "\\\\_", "{'reviewerID'", "u'", "\u{fffd}",
            "\u{feff}", "\r\n", "\\ud83d\"", "I HAVE ", "\": \"Great\"",
        ];
        let absent: Vec<_> = hard.into_iter().filter(|hard| !lines.contains(hard)).collect();
        assert!(absent.is_empty(), "{absent:?}");
    }

    #[test]
    fn duplicates_have_different_ratings() {
        let mut ratings: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in corpus(20_000, 1).0.split(|&byte| byte == b'\n') {
            let Ok(Value::Object(review)) = serde_json::from_slice(line) else { continue };
            let Some(Value::String(text)) = review.get("reviewText") else { continue };
            let rating = review.get("overall").unwrap_or(&Value::Null).to_string();
            ratings.entry(text.to_lowercase()).or_default().insert(rating);
        }
        let disagreeing = ratings.values().filter(|ratings| ratings.len() > 1).count();
        assert!(disagreeing > 500, "{disagreeing}");
    }
}
