//! A partial copy of a shard is read as the shard is, and only those bytes are fetched that the rows need.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use corpus::digest::{Digest, split};
use corpus::record::Votes;
use corpus::settings::Settings;
use dataset::shard::{ShardReader, ShardSize, ShardWriter};
use dataset::{Fetch, Row, RowsSize};

const N_WORDS: u64 = 20_000;
const N_ROWS: u64 = 40_000;
const N_TOKENS: u64 = 60;
const BLOCK_BYTES: u64 = 64 << 10;

/// Copies blocks of a shard into a sparse file.
#[derive(Debug)]
struct Copy {
    from: File,
    to: File,
    fetched: Mutex<Vec<bool>>,
}

impl Copy {
    fn of(shard: &Path, copy: &Path) -> Arc<Self> {
        let (from, to) = (File::open(shard).unwrap(), File::create_new(copy).unwrap());
        let bytes = from.metadata().unwrap().len();
        to.set_len(bytes).unwrap();
        Arc::new(Self { from, to, fetched: Mutex::new(vec![false; bytes.div_ceil(BLOCK_BYTES) as usize]) })
    }

    fn fetched_bytes(&self) -> u64 {
        self.fetched.lock().unwrap().iter().filter(|&&fetched| fetched).count() as u64 * BLOCK_BYTES
    }
}

impl Fetch for Copy {
    fn fetch(&self, range: Range<u64>) -> io::Result<()> {
        let bytes = self.from.metadata()?.len();
        for block in range.start / BLOCK_BYTES..range.end.min(bytes).div_ceil(BLOCK_BYTES) {
            let from = block * BLOCK_BYTES;
            let mut content = vec![0; BLOCK_BYTES.min(bytes - from) as usize];
            self.from.read_exact_at(&mut content, from)?;
            self.to.write_all_at(&content, from)?;
            self.fetched.lock().unwrap()[block as usize] = true;
        }
        Ok(())
    }
}

fn word(number: u64) -> String {
    format!("{number:06}").bytes().map(|digit| char::from(b'a' + digit - b'0')).collect()
}

/// A shard of rows that do not compress well.
fn write_shard(path: &Path) {
    let settings = Settings { max_tokens: 0, ..Settings::default() };
    let size = ShardSize {
        rows: N_ROWS,
        tokens: N_ROWS * N_TOKENS,
        words: N_WORDS,
        word_bytes: (0..N_WORDS).map(|number| word(number).len() as u64).sum(),
    };
    let mut shard = ShardWriter::create(path, &settings, size).unwrap();
    (0..N_WORDS).for_each(|number| shard.word(word(number).as_bytes(), 1 + number % 7).unwrap());
    let mut random = 1_u64;
    for number in 0..N_ROWS {
        let tokens = (0..N_TOKENS).map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as u32 % N_WORDS as u32
        });
        let tokens: Vec<u32> = tokens.collect();
        let words: Vec<String> = tokens.iter().map(|&token| word(token.into())).collect();
        let votes = Votes([0, 0, 0, 0, 1]);
        let label = settings.label(votes).unwrap();
        let split = split(words.join(" ").as_bytes());
        shard.row(&Row { hash: number << 40, tokens, votes, label, split, source: 0 }).unwrap();
    }
    shard.finish(Digest::default()).unwrap();
}

#[test]
fn the_rows_of_a_partial_copy_are_those_of_the_shard() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    write_shard(&path);
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes > 4 << 20, "{bytes}");
    let mut whole = ShardReader::open(&path).unwrap();

    let copy_path = folder.path().join("copy.h5");
    let copy = Copy::of(&path, &copy_path);
    let fetch: Arc<dyn Fetch> = copy.clone();
    let mut partial = ShardReader::open_partial(&copy_path, bytes, &fetch).unwrap();
    assert_eq!((partial.size(), partial.digests()), (whole.size(), whole.digests()));
    let opened = copy.fetched_bytes();
    assert!(opened <= 2 << 20, "opening fetched {opened} bytes of {bytes}");

    let (mut row, mut expected) = (Row::default(), Row::default());
    for at in 25_000..25_100 {
        partial.row(at, &mut row).unwrap();
        whole.row(at, &mut expected).unwrap();
        assert_eq!(row, expected);
    }
    let read = copy.fetched_bytes() - opened;
    assert!(0 < read && read <= 2 << 20, "100 rows fetched {read} bytes of {bytes}");

    // What was not fetched is not read as zeros.
    for at in (0..N_ROWS).step_by(1001) {
        partial.row(at, &mut row).unwrap();
        whole.row(at, &mut expected).unwrap();
        assert_eq!(row, expected);
    }
    let size = RowsSize { rows: partial.size().rows, tokens: partial.size().tokens };
    assert_eq!(size, RowsSize { rows: N_ROWS, tokens: N_ROWS * N_TOKENS });
}

#[test]
fn a_damaged_partial_copy_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    write_shard(&path);
    let mut content = fs::read(&path).unwrap();
    let end = content.len() - 100;
    content[end] ^= 1;
    fs::write(&path, &content).unwrap();
    let copy_path = folder.path().join("copy.h5");
    let fetch: Arc<dyn Fetch> = Copy::of(&path, &copy_path);
    let refused = ShardReader::open_partial(&copy_path, content.len() as u64, &fetch).err().unwrap();
    assert!(refused.to_string().contains("does not match its digest"), "{refused}");
}
