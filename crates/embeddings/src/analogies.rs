//! The accuracy of answers to a file of analogies, such as word2vec's `questions-words.txt`.
//!
//! ```text
//! : capital-common-countries
//! Athens Greece Baghdad Iraq
//! ```
//!
//! A line that begins with `:` starts a section. Each other line has four words; the model must answer the fourth. Words
//! are looked up as they are, then in lower case. A question counts only if all four words are in the vocabulary, and the
//! three given words are no answers.
//!
//! The cosines of all distinct given words with a block of the vocabulary are one product of matrices. They are then
//! added for each question, so the number of questions costs little.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::thread;

use kernels::simd::{LANES_MAX, Vector, on_processor};
use program::threads::spawn;
use serde::Serialize;

use crate::embedding::Embedding;
use crate::error::{Error, Result};
use crate::files::Content;
use crate::neighbours::{EPSILON, Method};
use crate::units::{PANEL, Units, unit};

/// Memory of the cosines of a block: a part of a second-level cache.
const BLOCK_BYTES: usize = 1 << 20;
const FILE_BYTES_MAX: u64 = 256 << 20;
const REMEDY: &str = "pass a file of analogies such as questions-words.txt";

/// A file of analogies.
#[derive(Clone, Debug, Default)]
pub struct Analogies {
    /// Names of the sections, and the number of questions of each.
    sections: Vec<(String, usize)>,
    /// Questions whose words are all in the vocabulary.
    questions: Vec<Question>,
}

#[derive(Clone, Copy, Debug)]
struct Question {
    section: usize,
    /// The numbers of the words.
    words: [u32; 4],
}

/// The accuracy of a section, or of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Accuracy {
    /// The section; "total" for all.
    pub section: String,
    /// Number of questions.
    pub questions: usize,
    /// Number of questions whose words are all in the vocabulary.
    pub found: usize,
    /// Number of correct answers.
    pub correct: usize,
    /// `correct / found`; none without a question.
    pub accuracy: Option<f64>,
}

impl Analogies {
    /// Reads a file and looks up its words.
    pub fn read(path: &Path, embedding: &Embedding) -> Result<Self> {
        let bytes = Content::open(path)?.into_bytes(FILE_BYTES_MAX)?;
        let mut analogies = Self::default();
        for (line, number) in bytes.split(|&byte| byte == b'\n').zip(1..) {
            let line = line.trim_ascii();
            if let Some(name) = line.strip_prefix(b":") {
                let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
                analogies.sections.push((name, 0));
                continue;
            }
            let words: Vec<&[u8]> =
                line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
            match words[..] {
                [] => {}
                [a, b, c, d] => analogies.add([a, b, c, d], embedding),
                _ => return Err(Error::line(path, number, line, "four words, or : and a section", REMEDY)),
            }
        }
        Ok(analogies)
    }

    fn add(&mut self, words: [&[u8]; 4], embedding: &Embedding) {
        if self.sections.is_empty() {
            self.sections.push(("without a section".to_owned(), 0));
        }
        let section = self.sections.len() - 1;
        self.sections[section].1 += 1;
        if let [Some(a), Some(b), Some(c), Some(d)] = words.map(|word| embedding.number_of(word)) {
            self.questions.push(Question { section, words: [a, b, c, d] });
        }
    }

    /// Answers all questions with this number of threads. Returns the accuracy of each section, then the total.
    pub fn answer(&self, embedding: &Embedding, method: Method, threads: NonZeroUsize) -> Vec<Accuracy> {
        let answers = self.answers(embedding, method, threads);
        let mut sections: Vec<Accuracy> = self
            .sections
            .iter()
            .map(|(section, questions)| Accuracy::of(section.clone(), *questions))
            .collect();
        for (question, answer) in self.questions.iter().zip(answers) {
            let section = &mut sections[question.section];
            section.found += 1;
            section.correct += usize::from(answer == Some(question.words[3]));
        }
        let mut total = Accuracy::of("total".to_owned(), 0);
        for section in &mut sections {
            section.finish();
            total.questions += section.questions;
            total.found += section.found;
            total.correct += section.correct;
        }
        total.finish();
        sections.push(total);
        sections
    }

    /// The answer of the model to each question.
    fn answers(&self, embedding: &Embedding, method: Method, threads: NonZeroUsize) -> Vec<Option<u32>> {
        let units = Units::of(embedding);
        let given = Given::of(&self.questions, embedding);
        let per_thread = units.n_panels().div_ceil(threads.get()).max(1);
        let parts: Vec<Range<usize>> = (0..units.n_panels())
            .step_by(per_thread)
            .map(|first| first..(first + per_thread).min(units.n_panels()))
            .collect();
        let (units, given) = (&units, &given);
        let best = thread::scope(|scope| {
            let parts: Vec<_> = parts
                .into_iter()
                .map(|panels| spawn(scope, move || given.best(units, panels, &self.questions, method)))
                .collect();
            let joined = parts
                .into_iter()
                .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.reduce(nearer).unwrap_or_default()
        });
        best.into_iter().map(|answer| answer.word).collect()
    }
}

impl Accuracy {
    fn of(section: String, questions: usize) -> Self {
        Self { section, questions, found: 0, correct: 0, accuracy: None }
    }

    fn finish(&mut self) {
        self.accuracy = (self.found > 0).then(|| self.correct as f64 / self.found as f64);
    }
}

/// The best answer to a question so far: the word with the smallest negative score.
#[derive(Clone, Copy, Debug)]
struct Answer {
    distance: f32,
    word: Option<u32>,
}

/// The nearer answers of two parts of the vocabulary, the first of which has the smaller numbers.
fn nearer(mut first: Vec<Answer>, second: Vec<Answer>) -> Vec<Answer> {
    for (first, second) in first.iter_mut().zip(second) {
        if second.distance < first.distance {
            *first = second;
        }
    }
    first
}

/// The distinct given words of all questions.
struct Given {
    /// `[Q, D]`: their unit vectors.
    units: Vec<f32>,
    n: usize,
    /// By question: the rows of a, b and c.
    rows: Vec<[usize; 3]>,
}

impl Given {
    fn of(questions: &[Question], embedding: &Embedding) -> Self {
        let mut numbers = HashMap::new();
        let mut units = Vec::new();
        let rows = questions.iter().map(|question| {
            [0, 1, 2].map(|at| {
                let word = question.words[at];
                let next = numbers.len();
                *numbers.entry(word).or_insert_with(|| {
                    units.extend(unit(embedding.vector(word)));
                    next
                })
            })
        });
        let rows = rows.collect();
        Self { units, n: numbers.len(), rows }
    }

    /// The best answer to each question among the words of these panels.
    fn best(
        &self,
        units: &Units,
        panels: Range<usize>,
        questions: &[Question],
        method: Method,
    ) -> Vec<Answer> {
        let mut best = vec![Answer { distance: f32::INFINITY, word: None }; questions.len()];
        if questions.is_empty() {
            return best;
        }
        let together = (BLOCK_BYTES / 4 / PANEL / self.n.max(1)).clamp(1, panels.len().max(1));
        let stride = together * PANEL;
        let mut cosines = vec![0.0; self.n * stride];
        let mut distances = vec![0.0; stride];
        for first in panels.clone().step_by(together) {
            units.products(first..(first + together).min(panels.end), &self.units, &mut cosines, stride);
            let words = first * PANEL..((first + together).min(panels.end) * PANEL).min(units.n_words);
            let distances = &mut distances[..words.len()];
            for ((question, rows), best) in questions.iter().zip(&self.rows).zip(&mut best) {
                let [a, b, c] = rows.map(|row| &cosines[row * stride..][..words.len()]);
                let mut least = match method {
                    Method::Add => add_distances(units.processor, a, b, c, distances),
                    Method::Mul => mul_distances(units.processor, a, b, c, distances),
                };
                if exclude(question, &words, distances) {
                    least = distances.iter().copied().fold(f32::INFINITY, f32::min);
                }
                if least < best.distance {
                    let at = distances.iter().position(|&distance| distance == least);
                    *best = Answer { distance: least, word: at.map(|at| (words.start + at) as u32) };
                }
            }
        }
        best
    }
}

/// Excludes the given words of a question. Returns whether one was among the words.
fn exclude(question: &Question, words: &Range<usize>, distances: &mut [f32]) -> bool {
    let mut is_any = false;
    for word in &question.words[..3] {
        if words.contains(&(*word as usize)) {
            distances[*word as usize - words.start] = f32::INFINITY;
            is_any = true;
        }
    }
    is_any
}

on_processor! {
    fn add_distances(a: &[f32], b: &[f32], c: &[f32], distances: &mut [f32]) -> f32 = by_sum;
    fn mul_distances(a: &[f32], b: &[f32], c: &[f32], distances: &mut [f32]) -> f32 = by_product;
}

/// Writes the negative scores of 3CosAdd and returns the smallest.
#[inline(always)]
fn by_sum<V: Vector>(a: &[f32], b: &[f32], c: &[f32], distances: &mut [f32]) -> f32 {
    each::<V>(a, b, c, distances, |a, b, c| a.sub(b).sub(c))
}

/// Writes the negative scores of 3CosMul and returns the smallest.
#[inline(always)]
fn by_product<V: Vector>(a: &[f32], b: &[f32], c: &[f32], distances: &mut [f32]) -> f32 {
    each::<V>(a, b, c, distances, |a, b, c| {
        let half = V::splat(0.5);
        let moved = |cosine: V| cosine.fma(half, half);
        let product = moved(b).mul(moved(c));
        V::splat(0.0).sub(product.div(moved(a).add(V::splat(EPSILON))))
    })
}

#[inline(always)]
fn each<V: Vector>(
    a: &[f32],
    b: &[f32],
    c: &[f32],
    distances: &mut [f32],
    distance: impl Fn(V, V, V) -> V,
) -> f32 {
    let mut least = V::splat(f32::INFINITY);
    let whole = distances.len() / V::LANES * V::LANES;
    for at in (0..whole).step_by(V::LANES) {
        let found = distance(V::load(&a[at..]), V::load(&b[at..]), V::load(&c[at..]));
        found.store(&mut distances[at..]);
        least = least.min(found);
    }
    let mut lanes = [f32::INFINITY; LANES_MAX];
    least.store(&mut lanes);
    let rest = &mut distances[whole..];
    if !rest.is_empty() {
        distance(V::load_part(&a[whole..]), V::load_part(&b[whole..]), V::load_part(&c[whole..]))
            .store_part(rest);
    }
    lanes.iter().chain(rest.iter()).copied().fold(f32::INFINITY, f32::min)
}

#[cfg(test)]
mod tests {
    use kernels::simd::Processor;

    use super::*;
    use crate::neighbours::{Neighbours, score};
    use crate::tests::random;

    fn read(text: &str, embedding: &Embedding) -> Result<Analogies> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("questions.txt");
        std::fs::write(&path, text).unwrap();
        Analogies::read(&path, embedding)
    }

    #[test]
    fn answers_are_those_of_single_questions() {
        for n_words in [5, 31, 200, 3000] {
            let embedding = random(n_words, 12, 5);
            let mut state = 7u32;
            let mut draw = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) % n_words as u32
            };
            let questions: Vec<Question> =
                (0..40).map(|_| Question { section: 0, words: [draw(), draw(), draw(), draw()] }).collect();
            let analogies = Analogies { sections: vec![(String::new(), 40)], questions };
            let neighbours = Neighbours::new(&embedding);
            for method in [Method::Add, Method::Mul] {
                let found = analogies.answers(&embedding, method, NonZeroUsize::new(3).unwrap());
                for (question, found) in analogies.questions.iter().zip(found) {
                    let names = [0, 1, 2].map(|at| format!("w{}", question.words[at]));
                    let words = [0, 1, 2].map(|at| names[at].as_str());
                    let best = neighbours.analogy(words, method, 1).unwrap()[0];
                    let cosine = |at: usize, word| {
                        crate::similarity::cosine(
                            embedding.vector(question.words[at]),
                            embedding.vector(word),
                        ) as f32
                    };
                    let found = found.unwrap();
                    let of_found = score(method, cosine(0, found), cosine(1, found), cosine(2, found));
                    assert!(found == best.word || (of_found - best.score).abs() < 1e-5, "{found} {best:?}");
                }
            }
        }
    }

    #[test]
    fn every_processor_finds_the_same_distances() {
        let values: Vec<f32> = (0..39).map(|at| ((at * 17) % 39) as f32 / 20.0 - 0.95).collect();
        let (a, b, c) = (&values[..37], &values[1..38], &values[2..]);
        for processor in Processor::all() {
            let mut found = [0.0; 37];
            let least = add_distances(processor, a, b, c, &mut found);
            let expected: Vec<f32> = (0..37).map(|at| -score(Method::Add, a[at], b[at], c[at])).collect();
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5), "{processor:?}");
            assert_eq!(least, found.into_iter().fold(f32::INFINITY, f32::min));
            let least = mul_distances(processor, a, b, c, &mut found);
            let expected: Vec<f32> = (0..37).map(|at| -score(Method::Mul, a[at], b[at], c[at])).collect();
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-3 * b.abs().max(1.0)));
            assert_eq!(least, found.into_iter().fold(f32::INFINITY, f32::min));
        }
    }

    #[test]
    fn sections_and_coverage_are_counted() {
        let vectors = vec![1.0, 0.0, 1.0, 1.0, 5.0, 0.2, 5.0, 1.3, -1.0, -1.0];
        let words = crate::tests::names(&["man", "woman", "king", "queen", "tree"]);
        let embedding = Embedding::new(words, None, 2, vectors);
        let text =
            ": royal\r\nMan King Woman Queen\r\nman king woman xyz\n\n: others\nman king woman tree\n: empty";
        let analogies = read(text, &embedding).unwrap();
        let found = analogies.answer(&embedding, Method::Add, NonZeroUsize::MIN);
        let of = |section: &str, questions, found, correct, accuracy| Accuracy {
            section: section.to_owned(),
            questions,
            found,
            correct,
            accuracy,
        };
        let expected = [
            of("royal", 2, 1, 1, Some(1.0)),
            of("others", 1, 1, 0, Some(0.0)),
            of("empty", 0, 0, 0, None),
            of("total", 3, 2, 1, Some(0.5)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_line_of_three_words_is_refused() {
        let told = read(": a\nman king woman", &random(3, 2, 1)).unwrap_err().to_string();
        let expected = "questions.txt: line 2 is \"man king woman\", expected four words, or : and a section; pass a \
                        file of analogies such as questions-words.txt";
        assert!(told.ends_with(expected), "{told}");
    }
}
