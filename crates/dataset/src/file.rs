//! Reads and writes the columns and attributes of an HDF5 file, each with its digest.
//!
//! Writing is deterministic: the bytes depend on the content and the order of writing, not on time, host or
//! path. Reading is strict: a file whose columns do not have the type, shape, chunks and filters of this
//! project is refused before any of its elements is used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use corpus::digest::Digest;
use hdf5::filters::Filter;
use hdf5::plist::file_access::LibraryVersion;
use hdf5::types::{IntSize, TypeDescriptor};
use program::exit::quoted;

use crate::chunk::Scalar;
use crate::chunk_index::{Places, stored_chunks};
use crate::chunk_writer::ChunkWriter;
use crate::column::Column;
use crate::column_writer::ColumnWriter;
use crate::digest_table::{DigestTable, StoredDigests, attribute_digest};
use crate::error::{At, Error, Result, Violation};
use crate::ffi;
use crate::layout::Layout;
use crate::nothing_elsewhere::{Storage, check_links, check_stored_as};
use crate::schema::{DEFLATE_LEVEL, DIGESTS};
use crate::stored_file::{Fetch, StoredFile};

/// Maximum size of an attribute that is read; a list of a million stop words fits.
const ATTRIBUTE_BYTES_MAX: usize = 16 << 20;
/// Maximum size of the table of digests that is read; it can describe about 500 GB of tokens.
const TABLE_BYTES_MAX: u64 = 256 << 20;

/// A new file. It is complete only after [`FileWriter::finish`].
pub(crate) struct FileWriter {
    path: PathBuf,
    file: hdf5::File,
    pub(crate) chunks: ChunkWriter,
    table: DigestTable,
}

impl FileWriter {
    /// Creates a file, which must not exist.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = hdf5::File::with_options()
            // HDF5 1.10 and later read this format, in which metadata has checksums.
            .with_fapl(|access| access.libver_bounds(LibraryVersion::V110, LibraryVersion::V110))
            .with_fcpl(|creation| creation.obj_track_times(false))
            .create_excl(path)
            .at(path, "create the file")?;
        let chunks = ChunkWriter::new(path)?;
        Ok(Self { path: path.to_owned(), file, chunks, table: DigestTable::default() })
    }

    /// Creates a column of `rows` rows with `width` elements each; If `width` is `None`, the column has
    /// single elements.
    pub(crate) fn column<T: Scalar>(
        &mut self,
        name: &str,
        rows: usize,
        width: Option<usize>,
    ) -> Result<ColumnWriter<T>> {
        let layout = Layout::of(name, rows, width);
        let dataset = self
            .file
            .new_dataset_builder()
            .empty::<T>()
            .shape(layout.shape.clone())
            .chunk(layout.chunk.clone())
            .shuffle()
            .deflate(DEFLATE_LEVEL)
            .fletcher32()
            .obj_track_times(false)
            .create(name)
            .at(&self.path, "create a dataset")?;
        let column = self.chunks.new_column::<T>(dataset, layout.clone());
        Ok(ColumnWriter::new(column, &layout))
    }

    /// Creates a group for columns named `group/column`.
    pub(crate) fn group(&self, name: &str) -> Result<()> {
        let group = self
            .file
            .create_group_builder()
            .with_gcpl(|creation| creation.obj_track_times(false))
            .create(name);
        group.at(&self.path, "create a group").map(|_| ())
    }

    /// Ends a column. All its rows must have been written.
    pub(crate) fn finish_column<T: Scalar>(&mut self, column: ColumnWriter<T>) -> Result<()> {
        let number = column.column();
        column.finish(&mut self.chunks)?;
        let (description, digests) = self.chunks.finish_column(number)?;
        self.table.add_column(&description, &digests);
        Ok(())
    }

    /// Writes an attribute of the file.
    pub(crate) fn attribute(&mut self, name: &str, value: &Value) -> Result<()> {
        let (dtype, bytes) = (value.dtype(), value.bytes());
        let attribute = self
            .file
            .new_attr_builder()
            .empty_as(dtype)
            .create(name)
            .at(&self.path, "create an attribute")?;
        ffi::write_attribute(&attribute, &bytes).at(&self.path, "write an attribute")?;
        self.table.add_attribute(name, attribute_digest(&value.type_name(), &bytes));
        Ok(())
    }

    /// Writes the table of digests, closes the file and syncs it to disk.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.chunks.close_columns();
        let table = std::mem::take(&mut self.table).finish();
        self.file
            .new_dataset_builder()
            .empty::<u8>()
            .shape(table.len())
            .obj_track_times(false)
            .create(DIGESTS)
            // The library buffers small writes, and dropping a handle reports no error of them.
            .and_then(|dataset| dataset.write_raw(&table).and_then(|()| self.file.flush()))
            .at(&self.path, "write the table of digests")?;
        self.finish_without_digests()
    }

    /// Closes the file and syncs it to disk. For a file that only other programs read.
    pub(crate) fn finish_without_digests(mut self) -> Result<()> {
        self.chunks.close_columns();
        self.file.close().at(&self.path, "close the file")?;
        fs::File::open(&self.path).and_then(|file| file.sync_all()).at(&self.path, "sync the file")
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A text, stored as a string of fixed length.
    Text(String),
    /// A number, stored as an unsigned 64-bit integer.
    Number(u64),
}

impl Value {
    fn dtype(&self) -> TypeDescriptor {
        match self {
            Self::Text(_) => TypeDescriptor::FixedUnicode(self.bytes().len()),
            Self::Number(_) => TypeDescriptor::Unsigned(IntSize::U8),
        }
    }

    /// Name of the type in the table of digests.
    fn type_name(&self) -> String {
        match self {
            Self::Text(_) => format!("text {}", self.bytes().len()),
            Self::Number(_) => "u64".to_owned(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            // HDF5 has no strings of length 0, so an empty text is one NUL.
            Self::Text(text) if text.is_empty() => vec![0],
            Self::Text(text) => text.clone().into_bytes(),
            Self::Number(number) => number.to_le_bytes().to_vec(),
        }
    }

    fn read(attribute: &hdf5::Attribute) -> Option<Self> {
        let dtype = attribute.dtype().and_then(|dtype| dtype.to_descriptor()).ok()?;
        if attribute.ndim() != 0 || dtype.size() > ATTRIBUTE_BYTES_MAX {
            return None;
        }
        match dtype {
            TypeDescriptor::FixedUnicode(_) => {
                let bytes = ffi::read_attribute(attribute).ok()?;
                String::from_utf8(if bytes == [0] { Vec::new() } else { bytes }).ok().map(Self::Text)
            }
            TypeDescriptor::Unsigned(IntSize::U8) => {
                let bytes = ffi::read_attribute(attribute).ok()?;
                bytes.try_into().ok().map(|bytes| Self::Number(u64::from_le_bytes(bytes)))
            }
            _ => None,
        }
    }
}

/// A complete file, opened for reading, while the HDF5 library is used to examine it. Anything that the
/// library cannot read counts as damage, because read errors of the operating system are detected through the
/// [`StoredFile`].
pub(crate) struct FileReader {
    library: hdf5::File,
    pub(crate) stored: Arc<StoredFile>,
    digests: StoredDigests,
    attributes: BTreeMap<String, Value>,
    /// The columns opened so far.
    columns: Vec<String>,
    places: Places,
}

impl FileReader {
    /// Opens a file and checks its table of digests and its attributes.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (library, file) = StoredFile::open(path)?;
        Self::of(library, file)
    }

    /// Opens a partial copy. All bytes except those of chunks must be present; the others are fetched when they are
    /// read.
    pub(crate) fn open_partial(path: &Path, fetch: Arc<dyn Fetch>) -> Result<Self> {
        let (library, file) = StoredFile::open(path)?;
        Self::of(library, file.with(fetch))
    }

    fn of(library: hdf5::File, file: StoredFile) -> Result<Self> {
        let path = file.path();
        check_links(&library, &file)?;
        let table = library.dataset(DIGESTS).map_err(|_| Error::Unexpected {
            path: path.to_owned(),
            thing: "the dataset `digests`".to_owned(),
            found: "absent".to_owned(),
            expected: "a table of digests".to_owned(),
            remedy: "only files written by reducer and merge are read; for a padded copy, pass the dataset in the same folder",
        })?;
        check_stored_as(Storage::Contiguous, &table, DIGESTS, &file)?;
        // A table larger than the file was never stored, and HDF5 would return zeros for it.
        let is_table = table.size() as u64 <= file.bytes().min(TABLE_BYTES_MAX);
        let table: Option<Vec<u8>> = is_table.then(|| table.read_raw().ok()).flatten();
        let digests = table.as_deref().and_then(StoredDigests::parse).ok_or_else(|| file.damaged(DIGESTS))?;
        let (attributes, columns, places) = (BTreeMap::new(), Vec::new(), Places::default());
        let mut reader = Self { library, stored: Arc::new(file), digests, attributes, columns, places };
        reader.read_attributes()?;
        Ok(reader)
    }

    fn read_attributes(&mut self) -> Result<()> {
        for name in self.library.attr_names().map_err(|_| self.stored.damaged("the list of attributes"))? {
            let value = self.library.attr(&name).ok().as_ref().and_then(Value::read);
            let whole = value.filter(|value| {
                self.digests.attribute(&name) == Some(attribute_digest(&value.type_name(), &value.bytes()))
            });
            let value =
                whole.ok_or_else(|| self.stored.damaged(&format!("attribute {}", name.escape_debug())))?;
            self.attributes.insert(name, value);
        }
        if self.attributes.len() == self.digests.n_attributes() {
            Ok(())
        } else {
            Err(self.stored.damaged("the list of attributes"))
        }
    }

    /// Whether the file has this attribute.
    pub(crate) fn has_attribute(&self, name: &str) -> bool {
        self.attributes.contains_key(name)
    }

    /// The text of a required attribute.
    pub(crate) fn text(&self, name: &str) -> Result<&str> {
        match self.attributes.get(name) {
            Some(Value::Text(text)) => Ok(text),
            other => Err(self.other_attribute(name, other, "a text")),
        }
    }

    /// The number of a required attribute.
    pub(crate) fn number(&self, name: &str) -> Result<u64> {
        match self.attributes.get(name) {
            Some(Value::Number(number)) => Ok(*number),
            other => Err(self.other_attribute(name, other, "u64")),
        }
    }

    fn other_attribute(&self, name: &str, found: Option<&Value>, expected: &str) -> Error {
        let found = found.map_or("absent".to_owned(), Value::type_name);
        self.stored.unexpected(&format!("attribute {name}"), &found, expected)
    }

    /// The digest of a required attribute.
    pub(crate) fn digest(&self, name: &str) -> Result<Digest> {
        let text = self.text(name)?;
        Digest::from_hex(text).ok_or_else(|| {
            let expected = "32 lower-case hexadecimal digits";
            self.stored.broken(Violation::new(
                "F16",
                format!("attribute {name}"),
                quoted(text.as_bytes()),
                expected,
            ))
        })
    }

    /// Refuses any other attributes.
    pub(crate) fn check_attributes(&self, expected: &[&str]) -> Result<()> {
        let further = self.attributes.keys().find(|name| !expected.contains(&&name[..]));
        further.map_or(Ok(()), |further| {
            let found = format!("{} among others", quoted(further.as_bytes()));
            Err(self.stored.broken(Violation::new(
                "F4",
                "the list of attributes",
                found,
                "only those of the format",
            )))
        })
    }

    /// A dataset whose elements are in chunks of this file.
    fn chunked(&self, name: &str) -> Result<hdf5::Dataset> {
        let dataset =
            self.library.dataset(name).map_err(|_| self.stored.unexpected(name, "absent", "a dataset"))?;
        check_stored_as(Storage::Chunked, &dataset, name, &self.stored)?;
        Ok(dataset)
    }

    /// Whether the elements of a column have this type.
    pub(crate) fn has_type<T: Scalar>(&self, name: &str) -> bool {
        self.chunked(name).is_ok_and(|dataset| has_type::<T>(&dataset))
    }

    /// Opens a column. The table of digests must describe it as this project would. A column can be opened
    /// once.
    pub(crate) fn column<T: Scalar>(&mut self, name: &str, width: Option<usize>) -> Result<Column<T>> {
        let dataset = self.chunked(name)?;
        self.check_bare(&dataset, name)?;
        let shape = dataset.shape();
        let rows = *shape.first().ok_or_else(|| self.stored.unexpected(name, "a scalar", "a column"))?;
        let layout = Layout::of(name, rows, width);
        let as_written = has_type::<T>(&dataset)
            && shape == layout.shape
            && dataset.chunk().as_deref() == Some(&layout.chunk[..])
            && matches!(dataset.filters()[..], [Filter::Shuffle, Filter::Deflate(_), Filter::Fletcher32]);
        let digests = self.digests.take_column(&layout.description::<T>()).filter(|_| as_written);
        let digests = digests.ok_or_else(|| self.stored.damaged(&format!("the layout of {name}")))?;
        let chunks = stored_chunks::<T>(&self.stored, &dataset, &layout, digests)?;
        self.columns.push(name.to_owned());
        self.places.take(name, &chunks);
        Ok(Column::new(self.stored.clone(), layout, chunks))
    }

    /// Ends the examination, after all columns have been opened. Neither the table of digests nor the file
    /// may have further columns, and no two chunks may share bytes. The file stays open for its columns.
    pub(crate) fn finish(self) -> Result<Arc<StoredFile>> {
        let unlisted = |_| self.stored.damaged("the list of datasets");
        let mut expected: BTreeSet<&str> = self.columns.iter().map(String::as_str).collect();
        expected.extend(self.columns.iter().filter_map(|name| Some(name.split_once('/')?.0)));
        expected.insert(DIGESTS);
        let (mut found, mut groups) = (Vec::new(), Vec::new());
        for member in self.library.member_names().map_err(unlisted)? {
            found.push(member.clone());
            if let Ok(group) = self.library.group(&member) {
                let inner = group.member_names().map_err(unlisted)?;
                found.extend(inner.iter().map(|name| format!("{member}/{name}")));
                groups.push((group, member));
            }
        }
        if let Some(further) = found.iter().find(|name| !expected.contains(&name[..])) {
            let found = format!("{} among others", quoted(further.as_bytes()));
            let expected = "only those of the format";
            return Err(self.stored.broken(Violation::new(
                "F3",
                "the list of datasets and groups",
                found,
                expected,
            )));
        }
        if self.digests.n_columns() > 0 {
            return Err(self.stored.damaged("the list of datasets"));
        }
        groups.iter().try_for_each(|(group, name)| self.check_bare(group, name))?;
        let table = self.library.dataset(DIGESTS).map_err(unlisted)?;
        self.check_bare(&table, DIGESTS)?;
        self.places.check(&self.stored)?;
        Ok(self.stored)
    }

    /// Refuses attributes of objects other than the file, because the table of digests does not cover them.
    fn check_bare(&self, object: &hdf5::Location, name: &str) -> Result<()> {
        let names = object.attr_names().map_err(|_| self.stored.damaged("the list of attributes"))?;
        names.first().map_or(Ok(()), |further| {
            let found = quoted(further.as_bytes());
            let violation =
                Violation::new("F4", format!("an attribute of {}", name.escape_debug()), found, "none");
            Err(self.stored.broken(violation))
        })
    }
}

fn has_type<T: Scalar>(dataset: &hdf5::Dataset) -> bool {
    dataset.dtype().is_ok_and(|dtype| dtype.is::<T>())
}
