//! The inputs of the jobs, and their datasets from a pipe.

use std::fs;
use std::io::Write;
use std::sync::LazyLock;

use corpus::ledger::MapperCounts;
use dataset::manifest::Ledger;
use program::hadoop::partition;
use synthetic as made_up;
use tests::lines::ended_by;
use tests::pipe::Pipe;

use crate::left_behind::MARKED;

/// Files, and the result of `mapper | sort | reducer` and `merge` for all of them.
pub struct Given {
    pub files: Vec<(&'static str, Vec<u8>)>,
    pub counts: MapperCounts,
    pub ledger: Ledger,
    pub dataset: Vec<u8>,
}

/// Everything that can occur in a file of reviews, in several files.
pub static WHOLE: LazyLock<Given> = LazyLock::new(|| {
    let [windows, unix, zipped, zipped_2] = [(3000, 1), (1500, 2), (1000, 3), (1000, 4)].map(|(n, seed)| {
        let mut lines = Vec::new();
        made_up::write(n, seed, &mut lines).unwrap();
        lines
    });
    let mark = "\u{feff}".as_bytes();
    // Longer than a block, so that one of its lines, whose ends are two bytes, spans two blocks.
    let windows = [mark, &ended_by(&windows, b"\r\n")].concat();
    let unix = [mark, &unix, MARKED.as_bytes()].concat();
    let unusual = [all_characters(), review(&"long ".repeat(200_000)), zipped_2].concat();
    let files = vec![
        ("windows.json", windows.clone()),
        ("unix.json", unix.clone()),
        ("zipped.json.gz", gzipped(&zipped)),
        ("unusual.json.bz2", bzipped(&unusual)),
    ];
    given(files, &[windows, unix, zipped, unusual].concat())
});

/// Enough for six reducers of at least 500 kB, in one file.
pub static MANY: LazyLock<Given> = LazyLock::new(|| {
    let mut lines = Vec::new();
    made_up::write(30_000, 5, &mut lines).unwrap();
    given(vec![("many.json", lines.clone())], &lines)
});

/// Number of partitions for [`FEW`].
pub const FEW_PARTITIONS: u32 = 3;

/// A few texts, none of which belongs to the last partition.
pub static FEW: LazyLock<Given> = LazyLock::new(|| {
    let texts = (b'a'..=b'z').map(|letter| format!("works {0}{0}", char::from(letter)));
    let lines: String = texts
        .filter(|text| partition(text.as_bytes(), FEW_PARTITIONS) != FEW_PARTITIONS - 1)
        .map(|text| String::from_utf8(review(&text)).unwrap())
        .collect();
    given(vec![("few.json", lines.clone().into_bytes())], lines.as_bytes())
});

/// With PROVE=1 a shard that exceeds the buffers of the system; otherwise one review.
pub static TALL: LazyLock<Given> = LazyLock::new(|| {
    let n = if tests::prove() { 1_000_000 } else { 1 };
    let lines: Vec<u8> = (0..n).flat_map(|n| review(&word_of(n))).collect();
    given(vec![("tall.json", lines.clone())], &lines)
});

/// A distinct word for each number, in an incompressible order.
fn word_of(number: u32) -> String {
    let mixed = u64::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

fn given(files: Vec<(&'static str, Vec<u8>)>, raw: &[u8]) -> Given {
    let folder = tempfile::tempdir().unwrap();
    let dataset = Pipe::default().dataset(raw, folder.path());
    let manifest = fs::read(dataset.with_extension("manifest.json")).unwrap();
    let manifest: dataset::manifest::DatasetManifest = serde_json::from_slice(&manifest).unwrap();
    let ledger = manifest.seal.ledger;
    Given { files, counts: ledger.mapper.unwrap(), ledger, dataset: fs::read(dataset).unwrap() }
}

/// A line with this text.
fn review(text: &str) -> Vec<u8> {
    let review = serde_json::json!({ "reviewText": text, "overall": 5 });
    format!("{review}\n").into_bytes()
}

/// All characters, unescaped if JSON allows it, in two lines because one would be too long; then the characters
/// of the Basic Multilingual Plane again, as `\uXXXX` escapes.
fn all_characters() -> Vec<u8> {
    let all = |from: u32, to: u32| (from..=to).filter_map(char::from_u32).collect::<String>();
    let mut lines = [review(&all(0, 0x2_ffff)), review(&all(0x3_0000, 0x10_ffff))].concat();
    let escapes: String = (0..=0xffff_u32).map(|unit| format!("\\u{unit:04x}")).collect();
    lines.extend_from_slice(format!("{{\"overall\": 1, \"reviewText\": \"{escapes}\"}}\n").as_bytes());
    lines
}

/// Two members, as in `cat a.gz b.gz`.
fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let (one, other) = bytes.split_at(bytes.len() / 2);
    let members = [one, other].map(|bytes| {
        let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
        let mut member = vec![0; compressor.gzip_compress_bound(bytes.len())];
        let length = compressor.gzip_compress(bytes, &mut member).unwrap();
        member.truncate(length);
        member
    });
    members.concat()
}

fn bzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
