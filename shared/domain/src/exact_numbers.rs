//! Detects JSON numbers that a round trip would change.
//!
//! RFC 8259 §6 bounds no number; RFC 7493 §2.2 asks senders to write as texts those that are larger or more exact than a double.
//! A number is kept here as a 64-bit integer or a double, so any other one would come back changed. Code that takes JSON from outside into
//! a log refuses it instead: nothing is changed silently.

use crate::{Code, Error};
use serde_json::Value;
use std::{borrow::Cow, ops::Range};

/// The first number in a JSON text that would not be kept as it is, such as `12345678901234567890123` or `100000000000000000000.5`; in text
/// that is not JSON, the first that looks like one.
pub fn first_inexact(json: &str) -> Option<&str> {
    json.get(next_inexact(json, 0)?)
}

/// The value of a JSON text; none for a text that is no JSON, or has a number that would not be kept as it is.
pub fn value(json: &str) -> Option<Value> {
    serde_json::from_str(json).ok().filter(|_| first_inexact(json).is_none())
}

/// The value of a JSON text; a text that has none stands for itself.
pub fn value_or_text(json: &str) -> Value {
    value(json).unwrap_or_else(|| Value::from(json))
}

/// A JSON text in which each number that would not be kept as it is stands as a text, in quotes: for JSON whose sender is not asked again.
pub fn quoted(json: &str) -> Cow<'_, str> {
    let (mut quoted, mut from) = (String::new(), 0);
    while let Some(number) = next_inexact(json, from) {
        quoted.push_str(json.get(from..number.start).unwrap_or_default());
        quoted.push('"');
        quoted.push_str(json.get(number.clone()).unwrap_or_default());
        quoted.push('"');
        from = number.end;
    }
    if from == 0 {
        return Cow::Borrowed(json);
    }
    quoted.push_str(json.get(from..).unwrap_or_default());
    Cow::Owned(quoted)
}

/// The place of the first number from `at` on, which is inside of no text, that would not be kept as it is.
fn next_inexact(json: &str, mut at: usize) -> Option<Range<usize>> {
    let bytes = json.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = after_string(bytes, at + 1),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let length = bytes.iter().skip(at).take_while(|byte| is_part(byte)).count();
                let number = json.get(at..at + length)?;
                if !is_exact(number) {
                    return Some(at..at + length);
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

/// Checks that every number in a JSON text would be kept as it is.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field`, with the number.
pub fn check(field: &str, json: &str) -> Result<(), Error> {
    const SHOWN: usize = 60;
    let Some(number) = first_inexact(json) else { return Ok(()) };
    let shown: String = number.chars().take(SHOWN).collect();
    let message = format!("the number {shown} cannot be kept exactly: it is no 64-bit integer and no double");
    Err(Error::new(Code::InvalidArgument, message).detail("field", field).hint("send it as a text, in quotes"))
}

fn after_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

fn is_exact(number: &str) -> bool {
    // Fifteen digits always fit a double, far from its ends.
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    if digits <= 15 && !number.contains(['e', 'E']) {
        return true;
    }
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    match number.parse::<f64>() {
        Ok(double) if double.is_finite() => decimal(number) == decimal(&format!("{double:e}")),
        // The parser refuses a text that is not a number; one beyond all doubles cannot be kept.
        Ok(_) => false,
        Err(_) => true,
    }
}

/// The digits of a number without zeros at either end, and the power of ten of the last of them.
fn decimal(number: &str) -> (bool, String, i64) {
    let (mantissa, power) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (is_negative, whole) = whole.strip_prefix('-').map_or((false, whole), |whole| (true, whole));
    let digits = format!("{whole}{part}");
    let kept = digits.trim_end_matches('0');
    let power = power.parse::<i64>().unwrap_or(i64::MAX);
    let last = power.saturating_sub(part.len() as i64).saturating_add((digits.len() - kept.len()) as i64);
    let kept = kept.trim_start_matches('0');
    // Zero has no sign and no power.
    if kept.is_empty() { (false, String::new(), 0) } else { (is_negative, kept.to_owned(), last) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn s2_1_numbers_that_would_change_are_found() {
        for kept in [
            "0",
            "-0",
            "1.0",
            "1e2",
            "0.1",
            "1.50",
            "18446744073709551615",
            "-9223372036854775808",
            "1e22",
            "1.7976931348623157e308",
            "0.30000000000000004",
            "123456789012345680000",
            "5e-324",
            "[1, {\"a\": \"12345678901234567890123\"}, \"\\\"99999999999999999999999\"]",
        ] {
            assert_eq!(first_inexact(kept), None, "{kept}");
        }
        for (text, number) in [
            ("12345678901234567890123", "12345678901234567890123"),
            ("{\"a\": [1, 100000000000000000000.5]}", "100000000000000000000.5"),
            ("[18446744073709551616.5]", "18446744073709551616.5"),
            ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
            ("1e400", "1e400"),
            ("-9223372036854775809", "-9223372036854775809"),
            ("1e-400", "1e-400"),
        ] {
            assert_eq!(first_inexact(text), Some(number), "{text}");
        }
        assert!(check("input", "[1e400]").unwrap_err().hint.unwrap().contains("quotes"));
    }

    #[test]
    fn s2_1_a_text_has_a_value_only_where_each_number_is_kept() {
        assert_eq!(value("{\"n\": 1.5}"), Some(json!({ "n": 1.5 })));
        assert_eq!(value("{\"n\": 12345678901234567890123}"), None);
        assert_eq!(value("{"), None);
        assert_eq!(value_or_text("12345678901234567890123"), json!("12345678901234567890123"));
        assert_eq!(value_or_text("yes"), json!("yes"));
        let inexact = r#"{"a": [-12345678901234567890123, 7, 1e400], "b": "12345678901234567890123"}"#;
        let expected = json!({ "a": ["-12345678901234567890123", 7, "1e400"], "b": "12345678901234567890123" });
        assert_eq!(value(&quoted(inexact)), Some(expected));
        assert!(matches!(quoted("[1, 2]"), Cow::Borrowed("[1, 2]")));
    }

    proptest! {
        /// A number that is let through comes back as the same decimal number, and every number that can be kept is let through.
        #[test]
        fn s2_1_a_number_that_is_let_through_comes_back_as_it_was(
            whole in "-?(0|[1-9][0-9]{0,30})", part in "(\\.[0-9]{1,30})?", power in "([eE][+-]?[0-9]{1,3})?", double: f64, integer: i64,
        ) {
            let number = format!("{whole}{part}{power}");
            if first_inexact(&number).is_none() {
                let value: Value = serde_json::from_str(&number).unwrap();
                prop_assert_eq!(decimal(&value.to_string()), decimal(&number), "{}", number);
            }
            for value in [Value::from(double), Value::from(integer)] {
                let text = value.to_string();
                prop_assert_eq!(first_inexact(&text), None, "{}", text);
            }
        }
    }
}
