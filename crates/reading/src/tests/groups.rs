//! Compressed files that are read in groups of members.

use std::sync::Mutex;

use ::tests::compressed::{bgzf, in_members};
use program::exit::Exit;
use proptest::prelude::*;

use super::*;

/// Content in members whose ends can be found.
fn of_members(by: usize, content: &[u8], bytes: usize) -> Vec<u8> {
    let members = [bgzf, zstd, bzip2][by];
    // With an additional empty member, so that empty content has a member, and empty members are tested.
    in_members(content, bytes, members).into_iter().chain(members(b"")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn groups_of_members_give_the_lines_of_a_sequential_reader(
        contents in prop::collection::vec((0..3_usize, texts(), 1..20_usize), 1..4),
        member_bytes in 1..40_usize,
        group_bytes in 1..400_u64,
        line_bytes_max in 0..12_usize,
        threads in 1..4_usize,
    ) {
        let contents: Vec<_> = contents.iter().map(|(by, text, times)| (*by, text.repeat(*times))).collect();
        let files: Vec<_> =
            contents.iter().map(|(by, content)| of_members(*by, content, member_bytes)).collect();
        let named: Vec<_> = ["a", "b", "c"].into_iter().zip(files.iter().map(Vec::as_slice)).collect();
        let folder = folder(&named);
        let options = ReadingOptions { line_bytes_max, ..options(threads) };
        let reading = Reading::start_with(all_of(&folder), &options, group_bytes).unwrap();
        let contents: Vec<_> = contents.iter().map(|(_, content)| &content[..]).collect();
        prop_assert_eq!(read(&reading, threads).unwrap(), naive(&contents, line_bytes_max));
        prop_assert_eq!(Some(reading.bytes_read()), reading.bytes());
    }
}

#[test]
fn large_members_are_read_in_groups() {
    let lines: Vec<u8> =
        (0..200_000).flat_map(|number| format!("line {} of {number}\n", number % 977).into_bytes()).collect();
    for (by, bytes) in [(0, 60_000), (1, 300_000), (2, 300_000)] {
        let folder = folder(&[("a", &of_members(by, &lines, bytes))]);
        let reading = Reading::start_with(all_of(&folder), &options(3), 40_000).unwrap();
        let expected = naive(&[&lines], 1000);
        assert!(read(&reading, 3).unwrap() == expected);
        assert!(expected.iter().map(|line| line.1).max() > Some(3_000_000));
        let places = Mutex::new(Vec::new());
        let reading = Reading::start_with(all_of(&folder), &options(2), 40_000).unwrap();
        reading
            .each(|entry| {
                places.lock().unwrap().push(entry.place.group);
                Ok::<_, Error>(())
            })
            .unwrap();
        assert!(places.into_inner().unwrap().into_iter().max() > Some(5), "it was cut into few groups");
    }
}

#[test]
fn a_line_over_many_groups_is_read_once() {
    let content = [b"a\n".repeat(100), b"x".repeat(100_000), b"\nb\r\n".repeat(100)].concat();
    for by in 0..3 {
        let folder = folder(&[("a", &of_members(by, &content, 500))]);
        for line_bytes_max in [1000, 1_000_000] {
            let options = ReadingOptions { line_bytes_max, ..options(3) };
            let reading = Reading::start_with(all_of(&folder), &options, 64).unwrap();
            assert_eq!(read(&reading, 3).unwrap(), naive(&[&content], line_bytes_max));
        }
    }
}

/// The error of a sequential reader of the whole file.
fn refused_in_one(path: &std::path::Path) -> String {
    let read = input::open(path).and_then(|mut input| io::copy(&mut input, &mut io::sink()));
    read.unwrap_err().to_string()
}

#[test]
fn damage_is_reported_as_by_a_sequential_reader() {
    let content = b"some reviews, and some more reviews\n".repeat(3000);
    for by in 0..3 {
        let whole = of_members(by, &content, 700);
        let folder = folder(&[("a", b"")]);
        let path = folder.path().join("a");
        let mut flipped = whole.clone();
        // Within the data of a member in every format.
        flipped[whole.len() / 2 / 700 * 700 + 40] ^= 0x10;
        let (middle, garbage) = (whole.len() / 2, [&whole[..], b"{\"a\": 1}\n"].concat());
        for damaged in [&whole[..middle], &whole[..whole.len() - 1], &garbage, &flipped] {
            std::fs::write(&path, damaged).unwrap();
            let expected = format!("{}: cannot read it: {}", path.display(), refused_in_one(&path));
            for (threads, group_bytes) in [(1, 1), (3, 1), (3, 3000)] {
                let reading = Reading::start_with(all_of(&folder), &options(threads), group_bytes).unwrap();
                for error in read(&reading, threads).unwrap_err() {
                    assert_eq!(program::exit::chain(&error), expected, "{by}, {threads}, {group_bytes}");
                    assert_eq!(error.exit(), Exit::BadInput);
                }
            }
        }
    }
}

#[test]
fn a_member_with_a_wrong_size_is_an_error() {
    let mut lying = in_members(&b"a review\n".repeat(3000), 9000, bgzf);
    // The recorded size of the first member is that of two.
    let size = |at: usize| usize::from(u16::from_le_bytes([lying[at + 16], lying[at + 17]])) + 1;
    let second = size(0);
    let both = second + size(second) - 1;
    // So long that it ends within the next recorded member.
    lying[16..18].copy_from_slice(&u16::try_from(second - 10).unwrap().to_le_bytes());
    let folder = folder(&[("short", &lying)]);
    let errors = read(&Reading::start_with(all_of(&folder), &options(2), 1).unwrap(), 2).unwrap_err();
    assert!(errors.iter().all(|error| error.exit() == Exit::BadInput), "{errors:?}");
    lying[16..18].copy_from_slice(&u16::try_from(both).unwrap().to_le_bytes());
    std::fs::write(folder.path().join("short"), &lying).unwrap();
    let reading = Reading::start_with(all_of(&folder), &options(2), 1).unwrap();
    assert_eq!(read(&reading, 2).unwrap().len(), 3000);
}
