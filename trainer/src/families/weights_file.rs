//! Reads the expected tensors from a safetensors file. Checks the whole header before it creates a tensor.
//!
//! ```text
//! bytes 0..8     length of the header, little-endian
//! then           the header, a JSON object: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …},
//!                optionally with "__metadata__": {"NAME": "TEXT", …}
//! then           the values of all tensors, little-endian; data_offsets count from here
//! ```
//!
//! The file must contain exactly the expected tensors, with the expected shapes and type. Their bytes must cover the
//! rest of the file without overlap, and each value must be finite. Memory use depends only on the expected tensors,
//! whatever the file contains.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Error as _, MapAccess, Visitor};
use tch::{Kind, Tensor};

use crate::error::{Error, Result};

/// Enough for thousands of tensors.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// A tensor that a file must contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Its name.
    pub(crate) name: String,
    /// Its shape.
    pub(crate) shape: Vec<i64>,
}

/// Reads these tensors in this order, all of one kind, on the CPU.
pub(crate) fn read(expected: &[Expected], kind: Kind, path: &Path) -> Result<Vec<Tensor>> {
    read_numbers(expected, kind, path).map_err(|failure| match failure {
        ReadFailure::Io(source) => training::Error::io(path, source).into(),
        ReadFailure::Content { found, expected } => Error::Weights { path: path.to_owned(), found, expected },
        ReadFailure::Torch(error) => error.into(),
    })
}

/// Why a file was refused.
enum ReadFailure {
    Io(std::io::Error),
    Content { found: String, expected: String },
    Torch(tch::TchError),
}

type Checked<T> = std::result::Result<T, ReadFailure>;

impl From<std::io::Error> for ReadFailure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

fn content(found: impl fmt::Display, expected: impl fmt::Display) -> ReadFailure {
    ReadFailure::Content {
        found: found.to_string(),
        expected: format!("{expected}; the file was not written by this program: pass another file"),
    }
}

fn read_numbers(expected: &[Expected], kind: Kind, path: &Path) -> Checked<Vec<Tensor>> {
    let mut file = File::open(path)?;
    let n_bytes = file.metadata()?.len();
    let header = read_header(&mut file, n_bytes)?;
    let mut places = places(&header.tensors, expected, kind)?;
    // In file order.
    places.sort_unstable_by_key(|place| place.begin);
    let mut tensors: Vec<Option<Tensor>> = expected.iter().map(|_| None).collect();
    let mut at = 0;
    for Place { begin, end, of } in places {
        let Expected { name, shape } = &expected[of];
        if begin != at {
            return Err(content(format!("{name} at byte {begin}"), format!("it at byte {at}")));
        }
        at = end;
        if at > n_bytes - header.n_bytes {
            return Err(content(format!("{} bytes of values", n_bytes - header.n_bytes), at));
        }
        let mut bytes = vec![0; (end - begin) as usize];
        file.read_exact(&mut bytes)?;
        let tensor = Tensor::f_from_data_size(&bytes, shape, kind).map_err(ReadFailure::Torch)?;
        if !is_finite(&tensor).map_err(ReadFailure::Torch)? {
            return Err(content(format!("values in {name} that are not finite"), "finite values"));
        }
        tensors[of] = Some(tensor);
    }
    if at != n_bytes - header.n_bytes {
        return Err(content(format!("{} bytes of values", n_bytes - header.n_bytes), at));
    }
    Ok(tensors.into_iter().flatten().collect())
}

fn is_finite(tensor: &Tensor) -> std::result::Result<bool, tch::TchError> {
    Ok(tensor.f_isfinite()?.f_all()?.f_int64_value(&[])? != 0)
}

/// The content of a header, and the offset of the values.
struct Header {
    tensors: BTreeMap<String, Entry>,
    n_bytes: u64,
}

fn read_header(file: &mut File, n_bytes: u64) -> Checked<Header> {
    if n_bytes < 8 {
        return Err(content(format!("{n_bytes} bytes"), "8 or more"));
    }
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    let most = HEADER_BYTES_MAX.min(n_bytes - 8);
    if length > most {
        return Err(content(format!("a header of {length} bytes"), format!("{most} or fewer")));
    }
    let mut json = vec![0; length as usize];
    file.read_exact(&mut json)?;
    let tensors: Tensors =
        serde_json::from_slice(&json).map_err(|error| content(error, "a header of tensors in JSON"))?;
    Ok(Header { tensors: tensors.0, n_bytes: 8 + length })
}

/// Byte range of a tensor, relative to the first value.
struct Place {
    begin: u64,
    end: u64,
    /// Index among the expected tensors.
    of: usize,
}

fn places(found: &BTreeMap<String, Entry>, expected: &[Expected], kind: Kind) -> Checked<Vec<Place>> {
    if let Some(name) = found.keys().find(|name| !expected.iter().any(|expected| expected.name == **name)) {
        let names: Vec<&str> = expected.iter().map(|expected| &*expected.name).collect();
        return Err(content(
            format!("a tensor {name}"),
            format!("only the tensors of the model, {}", names.join(", ")),
        ));
    }
    expected
        .iter()
        .enumerate()
        .map(|(of, expected)| {
            let Expected { name, shape } = expected;
            let Entry { dtype, shape: found_shape, data_offsets: [begin, end] } =
                found.get(name).ok_or_else(|| content("no such tensor", name))?;
            if found_shape != shape {
                return Err(content(format!("{name} of shape {found_shape:?}"), format!("shape {shape:?}")));
            }
            let expected_dtype = if kind == Kind::Double { "F64" } else { "F32" };
            if dtype != expected_dtype {
                return Err(content(format!("{name} of type {dtype}"), expected_dtype));
            }
            let n_bytes = shape.iter().try_fold(kind.elt_size_in_bytes() as u64, |product, &n| {
                product.checked_mul(u64::try_from(n).ok()?)
            });
            let found_bytes = end.checked_sub(*begin);
            match n_bytes {
                Some(n_bytes) if found_bytes == Some(n_bytes) => Ok(Place { begin: *begin, end: *end, of }),
                _ => Err(content(
                    format!("{name} at bytes {begin} to {end}"),
                    "the number of bytes of its shape",
                )),
            }
        })
        .collect()
}

/// A tensor's entry in the header.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dtype: String,
    shape: Vec<i64>,
    data_offsets: [u64; 2],
}

/// The tensors of a header; each name occurs once.
struct Tensors(BTreeMap<String, Entry>);

impl<'de> Deserialize<'de> for Tensors {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct OfMap;

        impl<'de> Visitor<'de> for OfMap {
            type Value = Tensors;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Tensors, A::Error> {
                let mut tensors = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<BTreeMap<String, String>>()?;
                    } else if let Some((name, _)) = tensors.remove_entry(&name) {
                        return Err(A::Error::custom(format!("the tensor {name} twice")));
                    } else {
                        tensors.insert(name, map.next_value()?);
                    }
                }
                Ok(Tensors(tensors))
            }
        }

        from.deserialize_map(OfMap)
    }
}

#[cfg(test)]
mod tests {
    use program::exit::Fails;
    use std::io::Write;

    use super::*;

    const TWO: &str = r#""a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
    const THREE: &str = r#""b":{"dtype":"F32","shape":[1,3],"data_offsets":[8,20]}"#;

    fn expected() -> Vec<Expected> {
        let tensor = |name: &str, shape: &[i64]| Expected { name: name.to_owned(), shape: shape.to_vec() };
        vec![tensor("b", &[1, 3]), tensor("a", &[2])]
    }

    /// A file with this header, these values, and the header's length or another one.
    fn file(length: Option<u64>, header: &str, numbers: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&length.unwrap_or(header.len() as u64).to_le_bytes()).unwrap();
        file.write_all(header.as_bytes()).unwrap();
        file.write_all(numbers).unwrap();
        file
    }

    fn numbers(n: usize) -> Vec<u8> {
        (0..n).flat_map(|at| (at as f32).to_le_bytes()).collect()
    }

    fn refused(length: Option<u64>, header: &str, numbers: &[u8]) -> String {
        let file = file(length, header, numbers);
        let error = read(&expected(), Kind::Float, file.path()).unwrap_err();
        assert_eq!(error.exit() as u8, 66, "{header}: {error}");
        error.to_string().replace(&file.path().display().to_string(), "FILE")
    }

    #[test]
    fn tensors_come_in_the_order_that_was_asked_for() {
        let header = format!(r#"{{"__metadata__":{{"format":"pt"}},{THREE},{TWO}}}  "#);
        let file = file(None, &header, &numbers(5));
        let [b, a] = &read(&expected(), Kind::Float, file.path()).unwrap()[..] else { panic!("two tensors") };
        assert_eq!(Vec::<f32>::try_from(a).unwrap(), [0.0, 1.0]);
        assert_eq!(Vec::<f32>::try_from(b.view(-1)).unwrap(), [2.0, 3.0, 4.0]);
    }

    #[test]
    fn what_pytorchs_wrapper_writes_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        for kind in [Kind::Float, Kind::Double] {
            let [a, b] =
                [Tensor::arange(2, (kind, tch::Device::Cpu)), Tensor::ones([1, 3], (kind, tch::Device::Cpu))];
            Tensor::write_safetensors(&[("a", &a), ("b", &b)], &path).unwrap();
            assert_eq!(read(&expected(), kind, &path).unwrap(), [b, a]);
        }
    }

    #[test]
    fn a_file_that_is_not_what_it_should_be_is_refused() {
        let both = format!("{{{TWO},{THREE}}}");
        let with = |from: &str, to: &str| {
            let header = both.replace(from, to);
            assert_ne!(header, both, "{from}");
            header
        };
        for (header, expected) in [
            (with("F32\",\"shape\":[2]", "I32\",\"shape\":[2]"), "a of type I32, expected F32"),
            (with("F32\",\"shape\":[2]", "BF16\",\"shape\":[2]"), "a of type BF16, expected F32"),
            (with("F32\",\"shape\":[2]", "X\\u001b[2J\",\"shape\":[2]"), "expected F32"),
            (with("\"shape\":[2]", "\"shape\":[1,2]"), "a of shape [1, 2], expected shape [2]"),
            (with("\"shape\":[2]", "\"shape\":[-2]"), "a of shape [-2], expected shape [2]"),
            (
                with("\"shape\":[2]", "\"shape\":[9223372036854775808]"),
                "expected a header of tensors in JSON",
            ),
            (with("[0,8]", "[0,4]"), "a at bytes 0 to 4, expected the number of bytes of its shape"),
            (with("[0,8]", "[8,0]"), "a at bytes 8 to 0, expected the number of bytes of its shape"),
            (with("[0,8]", "[12,20]"), "b at byte 8, expected it at byte 0"),
            (with("[0,8]", "[2,10]"), "a at byte 2, expected it at byte 0"),
            (with("[8,20]", "[4,16]"), "b at byte 4, expected it at byte 8"),
            (with("[8,20]", "[12,24]"), "b at byte 12, expected it at byte 8"),
            (
                with("[0,8]", "[18446744073709551608,18446744073709551616]"),
                "expected a header of tensors in JSON",
            ),
            (
                with("[0,8]", "[18446744073709551607,18446744073709551615]"),
                "b at byte 8, expected it at byte 0",
            ),
            (with("[0,8]", "[0,8,9]"), "expected a header of tensors in JSON"),
            (with("\"a\"", "\"c\""), "a tensor c, expected only the tensors of the model, b, a"),
            (format!("{{{TWO}}}"), "no such tensor, expected b"),
            (format!("{{{TWO},{THREE},{TWO}}}"), "the tensor a twice"),
            (with("\"dtype\"", "\"extra\":1,\"dtype\""), "unknown field `extra`"),
            (
                format!("{{\"__metadata__\":{{\"a\":1}},{TWO},{THREE}}}"),
                "expected a header of tensors in JSON",
            ),
            (format!("[{TWO}]"), "expected a header of tensors in JSON"),
            (both[..both.len() - 1].to_owned(), "expected a header of tensors in JSON"),
            (String::new(), "expected a header of tensors in JSON"),
            ("[".repeat(100_000), "expected a header of tensors in JSON"),
        ] {
            let message = refused(None, &header, &numbers(5));
            assert!(message.contains(expected), "{header:.200}: {message}");
        }
    }

    #[test]
    fn bytes_that_are_missing_or_too_many_are_refused() {
        let both = format!("{{{TWO},{THREE}}}");
        let header_bytes = both.len() as u64;
        assert!(refused(None, &both, &numbers(4)).contains("16 bytes of values, expected 20"));
        assert!(refused(None, &both, &numbers(6)).contains("24 bytes of values, expected 20"));
        for length in [u64::MAX, 1 << 40, (1 << 20) + 1, header_bytes + 21] {
            let message = refused(Some(length), &both, &numbers(5));
            let expected =
                format!("FILE: a header of {length} bytes, expected {} or fewer", header_bytes + 20);
            assert!(message.starts_with(&expected), "{message}");
        }
        assert!(refused(Some(header_bytes - 1), &both, &numbers(5)).contains("a header of tensors in JSON"));
        let short = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(read(&expected(), Kind::Float, short.path()).unwrap_err().exit() as u8, 66);
    }

    #[test]
    fn numbers_that_are_not_finite_are_refused() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut numbers = numbers(5);
            numbers[12..16].copy_from_slice(&bad.to_le_bytes());
            let message = refused(None, &format!("{{{TWO},{THREE}}}"), &numbers);
            assert!(message.contains("values in b that are not finite"), "{message}");
        }
    }
}
