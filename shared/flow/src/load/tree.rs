//! A YAML or JSON text as a tree that knows where each key and value stands.

use crate::op::expr::{no_thread, on_deep_stack};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned};
use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
};

/// A place in a file: line and column, from 1; 0 where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SourcePosition {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// A value of a manifest, with its position in the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SourceTree {
    pub(super) place: SourcePosition,
    pub(super) content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    /// Anything but a list or an object.
    Scalar(Value),
    List(Vec<SourceTree>),
    /// Keys with their places, in the order of the file.
    Map(Vec<(String, SourcePosition, SourceTree)>),
}

/// A text that is no YAML, or no JSON.
pub(super) struct Malformed {
    pub(super) place: SourcePosition,
    pub(super) message: String,
    pub(super) hint: &'static str,
}

/// A key that is there again, with the place of the first.
pub(super) struct DuplicateKey {
    pub(super) key: String,
    pub(super) place: SourcePosition,
    pub(super) first: SourcePosition,
    /// Whether it is a key of the file itself.
    pub(super) at_root: bool,
}

/// A number that is neither a 64-bit integer nor a double, so that it is read as another one.
pub(super) struct InexactNumber {
    pub(super) place: SourcePosition,
    /// As it stands in the text.
    pub(super) number: String,
}

impl SourceTree {
    /// Reads a text. A `.json` file that is JSON has JSON's values, where these differ from YAML's. Of a key that is there more
    /// than once the first counts; the others are told, and so are the numbers that are not read as they stand.
    pub(super) fn read(path: &str, text: &str) -> Result<(Self, Vec<DuplicateKey>, Vec<InexactNumber>), Malformed> {
        let (mut tree, inexact) = Self::parse(path, text)?;
        let mut again = Vec::new();
        tree.keep_first(&mut again, true);
        Ok((tree, again, inexact))
    }

    fn parse(path: &str, text: &str) -> Result<(Self, Vec<InexactNumber>), Malformed> {
        // A text that nests as deep as the parser allows needs more than the stack of a worker.
        let yaml = on_deep_stack(|| {
            let options = serde_saphyr::options! {
                duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::PassThrough,
                strict_booleans: true,
                with_snippet: false,
                leading_zero_numbers_as_strings: true,
                underscored_numbers_as_strings: true,
            };
            let told = |raw: Spanned<Raw>| {
                let mut inexact = Vec::new();
                find_inexact(&raw, text, &mut inexact);
                (Self::from(raw), inexact)
            };
            serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options)
                .map(told)
                .map_err(|error| (error.location().map(SourcePosition::from), error.without_snippet().to_string()))
        });
        let yaml = yaml.map_err(|error| Malformed {
            place: SourcePosition::default(),
            message: no_thread(&error),
            hint: "check it again in a while",
        })?;
        let yaml = yaml.unwrap_or_else(|| Err((None, "it cannot be parsed".into())));
        if path.ends_with(".json") {
            let value: Value = serde_json::from_str(text).map_err(|error| {
                let place = SourcePosition { line: narrow(error.line() as u64), column: narrow(error.column() as u64) };
                Malformed { place, message: no_such("JSON", &error.to_string()), hint: LOOK }
            })?;
            let placed = yaml.ok().filter(|(tree, _)| tree.to_value() == value);
            return Ok(placed.unwrap_or_else(|| {
                let unplaced = |number: &str| InexactNumber { place: SourcePosition::default(), number: number.into() };
                (Self::unplaced(value), domain::exact_numbers::first_inexact(text).map(unplaced).into_iter().collect())
            }));
        }
        yaml.map_err(|(place, reason)| malformed(&reason, text, place.unwrap_or_default()))
    }

    fn keep_first(&mut self, again: &mut Vec<DuplicateKey>, at_root: bool) {
        match &mut self.content {
            Content::Scalar(_) => {}
            Content::List(list) => list.iter_mut().for_each(|item| item.keep_first(again, false)),
            Content::Map(map) => {
                let mut seen: HashMap<String, SourcePosition> = HashMap::new();
                map.retain(|(key, place, _)| match seen.entry(key.clone()) {
                    Entry::Vacant(free) => {
                        free.insert(*place);
                        true
                    }
                    Entry::Occupied(taken) => {
                        again.push(DuplicateKey { key: key.clone(), place: *place, first: *taken.get(), at_root });
                        false
                    }
                });
                map.iter_mut().for_each(|(_, _, value)| value.keep_first(again, false));
            }
        }
    }

    /// A tree of places that are not known.
    fn unplaced(value: Value) -> Self {
        let content = match value {
            Value::Array(list) => Content::List(list.into_iter().map(Self::unplaced).collect()),
            Value::Object(map) => Content::Map(
                map.into_iter().map(|(key, value)| (key, SourcePosition::default(), Self::unplaced(value))).collect(),
            ),
            scalar => Content::Scalar(scalar),
        };
        Self { place: SourcePosition::default(), content }
    }

    pub(super) fn to_value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(list) => Value::Array(list.iter().map(Self::to_value).collect()),
            Content::Map(map) => {
                Value::Object(map.iter().map(|(key, _, value)| (key.clone(), value.to_value())).collect::<Map<_, _>>())
            }
        }
    }

    /// The value under this key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match &self.content {
            Content::Map(map) => map.iter().find(|(name, ..)| name == key).map(|(_, _, value)| value),
            Content::List(list) => key.parse::<usize>().ok().and_then(|index| list.get(index)),
            Content::Scalar(_) => None,
        }
    }

    /// The first reference of a schema that leads out of its file, with its place.
    pub(super) fn reference_out(&self) -> Option<(SourcePosition, String)> {
        match &self.content {
            Content::Scalar(_) => None,
            Content::List(list) => list.iter().find_map(Self::reference_out),
            Content::Map(map) => map.iter().find_map(|(key, _, value)| match &value.content {
                Content::Scalar(Value::String(to)) if key == "$ref" && !to.starts_with('#') => {
                    Some((value.place, to.clone()))
                }
                _ => value.reference_out(),
            }),
        }
    }

    /// The same without a key of the manifest's own name around everything, which some write: `memory: {…}`.
    pub(super) fn unwrapped(self, name: &str, schema: &Value) -> Self {
        let is_key = schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
        let Content::Map(mut map) = self.content else { return self };
        let is_version = |key: &str| key == "version" || key.starts_with("x-");
        let is_wrapper = !is_key
            && map.iter().all(|(key, ..)| key == name || is_version(key))
            && map.iter().any(|(key, _, value)| key == name && matches!(value.content, Content::Map(_)));
        if is_wrapper && let Some(at) = map.iter().position(|(key, ..)| key == name) {
            let (_, _, inner) = map.remove(at);
            if let Content::Map(entries) = inner.content {
                map.retain(|(key, ..)| !entries.iter().any(|(inside, ..)| inside == key));
                map.extend(entries);
            }
        }
        Self { place: self.place, content: Content::Map(map) }
    }

    /// The place of what this JSON pointer leads to, or of the innermost value on the way that is there.
    pub(super) fn place_of(&self, pointer: &str) -> SourcePosition {
        let mut at = self;
        for part in pointer.split('/').skip(1) {
            match at.get(&part.replace("~1", "/").replace("~0", "~")) {
                Some(next) => at = next,
                None => break,
            }
        }
        at.place
    }

    /// The place of this key among the keys of the object that the pointer leads to.
    pub(super) fn place_of_key(&self, pointer: &str, key: &str) -> SourcePosition {
        let mut at = self;
        for part in pointer.split('/').skip(1) {
            match at.get(part) {
                Some(next) => at = next,
                None => return at.place,
            }
        }
        match &at.content {
            Content::Map(map) => map.iter().find(|(name, ..)| name == key).map_or(at.place, |(_, place, _)| *place),
            _ => at.place,
        }
    }

    /// The type of the value, as JSON Schema calls it.
    pub(super) fn type_name(&self) -> &'static str {
        match &self.content {
            Content::List(_) => "array",
            Content::Map(_) => "object",
            Content::Scalar(Value::Null) => "null",
            Content::Scalar(Value::Bool(_)) => "boolean",
            Content::Scalar(Value::Number(number)) if number.is_f64() => "number",
            Content::Scalar(Value::Number(_)) => "integer",
            Content::Scalar(_) => "string",
        }
    }
}

const LOOK: &str = "look for a bracket or a quote without its other half, and for the indentation, there and before";

/// A parser's message without its place, which the fault has.
fn no_such(what: &str, reason: &str) -> String {
    let reason = reason.rsplit_once(" at line ").map_or(reason, |(reason, _)| reason);
    format!("this is no {what}: {reason}")
}

/// Says in words for an author why a text is no YAML: the parser's own words are for programmers.
fn malformed(reason: &str, text: &str, place: SourcePosition) -> Malformed {
    let line = |number: u32| text.lines().nth((number as usize).wrapping_sub(1)).unwrap_or_default();
    // The parser notices a tab where the line before it ends.
    let tab = (place.line..=place.line.saturating_add(1)).find_map(|number| {
        let at = line(number).find(|letter: char| letter != ' ')?;
        line(number)
            .get(at..)?
            .starts_with('\t')
            .then_some(SourcePosition { line: number, column: narrow(at as u64 + 1) })
    });
    if let Some(place) = tab {
        let message = "this is no YAML: a tab indents the line".into();
        return Malformed { place, message, hint: "put spaces in the place of the tab" };
    }
    // It may notice braces only where the next line begins.
    let unquoted = [place.line, place.line.saturating_sub(1)].into_iter().find_map(|number| {
        let written = line(number);
        let before = written.get(..written.find("{{")?).unwrap_or_default();
        let begins_there = before.trim_end().is_empty() || before.trim_end().ends_with([':', '-', ',', '[', '{']);
        begins_there.then(|| SourcePosition { line: number, column: narrow(before.chars().count() as u64 + 1) })
    });
    if let Some(place) = unquoted {
        let message = "this is no YAML: a text that begins with `{{` has to be quoted".into();
        return Malformed { place, message, hint: "quote it: \"{{input}}\"" };
    }
    if reason.contains("budget") {
        let (what, hint) = if reason.contains("Depth") {
            ("it nests too deep", "64 levels of lists and objects are the most")
        } else {
            (
                "it is too much, with all that its aliases stand for",
                "250,000 values and keys are the most: use fewer aliases",
            )
        };
        return Malformed { place, message: format!("this is no YAML that is read here: {what}"), hint };
    }
    if reason.contains("non-finite") {
        let message = "this is no YAML that is read here: a number is too large, infinite, or none".into();
        return Malformed { place, message, hint: "write a number, or a text in quotes" };
    }
    if reason.contains("from_str_multiple") {
        let second = text.lines().enumerate().skip(1).filter(|(_, line)| line.trim_end() == "---").last();
        let place = second.map_or(place, |(at, _)| SourcePosition { line: narrow(at as u64 + 1), column: 1 });
        let message = "this is no YAML that is read here: the file holds more than one document".into();
        return Malformed { place, message, hint: "keep one, and remove the line `---` between them" };
    }
    Malformed { place, message: no_such("YAML", reason), hint: LOOK }
}

impl From<Location> for SourcePosition {
    fn from(location: Location) -> Self {
        Self { line: narrow(location.line()), column: narrow(location.column()) }
    }
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A value as the parser gives it.
#[derive(Clone, Debug)]
enum Raw {
    Scalar(Value),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

/// Adds the numbers that are not read as they stand in the text.
fn find_inexact(raw: &Spanned<Raw>, text: &str, found: &mut Vec<InexactNumber>) {
    match &raw.value {
        Raw::Scalar(Value::Number(number)) if number.is_f64() => {
            let begin = raw.defined.span().byte_offset().and_then(|offset| usize::try_from(offset).ok());
            let written = begin.and_then(|begin| text.get(begin..)).unwrap_or_default();
            let written = written.split([' ', '\t', '\r', '\n', ',', ']', '}']).next().unwrap_or_default();
            if let Some(number) = domain::exact_numbers::first_inexact(written) {
                found.push(InexactNumber { place: raw.referenced.into(), number: number.to_owned() });
            }
        }
        Raw::Scalar(_) => {}
        Raw::List(list) => list.iter().for_each(|item| find_inexact(item, text, found)),
        Raw::Map(map) => map.iter().for_each(|(_, value)| find_inexact(value, text, found)),
    }
}

impl From<Spanned<Raw>> for SourceTree {
    fn from(raw: Spanned<Raw>) -> Self {
        let content = match raw.value {
            Raw::Scalar(value) => Content::Scalar(value),
            Raw::List(list) => Content::List(list.into_iter().map(Self::from).collect()),
            Raw::Map(map) => Content::Map(
                map.into_iter()
                    .map(|(key, value)| (key.value, SourcePosition::from(key.referenced), Self::from(value)))
                    .collect(),
            ),
        };
        Self { place: raw.referenced.into(), content }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        // The same number as JSON has it.
        Ok(Raw::Scalar(u64::try_from(value).map_or(Value::from(value), Value::from)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Scalar(Number::from_f64(value).map_or_else(|| value.to_string().into(), Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = access.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = access.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}
