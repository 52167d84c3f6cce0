//! The columns of a table, and how each of them is stored.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::schema::types::{ColumnPath, SchemaDescPtr, SchemaDescriptor, Type, TypePtr};

/// In the footer of each file. It has the form that readers parse, and no version of a program or library.
pub(crate) const CREATED_BY: &str = "sentimill version 1";

/// All readers of Parquet have it.
const COMPRESSION: Compression = Compression::SNAPPY;

/// A column. No value is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    name: &'static str,
    kind: Kind,
    repeats: bool,
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integers of 8 bits.
    U8,
    /// Integers of 16 bits.
    U16,
    /// Integers of 32 bits.
    U32,
    /// Integers of 64 bits.
    U64,
    /// UTF-8.
    Text,
    /// Lists of integers of 16 bits.
    ListOfU16,
    /// Lists of integers of 32 bits.
    ListOfU32,
}

impl Column {
    /// A column with this name, which consists of ASCII letters and `_`.
    pub fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, repeats: false }
    }

    /// A column whose values repeat often. They are stored once per row group.
    pub fn repeating(name: &'static str, kind: Kind) -> Self {
        Self { repeats: true, ..Self::new(name, kind) }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The type of its values.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    fn parquet_type(&self) -> parquet::errors::Result<TypePtr> {
        let bits = |bit_width| Some(LogicalType::integer(bit_width, false));
        let of = |name, physical, logical| {
            Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(logical)
                .build()
                .map(Arc::new)
        };
        let element = match self.kind {
            Kind::U8 => return of(self.name, Physical::INT32, bits(8)),
            Kind::U16 => return of(self.name, Physical::INT32, bits(16)),
            Kind::U32 => return of(self.name, Physical::INT32, bits(32)),
            Kind::U64 => return of(self.name, Physical::INT64, bits(64)),
            Kind::Text => return of(self.name, Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::ListOfU16 => of("element", Physical::INT32, bits(16))?,
            Kind::ListOfU32 => of("element", Physical::INT32, bits(32))?,
        };
        let list = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![element])
            .build()?;
        let column = Type::group_type_builder(self.name)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(Some(LogicalType::List))
            .with_fields(vec![Arc::new(list)])
            .build()?;
        Ok(Arc::new(column))
    }

    fn path(&self) -> ColumnPath {
        let parts = match self.kind {
            Kind::ListOfU16 | Kind::ListOfU32 => vec![self.name, "list", "element"],
            _ => vec![self.name],
        };
        ColumnPath::new(parts.into_iter().map(str::to_owned).collect())
    }
}

/// The columns of a table, in order.
#[derive(Clone, Debug)]
pub struct Schema {
    columns: Vec<Column>,
    root: TypePtr,
    descriptor: SchemaDescPtr,
}

impl Schema {
    /// A table with these columns.
    pub fn new(columns: Vec<Column>) -> Self {
        let root =
            columns.iter().map(Column::parquet_type).collect::<Result<_, _>>().and_then(|fields| {
                Type::group_type_builder("schema").with_fields(fields).build().map(Arc::new)
            });
        let root = root.expect("types of fixed widths, with distinct names, are a schema");
        let descriptor = Arc::new(SchemaDescriptor::new(Arc::clone(&root)));
        Self { columns, root, descriptor }
    }

    /// Its columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub(crate) fn root(&self) -> TypePtr {
        Arc::clone(&self.root)
    }

    pub(crate) fn descriptor(&self) -> &SchemaDescriptor {
        &self.descriptor
    }

    pub(crate) fn properties(&self, metadata: &[(&str, &str)]) -> WriterPropertiesPtr {
        let pairs = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
        let pairs: Vec<_> = pairs.collect();
        let mut properties = WriterProperties::builder()
            .set_created_by(CREATED_BY.to_owned())
            .set_key_value_metadata((!pairs.is_empty()).then_some(pairs))
            .set_compression(COMPRESSION)
            .set_dictionary_enabled(false)
            .set_offset_index_disabled(true)
            .set_statistics_enabled(EnabledStatistics::None);
        for column in &self.columns {
            properties = properties.set_column_dictionary_enabled(column.path(), column.repeats);
            if matches!(column.kind, Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64) {
                properties =
                    properties.set_column_statistics_enabled(column.path(), EnabledStatistics::Chunk);
            }
        }
        Arc::new(properties.build())
    }
}
