//! Cursors: the end of a page, bound to the range of the query.

use domain::Sha256;
use ports::{Error, Query, Result};

/// Hexadecimal digits of the seal in front of the position.
const SEAL: usize = 16;

/// The cursor after `position` in the range of `query`; `of` names the kind of query.
pub(crate) fn write(of: &str, query: &Query, position: &[&str]) -> String {
    let position = serde_json::json!(position).to_string();
    let mut cursor = seal(of, query, &position);
    for byte in position.bytes() {
        cursor.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or_default());
        cursor.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or_default());
    }
    cursor
}

/// The position in the cursor of `query`, if it has one.
pub(crate) fn read<const PARTS: usize>(of: &str, query: &Query) -> Result<Option<[String; PARTS]>> {
    let Some(cursor) = &query.cursor else { return Ok(None) };
    let parsed = parse(cursor).filter(|(found, position)| *found == seal(of, query, position));
    let parts = parsed.and_then(|(_, position)| serde_json::from_str::<Vec<String>>(&position).ok());
    match parts.and_then(|parts| parts.try_into().ok()) {
        Some(parts) => Ok(Some(parts)),
        None => Err(Error::Invalid("the cursor is broken, or it belongs to another range".into())),
    }
}

fn parse(cursor: &str) -> Option<(&str, String)> {
    let (seal, digits) = cursor.split_at_checked(SEAL)?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let bytes = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    Some((seal, String::from_utf8(bytes.collect::<Option<_>>()?).ok()?))
}

/// Not a secret: it finds mistakes, and a caller who forges a cursor only reads what its range allows anyway.
fn seal(of: &str, Query { pk, from, to, descending, .. }: &Query, position: &str) -> String {
    let range = serde_json::json!([of, pk, from, to, descending, position]).to_string();
    let mut seal = Sha256::of(range.as_bytes()).to_string();
    seal.truncate(SEAL);
    seal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_range_only() {
        let range = Query::all("p", 1);
        let at = |cursor: String, of| read::<1>(of, &Query { cursor: Some(cursor), ..range.clone() });
        let cursor = write("items", &range, &["é\0"]);
        assert_eq!(at(cursor.clone(), "items").ok().flatten(), Some(["é\0".to_owned()]));
        assert!(at(cursor.clone(), "index").is_err());
        assert!(at(format!("{cursor}0"), "items").is_err());
        for broken in ["", "zz", "é".repeat(20).as_str(), &cursor[..cursor.len() - 2]] {
            assert!(at(broken.into(), "items").is_err(), "{broken:?}");
        }
        let other = Query { cursor: Some(cursor), ..range.clone().descending() };
        assert!(read::<1>("items", &other).is_err());
    }
}
