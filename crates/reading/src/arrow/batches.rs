//! Reads the wanted columns of a record batch, and the dictionaries of a file. Sizes are checked before memory is
//! allocated, also the sizes that compressed buffers declare.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::RecordBatchDecoder;
use arrow_ipc::{BodyCompressionBuilder, Buffer, CompressionType, FieldNode, RecordBatchBuilder};
use arrow_schema::{Field, Schema, SchemaRef};
use flatbuffers::FlatBufferBuilder;

use super::ReadFailure;
use super::layout::Layout;
use super::messages::{Block, held, parsed, unsigned};

/// Maximum memory for the columns of a batch, and for all dictionaries of a file.
pub const BYTES_MAX: u64 = 256 << 20;

/// Alignment of buffers, sufficient for every type.
const ALIGNMENT: u64 = 64;
/// Memory of an array in addition to its values.
const ARRAY_BYTES: u64 = 512;

/// The dictionaries of a file, up to a position in it.
#[derive(Debug, Default)]
pub struct Dictionaries {
    by_id: HashMap<i64, Dictionary>,
    /// Number of dictionary batches read.
    n_read: usize,
}

/// The values of a dictionary.
#[derive(Debug, Default)]
pub struct Dictionary {
    /// The values of each of its batches. They are not joined, because a dictionary may grow before each record batch.
    parts: Vec<ArrayRef>,
    /// Number of values up to the end of each part.
    ends: Vec<u64>,
    memory_bytes: u64,
}

/// The dictionary batches between two positions in a file, without those that a later one replaces.
#[derive(Debug)]
pub struct MoreDictionaries {
    by_id: HashMap<i64, MoreValues>,
    n_read: usize,
    /// Memory of all dictionaries while these are read.
    pub memory_bytes: u64,
}

#[derive(Debug, Default)]
struct MoreValues {
    batches: Vec<PlannedBatch>,
    /// Whether they replace the values before them.
    is_new: bool,
    kept_bytes: u64,
}

impl Dictionaries {
    /// Memory of all dictionaries.
    pub fn memory_bytes(&self) -> u64 {
        self.by_id.values().map(|dictionary| dictionary.memory_bytes).sum()
    }

    /// Finds the dictionary batches that precede a record batch and are not read yet. A thread reads record batches in
    /// their order.
    pub fn plan(
        &self,
        file: &File,
        layout: &Layout,
        n_before: usize,
    ) -> Result<MoreDictionaries, ReadFailure> {
        let mut by_id: HashMap<i64, MoreValues> = HashMap::new();
        let (mut kept_bytes, mut body_bytes) = (self.memory_bytes(), 0);
        for block in layout.dictionaries.get(self.n_read..n_before).unwrap_or_default() {
            let Some((id, is_delta, planned)) = planned_dictionary(file, layout, block)? else { continue };
            let more = by_id.entry(id).or_default();
            if !is_delta {
                let before = self.by_id.get(&id).filter(|_| !more.is_new);
                kept_bytes -= more.kept_bytes + before.map_or(0, |before| before.memory_bytes);
                *more = MoreValues { is_new: true, ..MoreValues::default() };
            }
            more.kept_bytes += planned.kept_bytes();
            kept_bytes = within_limit(kept_bytes + planned.kept_bytes())?;
            body_bytes = planned.body_bytes.max(body_bytes);
            more.batches.push(planned);
        }
        let n_read = n_before.max(self.n_read);
        Ok(MoreDictionaries { by_id, n_read, memory_bytes: kept_bytes + body_bytes })
    }

    /// Reads the dictionary batches that were found.
    pub fn advance(
        &mut self,
        file: &File,
        layout: &Layout,
        more: MoreDictionaries,
    ) -> Result<(), ReadFailure> {
        let new = more.by_id.iter().filter(|(_, more)| more.is_new);
        new.for_each(|(id, _)| drop(self.by_id.remove(id)));
        for (id, more) in more.by_id {
            let missing = || ReadFailure::damaged("a dictionary has no column");
            let values = layout.values_of(id).ok_or_else(missing)?;
            let schema = Arc::new(Schema::new(vec![Field::new("", values.clone(), true)]));
            let dictionary = self.by_id.entry(id).or_default();
            for planned in more.batches {
                let kept_bytes = planned.kept_bytes();
                let read = planned.read(file, Arc::clone(&schema), layout)?;
                let values = Arc::clone(read.columns().first().ok_or_else(missing)?);
                dictionary.ends.push(dictionary.n_values() + values.len() as u64);
                dictionary.parts.push(values);
                dictionary.memory_bytes += kept_bytes;
            }
        }
        self.n_read = more.n_read;
        Ok(())
    }

    /// The dictionary with this id, if it has values.
    pub fn get(&self, id: i64) -> Option<&Dictionary> {
        self.by_id.get(&id)
    }
}

impl Dictionary {
    /// Number of values.
    pub fn n_values(&self) -> u64 {
        self.ends.last().copied().unwrap_or_default()
    }

    /// The array that has the value of a key, and the position of the value there.
    pub fn value(&self, key: u64) -> Option<(&dyn Array, usize)> {
        let part = self.ends.partition_point(|&end| end <= key);
        let values = self.parts.get(part)?;
        let start = if part == 0 { 0 } else { self.ends[part - 1] };
        Some((values.as_ref(), usize::try_from(key - start).ok()?))
    }
}

/// A dictionary batch, its id, and whether it adds values to those of the batches before it; `None` if no wanted column
/// has the dictionary.
fn planned_dictionary(
    file: &File,
    layout: &Layout,
    block: &Block,
) -> Result<Option<(i64, bool, PlannedBatch)>, ReadFailure> {
    let metadata = block.metadata(file)?;
    let message = parsed(&metadata)?;
    let batch = message.header_as_dictionary_batch();
    let batch = batch.ok_or_else(|| ReadFailure::damaged("a dictionary batch is none"))?;
    let (Some(_), Some(data)) = (layout.values_of(batch.id()), batch.data()) else { return Ok(None) };
    let columns = ColumnMetadata {
        n_rows: data.length(),
        nodes: data.nodes().into_iter().flatten().copied().collect(),
        buffers: data.buffers().into_iter().flatten().copied().collect(),
        variadic: data.variadicBufferCounts().into_iter().flatten().collect(),
        compression: data.compression().map(|compression| compression.codec()),
    };
    Ok(Some((batch.id(), batch.isDelta(), PlannedBatch::of(file, block, &columns)?)))
}

/// The wanted columns of a record batch.
pub fn planned(file: &File, layout: &Layout, block: &Block) -> Result<PlannedBatch, ReadFailure> {
    let metadata = block.metadata(file)?;
    let batch = parsed(&metadata)?.header_as_record_batch();
    let batch = batch.ok_or_else(|| ReadFailure::damaged("a record batch is none"))?;
    let all_nodes: Vec<FieldNode> = batch.nodes().into_iter().flatten().copied().collect();
    let all_buffers: Vec<Buffer> = batch.buffers().into_iter().flatten().copied().collect();
    let all_variadic: Vec<i64> = batch.variadicBufferCounts().into_iter().flatten().collect();

    let missing = || ReadFailure::damaged("a record batch has fewer columns than the schema");
    let positions = layout.positions(&all_variadic).ok_or_else(missing)?;
    let (mut nodes, mut buffers, mut variadic) = (Vec::new(), Vec::new(), Vec::new());
    for (start, end) in positions {
        nodes.extend(all_nodes.get(start.node..end.node).ok_or_else(missing)?);
        buffers.extend(all_buffers.get(start.buffer..end.buffer).ok_or_else(missing)?);
        variadic.extend(all_variadic.get(start.variadic..end.variadic).ok_or_else(missing)?);
    }
    // The decoder would iterate over rows that no buffer holds.
    if nodes.iter().any(|node: &FieldNode| node.length() != batch.length()) {
        return Err(ReadFailure::damaged("a column has another number of rows than its batch"));
    }
    let compression = batch.compression().map(|compression| compression.codec());
    let columns = ColumnMetadata { n_rows: batch.length(), nodes, buffers, variadic, compression };
    PlannedBatch::of(file, block, &columns)
}

/// Some columns of a batch, as its metadata describe them.
struct ColumnMetadata {
    n_rows: i64,
    nodes: Vec<FieldNode>,
    buffers: Vec<Buffer>,
    variadic: Vec<i64>,
    compression: Option<CompressionType>,
}

/// A batch of a file whose size in memory is known.
#[derive(Debug)]
pub struct PlannedBatch {
    /// The offset of each buffer in the file, and its position in the memory that they share.
    buffers: Vec<(u64, Buffer)>,
    /// The metadata of these columns, with these positions.
    metadata: Vec<u8>,
    /// Size of the buffers in the file.
    body_bytes: u64,
    /// Size of the buffers without compression.
    values_bytes: u64,
    is_compressed: bool,
}

impl PlannedBatch {
    fn of(file: &File, block: &Block, columns: &ColumnMetadata) -> Result<Self, ReadFailure> {
        let is_compressed = columns.compression.is_some();
        let (mut body_bytes, mut values_bytes) = (0, 0);
        let mut buffers = Vec::with_capacity(columns.buffers.len());
        for buffer in &columns.buffers {
            let (offset, bytes) = (unsigned(buffer.offset())?, unsigned(buffer.length())?);
            if offset.checked_add(bytes).is_none_or(|end| end > block.body_bytes) {
                return Err(ReadFailure::damaged("a buffer reaches behind the end of its batch"));
            }
            let from = block.body_at + offset;
            buffers.push((from, Buffer::new(body_bytes as i64, buffer.length())));
            body_bytes = within_limit(body_bytes + bytes)?.next_multiple_of(ALIGNMENT);
            let mut beginning = [0; SIZE_BYTES];
            let beginning = &mut beginning[..SIZE_BYTES.min(held(bytes)?)];
            if is_compressed {
                file.read_exact_at(beginning, from)?;
            }
            values_bytes = within_limit(values_bytes + uncompressed_bytes(beginning, bytes, is_compressed)?)?;
        }
        let moved: Vec<Buffer> = buffers.iter().map(|&(_, buffer)| buffer).collect();
        let metadata = record_batch(columns, &moved);
        Ok(Self { buffers, metadata, body_bytes, values_bytes, is_compressed })
    }

    /// Memory of the columns.
    pub fn kept_bytes(&self) -> u64 {
        // Arrays that are not compressed share the memory of the buffers.
        (if self.is_compressed { self.values_bytes } else { self.body_bytes }) + ARRAY_BYTES
    }

    /// Memory that is needed while the batch is read and visited.
    pub fn memory_bytes(&self) -> u64 {
        self.kept_bytes() + if self.is_compressed { self.body_bytes } else { 0 }
    }

    /// Reads the batch.
    pub fn read(self, file: &File, schema: SchemaRef, layout: &Layout) -> Result<RecordBatch, ReadFailure> {
        let mut content = vec![0; held(self.body_bytes)?];
        let mut values_bytes = 0;
        for (from, to) in &self.buffers {
            let start = held(unsigned(to.offset())?)?;
            let bytes = &mut content[start..start + held(unsigned(to.length())?)?];
            file.read_exact_at(bytes, *from)?;
            values_bytes += uncompressed_bytes(bytes, bytes.len() as u64, self.is_compressed)?;
        }
        if values_bytes != self.values_bytes {
            return Err(ReadFailure::damaged("it has changed while it was read"));
        }
        let batch = flatbuffers::root::<arrow_ipc::RecordBatch<'_>>(&self.metadata);
        let batch = batch.map_err(|error| ReadFailure::Damaged(error.to_string()))?;
        let (content, no_dictionaries) = (content.into(), HashMap::new());
        let decoder =
            RecordBatchDecoder::try_new(&content, batch, schema, &no_dictionaries, &layout.version)?;
        Ok(decoder.read_record_batch()?)
    }
}

/// The metadata of a record batch of these columns, whose buffers have these positions.
fn record_batch(columns: &ColumnMetadata, buffers: &[Buffer]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let nodes = builder.create_vector(&columns.nodes);
    let buffers = builder.create_vector(buffers);
    let variadic = builder.create_vector(&columns.variadic);
    let compression = columns.compression.map(|codec| {
        let mut compression = BodyCompressionBuilder::new(&mut builder);
        compression.add_codec(codec);
        compression.finish()
    });
    let mut batch = RecordBatchBuilder::new(&mut builder);
    batch.add_length(columns.n_rows);
    batch.add_nodes(nodes);
    batch.add_buffers(buffers);
    batch.add_variadicBufferCounts(variadic);
    if let Some(compression) = compression {
        batch.add_compression(compression);
    }
    let batch = batch.finish();
    builder.finish(batch, None);
    builder.finished_data().to_vec()
}

/// Length of the size at the beginning of a compressed buffer.
const SIZE_BYTES: usize = 8;

/// The size of a buffer of this length in memory. A compressed buffer starts with it; -1 marks one that is not
/// compressed.
fn uncompressed_bytes(beginning: &[u8], bytes: u64, is_compressed: bool) -> Result<u64, ReadFailure> {
    if !is_compressed || bytes == 0 {
        return Ok(bytes);
    }
    let declared = beginning.first_chunk::<SIZE_BYTES>().copied().map(i64::from_le_bytes);
    match declared.ok_or_else(|| ReadFailure::damaged("a compressed buffer has no size"))? {
        -1 => Ok(bytes),
        declared => unsigned(declared),
    }
}

fn within_limit(bytes: u64) -> Result<u64, ReadFailure> {
    if bytes > BYTES_MAX { Err(ReadFailure::Large { bytes }) } else { Ok(bytes) }
}
