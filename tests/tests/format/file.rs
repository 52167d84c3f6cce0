//! Formats a file as the document lists it, and verifies every value and chunk against the table of digests.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use hdf5::types::{FixedUnicode, TypeDescriptor};
use xxhash_rust::xxh3::xxh3_128;

/// Longer than any text in the example's attributes.
type AttributeText = FixedUnicode<256>;

/// The column at which the document describes what a digest covers, after the longest attribute line.
const COVERED_AT: usize = 62;

#[derive(Default)]
pub struct File {
    names: Vec<String>,
    columns: BTreeMap<String, Column>,
    texts: BTreeMap<String, String>,
    table: String,
}

struct Column {
    element: String,
    shape: Vec<usize>,
    values: Vec<u64>,
    stored: Vec<u8>,
}

impl File {
    /// Reads everything that the table of digests lists.
    pub fn open(path: &Path) -> Self {
        let file = hdf5::File::open(path).unwrap();
        let table = String::from_utf8(file.dataset("digests").unwrap().read_raw().unwrap()).unwrap();
        let (body, end) = table.split_at(table.rfind("end ").unwrap());
        assert_eq!(end, format!("end {}\n", hex128(body.as_bytes())));
        let mut opened = Self::default();
        let mut lines = body.lines();
        for line in &mut lines {
            let covered = match line.split(' ').collect::<Vec<_>>()[..] {
                ["attribute", name, digest] => opened.read_attribute(&file, name, digest),
                ["column", name, ..] => opened.read_column(&file, path, name, line),
                [digest] => opened.take_digest(digest),
                _ => {
                    assert_eq!(line, "sentimill digests 1");
                    String::new()
                }
            };
            let covering = format!("{line:<COVERED_AT$}{covered}");
            writeln!(opened.table, "{}", covering.trim_end()).unwrap();
        }
        opened.table.push_str(end);
        opened
    }

    /// Reads one column of a file without a table.
    pub fn open_column(path: &Path, name: &str) -> Self {
        let mut opened = Self::default();
        let column = Column::read(&hdf5::File::open(path).unwrap(), path, name);
        opened.add_column(name, column);
        opened
    }

    /// The value of an attribute, which must have this digest.
    fn read_attribute(&mut self, file: &hdf5::File, name: &str, digest: &str) -> String {
        let attribute = file.attr(name).unwrap();
        let (dtype, shown, stored) = match attribute.dtype().unwrap().to_descriptor().unwrap() {
            TypeDescriptor::FixedUnicode(length) => {
                let text = attribute.read_scalar::<AttributeText>().unwrap().as_str().to_owned();
                self.texts.insert(name.to_owned(), text.clone());
                let stored = if text.is_empty() { "\0" } else { &text };
                (format!("text {length}"), format!("{text:?}"), stored.as_bytes().to_vec())
            }
            _ => {
                let number: u64 = attribute.read_scalar().unwrap();
                ("u64".to_owned(), number.to_string(), number.to_le_bytes().to_vec())
            }
        };
        assert_eq!(digest, hex128(&[dtype.as_bytes(), b"\0", &stored].concat()), "{name}");
        shown
    }

    /// Reads a column, which must match its line.
    fn read_column(&mut self, file: &hdf5::File, path: &Path, name: &str, line: &str) -> String {
        let column = Column::read(file, path, name);
        let Column { element, shape, .. } = &column;
        let layout = format!("shape {shape:?} chunk {shape:?} shuffle deflate fletcher32");
        assert_eq!(line, format!("column {name} {element} {layout}"));
        self.add_column(name, column);
        String::new()
    }

    fn add_column(&mut self, name: &str, column: Column) {
        self.names.push(name.to_owned());
        self.columns.insert(name.to_owned(), column);
    }

    /// The elements of the last column read, whose only chunk must have this digest.
    fn take_digest(&self, digest: &str) -> String {
        let name = self.names.last().unwrap();
        assert_eq!(digest, hex128(&self.columns[name].stored), "{name}");
        self.columns[name].shown(name)
    }

    /// The table of digests, with what each digest covers.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Names, types and elements of all columns, in the order of the table.
    pub fn listing(&self) -> String {
        let lines = self.names.iter().map(|name| {
            let column = &self.columns[name];
            let typed = format!("{} {:?}", column.element, column.shape);
            format!("{name:<19}{typed:<11}{}\n", column.shown(name))
        });
        lines.collect()
    }

    pub fn values(&self, name: &str) -> &[u64] {
        &self.columns[name].values
    }

    /// The text of an attribute.
    pub fn text(&self, name: &str) -> &str {
        &self.texts[name]
    }

    /// The words of a group, in order.
    pub fn words(&self, group: &str) -> Vec<String> {
        let bytes: Vec<u8> = self.values(&format!("{group}/bytes")).iter().map(|&byte| byte as u8).collect();
        let offsets = self.values(&format!("{group}/offsets"));
        let words = offsets.windows(2).map(|ends| bytes[ends[0] as usize..ends[1] as usize].to_vec());
        words.map(|word| String::from_utf8(word).unwrap()).collect()
    }

    /// The tokens of a row.
    pub fn tokens(&self, row: usize) -> &[u64] {
        let offsets = self.values("offsets");
        &self.values("tokens")[offsets[row] as usize..offsets[row + 1] as usize]
    }

    /// The parts of the stored bytes of a column's only chunk.
    pub fn chunk(&self, name: &str) -> String {
        let column = &self.columns[name];
        let n = column.values.len();
        let width = column.element[1..].parse::<usize>().unwrap() / 8;
        let (zlib, checksum) = column.stored.split_at(column.stored.len() - 4);
        let (deflated, adler) = zlib[2..].split_at(zlib.len() - 6);
        let mut shuffled = vec![0; n * width];
        libdeflater::Decompressor::new().deflate_decompress(deflated, &mut shuffled).unwrap();
        for (at, value) in column.values.iter().enumerate() {
            let bytes = (0..width).map(|plane| u64::from(shuffled[plane * n + at]) << (8 * plane));
            assert_eq!(bytes.sum::<u64>(), *value);
        }
        assert_eq!(adler, libdeflater::adler32(&shuffled).to_be_bytes());
        assert_eq!(checksum, fletcher32(zlib).to_le_bytes());
        let mut out = String::new();
        let mut line = |bytes: &[u8], meaning: &str| writeln!(out, "{:<88}{meaning}", hex(bytes)).unwrap();
        line(&zlib[..2], "zlib header");
        deflated.chunks(29).for_each(|bytes| line(bytes, "deflate"));
        line(adler, "zlib's Adler-32, big-endian");
        line(checksum, "Fletcher-32, little-endian");
        for (plane, bytes) in shuffled.chunks(n).enumerate() {
            line(bytes, &format!("decompressed: byte {plane} of each element"));
        }
        out + &format!("{:<88}the chunk's digest\n", hex128(&column.stored))
    }
}

impl Column {
    fn read(file: &hdf5::File, path: &Path, name: &str) -> Self {
        let dataset = file.dataset(name).unwrap();
        let TypeDescriptor::Unsigned(size) = dataset.dtype().unwrap().to_descriptor().unwrap() else {
            panic!("{name} is not of unsigned integers");
        };
        let chunk = dataset.chunk_info(0).unwrap();
        let (from, bytes) = (chunk.addr as usize, chunk.size as usize);
        Self {
            element: format!("u{}", 8 * size as usize),
            shape: dataset.shape(),
            values: dataset.read_raw().unwrap(),
            stored: std::fs::read(path).unwrap()[from..from + bytes].to_vec(),
        }
    }

    fn shown(&self, name: &str) -> String {
        let number = |value: &u64| if name == "hash" { format!("{value:016x}") } else { value.to_string() };
        let numbers = |values: &[u64]| values.iter().map(number).collect::<Vec<_>>().join(" ");
        if name.ends_with("/bytes") {
            let bytes = self.values.iter().map(|&byte| byte as u8).collect();
            return format!("{:?}", String::from_utf8(bytes).unwrap());
        }
        match self.shape.get(1) {
            Some(&width) => self.values.chunks(width).map(numbers).collect::<Vec<_>>().join(" | "),
            None => numbers(&self.values),
        }
    }
}

/// As the document defines it: sums without a bound, then reduced to 16 bits.
fn fletcher32(bytes: &[u8]) -> u32 {
    let (mut sum, mut sum_of_sums) = (0u64, 0u64);
    for word in bytes.chunks(2) {
        sum += u64::from(word[0]) * 256 + u64::from(*word.get(1).unwrap_or(&0));
        sum_of_sums += sum;
    }
    let folded = |sum: u64| if sum == 0 { 0 } else { (sum - 1) % 65_535 + 1 };
    (folded(sum_of_sums) << 16 | folded(sum)) as u32
}

/// XXH3-128 in 32 digits.
pub fn hex128(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

/// Bytes in two digits each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
