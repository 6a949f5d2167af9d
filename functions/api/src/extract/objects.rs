//! JSON objects for types with fields. serde takes an array of the values for them, too, in the order in which a version declares the fields: such a
//! body would mean something else after a field is added.
//!
//! Limit: serde reads all beside the tag of an internally tagged enum, and types with `flatten` or `untagged`, into values of its own first. An array for
//! fields further down in those is taken.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, Expected, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};
use std::fmt;

/// serde's words for a type of which it reads the tag itself.
const TAGGED: &str = "internally tagged enum";

/// A deserializer that takes objects alone for types with fields, at any depth.
pub(super) struct ObjectsOnly<D>(pub D);

macro_rules! as_it_is {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Inside::any(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectsOnly<D> {
    type Error = D::Error;

    as_it_is! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Inside::any(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Inside::any(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(length, Inside::any(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, length, Inside::any(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Inside::fields(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Inside::any(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// A visitor of the values within.
struct Inside<V> {
    visitor: V,
    has_fields: bool,
}

impl<V> Inside<V> {
    fn any(visitor: V) -> Self {
        Self { visitor, has_fields: false }
    }

    fn fields(visitor: V) -> Self {
        Self { visitor, has_fields: true }
    }
}

macro_rules! scalars {
    ($($method:ident($type:ty))*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.visitor.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Inside<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    scalars! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64) visit_i128(i128) visit_u8(u8) visit_u16(u16) visit_u32(u32)
        visit_u64(u64) visit_u128(u128) visit_f32(f32) visit_f64(f64) visit_char(char) visit_str(&str) visit_borrowed_str(&'de str)
        visit_string(String) visit_bytes(&[u8]) visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(ObjectsOnly(value))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(ObjectsOnly(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<V::Value, A::Error> {
        let expected: &dyn Expected = &self;
        if self.has_fields || expected.to_string().starts_with(TAGGED) {
            return Err(A::Error::invalid_type(Unexpected::Seq, expected));
        }
        self.visitor.visit_seq(Within(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, values: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Within(values))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, value: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(Within(value))
    }
}

/// The parts of a value.
struct Within<A>(A);

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Within<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(Seed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Within<A> {
    type Error = A::Error;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.0.next_key_seed(Seed(seed))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(Seed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Within<A> {
    type Error = A::Error;
    type Variant = Within<A::Variant>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self::Variant), A::Error> {
        let (name, variant) = self.0.variant_seed(Seed(seed))?;
        Ok((name, Within(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Within<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        self.0.newtype_variant_seed(Seed(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(length, Inside::any(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Inside::fields(visitor))
    }
}

/// The seed of a value within.
struct Seed<T>(T);

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for Seed<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<T::Value, D::Error> {
        self.0.deserialize(ObjectsOnly(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::{Value, json, value::RawValue};
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Point {
        x: u64,
        #[serde(default)]
        y: u64,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Tagged {
        At { x: u64 },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Named {
        Plain,
        At { x: u64 },
        Pair(u64, u64),
        One(Point),
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Body {
        point: Option<Point>,
        points: Vec<Point>,
        by_name: BTreeMap<String, Point>,
        tagged: Option<Tagged>,
        named: Option<Named>,
        pair: Option<(u64, String)>,
        value: Value,
    }

    fn read(body: &Value) -> Result<Body, String> {
        let text = body.to_string();
        let mut json = serde_json::Deserializer::from_str(&text);
        serde_path_to_error::deserialize(ObjectsOnly(&mut json)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_array_is_no_object_at_any_depth() {
        for (body, place) in [
            (json!([null, [], {}, null, null, null, null]), "invalid type"),
            (json!({ "point": [1, 2] }), "point: "),
            (json!({ "points": [{ "x": 1 }, [1]] }), "points[1]: "),
            (json!({ "by_name": { "a": [1, 2] } }), "by_name.a: "),
            (json!({ "tagged": ["at", 1] }), "tagged: "),
            (json!({ "named": { "at": [1] } }), "named.at: "),
            (json!({ "named": { "one": [1, 2] } }), "named.one: "),
        ] {
            let refused = read(&body).expect_err("an array");
            assert!(refused.starts_with(place) && refused.contains("invalid type: sequence"), "{body}: {refused}");
        }
    }

    #[test]
    fn all_else_is_read_as_ever() {
        let point = Point { x: 1, y: 2 };
        let body = json!({
            "point": { "x": 1, "y": 2 }, "points": [{ "x": 3 }], "by_name": { "a": { "x": 4 } }, "tagged": { "kind": "at", "x": 5 },
            "named": { "pair": [6, 7] }, "pair": [8, "é"], "value": [1, [null, { "a": -1.5 }], "b", true],
        });
        let expected = Body {
            point: Some(point),
            points: vec![Point { x: 3, y: 0 }],
            by_name: [("a".to_owned(), Point { x: 4, y: 0 })].into(),
            tagged: Some(Tagged::At { x: 5 }),
            named: Some(Named::Pair(6, 7)),
            pair: Some((8, "é".to_owned())),
            value: body["value"].clone(),
        };
        assert_eq!(read(&body), Ok(expected));
        assert_eq!(read(&json!({ "named": "plain" })).map(|body| body.named), Ok(Some(Named::Plain)));
        assert_eq!(
            read(&json!({ "named": { "one": { "x": 9 } } })).map(|body| body.named),
            Ok(Some(Named::One(Point { x: 9, y: 0 })))
        );
        let mut json = serde_json::Deserializer::from_str("[1, {}]");
        let raw = Box::<RawValue>::deserialize(ObjectsOnly(&mut json)).map(|raw| raw.get().to_owned());
        assert_eq!(raw.ok().as_deref(), Some("[1, {}]"));
    }
}
