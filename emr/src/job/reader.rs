//! Checks the tables, keys and kinds of a job file against the list of keys, and records the line of each key.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{Kind, nearest, of_table};
use crate::finding::Finding;

/// The lines of the keys of a job file, by path: `cluster.groups[1].count`.
#[derive(Debug, Default)]
pub struct Lines {
    /// The name of the file in messages.
    file: String,
    lines: BTreeMap<String, usize>,
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
}

/// Parses the text of a job file, and checks that each key is known and has a value of its kind. Finds all
/// deviations.
pub fn read(file: &str, text: &str) -> Result<Lines, Vec<Finding>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut reader =
        Reader { text, lines: Lines { file: file.to_owned(), ..Lines::default() }, findings: Vec::new() };
    if !errors.is_empty() {
        let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        let mut errors = errors;
        errors.sort_by_key(start);
        return Err(errors.iter().map(|error| syntax(file, text, error)).collect());
    }
    reader.table("", "", document.get_ref());
    if reader.findings.is_empty() { Ok(reader.lines) } else { Err(reader.findings) }
}

fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Finding {
    let at = error.span().map_or(1, |span| line_of(text, &span));
    let found = error.message().replace('\n', "; ");
    Finding::error(format!("{file}:{at}"), found, "").remedy("correct the TOML syntax")
}

/// The finding for an error of a value that has the right kind but cannot be stored, such as a negative count.
pub fn unsuitable(file: &str, text: &str, error: &toml::de::Error) -> Finding {
    let at = error.span().map_or(1, |span| line_of(text, &span));
    let value = error.span().and_then(|span| text.get(span)).unwrap_or_default();
    let found = match error.message() {
        message if message.starts_with("missing field") => message.replace("missing field", "no key"),
        message => format!("{}: {message}", value.lines().next().unwrap_or_default()),
    };
    Finding::error(format!("{file}:{at}"), found, "").remedy("see docs/emr.md for all keys")
}

struct Reader<'t> {
    text: &'t str,
    lines: Lines,
    findings: Vec<Finding>,
}

impl Reader<'_> {
    /// Checks one table. `schema` is its name in the list of keys, `path` its position in the file.
    fn table(&mut self, schema: &str, path: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = of_table(schema).find(|key| key.name == name.get_ref().as_ref());
            let at = joined(path, name.get_ref());
            self.lines.lines.insert(at.clone(), line_of(self.text, &name.span()));
            match key {
                Some(key) => self.value(&joined(schema, key.name), &at, key.kind, value),
                None => self.unknown(schema, &at, name.get_ref()),
            }
        }
    }

    fn unknown(&mut self, schema: &str, at: &str, name: &str) {
        let thing = self.lines.thing(at);
        let names = || of_table(schema).map(|key| key.name);
        let remedy = match nearest(name, names()) {
            Some(known) => format!("the nearest key is {known}"),
            None => "see docs/emr.md for all keys".to_owned(),
        };
        let known: Vec<_> = names().collect();
        let finding = Finding::error(thing, "unknown key", format!("one of {}", known.join(", ")));
        self.findings.push(finding.remedy(remedy));
    }

    fn value(&mut self, schema: &str, at: &str, kind: Kind, value: &Spanned<DeValue<'_>>) {
        let value = value.get_ref();
        let is_number = matches!(value, DeValue::Integer(_));
        let is_amount = is_number || value.is_float();
        let suits = match (kind, value) {
            (Kind::Text, value) => value.is_str(),
            (Kind::Texts, DeValue::Array(values)) => values.iter().all(|value| value.get_ref().is_str()),
            (Kind::Number, _) => is_number,
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
                    if let Some(inner) = value.get_ref().as_table() {
                        self.table(schema, &joined(at, name.get_ref()), inner);
                    }
                }
                all_tables
            }
            (Kind::Table, DeValue::Table(table)) => {
                self.table(schema, at, table);
                true
            }
            (Kind::Tables, DeValue::Array(tables)) => {
                for (n, value) in tables.iter().enumerate() {
                    if let Some(table) = value.get_ref().as_table() {
                        let at = format!("{at}[{n}]");
                        self.lines.lines.insert(at.clone(), line_of(self.text, &value.span()));
                        self.table(schema, &at, table);
                    }
                }
                tables.iter().all(|value| value.get_ref().is_table())
            }
            _ => false,
        };
        if !suits {
            let (thing, found) = (self.lines.thing(at), format!("a value of type {}", value.type_str()));
            self.findings.push(Finding::error(thing, found, format!("a {}", kind.name())));
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
        read("JOB.toml", text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_the_nearest_name() {
        let found = refused("name = \"x\"\n\n[[cluster.bootstrap]]\nnmae = \"x\"\n[prices]\nzzz = 1\n");
        assert_eq!(
            found,
            [
                "JOB.toml:4: cluster.bootstrap[0].nmae: unknown key, expected one of name, script, arguments; the nearest key is name",
                "JOB.toml:6: prices.zzz: unknown key, expected one of currency, instances; see docs/emr.md for all keys",
            ]
        );
    }

    #[test]
    fn a_value_of_another_kind_is_refused() {
        let found = refused(
            "name = 1\ninput = 2\n[cluster]\ngroups = [1]\ntags = { a = [1] }\n[hadoop]\nreducers = \"8\"\n[prices.instances.x]\nec2 = \"1\"\n",
        );
        assert_eq!(found.len(), 6, "{found:#?}");
        assert!(
            found.contains(
                &"JOB.toml:7: hadoop.reducers: a value of type string, expected a whole number".to_owned()
            ),
            "{found:#?}"
        );
        assert!(
            found.contains(
                &"JOB.toml:9: prices.instances.x.ec2: a value of type string, expected a number".to_owned()
            ),
            "{found:#?}"
        );
    }

    #[test]
    fn all_syntax_errors_are_reported_with_their_lines() {
        let found = refused("name = \nrun = \"x\"\n[input\n");
        assert!(found.len() >= 2 && found[0].starts_with("JOB.toml:1: "), "{found:#?}");
    }

    #[test]
    fn an_absent_key_has_the_line_of_its_table() {
        let lines = read("JOB.toml", "name = \"x\"\n[cluster]\nid = \"j-1\"\n").unwrap();
        assert_eq!(lines.thing("cluster.region"), "JOB.toml:2: cluster.region");
        assert_eq!(lines.thing("run"), "JOB.toml: run");
    }
}
