//! Generates random Python literals within the contract's grammar.

use synthetic::random::Random;

/// A dict within the contract's grammar. Its text and rating have any type, so it may not be a review. Some
/// of its keys may be unhashable.
pub fn dict(random: &mut Random) -> Vec<u8> {
    let mut members = Vec::new();
    for _ in 0..random.below(4) {
        members.push(format!("{}{}:{}", value(random, 3), space(random), value(random, 3)));
    }
    let text = if random.percent(80) { string(random) } else { value(random, 2) };
    let rating = random.pick(&["5", "+4.0", "0x3", "'2'", "1_0e-1", "(4)", "True", "6"]);
    members.push(format!("{}'reviewText' : {text}", space(random)));
    members.push(format!("'over' \"all\":{}{rating}", space(random)));
    let end = random.pick(&["", ",", " , "]);
    format!("{{{}{end}}}{}", members.join(","), space(random)).into_bytes()
}

fn space(random: &mut Random) -> &'static str {
    random.pick(&["", "", " ", "\t", " \x0C "])
}

fn value(random: &mut Random, depth: usize) -> String {
    let n_values = random.below(4);
    let values = |random: &mut Random| (0..n_values).map(|_| value(random, depth - 1)).collect::<Vec<_>>();
    match if depth == 0 { random.below(6) } else { random.below(10) } {
        0..=2 => string(random),
        3 | 4 => number(random),
        5 => random.pick(&["True", "False", "None"]).to_owned(),
        6 => format!(
            "[{}{}]",
            values(random).join(","),
            if n_values > 0 { random.pick(&["", ","]) } else { "" }
        ),
        7 => format!(
            "({}{})",
            values(random).join(" ,"),
            if n_values > 0 { random.pick(&["", ","]) } else { "" }
        ),
        8 => format!("({})", value(random, depth - 1)),
        _ => {
            let members = values(random)
                .into_iter()
                .map(|value| format!("{}:{value}", string(random)))
                .collect::<Vec<_>>();
            format!("{{{}}}", members.join(", "))
        }
    }
}

/// One string, or several adjacent ones.
fn string(random: &mut Random) -> String {
    const PIECES: &[&str] = &[
        "good",
        " ",
        "not",
        "caf\u{e9}",
        "\u{1f44d}",
        "\u{65e5}",
        "\\\\",
        "\\'",
        "\\\"",
        "\\n",
        "\\t",
        "\\a",
        "\\0",
        "\\101",
        "\\1012",
        "\\x41",
        "\\xe9",
        "\\u00e9",
        "\\u65e5",
        "\\ud835",
        "\\udc00",
        "\\ud835\\udc00",
        "\\U0001d400",
        "\\U0000d835",
        "\\q",
        "\\8",
        "\\ ",
        "\\\u{e9}",
        "#",
        "{",
        ")",
        ",",
        ":",
        "\t",
        "\u{7f}",
        "\u{2028}",
        "&amp;",
        "<b>",
        "u",
        "r",
    ];
    const RAW_PIECES: &[&str] =
        &["good", " ", "\\n", "\\\\", "\\'", "\\\"", "\\N{x}", "\\u12", "\\x", "\u{e9}", "#"];
    let mut strings = Vec::new();
    for _ in 0..1 + random.below(2) * random.below(3) {
        let prefix = random.pick(&["", "", "", "u", "U", "r", "R"]);
        let pieces = if "rR".contains(prefix) && !prefix.is_empty() { RAW_PIECES } else { PIECES };
        let quote = random.pick(&["'", "\"", "'''", "\"\"\""]);
        let content: String = (0..random.below(8)).map(|_| random.pick(pieces)).collect();
        strings.push(format!("{prefix}{quote}{content}{quote}"));
    }
    strings.join(space(random))
}

fn number(random: &mut Random) -> String {
    let digits = |random: &mut Random| {
        let digits: Vec<_> = (0..1 + random.below(5)).map(|_| random.below(10).to_string()).collect();
        digits.join(random.pick(&["", "", "_"]))
    };
    let (whole, rest) = (digits(random), digits(random));
    let sign = random.pick(&["", "", "-", "+ ", "-\t"]);
    let number = match random.below(6) {
        0 | 1 => format!("{}{whole}", 1 + random.below(9)),
        2 => format!("{whole}.{rest}"),
        3 => format!(".{rest}e{}{}", random.pick(&["", "+", "-"]), random.below(400)),
        4 => format!("{}{:x}", random.pick(&["0x", "0X", "0x_"]), random.below(1 << 40)),
        _ => random
            .pick(&["0", "00_0", "0o17", "0b1_01", "5.", "1e400", "0e0", "007.5", "0O7", "1_0.0_1e1_0"])
            .to_owned(),
    };
    format!("{sign}{number}")
}
