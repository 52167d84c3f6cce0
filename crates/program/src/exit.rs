//! How all programs end: with an exit code of BSD's sysexits, and with one line that states the error,
//! printed once.

use std::borrow::Cow;
use std::env;
use std::error::Error;
use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::system;
use crate::url::masked;

/// Names a file into which a program also writes the message with which it ends, for the program that started it.
pub const ERROR_FILE: &str = "SENTIMILL_ERROR_FILE";

/// Exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command line is invalid.
    Usage = 64,
    /// The input is bad beyond its limit.
    BadInput = 65,
    /// An input is missing, is of another kind, or does not match its digest.
    MissingInput = 66,
    /// A remote service is unavailable.
    Unavailable = 69,
    /// An internal invariant is broken.
    Internal = 70,
    /// Reading or writing failed.
    Io = 74,
    /// A retry may succeed.
    TryAgain = 75,
    /// The settings are invalid.
    Settings = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Exit {
    /// Prints the reason on standard error and returns the exit code.
    pub fn end(self, program: &str, why: &str) -> ExitCode {
        let message = format!("{program}: {}\n", one_line(why));
        // If standard error cannot be written, only the exit code reports the failure.
        let _ = io::stderr().write_all(message.as_bytes());
        if let Some(file) = env::var_os(ERROR_FILE) {
            let _ = fs::write(file, message);
        }
        self.into()
    }
}

/// An error that knows with which exit code a program ends.
pub trait Fails: Error + 'static {
    /// The exit code.
    fn exit(&self) -> Exit;
}

/// An error that callers only pass on: its exit code, and its message with all causes.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    /// The exit code.
    pub exit: Exit,
    /// One line: the thing, what was found, what was expected, the remedy.
    pub message: String,
}

impl Failed {
    /// An error with this message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// An error with this message and its cause.
    pub fn caused(exit: Exit, message: impl Into<String>, cause: &(dyn Error + 'static)) -> Self {
        Self::new(exit, with_cause(message.into(), &chain(cause)))
    }

    /// A violated invariant.
    pub fn defect(promise: impl Display) -> Self {
        Self::new(Exit::Internal, format!("{promise}: this is a defect of sentimill, please report it"))
    }
}

impl<E: Fails> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::new(error.exit(), chain(&error))
    }
}

/// Ends a program whose arguments were refused, or whose help was requested. `said` is the message of the
/// argument parser. A refusal is printed without the list of all options, which `--help` shows.
pub fn usage(program: &str, said: &impl Display, is_refusal: bool) -> ExitCode {
    let said = said.to_string();
    if is_refusal {
        return Exit::Usage.end(program, &refusal(&said));
    }
    let _ = print(&said);
    ExitCode::SUCCESS
}

/// Prints an informational line on standard error, in one write, so that lines of other programs cannot interrupt it. If standard
/// error cannot be written, the work continues.
pub fn notice(program: &str, text: &str) {
    let _ = io::stderr().write_all(format!("{program}: {}\n", one_line(text)).as_bytes());
}

/// Prints text, or JSON, on standard output, as [`printable`] has it. A reader that closes the pipe early has read enough, so that is
/// not an error. A full disk is.
pub fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(printable(text).as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// The message of the argument parser as one line: the paragraphs that describe the error, without those about usage.
pub fn refusal(said: &str) -> String {
    let unknown = said.split_once("unexpected argument '").and_then(|(_, rest)| rest.split_once('\''));
    let unknown = unknown.map_or("", |(unknown, _)| unknown);
    // The parser's tips for an unknown flag are to pass it as a value, which no program expects, and flags that may be unlike it.
    let is_wrong = |tip: &str| {
        let mut names = tip.split('\'').skip(1).step_by(2);
        tip.contains("similar argument") && !names.any(|name| is_like(unknown, name))
    };
    let is_about = |text: &str| {
        let is_usage = ["Usage:", "For more", "tip: to pass '"].iter().any(|start| text.starts_with(start));
        !(is_usage || text.starts_with("tip: ") && is_wrong(text))
    };
    let about = |paragraph: &&str| is_about(paragraph.trim_start());
    let paragraphs = said.trim().trim_start_matches("error: ").split("\n\n").filter(about);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    paragraphs
        .map(words)
        .map(|text| bad_value(&text).unwrap_or(text))
        .chain(["see --help".to_owned()])
        .collect::<Vec<_>>()
        .join("; ")
}

/// Whether a flag is probably what a user meant: a typing error, or other forms of the same words.
fn is_like(unknown: &str, flag: &str) -> bool {
    let is_prefix = |a: &str, b: &str| a.starts_with(b) || b.starts_with(a);
    let words = |flag: &str| flag.trim_start_matches('-').split('-').map(str::to_owned).collect::<Vec<_>>();
    let (unknown_words, flag_words) = (words(unknown), words(flag));
    let is_same = |(a, b): (&String, &String)| is_prefix(a, b) || strsim::osa_distance(a, b) <= 1;
    strsim::osa_distance(unknown, flag) <= 2
        || flag.starts_with(unknown)
        || (unknown_words.len() == flag_words.len() && unknown_words.iter().zip(&flag_words).all(is_same))
}

/// `--flag value: expected …` for the parser's `invalid value 'value' for '--flag <NAME>': expected …`; `None` for any other
/// text.
fn bad_value(refusal: &str) -> Option<String> {
    let (value, rest) = refusal.strip_prefix("invalid value '")?.split_once("' for '--")?;
    let (flag, why) = rest.split_once('\'')?;
    let flag = flag.split([' ', '[']).next().unwrap_or(flag);
    let choices = || {
        Some(format!("expected one of {}", why.trim().strip_prefix("[possible values: ")?.strip_suffix(']')?))
    };
    let why = why.strip_prefix(": ").map(expected).or_else(choices)?;
    Some(format!("--{flag} {value}: {why}"))
}

/// Replaces the message of a standard number parser, which states only the error, with the expected value.
fn expected(why: &str) -> String {
    if why.contains("digit found in string") || why == "cannot parse integer from empty string" {
        return "expected a whole number of 0 or more, such as 100".to_owned();
    }
    if why.contains("too large to fit") {
        return "expected a smaller number".to_owned();
    }
    match why.split_once(" is not in ").and_then(|(_, bounds)| bounds.split_once("..=")) {
        Some((least, most)) => format!("expected a number from {least} to {most}"),
        None => why.to_owned(),
    }
}

/// An error with all its causes. Causes from the operating system are worded by [`system`]. A cause that a
/// message already contains is not repeated.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut message = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let said = error.downcast_ref::<io::Error>().map_or_else(|| error.to_string(), system::cause);
        message = if message.is_empty() { said } else { with_cause(message, &said) };
        next = error.source();
    }
    message
}

fn with_cause(message: String, cause: &str) -> String {
    if message.contains(cause) { message } else { format!("{message}: {cause}") }
}

/// Makes a message safe for a log. A record or a file name in it may contain line ends or control sequences
/// of a terminal. A URL or an argument may contain a key.
pub fn one_line(message: &str) -> String {
    masked(&message.replace(acts_on_terminal, " "))
}

/// Maximum number of quoted characters.
const QUOTED_CHARS: usize = 40;

/// The beginning of a text from another source, in quotes, for a message. Control characters are escaped, so
/// a terminal does not interpret them.
pub fn quoted(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{:?} and more", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Text, or JSON, that a terminal shows as it is: a character on which a terminal acts is escaped, as `\u001b`, except
/// line ends and tabs. Words, labels and names of other people's files may contain such characters.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| acts_on_terminal(c) && !matches!(c, '\n' | '\t');
    if !text.contains(is_escaped) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_escaped(c) {
            // None of them is above U+FFFF, so JSON reads the same character.
            true => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown.into()
}

/// Whether a terminal acts on a character: a control, or a mark that changes the direction of text and could disguise it.
pub fn acts_on_terminal(c: char) -> bool {
    let changes_direction =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || changes_direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tip_names_a_flag_only_if_it_is_like_the_unknown_one() {
        let refused = |unknown: &str, tip: &str| {
            refusal(&format!("error: unexpected argument '{unknown}' found\n\n  tip: {tip}\n\nUsage: x\n"))
        };
        let similar = |name: &str| format!("a similar argument exists: '{name}'");
        for (unknown, name, is_told) in [
            ("--postive-from", "--positive-from", true),
            ("--vocab-size", "--vocabulary-size", true),
            ("--test", "--test-fraction", true),
            ("--thread", "--threads", true),
            ("--label-field", "--labels", false),
            ("--input-format", "--input", false),
            ("--column", "--force", false),
        ] {
            let told = refused(unknown, &similar(name));
            assert_eq!(told.contains(&format!("tip: {}", similar(name))), is_told, "{told}");
            assert!(told.starts_with(&format!("unexpected argument '{unknown}' found; ")), "{told}");
        }
        assert!(refused("--label-field", "pass --rating-field").contains("tip: pass --rating-field"));
    }

    #[test]
    fn a_refusal_of_arguments_is_one_line() {
        let said = "error: unexpected argument '--kep' found\n\n  tip: a similar argument exists: '--keep'\n\n\
                    Usage: reducer --run <URL>\n\nFor more information, try '--help'.\n";
        let expected =
            "unexpected argument '--kep' found; tip: a similar argument exists: '--keep'; see --help";
        assert_eq!(refusal(said), expected);
        let said = "error: the following required arguments were not provided:\n  --run <URL>\n\nUsage: x\n";
        let expected = "the following required arguments were not provided: --run <URL>; see --help";
        assert_eq!(refusal(said), expected);
    }

    #[test]
    fn a_bad_value_is_named_with_its_flag_first() {
        for (said, expected) in [
            (
                "error: invalid value '5XB' for '--memory <SIZE>': expected a size such as 512MiB or 10MB\n",
                "--memory 5XB: expected a size such as 512MiB or 10MB; see --help",
            ),
            (
                "error: invalid value 'new' for '--profile <NAME>'\n  [possible values: modern, original]\n",
                "--profile new: expected one of modern, original; see --help",
            ),
            (
                "error: invalid value 'it's' for '--keep <WHICH>': expected first, last or ends\n",
                "--keep it's: expected first, last or ends; see --help",
            ),
            (
                "error: invalid value 'ten' for '--max-tokens <N>': invalid digit found in string\n",
                "--max-tokens ten: expected a whole number of 0 or more, such as 100; see --help",
            ),
            (
                "error: invalid value '9' for '--positive-from <STARS>': 9 is not in 1..=5\n",
                "--positive-from 9: expected a number from 1 to 5; see --help",
            ),
        ] {
            assert_eq!(refusal(said), expected);
        }
    }

    #[test]
    fn a_message_has_no_control_characters() {
        assert_eq!(one_line("a\r\nb\u{1b}[2Jc\u{9b}d"), "a  b [2Jc d");
    }

    #[test]
    fn an_external_text_is_quoted_and_truncated() {
        assert_eq!(quoted(b"a\x1b[2J\xff"), "\"a\\u{1b}[2J\u{fffd}\"");
        assert_eq!(quoted("ä".repeat(40).as_bytes()), format!("\"{}\"", "ä".repeat(40)));
        assert_eq!(quoted("ä".repeat(41).as_bytes()), format!("\"{}\" and more", "ä".repeat(40)));
    }

    #[test]
    fn characters_on_which_a_terminal_acts_are_escaped() {
        assert_eq!(printable("a\u{1b}[2Jb\u{9b}c\u{202e}d\te\n"), "a\\u001b[2Jb\\u009bc\\u202ed\te\n");
        assert_eq!(one_line("a\u{202e}b"), "a b");
    }

    #[test]
    fn keys_in_a_message_are_masked() {
        assert_eq!(one_line("s3://AKIA:c2V/jcm@bucket/x: not there"), "s3://***@bucket/x: not there");
    }
}
