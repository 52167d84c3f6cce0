use corpus::encoding::UTF_8;
use corpus::format::FormatOptions;

use super::*;

fn options() -> Options {
    Options {
        rules: Rules::Letters,
        format: Format::default(),
        line_bytes_max: 4 << 20,
        encoding: UTF_8,
        limits: Limits::default(),
        output: Output::Records,
        runner: Runner::User,
    }
}

fn mapped(input: &str) -> (Result<MapperCounts, Failed>, String, String) {
    mapped_by(options(), input.as_bytes())
}

fn mapped_by(options: Options, input: &[u8]) -> (Result<MapperCounts, Failed>, String, String) {
    let (mut output, mut log) = (Vec::new(), Vec::new());
    let mut mapper = Mapper::new(&mut output, &mut log, options);
    let split = InputSplit { file: "-".to_owned(), split_start: None };
    let counts = mapper.read(input, &split).and_then(|()| mapper.finish());
    (counts, String::from_utf8(output).unwrap(), String::from_utf8(log).unwrap())
}

#[test]
fn every_line_is_counted_once_and_reviews_become_records() {
    let input = concat!(
        "{\"reviewText\": \"Great <b>fit</b> &amp; feel!\", \"overall\": 5.0}\n",
        "\n \t\n",
        "{\"overall\": 5.0}\n",
        "{\"reviewText\": \"ok\", \"overall\": 6}\n",
        "{\"reviewText\": \"5/5 :)\", \"overall\": 5}\n",
        "not json\r\n",
        "{'reviewText': \"it's OLD\", 'overall': 2.0}\n",
    );
    let (counts, output, log) = mapped(input);
    let expected = MapperCounts {
        lines: 8,
        blank: 2,
        line_too_long: 0,
        bad_line: 1,
        no_text: 1,
        bad_rating: 1,
        unrated: 0,
        empty_text: 1,
        reviews: 2,
        invalid_utf8: 0,
        table_lines: 0,
    };
    assert_eq!(counts.unwrap(), expected);
    assert_eq!(output, "great fit feel\t0,0,0,0,1\nit's old\t0,1,0,0,0\n");
    assert!(log.contains("mapper: -:4: no_text (byte 67)\n"), "{log}");
    let ledger =
        "mapper: 8 lines = 2 blank + 1 bad_line + 1 no_text + 1 bad_rating + 1 empty_text + 2 reviews\n";
    assert!(log.ends_with(ledger), "{log}");
    assert!(!log.contains("reporter:"), "{log}");
    assert!(!log.contains("not json"), "{log}");
}

#[test]
fn three_bad_lines_per_reason_are_reported() {
    let (_, _, log) = mapped(&"x\n".repeat(10));
    assert_eq!(log.matches(": bad_line (byte").count(), 3);
    assert!(
        log.contains("mapper: -:3: bad_line (byte 4); further lines with this reason are only counted\n"),
        "{log}"
    );
}

#[test]
fn too_many_bad_lines_fail_with_a_probable_cause() {
    let (few, _, _) = mapped(&format!("{}{}", GOOD.repeat(951), "{\"overall\": 4}\n".repeat(50)));
    assert_eq!(few.unwrap().no_text, 50);
    let (many, output, _) = mapped(&format!("{}{}", GOOD.repeat(949), "{\"overall\": 4}\n".repeat(51)));
    let error = many.unwrap_err();
    assert_eq!(error.exit, Exit::BadInput);
    let message = error.to_string();
    assert!(message.starts_with("51 of 1000 lines are bad (no_text 51), expected at most 0.05"), "{message}");
    assert!(message.ends_with("; print them with mapper --rejects, or raise --bad-lines-max"), "{message}");
    assert_eq!(output.lines().count(), 949);
}

const GOOD: &str = "{\"reviewText\": \"ok\", \"overall\": 4}\n";

#[test]
fn the_share_of_bad_lines_is_checked_from_20_bad_lines_on() {
    let input = |good, bad| format!("{}{}", GOOD.repeat(good), "x\n".repeat(bad));
    assert_eq!(mapped(&input(1, 19)).0.unwrap().bad(), 19);
    let message = mapped(&input(1, 20)).0.unwrap_err().to_string();
    assert!(message.starts_with("20 of 21 lines are bad (bad_line 20)"), "{message}");
    assert_eq!(mapped(&input(380, 20)).0.unwrap().bad(), 20);
}

#[test]
fn a_limit_of_zero_accepts_no_bad_line() {
    let none =
        Options { limits: Limits { bad_lines_max: "0".parse().unwrap(), ..Limits::default() }, ..options() };
    for runner in [Runner::User, Runner::Hadoop] {
        let strict = Options { runner, ..none.clone() };
        let input = format!("{}x\n", GOOD.repeat(20));
        let message = mapped_by(strict.clone(), input.as_bytes()).0.unwrap_err().to_string();
        assert!(
            message.starts_with("1 of 21 lines are bad (bad_line 1), expected at most 0 of them; "),
            "{message}"
        );
        assert_eq!(mapped_by(strict, GOOD.as_bytes()).0.unwrap().reviews, 1);
    }
}

#[test]
fn a_higher_limit_is_advised_only_where_few_lines_are_bad() {
    let message =
        |good, bad| mapped(&format!("{}{}", GOOD.repeat(good), "x\n".repeat(bad))).0.unwrap_err().to_string();
    let advice = ", or raise --bad-lines-max";
    assert!(message(920, 80).ends_with(advice));
    for (good, bad) in [(800, 200), (400, 600), (0, 1000)] {
        assert!(!message(good, bad).contains("raise"), "{}", message(good, bad));
    }
    assert!(!message(800, 200).contains("most lines"));
}

#[test]
fn a_first_line_that_is_an_array_is_one_bad_line_if_other_lines_follow() {
    for before in ["[{\"a\": 1}]\n", "\n\u{FEFF} [{\"a\": \"]\"}, {}] \r\n \t\n"] {
        let counts = mapped(&format!("{before}{GOOD}[{{}}]\n")).0.unwrap();
        assert_eq!((counts.bad_line, counts.reviews), (2, 1), "{before:?}");
    }
    for array in ["[{}]", "[{}]\n \n", "[{}]\n[{}]\n", "[{}] {}\n{}\n", "[{},\n{}]\n{}\n"] {
        let error = mapped(array).0.unwrap_err().to_string();
        assert!(error.starts_with("-: found a JSON array, expected lines; "), "{array:?}: {error}");
    }
}

#[test]
fn input_without_a_review_is_refused() {
    for (input, expected) in [
        (
            "",
            "found no review and no line, expected at least one; check that the program that writes it succeeded",
        ),
        (
            "\n{\"reviewText\": \"5/5\", \"overall\": 4}\n",
            "found no review (2 lines = 1 blank + 1 empty_text + 0 reviews), expected at least one; check that it \
             is the right input",
        ),
        (
            "x\n",
            "found no review (1 lines = 1 bad_line + 0 reviews), expected at least one; most lines are not \
             JSON objects; write one object per line, or pass --format polarity-csv for lines of class,text, or \
             --format csv to sentimill for a table with a header",
        ),
    ] {
        let error = mapped(input).0.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.exit), (expected, Exit::BadInput));
    }
    let rejects = mapped_by(Options { output: Output::Rejects, ..options() }, b"x\n");
    assert_eq!(rejects.0.unwrap().bad_line, 1);
}

#[test]
fn each_element_of_a_list_is_counted_as_a_line_and_unrated_ones_apart() {
    let asked = FormatOptions {
        text_field: "reviews[].text".parse().ok(),
        rating_field: "reviews[].stars".parse().ok(),
        unrated: "null,0".parse().ok(),
        ..FormatOptions::default()
    };
    let list = Options { format: asked.format().unwrap(), ..options() };
    let input = b"{\"reviews\": [{\"text\": \"a\", \"stars\": 5}, {\"text\": \"b\"}, {\"text\": \"c\", \"stars\": 0}, 7]}\n\
        {\"reviews\": []}\n\n{'reviews': [{'text': 'd', 'stars': 6}]}\n";
    let (counts, output, log) = mapped_by(list.clone(), input);
    assert_eq!(output, "a\t0,0,0,0,1\n");
    let ledger = "7 lines = 1 blank + 2 no_text + 1 bad_rating + 2 unrated + 1 reviews";
    assert_eq!(counts.unwrap().to_string(), ledger);
    assert!(log.contains("mapper: -:1: no_text (byte 82)\nmapper: -:2: no_text (byte 86)\n"), "{log}");
    let (_, rejects, _) = mapped_by(Options { output: Output::Rejects, ..list.clone() }, input);
    let expected = [
        r#"{"reason":"no_text","file":"-","offset":82,"line":"7"}"#,
        r#"{"reason":"no_text","file":"-","offset":86,"line":"{\"reviews\": []}"}"#,
        r#"{"reason":"bad_rating","file":"-","offset":116,"line":"{'text': 'd', 'stars': 6}"}"#,
    ];
    assert_eq!(rejects.lines().collect::<Vec<_>>(), expected);
    let (_, _, log) = mapped_by(Options { runner: Runner::Hadoop, ..list }, input);
    assert!(log.contains("reporter:counter:mapper,unrated,2\n"), "{log}");
}

#[test]
fn a_hadoop_task_checks_the_share_only_with_many_lines_and_reports_counters() {
    let task = |input: &str| mapped_by(Options { runner: Runner::Hadoop, ..options() }, input.as_bytes());
    let (counts, _, log) = task(&"x\n".repeat(999));
    assert_eq!(counts.unwrap().bad_line, 999);
    assert!(log.contains("reporter:counter:mapper,bad_line,999\n"), "{log}");
    assert!(log.ends_with("mapper: no line is a review; most lines are not JSON objects; write one object per line, or pass --format polarity-csv for lines of class,text, or --format csv to sentimill for a table with a header\n"), "{log}");
    assert!(task(&"x\n".repeat(1000)).0.is_err());
    assert_eq!(task("").0.unwrap(), MapperCounts::default());
}

#[test]
fn lines_that_are_not_utf8_are_counted_and_reported_once() {
    let input =
        b"{\"reviewText\": \"a\xff\xfe\", \"overall\": 4}\n\xff\n{\"reviewText\": \"b\", \"overall\": 4}\n";
    let (counts, _, log) = mapped_by(options(), input);
    assert_eq!(counts.unwrap().invalid_utf8, 2);
    let notice = "mapper: invalid_utf8 in 2 of 3 lines, read as spaces; if all lines have another encoding, pass it with --encoding\n";
    assert_eq!(log.matches("invalid_utf8").count(), 1, "{log}");
    assert!(log.contains(notice), "{log}");
    let (_, _, log) = mapped_by(Options { runner: Runner::Hadoop, ..options() }, input);
    assert!(log.contains("reporter:counter:mapper,invalid_utf8,2\n") && log.contains(notice), "{log}");
    // A refusal names the lines and the remedy itself.
    for runner in [Runner::User, Runner::Hadoop] {
        let (counts, _, log) = mapped_by(Options { runner, ..options() }, &input.repeat(500));
        let message = "1000 of 1500 lines are not UTF-8, expected at most 0.05 of them; they look like ";
        assert!(
            counts.unwrap_err().to_string().starts_with(message) && !log.contains("read as spaces"),
            "{log}"
        );
    }
}

#[test]
fn files_without_a_review_are_reported_by_name() {
    let (mut output, mut log) = (Vec::new(), Vec::new());
    let mut mapper = Mapper::new(&mut output, &mut log, options());
    for (file, lines) in
        [("a", "x\n"), ("b", GOOD), ("c", "\n"), ("d", "x\n"), ("e", "x\n"), ("f", "x\n"), ("g", "")]
    {
        mapper.read(lines.as_bytes(), &InputSplit { file: file.to_owned(), split_start: None }).unwrap();
    }
    mapper.finish().unwrap();
    let log = String::from_utf8(log).unwrap();
    let warned: Vec<_> = log.lines().filter_map(|line| line.strip_prefix("mapper: warning: ")).collect();
    let one = |file: &str| format!("{file}: no line is a review; check its format");
    let empty = "g: the file is empty; check that it was written completely".to_owned();
    let expected = [
        one("a"),
        one("d"),
        one("e"),
        "1 more files: no line is a review; check its format".to_owned(),
        empty,
    ];
    assert_eq!(warned, expected);
}

#[test]
fn rejects_contain_exactly_the_bad_lines() {
    let input = b"{\"reviewText\": \"ok\", \"overall\": 4}\n\n\xEF\xBB\xBFno \"json\"\r\na\xFF\n{\"overall\": 4}\n\
        {\"reviewText\": \"ok\"}\n{\"reviewText\": \"5\", \"overall\": 4}\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    let (counts, output, _) =
        mapped_by(Options { output: Output::Rejects, line_bytes_max: 39, ..options() }, input);
    let expected = [
        r#"{"reason":"bad_line","file":"-","offset":36,"line":"no \"json\""}"#,
        r#"{"reason":"bad_line","file":"-","offset":50,"line_base64":"Yf8="}"#,
        r#"{"reason":"no_text","file":"-","offset":53,"line":"{\"overall\": 4}"}"#,
        r#"{"reason":"bad_rating","file":"-","offset":68,"line":"{\"reviewText\": \"ok\"}"}"#,
        r#"{"reason":"line_too_long","file":"-","offset":123,"line_bytes":40}"#,
    ];
    assert_eq!(output.lines().collect::<Vec<_>>(), expected);
    let counts = counts.unwrap();
    assert_eq!((counts.reviews, counts.blank, counts.empty_text, counts.bad()), (1, 1, 1, 5));
    assert_eq!(counts.check(), Ok(()));
}

#[test]
fn inputs_are_read_in_order_each_with_its_own_offsets() {
    let (mut output, mut log) = (Vec::new(), Vec::new());
    let mut mapper = Mapper::new(&mut output, &mut log, options());
    for file in ["a", "b"] {
        let lines = &b"{\"reviewText\": \"ok\", \"overall\": 4}\nx"[..];
        mapper.read(lines, &InputSplit { file: file.to_owned(), split_start: None }).unwrap();
    }
    let counts = mapper.finish().unwrap();
    assert_eq!((counts.lines, counts.bad_line, counts.reviews), (4, 2, 2));
    let log = String::from_utf8(log).unwrap();
    assert!(log.starts_with("mapper: a:2: bad_line (byte 35)\nmapper: b:2: bad_line (byte 35)\n"), "{log}");
}
