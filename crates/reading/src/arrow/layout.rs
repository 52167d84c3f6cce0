//! Which columns of a schema are read, and which parts of a record batch they are.

use std::sync::Arc;

use arrow_ipc::MetadataVersion;
use arrow_schema::{DataType, Field, Fields as FieldList, Schema, SchemaRef, UnionMode};
use corpus::format::{FieldPath, Fields};

use super::messages::Block;
use crate::columns::{bad_column, no_column};
use crate::entry::RowColumns;
use crate::error::Error;
use crate::options::KeptColumns;
use crate::source::Source;

/// What all record batches of a file have in common.
#[derive(Debug)]
pub struct Layout {
    /// All columns of the file.
    all: Schema,
    /// The columns that are read, ascending by their paths.
    pub wanted: Vec<Column>,
    /// The columns that are read, each in the structures that contain it: bytes in place of texts, and keys in place of
    /// values with a dictionary.
    pub schema: SchemaRef,
    /// Columns of the text, by their positions among those that are read.
    pub text: Vec<usize>,
    /// Column of the rating, likewise.
    pub rating: usize,
    /// Columns whose values are kept, likewise.
    pub kept: Vec<usize>,
    pub version: MetadataVersion,
    /// The dictionary batches of the file.
    pub dictionaries: Vec<Block>,
}

/// A column that is read.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its position in the schema; in a structure, the position of the structure and its position there.
    path: Vec<usize>,
    /// The id and the type of its dictionary, if it has one.
    pub dictionary: Option<(i64, DataType)>,
}

/// A position in the lists of a record batch: its nodes, its buffers, and the numbers of buffers of its view columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchPosition {
    pub node: usize,
    pub buffer: usize,
    pub variadic: usize,
}

impl Layout {
    /// Selects the columns of the fields, and those that are kept.
    pub fn of(
        source: &Source,
        (all, version, dictionaries): (Schema, MetadataVersion, Vec<Block>),
        fields: &Fields,
        kept: KeptColumns,
    ) -> Result<(Self, RowColumns), Error> {
        let named = SearchedColumns { source, schema: &all };
        let text = fields.text.iter().map(|path| named.column(path, "--text-field", "texts", is_text));
        let text = text.collect::<Result<Vec<_>, _>>()?;
        let rating = named.column(&fields.rating, fields.rating_flag(), "numbers or texts", is_rating)?;
        let (kept, others): (Vec<_>, Vec<_>) = match kept {
            KeptColumns::OfFields => Default::default(),
            KeptColumns::All => {
                let of_fields = [&text[..], std::slice::from_ref(&rating)].concat();
                let is_field = |path: &[usize]| of_fields.iter().any(|(of, _)| of == path);
                let each = all.fields().iter().enumerate().map(|(at, field)| (vec![at], &**field));
                let (mut kept, others): (Vec<_>, Vec<_>) =
                    each.partition(|(path, field)| is_field(path) || is_kept(field.data_type()));
                // Those in structures come first.
                let inner = of_fields.iter().filter(|(path, _)| path.len() > 1).cloned();
                kept.splice(0..0, inner);
                (kept, others)
            }
        };
        let columns = RowColumns {
            names: kept.iter().map(|(path, _)| name(&all, path).into()).collect(),
            others: others.iter().map(|(_, field)| field.name().clone()).collect(),
        };
        let mut wanted = [&text[..], std::slice::from_ref(&rating), &kept].concat();
        wanted.sort_by(|(one, _), (other, _)| one.cmp(other));
        wanted.dedup_by(|(one, _), (other, _)| one == other);
        let read = |(column, _): (Vec<usize>, _)| wanted.partition_point(|(other, _)| *other < column);
        let kept = kept.into_iter().map(read).collect();
        let (text, rating) = (text.into_iter().map(read).collect(), read(rating));
        let (wanted, read): (Vec<_>, Vec<_>) = wanted.into_iter().map(column).unzip();
        let schema = Arc::new(Schema::new(read));
        Ok((Self { all, wanted, schema, text, rating, kept, version, dictionaries }, columns))
    }

    /// The type of the values of a dictionary, if a column that is read has it.
    pub fn values_of(&self, id: i64) -> Option<&DataType> {
        let mut dictionaries = self.wanted.iter().filter_map(|column| column.dictionary.as_ref());
        dictionaries.find(|(of, _)| *of == id).map(|(_, values)| values)
    }

    /// The first and the last position of each structure and column that is read; `None` if the batch has too few view
    /// columns.
    pub fn positions(&self, variadic: &[i64]) -> Option<Vec<(BatchPosition, BatchPosition)>> {
        let mut positions = Vec::with_capacity(self.wanted.len());
        for column in &self.wanted {
            let mut position = BatchPosition::default();
            let mut fields = self.all.fields();
            for (depth, &at) in column.path.iter().enumerate() {
                for field in fields.get(..at)? {
                    position.pass(field.data_type(), self.version, variadic)?;
                }
                let start = position;
                match fields.get(at)?.data_type() {
                    DataType::Struct(inner) if depth + 1 < column.path.len() => {
                        position.pass_structure();
                        fields = inner;
                    }
                    other => position.pass(other, self.version, variadic)?,
                }
                positions.push((start, position));
            }
        }
        Some(positions)
    }
}

/// The names of the structures and of the column at a path, with dots between them.
fn name(schema: &Schema, path: &[usize]) -> String {
    let mut fields = schema.fields();
    let mut names = Vec::new();
    for &at in path {
        let field = &fields[at];
        names.push(field.name().as_str());
        if let DataType::Struct(inner) = field.data_type() {
            fields = inner;
        }
    }
    names.join(".")
}

/// The column at a path, and the field by which it is read.
fn column((path, field): (Vec<usize>, &Field)) -> (Column, Field) {
    let (dictionary, read) = match field.data_type() {
        #[expect(deprecated, reason = "the ids are part of the format")]
        DataType::Dictionary(keys, values) => {
            (Some((field.dict_id().unwrap_or_default(), bytes(values))), (**keys).clone())
        }
        other => (None, bytes(other)),
    };
    let in_structure = |inner, _: &usize| DataType::Struct(vec![Field::new("", inner, true)].into());
    let read = path.iter().skip(1).fold(read, in_structure);
    (Column { path, dictionary }, Field::new("", read, true))
}

impl BatchPosition {
    /// Moves behind a structure, to its first column.
    fn pass_structure(&mut self) {
        self.node += 1;
        self.buffer += 1;
    }

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

/// A type with bytes in place of texts, which have the same form in memory but need not be UTF-8.
fn bytes(of: &DataType) -> DataType {
    match of {
        DataType::Utf8 => DataType::Binary,
        DataType::LargeUtf8 => DataType::LargeBinary,
        DataType::Utf8View => DataType::BinaryView,
        other => other.clone(),
    }
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

/// Whether the values of a column are kept: texts, numbers and booleans.
fn is_kept(of: &DataType) -> bool {
    use DataType as T;
    let values = if let T::Dictionary(_, values) = of { values } else { of };
    is_rating(of) && !matches!(values, T::Binary | T::LargeBinary | T::BinaryView)
}

/// The columns among which the fields are searched.
struct SearchedColumns<'a> {
    source: &'a Source,
    schema: &'a Schema,
}

impl<'a> SearchedColumns<'a> {
    /// The column with this name, the last one of several, and its path.
    fn column(
        &self,
        path: &FieldPath,
        option: &'static str,
        expected: &'static str,
        fits: impl Fn(&DataType) -> bool,
    ) -> Result<(Vec<usize>, &'a Field), Error> {
        let wanted = path;
        let fields = self.schema.fields();
        // A column whose name has dots comes before one in a structure.
        let found = found(fields, &[path.literal()]).or_else(|| found(fields, path.names()));
        let Some((path, field)) = found else {
            let names = fields.iter().map(|field| field.name().as_str());
            return Err(no_column(self.source, wanted, names, option));
        };
        let of = field.data_type();
        if fits(of) {
            return Ok((path, field));
        }
        let found = if of.is_nested() {
            "a list or a structure".to_owned()
        } else {
            format!("values of the type {of}")
        };
        Err(bad_column(self.source, wanted, (&found, expected), option))
    }
}

/// The column with this name, or with these names in structures, and its path.
fn found<'a>(mut fields: &'a FieldList, names: &[String]) -> Option<(Vec<usize>, &'a Field)> {
    let (last, structures) = names.split_last()?;
    let named = |fields: &FieldList, name: &String| fields.iter().rposition(|field| field.name() == name);
    let mut path = Vec::with_capacity(names.len());
    for name in structures {
        let at = named(fields, name)?;
        path.push(at);
        let DataType::Struct(inner) = fields[at].data_type() else { return None };
        fields = inner;
    }
    let at = named(fields, last)?;
    path.push(at);
    Some((path, &fields[at]))
}
