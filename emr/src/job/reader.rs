//! Checks the tables, keys and kinds of a job file against the list of keys, and records the line of each key.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::keys::{Key, Kind, nearest, of_table};
use crate::finding::Finding;

/// What is found in place of a required key.
pub const NO_SUCH_KEY: &str = "no such key";

/// The lines of the keys of a job file, by path: `cluster.groups[1].count`.
#[derive(Debug, Default)]
pub struct Lines {
    /// The name of the file in messages.
    file: String,
    lines: BTreeMap<String, usize>,
    /// Keys with a finding of the reader.
    refused: BTreeSet<String>,
}

impl Lines {
    /// The key as the thing of a finding, with file and line: `JOB.toml:7: cluster.region`. For an absent key, the
    /// line is that of its table.
    pub fn thing(&self, path: &str) -> String {
        let mut known = path;
        loop {
            if let Some(line) = self.lines.get(known) {
                return format!("{}:{line}: {path}", self.file);
            }
            let Some((table, _)) = known.rsplit_once('.') else {
                return format!("{}: {path}", self.file);
            };
            known = table;
        }
    }

    /// Whether the file has this key.
    pub fn has(&self, path: &str) -> bool {
        self.lines.contains_key(path)
    }

    /// All findings in the order of the lines. A finding about a value that the reader refused, or about a table or
    /// list that contains one, is omitted: it is a consequence.
    pub fn settled(&self, of_reader: Vec<Finding>, of_values: Vec<Finding>) -> Vec<Finding> {
        let is_in = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let is_consequence = |finding: &Finding| {
            let (_, path) = self.parts(&finding.thing);
            self.refused.iter().any(|refused| is_in(path, refused) || is_in(refused, path))
        };
        let of_values = of_values.into_iter().filter(|finding| !is_consequence(finding));
        let mut findings: Vec<_> = of_reader.into_iter().chain(of_values).collect();
        findings.sort_by_key(|finding| self.parts(&finding.thing).0);
        findings
    }

    /// The line and the key of a thing.
    fn parts<'t>(&self, thing: &'t str) -> (usize, &'t str) {
        let rest = thing.strip_prefix(&self.file).unwrap_or(thing);
        let (line, path) = rest.split_once(": ").unwrap_or(("", rest));
        (line.trim_start_matches(':').parse().unwrap_or(0), path)
    }
}

/// A job file whose keys were checked.
#[derive(Debug)]
pub struct Read {
    /// The lines of the keys.
    pub lines: Lines,
    /// What is wrong with keys and kinds.
    pub findings: Vec<Finding>,
    /// The file without unknown keys, and without values of another kind.
    pub table: Table,
}

/// Parses the text of a job file, and checks that each key is known and has a value of its kind. Finds all
/// deviations. The error has those of TOML's syntax.
pub fn read(file: &str, text: &str) -> Result<Read, Vec<Finding>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        let mut errors = errors;
        errors.sort_by_key(start);
        return Err(errors.iter().map(|error| syntax(file, text, error)).collect());
    }
    let mut table: Table = toml::from_str(text).map_err(|error| vec![unsuitable(file, text, &error)])?;
    let lines = Lines { file: file.to_owned(), ..Lines::default() };
    let mut reader = Reader { text, lines, findings: Vec::new() };
    reader.table("", "", document.get_ref(), &mut table);
    Ok(Read { lines: reader.lines, findings: reader.findings, table })
}

fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Finding {
    let at = error.span().map_or(1, |span| line_of(text, &span));
    let found = error.message().replace('\n', "; ");
    let value = text.lines().nth(at - 1).and_then(|line| line.split_once('=')).map(|(_, value)| value);
    let value = value.map(|value| value.split('#').next().unwrap_or_default().trim()).unwrap_or_default();
    let remedy = match share(value) {
        Some(share) => format!("write {share} for {value}"),
        None => "correct the TOML syntax: texts are in quotes, numbers, true and false are not".to_owned(),
    };
    Finding::error(format!("{file}:{at}"), found, "").remedy(remedy)
}

/// The share of a percentage: 0.05 for `5%`.
fn share(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%')?.trim_end().parse().ok()?;
    Some(percent / 100.0)
}

/// The finding for an error of a value that has the right kind but cannot be stored, such as a huge number.
pub fn unsuitable(file: &str, text: &str, error: &toml::de::Error) -> Finding {
    let at = error.span().map_or(1, |span| line_of(text, &span));
    let value = error.span().and_then(|span| text.get(span)).unwrap_or_default();
    let found = format!("{}: {}", value.lines().next().unwrap_or_default(), error.message());
    Finding::error(format!("{file}:{at}"), found, "").remedy("see docs/emr.md for all keys")
}

struct Reader<'t> {
    text: &'t str,
    lines: Lines,
    findings: Vec<Finding>,
}

impl Reader<'_> {
    /// Checks one table, and removes from `plain` what is refused. `schema` is its name in the list of keys, `path` its
    /// position in the file.
    fn table(&mut self, schema: &str, path: &str, table: &DeTable<'_>, plain: &mut Table) {
        for (name, value) in table {
            let key = of_table(schema).find(|key| key.name == name.get_ref().as_ref());
            let at = joined(path, name.get_ref());
            self.lines.lines.insert(at.clone(), line_of(self.text, &name.span()));
            let is_suitable = match (key, plain.get_mut(name.get_ref().as_ref())) {
                (Some(key), Some(plain)) => self.value(key, &at, value.get_ref(), plain),
                _ => {
                    let meant = self.unknown(schema, &at, name.get_ref());
                    // The meant key is not reported as absent too.
                    let meant = meant.filter(|meant| !table.contains_key(*meant));
                    self.lines.refused.extend(meant.map(|meant| joined(path, meant)));
                    false
                }
            };
            if !is_suitable {
                plain.remove(name.get_ref().as_ref());
                self.lines.refused.insert(at);
            }
        }
        // Keys of the other tables have defaults, or are checked with the values.
        for key in of_table(schema).filter(|key| schema.contains('.') && key.is_required()) {
            if !plain.contains_key(key.name) {
                let at = joined(path, key.name);
                if self.lines.refused.insert(at.clone()) {
                    self.findings.push(Finding::error(
                        self.lines.thing(&at),
                        NO_SUCH_KEY,
                        key.kind.expected(),
                    ));
                }
                plain.insert(key.name.to_owned(), placeholder(key.kind));
            }
        }
    }

    /// Refuses an unknown key. Returns the nearest known one.
    fn unknown(&mut self, schema: &str, at: &str, name: &str) -> Option<&'static str> {
        let thing = self.lines.thing(at);
        let names = || of_table(schema).map(|key| key.name);
        let near = nearest(name, names());
        let remedy = match near {
            Some(known) => format!("the nearest key is {known}"),
            None => "see docs/emr.md for all keys".to_owned(),
        };
        let known: Vec<_> = names().collect();
        let finding = Finding::error(thing, "unknown key", format!("one of {}", known.join(", ")));
        self.findings.push(finding.remedy(remedy));
        near
    }

    /// Checks one value. Returns false if it is refused as a whole.
    fn value(&mut self, key: &Key, at: &str, value: &DeValue<'_>, plain: &mut Value) -> bool {
        let schema = joined(key.table, key.name);
        let is_number = matches!(value, DeValue::Integer(_));
        let is_amount = is_number || value.is_float();
        let suits = match (key.kind, value) {
            (Kind::Text, value) => value.is_str(),
            (Kind::OneOf(names), value) => value.as_str().is_some_and(|text| names.contains(&text)),
            (Kind::Texts, DeValue::Array(values)) => values.iter().all(|value| value.get_ref().is_str()),
            (Kind::Number, _) => is_number && (key.is_flag() || is_count(plain)),
            (Kind::Amount, _) => is_amount,
            (Kind::Switch, value) => value.is_bool(),
            (Kind::NumberOrText, value) => is_number || value.is_str(),
            (Kind::Values, DeValue::Table(table)) => {
                self.free(at, table, |value| !(value.is_table() || value.is_array() || value.is_datetime()))
            }
            (Kind::Amounts, DeValue::Table(table)) => {
                self.free(at, table, |value| value.is_float() || value.is_integer())
            }
            (Kind::Named, DeValue::Table(table)) => {
                let all_tables = self.free(at, table, |value| value.is_table());
                for (name, value) in table {
                    let plain = plain.get_mut(name.get_ref().as_ref()).and_then(Value::as_table_mut);
                    if let Some((inner, plain)) = value.get_ref().as_table().zip(plain) {
                        self.table(&schema, &joined(at, name.get_ref()), inner, plain);
                    }
                }
                all_tables
            }
            (Kind::Table, DeValue::Table(table)) => {
                if let Some(plain) = plain.as_table_mut() {
                    self.table(&schema, at, table, plain);
                }
                true
            }
            (Kind::Tables, DeValue::Array(tables)) => {
                self.tables(&schema, at, tables, plain);
                tables.iter().all(|value| value.get_ref().is_table())
            }
            _ => false,
        };
        if !suits {
            let finding = mismatch(self.lines.thing(at), key.kind, value);
            self.findings.push(finding);
        }
        suits
    }

    fn tables(&mut self, schema: &str, at: &str, tables: &[Spanned<DeValue<'_>>], plain: &mut Value) {
        for (n, value) in tables.iter().enumerate() {
            let plain = plain.get_mut(n).and_then(Value::as_table_mut);
            if let Some((table, plain)) = value.get_ref().as_table().zip(plain) {
                let at = format!("{at}[{n}]");
                self.lines.lines.insert(at.clone(), line_of(self.text, &value.span()));
                self.table(schema, &at, table, plain);
            }
        }
    }

    /// Records the lines of a table with free names, and checks its values.
    fn free(&mut self, at: &str, table: &DeTable<'_>, suits: impl Fn(&DeValue<'_>) -> bool) -> bool {
        for (name, _) in table {
            self.lines.lines.insert(joined(at, name.get_ref()), line_of(self.text, &name.span()));
        }
        table.iter().all(|(_, value)| suits(value.get_ref()))
    }
}

/// The finding for a value of another kind.
fn mismatch(thing: String, kind: Kind, value: &DeValue<'_>) -> Finding {
    let found = match value {
        DeValue::String(text) if matches!(kind, Kind::OneOf(_) | Kind::Amount) => format!("{text:?}"),
        DeValue::Integer(number) if kind == Kind::Number => number.to_string(),
        value => format!("a value of type {}", value.type_str()),
    };
    let finding = Finding::error(thing, found, kind.expected());
    let Some(text) = value.as_str().filter(|_| matches!(kind, Kind::Amount | Kind::Number | Kind::Switch))
    else {
        return finding;
    };
    match share(text).filter(|_| kind == Kind::Amount) {
        Some(share) => finding.remedy(format!("write {share} for {text}")),
        None => finding.remedy("write it without quotes"),
    }
}

/// Whether a number can be a count: 0 to 4294967295.
fn is_count(value: &Value) -> bool {
    value.as_integer().is_some_and(|number| u32::try_from(number).is_ok())
}

/// A value in place of a refused one, so that the other values can be checked.
fn placeholder(kind: Kind) -> Value {
    match kind {
        Kind::OneOf(names) => Value::String(names.first().copied().unwrap_or_default().to_owned()),
        Kind::Amount | Kind::Number => Value::Integer(0),
        Kind::Amounts => Value::Table(Table::new()),
        _ => Value::String(String::new()),
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().get(..span.start).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Vec<String> {
        let findings = match read("JOB.toml", text) {
            Ok(read) => read.lines.settled(read.findings, Vec::new()),
            Err(findings) => findings,
        };
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_the_nearest_name() {
        let found = refused(
            "name = \"x\"\n\n[[cluster.bootstrap]]\nnmae = \"x\"\nscript = \"x\"\n[prices]\nzzz = 1\n",
        );
        assert_eq!(
            found,
            [
                "JOB.toml:4: cluster.bootstrap[0].nmae: unknown key, expected one of name, script, arguments; the nearest key is name",
                "JOB.toml:7: prices.zzz: unknown key, expected one of currency, instances; see docs/emr.md for all keys",
            ]
        );
    }

    #[test]
    fn a_value_of_another_kind_is_refused() {
        let found = refused(
            "name = 1\ninput = 2\n[cluster]\ngroups = [1]\ntags = { a = [1] }\n[hadoop]\nreducers = \"8\"\n[prices.instances.x]\nec2 = \"1\"\n",
        );
        assert_eq!(found.len(), 7, "{found:#?}");
        assert!(
            found.contains(
                &"JOB.toml:7: hadoop.reducers: a value of type string, expected a whole number of 0 or more; write it without quotes".to_owned()
            ),
            "{found:#?}"
        );
        assert!(
            found.contains(
                &"JOB.toml:9: prices.instances.x.ec2: \"1\", expected a number; write it without quotes"
                    .to_owned()
            ),
            "{found:#?}"
        );
    }

    #[test]
    fn a_value_that_is_near_to_a_right_one_names_it() {
        let text = "[input]\nbad-lines-max = \"5%\"\nwith-title = 1\n[[cluster.groups]]\nrole = \"worker\"\ncount = -1\n";
        #[rustfmt::skip]
        assert_eq!(refused(text), [
            "JOB.toml:2: input.bad-lines-max: \"5%\", expected a number; write 0.05 for 5%",
            "JOB.toml:3: input.with-title: a value of type integer, expected true or false",
            "JOB.toml:4: cluster.groups[0].type: no such key, expected a text",
            "JOB.toml:5: cluster.groups[0].role: \"worker\", expected primary, core or task",
            "JOB.toml:6: cluster.groups[0].count: -1, expected a whole number of 0 or more",
        ]);
        let found = refused("[input]\nbad-lines-max = 2.5% # of all\n");
        assert!(
            found[0].starts_with("JOB.toml:2: ") && found[0].ends_with("; write 0.025 for 2.5%"),
            "{found:?}"
        );
        let found = refused("[input]\nwith-title = maybe\n");
        assert!(found[0].ends_with("texts are in quotes, numbers, true and false are not"), "{found:?}");
    }

    #[test]
    fn all_syntax_errors_are_reported_with_their_lines() {
        let found = refused("name = \nrun = \"x\"\n[input\n");
        assert!(found.len() >= 2 && found[0].starts_with("JOB.toml:1: "), "{found:#?}");
    }

    #[test]
    fn an_absent_key_has_the_line_of_its_table() {
        let lines = read("JOB.toml", "name = \"x\"\n[cluster]\nid = \"j-1\"\n").unwrap().lines;
        assert_eq!(lines.thing("cluster.region"), "JOB.toml:2: cluster.region");
        assert_eq!(lines.thing("run"), "JOB.toml: run");
    }
}
