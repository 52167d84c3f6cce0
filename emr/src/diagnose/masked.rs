//! Masks secrets in a line of a log, and makes the line safe for a terminal.

use std::sync::LazyLock;

use program::exit::one_line;
use regex::Regex;

/// Maximum number of characters of a shown line.
const CHARACTERS_MAX: usize = 400;

/// Values of names that denote a secret, in settings, URLs, JSON and environments; and keys by their form.
static SECRETS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    let named = r#"(?i)((?:secret|token|password|passwd|signature|credential|session[._-]?key|access[._-]?key(?:[._-]?id)?|api[._-]?key)(?:[\w.-]*["']?\s*=|["']?\s*:)\s*["']?)([^\s"'&,;<>]+)"#;
    let in_xml = r"(?i)(<name>[^<]*(?:secret|token|password|access\.key)[^<]*</name>\s*<value>)([^<]+)";
    let access_key = r"()\b((?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,})\b";
    [named, in_xml, access_key]
        .map(|pattern| Regex::new(pattern).unwrap_or_else(|error| unreachable!("tested: {error}")))
});

/// A line for a report: without secrets, and cut if it is long.
pub(super) fn masked(line: &str) -> String {
    let line = without_secrets(line);
    let line = line.trim();
    match line.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// A line that is safe for a terminal, with `***` in place of each secret.
pub fn without_secrets(line: &str) -> String {
    let mut line = one_line(line);
    for pattern in &*SECRETS {
        line = pattern.replace_all(&line, "${1}***").into_owned();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        for line in [
            "fs.s3a.secret.key=wJalrSECRET/K7 is set",
            "export AWS_SECRET_ACCESS_KEY='wJalrSECRET/K7'",
            "{\"aws_session_token\": \"wJalrSECRET/K7\"}",
            "<name>fs.s3a.secret.key</name><value>wJalrSECRET/K7</value>",
            "GET https://h/x?X-Amz-Security-Token=wJalrSECRET&X-Amz-Signature=wJalrSECRET HTTP/1.1",
            "s3a://AKIAEXAMPLE:wJalrSECRET/K7@bucket/x: not found",
            "the key ASIASECRETSECRET1234 is unknown",
            "password: wJalrSECRET",
        ] {
            let shown = masked(line);
            assert!(!shown.contains("SECRET") || shown.contains("AWS_SECRET_ACCESS_KEY"), "{shown}");
            assert!(shown.contains("***"), "{shown}");
        }
    }

    #[test]
    fn an_ordinary_line_is_shown_as_it_is_and_a_long_one_is_cut() {
        let line = "2026-11-23 04:33:06 ERROR Task: attempt_1_0001_m_000000_0 - exited : subprocess failed with code 65";
        assert_eq!(masked(line), line);
        assert_eq!(masked("a\u{1b}[2Jb\r"), "a [2Jb");
        assert_eq!(masked(&"é".repeat(500)).chars().count(), CHARACTERS_MAX + 1);
    }
}
