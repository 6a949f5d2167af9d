//! Cursors: where a page ended, bound to the range that it is a page of.

use super::{Attributes, item::text};
use domain::Sha256;
use ports::{Error, Query, Result};

/// Hexadecimal digits of the seal in front of the position.
const SEAL: usize = 16;

/// The cursor after `last` in the range of `query`; `of` names the table or index, `names` the attributes of a position.
pub(super) fn write(of: &str, query: &Query, names: &[&str], last: &Attributes) -> Result<String> {
    let part = |name: &&str| last.get(*name).and_then(|value| value.as_s().ok());
    let parts: Option<Vec<&String>> = names.iter().map(part).collect();
    let parts = parts.ok_or_else(|| Error::Damaged("DynamoDB ended a page nowhere".into()))?;
    let position = serde_json::json!(parts).to_string();
    Ok(format!("{}{position}", seal(of, query, &position)))
}

/// The position in the cursor of `query`, if it has one.
pub(super) fn read(of: &str, query: &Query, names: &[&str]) -> Result<Option<Attributes>> {
    let Some(cursor) = &query.cursor else { return Ok(None) };
    let (found, position) = cursor.split_at_checked(SEAL).unwrap_or_default();
    let parts: Option<Vec<String>> = serde_json::from_str(position).ok();
    match parts.filter(|parts| parts.len() == names.len() && found == seal(of, query, position)) {
        Some(parts) => Ok(Some(names.iter().map(|name| (*name).to_owned()).zip(parts.into_iter().map(text)).collect())),
        None => Err(Error::Invalid("the cursor is broken, or it belongs to another range".into())),
    }
}

/// Not a secret: it finds mistakes, and a caller who forges a cursor only reads items of its own range.
fn seal(of: &str, Query { pk, from, to, descending, .. }: &Query, position: &str) -> String {
    let range = serde_json::json!([of, pk, from, to, descending, position]).to_string();
    let mut seal = Sha256::of(range.as_bytes()).to_string();
    seal.truncate(SEAL);
    seal
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_range_only() {
        let range = Query::all("p", 1);
        let last = Attributes::from([("pk".to_owned(), text("p")), ("sk".to_owned(), text("é\0"))]);
        let names = ["pk", "sk"];
        let cursor = write("items", &range, &names, &last).unwrap();
        let at = |cursor: &str, of| read(of, &Query { cursor: Some(cursor.to_owned()), ..range.clone() }, &names);
        assert_eq!(at(&cursor, "items").unwrap(), Some(last.clone()));
        assert!(at(&cursor, "index").is_err());
        for broken in ["", "zz", "é".repeat(20).as_str(), &cursor[1..], &format!("{cursor}0")] {
            assert!(at(broken, "items").is_err(), "{broken:?}");
        }
        let other = Query { cursor: Some(cursor), ..range.clone().descending() };
        assert!(read("items", &other, &names).is_err());
        assert!(write("items", &range, &["ipk"], &last).is_err());
    }
}
