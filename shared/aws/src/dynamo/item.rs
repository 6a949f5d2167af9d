//! Items as DynamoDB holds them.

use super::Attributes;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::Timestamp;
use ports::{Error, Item, Key, Result};
use std::{collections::HashMap, fmt::Display};

pub(super) const PK: &str = "pk";
pub(super) const SK: &str = "sk";
pub(super) const REV: &str = "rev";
pub(super) const BODY: &str = "body";
pub(super) const IPK: &str = "ipk";
pub(super) const ISK: &str = "isk";
/// When DynamoDB may delete it, in whole seconds, rounded up. It does so at its leisure, within days.
pub(super) const EXPIRES: &str = "expires";
/// The time from which readers do not see it, in milliseconds.
pub(super) const EXPIRES_MS: &str = "expires_ms";

/// The condition under which an item has not expired. It holds for an absent item as well.
pub(super) const ALIVE: &str = "(attribute_not_exists(expires_ms) OR expires_ms > :now)";
/// The separator between an index key and the item's own key in [`ISK`]: nothing sorts below it.
const APART: char = '\0';

pub(super) fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(super) fn number(number: impl Display) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub(super) fn key(key: &Key) -> Attributes {
    HashMap::from([(PK.to_owned(), text(&key.pk)), (SK.to_owned(), text(&key.sk))])
}

/// The attributes that a put sets beside key and revision.
///
/// In the index, items under one key have no order of their own in DynamoDB, and a page could not be continued between
/// them as the port promises; so the sort key there is made distinct by the item's own key behind it.
pub(super) fn contents(key: &Key, body: &str, index: Option<&Key>, expires_at: Option<Timestamp>) -> Attributes {
    let mut attributes = HashMap::from([(BODY.to_owned(), text(body))]);
    if let Some(index) = index {
        attributes.insert(IPK.to_owned(), text(&index.pk));
        attributes.insert(ISK.to_owned(), text(format!("{}{}", index.sk, suffix(key))));
    }
    if let Some(at) = expires_at {
        attributes.insert(EXPIRES.to_owned(), number(at.as_millis().saturating_add(999).div_euclid(1000)));
        attributes.insert(EXPIRES_MS.to_owned(), number(at.as_millis()));
    }
    attributes
}

fn suffix(key: &Key) -> String {
    format!("{APART}{}{APART}{}", key.pk, key.sk)
}

pub(super) fn read(mut attributes: Attributes) -> Result<Item> {
    let key = Key { pk: take(&mut attributes, PK)?, sk: take(&mut attributes, SK)? };
    let index = match attributes.contains_key(IPK) {
        false => None,
        true => {
            let (pk, sk) = (take(&mut attributes, IPK)?, take(&mut attributes, ISK)?);
            let sk = sk.strip_suffix(&suffix(&key)).ok_or_else(|| damaged(&key, ISK))?.to_owned();
            Some(Key { pk, sk })
        }
    };
    Ok(Item {
        rev: parse(&attributes, REV)?.ok_or_else(|| damaged(&key, REV))?,
        body: take(&mut attributes, BODY)?,
        expires_at: parse(&attributes, EXPIRES_MS)?.map(Timestamp::from_millis),
        index,
        key,
    })
}

fn take(attributes: &mut Attributes, name: &str) -> Result<String> {
    match attributes.remove(name) {
        Some(AttributeValue::S(text)) => Ok(text),
        other => {
            Err(Error::Damaged(format!("an item's {name} is {}", if other.is_some() { "no text" } else { "missing" })))
        }
    }
}

fn parse<T: std::str::FromStr>(attributes: &Attributes, name: &str) -> Result<Option<T>> {
    let Some(value) = attributes.get(name) else { return Ok(None) };
    let number = value.as_n().ok().and_then(|digits| digits.parse().ok());
    number.map(Some).ok_or_else(|| Error::Damaged(format!("an item's {name} is no number")))
}

fn damaged(key: &Key, name: &str) -> Error {
    Error::Damaged(format!("the {name} of {key:?}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn an_item_is_read_as_it_was_written() {
        let item = Item {
            key: Key::new("p", "s\0t"),
            rev: 7,
            body: "{}".into(),
            index: Some(Key::new("i", "\0")),
            expires_at: Some(Timestamp::from_millis(1_001)),
        };
        let mut attributes = key(&item.key);
        attributes.insert(REV.into(), number(item.rev));
        attributes.extend(contents(&item.key, &item.body, item.index.as_ref(), item.expires_at));
        assert_eq!(attributes.get(EXPIRES), Some(&number(2)), "never deleted before it expires");
        assert_eq!(read(attributes.clone()).unwrap(), item);
        for name in [PK, SK, REV, BODY, ISK] {
            let mut broken = attributes.clone();
            broken.remove(name);
            assert!(matches!(read(broken), Err(Error::Damaged(_))), "without {name}");
        }
    }

    /// See docs/architecture/upgrading.md.
    #[test]
    fn items_are_read_for_ever() {
        let golden = include_str!("../../tests/golden/items/1.json");
        let golden: std::collections::BTreeMap<String, serde_json::Value> = serde_json::from_str(golden).unwrap();
        let attribute = |value: &serde_json::Value| match (value["S"].as_str(), value["N"].as_str()) {
            (Some(string), _) => text(string),
            (_, digits) => AttributeValue::N(digits.unwrap().to_owned()),
        };
        let golden: Attributes = golden.iter().map(|(name, value)| (name.clone(), attribute(value))).collect();
        let item = Item {
            key: Key::new("p", "s"),
            rev: 7,
            body: "{}".into(),
            index: Some(Key::new("i", "j")),
            expires_at: Some(Timestamp::from_millis(1_001)),
        };
        assert_eq!(read(golden.clone()).unwrap(), item);
        let mut written = key(&item.key);
        written.insert(REV.into(), number(item.rev));
        written.extend(contents(&item.key, &item.body, item.index.as_ref(), item.expires_at));
        assert_eq!(written, golden);
    }

    #[test]
    fn the_order_in_the_index_is_that_of_the_index_key_and_then_of_the_item() {
        let place = |index: &str, sk: &str| {
            let attributes = contents(&Key::new("p", sk), "1", Some(&Key::new("i", index)), None);
            attributes.get(ISK).unwrap().as_s().unwrap().clone()
        };
        let ordered = [place("a", "1"), place("a", "2"), place("a!", "0"), place("aa", "0"), place("b", "0")];
        assert!(ordered.is_sorted(), "{ordered:?}");
        assert!(place("a", "1").as_str() >= "a" && place("a", "\u{10ffff}").as_str() < "a!");
    }
}
