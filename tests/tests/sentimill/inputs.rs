//! The same reviews in any files and formats give the same dataset with the same ledger.

use std::path::Path;

use tests::compressed::{bgzf, bzip2, gzip, in_members, zstd};
use tests::demo::{DEMO, json_line, quoted, raw, reviews};
use tests::fault_proxy::{Fault, FaultProxy};
use tests::lines::in_parts;
use tests::programs::{run, without_hadoop};
use tests::s3_server::{S3Server, with_s3};
use tests::skipped;

use crate::made::{BY_PIPE, Flags, Made, Manner, Room, told_by, told_by_mapper};

const MANNERS: [Manner; 2] = [Manner { threads: 3, memory: "512MiB" }, Manner { threads: 2, memory: "1MiB" }];

/// Runs the program on these inputs in every manner, and compares with `expected`.
#[track_caller]
fn check(room: &Room, flags: &Flags<'_>, inputs: &[&str], stdin: &[u8], expected: &Made) {
    for manner in MANNERS {
        let made = run(&mut room.sentimill(manner, flags, inputs), stdin).succeeded();
        room.made(&made).assert_same(expected, &format!("{inputs:?}, {manner:?}"));
        std::fs::remove_dir_all(room.path("out")).unwrap();
    }
}

fn check_demo(room: &Room, inputs: &[&str], stdin: &[u8]) {
    check(room, &Flags::default(), inputs, stdin, &BY_PIPE);
}

/// The corpus in seven files, of which the first are compressed.
fn in_files() -> Room {
    let room = Room::new();
    let compressed = [(".gz", gzip as fn(&[u8]) -> Vec<u8>), (".bz2", bzip2), (".zst", zstd)];
    for (number, part) in in_parts(&DEMO.raw, 7).into_iter().enumerate() {
        match compressed.get(number) {
            Some((ending, compress)) => {
                room.write(&format!("data/part-{number}.json{ending}"), of_members(&part, *compress));
            }
            // The last files are in separate folders.
            None => room.write(&format!("data/year={}/part-{number}.json", number / 2), part),
        }
    }
    room
}

/// Three consecutive members, split within lines.
fn of_members(content: &[u8], member: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    in_members(content, content.len() / 3 + 1, member)
}

#[test]
fn a_folder_is_read_without_its_hidden_files() {
    let room = in_files();
    room.write("data/.part-0.json.crc", "no review");
    room.write("data/_SUCCESS", "no review");
    check_demo(&room, &["data"], b"");
}

#[test]
fn files_patterns_and_standard_input_can_be_combined() {
    let room = in_files();
    let first = in_parts(&DEMO.raw, 7).remove(0);
    let others = ["data/part-1.json.bz2", "data/part-2*", "data/year=*/part-[3-6].json"];
    check_demo(&room, &[&["-"], &others[..]].concat(), &first);
    check_demo(&room, &[&others[..], &["-"]].concat(), &of_members(&first, gzip));
}

#[test]
fn standard_input_may_be_compressed() {
    let room = Room::new();
    for compress in [gzip, bzip2, zstd] {
        check_demo(&room, &["-"], &of_members(&DEMO.raw, compress));
    }
}

#[test]
fn members_inflated_by_several_threads_give_the_dataset_of_the_mapper() {
    // Large enough for several groups of members.
    let (lines, _) = raw(20_000, 1);
    let flags = Flags::default();
    let expected = flags.by_pipe(&lines);
    for (member, bytes) in [(bgzf as fn(&[u8]) -> Vec<u8>, 50_000), (zstd, 70_000), (bzip2, 100_000)] {
        let room = Room::new();
        room.write("reviews", in_members(&lines, bytes, member));
        let told = told_by_mapper(&room, "reviews");
        for threads in [1, 2, 5] {
            let manner = Manner { threads, memory: "64MiB" };
            let made = run(&mut room.sentimill(manner, &flags, &["reviews"]), b"").succeeded();
            room.made(&made).assert_same(&expected, &format!("members of {bytes} bytes, {manner:?}"));
            assert_eq!(told_by("sentimill", &made.stderr, "reviews"), told, "{manner:?}");
            std::fs::remove_dir_all(room.path("out")).unwrap();
        }
    }
}

#[test]
fn utf16_is_decoded_from_every_kind_of_input() {
    // Large enough for several groups of members, and for several ranges.
    let lines = reviews().iter().map(|(text, stars)| json_line(text, *stars)).collect::<String>().repeat(8);
    let utf16: Vec<u8> =
        std::iter::once(0xfeff).chain(lines.encode_utf16()).flat_map(u16::to_be_bytes).collect();
    let flags = Flags::default();
    let expected = flags.by_pipe(lines.as_bytes());
    let room = Room::new();
    room.write("reviews.json", &utf16);
    room.write("reviews.json.zst", in_members(&utf16, 70_000, zstd));
    for (input, stdin) in [("reviews.json", &[][..]), ("reviews.json.zst", &[]), ("-", &gzip(&utf16))] {
        check(&room, &flags, &[input], stdin, &expected);
    }
}

#[test]
fn a_prefix_in_s3_is_read_as_all_objects_below_it() {
    let server = S3Server::start_s3s_fs();
    let proxy = FaultProxy::start(server.address(), |_| Fault::None).unwrap();
    for (number, part) in in_parts(&DEMO.raw, 3).iter().enumerate() {
        server.put(&format!("reviews/{number}.json.gz"), &of_members(part, gzip));
    }
    server.put("reviews/_SUCCESS", b"no review");
    let room = Room::new();
    let flags = Flags::default();
    let mut sentimill = with_s3(room.sentimill(MANNERS[0], &flags, &["s3://bucket/reviews/"]), &proxy.url());
    let made = run(&mut sentimill, b"").succeeded();
    room.made(&made).assert_same(&BY_PIPE, "objects");
}

#[test]
fn every_format_gives_the_dataset_of_the_mapper() {
    type Write = fn(usize, &str, u64) -> String;
    let formats: [(&[&str], Write); 5] = [
        (&["--format", "polarity-csv"], |n, text, stars| format!("\"{stars}\",{}\n", quoted(n, text))),
        (&["--format", "polarity-csv", "--with-title"], |n, text, stars| {
            format!("{stars},\"so, so\",{}\n", quoted(n, text))
        }),
        (&["--format", "fasttext"], |_, text, stars| {
            format!("__label__{stars} {}\n", text.replace('\n', " "))
        }),
        (&["--preset", "yelp"], |_, text, stars| {
            json_line(text, stars).replace("reviewText", "text").replace("overall", "stars")
        }),
        (&["--text-field", "a", "--rating-field", "b"], |_, text, stars| {
            json_line(text, stars).replace("reviewText", "a").replace("overall", "b")
        }),
    ];
    for (arguments, write) in formats {
        let lines: String =
            reviews().iter().enumerate().map(|(number, (text, stars))| write(number, text, *stars)).collect();
        let classes = ["--class-ratings", "1=1,2=2,3=3,4=4,5=5"];
        let classes = if arguments[0] == "--format" { &classes[..] } else { &[] };
        let arguments = [arguments, classes].concat();
        let flags = Flags { lines: &arguments, ..Flags::default() };
        flags.check(&MANNERS, lines.as_bytes(), &format!("{arguments:?}"));
    }
}

/// Converts lines of JSON into a Parquet file with small row groups.
const TO_PARQUET: &str = r#"
import json, sys, pyarrow as pa, pyarrow.parquet as pq
rows = [json.loads(line) for line in sys.stdin.buffer]
pq.write_table(pa.Table.from_pylist(rows), sys.argv[1], row_group_size=700)
"#;

#[test]
fn parquet_rows_equal_json_lines() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(".deps").join("test/bin/python");
    if !python.is_file() {
        return skipped(&format!(
            "Parquet: {} is missing; bootstrap/laptop.sh test installs it",
            python.display()
        ));
    }
    let room = Room::new();
    let lines: Vec<_> = reviews().iter().map(|(text, stars)| json_line(text, *stars)).collect();
    let (some, others) = lines.split_at(lines.len() / 2);
    let mut written = without_hadoop(&python);
    run(written.args(["-c", TO_PARQUET]).arg(room.path("some.parquet")), some.concat().as_bytes())
        .succeeded();
    room.write("others.json.gz", gzip(others.concat().as_bytes()));
    let flags = Flags::default();
    let expected = flags.by_pipe(lines.concat().as_bytes());
    check(&room, &flags, &["some.parquet", "others.json.gz"], b"", &expected);
}
