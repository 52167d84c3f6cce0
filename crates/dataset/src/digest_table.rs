//! The table of digests: a text that says what a file of ours holds, chunk by chunk and attribute by attribute.
//!
//! Checksums of HDF5's own cover its metadata and, weakly, each chunk. The table covers what matters to us: the
//! type, shape and filters of each column, the stored bytes of each chunk, and each attribute's name, type and
//! value, so that no flipped byte that changes content goes unnoticed. Its last line is the digest of those before.

use std::fmt::Write;

use corpus::digest::Digest;

/// The first line; its number is that of the table's own format.
const HEAD: &str = "sentimill digests 1\n";
const COLUMN: &str = "column ";
const ATTRIBUTE: &str = "attribute ";
const END: &str = "end ";

/// A table as it is written, line by line.
pub(crate) struct DigestTable {
    text: String,
}

impl Default for DigestTable {
    fn default() -> Self {
        Self { text: HEAD.to_owned() }
    }
}

impl DigestTable {
    /// Adds a column: its description and the digests of its chunks in order.
    pub(crate) fn add_column(&mut self, description: &str, chunks: &[Digest]) {
        writeln!(self.text, "{COLUMN}{description}").expect("a String takes all");
        for digest in chunks {
            writeln!(self.text, "{digest}").expect("a String takes all");
        }
    }

    /// Adds an attribute: its name and the digest of its type and value.
    pub(crate) fn add_attribute(&mut self, name: &str, digest: Digest) {
        writeln!(self.text, "{ATTRIBUTE}{name} {digest}").expect("a String takes all");
    }

    /// The bytes to store.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let digest = Digest::of(self.text.as_bytes());
        writeln!(self.text, "{END}{digest}").expect("a String takes all");
        self.text.into_bytes()
    }
}

/// What a table says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Digests {
    columns: Vec<(String, Vec<Digest>)>,
    attributes: Vec<(String, Digest)>,
}

impl Digests {
    /// Reads a table; `None` where it is damaged or none.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (body, end) = text.split_at_checked(text.trim_end_matches('\n').rfind('\n')? + 1)?;
        let digest = Digest::from_hex(end.strip_prefix(END)?.strip_suffix('\n')?)?;
        if Digest::of(body.as_bytes()) != digest {
            return None;
        }
        let mut digests = Self { columns: Vec::new(), attributes: Vec::new() };
        for line in body.strip_prefix(HEAD)?.lines() {
            if let Some(description) = line.strip_prefix(COLUMN) {
                digests.columns.push((description.to_owned(), Vec::new()));
            } else if let Some(attribute) = line.strip_prefix(ATTRIBUTE) {
                let (name, hex) = attribute.rsplit_once(' ')?;
                digests.attributes.push((name.to_owned(), Digest::from_hex(hex)?));
            } else {
                digests.columns.last_mut()?.1.push(Digest::from_hex(line)?);
            }
        }
        Some(digests)
    }

    /// The digests of the chunks of the column with exactly this description; each can be taken once.
    pub(crate) fn take_column(&mut self, description: &str) -> Option<Vec<Digest>> {
        let at = self.columns.iter().position(|(listed, _)| listed == description)?;
        Some(self.columns.remove(at).1)
    }

    /// The digest of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<Digest> {
        self.attributes.iter().find(|(listed, _)| listed == name).map(|&(_, digest)| digest)
    }

    /// The number of columns that have not been taken.
    pub(crate) fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// The number of attributes listed.
    pub(crate) fn n_attributes(&self) -> usize {
        self.attributes.len()
    }
}

/// What the table says of a column beside its chunks.
pub(crate) fn describe_column(name: &str, element: &str, shape: &[usize], chunk: &[usize]) -> String {
    format!("{name} {element} shape {shape:?} chunk {chunk:?} shuffle deflate fletcher32")
}

/// The digest of an attribute: its type's name, a zero byte, its value as stored.
pub(crate) fn attribute_digest(dtype: &str, value: &[u8]) -> Digest {
    Digest::of(&[dtype.as_bytes(), b"\0", value].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Vec<u8> {
        let mut table = DigestTable::default();
        table.add_column("label u8 shape [3] chunk [3] shuffle deflate fletcher32", &[Digest(1)]);
        table.add_attribute("keep", Digest(2));
        table.finish()
    }

    #[test]
    fn a_table_reads_back() {
        let mut digests = Digests::parse(&table()).unwrap();
        assert_eq!(digests.attribute("keep"), Some(Digest(2)));
        assert_eq!(digests.attribute("other"), None);
        let description = describe_column("label", "u8", &[3], &[3]);
        assert_eq!(digests.take_column(&description), Some(vec![Digest(1)]));
        assert_eq!(digests.take_column(&description), None);
    }

    #[test]
    fn every_flipped_byte_and_every_cut_of_a_table_is_noticed() {
        let table = table();
        for at in 0..table.len() {
            let mut flipped = table.clone();
            flipped[at] ^= 0x10;
            assert_eq!(Digests::parse(&flipped), None, "byte {at}");
            assert_eq!(Digests::parse(&table[..at]), None, "cut at {at}");
        }
    }
}
