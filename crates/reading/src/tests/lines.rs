//! Ranges of plain files, streams, and the end of a reading.

use std::mem;
use std::process::Command;
use std::sync::Barrier;
use std::thread;

use ::tests::compressed::{gzip, zstd};
use program::exit::Exit;
use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn ranges_give_the_lines_of_a_sequential_reader(
        contents in prop::collection::vec(texts(), 1..4),
        range_bytes in 1..40_u64,
        line_bytes_max in 0..12_usize,
        threads in 1..4_usize,
    ) {
        let names = ["a", "b", "c"];
        let files: Vec<_> = names.iter().zip(&contents).map(|(name, content)| (*name, &content[..])).collect();
        let folder = folder(&files);
        let options = ReadingOptions { line_bytes_max, ..options(threads) };
        let reading = Reading::start_with(all_of(&folder), &options, range_bytes).unwrap();
        let contents: Vec<_> = contents.iter().map(|content| &content[..]).collect();
        prop_assert_eq!(read(&reading, threads).unwrap(), naive(&contents, line_bytes_max));
        prop_assert_eq!(reading.bytes(), Some(contents.concat().len() as u64));
        prop_assert_eq!(Some(reading.bytes_read()), reading.bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn compressed_files_and_plain_ones_give_the_same_lines(
        contents in prop::collection::vec((0..4_usize, texts(), 1..3000_usize), 1..8),
        line_bytes_max in 0..12_usize,
        threads in 1..4_usize,
    ) {
        let contents: Vec<_> = contents.iter().map(|(by, text, times)| (*by, text.repeat(*times))).collect();
        let names: Vec<_> = (0..contents.len()).map(|number| number.to_string()).collect();
        let files: Vec<_> = contents.iter().map(|(by, content)| compressed(*by, content)).collect();
        let named: Vec<_> = names.iter().zip(&files).map(|(name, file)| (name.as_str(), &file[..])).collect();
        let folder = folder(&named);
        let options = ReadingOptions { line_bytes_max, ..options(threads) };
        let reading = Reading::start_with(all_of(&folder), &options, 1000).unwrap();
        let contents: Vec<_> = contents.iter().map(|(_, content)| &content[..]).collect();
        prop_assert!(read(&reading, threads).unwrap() == naive(&contents, line_bytes_max));
        prop_assert_eq!(Some(reading.bytes_read()), reading.bytes());
    }
}

#[test]
fn a_line_over_many_ranges_is_read_once() {
    let content = [b"a\n".repeat(100), b"x".repeat(100_000), b"\nb\r\n".repeat(100)].concat();
    let folder = folder(&[("a", &content)]);
    for line_bytes_max in [1000, 1_000_000] {
        let options = ReadingOptions { line_bytes_max, ..options(3) };
        let reading = Reading::start_with(all_of(&folder), &options, 64).unwrap();
        assert_eq!(read(&reading, 3).unwrap(), naive(&[&content], line_bytes_max));
        assert_eq!(reading.bytes_read(), content.len() as u64);
    }
}

#[test]
fn ranges_are_numerous_enough_for_all_threads_and_not_tiny() {
    assert_eq!(ranges::range_bytes(1 << 40, 8), 16 << 20);
    assert_eq!(ranges::range_bytes(64 << 20, 8), 1 << 20);
    assert_eq!(ranges::range_bytes(0, 8), 256 << 10);
}

#[test]
fn more_batches_than_the_queue_holds_are_passed_on() {
    let line = [b"x".repeat(99), b"\n".to_vec()].concat();
    let (content, blank) = (line.repeat(200_000), b"\n".repeat(1_000_000));
    let folder = folder(&[("a", &gzip(&content)), ("b", &zstd(&blank))]);
    let reading = Reading::start(all_of(&folder), &options(2)).unwrap();
    assert!(read(&reading, 2).unwrap() == naive(&[&content, &blank], 1000));
}

#[test]
fn a_damaged_stream_is_one_error_that_stops_all_threads() {
    let good = gzip(&b"good\n".repeat(1_000_000));
    let folder =
        folder(&[("a.gz", &good), ("b.gz", &good[..good.len() - 9]), ("c.gz", &good), ("d", b"x\n")]);
    let error = refused(all_of(&folder), &options(3));
    assert_eq!(error.exit(), Exit::BadInput);
    let message = program::exit::chain(&error);
    assert!(message.contains("b.gz: cannot read it: the gzip member at byte 0 is cut off"), "{message}");
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let folder = folder(&[("a", &b"line\n".repeat(200_000))]);
    let reading = Reading::start(all_of(&folder), &options(2)).unwrap();
    File::options().write(true).open(folder.path().join("a")).unwrap().set_len(600_001).unwrap();
    let errors = read(&reading, 2).unwrap_err();
    let message = program::exit::chain(&errors[0]);
    assert!(
        message.ends_with("found 600001 bytes, expected 1000000; do not change the file while it is read")
    );
    assert_eq!(errors[0].exit(), Exit::Io);
}

#[test]
fn an_error_of_a_visitor_stops_all_threads_and_is_returned() {
    #[derive(Debug)]
    struct Enough;
    impl From<Error> for Enough {
        fn from(error: Error) -> Self {
            panic!("{error}");
        }
    }
    let folder = folder(&[("a", &b"line\n".repeat(200_000)), ("b", &gzip(&b"line\n".repeat(2_000_000)))]);
    let reading = Reading::start(all_of(&folder), &options(2)).unwrap();
    // Both have a line before either continues; otherwise one could read all lines before the other starts.
    let both = Barrier::new(2);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut is_first = true;
            reading.each(|_| {
                if mem::take(&mut is_first) {
                    both.wait();
                }
                Ok::<_, Enough>(())
            })
        });
        let ended = reading.each(|_| {
            both.wait();
            Err(Enough)
        });
        assert!(matches!(ended, Err(Enough)));
        other.join().unwrap().unwrap();
    });
    assert_eq!(read(&reading, 2).unwrap(), []);
}

#[test]
fn a_panic_of_a_visitor_stops_all_threads() {
    let folder = folder(&[("b", &gzip(&b"line\n".repeat(2_000_000)))]);
    let reading = Reading::start(all_of(&folder), &options(2)).unwrap();
    thread::scope(|scope| {
        let one = scope.spawn(|| reading.each(|_| -> Result<(), Error> { panic!("as this test wants") }));
        assert!(one.join().is_err());
    });
    assert_eq!(read(&reading, 1).unwrap(), []);
}

#[test]
fn stopped_reading_returns_while_a_pipe_is_silent() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reading = Reading::start(found(&[pipe]).unwrap(), &options(1)).unwrap();
    assert_eq!(reading.bytes(), None);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| reading.each(|_| Ok::<_, Error>(())));
        reading.stop();
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn a_pipe_is_read_and_inflated() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reading = Reading::start(found(std::slice::from_ref(&pipe)).unwrap(), &options(2)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| std::fs::write(&pipe, zstd(b"one\ntwo")).unwrap());
        assert_eq!(read(&reading, 2).unwrap(), naive(&[b"one\ntwo"], 9));
    });
}

#[test]
fn dropping_a_reading_ends_its_threads() {
    let folder = folder(&[("a", &zstd(&b"line\n".repeat(10_000_000))), ("b", &zstd(b""))]);
    let reading = Reading::start(all_of(&folder), &options(2)).unwrap();
    let state = Arc::clone(&reading.state);
    drop(reading);
    // The threads share the state until they have ended. This loop would never end if they did not.
    while Arc::strong_count(&state) > 1 {
        thread::yield_now();
    }
}
