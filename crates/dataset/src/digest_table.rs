//! The table of digests: a text that describes the content of a file, chunk by chunk and attribute by
//! attribute.
//!
//! HDF5's checksums cover its metadata and, weakly, each chunk. The table covers all content: the type, shape
//! and filters of each column, the stored bytes of each chunk, and the name, type and value of each
//! attribute. A flipped byte that changes content is therefore always detected. The last line is the digest
//! of the lines before it.

use std::fmt::Write;

use corpus::digest::Digest;

/// The first line, with the version of the table's format.
const HEAD: &str = "sentimill digests 1\n";
const COLUMN: &str = "column ";
const ATTRIBUTE: &str = "attribute ";
const END: &str = "end ";

/// A table during writing, line by line.
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

/// A parsed table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredDigests {
    columns: Vec<(String, Vec<Digest>)>,
    attributes: Vec<(String, Digest)>,
}

impl StoredDigests {
    /// Parses a table. Returns `None` if it is damaged or not a table.
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

    /// Removes the column with exactly this description and returns the digests of its chunks.
    pub(crate) fn take_column(&mut self, description: &str) -> Option<Vec<Digest>> {
        let at = self.columns.iter().position(|(listed, _)| listed == description)?;
        Some(self.columns.remove(at).1)
    }

    /// The digest of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<Digest> {
        self.attributes.iter().find(|(listed, _)| listed == name).map(|&(_, digest)| digest)
    }

    /// Number of columns that have not been removed.
    pub(crate) fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// Number of attributes.
    pub(crate) fn n_attributes(&self) -> usize {
        self.attributes.len()
    }
}

/// The description of a column in the table.
pub(crate) fn describe_column(name: &str, element: &str, shape: &[usize], chunk: &[usize]) -> String {
    format!("{name} {element} shape {shape:?} chunk {chunk:?} shuffle deflate fletcher32")
}

/// The digest of an attribute: the name of its type, a zero byte, its value as stored.
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
    fn a_table_survives_the_round_trip() {
        let mut digests = StoredDigests::parse(&table()).unwrap();
        assert_eq!(digests.attribute("keep"), Some(Digest(2)));
        assert_eq!(digests.attribute("other"), None);
        let description = describe_column("label", "u8", &[3], &[3]);
        assert_eq!(digests.take_column(&description), Some(vec![Digest(1)]));
        assert_eq!(digests.take_column(&description), None);
    }

    #[test]
    fn every_flipped_byte_and_every_cut_of_a_table_is_detected() {
        let table = table();
        for at in 0..table.len() {
            let mut flipped = table.clone();
            flipped[at] ^= 0x10;
            assert_eq!(StoredDigests::parse(&flipped), None, "byte {at}");
            assert_eq!(StoredDigests::parse(&table[..at]), None, "cut at {at}");
        }
    }
}
