//! A file of answers with the columns of the input: JSON lines, CSV, TSV or Parquet, by its extension.
//!
//! Each entry of the input is a row, in the same order. Behind its columns are `file` if there are several, `label`,
//! `class` and `probability`, then `rating` of a model that predicts it, with `--probabilities` a column per class, and
//! `error`. A row without an answer has nulls, and the reason in `error`. The name of an added column that the input has,
//! too, begins with `predicted_`.
//!
//! ```text
//! id,review,label,class,probability,error
//! 7,"good, really",1,positive,0.9241418,
//! 8,,,,,empty_text
//! ```
//!
//! Of the wrong predictions of an evaluation ([`super::wrong`]), the added columns are `file`, `true_label`,
//! `predicted_label` and `probability`, which is that of the predicted label.
//!
//! A table has the columns of its first window of texts. Further fields of later JSON objects are left out and reported; in
//! JSON lines, only those with the name of an added column are.
//! Lines without columns are in the column `text`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use corpus::csv::{Columns, RecordValues};
use program::exit::{Exit, Failed};
use program::place::{check_folder, folder_of};
use runs::soft_labels::{check_new, occupied};
use runs::training::temporary_beside;
use tables::{Nullable, NullableWriter};
use tempfile::NamedTempFile;

use super::cell::{Cell, Kept, Members, PREDICTED, add, object, record, text};
use super::lines::{EntryText, Format, LineOptions, Written};
use super::wrong::{self, Wrong};
use super::{Answer, AnswersError, Refusal};
use crate::error::{Error, Result};
use crate::tell::tell;

/// Maximum number of columns of a table.
const COLUMNS_MAX: usize = 4096;
/// Maximum number of fields that are left out by name.
const LEFT_OUT_MAX: usize = 20;

/// What is added to the columns of the input.
#[derive(Clone, Debug)]
pub struct AddedColumns {
    /// The names of the classes, in the order of labels.
    pub classes: Vec<String>,
    /// Whether the model predicts a rating.
    pub has_rating: bool,
    /// Whether each class has a column.
    pub has_probabilities: bool,
}

/// A column that is added: its name, and its type.
pub(super) type Added = (String, Nullable);

/// A file of answers, which gets its name when it is complete.
pub struct AnswerFile {
    path: PathBuf,
    file: NamedTempFile,
    form: Form,
    added: AddedColumns,
    /// Whether rows have the name of their file.
    has_file: bool,
    /// The wrong predictions so far, if only those are written.
    wrong: Option<Wrong>,
    /// Unknown before the first rows.
    columns: Option<WrittenColumns>,
    rows: Rows,
    values: RecordValues,
    /// The columns of the last table.
    table: (Option<Columns>, Vec<Arc<str>>),
    /// Fields that are no columns, with the numbers of rows.
    left_out: LeftOut,
    /// Rows of which only the text is kept.
    n_texts: u64,
}

/// The columns that are written.
struct WrittenColumns {
    /// The place of each column of the input.
    places: HashMap<Arc<str>, usize>,
    /// The names of the added ones, which follow.
    added: Vec<String>,
    /// The same names.
    added_names: HashSet<String>,
}

/// Fields that are no columns.
#[derive(Default)]
struct LeftOut {
    /// The first ones, with the numbers of their rows.
    first: BTreeMap<Arc<str>, u64>,
    /// Number of values of further fields.
    n_others: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Delimited(u8),
    Parquet,
}

/// Where rows are written.
enum Rows {
    Lines(BufWriter<File>),
    Parquet(Box<NullableWriter<File>>),
}

/// An entry whose answer is awaited.
pub struct KeptRow {
    columns: Kept,
    /// Its labels, if only wrong predictions are written.
    labels: Vec<String>,
}

impl KeptRow {
    /// Memory that it has.
    pub(super) fn bytes(&self) -> usize {
        let columns = self.columns.iter().map(|(name, cell)| name.len() + cell.bytes());
        columns.chain(self.labels.iter().map(String::len)).sum()
    }
}

impl Form {
    /// The format of a file that is to be made at the path of this flag.
    fn of(path: &Path, flag: &'static str) -> Result<Self> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let form = match extension.to_lowercase().as_str() {
            "jsonl" | "ndjson" | "json" => Self::Json,
            "csv" => Self::Delimited(b','),
            "tsv" => Self::Delimited(b'\t'),
            "parquet" => Self::Parquet,
            _ => {
                let expected =
                    "expected a file with the extension .jsonl, .csv, .tsv or .parquet; choose one";
                return Err(Failed::new(Exit::Usage, format!("{flag} {}: {expected}", path.display())).into());
            }
        };
        check_folder(folder_of(path), flag)?;
        check_new(path)?;
        Ok(form)
    }
}

impl AnswerFile {
    /// Makes a file at a path where none is, in the format of its extension. `flag` is that of the path. With `wrong`, it gets
    /// wrong predictions only.
    pub fn new(path: &Path, flag: &'static str, added: AddedColumns, wrong: Option<Wrong>) -> Result<Self> {
        let form = Form::of(path, flag)?;
        let file = temporary_beside(path)?;
        let rows = Rows::Lines(BufWriter::new(file.reopen().map_err(|error| Error::io(path, error))?));
        Ok(Self {
            path: path.to_owned(),
            file,
            form,
            added,
            has_file: false,
            wrong,
            columns: None,
            rows,
            values: RecordValues::default(),
            table: (None, Vec::new()),
            left_out: LeftOut::default(),
            n_texts: 0,
        })
    }

    /// Adds the name of the file to each row.
    pub fn name_files(&mut self) {
        self.has_file = true;
    }

    /// Whether it gets wrong predictions only.
    pub(super) fn is_of_wrong(&self) -> bool {
        self.wrong.is_some()
    }

    /// The wrong predictions so far, if only those are written.
    pub fn wrong(&mut self) -> Option<&mut Wrong> {
        self.wrong.as_mut()
    }

    /// Checks whether a file can be made at the path of this flag.
    pub fn check(path: &Path, flag: &'static str) -> Result<()> {
        Form::of(path, flag).map(drop)
    }

    /// The columns of an entry, and its labels if only wrong predictions are written.
    pub(super) fn keep(
        &mut self,
        written: Written<'_>,
        entry: Option<EntryText<'_>>,
        options: &LineOptions,
    ) -> Result<KeptRow, AnswersError> {
        let labels = match (&mut self.wrong, entry) {
            (Some(wrong), Some(entry)) => wrong.labels(entry, written, &options.format),
            _ => Vec::new(),
        };
        let columns = self.columns_of(written, entry.map(|entry| entry.text), options)?;
        Ok(KeptRow { columns, labels })
    }

    fn columns_of(
        &mut self,
        written: Written<'_>,
        text: Option<&[u8]>,
        options: &LineOptions,
    ) -> Result<Kept, AnswersError> {
        let format = &options.format;
        let of_text = |name: &str| {
            let text = text.map(|text| (name.into(), Cell::Text(String::from_utf8_lossy(text).into_owned())));
            text.into_iter().collect()
        };
        let fields = if let Format::Review(format) = format { format.fields() } else { None };
        let field = fields
            .and_then(|fields| fields.text.first())
            .map_or_else(|| "text".to_owned(), ToString::to_string);
        Ok(match written {
            Written::Record(record, columns) => {
                self.open(columns, &options.place())?;
                let cell =
                    |value: Option<&str>| value.map_or(Cell::Null, |value| Cell::Text(value.to_owned()));
                let values = self.values.of(&String::from_utf8_lossy(record), columns);
                let values = values.map(|values| values.map(cell).collect::<Vec<_>>()).unwrap_or_default();
                self.table.1.iter().cloned().zip(values).collect()
            }
            Written::Row(names, values) => {
                check_columns(names.len(), &options.place())?;
                names.iter().cloned().zip(values.iter().map(|value| Cell::from(*value))).collect()
            }
            Written::Line(line) if fields.is_some() => match serde_json::from_slice(line) {
                Ok(Members(members)) => members,
                // A literal of Python has no columns.
                Err(_) => {
                    self.n_texts += u64::from(text.is_some());
                    of_text(&field)
                }
            },
            Written::Line(line) if !matches!(format, Format::Review(_)) => {
                vec![("text".into(), Cell::Text(String::from_utf8_lossy(line).into_owned()))]
            }
            Written::Line(_) | Written::Text => of_text(&field),
        })
    }

    /// The columns of a table, which may have no rows.
    pub fn open(&mut self, columns: &Columns, place: &str) -> Result<(), AnswersError> {
        if self.table.0.as_ref() != Some(columns) {
            let names = columns.names();
            check_columns(names.len(), place)?;
            self.table = (Some(columns.clone()), distinct(names));
        }
        Ok(())
    }

    /// Writes the rows of a window.
    pub(super) fn write(
        &mut self,
        rows: impl Iterator<Item = KeptRow>,
        answers: &[Result<Answer<'_>, Refusal>],
        file: Option<&str>,
    ) -> Result<(), AnswersError> {
        let (rows, labels): (Vec<Kept>, Vec<_>) = rows.map(|row| (row.columns, row.labels)).unzip();
        if self.columns.is_none() && !rows.is_empty() {
            self.begin(&rows)?;
        }
        let file = self.has_file.then(|| file.map_or(Cell::Null, |file| Cell::Text(file.to_owned())));
        let Some(wrong) = &mut self.wrong else {
            let cells =
                answers.iter().map(|answer| file.iter().cloned().chain(self.added.cells(answer)).collect());
            let rows = rows.into_iter().zip(cells.collect::<Vec<_>>()).collect();
            return self.write_rows(rows).map_err(AnswersError::Write);
        };
        for ((row, labels), answer) in rows.into_iter().zip(labels).zip(answers) {
            if let Ok(answer) = answer
                && let Some(cells) = wrong.cells(&labels, answer, &self.added.classes)
            {
                let cells = file.iter().cloned().chain(cells).collect();
                wrong.add(answer.confidence(), (row, cells))?;
            }
        }
        Ok(())
    }

    fn write_rows(&mut self, rows: Vec<(Kept, Vec<Cell>)>) -> io::Result<()> {
        let Some(WrittenColumns { places, added, added_names }) = &self.columns else { return Ok(()) };
        for (row, cells) in rows {
            if self.form == Form::Json {
                let Rows::Lines(out) = &mut self.rows else { continue };
                let (row, others): (Kept, Kept) =
                    row.into_iter().partition(|(name, _)| !added_names.contains(&**name));
                others.into_iter().for_each(|(name, _)| self.left_out.add(name));
                object(out, &row, added, &cells)?;
                continue;
            }
            let mut values = vec![Cell::Null; places.len()];
            let of_parquet = if let Rows::Parquet(out) = &mut self.rows { Some(out.columns()) } else { None };
            for (name, cell) in row {
                match places.get(&name) {
                    Some(&at) if of_parquet.as_ref().is_none_or(|columns| cell.fits(&columns[at])) => {
                        values[at] = cell;
                    }
                    _ => self.left_out.add(name),
                }
            }
            values.extend(cells);
            match (&mut self.rows, self.form) {
                (Rows::Lines(out), Form::Delimited(delimiter)) => record(out, &values, delimiter)?,
                (Rows::Parquet(out), _) => add(out, values)?,
                (Rows::Lines(_), _) => {}
            }
        }
        Ok(())
    }

    /// Decides the columns by the first rows.
    fn begin(&mut self, rows: &[Kept]) -> Result<(), AnswersError> {
        // Bad records have no columns.
        let (mut kept, mut places) = (Vec::new(), HashMap::new());
        for name in self.table.1.iter().chain(rows.iter().flatten().map(|(name, _)| name)) {
            places.entry(Arc::clone(name)).or_insert_with(|| {
                kept.push(Arc::clone(name));
                kept.len() - 1
            });
        }
        if self.form != Form::Json {
            check_columns(kept.len(), "the first rows")?;
        }
        let new_name = |mut name: String| {
            while places.contains_key(&*name) {
                name.insert_str(0, PREDICTED);
            }
            name
        };
        let mut added: Vec<Added> = Vec::new();
        added.extend(self.has_file.then(|| ("file".to_owned(), text())));
        added.extend(if self.is_of_wrong() { wrong::columns() } else { self.added.columns() });
        let added = added.into_iter().map(|(name, values)| (new_name(name), values)).collect();
        let mut types: Vec<Option<Nullable>> = vec![None; kept.len()];
        for (name, cell) in rows.iter().flatten() {
            let of = places.get(name).map(|&at| &mut types[at]).filter(|of| of.is_none());
            of.into_iter().for_each(|of| *of = cell.column());
        }
        let types = types.into_iter().map(|of| of.unwrap_or_else(text));
        let kept: Vec<(Arc<str>, Nullable)> = kept.into_iter().zip(types).collect();
        let added = self.write_header(&kept, added).map_err(AnswersError::Write)?;
        let added_names = added.iter().cloned().collect();
        self.columns = Some(WrittenColumns { places, added, added_names });
        Ok(())
    }

    /// Returns the names of the added columns.
    fn write_header(&mut self, kept: &[(Arc<str>, Nullable)], added: Vec<Added>) -> io::Result<Vec<String>> {
        let added_names: Vec<String> = added.iter().map(|(name, _)| name.clone()).collect();
        match self.form {
            Form::Json => {}
            Form::Delimited(delimiter) => {
                let names =
                    kept.iter().map(|(name, _)| &**name).chain(added_names.iter().map(String::as_str));
                let names: Vec<_> = names.map(|name| Cell::Text(name.to_owned())).collect();
                if let Rows::Lines(out) = &mut self.rows {
                    record(out, &names, delimiter)?;
                }
            }
            Form::Parquet => {
                let kept = kept.iter().map(|(name, values)| (&**name, values.clone()));
                let added =
                    added_names.iter().map(String::as_str).zip(added.into_iter().map(|(_, values)| values));
                let columns = kept.chain(added).collect();
                let writer = NullableWriter::new(self.file.reopen()?, columns).map_err(io::Error::other)?;
                self.rows = Rows::Parquet(Box::new(writer));
            }
        }
        Ok(added_names)
    }

    /// Completes the file and gives it its name.
    pub fn finish(mut self) -> Result<()> {
        if self.columns.is_none() {
            self.begin(&[])?;
        }
        let rows_of = if self.is_of_wrong() { "evaluated rows" } else { "rows" };
        if let Some(wrong) = self.wrong.take() {
            let mut rows = wrong.in_order()?;
            while let Some(some) = rows.next()? {
                self.write_rows(some).map_err(AnswersError::Write)?;
            }
        }
        let failed = |error| Error::io(&self.path, error);
        match self.rows {
            Rows::Lines(out) => drop(out.into_inner().map_err(|error| failed(error.into_error()))?),
            Rows::Parquet(out) => drop(out.finish().map_err(|error| failed(io::Error::other(error)))?),
        }
        self.file.as_file().sync_all().map_err(failed)?;
        let path = self.path.display();
        if let Some(left_out) = self.left_out.told() {
            let why = match self.form {
                Form::Json => "because added columns have their names; rename the fields",
                Form::Delimited(_) | Form::Parquet => {
                    "because the first rows do not have them, or have another type there; give the first row all fields"
                }
            };
            tell(&format!("warning: {path}: values are left out ({left_out}), {why}"));
        }
        if self.n_texts > 0 {
            let found = "only the text is kept, because they are Python literals or no valid JSON";
            tell(&format!("warning: {path}: of {} {rows_of}, {found}; write them as JSON", self.n_texts));
        }
        match self.file.persist_noclobber(&self.path) {
            Ok(_) => Ok(()),
            Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(occupied(&self.path).into())
            }
            Err(refused) => Err(failed(refused.error)),
        }
    }
}

impl LeftOut {
    fn add(&mut self, name: Arc<str>) {
        if let Some(n_rows) = self.first.get_mut(&name) {
            *n_rows += 1;
        } else if self.first.len() < LEFT_OUT_MAX {
            self.first.insert(name, 1);
        } else {
            self.n_others += 1;
        }
    }

    /// The fields and the numbers of their values, if there are any.
    fn told(&self) -> Option<String> {
        let mut told: Vec<String> =
            self.first.iter().map(|(name, n_rows)| format!("{name} {n_rows}")).collect();
        told.extend((self.n_others > 0).then(|| format!("other fields {}", self.n_others)));
        (!told.is_empty()).then(|| told.join(", "))
    }
}

impl AddedColumns {
    fn columns(&self) -> Vec<Added> {
        let mut columns =
            vec![("label".to_owned(), Nullable::Whole(Vec::new())), ("class".to_owned(), text())];
        let mut numbers = vec!["probability".to_owned()];
        numbers.extend(self.has_rating.then(|| "rating".to_owned()));
        if self.has_probabilities {
            numbers.extend(self.classes.iter().map(|class| format!("probability_{class}")));
        }
        columns.extend(numbers.into_iter().map(|name| (name, Nullable::Float(Vec::new()))));
        columns.push(("error".to_owned(), text()));
        columns
    }

    /// The values of the added columns.
    fn cells(&self, answer: &Result<Answer<'_>, Refusal>) -> Vec<Cell> {
        let float = |value: Option<f32>| value.map_or(Cell::Null, Cell::Float);
        let answered = answer.as_ref().ok();
        let label = answered.and_then(Answer::label);
        let class = label.and_then(|label| self.classes.get(label as usize));
        let known = answered.map(Answer::probabilities).unwrap_or_default();
        // As on standard output, that of label 1 if there are two.
        let shown = if self.classes.len() == 2 { label.map(|_| 1) } else { label };
        let shown =
            known.iter().find(|(label, _)| Some(*label) == shown).map(|(_, probability)| *probability);
        let mut cells = vec![
            label.map_or(Cell::Null, Cell::Whole),
            class.map_or(Cell::Null, |class| Cell::Text(class.clone())),
            float(shown),
        ];
        if self.has_rating {
            let rating = answered.and_then(|answer| match *answer {
                Answer::OfTwo { rating, .. } => rating,
                Answer::OfMany { .. } => None,
            });
            cells.push(float(rating));
        }
        if self.has_probabilities {
            let mut all = vec![None; self.classes.len()];
            for (label, probability) in known {
                if let Some(of_label) = all.get_mut(label as usize) {
                    *of_label = Some(probability);
                }
            }
            cells.extend(all.into_iter().map(float));
        }
        cells.push(match answer {
            Ok(_) => Cell::Null,
            Err(refusal) => Cell::Text(refusal.name().to_owned()),
        });
        cells
    }
}

/// Names of columns. One that occurred before gets a number.
fn distinct(names: Vec<String>) -> Vec<Arc<str>> {
    let mut taken: HashSet<Arc<str>> = HashSet::with_capacity(names.len());
    // The next number of a name.
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut all = Vec::with_capacity(names.len());
    for name in names {
        let mut free: Arc<str> = name.as_str().into();
        while !taken.insert(Arc::clone(&free)) {
            let number = numbers.entry(name.clone()).or_insert(2);
            free = format!("{name}.{number}").into();
            *number += 1;
        }
        all.push(free);
    }
    all
}

/// Refuses a table with too many columns.
fn check_columns(found: usize, place: &str) -> Result<(), Failed> {
    if found <= COLUMNS_MAX {
        return Ok(());
    }
    let expected = format!("expected at most {COLUMNS_MAX}; remove columns");
    Err(Failed::new(Exit::BadInput, format!("{place}: found {found} columns, {expected}")))
}
