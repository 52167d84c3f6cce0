//! Formats the ledger of a manifest as text.

use dataset::manifest::DatasetManifest;

/// The ledger in lines: every line of the input, every text of the shards, every row of the dataset.
pub fn ledger_lines(manifest: &DatasetManifest) -> String {
    let ledger = manifest.seal.ledger;
    let sum = |counters: &[(&str, u64)]| {
        let (name, total) = counters[0];
        let parts: Vec<String> = counters[1..].iter().map(|(name, n)| format!("{n} {name}")).collect();
        format!("{total} {name} = {}", parts.join(" + "))
    };
    let mapper = ledger.mapper.map(|mapper| sum(&mapper.ledger()));
    let unknown = || "lines unknown without --counts: a mapper that failed goes unnoticed".to_owned();
    let mut lines = format!("ledger            {}\n", mapper.unwrap_or_else(unknown));
    if let Some(n @ 1..) = ledger.mapper.map(|mapper| mapper.invalid_utf8) {
        lines += &format!("                  {n} lines with bytes that are not UTF-8 (invalid_utf8)\n");
    }
    let reducer = ledger.reducer.counters();
    lines += &format!("                  {} reviews, {}\n", ledger.reducer.reviews, sum(&reducer[1..]));
    lines += &format!(
        "                  {} rows = {} rows here + {} left_out\n",
        ledger.reducer.rows, manifest.rows, manifest.left_out
    );
    lines
}
