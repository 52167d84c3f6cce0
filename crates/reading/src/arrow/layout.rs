//! Which columns of a schema are read, and which parts of a record batch they are.

use std::sync::Arc;

use arrow_ipc::MetadataVersion;
use arrow_schema::{DataType, Field, Schema, SchemaRef, UnionMode};
use corpus::format::{FieldPath, Fields};

use super::super::columns::shown;
use super::super::{Error, Source};
use super::messages::Block;

/// What all record batches of a file have in common.
#[derive(Debug)]
pub struct Layout {
    /// All columns of the file.
    all: Schema,
    /// Positions of the columns that are read, ascending.
    pub wanted: Vec<usize>,
    /// The columns that are read, with bytes in place of texts.
    pub schema: SchemaRef,
    /// Columns of the text, by their positions among those that are read.
    pub text: Vec<usize>,
    /// Column of the rating, likewise.
    pub rating: usize,
    pub version: MetadataVersion,
    /// The dictionary batches of the file.
    pub dictionaries: Vec<Block>,
}

/// A position in the lists of a record batch: its nodes, its buffers, and the numbers of buffers of its view columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub node: usize,
    pub buffer: usize,
    pub variadic: usize,
}

impl Layout {
    /// Selects the columns of the fields.
    pub fn of(
        source: &Source,
        all: Schema,
        version: MetadataVersion,
        dictionaries: Vec<Block>,
        fields: &Fields,
    ) -> Result<Self, Error> {
        let wanted = Wanted { source, schema: &all };
        let text = fields.text.iter().map(|path| wanted.column(path, "--text-field", "texts", is_text));
        let text = text.collect::<Result<Vec<_>, _>>()?;
        let rating = wanted.column(&fields.rating, "--rating-field", "numbers or texts", is_rating)?;
        let mut wanted = [&text[..], &[rating]].concat();
        wanted.sort_unstable();
        wanted.dedup();
        let read = |column: usize| wanted.partition_point(|&other| other < column);
        let (text, rating) = (text.into_iter().map(read).collect(), read(rating));
        let schema =
            Schema::new(wanted.iter().map(|&column| of_bytes(all.field(column))).collect::<Vec<_>>());
        Ok(Self { all, wanted, schema: Arc::new(schema), text, rating, version, dictionaries })
    }

    /// The first and the last position of each column that is read; `None` if the batch has too few view columns.
    pub fn positions(&self, variadic: &[i64]) -> Option<Vec<(Position, Position)>> {
        let mut position = Position::default();
        let mut positions = Vec::with_capacity(self.wanted.len());
        for (column, field) in self.all.fields().iter().enumerate() {
            let start = position;
            position.pass(field.data_type(), self.version, variadic)?;
            if self.wanted.contains(&column) {
                positions.push((start, position));
            }
        }
        Some(positions)
    }
}

impl Position {
    /// Moves behind a column of this type.
    fn pass(&mut self, of: &DataType, version: MetadataVersion, variadic: &[i64]) -> Option<()> {
        use DataType as T;
        self.node += 1;
        self.buffer += match of {
            T::Null | T::RunEndEncoded(..) => 0,
            T::Struct(_) | T::FixedSizeList(..) => 1,
            T::Utf8 | T::LargeUtf8 | T::Binary | T::LargeBinary | T::ListView(_) | T::LargeListView(_) => 3,
            T::Utf8View | T::BinaryView => {
                let more = usize::try_from(*variadic.get(self.variadic)?).ok()?;
                self.variadic += 1;
                more.checked_add(2)?
            }
            T::Union(_, mode) => {
                usize::from(version < MetadataVersion::V5) + 1 + usize::from(*mode == UnionMode::Dense)
            }
            _ => 2,
        };
        let mut child = |field: &Field| self.pass(field.data_type(), version, variadic);
        match of {
            T::List(field)
            | T::LargeList(field)
            | T::ListView(field)
            | T::LargeListView(field)
            | T::FixedSizeList(field, _)
            | T::Map(field, _) => child(field),
            T::Struct(fields) => fields.iter().try_for_each(|field| child(field)),
            T::RunEndEncoded(ends, values) => child(ends).and_then(|()| child(values)),
            T::Union(fields, _) => fields.iter().try_for_each(|(_, field)| child(field)),
            _ => Some(()),
        }
    }
}

/// A column with bytes in place of texts, which have the same form in memory but need not be UTF-8.
fn of_bytes(field: &Field) -> Field {
    fn bytes(of: &DataType) -> DataType {
        match of {
            DataType::Utf8 => DataType::Binary,
            DataType::LargeUtf8 => DataType::LargeBinary,
            DataType::Utf8View => DataType::BinaryView,
            DataType::Dictionary(keys, values) => DataType::Dictionary(keys.clone(), Box::new(bytes(values))),
            other => other.clone(),
        }
    }
    field.clone().with_data_type(bytes(field.data_type())).with_nullable(true)
}

fn is_text(of: &DataType) -> bool {
    use DataType as T;
    match of {
        T::Utf8 | T::LargeUtf8 | T::Utf8View | T::Binary | T::LargeBinary | T::BinaryView => true,
        T::Dictionary(_, values) => !matches!(**values, T::Dictionary(..)) && is_text(values),
        _ => false,
    }
}

fn is_rating(of: &DataType) -> bool {
    use DataType as T;
    match of {
        T::Boolean | T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) => true,
        T::Dictionary(_, values) => !matches!(**values, T::Dictionary(..)) && is_rating(values),
        other => other.is_integer() || other.is_floating() || is_text(other),
    }
}

/// The columns among which the fields are searched.
struct Wanted<'a> {
    source: &'a Source,
    schema: &'a Schema,
}

impl Wanted<'_> {
    fn column(
        &self,
        path: &FieldPath,
        option: &'static str,
        expected: &'static str,
        fits: impl Fn(&DataType) -> bool,
    ) -> Result<usize, Error> {
        let (input, column) = (self.source.name.clone(), path.quoted());
        let name = path.literal();
        let found = self.schema.fields().iter().rposition(|field| *field.name() == name);
        let Some(number) = found else {
            let names = self.schema.fields().iter().map(|field| field.name().as_str());
            return Err(Error::NoColumn { input, column, found: shown(names), option });
        };
        let of = self.schema.field(number).data_type();
        if fits(of) {
            return Ok(number);
        }
        let found = if of.is_nested() {
            "a list or a structure".to_owned()
        } else {
            format!("values of the type {of}")
        };
        Err(Error::BadColumn { input, column, found, expected, option })
    }
}
