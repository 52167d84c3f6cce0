//! Collects lines into batches of similar length, and returns outputs in the order of the lines.
//!
//! Shapes: `B` texts; `T` tokens of the longest text.

use std::ops::Range;

use dataset::vocabulary::PADDING;
use kernels::TokenRows;

use training::answers::Refusal;

/// Number of batches in a window.
const WINDOW_BATCHES: usize = 16;
/// Maximum lines in a window, whatever the batch size: a line without a text takes memory too.
const WINDOW_LINES_MAX: usize = 1 << 18;
/// Maximum ids in a window, 16 MiB.
const WINDOW_TOKENS_MAX: usize = 4 << 20;
/// Maximum size B × T of a batch with several texts. Long texts make smaller batches, which bounds the model's memory
/// even if it reads whole texts.
const BATCH_PLACES_MAX: usize = 2 << 20;

/// Texts of a batch.
#[derive(Debug)]
struct TextBatch {
    /// Ids, padded with zeros at the end: `[B, T]`.
    tokens: Vec<i64>,
    /// Number of ids per text without padding, at least 1: `[B]`.
    lengths: Vec<i64>,
    /// T.
    longest: usize,
}

impl TextBatch {
    fn rows(&self) -> TokenRows<'_> {
        TokenRows { tokens: &self.tokens, longest: self.longest, lengths: &self.lengths }
    }
}

/// Lines that wait for their outputs.
pub(crate) struct Window {
    batch_rows: usize,
    lines: Vec<Result<Range<usize>, Refusal>>,
    ids: Vec<u32>,
}

impl Window {
    /// For batches of at most `batch_rows` texts.
    pub(crate) fn new(batch_rows: usize) -> Self {
        Self { batch_rows: batch_rows.max(1), lines: Vec::new(), ids: Vec::new() }
    }

    /// Adds the next line.
    pub(crate) fn push(&mut self, ids: Result<&[u32], Refusal>) {
        let from = self.ids.len();
        self.lines.push(ids.map(|ids| {
            self.ids.extend_from_slice(ids);
            from..self.ids.len()
        }));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        let lines = self.batch_rows.saturating_mul(WINDOW_BATCHES).min(WINDOW_LINES_MAX);
        self.lines.len() >= lines || self.ids.len() >= WINDOW_TOKENS_MAX
    }

    /// Runs the model on all texts and clears the window. Returns for each line the outputs, or the reason why there
    /// are none.
    pub(crate) fn outputs<E>(
        &mut self,
        mut model: impl FnMut(TokenRows<'_>) -> Result<Vec<Vec<f64>>, E>,
    ) -> Result<Vec<Result<Vec<f64>, Refusal>>, E> {
        let batches = self.batches();
        let mut outputs: Vec<_> = self
            .lines
            .iter()
            .map(|line| line.as_ref().map_or_else(|&no| Err(no), |_| Ok(Vec::new())))
            .collect();
        for batch in batches {
            let answers = model(self.texts(&batch).rows())?;
            for (place, answer) in batch.into_iter().zip(answers) {
                outputs[place] = Ok(answer);
            }
        }
        self.clear();
        Ok(outputs)
    }

    /// Forgets all lines.
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        self.ids.clear();
    }

    /// The indices of lines with a text, from the shortest to the longest, split into batches.
    fn batches(&self) -> Vec<Vec<usize>> {
        let length = |&place: &usize| self.lines[place].as_ref().map_or(0, ExactSizeIterator::len);
        let mut places: Vec<usize> =
            (0..self.lines.len()).filter(|&place| self.lines[place].is_ok()).collect();
        places.sort_by_key(length);
        let mut batches: Vec<Vec<usize>> = Vec::new();
        for place in places {
            // This text is the longest so far, so all texts of the batch are padded to its length.
            match batches.last_mut() {
                Some(batch)
                    if batch.len() < self.batch_rows
                        && (batch.len() + 1).saturating_mul(length(&place)) <= BATCH_PLACES_MAX =>
                {
                    batch.push(place);
                }
                _ => batches.push(vec![place]),
            }
        }
        batches
    }

    fn texts(&self, places: &[usize]) -> TextBatch {
        let texts = || places.iter().filter_map(|&place| self.lines[place].clone().ok());
        let longest = texts().map(|text| text.len()).max().unwrap_or(0);
        let mut tokens = Vec::with_capacity(places.len() * longest);
        for (row, text) in texts().enumerate() {
            tokens.extend(self.ids[text].iter().map(|&id| i64::from(id)));
            tokens.resize((row + 1) * longest, i64::from(PADDING));
        }
        TextBatch { tokens, lengths: texts().map(|text| text.len() as i64).collect(), longest }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    /// A model that returns the ids of each text.
    fn echo(texts: TokenRows<'_>) -> Result<Vec<Vec<f64>>, Infallible> {
        let rows = texts.tokens.chunks(texts.longest).zip(texts.lengths);
        Ok(rows.map(|(row, &length)| row[..length as usize].iter().map(|&id| id as f64).collect()).collect())
    }

    #[test]
    fn texts_of_a_batch_are_padded_to_the_longest() {
        let mut window = Window::new(2);
        for ids in [Ok(&[5, 6, 7][..]), Err(Refusal::OnlyStopwords), Ok(&[8]), Ok(&[9, 4])] {
            window.push(ids);
        }
        let mut seen = Vec::new();
        let outputs = window.outputs(|texts| {
            seen.push((texts.tokens.to_vec(), texts.lengths.to_vec(), texts.longest));
            echo(texts)
        });
        let expected = [(vec![8, 0, 9, 4], vec![1, 2], 2), (vec![5, 6, 7], vec![3], 3)];
        assert_eq!(seen, expected);
        let expected =
            [Ok(vec![5.0, 6.0, 7.0]), Err(Refusal::OnlyStopwords), Ok(vec![8.0]), Ok(vec![9.0, 4.0])];
        assert_eq!(outputs.unwrap(), expected);
        assert!(window.is_empty());
    }

    #[test]
    fn long_texts_make_small_batches() {
        let mut window = Window::new(512);
        let long = vec![2; BATCH_PLACES_MAX / 2];
        for _ in 0..3 {
            window.push(Ok(&long));
        }
        assert_eq!(window.batches(), [vec![0, 1], vec![2]]);
        let longest = vec![2; BATCH_PLACES_MAX + 1];
        window.push(Ok(&longest));
        assert_eq!(window.batches(), [vec![0, 1], vec![2], vec![3]]);
        assert!(window.is_full());
    }

    #[test]
    fn a_window_of_the_largest_batches_is_full_some_time() {
        let mut window = Window::new(usize::MAX);
        (1..WINDOW_LINES_MAX).for_each(|_| window.push(Err(Refusal::OnlyUnknown)));
        assert!(!window.is_full());
        window.push(Ok(&[2]));
        assert!(window.is_full());
    }

    #[test]
    fn a_window_without_texts_asks_nothing() {
        let mut window = Window::new(1);
        (0..16).for_each(|_| window.push(Err(Refusal::OnlyUnknown)));
        assert!(window.is_full());
        let outputs = window.outputs(|_| -> Result<_, Infallible> { panic!("there is no text") });
        assert_eq!(outputs.unwrap(), vec![Err(Refusal::OnlyUnknown); 16]);
    }

    proptest! {
        #[test]
        fn each_line_gets_its_own_outputs(
            lines in prop::collection::vec(prop::option::weighted(0.8, prop::collection::vec(1u32..9, 1..12)), 0..60),
            batch_rows in 0usize..9,
        ) {
            let mut window = Window::new(batch_rows);
            for line in &lines {
                window.push(line.as_deref().ok_or(Refusal::OnlyUnknown));
            }
            let outputs = window.outputs(|texts| {
                assert!(texts.lengths.len() <= batch_rows.max(1));
                assert!(texts.lengths.is_sorted());
                echo(texts)
            });
            let expected: Vec<_> = lines
                .into_iter()
                .map(|line| line.ok_or(Refusal::OnlyUnknown))
                .map(|line| line.map(|ids| ids.into_iter().map(f64::from).collect::<Vec<_>>()))
                .collect();
            prop_assert_eq!(outputs.unwrap(), expected);
        }
    }
}
