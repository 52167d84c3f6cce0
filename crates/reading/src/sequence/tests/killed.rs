//! Streams whose readers are killed and stopped: each line is passed on once, or counted as lost.

use std::collections::HashSet;
use std::os::fd::AsFd;

use corpus::encoding::Encoding;
use proptest::prelude::*;

use super::*;
use crate::sequence::taken::{Left, Taken};

/// What a checkpoint has.
#[derive(Clone, Debug, Default)]
struct Saved {
    place: Place,
    lines: Vec<String>,
    n_lost: u64,
}

/// A named pipe that stays open, so that a reader continues with the next byte.
struct Source {
    folder: tempfile::TempDir,
    ends: File,
    n_fed: u32,
    n_bytes: u64,
    /// Lines as they were written.
    fed: HashSet<String>,
}

impl Source {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        pipe(&folder.path().join("pipe"));
        let ends = File::options().read(true).write(true).open(folder.path().join("pipe")).unwrap();
        Self { folder, ends, n_fed: 0, n_bytes: 0, fed: HashSet::new() }
    }

    /// Writes lines. Of the last one, so many bytes later.
    fn feed(&mut self, n_lines: u32, pending: &mut String, later: usize) {
        let mut text = std::mem::take(pending);
        for _ in 0..n_lines {
            let line = format!("line {} of a stream {}", self.n_fed, "x".repeat(self.n_fed as usize % 40));
            text += &format!("{line}\n");
            self.fed.insert(line);
            self.n_fed += 1;
        }
        let at = text.len() - later.min(text.len());
        *pending = text.split_off(at);
        self.n_bytes += text.len() as u64;
        self.ends.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until the pipe is empty. The process is then stopped or killed, with checkpoints at some chunks before.
    fn run(&self, saved: &mut Saved, bytes_max: u64, is_killed: bool, saves: u32) {
        let keep = Keep { folder: self.folder.path().join("kept"), file_bytes: bytes_max / 4, bytes_max };
        let options =
            SequenceOptions { keep: Some(keep), ..options(&self.folder.path().join("pipe"), false) };
        let (stop, place) = (AtomicBool::new(false), saved.place.clone());
        let (mut now, mut n_chunks) = (saved.clone(), 0);
        let mut save = |now: &Saved| {
            *saved = now.clone();
            options.forget(&saved.place).unwrap();
        };
        let pass = |passed| {
            n_chunks += 1;
            match passed {
                Passed::Lines(chunk) => {
                    now.place.pass(&chunk);
                    let lines = String::from_utf8(chunk.lines).unwrap();
                    now.lines.extend(lines.lines().map(str::to_owned));
                    if n_chunks % 5 < saves {
                        let rest = std::mem::take(&mut now.place.rest);
                        save(&now);
                        now.place.rest = rest;
                    }
                }
                Passed::Resumed(resumed) => {
                    now.place.lose(&resumed);
                    now.n_lost += resumed.n_lost.unwrap();
                    if resumed.n_lost != Some(0) {
                        save(&now);
                    }
                }
                Passed::Skipped(error) => panic!("{error}"),
            }
            true
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                while rustix::io::ioctl_fionread(self.ends.as_fd()).unwrap() > 0 {
                    thread::yield_now();
                }
                stop.store(true, Relaxed);
            });
            read_sequence(&options, &place, &stop, pass).unwrap();
        });
        if !is_killed {
            save(&now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if ::tests::prove() { 1000 } else { 25 }))]
    #[test]
    fn each_line_of_a_stream_is_passed_on_once_or_lost_whatever_kills_its_readers(
        runs in prop::collection::vec((0..60_u32, 0..60_usize, any::<bool>(), 0..6_u32), 1..12),
        bytes_max in 400..6000_u64,
    ) {
        let (mut source, mut saved, mut pending) = (Source::new(), Saved::default(), String::new());
        for (n_lines, later, is_killed, saves) in runs {
            source.feed(n_lines, &mut pending, later);
            source.run(&mut saved, bytes_max, is_killed, saves);
        }
        source.feed(1, &mut pending, 0);
        source.run(&mut saved, bytes_max, false, 0);
        // A stop in the middle of what a killed process left.
        while saved.place.sources.values().next().unwrap().bytes < source.n_bytes {
            source.run(&mut saved, bytes_max, false, 0);
        }
        prop_assert_eq!(saved.lines.len() as u64 + saved.n_lost, u64::from(source.n_fed));
        let mut once = HashSet::new();
        for line in &saved.lines {
            // The end of a line whose beginning a killed process had read is a line of its own.
            let is_end = || source.fed.iter().any(|fed| fed.ends_with(&**line));
            prop_assert!(source.fed.contains(line) || is_end(), "{}", line);
            prop_assert!(!source.fed.contains(line) || once.insert(line), "twice: {}", line);
        }
    }
}

/// What a process passes on that reads these bytes of a pipe to their end, and is killed.
fn read_once(folder: &Path, bytes: &[u8], encoding: &'static Encoding) -> Vec<String> {
    let path = folder.join("pipe");
    if !path.exists() {
        pipe(&path);
    }
    let keep = Some(Keep::in_folder(folder.join("kept")));
    let options = SequenceOptions { keep, encoding, chunk_bytes: 1 << 20, ..options(&path, false) };
    let (stop, mut passed) = (AtomicBool::new(false), Vec::new());
    let pass = |of: Passed| {
        passed.push(match of {
            Passed::Lines(chunk) => {
                format!("{} {:?}", chunk.n_lines, String::from_utf8(chunk.lines).unwrap())
            }
            Passed::Resumed(resumed) => format!("{} again, {} open", resumed.n_again, resumed.n_open),
            Passed::Skipped(error) => error.to_string(),
        });
        true
    };
    thread::scope(|scope| {
        scope.spawn(|| fs::write(&path, bytes).unwrap());
        read_sequence(&options, &Place::default(), &stop, pass).unwrap();
    });
    passed
}

#[test]
fn the_last_line_of_a_text_needs_no_end_if_its_process_is_killed_later() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read_once(folder.path(), b"one\ntwo", UTF_8), ["2 \"one\\ntwo\""]);
    let expected = ["2 again, 0 open", "2 \"one\\ntwo\"", "1 \"three\\n\""];
    assert_eq!(read_once(folder.path(), b"three\n", UTF_8), expected);
}

#[test]
fn lines_of_each_encoding_and_compression_are_kept() {
    let text = "eins\nzw\u{f6}lf\n";
    let utf16 =
        |order: fn(u16) -> [u8; 2], text: &str| text.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    for (bytes, encoding) in [
        (text.as_bytes().to_vec(), UTF_8),
        (b"eins\nzw\xf6lf\n".to_vec(), Encoding::for_label(b"latin1").unwrap()),
        (gzip(text.as_bytes()), UTF_8),
        (gzip(b"eins\nzw\xf6lf\n"), Encoding::for_label(b"latin1").unwrap()),
        (utf16(u16::to_le_bytes, &format!("\u{feff}{text}")), UTF_8),
        (utf16(u16::to_be_bytes, text), Encoding::for_label(b"utf-16be").unwrap()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read_once(folder.path(), &bytes, encoding), [format!("2 {text:?}")], "{encoding:?}");
        let again = ["2 again, 0 open".to_owned(), format!("2 {text:?}"), format!("2 {text:?}")];
        assert_eq!(read_once(folder.path(), &bytes, encoding), again, "{encoding:?}");
    }
}

#[test]
fn what_a_killed_process_left_is_reported_by_its_lines_and_bytes() {
    let mut source = Source::new();
    source.ends.write_all(b"one\ntwo\nthr").unwrap();
    source.run(&mut Saved::default(), 4000, true, 0);
    let (keep, kind) = (Keep::in_folder(source.folder.path().join("kept/0")), Kind::StandardInput);
    let left = |bytes, lines, n_rest| {
        let mut position = Position { bytes, lines, mark: None };
        Taken::open(keep.clone(), &kind, &mut position, n_rest).unwrap().1
    };
    assert_eq!(left(0, 0, 0), Left { n_lost: Some(0), n_again: 2, n_open: 3 });
    assert_eq!(left(4, 1, 0), Left { n_lost: Some(0), n_again: 1, n_open: 3 });
    assert_eq!(left(4, 1, 2), Left { n_lost: Some(0), n_again: 1, n_open: 3 });
    // The process had stopped.
    assert_eq!(left(8, 2, 3), Left { n_lost: Some(0), n_again: 0, n_open: 0 });
    fs::remove_dir_all(&keep.folder).unwrap();
    assert_eq!(left(4, 1, 0), Left { n_lost: None, n_again: 0, n_open: 0 });
}
