//! Finds the dialects of tables in their first bytes. All local files have one dialect. A stream has its own, which must
//! not contradict the others.

use std::borrow::Cow;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use corpus::csv::{AskedDialect, Columns, Dialect, Dialects, HEAD_BYTES, Head};
use corpus::encoding::UTF_8;
use corpus::format::{Fields, Format};
use input::Input;
use program::exit::Exit;
use program::threads::locked;

use crate::entries::{Entries, Table, header_is_record};
use crate::error::Error;
use crate::options::ReadingOptions;
use crate::source::{Kind, Source};

/// The dialects and the lines of all tables.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// The dialects of local files, if there are any. The first one is used.
    of_files: Option<Dialects>,
    state: Mutex<TablesState>,
}

#[derive(Debug, Default)]
struct TablesState {
    /// What all sources so far have in common, with the name and the dialect of the last that limited it.
    common: Option<(Dialects, String, Dialect)>,
    /// The dialect of each source, by its index.
    found: Vec<(usize, Dialect)>,
    /// The indexes of sources with records that hid others, with the number of these.
    hiding: Vec<(usize, u64)>,
    n_lines: u64,
    /// The columns of the only source.
    columns: Option<Arc<Columns>>,
}

/// What was found in the tables of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundTables {
    /// Each dialect, with the number of its files.
    pub dialects: Vec<(Dialect, u64)>,
    /// Number of lines of all records.
    pub n_lines: u64,
    /// Messages about what the default does not explain.
    pub notices: Vec<String>,
}

impl Tables {
    /// Finds the dialect of the local files among the sources with these indexes, and reads their headers, so that a missing
    /// column is an error before any other work.
    pub fn of_files(sources: &[Source], numbers: &[usize], options: &ReadingOptions) -> Result<Self, Error> {
        let mut tables = Self::default();
        let Format::Delimited { dialect: asked, fields } = &options.format else { return Ok(tables) };
        let mut files = Vec::new();
        for source in numbers.iter().map(|&number| &sources[number]) {
            if let Kind::File(path) = &source.kind {
                files.push((source, path));
            }
        }
        let opened = |source: &Source, path| {
            let opened = input::open_as(path, options.encoding);
            let opened = opened.and_then(|mut content| Ok((beginning(&mut content)?, content)));
            opened.map_err(|error| source.unreadable("read its header", error))
        };
        let check = |source, (head, content): (Vec<u8>, Input), dialect| {
            check_header(
                &Head::of(&decoded(&head, &content, options), *asked, fields),
                dialect,
                source,
                fields,
            )?;
            let table = Table { dialect, asked: *asked, fields };
            Entries::of_table(head, content, source, &table, options).map(drop)
        };
        let in_utf8 = |(head, content): &(Vec<u8>, Input)| decoded(head, content, options).into_owned();
        // Files that the default describes well are examined further only if others have another dialect.
        let mut others = Vec::new();
        for (source, path) in &files {
            let opened = opened(source, path)?;
            match Head::of(&in_utf8(&opened), *asked, fields).has_default() {
                Some(dialect) => {
                    check(source, opened, dialect)?;
                    tables.of_files = Some(Dialects::only(dialect));
                }
                None => others.push((source, path)),
            }
        }
        if others.is_empty() && files.len() == numbers.len() {
            return Ok(tables);
        }
        for (source, path) in &files {
            let head = in_utf8(&opened(source, path)?);
            tables.of_files = Some(tables.agreed(&Head::of(&head, *asked, fields).dialects(), source)?);
        }
        let dialect = tables.of_files.as_ref().and_then(Dialects::first);
        for (source, path) in others {
            check(source, opened(source, path)?, dialect.unwrap_or(asked.default_dialect()))?;
        }
        Ok(tables)
    }

    /// The entries of a table: a local file by its dialect, a stream by that of its first bytes.
    pub fn entries<R: Read>(
        &self,
        mut content: Input<R>,
        (sources, number): (&[Source], usize),
        (asked, fields): (AskedDialect, &Fields),
        options: &ReadingOptions,
    ) -> Result<Entries<R>, Error> {
        let source = &sources[number];
        let of_files = || self.of_files.as_ref().filter(|_| matches!(source.kind, Kind::File(_)))?.first();
        let (head, dialect) = match of_files() {
            Some(dialect) => (Vec::new(), dialect),
            None => {
                let bytes = beginning(&mut content).map_err(|error| source.failed(error))?;
                let text = decoded(&bytes, &content, options);
                let head = Head::of(&text, asked, fields);
                let dialect = match head.has_default() {
                    Some(dialect) if sources.len() == 1 => Some(dialect),
                    _ => self.of_stream(&head.dialects(), source)?,
                };
                let dialect = dialect.unwrap_or(asked.default_dialect());
                check_header(&head, dialect, source, fields)?;
                drop(text);
                (bytes, dialect)
            }
        };
        let table = Table { dialect, asked, fields };
        let entries = Entries::of_table(head, content, source, &table, options)?;
        // Content without a header has no dialect.
        if entries.columns().is_some_and(|columns| !columns.is_none()) {
            let mut state = locked(&self.state);
            state.found.push((number, dialect));
            state.columns = entries.columns().filter(|_| sources.len() == 1);
        }
        Ok(entries)
    }

    /// Its own dialect, independently of other streams, which are read in any order.
    fn of_stream(&self, dialects: &Dialects, source: &Source) -> Result<Option<Dialect>, Error> {
        let own = self.of_files.as_ref().map_or_else(|| dialects.clone(), |files| files.and(dialects));
        self.agreed(dialects, source)?;
        Ok(own.first())
    }

    /// The dialects that a source and all sources so far may have. Fails if there is none.
    fn agreed(&self, dialects: &Dialects, source: &Source) -> Result<Dialects, Error> {
        let mut state = locked(&self.state);
        let common =
            state.common.as_ref().map_or_else(|| dialects.clone(), |(so_far, ..)| so_far.and(dialects));
        match (common.first(), dialects.first(), &state.common) {
            (None, Some(second_dialect), Some((_, first, first_dialect))) => {
                let remedy = one_dialect(*first_dialect, second_dialect);
                let why = format!(
                    "found {second_dialect}, unlike {first} ({first_dialect}), expected one dialect; read them by separate \
                     commands, or {remedy}"
                );
                return Err(source.refused(Exit::BadInput, why));
            }
            (_, _, Some((so_far, ..))) if *so_far == common => {}
            (_, Some(dialect), _) => state.common = Some((common.clone(), source.name.clone(), dialect)),
            (_, None, _) => {}
        }
        Ok(common)
    }

    /// Counts the lines of a source, and its records that hid others.
    pub fn count(&self, number: usize, (n_lines, n_hiding): (u64, u64)) {
        let mut state = locked(&self.state);
        state.n_lines += n_lines;
        if n_hiding > 0 {
            state.hiding.push((number, n_hiding));
        }
    }

    /// The dialect of a source that has been opened.
    pub fn dialect(&self, number: usize) -> Option<Dialect> {
        let state = locked(&self.state);
        state.found.iter().find(|(found, _)| *found == number).map(|(_, dialect)| *dialect)
    }

    /// The columns of the only source, once it has been opened.
    pub fn columns(&self) -> Option<Arc<Columns>> {
        locked(&self.state).columns.clone()
    }

    /// What was found, after all sources have been read.
    pub fn found(&self, sources: &[Source], format: &Format) -> FoundTables {
        let Format::Delimited { dialect: asked, .. } = format else { return FoundTables::default() };
        let state = locked(&self.state);
        let (mut found, mut hiding) = (state.found.clone(), state.hiding.clone());
        found.sort_unstable_by_key(|(number, _)| *number);
        hiding.sort_unstable();
        let mut dialects: Vec<(Dialect, usize, u64)> = Vec::new();
        for (number, dialect) in found {
            match dialects.iter_mut().find(|(of, ..)| *of == dialect) {
                Some((.., n_files)) => *n_files += 1,
                None => dialects.push((dialect, number, 1)),
            }
        }
        let files = |first: usize, n_files: u64| match n_files {
            1 => sources[first].name.clone(),
            2 => format!("{} and 1 more file", sources[first].name),
            n => format!("{} and {} more files", sources[first].name, n - 1),
        };
        let is_told = |dialect| asked.is_open() && dialect != Dialect::rfc4180(asked.default);
        let told = dialects.iter().filter(|(dialect, ..)| is_told(*dialect));
        let mut notices: Vec<_> =
            told.map(|(dialect, first, n)| format!("{}: {dialect}", files(*first, *n))).collect();
        if let Some((first, _)) = hiding.first() {
            let n: u64 = hiding.iter().map(|(_, n)| n).sum();
            let records = if n == 1 { "1 record contains" } else { &format!("{n} records contain") };
            notices.push(format!(
                "{}: {records} what looks like further records, which are read in its place; pass --quote none if quotes \
                 are characters, or --quote double if not",
                files(*first, hiding.len() as u64)
            ));
        }
        let dialects = dialects.into_iter().map(|(dialect, _, n_files)| (dialect, n_files)).collect();
        FoundTables { dialects, n_lines: state.n_lines, notices }
    }
}

/// Refuses a table without a header, whose columns were selected by numbers. Its first record would be lost.
fn check_header(head: &Head<'_>, dialect: Dialect, source: &Source, fields: &Fields) -> Result<(), Error> {
    let Some((found, n_columns)) = head.record_in_place_of_header(dialect) else { return Ok(()) };
    let what = if fields.has_labels { "label" } else { "rating" };
    Err(header_is_record(source, (what, &found), n_columns, dialect))
}

/// How tables of two dialects become tables of one.
fn one_dialect(first: Dialect, second: Dialect) -> String {
    if first.delimiter == second.delimiter {
        format!("set the dialect of all with {}", second.flags())
    } else {
        "write them with one delimiter".to_owned()
    }
}

/// The first bytes of a table in UTF-8.
fn decoded<'a>(head: &'a [u8], content: &Input<impl Read>, options: &ReadingOptions) -> Cow<'a, [u8]> {
    let encoding = content.still_in(options.encoding);
    if encoding == UTF_8 {
        return Cow::Borrowed(head);
    }
    match encoding.decode_without_bom_handling(head).0 {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// The first bytes of a table.
fn beginning(content: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    content.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    Ok(head)
}
