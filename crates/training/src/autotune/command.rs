//! The command that trains with chosen settings, as words and as a line for a shell.

use std::ffi::OsString;

use corpus::shell::word_of_bytes;

use super::search::Flags;
use crate::arguments::Passed;

/// The training whose settings are searched: a command, and the words that the user passed.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The program, and the name of its command.
    pub command: [&'static str; 2],
    /// All flags that the user passed.
    pub passed: Passed,
    /// Those that are no part of the training.
    pub of_search: Vec<&'static str>,
}

impl Trained {
    /// The words of the command with these flags, from the program on.
    pub fn words(&self, flags: &Flags) -> Vec<OsString> {
        self.words_without(&[], flags)
    }

    /// The same without some flags that the user passed.
    pub fn words_without(&self, ids: &[&str], flags: &Flags) -> Vec<OsString> {
        let ids: Vec<&str> = self.of_search.iter().chain(ids).copied().collect();
        let flags = flags.iter().flat_map(|(flag, value)| [OsString::from(flag), value.into()]);
        let command = self.command.map(OsString::from);
        command.into_iter().chain(self.passed.without(&ids)).chain(flags).collect()
    }
}

/// Words as a line for a shell.
pub fn line(words: &[OsString]) -> Vec<u8> {
    words.iter().map(|word| word_of_bytes(word.as_encoded_bytes())).collect::<Vec<_>>().join(&b' ')
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_the_words_from_the_line() {
        let words = ["a b", "it's", "$HOME", "", "x=1", "*", "\\", "line\nend", "\"", "~", "-x", "a;b", "''"];
        let mut words = words.map(OsString::from).to_vec();
        words.push(OsStr::from_bytes(b"\xff.txt").to_owned());
        let mut script = b"printf '%s\\0' ".to_vec();
        script.extend(line(&words));
        let said = Command::new("sh").arg("-c").arg(OsStr::from_bytes(&script)).output().unwrap().stdout;
        let found: Vec<&[u8]> = said.strip_suffix(b"\0").unwrap().split(|&byte| byte == 0).collect();
        assert_eq!(found, words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
    }

    #[test]
    fn usual_words_have_no_quotation_marks() {
        let words = ["ngrams", "train", "--input", "s3://bucket/a-b_1.json.gz", "--c", "0.5"];
        assert_eq!(line(&words.map(OsString::from)), words.join(" ").into_bytes());
    }
}
