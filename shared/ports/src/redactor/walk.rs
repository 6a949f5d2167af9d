//! Looks at the texts of a value where they are: a JSON of the value, made for the look alone, would cost its length in allocations.

use serde::{
    Serialize, Serializer,
    ser::{
        Error, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};
use std::fmt;

/// Whether `is_found` holds for a text of `value`, be it the key of a map. The names of fields and of variants are the program's own words,
/// and are not looked at; a tag that is written as a field is a text. False for a value that cannot be serialized.
pub(super) fn any_text<T: Serialize + ?Sized>(value: &T, is_found: &dyn Fn(&str) -> bool) -> bool {
    matches!(value.serialize(Walk(is_found)), Err(Ended::Found))
}

/// Ends with the first text that is found.
#[derive(Clone, Copy)]
struct Walk<'a>(&'a dyn Fn(&str) -> bool);

/// Why a walk did not come to the end of its value.
#[derive(Debug)]
enum Ended {
    Found,
    Failed,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Found => "a text was found",
            Self::Failed => "the value cannot be serialized",
        })
    }
}

impl std::error::Error for Ended {}

impl Error for Ended {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Failed
    }
}

type WalkResult = Result<(), Ended>;

/// Values without a text.
macro_rules! textless {
    ($($name:ident: $type:ty),*) => {
        $(fn $name(self, _: $type) -> WalkResult {
            Ok(())
        })*
    };
}

impl Serializer for Walk<'_> {
    type Ok = ();
    type Error = Ended;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    textless!(
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
        serialize_bytes: &[u8],
        serialize_unit_struct: &'static str
    );

    fn serialize_str(self, text: &str) -> WalkResult {
        if (self.0)(text) { Err(Ended::Found) } else { Ok(()) }
    }

    fn serialize_none(self) -> WalkResult {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> WalkResult {
        value.serialize(self)
    }

    fn serialize_unit(self) -> WalkResult {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> WalkResult {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> WalkResult {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> WalkResult {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Ended> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Ended> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Ended> {
        Ok(self)
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, Ended> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Ended> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Ended> {
        Ok(self)
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, Ended> {
        Ok(self)
    }
}

/// Values of which each part is walked.
macro_rules! parts {
    ($($of:ident: $($name:ident),+;)*) => {
        $(impl $of for Walk<'_> {
            type Ok = ();
            type Error = Ended;
            $(fn $name<T: Serialize + ?Sized>(&mut self, value: &T) -> WalkResult {
                value.serialize(*self)
            })+
            fn end(self) -> WalkResult {
                Ok(())
            }
        })*
    };
}

parts!(
    SerializeSeq: serialize_element;
    SerializeTuple: serialize_element;
    SerializeTupleStruct: serialize_field;
    SerializeTupleVariant: serialize_field;
    SerializeMap: serialize_key, serialize_value;
);

/// The same for parts that have names.
macro_rules! named_parts {
    ($($of:ident),*) => {
        $(impl $of for Walk<'_> {
            type Ok = ();
            type Error = Ended;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> WalkResult {
                value.serialize(*self)
            }
            fn end(self) -> WalkResult {
                Ok(())
            }
        })*
    };
}

named_parts!(SerializeStruct, SerializeStructVariant);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::{cell::RefCell, collections::BTreeMap};

    #[derive(Serialize)]
    struct Newtype(&'static str);

    #[derive(Serialize)]
    struct Pair(&'static str, u8);

    #[derive(Serialize)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Tagged {
        Said { text: &'static str, none: Option<&'static str>, some: Option<&'static str> },
    }

    #[derive(Serialize)]
    enum Plain {
        Unit,
        Newtype(&'static str),
        Pair(&'static str, &'static str),
        Fields { text: &'static str },
    }

    #[derive(Serialize)]
    struct All {
        newtype: Newtype,
        pair: Pair,
        tagged: Tagged,
        plain: Vec<Plain>,
        map: BTreeMap<&'static str, f64>,
        value: serde_json::Value,
        shown: domain::Timestamp,
        letter: char,
        unit: (),
    }

    #[test]
    fn each_text_of_a_value_is_looked_at_and_no_name_is() {
        let all = All {
            newtype: Newtype("a"),
            pair: Pair("b", 7),
            tagged: Tagged::Said { text: "c", none: None, some: Some("d") },
            plain: vec![Plain::Unit, Plain::Newtype("e"), Plain::Pair("f", "g"), Plain::Fields { text: "h" }],
            map: BTreeMap::from([("i", 0.5)]),
            value: json!({ "j": ["k", 1, null, true, { "l": "m" }] }),
            shown: domain::Timestamp::from_millis(0),
            letter: 'x',
            unit: (),
        };
        let seen = RefCell::new(Vec::new());
        assert!(!any_text(&all, &|text| {
            seen.borrow_mut().push(text.to_owned());
            false
        }));
        let at = "1970-01-01T00:00:00.000Z";
        let expected = ["a", "b", "said", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", at];
        assert_eq!(seen.into_inner(), expected);
        for text in expected {
            assert!(any_text(&all, &|seen| seen == text), "{text}");
        }
    }

    #[test]
    fn the_first_text_that_is_found_ends_the_walk() {
        let count = RefCell::new(0);
        assert!(any_text(&["no", "yes", "no"], &|text| {
            *count.borrow_mut() += 1;
            text == "yes"
        }));
        assert_eq!(count.into_inner(), 2);
    }
}
