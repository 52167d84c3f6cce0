//! Compares the table of docs/causes.md with the rules. `UPDATE_GOLDEN=1` writes the table.

use std::fs;
use std::path::Path;

use emr::diagnose::{Rule, rules, without_values};

const HEAD: &str = "| rule | place | cause | remedy |\n|---|---|---|---|\n";
/// Number of places that a log may be from.
const PLACES: usize = 5;

#[test]
fn the_page_lists_each_rule_in_order() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/causes.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, table) = page.split_once(HEAD).expect("the page has the table's head");
    let expected: String = rules().iter().map(row).collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, format!("{before}{HEAD}{expected}")).unwrap();
        return;
    }
    assert!(table == expected, "docs/causes.md differs from the rules; UPDATE_GOLDEN=1 writes it");
}

fn row(rule: &Rule) -> String {
    let places: Vec<_> = rule.places.iter().map(ToString::to_string).collect();
    let places = if places.len() == PLACES { "any".to_owned() } else { places.join(", ") };
    let cell = |text: &str| without_values(text).replace('|', "\\|");
    format!("| `{}` | {} | {} | {} |\n", rule.id, places, cell(&rule.cause), cell(&rule.remedy))
}
