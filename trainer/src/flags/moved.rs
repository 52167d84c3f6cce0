//! Commands that have become programs of their own. An old command is refused with the new one, for one release.

use std::ffi::OsString;

use corpus::shell::word_of_bytes;

/// The new command for the words of an old one, without `trainer`.
pub fn moved(words: &[OsString]) -> Option<String> {
    let text =
        |word: &OsString| String::from_utf8_lossy(&word_of_bytes(word.as_encoded_bytes())).into_owned();
    let line = |new: &str, rest: &[OsString]| {
        std::iter::once(new.to_owned()).chain(rest.iter().map(text)).collect::<Vec<_>>().join(" ")
    };
    let first = words.first()?.to_str()?;
    let second = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    match (first, second) {
        ("ngrams", "train") => Some(line("ngrams train", &words[2..])),
        ("ngrams", _) => Some(line("ngrams train", &words[1..])),
        ("embed", _) => Some(line("vectors train", &words[1..])),
        ("serve", _) => Some(line("vectors serve", &words[1..])),
        ("vectors", _) => Some(line("vectors", &words[1..])),
        ("autotune", "ngrams") => Some(line("ngrams autotune", &words[2..])),
        ("autotune", "fit") => Some(line("trainer autotune", &words[2..])),
        ("launch", _) => {
            let end = words.iter().position(|word| word == "--")?;
            let command = moved(&words[end + 1..])?;
            match command.strip_prefix("vectors train") {
                Some(rest) => Some(line("vectors train", &words[1..end]) + rest),
                None => Some(command),
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_command_has_a_new_one() {
        for (old, new) in [
            ("ngrams --input a.txt", Some("ngrams train --input a.txt")),
            ("ngrams train --input a.txt", Some("ngrams train --input a.txt")),
            ("embed --input -", Some("vectors train --input -")),
            ("serve --folder f", Some("vectors serve --folder f")),
            ("vectors pip a b", Some("vectors pip a b")),
            ("vectors", Some("vectors")),
            ("autotune ngrams --minutes 1", Some("ngrams autotune --minutes 1")),
            ("autotune fit a.h5", Some("trainer autotune a.h5")),
            (
                "launch --nproc 2 --log-dir l -- embed --input a",
                Some("vectors train --nproc 2 --log-dir l --input a"),
            ),
            ("launch --nproc 2 -- ngrams --input a", Some("ngrams train --input a")),
            ("launch --nproc 2 -- ngrams train --input a", Some("ngrams train --input a")),
            ("launch --nproc 2 -- fit a.h5", None),
            ("autotune a.h5", None),
            ("fit a.h5", None),
        ] {
            let words: Vec<OsString> = old.split(' ').map(OsString::from).collect();
            assert_eq!(moved(&words).as_deref(), new, "{old}");
        }
        let words = ["ngrams", "--input", "a b"].map(OsString::from);
        assert_eq!(moved(&words).as_deref(), Some("ngrams train --input 'a b'"));
    }
}
