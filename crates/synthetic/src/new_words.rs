//! Texts of words that occur only once: the largest dictionary for a given size.

const WORDS_A_TEXT: u64 = 8;

/// Visits texts in byte order, of about `bytes` bytes in total, including the rest of each line. Only their
/// last word, `x`, repeats.
pub fn each_text(bytes: u64, mut visit: impl FnMut(&str)) {
    let (mut word, mut text) = ([b'a'; 6], String::new());
    for _ in 0..bytes / (WORDS_A_TEXT * 7 + 10) {
        text.clear();
        for _ in 0..WORDS_A_TEXT {
            // Ascending, as numbers with letters as digits.
            let last = word.iter().rposition(|&letter| letter < b'z').expect("more words than 26^6");
            word[last] += 1;
            word[last + 1..].fill(b'a');
            text.extend(word.map(char::from));
            text.push(' ');
        }
        text.push('x');
        visit(&text);
    }
}
