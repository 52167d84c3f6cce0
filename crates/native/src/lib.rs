//! The module `sentimill._native`: the cleaning and the n-gram models of the programs, for Python. Texts are any `str`; a lone
//! surrogate is read as U+FFFD. Other Python threads run while texts are cleaned or answered.
//!
//! Numbers are returned as the bytes of 32-bit floats, of which NumPy makes arrays without a copy.
#![expect(clippy::needless_pass_by_value, reason = "pyo3 extracts arguments and passes them by value")]

use std::path::{Path, PathBuf};

use classifiers::linear::{LinearScratch, Part};
use classifiers::{Classifier, Preparation, files};
use corpus::clean::{Cleaner, Rules, UNICODE_VERSION};
use corpus::lines::is_blank;
use durable::Error;
use durable::sums::Sums;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyString};

pyo3::import_exception!(sentimill.errors, DamagedModel);
pyo3::import_exception!(sentimill.errors, ModelError);

/// The functions and classes of the module.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{Ngrams, NgramsOfLstm, clean, verify};

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

/// Compares the files of a folder with their digests.
#[pyfunction]
fn verify(py: Python<'_>, folder: PathBuf) -> PyResult<()> {
    py.detach(|| Sums::verify(&folder)).map(drop).map_err(|error| failed(&error))
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

    /// The probability of each label for each text, `[N, labels]`, and for each text `None` or the reason why it has none. Then
    /// its probabilities are 0.
    fn predict(&self, py: Python<'_>, texts: Vec<Text>) -> (Py<PyByteArray>, Vec<Option<&'static str>>) {
        let (probabilities, errors) = py.detach(|| {
            let (mut reader, mut preparation) = (self.0.reader(), Preparation::of(self.0.words()));
            let labels = self.0.labels();
            let (mut all, mut errors) = (Vec::with_capacity(texts.len() * labels.n_labels()), Vec::new());
            let mut answer = |text: &str, all: &mut Vec<f32>| {
                if is_blank(text.as_bytes()) {
                    return Err("blank");
                }
                let text = preparation.text(text.as_bytes()).ok_or("empty_text")?;
                let found = reader.of_known(text).ok_or("only_unknown")?;
                if !found.iter().all(|probability| probability.is_finite()) {
                    return Err("not_finite");
                }
                all.extend(labels.in_order().map(|label| found[label as usize]));
                Ok(())
            };
            for text in &texts {
                errors.push(answer(&text.0, &mut all).err());
                all.resize(errors.len() * labels.n_labels(), 0.0);
            }
            (all, errors)
        });
        (bytes(py, &probabilities), errors)
    }
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
        bytes(py, &outputs)
    }
}

/// A text of Python.
struct Text(String);

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let text = object.cast::<PyString>()?;
        if let Ok(text) = text.to_str() {
            return Ok(Self(text.to_owned()));
        }
        let utf16: Vec<u8> = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?.extract()?;
        let units: Vec<u16> =
            utf16.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
        Ok(Self(String::from_utf16_lossy(&units)))
    }
}

fn bytes(py: Python<'_>, numbers: &[f32]) -> Py<PyByteArray> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    PyByteArray::new(py, &bytes).unbind()
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
