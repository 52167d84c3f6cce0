//! Reads the wanted columns of a record batch, and the dictionaries of a file. Sizes are checked before memory is
//! allocated, also the sizes that compressed buffers declare.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, LargeBinaryArray, RecordBatch};
use arrow_ipc::reader::RecordBatchDecoder;
use arrow_ipc::{BodyCompressionBuilder, Buffer, CompressionType, FieldNode, RecordBatchBuilder};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use flatbuffers::FlatBufferBuilder;

use super::Fault;
use super::layout::Layout;
use super::messages::{Block, held, parsed, unsigned};

/// Maximum memory for the columns of a batch, and for all dictionaries of a file.
pub const BYTES_MAX: u64 = 256 << 20;

/// Alignment of buffers, sufficient for every type.
const ALIGNMENT: u64 = 64;

/// The dictionaries of a file, up to a position in it.
#[derive(Debug, Default)]
pub struct Dictionaries {
    by_id: HashMap<i64, ArrayRef>,
    /// Number of dictionary batches read.
    n_read: usize,
}

impl Dictionaries {
    /// Reads the dictionary batches before a record batch. A thread reads record batches in their order.
    pub fn advance(&mut self, file: &File, layout: &Layout, n_before: usize) -> Result<(), Fault> {
        while self.n_read < n_before {
            self.read(file, layout, &layout.dictionaries[self.n_read])?;
            self.n_read += 1;
        }
        Ok(())
    }

    fn read(&mut self, file: &File, layout: &Layout, block: &Block) -> Result<(), Fault> {
        let metadata = block.metadata(file)?;
        let message = parsed(&metadata)?;
        let batch = message.header_as_dictionary_batch();
        let batch = batch.ok_or_else(|| Fault::damaged("a dictionary batch is none"))?;
        #[expect(deprecated, reason = "the ids are part of the format")]
        let wanted = layout.schema.fields_with_dict_id(batch.id()).first().map(|field| field.data_type());
        let (Some(DataType::Dictionary(_, values)), Some(data)) = (wanted, batch.data()) else {
            return Ok(());
        };
        let schema = Schema::new(vec![Field::new("", (**values).clone(), true)]);
        let buffers: Vec<Buffer> = data.buffers().into_iter().flatten().copied().collect();
        let body = Body::of(file, block, &buffers, data.compression().is_some())?;
        let nodes: Vec<FieldNode> = data.nodes().into_iter().flatten().copied().collect();
        let variadic: Vec<i64> = data.variadicBufferCounts().into_iter().flatten().collect();
        let compression = data.compression().map(|compression| compression.codec());
        let metadata = record_batch(data.length(), &nodes, &body.buffers, &variadic, compression);
        let read = decoded(body, &metadata, Arc::new(schema), &HashMap::new(), layout)?;
        let values =
            Arc::clone(read.columns().first().ok_or_else(|| Fault::damaged("a dictionary is empty"))?);
        let before = self.by_id.remove(&batch.id()).filter(|_| batch.isDelta());
        let values = before.map_or(Ok(Arc::clone(&values)), |before| concatenated(&before, &values))?;
        self.by_id.insert(batch.id(), values);
        within_limit(self.by_id.values().map(|values| values.get_buffer_memory_size() as u64).sum())?;
        Ok(())
    }
}

/// Reads the columns of a record batch.
pub fn read(
    file: &File,
    layout: &Layout,
    block: &Block,
    dictionaries: &Dictionaries,
) -> Result<RecordBatch, Fault> {
    let metadata = block.metadata(file)?;
    let batch = parsed(&metadata)?.header_as_record_batch();
    let batch = batch.ok_or_else(|| Fault::damaged("a record batch is none"))?;
    let all_nodes: Vec<FieldNode> = batch.nodes().into_iter().flatten().copied().collect();
    let all_buffers: Vec<Buffer> = batch.buffers().into_iter().flatten().copied().collect();
    let all_variadic: Vec<i64> = batch.variadicBufferCounts().into_iter().flatten().collect();
    let compression = batch.compression().map(|compression| compression.codec());

    let missing = || Fault::damaged("a record batch has fewer columns than the schema");
    let positions = layout.positions(&all_variadic).ok_or_else(missing)?;
    let (mut nodes, mut buffers, mut variadic) = (Vec::new(), Vec::new(), Vec::new());
    for (start, end) in positions {
        nodes.extend(all_nodes.get(start.node..end.node).ok_or_else(missing)?);
        buffers.extend(all_buffers.get(start.buffer..end.buffer).ok_or_else(missing)?);
        variadic.extend(all_variadic.get(start.variadic..end.variadic).ok_or_else(missing)?);
    }
    // The decoder would iterate over rows that no buffer holds.
    if nodes.iter().any(|node: &FieldNode| node.length() != batch.length()) {
        return Err(Fault::damaged("a column has another number of rows than its batch"));
    }
    let body = Body::of(file, block, &buffers, compression.is_some())?;
    let metadata = record_batch(batch.length(), &nodes, &body.buffers, &variadic, compression);
    decoded(body, &metadata, Arc::clone(&layout.schema), &dictionaries.by_id, layout)
}

/// Decodes a batch with these metadata.
fn decoded(
    body: Body,
    metadata: &[u8],
    schema: SchemaRef,
    dictionaries: &HashMap<i64, ArrayRef>,
    layout: &Layout,
) -> Result<RecordBatch, Fault> {
    let batch = flatbuffers::root::<arrow_ipc::RecordBatch<'_>>(metadata);
    let batch = batch.map_err(|error| Fault::Damaged(error.to_string()))?;
    let content = body.content.into();
    let decoder = RecordBatchDecoder::try_new(&content, batch, schema, dictionaries, &layout.version)?;
    Ok(decoder.read_record_batch()?)
}

/// The texts of a dictionary and those that a later batch adds. The library's function for all types would be half a
/// megabyte of code.
fn concatenated(before: &ArrayRef, more: &ArrayRef) -> Result<ArrayRef, Fault> {
    Ok(match more.data_type() {
        DataType::Binary => {
            let all = before.as_binary::<i32>().iter().chain(more.as_binary::<i32>().iter());
            Arc::new(all.collect::<BinaryArray>())
        }
        DataType::LargeBinary => {
            let all = before.as_binary::<i64>().iter().chain(more.as_binary::<i64>().iter());
            Arc::new(all.collect::<LargeBinaryArray>())
        }
        other => return Err(Fault::Damaged(format!("a dictionary of the type {other} grows in its course"))),
    })
}

/// The metadata of a record batch.
fn record_batch(
    length: i64,
    nodes: &[FieldNode],
    buffers: &[Buffer],
    variadic: &[i64],
    compression: Option<CompressionType>,
) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let nodes = builder.create_vector(nodes);
    let buffers = builder.create_vector(buffers);
    let variadic = builder.create_vector(variadic);
    let compression = compression.map(|codec| {
        let mut compression = BodyCompressionBuilder::new(&mut builder);
        compression.add_codec(codec);
        compression.finish()
    });
    let mut batch = RecordBatchBuilder::new(&mut builder);
    batch.add_length(length);
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

/// Some buffers of the body of a message.
struct Body {
    content: Vec<u8>,
    /// Their positions in `content`.
    buffers: Vec<Buffer>,
}

impl Body {
    /// Reads these buffers of a message.
    fn of(file: &File, block: &Block, buffers: &[Buffer], is_compressed: bool) -> Result<Self, Fault> {
        let mut at = 0;
        let mut moved = Vec::with_capacity(buffers.len());
        for buffer in buffers {
            let (offset, bytes) = (unsigned(buffer.offset())?, unsigned(buffer.length())?);
            if offset.checked_add(bytes).is_none_or(|end| end > block.body_bytes) {
                return Err(Fault::damaged("a buffer reaches behind the end of its batch"));
            }
            moved.push(Buffer::new(at as i64, buffer.length()));
            at = within_limit(at + bytes)?.next_multiple_of(ALIGNMENT);
        }
        let mut content = vec![0; held(at)?];
        let mut memory_bytes = 0;
        for (from, to) in buffers.iter().zip(&moved) {
            let start = held(unsigned(to.offset())?)?;
            let bytes = &mut content[start..start + held(unsigned(to.length())?)?];
            file.read_exact_at(bytes, block.body_at + unsigned(from.offset())?)?;
            memory_bytes = within_limit(memory_bytes + decompressed_bytes(bytes, is_compressed)?)?;
        }
        Ok(Self { content, buffers: moved })
    }
}

/// The size of a buffer in memory. A compressed buffer starts with it; -1 marks one that is not compressed.
fn decompressed_bytes(buffer: &[u8], is_compressed: bool) -> Result<u64, Fault> {
    if !is_compressed || buffer.is_empty() {
        return Ok(buffer.len() as u64);
    }
    let declared = buffer.first_chunk().copied().map(i64::from_le_bytes);
    match declared.ok_or_else(|| Fault::damaged("a compressed buffer has no size"))? {
        -1 => Ok(buffer.len() as u64),
        declared => unsigned(declared),
    }
}

fn within_limit(bytes: u64) -> Result<u64, Fault> {
    if bytes > BYTES_MAX { Err(Fault::Large { bytes }) } else { Ok(bytes) }
}
