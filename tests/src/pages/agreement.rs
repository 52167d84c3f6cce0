//! Compares the output that a page shows with the output that a command prints, if part of the output varies
//! or is long.
//!
//! In a page, a line `...` matches any number of lines, and `…` in a line matches any text of one line. After a
//! training, numbers with a decimal point may differ by [`TOLERANCE`], because sums depend on the processor and the
//! number of threads.

/// Maximum difference of a loss, an accuracy or a score of a small training.
pub const TOLERANCE: f64 = 0.25;

/// How numbers with a decimal point are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figures {
    /// Every digit.
    Exact,
    /// Their values, within [`TOLERANCE`].
    Near,
}

/// Returns whether a page may show `shown` as the output of a command that prints `printed`.
pub fn agree(shown: &str, printed: &str, figures: Figures) -> bool {
    let [shown, printed] = [shown, printed].map(|text| text.lines().collect::<Vec<_>>());
    lines_agree(&shown, &printed, figures)
}

fn lines_agree(shown: &[&str], printed: &[&str], figures: Figures) -> bool {
    match shown {
        [] => printed.is_empty(),
        ["...", rest @ ..] => {
            (0..=printed.len()).any(|skipped| lines_agree(rest, &printed[skipped..], figures))
        }
        [first, rest @ ..] => printed.split_first().is_some_and(|(printed, others)| {
            line_agrees(first, printed, figures) && lines_agree(rest, others, figures)
        }),
    }
}

fn line_agrees(shown: &str, printed: &str, figures: Figures) -> bool {
    let Some((before, after)) = shown.split_once('…') else { return text_agrees(shown, printed, figures) };
    let Some(end) = positions(printed).find(|&end| text_agrees(before, &printed[..end], figures)) else {
        return false;
    };
    positions(&printed[end..]).any(|skipped| line_agrees(after, &printed[end + skipped..], figures))
}

/// Returns the start of each character of a text, and the end of the text.
fn positions(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()])
}

fn text_agrees(shown: &str, printed: &str, figures: Figures) -> bool {
    if figures == Figures::Exact || shown == printed {
        return shown == printed;
    }
    // At most positions of a long line, the first characters differ.
    let begins = [shown, printed].map(|text| text.chars().next().filter(|&first| !is_of_figure(first)));
    if begins[0] != begins[1] {
        return false;
    }
    let [shown, printed] = [pieces(shown), pieces(printed)];
    shown.len() == printed.len()
        && shown.iter().zip(&printed).all(|pieces| match pieces {
            ((text, None), (other, None)) => text == other,
            ((_, Some(value)), (_, Some(other))) => (value - other).abs() <= TOLERANCE,
            _ => false,
        })
}

/// Splits a line into texts and numbers with a decimal point, which have a value.
fn pieces(line: &str) -> Vec<(&str, Option<f64>)> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let figure = rest.starts_with(is_of_figure);
        let end = rest.find(|character| is_of_figure(character) != figure).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        let value = piece.contains('.').then(|| piece.trim_end_matches('.').parse().ok()).flatten();
        pieces.push((piece, value));
        rest = after;
    }
    pieces
}

fn is_of_figure(character: char) -> bool {
    character.is_ascii_digit() || character == '.' || character == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_may_differ_and_nothing_else() {
        use Figures::{Exact, Near};
        assert!(agree("a\n...\nd\n", "a\nb\nc\nd\n", Exact));
        assert!(agree("...\nd\n", "d\n", Exact));
        assert!(!agree("a\n...\nd\n", "a\nb\nc\n", Exact));
        assert!(agree("by … in 3 s, …\n", "by host in 3 s, \n", Exact));
        assert!(!agree("by … in 3 s\n", "by host in 4 s\n", Exact));
        assert!(agree("loss 0.51, step 12\n", "loss 0.4, step 12\n", Near));
        assert!(agree("{\"score\":-0.01}\n", "{\"score\":0.2}\n", Near));
        assert!(!agree("loss 0.51, step 12\n", "loss 0.51, step 13\n", Near));
        assert!(!agree("loss 0.51\n", "loss 0.9\n", Near));
        assert!(!agree("loss 0.51\n", "loss 0.5\n", Exact));
    }
}
