//! Labels: pairs of text that people attach to chats and tasks, and find them by.

use crate::{Error, check_shown, text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The labels of a chat or a task: data of people, such as the id of a customer. No agent reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

/// Changes of labels: a text sets the label of this key, and null removes it. Others stay.
pub type LabelChanges = BTreeMap<String, Option<String>>;

impl Labels {
    /// The most labels of a chat or a task.
    pub const MOST: usize = 16;
    /// The longest key, in characters.
    pub const LONGEST_KEY: usize = 64;
    /// The longest value, in characters.
    pub const LONGEST_VALUE: usize = 512;

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys with their values, in the order of the keys.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether all labels of `wanted` are among these, with the same values.
    pub fn include(&self, wanted: &Self) -> bool {
        wanted.0.iter().all(|(key, value)| self.0.get(key) == Some(value))
    }

    /// The labels that these pairs are.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about `field`, as for [`Labels::changed`].
    pub fn checked(field: &str, pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, Error> {
        Self::default().changed(field, pairs.into_iter().map(|(key, value)| (key, Some(value))))
    }

    /// The labels after these changes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about `field`, when there are more than [`Labels::MOST`] then, a value is too long, or a key is empty, too long,
    /// has a `=` or a character that is not shown in it.
    pub fn changed(
        &self,
        field: &str,
        changes: impl IntoIterator<Item = (String, Option<String>)>,
    ) -> Result<Self, Error> {
        let mut labels = self.0.clone();
        for (key, value) in changes {
            let Some(value) = value else {
                labels.remove(&key);
                continue;
            };
            check_pair(field, &key, &value)?;
            labels.insert(key, value);
        }
        if labels.len() > Self::MOST {
            let message = format!("there are {} labels; {} fit", labels.len(), Self::MOST);
            return Err(Error::invalid(field, message).hint("remove labels that are not needed"));
        }
        Ok(Self(labels))
    }
}

fn check_pair(field: &str, key: &str, value: &str) -> Result<(), Error> {
    if !(1..=Labels::LONGEST_KEY).contains(&key.chars().count()) || key.contains('=') {
        let shown = text::shortened(key, Labels::LONGEST_KEY);
        let message = format!("{shown:?} is no key of a label: 1 to {} characters without =", Labels::LONGEST_KEY);
        return Err(Error::invalid(field, message).hint("choose another key"));
    }
    check_shown(field, key)?;
    let length = value.chars().count();
    if length > Labels::LONGEST_VALUE {
        let message = format!("the value of {key:?} has {length} characters; {} fit", Labels::LONGEST_VALUE);
        return Err(Error::invalid(field, message).hint("put long texts into files"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Labels::checked("labels", pairs).unwrap_or_default()
    }

    #[test]
    fn changes_set_and_remove_single_labels() {
        let before = labels(&[("customer", "7"), ("environment", "test")]);
        let changes = [("environment".to_owned(), None), ("ticket".to_owned(), Some("A=1".to_owned()))];
        assert_eq!(before.changed("labels", changes), Ok(labels(&[("customer", "7"), ("ticket", "A=1")])));
        assert_eq!(before.changed("labels", [("none".to_owned(), None)]), Ok(before.clone()));
    }

    #[test]
    fn all_wanted_labels_have_to_be_there() {
        let all = labels(&[("customer", "7"), ("environment", "test")]);
        assert!(all.include(&Labels::default()) && all.include(&labels(&[("customer", "7")])) && all.include(&all));
        assert!(!all.include(&labels(&[("customer", "8")])));
        assert!(!all.include(&labels(&[("customer", "7"), ("ticket", "1")])));
    }

    #[test]
    fn labels_beyond_the_bounds_are_refused() {
        let refused = |key: &str, value: &str| {
            let error = Labels::checked("metadata", [(key.to_owned(), value.to_owned())]).err();
            error.is_some_and(|error| error.details["field"] == "metadata")
        };
        assert!(refused("", "x") && refused("a=b", "x") && refused("a\nb", "x"));
        assert!(refused(&"k".repeat(65), "x") && refused("key", &"é".repeat(513)));
        assert!(!refused(&"é".repeat(64), &"é".repeat(512)) && !refused("key", "") && !refused("key", "a\nb"));
        let many = |count: usize| Labels::checked("labels", (0..count).map(|n| (n.to_string(), String::new())));
        assert!(many(16).is_ok() && many(17).is_err());
        // The one that goes makes room for the one that comes.
        let full = many(16).unwrap_or_default();
        assert!(full.changed("labels", [("0".to_owned(), None), ("new".to_owned(), Some(String::new()))]).is_ok());
    }
}
