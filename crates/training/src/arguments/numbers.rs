//! Parses the numbers of flags. A message names the valid range.

use std::num::{NonZeroU16, NonZeroUsize};
use std::ops::RangeInclusive;

/// Parses a whole number within `range`.
pub fn whole<T: TryFrom<i64>>(
    range: RangeInclusive<i64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse::<i64>().ok().filter(|number| range.contains(number));
        let expected = || format!("expected a whole number from {} to {}", range.start(), range.end());
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(expected)
    }
}

/// Parses a whole number of `least` or more.
pub fn at_least<T: TryFrom<u64>>(least: u64) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse::<u64>().ok().filter(|&number| number >= least);
        let expected = || format!("expected a whole number of at least {least}");
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(expected)
    }
}

/// Parses a number of processes.
pub fn processes(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number of at least 1".to_owned())
}

/// Parses a port.
pub fn port(text: &str) -> Result<NonZeroU16, String> {
    text.parse().map_err(|_| "expected a port from 1 to 65535".to_owned())
}

/// Parses the numbers of steps, from 1.
pub fn steps(text: &str) -> Result<RangeInclusive<u64>, String> {
    let numbers =
        text.split_once('-').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    let steps = numbers.filter(|&(first, last): &(u64, u64)| 1 <= first && first <= last);
    let (first, last) = steps.ok_or("expected the numbers of two steps, such as 100-150")?;
    Ok(first..=last)
}

/// Parses a number from 0 to less than 1.
pub fn share(text: &str) -> Result<f64, String> {
    number(text, |value| (0.0..1.0).contains(&value), "from 0 to less than 1")
}

/// Parses a number above 0 and at most 1.
pub fn factor(text: &str) -> Result<f64, String> {
    number(text, |value| value > 0.0 && value <= 1.0, "above 0 and at most 1")
}

/// Parses a number of 1 or more.
pub fn at_least_one(text: &str) -> Result<f64, String> {
    number(text, |value| value >= 1.0 && value.is_finite(), "of at least 1")
}

/// Parses a number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    number(text, |value| value > 0.0, "above 0")
}

/// Parses a number above 0 that an `f32` has.
pub fn positive_f32(text: &str) -> Result<f64, String> {
    let range = f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX);
    number(text, |value| range.contains(&value), "from 1.2e-38 to 3.4e38")
}

/// Parses a number above 0 and at most a million, far above useful values.
pub fn cost(text: &str) -> Result<f64, String> {
    number(text, |value| value > 0.0 && value <= 1e6, "above 0 and at most 1000000")
}

/// Parses a number of 0 or more.
pub fn not_negative(text: &str) -> Result<f64, String> {
    number(text, |value| value >= 0.0, "of 0 or more")
}

/// Parses a time above 0, of at most a year.
pub fn minutes(text: &str) -> Result<f64, String> {
    number(text, |value| value > 0.0 && value <= 525_600.0, "above 0 and at most 525600, such as 5")
}

fn number(text: &str, is_valid: impl Fn(f64) -> bool, range: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && is_valid(*value));
    value.ok_or_else(|| format!("expected a number {range}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_outside_its_range_is_refused_with_the_range() {
        assert_eq!(whole::<i64>(1..=16)("16"), Ok(16));
        for text in ["0", "17", "-1", "1.5", "many", ""] {
            let expected = Err("expected a whole number from 1 to 16".to_owned());
            assert_eq!(whole::<i64>(1..=16)(text), expected, "{text}");
        }
        assert_eq!(at_least::<u32>(1)("1"), Ok(1));
        for text in ["0", "-1", "4294967296"] {
            let expected = Err("expected a whole number of at least 1".to_owned());
            assert_eq!(at_least::<u32>(1)(text), expected, "{text}");
        }
        assert_eq!(share("0"), Ok(0.0));
        assert_eq!(share("1"), Err("expected a number from 0 to less than 1".to_owned()));
        assert_eq!(factor("1"), Ok(1.0));
        assert_eq!(factor("0"), Err("expected a number above 0 and at most 1".to_owned()));
        assert_eq!(positive("1e-30"), Ok(1e-30));
        assert_eq!(positive("0"), Err("expected a number above 0".to_owned()));
        assert_eq!(positive_f32("0.05"), Ok(0.05));
        for text in ["0", "1e-40", "1e39"] {
            assert_eq!(
                positive_f32(text),
                Err("expected a number from 1.2e-38 to 3.4e38".to_owned()),
                "{text}"
            );
        }
        for text in ["0", "-1", "525601"] {
            let expected = "expected a number above 0 and at most 525600, such as 5".to_owned();
            assert_eq!(minutes(text), Err(expected), "{text}");
        }
        assert_eq!(minutes("0.1"), Ok(0.1));
        assert_eq!(not_negative("-1"), Err("expected a number of 0 or more".to_owned()));
        for text in ["NaN", "inf", "much"] {
            assert!(not_negative(text).is_err(), "{text}");
        }
    }
}
