//! Tests of sequences.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use ::tests::compressed::gzip;
use corpus::encoding::UTF_8;
use corpus::lines::LINE_BYTES_MAX;
use store::S3Options;

use super::*;

mod followed;
mod killed;

fn options(input: &std::path::Path, follows: bool) -> SequenceOptions {
    let inputs = vec![input.to_str().unwrap().to_owned()];
    SequenceOptions {
        inputs,
        s3: S3Options::default(),
        encoding: UTF_8,
        follows,
        chunk_bytes: 16,
        keep: None,
    }
}

fn read_all(options: &SequenceOptions, place: &mut Place) -> Vec<u8> {
    let (mut all, before) = (Vec::new(), place.clone());
    let stop = AtomicBool::new(false);
    let pass = of_lines(|chunk| {
        all.extend_from_slice(&chunk.lines);
        place.pass(&chunk);
        true
    });
    read_sequence(options, &before, &stop, pass).unwrap();
    all
}

/// Passes lines on. Nothing else is expected.
fn of_lines(mut pass: impl FnMut(Chunk) -> bool) -> impl FnMut(Passed) -> bool {
    move |passed| match passed {
        Passed::Lines(chunk) => pass(chunk),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_place_continues_behind_the_last_line_of_each_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "one\ntwo\nthree\n").unwrap();
    fs::write(folder.path().join("b"), "four\nfive").unwrap();
    let options = options(folder.path(), false);
    let mut place = Place::default();
    assert_eq!(read_all(&options, &mut place), b"one\ntwo\nthree\nfour\nfive");
    let lines: Vec<u64> = place.sources.values().map(|position| position.lines).collect();
    assert_eq!(lines, [3, 2]);
    assert_eq!(read_all(&options, &mut place), b"");
    let mut file = fs::OpenOptions::new().append(true).open(folder.path().join("a")).unwrap();
    file.write_all(b"six\n").unwrap();
    fs::write(folder.path().join("c"), "seven\n").unwrap();
    assert_eq!(read_all(&options, &mut place), b"six\nseven\n");
}

#[test]
fn a_place_in_utf_16_continues_behind_its_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    let encoded = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    fs::write(&path, encoded("\u{feff}one\n")).unwrap();
    let mut place = Place::default();
    read_all(&options(&path, false), &mut place);
    fs::write(&path, encoded("\u{feff}one\ntwo\n")).unwrap();
    assert_eq!(read_all(&options(&path, false), &mut place), b"two\n");
}

#[test]
fn each_chunk_is_a_place_to_continue_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    let text: String = (0..3000).map(|line| format!("line {line} of the text\n")).collect();
    fs::write(&path, &text).unwrap();
    let options = SequenceOptions { chunk_bytes: 1000, ..options(&path, false) };
    let stop = AtomicBool::new(false);
    let mut chunks = Vec::new();
    let pass = of_lines(|chunk| {
        chunks.push(chunk);
        true
    });
    read_sequence(&options, &Place::default(), &stop, pass).unwrap();
    let mut place = Place::default();
    place.pass(&chunks[0]);
    let rest = read_all(&options, &mut place);
    assert_eq!([&chunks[0].lines[..], &rest].concat(), text.as_bytes());
    assert!(chunks.iter().all(|chunk| chunk.lines.ends_with(b"\n")));
}

#[test]
fn a_folder_that_is_followed_passes_on_complete_lines_as_they_come() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let options = options(folder.path(), true);
    let stop = AtomicBool::new(false);
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            // Nothing is passed on with the end of a file.
            let pass = of_lines(|chunk| chunk.lines.is_empty() || sender.send(chunk.lines).is_ok());
            read_sequence(&options, &Place::default(), &stop, pass).unwrap();
        });
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"one\n");
        file.write_all(b"o\n").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"two\n");
        fs::write(folder.path().join("next"), "three\n").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"three\n");
        stop.store(true, Relaxed);
    });
}

#[test]
fn a_file_that_vanishes_after_it_was_found_is_skipped_if_it_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    // The first file is listed and cannot be found; the last one is found and cannot be opened.
    std::os::unix::fs::symlink("nowhere", folder.path().join("a")).unwrap();
    fs::write(folder.path().join("b"), "one\n").unwrap();
    fs::write(folder.path().join("c"), "two\n").unwrap();
    let stop = AtomicBool::new(false);
    let mut lines = Vec::new();
    let pass = of_lines(|chunk| {
        lines.extend(chunk.lines);
        let _ = fs::remove_file(folder.path().join("c"));
        stop.store(true, Relaxed);
        true
    });
    read_sequence(&options(folder.path(), true), &Place::default(), &stop, pass).unwrap();
    assert_eq!(lines, b"one\n");
    let options = options(folder.path(), false);
    assert!(read_sequence(&options, &Place::default(), &stop, |_| true).is_err());
}

/// A named pipe.
fn pipe(path: &Path) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn a_pipe_passes_lines_on_when_its_writer_pauses_and_keeps_the_rest_of_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    pipe(&path);
    let keep = Some(Keep::in_folder(folder.path().join("kept")));
    let options = SequenceOptions { keep, ..options(&path, false) };
    let stop = AtomicBool::new(false);
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut place = Place::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            let pass = of_lines(|chunk| sender.send(chunk).is_ok());
            read_sequence(&options, &Place::default(), &stop, pass).unwrap();
            drop(sender);
        });
        let mut writer = fs::OpenOptions::new().write(true).open(&path).unwrap();
        writer.write_all(b"one two\nthr").unwrap();
        let chunk = receiver.recv().unwrap();
        assert_eq!((&chunk.lines[..], chunk.n_lines), (&b"one two\n"[..], 1));
        place.pass(&chunk);
        stop.store(true, Relaxed);
        place.pass(&receiver.recv().unwrap());
    });
    assert_eq!(place.rest, b"thr");
    assert_eq!(place.sources.values().next(), Some(&Position { bytes: 8, lines: 1, mark: None }));
    thread::scope(|scope| {
        scope.spawn(|| fs::write(&path, "ee\nfour\n").unwrap());
        assert_eq!(read_all(&options, &mut place), b"three\nfour\n");
    });
    assert_eq!(place.sources.values().next(), Some(&Position { bytes: 19, lines: 3, mark: None }));
}

#[test]
fn a_file_that_is_shorter_than_its_place_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    fs::write(&path, "one\ntwo\n").unwrap();
    let options = options(&path, false);
    let mut place = Place::default();
    read_all(&options, &mut place);
    fs::write(&path, "one\n").unwrap();
    let stop = AtomicBool::new(false);
    let error = read_sequence(&options, &place, &stop, |_| true).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "lines: found 4 bytes, expected at least 8, which an earlier process read; pass the same input"
        ),
        "{error}"
    );
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error_behind_its_lines() {
    for (bytes, expected) in [(b"line\n".repeat(400_000), 2_000_000), (gzip(&random(2_000_000)), 0)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let expected = if expected == 0 { bytes.len() } else { expected };
        fs::write(&path, bytes).unwrap();
        let options = SequenceOptions { chunk_bytes: 1000, ..options(&path, false) };
        let stop = AtomicBool::new(false);
        let mut n_passed = 0;
        let pass = of_lines(|chunk| {
            if n_passed == 0 {
                File::options().write(true).open(&path).unwrap().set_len(1_200_001).unwrap();
            }
            n_passed += chunk.lines.len();
            true
        });
        let error = read_sequence(&options, &Place::default(), &stop, pass).unwrap_err();
        let found =
            format!("found 1200001 bytes, expected {expected}; do not change the file while it is read");
        assert!(error.to_string().ends_with(&found), "{error}");
        assert!(n_passed > 200_000 && program::exit::Fails::exit(&error) == program::exit::Exit::Io);
    }
}

/// Lines that are hardly compressed.
fn random(bytes: u64) -> Vec<u8> {
    let mut state = 7_u64;
    let byte = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let byte = (state >> 56) as u8;
        if byte.is_multiple_of(50) { b'\n' } else { byte }
    };
    (0..bytes).map(byte).collect()
}

#[test]
fn a_line_that_is_too_long_is_skipped_and_counted_in_a_file_and_in_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let (path, fifo) = (folder.path().join("lines"), folder.path().join("pipe"));
    let long = |bytes: usize| [&vec![b'a'; bytes][..], b"\r\n"].concat();
    let text =
        [b"one\n", &long(LINE_BYTES_MAX + 1)[..], b"two\n", &long(3 * LINE_BYTES_MAX), b"three\n"].concat();
    fs::write(&path, [&text[..], &long(LINE_BYTES_MAX)].concat()).unwrap();
    pipe(&fifo);
    let keep = Some(Keep::in_folder(folder.path().join("kept")));
    for (path, keep) in [(&path, None), (&fifo, None), (&fifo, keep)] {
        let options = SequenceOptions { keep, ..options(path, false) };
        let stop = AtomicBool::new(false);
        let (mut lines, mut skipped, mut place, mut n_long) = (Vec::new(), Vec::new(), Place::default(), 0);
        let pass = |passed| match passed {
            Passed::Lines(chunk) => {
                place.pass(&chunk);
                n_long += chunk.n_long;
                lines.extend(chunk.lines);
                true
            }
            Passed::Skipped(error) => {
                skipped.push(error.to_string());
                true
            }
            Passed::Resumed(_) => false,
        };
        thread::scope(|scope| {
            if path == &fifo {
                scope.spawn(|| fs::write(&fifo, [&text[..], &long(LINE_BYTES_MAX)].concat()).unwrap());
            }
            read_sequence(&options, &Place::default(), &stop, pass).unwrap();
        });
        let expected = [b"one\ntwo\nthree\n", &long(LINE_BYTES_MAX)[..]].concat();
        assert!(lines == expected, "{}", lines.len());
        let name = path.display();
        assert_eq!(skipped, [format!("{name}:2: line_too_long"), format!("{name}:4: line_too_long")]);
        let bytes = (text.len() + LINE_BYTES_MAX + 2) as u64;
        assert_eq!(place.sources.values().next(), Some(&Position { bytes, lines: 6, mark: None }));
        assert_eq!(n_long, 2);
    }
}
