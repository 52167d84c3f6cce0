//! Finds the schema, the dictionary batches and the record batches of an Arrow file or stream. Only metadata are
//! read. Lengths are compared with the size of the file before memory is allocated.

use std::fs::File;
use std::os::unix::fs::FileExt;

use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{Message, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::Schema;

use super::ReadFailure;

/// The first and the last bytes of a file. In the file, padding to 8 bytes follows the first ones.
pub const FILE_MAGIC: &[u8; 6] = b"ARROW1";
/// The first bytes of each message, before the length of its metadata.
pub const CONTINUATION: [u8; 4] = [0xff; 4];

/// Length of [`CONTINUATION`] and of the length of the metadata.
const PREFIX_BYTES: u64 = 8;
/// Length of the footer's length and of the magic behind it.
const TAIL_BYTES: u64 = 10;
/// Maximum size of the metadata of a message or of a footer.
const METADATA_BYTES_MAX: u64 = 64 << 20;

/// The positions of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Offset of the metadata, without their prefix.
    metadata_at: u64,
    metadata_bytes: u64,
    /// Offset of the body.
    pub body_at: u64,
    pub body_bytes: u64,
}

/// The messages of a file.
pub struct Contents {
    pub schema: Schema,
    pub version: MetadataVersion,
    pub dictionaries: Vec<Block>,
    pub batches: Vec<FoundBatch>,
}

/// A record batch.
pub struct FoundBatch {
    pub block: Block,
    pub n_rows: u64,
    /// Number of dictionary batches before it.
    pub n_dictionaries: usize,
}

/// Finds all messages of a file.
pub fn contents(file: &File) -> Result<Contents, ReadFailure> {
    let bytes = file.metadata()?.len();
    let file = Sized { file, bytes };
    if file.read(0, FILE_MAGIC.len() as u64).is_ok_and(|magic| magic == FILE_MAGIC) {
        file.footer()
    } else {
        file.stream()
    }
}

impl Block {
    /// The size of the message.
    pub fn bytes(&self) -> u64 {
        self.metadata_bytes + self.body_bytes
    }

    /// Reads the metadata, for [`parsed`].
    pub fn metadata(&self, file: &File) -> Result<Vec<u8>, ReadFailure> {
        let mut bytes = vec![0; held(self.metadata_bytes)?];
        file.read_exact_at(&mut bytes, self.metadata_at)?;
        Ok(bytes)
    }
}

/// The message with these metadata.
pub fn parsed(metadata: &[u8]) -> Result<Message<'_>, ReadFailure> {
    root_as_message(metadata).map_err(|error| ReadFailure::Damaged(error.to_string()))
}

/// A file of a known size.
struct Sized<'a> {
    file: &'a File,
    bytes: u64,
}

impl Sized<'_> {
    /// Reads a part of the file.
    fn read(&self, at: u64, bytes: u64) -> Result<Vec<u8>, ReadFailure> {
        self.check(at, bytes)?;
        if bytes > METADATA_BYTES_MAX {
            return Err(ReadFailure::Damaged(format!("its metadata at byte {at} have {bytes} bytes")));
        }
        let mut content = vec![0; held(bytes)?];
        self.file.read_exact_at(&mut content, at)?;
        Ok(content)
    }

    /// Returns an error if a part is not in the file.
    fn check(&self, at: u64, bytes: u64) -> Result<(), ReadFailure> {
        if at.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            let end = self.bytes;
            return Err(ReadFailure::Damaged(format!(
                "{bytes} bytes at byte {at} reach behind its end, byte {end}"
            )));
        }
        Ok(())
    }

    /// The block of the message at this offset and its metadata; `None` at the mark that ends a stream.
    fn message(&self, at: u64) -> Result<Option<(Block, Vec<u8>)>, ReadFailure> {
        let prefix = self.read(at, PREFIX_BYTES)?;
        let (continuation, length) = prefix.split_at(CONTINUATION.len());
        // Before version 0.15, a message began with its length.
        let is_old = continuation != CONTINUATION;
        let length = if is_old { continuation } else { length };
        let length = length.try_into().map_or(-1, i32::from_le_bytes);
        let metadata_bytes =
            u64::try_from(length).map_err(|_| ReadFailure::damaged("a length is negative"))?;
        if metadata_bytes == 0 {
            return Ok(None);
        }
        let metadata_at = at + if is_old { CONTINUATION.len() as u64 } else { PREFIX_BYTES };
        let metadata = self.read(metadata_at, metadata_bytes)?;
        let body_bytes = unsigned(parsed(&metadata)?.bodyLength())?;
        let body_at = metadata_at + metadata_bytes;
        self.check(body_at, body_bytes)?;
        Ok(Some((Block { metadata_at, metadata_bytes, body_at, body_bytes }, metadata)))
    }

    /// The messages of a stream, in order, up to the mark that ends it.
    fn stream(&self) -> Result<Contents, ReadFailure> {
        let mut at = 0;
        let (mut found, mut dictionaries, mut batches) = (None, Vec::new(), Vec::new());
        loop {
            if at == self.bytes {
                return Err(ReadFailure::Unclosed { end: at });
            }
            let Some((block, metadata)) = self.message(at)? else { break };
            let message = parsed(&metadata)?;
            if let Some(schema) = message.header_as_schema() {
                if found.replace((try_fb_to_schema(schema)?, message.version())).is_some() {
                    return Err(ReadFailure::damaged("it has two schemas"));
                }
            } else if let Some(batch) = message.header_as_record_batch() {
                let n_rows = unsigned(batch.length())?;
                batches.push(FoundBatch { block, n_rows, n_dictionaries: dictionaries.len() });
            } else if message.header_as_dictionary_batch().is_some() {
                dictionaries.push(block);
            } else {
                return Err(ReadFailure::Damaged(format!("the message at byte {at} has no batch")));
            }
            at = block.body_at + block.body_bytes;
        }
        let end = at + PREFIX_BYTES;
        if end != self.bytes {
            return Err(ReadFailure::Damaged(format!("bytes follow the end of its stream, byte {end}")));
        }
        let (schema, version) = found.ok_or_else(|| ReadFailure::damaged("it has no schema"))?;
        Ok(Contents { schema, version, dictionaries, batches })
    }

    /// The messages of a file, as listed in its footer.
    fn footer(&self) -> Result<Contents, ReadFailure> {
        let tail_at =
            self.bytes.checked_sub(TAIL_BYTES).ok_or_else(|| ReadFailure::damaged("it has no footer"))?;
        let tail = self.read(tail_at, TAIL_BYTES)?;
        let Some(length) = tail.strip_suffix(FILE_MAGIC) else {
            return Err(ReadFailure::damaged("it ends without its footer"));
        };
        let length = length.try_into().map_or(-1, i32::from_le_bytes);
        let footer_at = u64::try_from(length).ok().and_then(|length| tail_at.checked_sub(length));
        let footer_at =
            footer_at.ok_or_else(|| ReadFailure::damaged("its footer is longer than the file"))?;
        let footer = self.read(footer_at, tail_at - footer_at)?;
        let footer = root_as_footer(&footer).map_err(|error| ReadFailure::Damaged(error.to_string()))?;
        let schema = footer.schema().ok_or_else(|| ReadFailure::damaged("it has no schema"))?;
        let block = |listed: &arrow_ipc::Block| {
            let at = unsigned(listed.offset())?;
            self.message(at)?.ok_or_else(|| ReadFailure::damaged("a listed message is empty"))
        };
        let mut dictionaries = Vec::new();
        for listed in footer.dictionaries().into_iter().flatten() {
            dictionaries.push(block(listed)?.0);
        }
        let mut batches = Vec::new();
        for listed in footer.recordBatches().into_iter().flatten() {
            let (block, metadata) = block(listed)?;
            let batch = parsed(&metadata)?.header_as_record_batch();
            let n_rows =
                unsigned(batch.ok_or_else(|| ReadFailure::damaged("a listed batch is none"))?.length())?;
            batches.push(FoundBatch { block, n_rows, n_dictionaries: dictionaries.len() });
        }
        Ok(Contents { schema: try_fb_to_schema(schema)?, version: footer.version(), dictionaries, batches })
    }
}

/// A number that must not be negative.
pub fn unsigned(number: i64) -> Result<u64, ReadFailure> {
    u64::try_from(number).map_err(|_| ReadFailure::Damaged(format!("it has the length {number}")))
}

/// A size in memory.
pub fn held(bytes: u64) -> Result<usize, ReadFailure> {
    usize::try_from(bytes).map_err(|_| ReadFailure::Large { bytes })
}
