//! The module `sentimill._native`: the cleaning and the n-gram models of the programs, for Python. Texts are any `str`; a lone
//! surrogate is read as U+FFFD. Other Python threads run while texts are cleaned or answered.
//!
//! Numbers are returned as the bytes of little-endian numbers, for NumPy.
#![expect(clippy::needless_pass_by_value, reason = "pyo3 extracts arguments and passes them by value")]

use std::path::{Path, PathBuf};

use classifiers::linear::{LinearScratch, Part};
use classifiers::{Classifier, Preparation, Reader, files};
use corpus::clean::{Cleaner, Rules, UNICODE_VERSION};
use corpus::ledger::NoReview;
use corpus::lines::is_blank;
use durable::Error;
use durable::sums::Sums;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

pyo3::import_exception!(sentimill.errors, DamagedModel);
pyo3::import_exception!(sentimill.errors, ModelError);

/// More than the memory of any machine: a file of a model is as large as its model.
const FILE_BYTES_MAX: u64 = 1 << 40;

/// The functions and classes of the module.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{Ngrams, NgramsOfLstm, clean, contents};

    /// The version of Unicode by which texts are cleaned.
    #[pymodule_export]
    const UNICODE_VERSION: &str = super::UNICODE_VERSION;
}

/// The cleaned text.
#[pyfunction]
fn clean(py: Python<'_>, text: Text, punctuation: bool) -> String {
    py.detach(|| {
        let mut cleaned = Vec::with_capacity(text.0.len());
        Cleaner::new(Rules::of_flag(punctuation)).clean(&text.0, &mut cleaned);
        String::from_utf8(cleaned).expect("a cleaned text is UTF-8")
    })
}

/// The content of files of a folder. Each must be listed with its digest, and match it.
#[pyfunction]
fn contents(py: Python<'_>, folder: PathBuf, names: Vec<String>) -> PyResult<Vec<Py<PyBytes>>> {
    let read = || {
        let sums = Sums::read(&folder)?;
        names.iter().map(|name| sums.content(name, FILE_BYTES_MAX)).collect::<Result<Vec<_>, _>>()
    };
    let found = py.detach(read).map_err(|error| failed(&error))?;
    Ok(found.iter().map(|content| PyBytes::new(py, content).unbind()).collect())
}

/// An n-gram model: the folder of one, or a file of the fastText program.
#[pyclass(frozen)]
struct Ngrams(Classifier);

#[pymethods]
impl Ngrams {
    #[new]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Classifier::read(&path)).map(Self).map_err(|error| failed(&error))
    }

    /// The names of the labels, in the order in which users see them.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.0.labels().names()
    }

    /// For each text: the predicted label (64-bit integers), its score if there are two labels (32-bit floats), the
    /// probability of each label, `[N, labels]` (32-bit floats), and `None` or the reason why it has none of these. Then its
    /// label is -1, and the others are NaN.
    fn predict(&self, py: Python<'_>, texts: Vec<Text>) -> Found {
        let (mut places, mut scores, mut all, mut errors) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        py.detach(|| {
            let (mut reader, mut preparation) = (self.0.reader(), Preparation::of(self.0.words()));
            let labels = self.0.labels();
            for text in &texts {
                match answer(&mut reader, &mut preparation, &text.0) {
                    Ok(found) => {
                        places.push(i64::from(labels.place(labels.predicted(found))));
                        let calibrated = labels.calibrated(found);
                        all.extend(labels.in_order().map(|label| calibrated[label as usize]));
                        if labels.n_labels() == 2 {
                            scores.push(labels.outputs(found)[0] as f32);
                        }
                        errors.push(None);
                    }
                    Err(error) => {
                        places.push(-1);
                        all.resize(all.len() + labels.n_labels(), f32::NAN);
                        if labels.n_labels() == 2 {
                            scores.push(f32::NAN);
                        }
                        errors.push(Some(error));
                    }
                }
            }
        });
        let places = bytes(py, places.into_iter().map(i64::to_le_bytes));
        (places, floats(py, &scores), floats(py, &all), errors)
    }
}

/// Labels, scores, probabilities and errors of texts.
type Found = (Py<PyByteArray>, Py<PyByteArray>, Py<PyByteArray>, Vec<Option<&'static str>>);

/// The probabilities of a text by the model's numbers of labels, or the reason why it has none, as `ngrams predict` names
/// it.
fn answer<'r>(
    reader: &'r mut Reader<'_>,
    preparation: &mut Preparation,
    text: &str,
) -> Result<&'r [f32], &'static str> {
    if is_blank(text.as_bytes()) {
        return Err(NoReview::Blank.counter());
    }
    let text = preparation.text(text.as_bytes()).ok_or(NoReview::EmptyText.counter())?;
    let found = reader.of_known(text).ok_or("only_unknown")?;
    if found.iter().all(|probability| probability.is_finite()) { Ok(found) } else { Err("not_finite") }
}

/// The n-grams that are a part of an LSTM model.
#[pyclass(frozen)]
struct NgramsOfLstm(Part);

#[pymethods]
impl NgramsOfLstm {
    /// Those in the folder of the model, for classes with these names.
    #[new]
    fn read(py: Python<'_>, folder: PathBuf, classes: Vec<String>) -> PyResult<Self> {
        let found = py.detach(|| files::read_part(&folder)).map_err(|error| failed(&error))?;
        let names: Vec<&str> = classes.iter().map(String::as_str).collect();
        let part = found.map_or_else(
            || Err(("none".to_owned(), "those of the head in config.json".to_owned())),
            |ngrams| Part::of(ngrams, &names),
        );
        part.map(Self).map_err(|(found, expected)| no_part(&folder, &found, &expected))
    }

    /// The outputs that are added to those of the LSTM for each text of words between spaces, `[N, outputs]`.
    fn outputs(&self, py: Python<'_>, texts: Vec<Text>) -> Py<PyByteArray> {
        let outputs = py.detach(|| {
            let (mut scratch, mut scores) = (LinearScratch::default(), Vec::new());
            let (mut hashes, mut outputs) = (Vec::new(), Vec::new());
            for text in &texts {
                let words = text.0.split(' ').filter(|word| !word.is_empty());
                hashes.clear();
                hashes.extend(words.map(|word| classifiers::hash(word.as_bytes())));
                self.0.outputs(&hashes, &mut scratch, &mut scores, &mut outputs);
            }
            outputs
        });
        floats(py, &outputs)
    }
}

/// A text of Python.
struct Text(String);

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let text = object.cast::<PyString>()?;
        // `to_str` copies other texts than ASCII, and leaves the copy in the text of Python.
        let is_ascii: bool = text.call_method0(intern!(object.py(), "isascii"))?.extract()?;
        if is_ascii {
            return Ok(Self(text.to_str()?.to_owned()));
        }
        if let Ok(utf8) = text.encode_utf8() {
            return Ok(Self(String::from_utf8_lossy(utf8.as_bytes()).into_owned()));
        }
        let utf16: Vec<u8> = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?.extract()?;
        let units: Vec<u16> =
            utf16.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
        Ok(Self(String::from_utf16_lossy(&units)))
    }
}

fn floats(py: Python<'_>, numbers: &[f32]) -> Py<PyByteArray> {
    bytes(py, numbers.iter().map(|number| number.to_le_bytes()))
}

fn bytes<const N: usize>(py: Python<'_>, numbers: impl Iterator<Item = [u8; N]>) -> Py<PyByteArray> {
    PyByteArray::new(py, &numbers.flatten().collect::<Vec<u8>>()).unbind()
}

/// The error of a model that was not read.
fn failed(error: &Error) -> PyErr {
    match error {
        Error::Damaged { .. } => DamagedModel::new_err(error.to_string()),
        _ => ModelError::new_err(error.to_string()),
    }
}

fn no_part(folder: &Path, found: &str, expected: &str) -> PyErr {
    let folder = folder.display();
    let remedy = "copy or train the whole model again";
    ModelError::new_err(format!("{folder}: the n-grams are {found}, expected {expected}; {remedy}"))
}
