//! Formats records as the document shows them: the same members in the same order, several per line.

/// Maximum length of a line with several members.
const WIDTH: usize = 114;

/// The value of the first member with this name, a text.
pub fn text<'a>(record: &'a str, name: &str) -> &'a str {
    let start = format!("\"{name}\": \"");
    let from = record.find(&start).unwrap_or_else(|| panic!("no {name}")) + start.len();
    &record[from..from + record[from..].find('"').unwrap()]
}

/// The record with these digits for all members with this name, which are numbers.
pub fn with_numbers(record: &str, name: &str, digits: &str) -> String {
    let start = format!("\"{name}\": ");
    let mut parts = record.split(&start);
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        made.extend([&start, digits, part.trim_start_matches(|c: char| c.is_ascii_digit())]);
    }
    made
}

/// Formats a record that is stored with one member per line: as many members per line as fit.
pub fn folded(record: &str) -> String {
    let lines: Vec<&str> = record.lines().collect();
    let mut folded = Vec::new();
    fold(&lines, false, &mut folded);
    let folded = folded.join("\n") + "\n";
    let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
    assert_eq!(value(&folded), value(record));
    folded
}

/// Appends members. The first joins the current line if allowed. A member that is too long for a line takes
/// several, with its brackets on the lines of its first and last members.
fn fold(lines: &[&str], mut may_join: bool, out: &mut Vec<String>) {
    let mut at = 0;
    while at < lines.len() {
        let group = &lines[at..at + member(&lines[at..])];
        at += group.len();
        let short = on_one_line(group);
        match out.last_mut() {
            Some(last) if may_join && last.len() + 1 + short.len() <= WIDTH => {
                last.push(' ');
                last.push_str(&short);
            }
            _ if indent(group[0]) + short.len() <= WIDTH => {
                out.push(" ".repeat(indent(group[0])) + &short);
                may_join = true;
            }
            _ => {
                out.push(group[0].to_owned());
                fold(&group[1..group.len() - 1], true, out);
                let last = out.last_mut().unwrap();
                last.push(' ');
                last.push_str(group[group.len() - 1].trim());
                may_join = false;
            }
        }
    }
}

/// Number of lines of the first member.
fn member(lines: &[&str]) -> usize {
    let closes = |line: &&str| indent(line) == indent(lines[0]);
    if lines[0].ends_with(['{', '[']) { 2 + lines[1..].iter().position(closes).unwrap() } else { 1 }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn on_one_line(group: &[&str]) -> String {
    let joined = group.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    joined.replace("[ ", "[").replace(" ]", "]")
}
