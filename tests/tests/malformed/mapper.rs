//! Runs cases through the real mapper, and checks the outcome of each line and of the reviews between them.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use corpus::judgement::other_labels;
use corpus::ledger::MapperCounts;
use serde_json::Value;
use tests::oracle;
use tests::programs::{Finished, program, run};

use crate::{Becomes, Class, lines_of, shown};

/// Maximum line length in these tests.
pub const LINE_BYTES_MAX: usize = 20_000;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
const BAD: [&str; 4] = ["line_too_long", "bad_line", "no_text", "bad_rating"];

/// A line and its expected outcome.
struct Case<'a> {
    class: &'a Class,
    line: Vec<u8>,
    /// The line's entry in the ledger and its record, as far as its class or the oracle determines them.
    entry: Option<String>,
    record: Option<String>,
}

impl Case<'_> {
    /// The line without its byte-order mark.
    fn content(&self) -> &[u8] {
        self.line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.line)
    }

    fn is_invalid_utf8(&self) -> bool {
        self.content().len() <= LINE_BYTES_MAX && str::from_utf8(self.content()).is_err()
    }
}

/// Checks every class of a format in one run. `review` writes a valid line of five stars with this text.
pub fn check(format: &[&str], classes: &[Class], cases: u64, review: fn(&str) -> String) {
    let limit = LINE_BYTES_MAX.to_string();
    let arguments = [format, &["--line-bytes-max", &limit]].concat();
    let mut cases: Vec<_> = classes
        .iter()
        .flat_map(|class| lines_of(class, cases).flat_map(|line| parted(class, &line)))
        .collect();
    ask_the_oracle(&mut cases, &arguments);

    let folder = tempfile::tempdir().unwrap();
    let counts_file = folder.path().join("counts.json");
    let (input, offsets) = input_of(&cases, review);
    let map = |more: &[&str]| -> (Finished, Option<MapperCounts>) {
        let _ = fs::remove_file(&counts_file);
        let mut mapper = program("mapper");
        let finished = run(
            mapper
                .args(&arguments)
                .args(["--invalid-utf8-max", "1"])
                .args(more)
                .arg("--counts")
                .arg(&counts_file),
            &input,
        );
        assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
        let counts = fs::read(&counts_file).ok().map(|json| serde_json::from_slice(&json).unwrap());
        (finished, counts)
    };
    let (mapped, counts) = map(&["--bad-lines-max", "1"]);
    let (rejected, same_counts) = map(&["--rejects"]);
    let (refused, no_counts) = map(&[]);

    let (mapped, rejected) = (mapped.succeeded(), rejected.succeeded());
    let counts = counts.unwrap();
    assert_eq!((same_counts.unwrap(), no_counts), (counts, None));
    check_records(&mapped.stdout, &cases);
    check_rejects(&rejected.stdout, &cases, &offsets);
    check_counts(&counts, &cases);
    check_chance(&cases);
    assert!(refused.stdout == mapped.stdout, "a mapper that fails at its end has written what it read");
    check_refusal(&refused.with_code(65), &counts);
}

/// A CR within the line splits it into two lines.
fn parted<'a>(class: &'a Class, line: &[u8]) -> Vec<Case<'a>> {
    let case = |part: &[u8]| Case {
        class,
        line: part.to_vec(),
        entry: class.becomes.entry().map(str::to_owned),
        record: None,
    };
    line.split(|&byte| byte == b'\r').map(case).collect()
}

/// Sets the expected outcome of each case, and drops those that the oracle cannot determine.
fn ask_the_oracle(cases: &mut Vec<Case<'_>>, arguments: &[&str]) {
    let lines: Vec<u8> = cases.iter().flat_map(|case| [&case.line, &b"\n"[..]].concat()).collect();
    let Some(judged) = oracle::judged(&lines, arguments) else { return };
    assert_eq!(judged.len(), cases.len());
    for (case, judgement) in cases.iter_mut().zip(&judged) {
        let Some((entry, record)) = judgement else { continue };
        let of_class = case.class.becomes.entry().unwrap_or(entry);
        assert_eq!(entry, of_class, "the oracle about {}: {}", case.class.name, shown(&case.line));
        (case.entry, case.record) = (Some(entry.clone()), record.clone());
    }
    let mut judged = judged.iter();
    cases.retain(|_| judged.next().is_some_and(Option::is_some));
}

/// Each case followed by a review, with line ends LF, CR and CRLF in turn, and the offset of each case.
fn input_of(cases: &[Case<'_>], review: fn(&str) -> String) -> (Vec<u8>, Vec<u64>) {
    let (mut input, mut offsets) = (Vec::new(), Vec::new());
    for (number, case) in cases.iter().enumerate() {
        let end = ["\n", "\r", "\r\n"][number % 3];
        offsets.push(input.len() as u64);
        input.extend_from_slice(&case.line);
        input.extend_from_slice(format!("{end}{}{end}", review(&between(number))).as_bytes());
    }
    (input, offsets)
}

/// The unique text of the review after a case.
fn between(number: usize) -> String {
    let letters = number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect::<String>();
    format!("between {letters}")
}

fn check_counts(counts: &MapperCounts, cases: &[Case<'_>]) {
    let bad = counts.line_too_long + counts.bad_line + counts.no_text + counts.bad_rating;
    assert_eq!(counts.lines, counts.blank + bad + counts.empty_text + counts.reviews);
    assert_eq!(counts.lines, 2 * cases.len() as u64);
    if cases.iter().any(|case| case.entry.is_none()) {
        return;
    }
    let counted =
        |entry: &str| cases.iter().filter(|case| case.entry.as_deref() == Some(entry)).count() as u64;
    let expected = MapperCounts {
        lines: counts.lines,
        blank: counted("blank"),
        line_too_long: counted("line_too_long"),
        bad_line: counted("bad_line"),
        no_text: counted("no_text"),
        bad_rating: counted("bad_rating"),
        unrated: 0,
        empty_text: counted("empty_text"),
        reviews: counted("reviews") + cases.len() as u64,
        invalid_utf8: cases.iter().filter(|case| case.is_invalid_utf8()).count() as u64,
        table_lines: 0,
    };
    assert_eq!(*counts, expected);
}

/// A class whose outcome only the oracle determines must have both valid and bad lines. Otherwise it tests
/// nothing.
fn check_chance(cases: &[Case<'_>]) {
    let entries = cases.iter().filter(|case| case.class.becomes == Becomes::Either).map(|case| &case.entry);
    let (good, bad): (Vec<_>, Vec<_>) = entries.flatten().partition(|entry| *entry == "reviews");
    let all = good.len() + bad.len();
    assert!(good.len() * 20 >= all && bad.len() * 20 >= all, "{} good, {} not", good.len(), bad.len());
}

/// Checks that the records between those of the reviews are exactly those of the valid cases.
fn check_records(records: &[u8], cases: &[Case<'_>]) {
    let mut records = str::from_utf8(records).unwrap().lines();
    for (number, case) in cases.iter().enumerate() {
        let behind = format!("{}\t0,0,0,0,1", between(number));
        let mut found = Vec::new();
        loop {
            let record = records.next().expect("each review between two cases has its record");
            if record == behind {
                break;
            }
            found.push(record);
        }
        let described = || format!("{}: {} became {found:?}", case.class.name, shown(&case.line));
        assert!(found.len() < 2, "{}", described());
        let Some(entry) = &case.entry else { continue };
        assert_eq!(!found.is_empty(), entry == "reviews", "{}", described());
        if let (Some(found), Some(expected)) = (found.first(), &case.record) {
            assert_eq!(found, expected, "{}", described());
        }
    }
    assert_eq!(records.next(), None);
}

/// Checks that the rejects are exactly the bad lines, each with its reason and position.
fn check_rejects(rejects: &[u8], cases: &[Case<'_>], offsets: &[u64]) {
    let mut rejects = rejects
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| -> Value { serde_json::from_slice(line).unwrap() })
        .peekable();
    for (case, &offset) in cases.iter().zip(offsets) {
        let reject = rejects.next_if(|reject| reject["offset"] == offset);
        let reason = reject.as_ref().map(|reject| reject["reason"].as_str().unwrap());
        let expected = case.entry.as_deref();
        if expected.is_some() {
            let expected = expected.filter(|entry| BAD.contains(entry));
            assert_eq!(reason, expected, "{}: {}", case.class.name, shown(&case.line));
        }
        if let Some(reject) = &reject {
            check_reject(reject, case);
        }
    }
    assert_eq!(rejects.next(), None);
}

fn check_reject(reject: &Value, case: &Case<'_>) {
    let line = case.content();
    let mut expected =
        serde_json::json!({"reason": reject["reason"], "file": "-", "offset": reject["offset"]});
    let (name, content) = match str::from_utf8(line) {
        _ if line.len() > LINE_BYTES_MAX => ("line_bytes", line.len().into()),
        Ok(line) => ("line", line.into()),
        Err(_) => ("line_base64", STANDARD.encode(line).into()),
    };
    expected[name] = content;
    assert_eq!(*reject, expected, "{}: {}", case.class.name, shown(&case.line));
}

/// Checks the first three lines of each reason with their positions, the counters, and the one message.
fn check_refusal(refused: &Finished, counts: &MapperCounts) {
    let ledger = format!("mapper: {counts}");
    let is_of_labels = |line: &str| {
        let n = line.strip_prefix("mapper: warning: ").and_then(|line| line.split_once(' ')?.0.parse().ok());
        let warning = n.and_then(|n| other_labels(n, counts));
        warning.is_some_and(|warning| line == format!("mapper: {warning}"))
    };
    let is_sum =
        |line: &str| line == ledger || line.starts_with("mapper: invalid_utf8 in ") || is_of_labels(line);
    let (notices, messages): (Vec<_>, Vec<_>) = refused
        .stderr
        .lines()
        .filter(|line| !is_sum(line))
        .partition(|line| BAD.iter().any(|reason| line.contains(&format!(": {reason} (byte "))));
    assert!(refused.stderr.contains(&ledger), "{ledger}");
    let bad = [counts.line_too_long, counts.bad_line, counts.no_text, counts.bad_rating];
    let reasons: Vec<_> = BAD.iter().zip(bad).filter(|&(_, count)| count > 0).collect();
    assert_eq!(notices.len(), 3 * reasons.len(), "{notices:?}");
    let reasons: Vec<_> = reasons.into_iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    let found = format!(
        "mapper: {} of {} lines are bad ({}), expected at most 0.05 of them; ",
        bad.iter().sum::<u64>(),
        counts.lines - counts.blank,
        reasons.join(", ")
    );
    let [message] = messages[..] else { panic!("{messages:?}") };
    assert!(message.starts_with(&found) && !message.contains("raise --bad-lines-max"), "{message}\n{found}");
    assert!(refused.stderr.ends_with(&format!("{message}\n")));
}
