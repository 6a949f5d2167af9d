//! Detects JSON objects that name a key twice.
//!
//! RFC 8259 §4 leaves their meaning open, and readers differ in which of the values counts; RFC 7493 §2.3 forbids them. A program between a
//! client and this one may have looked at the other value, so such a text is refused and not read in one of the two ways.

use crate::Error;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::{collections::HashSet, fmt};

/// How many characters of a path a refusal names.
const SHOWN: usize = 300;

/// Checks that no object in a JSON text names a key twice. A text that is no JSON has none: its reader refuses it.
///
/// # Errors
/// `INVALID_ARGUMENT` about the path of the key, as in `limits.max_steps` and `messages[0].role`.
pub fn check(json: &str) -> Result<(), Error> {
    let mut twice = None;
    // The parser stops at the key: the path has been found then.
    let _ = Walk { twice: &mut twice }.deserialize(&mut serde_json::Deserializer::from_str(json));
    let Some(path) = twice else { return Ok(()) };
    let field: String = path.iter().rev().map(String::as_str).collect();
    let field = crate::text::shortened(field.trim_start_matches('.'), SHOWN);
    Err(Error::invalid(&field, format!("{field} is given more than once")).hint("give it once"))
}

/// One value, with the parts of the path of a key that was there twice, the innermost first.
struct Walk<'a> {
    twice: &'a mut Option<Vec<String>>,
}

impl Walk<'_> {
    fn note(&mut self, part: String) {
        if let Some(path) = self.twice.as_mut() {
            path.push(part);
        }
    }

    fn stop<E: serde::de::Error>() -> E {
        E::custom("a key is given twice")
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        for place in 0_usize.. {
            match list.next_element_seed(Walk { twice: &mut *self.twice }) {
                Ok(Some(())) => {}
                Ok(None) => break,
                Err(error) => {
                    self.note(format!("[{place}]"));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = object.next_key::<String>()? {
            let part = |key: &str| format!(".{}", key.chars().take(SHOWN).collect::<String>());
            if keys.contains(&key) {
                *self.twice = Some(vec![part(&key)]);
                return Err(Self::stop());
            }
            if let Err(error) = object.next_value_seed(Walk { twice: &mut *self.twice }) {
                self.note(part(&key));
                return Err(error);
            }
            keys.insert(key);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_given_twice_is_found_at_any_depth() {
        for (json, field) in [
            (r#"{"goal": 1, "goal": 2}"#, "goal"),
            (r#"{"limits": {"max_steps": 1, "max_steps": 1}}"#, "limits.max_steps"),
            (r#"{"params": {"list": [{}, {"a": [1], "\u0061": 2}]}}"#, "params.list[1].a"),
            (r#"[{"a": 1, "b": null, "a": 2}]"#, "[0].a"),
        ] {
            assert_eq!(check(json).err().map(|error| error.details["field"].clone()), Some(field.into()), "{json}");
        }
        for json in [
            r#"{"a": {"a": 1.5, "b": -1}, "b": [{"a": true}, {"a": "\"a\": 1, \"a\": 2"}]}"#,
            r#"{"a": 1, "A": 2}"#,
            r#"{"a": 1, "a"#,
            "{}",
            "no JSON",
            &"[".repeat(10_000),
        ] {
            assert_eq!(check(json), Ok(()), "{json}");
        }
    }

    #[test]
    fn the_path_in_a_refusal_is_short() {
        let (key, depth) = ("k".repeat(1_000), 100);
        let json =
            format!("{}{{\"{key}\": 1, \"{key}\": 2}}{}", format!("{{\"{key}\": ").repeat(depth), "}".repeat(depth));
        let field = check(&json).err().and_then(|error| error.details["field"].as_str().map(str::len));
        assert!(field.is_some_and(|length| length <= SHOWN + 2), "{field:?}");
    }
}
