//! Reads a job file by serde, and records the line of each key, for messages.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::file::File;
use crate::finding::{Finding, unknown_key};

/// What is found in place of a required key.
pub const NO_SUCH_KEY: &str = "no such key";

/// The keys of a job file, by path: `cluster.groups[1].count`.
#[derive(Debug, Default)]
pub struct KeyLines {
    /// The name of the file in messages.
    file: String,
    keys: BTreeMap<String, Position>,
}

/// Where a key is.
#[derive(Debug)]
struct Position {
    line: usize,
    /// The bytes of the key and of its value. The value of a table with a heading is the heading.
    key: Range<usize>,
    value: Range<usize>,
}

impl KeyLines {
    fn of(file: &str, text: &str, table: &DeTable<'_>) -> Self {
        let mut lines = Self { file: file.to_owned(), keys: BTreeMap::new() };
        lines.add(text, "", table);
        lines
    }

    fn add(&mut self, text: &str, path: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let name_of = name.get_ref();
            let path = if path.is_empty() { name_of.to_string() } else { format!("{path}.{name_of}") };
            self.add_value(text, path, name.span(), value);
        }
    }

    fn add_value(&mut self, text: &str, path: String, key: Range<usize>, value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::Table(table) => self.add(text, &path, table),
            DeValue::Array(values) => {
                for (n, value) in values.iter().enumerate() {
                    self.add_value(text, format!("{path}[{n}]"), value.span(), value);
                }
            }
            _ => {}
        }
        self.keys.insert(path, Position { line: line_of(text, &key), key, value: value.span() });
    }

    /// The key as the thing of a finding, with file and line: `JOB.toml:7: cluster.region`. For an absent key, the
    /// line is that of its table.
    pub fn thing(&self, path: &str) -> String {
        let mut known = path;
        loop {
            if let Some(Position { line, .. }) = self.keys.get(known) {
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
        self.keys.contains_key(path)
    }

    /// The keys of a table.
    pub fn of_table(&self, table: &str) -> impl Iterator<Item = &str> {
        let inner = move |path: &str| path.strip_prefix(table)?.strip_prefix('.').map(str::to_owned);
        let is_key = move |path: &&str| inner(path).is_some_and(|name| !name.contains(['.', '[']));
        self.keys.keys().map(String::as_str).filter(is_key)
    }

    /// Findings in the order of the lines.
    pub fn sorted(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        findings.sort_by_key(|finding| {
            let rest = finding.thing.strip_prefix(&self.file).unwrap_or_default();
            let line = rest.split(": ").next().unwrap_or_default();
            line.trim_start_matches(':').parse().unwrap_or(0_usize)
        });
        findings
    }

    /// The innermost key that contains these bytes.
    fn path_at(&self, at: &Range<usize>) -> Option<&str> {
        let contains = |span: &Range<usize>| span.start <= at.start && at.end <= span.end;
        let length = |position: &Position| {
            let spans = [&position.key, &position.value];
            spans.into_iter().filter(|span| contains(span)).map(ExactSizeIterator::len).min()
        };
        let found = self.keys.iter().filter_map(|(path, position)| Some((length(position)?, path)));
        // Of a list and its only table, which have the same heading, the table.
        found.min_by_key(|(length, path)| (*length, usize::MAX - path.len())).map(|(_, path)| path.as_str())
    }
}

/// Parses the text of a job file. The error is the first deviation from TOML's syntax, from the keys or from their kinds.
pub fn read(file: &str, text: &str) -> Result<(File, KeyLines), Finding> {
    let document = DeTable::parse(text).map_err(|error| syntax(file, text, &error))?;
    let lines = KeyLines::of(file, text, document.get_ref());
    let read = toml::from_str(text).map_err(|error| unsuitable(&lines, text, &error));
    read.map(|file| (file, lines))
}

fn syntax(file: &str, text: &str, error: &Error) -> Finding {
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

/// The finding for a key or kind that serde refuses, in the words of a job file.
fn unsuitable(lines: &KeyLines, text: &str, error: &Error) -> Finding {
    let span = error.span().unwrap_or(0..0);
    let thing = match lines.path_at(&span) {
        Some(path) => lines.thing(path),
        None => lines.file.clone(),
    };
    // Serde has the name between the first backticks, and the known ones between the others.
    let mut names = error.message().split('`').skip(1).step_by(2);
    if let (true, Some(name)) = (error.message().starts_with("unknown field"), names.next()) {
        return Finding::error(thing, unknown_key(name, &names.collect::<Vec<_>>()), "");
    }
    let (found, expected) = error.message().split_once(", expected ").unwrap_or((error.message(), ""));
    let kind = match expected {
        "u32" => "a whole number of 0 or more",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "a text",
        "a map" => "a table",
        "a sequence" => "a list",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    let finding = Finding::error(thing, in_words(found), kind.replace('`', ""));
    let value = text.get(span).unwrap_or_default().trim_matches(['"', '\'']);
    match share(value) {
        Some(share) if kind != expected => finding.remedy(format!("write {share} for {value}")),
        _ if kind != expected && found.starts_with("invalid type: string") => {
            finding.remedy("write it without quotes")
        }
        _ => finding.remedy("see docs/emr.md for all keys"),
    }
}

/// What serde found: `the number 1` for ``invalid type: integer `1` ``.
fn in_words(found: &str) -> String {
    let kinds = ["invalid type: ", "invalid value: ", "unknown variant "];
    let value = kinds.iter().find_map(|kind| found.strip_prefix(kind)).unwrap_or(found).replace('`', "");
    let number = ["integer ", "floating point "].iter().find_map(|kind| value.strip_prefix(kind));
    if let Some(key) = value.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    match (number, value.as_str()) {
        (Some(number), _) => format!("the number {number}"),
        (None, "sequence") => "a list".to_owned(),
        (None, "map") => "a table".to_owned(),
        (None, value) if found.starts_with("unknown variant") => format!("{value:?}"),
        (None, value) => value.replacen("string ", "the text ", 1).replacen("boolean ", "", 1),
    }
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().get(..span.start).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        read("JOB.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_the_nearest_name() {
        assert_eq!(
            refused("name = \"x\"\n\n[[cluster.bootstrap]]\nnmae = \"x\"\nscript = \"x\"\n"),
            "JOB.toml:4: cluster.bootstrap[0].nmae: unknown key, expected one of name, script, arguments; the nearest key is name"
        );
        assert_eq!(
            refused("[prices]\nzzz = 1\n"),
            "JOB.toml:2: prices.zzz: unknown key, expected one of currency, instances; see docs/emr.md for all keys"
        );
    }

    #[test]
    fn a_value_of_another_kind_is_refused() {
        #[rustfmt::skip]
        let cases = [
            ("name = 1\n", "JOB.toml:1: name: the number 1, expected a text; see docs/emr.md for all keys"),
            ("input = 2\n", "JOB.toml:1: input: the number 2, expected a table; see docs/emr.md for all keys"),
            ("[cluster]\ngroups = [1]\n", "JOB.toml:2: cluster.groups[0]: the number 1, expected a table; see docs/emr.md for all keys"),
            ("[cluster]\ntags = { a = [1] }\n", "JOB.toml:2: cluster.tags.a: expected a text, a number, true or false; see docs/emr.md for all keys"),
            ("[hadoop]\nreducers = \"8\"\n", "JOB.toml:2: hadoop.reducers: the text \"8\", expected a whole number of 0 or more; write it without quotes"),
            ("[prices.instances.x]\nec2 = \"1\"\n", "JOB.toml:2: prices.instances.x.ec2: the text \"1\", expected a number; write it without quotes"),
            ("[prices.instances.x]\nec2 = \"5%\"\n", "JOB.toml:2: prices.instances.x.ec2: the text \"5%\", expected a number; write 0.05 for 5%"),
            ("[[cluster.groups]]\nrole = \"worker\"\n", "JOB.toml:2: cluster.groups[0].role: \"worker\", expected one of primary, core, task; see docs/emr.md for all keys"),
            ("[[cluster.groups]]\nrole = \"core\"\ncount = -1\n", "JOB.toml:3: cluster.groups[0].count: the number -1, expected a whole number of 0 or more; see docs/emr.md for all keys"),
            ("name = true\n", "JOB.toml:1: name: true, expected a text; see docs/emr.md for all keys"),
            ("name = [\"x\"]\n", "JOB.toml:1: name: a list, expected a text; see docs/emr.md for all keys"),
            ("name = \"x\"\n[cluster]\n[[cluster.groups]]\ncount = 1\n", "JOB.toml:3: cluster.groups[0]: the key role is missing; see docs/emr.md for all keys"),
        ];
        for (text, expected) in cases {
            assert_eq!(refused(text), expected);
        }
    }

    #[test]
    fn a_syntax_error_has_its_line_and_a_remedy() {
        let found = refused("[input]\nbad-lines-max = 2.5% # of all\n");
        assert!(found.starts_with("JOB.toml:2: ") && found.ends_with("; write 0.025 for 2.5%"), "{found}");
        let found = refused("[input]\nwith-title = maybe\n");
        assert!(found.ends_with("texts are in quotes, numbers, true and false are not"), "{found}");
        assert!(refused("name = \nrun = \"x\"\n").starts_with("JOB.toml:1: "));
    }

    #[test]
    fn an_absent_key_has_the_line_of_its_table() {
        let (_, lines) = read("JOB.toml", "name = \"x\"\n[cluster]\nid = \"j-1\"\n").unwrap();
        assert_eq!(lines.thing("cluster.region"), "JOB.toml:2: cluster.region");
        assert_eq!(lines.thing("run"), "JOB.toml: run");
        assert_eq!(lines.of_table("cluster").collect::<Vec<_>>(), ["cluster.id"]);
    }
}
