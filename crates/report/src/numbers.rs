//! Formats numbers for people.

/// 1234567 → `1,234,567`.
pub fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun: `1 epoch`, `2 epochs`.
pub fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", whole(number), if number == 1 { "" } else { "s" })
}

/// A fraction as a percentage with one decimal.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A metric with four digits. A test with some thousand rows determines the first two or three.
pub fn measure(value: f64) -> String {
    format!("{value:.4}")
}

/// Seconds, or minutes and hours for longer durations.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 9.95 => format!("{seconds:.1} s"),
        0..100 => format!("{whole} s"),
        100..5_400 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Three significant digits: `1,230`, `12.3`, `0.00123`.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 {
        let sign = if value < 0.0 { "−" } else { "" };
        format!("{sign}{}", whole(size.round() as u64))
    } else if size >= 100.0 || value == 0.0 {
        format!("{value:.0}")
    } else if size < 1e-4 {
        format!("{value:.1e}")
    } else {
        let decimals = (2.0 - size.log10().floor()).max(0.0) as usize;
        let text = format!("{value:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

/// A JSON value as text on a page.
pub fn json(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "none".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// About `n` round numbers from `low` to `high`, equally spaced.
pub fn ticks(low: f64, high: f64, n: usize) -> Vec<f64> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 {
        return vec![low];
    }
    let rough = span / n as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).take(4 * n).map(|at| at as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_people() {
        assert_eq!([0, 999, 1000, 1_234_567].map(whole), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0.4, 12.0, 99.0, 131.0, 5_399.0, 7_260.0].map(duration),
            ["0.4 s", "12 s", "99 s", "2 min 11 s", "89 min 59 s", "2 h 01 min"]
        );
        assert_eq!(
            [0.0, 0.001, 0.5, 12.34, 123.4, 1234.5, -2000.0, 1e-7].map(short),
            ["0", "0.001", "0.5", "12.3", "123", "1,235", "−2,000", "1.0e-7"]
        );
    }

    #[test]
    fn a_count_of_one_is_singular() {
        assert_eq!([0, 1, 2000].map(|n| counted(n, "epoch")), ["0 epochs", "1 epoch", "2,000 epochs"]);
    }

    #[test]
    fn ticks_are_round_and_in_range() {
        assert_eq!(ticks(0.0, 1.0, 5).len(), 6);
        let found = ticks(0.13, 0.71, 4);
        assert!(found.iter().zip([0.2, 0.4, 0.6]).all(|(found, expected)| (found - expected).abs() < 1e-12));
        assert_eq!(ticks(3.0, 3.0, 4), [3.0]);
        assert_eq!(ticks(f64::NAN, 3.0, 4).len(), 1);
        assert!(ticks(1e17, 1e17 + 64.0, 4).len() <= 16);
    }
}
