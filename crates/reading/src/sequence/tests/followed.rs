//! Files that are renamed, cut, replaced or not complete while they are followed.

use super::*;

/// The name of a file that is listed last, and has a line more with each listing.
const LAST: &str = "~";

/// Follows a folder.
struct Follower {
    folder: tempfile::TempDir,
    place: Place,
}

impl Follower {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), place: Place::default() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path(name), content).unwrap();
    }

    fn append(&self, name: &str, content: &[u8]) {
        let file = File::options().append(true).create(true).open(self.path(name));
        file.unwrap().write_all(content).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    /// Lists the folder once, as a process does that is resumed. Returns the lines and what was skipped.
    fn once(&mut self) -> (String, Vec<String>) {
        self.append(LAST, b"end\n");
        let (mut lines, mut skipped) = (Vec::new(), Vec::new());
        let stop = AtomicBool::new(false);
        let before = self.place.clone();
        let pass = |passed| {
            match passed {
                Passed::Lines(chunk) => {
                    self.place.pass(&chunk);
                    if !chunk.source.ends_with(LAST) {
                        lines.extend(chunk.lines);
                    } else if chunk.n_lines > 0 {
                        stop.store(true, Relaxed);
                    }
                }
                Passed::Skipped(error) => skipped.push(error.to_string()),
                Passed::Resumed(resumed) => panic!("{resumed:?}"),
            }
            true
        };
        read_sequence(&options(self.folder.path(), true), &before, &stop, pass).unwrap();
        let folder = format!("{}/", self.folder.path().display());
        let skipped = skipped.into_iter().map(|skipped: String| skipped.replace(&folder, "")).collect();
        (String::from_utf8(lines).unwrap(), skipped)
    }
}

fn lines(names: std::ops::Range<u32>) -> String {
    names.map(|number| format!("line {number}\n")).collect()
}

#[test]
fn a_file_that_is_replaced_by_a_larger_one_of_its_name_is_read_from_its_start() {
    let mut follower = Follower::new();
    follower.write("log", lines(0..470).as_bytes());
    assert_eq!(follower.once(), (lines(0..470), vec![]));
    follower.write("next", lines(1000..3500).as_bytes());
    follower.rename("next", "log");
    let replaced =
        "log: found other content than the 470 lines that were read of it; reading it from its start";
    assert_eq!(follower.once(), (lines(1000..3500), vec![replaced.to_owned()]));
    // Rewritten in place, at its old size.
    let size = lines(1000..3500).len();
    follower.write("log", &lines(5000..9000).as_bytes()[..size]);
    let (found, skipped) = follower.once();
    assert!(lines(5000..9000).starts_with(&found) && found.len() > size - 20, "{found}");
    assert_eq!(skipped.len(), 1);
    // A copy that has grown, as rsync writes it.
    follower.write("next", [&lines(5000..9000).as_bytes()[..size], b" and more\n"].concat().as_slice());
    follower.rename("next", "log");
    let (found, skipped) = follower.once();
    assert!(found.ends_with(" and more\n") && found.lines().count() == 1, "{found}");
    assert_eq!(skipped, Vec::<String>::new());
    assert_eq!(follower.once(), (String::new(), vec![]));
}

#[test]
fn a_file_that_is_cut_while_it_is_followed_is_read_from_its_start() {
    let mut follower = Follower::new();
    follower.write("log", lines(0..100).as_bytes());
    follower.once();
    follower.write("log", lines(200..210).as_bytes());
    let replaced =
        "log: found other content than the 100 lines that were read of it; reading it from its start";
    assert_eq!(follower.once(), (lines(200..210), vec![replaced.to_owned()]));
}

#[test]
fn log_files_that_are_rotated_are_read_once_each() {
    let mut follower = Follower::new();
    follower.write("log", lines(0..10).as_bytes());
    assert_eq!(follower.once(), (lines(0..10), vec![]));
    for round in 1..4 {
        // Written between the last listing and the rotation.
        follower.append("log", lines(10 * round..10 * round + 3).as_bytes());
        for number in (1..round).rev() {
            follower.rename(&format!("log.{number}"), &format!("log.{}", number + 1));
        }
        follower.rename("log", "log.1");
        follower.write("log", lines(10 * round + 3..10 * round + 9).as_bytes());
        let (found, skipped) = follower.once();
        let mut found: Vec<&str> = found.lines().collect();
        found.sort_unstable();
        let expected = lines(10 * round..10 * round + 9);
        assert_eq!((found, skipped), (expected.lines().collect(), vec![]));
    }
    assert_eq!(follower.once(), (String::new(), vec![]));
}

#[test]
fn a_compressed_file_that_is_not_complete_is_named_and_read_on_when_it_is() {
    let mut follower = Follower::new();
    let text = random(300_000).into_iter().map(|byte| if byte == b'\n' { byte } else { b'a' + byte % 26 });
    let text = String::from_utf8(text.chain([b'\n']).collect()).unwrap();
    let packed = gzip(text.as_bytes());
    follower.write("a.gz", &packed[..packed.len() / 2]);
    follower.write("b", b"two\n");
    let (first, skipped) = follower.once();
    let half = first.strip_suffix("two\n").unwrap();
    assert!(text.starts_with(half) && half.ends_with('\n') && half.len() > 50_000, "{}", half.len());
    let cut = "a.gz: cannot read it: the gzip member at byte 0 is cut off at byte ";
    assert!(skipped.len() == 1 && skipped[0].starts_with(cut), "{skipped:?}");
    // It is reported once, and lines go on.
    follower.append("b", b"three\n");
    assert_eq!(follower.once(), ("three\n".to_owned(), vec![]));
    follower.write("a.gz", &packed);
    assert_eq!(follower.once(), (text[half.len()..].to_owned(), vec![]));
    assert_eq!(follower.once(), (String::new(), vec![]));
}

#[test]
fn files_that_cannot_be_read_are_named_and_others_are_followed() {
    let mut follower = Follower::new();
    follower.write("a", b"PK\x03\x04 a zip archive");
    follower.write("b", b"one\n");
    let (found, skipped) = follower.once();
    assert_eq!((found, skipped.len()), ("one\n".to_owned(), 1));
    assert!(skipped[0].starts_with("a: cannot read it: found a zip archive"), "{skipped:?}");
    // It becomes a text.
    follower.write("a", b"two\n");
    assert_eq!(follower.once(), ("two\n".to_owned(), vec![]));
}

#[test]
fn a_link_and_a_compressed_copy_that_appear_later_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("log"), "one\n").unwrap();
    let stop = AtomicBool::new(false);
    let mut found = Vec::new();
    let pass = of_lines(|chunk| {
        found.extend(chunk.lines);
        match &found[..] {
            b"one\n" => {
                let _ = fs::hard_link(path("log"), path("linked"));
                fs::write(path("log.gz"), gzip(b"one\n")).unwrap();
                fs::write(path("new"), "two\n").unwrap();
            }
            _ => stop.store(true, Relaxed),
        }
        true
    });
    read_sequence(&options(folder.path(), true), &Place::default(), &stop, pass).unwrap();
    assert_eq!(found, b"one\ntwo\n");
}

/// Renames `log.1.gz` to `log.2.gz` and so on, and the log to `log.1`.
fn rotate(follower: &Follower, n: u32) {
    for number in (1..n).rev() {
        let name = |number| format!("log.{number}.gz");
        if follower.path(&name(number)).exists() {
            follower.rename(&name(number), &name(number + 1));
        }
    }
    follower.rename("log", "log.1");
}

fn compress(follower: &Follower, name: &str) {
    let packed = gzip(&fs::read(follower.path(name)).unwrap());
    follower.write(&format!("{name}.gz"), &packed);
    fs::remove_file(follower.path(name)).unwrap();
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn log_files_that_are_rotated_and_compressed_are_read_once_each() {
    // A log of some lines, and one of more than the digested bytes.
    for (n, sees_plain) in [(10, true), (10, false), (2000, true), (2000, false)] {
        let mut follower = Follower::new();
        follower.write("log", lines(0..n).as_bytes());
        assert_eq!(follower.once(), (lines(0..n), vec![]));
        for round in 1..5 {
            let (from, until) = (10_000 * round, 10_000 * round + 3);
            // Written between the last listing and the rotation.
            follower.append("log", lines(from..until).as_bytes());
            rotate(&follower, round + 1);
            follower.write("log", lines(until..until + n).as_bytes());
            let mut found = String::new();
            if sees_plain {
                let (seen, skipped) = follower.once();
                assert_eq!(skipped, Vec::<String>::new(), "{round}");
                found += &seen;
            }
            compress(&follower, "log.1");
            let (seen, skipped) = follower.once();
            found += &seen;
            assert_eq!((sorted(&found), skipped), (sorted(&lines(from..until + n)), vec![]), "{round}");
        }
        assert!(follower.path("log.4.gz").exists());
        assert_eq!(follower.once(), (String::new(), vec![]));
    }
}

#[test]
fn two_rotations_between_two_listings_are_read_once() {
    let mut follower = Follower::new();
    follower.write("log", lines(0..10).as_bytes());
    follower.once();
    for number in [1, 2] {
        follower.append("log", lines(10 * number..10 * number + 5).as_bytes());
        rotate(&follower, 3);
        compress(&follower, "log.1");
        follower.write("log", lines(10 * number + 5..10 * number + 10).as_bytes());
    }
    let (found, skipped) = follower.once();
    assert_eq!((sorted(&found), skipped), (sorted(&lines(10..30)), vec![]));
}

#[test]
fn a_log_that_is_copied_and_cut_is_read_once() {
    let mut follower = Follower::new();
    follower.write("log", lines(0..10).as_bytes());
    follower.once();
    follower.append("log", lines(10..12).as_bytes());
    fs::copy(follower.path("log"), follower.path("log-20270131")).unwrap();
    follower.write("log", b"");
    assert_eq!(follower.once(), (lines(10..12), vec![]));
    follower.append("log", lines(12..15).as_bytes());
    assert_eq!(follower.once(), (lines(12..15), vec![]));
}

#[test]
fn a_compressed_file_of_another_name_or_content_is_read_whole() {
    let mut follower = Follower::new();
    follower.write("day-1.log", b"header\n");
    follower.once();
    fs::remove_file(follower.path("day-1.log")).unwrap();
    follower.write("day-2.log.gz", &gzip(b"header\none\n"));
    follower.write("day-1.log.gz", &gzip(b"Header\ntwo\n"));
    assert_eq!(follower.once(), ("Header\ntwo\nheader\none\n".to_owned(), vec![]));
}
