//! Input in other encodings gives the dataset of the same lines in UTF-8, or is refused with the encoding that it looks like.

use tests::files::snapshot;
use tests::hadoop::as_task;
use tests::programs::{program, run};

use crate::made::{Flags, Manner, Room};

/// Bytes of windows-1252.
fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|character| u8::try_from(u32::from(character)).unwrap()).collect()
}

fn utf16_le(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

const TEXTS: [&str; 4] = ["Café número uno", "naïve ideas", "Größe paßt nicht", "plain words"];

fn json_lines() -> String {
    let line = |(number, text): (usize, &&str)| {
        format!(
            "{{\"reviewText\": \"{text} {}\", \"overall\": {}}}\n",
            "x".repeat(number % 9),
            1 + number % 5
        )
    };
    TEXTS.iter().cycle().take(100).enumerate().map(line).collect()
}

fn refused(room: &Room, arguments: &[&str], input: &str) -> String {
    let before = snapshot(&room.path(""));
    let flags = Flags { lines: arguments, ..Flags::default() };
    let refused = run(&mut room.sentimill(Manner::ALONE, &flags, &[input]), b"").with_code(65);
    assert!(snapshot(&room.path("")) == before, "something was touched: {:?}", room.files());
    refused.stderr.lines().last().unwrap().to_owned()
}

#[test]
fn the_dataset_of_an_encoding_is_that_of_utf8_from_the_pipe_and_the_program() {
    let expected = Flags::default().by_pipe(json_lines().as_bytes());
    let flags = Flags { lines: &["--encoding", "latin1"], ..Flags::default() };
    flags.by_pipe(&latin1(&json_lines())).assert_same(&expected, "pipe");
    for manner in [Manner::ALONE, Manner::SPARING] {
        flags.by_mill(manner, &latin1(&json_lines())).assert_same(&expected, "latin1");
        let flags = Flags { lines: &["--encoding", "UTF-16LE"], ..Flags::default() };
        flags.by_mill(manner, &utf16_le(&json_lines())).assert_same(&expected, "UTF-16LE");
    }
}

#[test]
fn rejects_have_the_decoded_line_and_the_offset_in_the_file() {
    let line = "{\"reviewText\": \"schön\", \"overall\": 5}\n";
    let content = latin1(&format!("{line}{{\"größe\": 1}}\n"));
    let mut mapper = program("mapper");
    let rejects = run(mapper.args(["--rejects", "--encoding", "latin1"]), &content).succeeded();
    assert_eq!(
        rejects.said(),
        "{\"reason\":\"no_text\",\"file\":\"-\",\"offset\":38,\"line\":\"{\\\"größe\\\": 1}\"}\n"
    );
}

#[test]
fn lines_in_another_encoding_are_refused_with_the_likely_one() {
    let room = Room::new();
    room.write("latin1.json", latin1(&json_lines()));
    let message = "75 of 100 lines are not UTF-8, expected at most 0.05 of them; they look like windows-1252: pass --encoding \
                   windows-1252, or the name of the right encoding";
    assert_eq!(refused(&room, &[], "latin1.json"), format!("sentimill: {message}"));
    room.write("few.json", [latin1(&json_lines()), "{}\n".repeat(900).into_bytes()].concat());
    let few = refused(&room, &["--bad-lines-max", "1"], "few.json");
    assert!(
        few.starts_with("sentimill: 75 of 1000 lines") && few.ends_with(", or raise --invalid-utf8-max"),
        "{few}"
    );
    let flags = Flags { lines: &["--invalid-utf8-max", "0.75"], ..Flags::default() };
    flags.by_mill(Manner::ALONE, &latin1(&json_lines()));

    let mapped = run(&mut program("mapper"), &latin1(&json_lines())).with_code(65);
    assert_eq!(mapped.stderr.lines().last(), Some(&*format!("mapper: {message}")));
    // A task judges 1,000 lines or more.
    run(as_task(&mut program("mapper")), &latin1(&json_lines())).succeeded();
    let task = run(as_task(&mut program("mapper")), &latin1(&json_lines().repeat(10))).with_code(65);
    assert!(task.stderr.contains("mapper: 750 of 1000 lines are not UTF-8"), "{}", task.stderr);
    let rejects = run(program("mapper").arg("--rejects"), &latin1(&json_lines())).succeeded();
    assert_eq!(rejects.said(), "");
}

#[test]
fn counts_of_all_mappers_are_judged_by_merge() {
    let room = Room::new();
    let mut mapper = program("mapper");
    mapper.current_dir(room.path("")).args(["--counts", "counts.json", "--invalid-utf8-max", "1"]);
    let records = run(&mut mapper, &latin1(&json_lines())).succeeded();
    let sorted: std::collections::BTreeSet<_> =
        records.stdout.split_inclusive(|&byte| byte == b'\n').collect();
    let sorted: Vec<u8> = sorted.into_iter().flatten().copied().collect();
    run(program("combiner").current_dir(room.path("")), &records.stdout).succeeded();
    run(program("reducer").current_dir(room.path("")).arg("--quiet"), &sorted).succeeded();
    let merge = |arguments: &[&str]| {
        run(
            program("merge").current_dir(room.path("")).args(["--counts", "counts.json"]).args(arguments),
            b"",
        )
    };
    let refused = merge(&[]).with_code(65);
    let expected = "merge: 75 of 100 lines are not in their encoding, expected at most 0.05 of them; pass the encoding of the input to mapper \
                    with --encoding";
    assert_eq!(refused.stderr.lines().last(), Some(expected));
}

#[test]
fn utf16_is_refused_by_the_mapper_and_named_without_a_mark() {
    let room = Room::new();
    room.write("reviews.json", utf16_le(&json_lines()));
    let found = refused(&room, &[], "reviews.json");
    let expected = "reviews.json: cannot read its first bytes: found UTF-16 without a mark, expected UTF-8; pass --encoding \
                    UTF-16LE to sentimill, ngrams or vectors, or convert the file with iconv -f UTF-16LE -t UTF-8";
    assert_eq!(found, format!("sentimill: {expected}"));
    let message = "mapper: --encoding UTF-16BE: the mapper reads lines that end at the byte 0A, as Hadoop splits them; pass \
                   the files to sentimill, or convert them with iconv -f UTF-16BE -t UTF-8";
    let arguments = ["--encoding", "utf-16be"];
    assert_eq!(run(program("mapper").args(arguments), b"").with_code(64).stderr, format!("{message}\n"));
    run(as_task(program("mapper").args(arguments)), b"").with_code(78);
    let unknown = run(program("mapper").args(["--encoding", "utf-32"]), b"").with_code(64);
    assert!(
        unknown.stderr.contains("expected an encoding of the web, such as windows-1252"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn files_of_another_kind_are_named_with_the_command_that_converts_them() {
    let room = Room::new();
    let twice = tests::compressed::gzip(&tests::compressed::gzip(json_lines().as_bytes()));
    let inputs: [(&str, &[u8], &str); 4] = [
        (
            "twice.json.gz",
            &twice,
            "found gzip within gzip, expected lines; decompress it once, and pass the result: gzip -dc twice.json.gz > once.gz",
        ),
        (
            "db.sqlite",
            b"SQLite format 3\0\x10\0\x01\x01",
            "found an SQLite database, expected lines; export a table: sqlite3 -header -csv db.sqlite 'SELECT * FROM NAME' > \
             reviews.csv, and pass that with --format csv",
        ),
        (
            "reviews.json.br",
            b"\x8b\x02\x80\xff\x01",
            "found a brotli-compressed file, expected lines; decompress it first: brotli -dc reviews.json.br > reviews.json",
        ),
        (
            "reviews.snappy",
            b"\xa3\x05\xf0\x3c{\"reviewText\": \"solid lamp\"",
            "found raw snappy, expected lines; decompress it first: snzip -dc -t raw reviews.snappy > reviews.json",
        ),
    ];
    for (name, content, expected) in inputs {
        room.write(name, content);
        let found = refused(&room, &[], name);
        assert!(found.ends_with(expected), "{found}");
        assert!(found.starts_with(&format!("sentimill: {name}: cannot read it")), "{found}");
    }
}

#[test]
fn texts_without_spaces_are_a_warning_in_the_card() {
    let text = "收到水壶退货三天但是第二次";
    let lines = format!("{{\"reviewText\": \"{text}\", \"overall\": 5}}\n");
    let room = Room::new();
    room.write("reviews.json", lines);
    let card = run(&mut room.sentimill(Manner::ALONE, &Flags::default(), &["reviews.json"]), b"").succeeded();
    let expected = "warning           most words are Chinese, which has no spaces between words: a mean of 1.0 words per text";
    assert!(card.said().contains(expected), "{}", card.said());
}
