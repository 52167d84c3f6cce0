//! Reads a table that a program of this project wrote, or refuses another file.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::statistics::Statistics;

use crate::error::{Error, Result, io};
use crate::foreign::check_footer;
use crate::row_group::{ROWS_MAX, RowGroup};
use crate::schema::Schema;
use crate::verify::read;

const READ: &str = "read the table";
/// Maximum size of the metadata of a table.
const FOOTER_BYTES_MAX: u64 = 64 << 20;

/// An open table.
pub struct TableReader {
    file: SerializedFileReader<File>,
    schema: Schema,
}

impl TableReader {
    /// Opens a table with this schema. Another file is refused.
    pub fn open(path: &Path, schema: Schema) -> Result<Self> {
        let file = io(READ, File::open(path))?;
        io(READ, check_footer(&file, FOOTER_BYTES_MAX))?
            .map_err(|excess| Error::Differs(excess.to_string()))?;
        let file = guarded(|| SerializedFileReader::new(file))?;
        if file.metadata().file_metadata().schema_descr().root_schema() != &*schema.root() {
            return Err(Error::Differs("a table with other columns".to_owned()));
        }
        Ok(Self { file, schema })
    }

    /// The value of an entry of the metadata.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        let pairs = self.file.metadata().file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    /// Visits the row groups in which a column of numbers may have one of these ascending values.
    pub fn each_group_with(
        &self,
        column: usize,
        values: &[u64],
        mut visit: impl FnMut(&RowGroup),
    ) -> Result<()> {
        for number in 0..self.file.num_row_groups() {
            let group = self.file.metadata().row_group(number);
            if !may_contain(group.column(column).statistics(), values) {
                continue;
            }
            let n_rows = usize::try_from(group.num_rows()).ok().filter(|&n_rows| n_rows <= ROWS_MAX);
            let n_rows =
                n_rows.ok_or_else(|| Error::Differs(format!("a row group of {} rows", group.num_rows())))?;
            visit(&guarded(|| read(&self.schema, &*self.file.get_row_group(number)?, n_rows))?);
        }
        Ok(())
    }
}

/// Whether values from the minimum to the maximum of a column include one of these.
fn may_contain(statistics: Option<&Statistics>, values: &[u64]) -> bool {
    let Some(Statistics::Int64(range)) = statistics else { return true };
    let (Some(&min), Some(&max)) = (range.min_opt(), range.max_opt()) else { return true };
    let first = values.partition_point(|&value| value < min as u64);
    values.get(first).is_some_and(|&value| value <= max as u64)
}

/// Calls the decoder, which panics on some damaged files.
fn guarded<T>(decode: impl FnOnce() -> ParquetResult<T>) -> Result<T> {
    let decoded = catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| {
        Err(ParquetError::General("its decoder panicked, see the message above".to_owned()))
    });
    decoded.map_err(|error| Error::of(READ, error))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::{Column, Kind, TableWriter, Value};

    fn schema() -> Schema {
        Schema::new(vec![Column::new("hash", Kind::U64), Column::repeating("file", Kind::Text)])
    }

    #[test]
    fn only_row_groups_that_may_have_a_value_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let mut table =
            TableWriter::create(&path, &schema(), &[("format", "json")], NonZeroUsize::MIN).unwrap();
        // Two of the hashes are negative as signed numbers.
        for hashes in [[1, 5], [7, 1 << 63], [u64::MAX - 1, u64::MAX]] {
            let mut rows = RowGroup::of(&schema());
            hashes.into_iter().for_each(|hash| rows.push(&[Value::Number(hash), Value::Text(b"x.json")]));
            table.write(rows).unwrap();
        }
        table.finish().unwrap();

        let reader = TableReader::open(&path, schema()).unwrap();
        let found = |values: &[u64]| {
            let mut found = Vec::new();
            let visit = |rows: &RowGroup| {
                assert_eq!(rows.text(1, 0), b"x.json");
                found.extend((0..rows.n_rows()).map(|row| rows.number(0, row)));
            };
            reader.each_group_with(0, values, visit).unwrap();
            found
        };
        assert_eq!(found(&[2]), [1, 5]);
        assert_eq!(found(&[0, 6, u64::MAX - 2]), []);
        assert_eq!(found(&[8, u64::MAX]), [7, 1 << 63, u64::MAX - 1, u64::MAX]);
        assert_eq!([reader.metadata("format"), reader.metadata("other")], [Some("json"), None]);
    }

    #[test]
    fn another_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "PAR1 is not enough PAR1").unwrap();
        assert!(matches!(TableReader::open(&path, schema()), Err(Error::Differs(_))));
        assert!(matches!(TableReader::open(&folder.path().join("no"), schema()), Err(Error::Io { .. })));
        let other = folder.path().join("b");
        let table = TableWriter::create(
            &other,
            &Schema::new(vec![Column::new("hash", Kind::U64)]),
            &[],
            NonZeroUsize::MIN,
        );
        table.unwrap().finish().unwrap();
        assert!(
            TableReader::open(&other, schema())
                .is_err_and(|error| error.to_string() == "a table with other columns")
        );
    }
}
