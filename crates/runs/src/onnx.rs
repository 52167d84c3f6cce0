//! Writes models as files of [ONNX](https://onnx.ai/onnx/repo-docs/IR.html): a graph of operators, constants and metadata.
//!
//! A [`Graph`] is made node by node; a value is known by its name. Of the messages of `onnx.proto`, only the fields that
//! are written are declared. A file of protocol buffers has at most 2 GiB, so the large constants of a larger model are
//! in a second file, the name of the first with `.data`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use durable::{At, new_file};
use prost::Message;

use crate::error::Result;

/// Of constants of more bytes than this, the large ones are in a second file. The other fields have room in the rest of
/// the 2 GiB.
pub const INLINE_BYTES_MAX: u64 = 1 << 30;
/// Smaller constants, which include shapes and axes, are never in a second file: shapes of values follow from them.
const DATA_BYTES_MIN: usize = 1 << 10;
/// An entry of the metadata that is longer is omitted.
const METADATA_BYTES_MAX: usize = 16 << 20;
/// The version of the operators, and the version of the format that came with it.
const OPERATORS_VERSION: i64 = 18;
const FORMAT_VERSION: i64 = 8;

/// The type of the elements of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// 32-bit floats.
    F32 = 1,
    /// 32-bit integers.
    I32 = 6,
    /// 64-bit integers.
    I64 = 7,
}

/// The name of a value of a graph.
pub type Value = String;

/// A graph of operators.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    graph: GraphProto,
    metadata: Vec<Entry>,
    n_values: usize,
}

impl Graph {
    /// Adds an input. A dimension is a number or a name.
    pub fn input(&mut self, name: &str, kind: ElementType, shape: &[&str]) -> Value {
        self.graph.input.push(ValueInfo::of(name, kind, shape));
        name.to_owned()
    }

    /// Makes a value of 32-bit floats an output with this name.
    pub fn output(&mut self, value: &str, name: &str, shape: &[&str]) {
        let output = vec![name.to_owned()];
        self.graph.node.push(Node {
            input: vec![value.to_owned()],
            output,
            op_type: "Identity".to_owned(),
            ..Node::default()
        });
        self.graph.output.push(ValueInfo::of(name, ElementType::F32, shape));
    }

    /// Adds a constant of 32-bit floats.
    pub fn floats(&mut self, shape: &[usize], values: &[f32]) -> Value {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(ElementType::F32, shape, bytes)
    }

    /// Adds a constant without dimensions.
    pub fn number(&mut self, value: f64) -> Value {
        self.floats(&[], &[value as f32])
    }

    /// Adds a 64-bit integer without dimensions.
    pub fn integer(&mut self, value: i64) -> Value {
        self.constant(ElementType::I64, &[], value.to_le_bytes().to_vec())
    }

    /// Adds a constant of 64-bit integers in one dimension.
    pub fn integers(&mut self, values: &[i64]) -> Value {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(ElementType::I64, &[values.len()], bytes)
    }

    fn constant(&mut self, kind: ElementType, shape: &[usize], raw_data: Vec<u8>) -> Value {
        let dims = shape.iter().map(|&size| size as i64).collect();
        let name = self.name();
        self.graph.initializer.push(Tensor {
            dims,
            data_type: kind as i32,
            name: name.clone(),
            raw_data,
            ..Tensor::default()
        });
        name
    }

    /// Adds a node with one output.
    pub fn node(&mut self, operator: &str, inputs: &[&str], attributes: &[Attribute]) -> Value {
        let [output] = self.nodes(operator, inputs, attributes);
        output
    }

    /// Adds a node with several outputs. An input without a name is omitted.
    pub fn nodes<const N: usize>(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: &[Attribute],
    ) -> [Value; N] {
        let outputs = [(); N].map(|()| self.name());
        self.graph.node.push(Node {
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: outputs.to_vec(),
            op_type: operator.to_owned(),
            attribute: attributes.to_vec(),
        });
        outputs
    }

    /// Adds the sum of rows of a table with C = `n_columns`, `[B, C]`: `rows`, `[B, N]`, with the factors `values`,
    /// `[B, N]`.
    pub fn weighted_rows(&mut self, n_columns: usize, table: &[f32], rows: &str, values: &str) -> Value {
        // A text without a row has row 0, with the factor 0.
        let zeros = vec![0.0; n_columns];
        let table = if table.is_empty() { &zeros } else { table };
        let table = self.floats(&[table.len() / n_columns, n_columns], table);
        let (axes, [one, last]) = (self.integers(&[-1]), [1, -1].map(|place| self.integer(place)));
        let found = self.node("Gather", &[&table, rows], &[]); // [B, N, C]
        let values = self.node("Unsqueeze", &[values, &axes], &[]); // [B, N, 1]
        let products = self.node("Mul", &[&found, &values], &[]);
        // In order, as the programs sum: another order would differ in the sixth digit.
        let sums = self.node("CumSum", &[&products, &one], &[]);
        self.node("Gather", &[&sums, &last], &[Attribute::integer("axis", 1)])
    }

    /// Adds an entry to the metadata, unless it is too long.
    pub fn metadata(&mut self, key: &str, value: String) {
        if value.len() <= METADATA_BYTES_MAX {
            self.metadata.push(Entry { key: key.to_owned(), value });
        }
    }

    fn name(&mut self) -> Value {
        self.n_values += 1;
        format!("v{}", self.n_values)
    }

    /// Writes the file. If constants have more than `inline_bytes_max` bytes, the second file is written first. An
    /// existing file is not overwritten.
    pub fn write(mut self, path: &Path, inline_bytes_max: u64) -> Result<()> {
        check_both_free(path)?;
        let n_bytes: u64 = self.graph.initializer.iter().map(|tensor| tensor.raw_data.len() as u64).sum();
        let has_data = n_bytes > inline_bytes_max;
        if has_data {
            self.write_data(path)?;
        }
        self.graph.name = "model".to_owned();
        let model = Model {
            ir_version: FORMAT_VERSION,
            producer_name: "sentimill".to_owned(),
            producer_version: env!("CARGO_PKG_VERSION").to_owned(),
            graph: Some(self.graph),
            opset_import: vec![Operators { version: OPERATORS_VERSION }],
            metadata_props: self.metadata,
        };
        let written = new_file(path, |mut file| file.write_all(&model.encode_to_vec()));
        if written.is_err() && has_data {
            let data = data_of(path);
            fs::remove_file(&data).at(&data, "delete it")?;
        }
        Ok(written?)
    }

    /// Moves the large constants into the second file.
    fn write_data(&mut self, path: &Path) -> Result<()> {
        let data = data_of(path);
        let location = data.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_large = |tensor: &&mut Tensor| tensor.raw_data.len() >= DATA_BYTES_MIN;
        let mut tensors: Vec<_> = self.graph.initializer.iter_mut().filter(is_large).collect();
        new_file(&data, |mut file| tensors.iter().try_for_each(|tensor| file.write_all(&tensor.raw_data)))?;
        let mut offset = 0;
        for tensor in &mut tensors {
            let length = std::mem::take(&mut tensor.raw_data).len();
            let entry = |key: &str, value: String| Entry { key: key.to_owned(), value };
            tensor.external_data = vec![
                entry("location", location.clone()),
                entry("offset", offset.to_string()),
                entry("length", length.to_string()),
            ];
            tensor.data_location = EXTERNAL;
            offset += length;
        }
        Ok(())
    }
}

/// Refuses a path at which one of both files exists.
pub fn check_both_free(path: &Path) -> Result<()> {
    durable::check_free(path)?;
    Ok(durable::check_free(&data_of(path))?)
}

/// The second file of a model.
fn data_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".data");
    name.into()
}

impl Attribute {
    /// An integer.
    pub fn integer(name: &str, value: i64) -> Self {
        Self { name: name.to_owned(), i: Some(value), kind: 2, ..Self::default() }
    }

    /// A text.
    pub fn text(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), s: Some(value.as_bytes().to_vec()), kind: 3, ..Self::default() }
    }

    /// A list of integers.
    pub fn integers(name: &str, values: &[i64]) -> Self {
        Self { name: name.to_owned(), ints: values.to_vec(), kind: 7, ..Self::default() }
    }
}

const EXTERNAL: i32 = 1;

#[derive(Clone, PartialEq, Message)]
struct Model {
    #[prost(int64, tag = "1")]
    ir_version: i64,
    #[prost(string, tag = "2")]
    producer_name: String,
    #[prost(string, tag = "3")]
    producer_version: String,
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    opset_import: Vec<Operators>,
    #[prost(message, repeated, tag = "14")]
    metadata_props: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
struct Operators {
    #[prost(int64, tag = "2")]
    version: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    node: Vec<Node>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<ValueInfo>,
}

#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(string, repeated, tag = "1")]
    input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    output: Vec<String>,
    #[prost(string, tag = "4")]
    op_type: String,
    #[prost(message, repeated, tag = "5")]
    attribute: Vec<Attribute>,
}

/// An attribute of a node.
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, optional, tag = "3")]
    i: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "4")]
    s: Option<Vec<u8>>,
    #[prost(int64, repeated, tag = "8")]
    ints: Vec<i64>,
    #[prost(int32, tag = "20")]
    kind: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "vec", tag = "9")]
    raw_data: Vec<u8>,
    #[prost(message, repeated, tag = "13")]
    external_data: Vec<Entry>,
    #[prost(int32, tag = "14")]
    data_location: i32,
}

#[derive(Clone, PartialEq, Message)]
struct ValueInfo {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Message)]
struct Kind {
    #[prost(message, optional, tag = "1")]
    tensor: Option<TensorKind>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorKind {
    #[prost(int32, tag = "1")]
    elements: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
struct Shape {
    #[prost(message, repeated, tag = "1")]
    dim: Vec<Dimension>,
}

#[derive(Clone, PartialEq, Message)]
struct Dimension {
    #[prost(int64, optional, tag = "1")]
    value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
}

impl ValueInfo {
    fn of(name: &str, kind: ElementType, shape: &[&str]) -> Self {
        let dimension = |size: &&str| match size.parse() {
            Ok(value) => Dimension { value: Some(value), name: None },
            Err(_) => Dimension { value: None, name: Some((*size).to_owned()) },
        };
        let shape = Some(Shape { dim: shape.iter().map(dimension).collect() });
        let tensor = Some(TensorKind { elements: kind as i32, shape });
        Self { name: name.to_owned(), kind: Some(Kind { tensor }) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const PREDICT: &str = "
import numpy
invalid = 'strict'
def inputs(texts):
    return {'rows': numpy.array([[2, 0]] * len(texts)), 'values': numpy.array([[1, 0.5]] * len(texts), 'float32')}
";

    #[test]
    fn a_large_model_has_its_constants_in_a_second_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("predict.py"), PREDICT).unwrap();
        let taken = folder.path().join("taken.onnx");
        fs::write(data_of(&taken), b"").unwrap();
        let told = Graph::default().write(&taken, 0).unwrap_err().to_string();
        assert!(told.contains("taken.onnx.data: already exists"), "{told}");

        let table: Vec<f32> = (1..=600).map(|value| value as f32).collect();
        for (name, inline_bytes_max, n_bytes) in
            [("small.onnx", 1 << 12, None), ("large.onnx", 16, Some(2400))]
        {
            let mut graph = Graph::default();
            let rows = graph.input("rows", ElementType::I64, &["batch", "n"]);
            let values = graph.input("values", ElementType::F32, &["batch", "n"]);
            let sums = graph.weighted_rows(2, &table, &rows, &values);
            let row_0 = graph.node("Sub", &[&rows, &rows], &[]);
            let none = graph.weighted_rows(2, &[], &row_0, &values);
            let sums = graph.node("Add", &[&sums, &none], &[]);
            graph.output(&sums, "sums", &["batch", "2"]);
            graph.metadata("labels", "[\"a\"]".to_owned());
            graph.metadata("words", "w".repeat(METADATA_BYTES_MAX + 1));
            let path = folder.path().join(name);
            graph.clone().write(&path, inline_bytes_max).unwrap();
            // Only the table, not the axes and places of nodes.
            assert_eq!(fs::metadata(data_of(&path)).ok().map(|data| data.len()), n_bytes);
            assert!(fs::metadata(&path).unwrap().len() < 4000);
            let told = graph.write(&path, inline_bytes_max).unwrap_err().to_string();
            assert!(told.contains("already exists"), "{told}");
            let Some(found) = ::tests::oracle::onnx(&path, folder.path(), b"one\ntwo\n") else { return };
            assert_eq!(found, "{\"sums\": [5.5, 7.0]}\n".repeat(2));
        }
    }
}
