//! Encodes the rows of one row group. Independent of the file and of the other row groups.

use bytes::Bytes;
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

use crate::row_group::{RowGroup, Values, range};
use crate::schema::Schema;

/// An encoded row group.
pub(crate) struct EncodedGroup {
    pub(crate) columns: Vec<(Bytes, ColumnCloseResult)>,
    pub(crate) n_rows: usize,
    pub(crate) digest: u128,
}

/// Encodes rows.
pub(crate) fn encode(
    schema: &Schema,
    properties: &WriterPropertiesPtr,
    rows: RowGroup,
) -> Result<EncodedGroup> {
    let (n_rows, digest) = (rows.n_rows(), rows.digest());
    let columns = rows.into_columns().into_iter().enumerate().map(|(number, values)| {
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut sink));
        let mut writer = get_column_writer(schema.descriptor().column(number), properties.clone(), pages);
        write(&mut writer, values)?;
        let closed = writer.close()?;
        Ok((Bytes::from(sink.into_inner()?), closed))
    });
    Ok(EncodedGroup { columns: columns.collect::<Result<_>>()?, n_rows, digest })
}

fn write(writer: &mut ColumnWriter<'_>, values: Values) -> Result<()> {
    match (writer, values) {
        (ColumnWriter::Int32ColumnWriter(writer), Values::Int32 { values, .. }) => {
            writer.write_batch(&values, None, None)?;
        }
        (ColumnWriter::Int64ColumnWriter(writer), Values::Int64(values)) => {
            writer.write_batch(&values, None, None)?;
        }
        (ColumnWriter::ByteArrayColumnWriter(writer), Values::Text { bytes, ends }) => {
            let bytes = Bytes::from(bytes);
            let text = |row| ByteArray::from(bytes.slice(range(&ends, row)));
            let texts: Vec<_> = (0..ends.len()).map(text).collect();
            writer.write_batch(&texts, None, None)?;
        }
        (ColumnWriter::Int32ColumnWriter(writer), Values::List { values, ends, .. }) => {
            let (definition, repetition) = levels(&ends);
            writer.write_batch(&values, Some(&definition), Some(&repetition))?;
        }
        _ => unreachable!("schema and rows have the same columns"),
    }
    Ok(())
}

/// Definition and repetition levels of lists: an empty list has one entry of level 0, and only the first element
/// of a list has repetition level 0.
fn levels(ends: &[u64]) -> (Vec<i16>, Vec<i16>) {
    let n_values = ends.last().map_or(0, |&end| end as usize);
    let (mut definition, mut repetition) = (Vec::with_capacity(n_values), Vec::with_capacity(n_values));
    for row in 0..ends.len() {
        let n_elements = range(ends, row).len();
        let n_entries = n_elements.max(1);
        definition.resize(definition.len() + n_entries, i16::from(n_elements > 0));
        repetition.push(0);
        repetition.resize(definition.len(), 1);
    }
    (definition, repetition)
}
