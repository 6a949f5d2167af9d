//! A write as DynamoDB does it: its attributes, and its condition.

use super::{
    Attributes,
    item::{self, ALIVE, BODY, EXPIRES, EXPIRES_MS, IPK, ISK, REV, number},
};
use domain::Timestamp;
use ports::{Expect, Key, Write};
use std::collections::HashMap;

/// One write of a commit.
pub(super) struct Planned {
    /// Its place in the commit.
    pub(super) position: usize,
    pub(super) key: Key,
    pub(super) action: Action,
    /// The condition; the values that it and the action name.
    pub(super) condition: Option<String>,
    pub(super) values: Option<Attributes>,
    /// Whether the caller expects something. If not, a condition that fails says no more than that the plan was wrong.
    pub(super) is_expecting: bool,
}

pub(super) enum Action {
    /// Replaces the whole item: where the new revision is known beforehand.
    Put(Attributes),
    /// Replaces the item in place, one revision on: where only DynamoDB knows which.
    Update(String),
    Delete,
    Check,
}

const EXPIRED: &str = "expires_ms <= :now";

impl Planned {
    /// `write`, at `position`, as of `now`. A put that expects nothing counts on from the item that is there, unless `is_over_expired`:
    /// then it takes the place of an expired one, and begins anew.
    pub(super) fn new(position: usize, write: &Write, now: Timestamp, is_over_expired: bool) -> Self {
        let expect = write.expect();
        let mut values = Attributes::new();
        let (action, condition) = match write {
            Write::Check { .. } => (Action::Check, expectation(expect, &mut values)),
            Write::Delete { .. } => (Action::Delete, expectation(expect, &mut values)),
            Write::Put { key, body, index, expires_at, .. } => {
                let contents = item::contents(key, body, index.as_ref(), *expires_at);
                let whole = |rev: u64| {
                    let mut attributes = item::key(key);
                    attributes.insert(REV.to_owned(), number(rev));
                    attributes.extend(contents.clone());
                    Action::Put(attributes)
                };
                match expect {
                    Expect::Absent => (whole(1), expectation(expect, &mut values)),
                    Expect::Rev(rev) => (whole(rev.saturating_add(1)), expectation(expect, &mut values)),
                    Expect::Any if is_over_expired => (whole(1), Some(EXPIRED.to_owned())),
                    Expect::Any => (update(contents, &mut values), Some(ALIVE.to_owned())),
                    Expect::Present => (update(contents, &mut values), expectation(expect, &mut values)),
                }
            }
        };
        if condition.as_ref().is_some_and(|condition| condition.contains(":now")) {
            values.insert(":now".to_owned(), number(now.as_millis()));
        }
        Self {
            position,
            key: write.key().clone(),
            action,
            condition,
            values: Some(values).filter(|values| !values.is_empty()),
            is_expecting: expect != Expect::Any,
        }
    }

    /// `body` is a word of DynamoDB's own.
    pub(super) fn names(&self) -> Option<HashMap<String, String>> {
        matches!(self.action, Action::Update(_)).then(|| HashMap::from([("#body".to_owned(), BODY.to_owned())]))
    }
}

fn expectation(expect: Expect, values: &mut Attributes) -> Option<String> {
    match expect {
        Expect::Any => None,
        Expect::Absent => Some(format!("attribute_not_exists(pk) OR {EXPIRED}")),
        Expect::Present => Some(format!("attribute_exists(pk) AND {ALIVE}")),
        Expect::Rev(rev) => {
            values.insert(":rev".to_owned(), number(rev));
            Some(format!("rev = :rev AND {ALIVE}"))
        }
    }
}

/// Sets all attributes of a put, removes the others, and counts the revision.
fn update(mut contents: Attributes, values: &mut Attributes) -> Action {
    values.insert(":none".to_owned(), number(0));
    values.insert(":one".to_owned(), number(1));
    let mut set = format!("SET {REV} = if_not_exists({REV}, :none) + :one");
    let mut removed = Vec::new();
    for (name, shown) in [(BODY, "#body"), (IPK, IPK), (ISK, ISK), (EXPIRES, EXPIRES), (EXPIRES_MS, EXPIRES_MS)] {
        match contents.remove(name) {
            Some(value) => {
                set.push_str(&format!(", {shown} = :{name}"));
                values.insert(format!(":{name}"), value);
            }
            None => removed.push(shown),
        }
    }
    if !removed.is_empty() {
        set.push_str(&format!(" REMOVE {}", removed.join(", ")));
    }
    Action::Update(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(write: &Write, is_over_expired: bool) -> Planned {
        Planned::new(0, write, Timestamp::from_millis(5), is_over_expired)
    }

    #[test]
    fn a_put_is_one_whole_item_where_its_revision_is_known() {
        let key = Key::new("p", "s");
        for (expect, rev) in
            [(Expect::Absent, Some(1)), (Expect::Rev(4), Some(5)), (Expect::Present, None), (Expect::Any, None)]
        {
            let planned = plan(&Write::put(key.clone(), "1", expect), false);
            let found = match &planned.action {
                Action::Put(attributes) => attributes.get(REV).cloned(),
                _ => None,
            };
            assert_eq!(found, rev.map(number), "{expect:?}");
            assert!(planned.condition.is_some_and(|condition| condition.contains(":now")), "an expired item is absent");
        }
        assert!(matches!(plan(&Write::put(key, "1", Expect::Any), true).action, Action::Put(_)));
    }

    #[test]
    fn each_value_that_is_sent_is_named_and_each_name_has_its_value() {
        let key = Key::new("p", "s");
        let expects = [Expect::Any, Expect::Absent, Expect::Present, Expect::Rev(3)];
        let writes = expects.into_iter().flat_map(|expect| {
            let put = Write::put(key.clone(), "1", expect);
            let full = put.clone().indexed(Key::new("i", "j")).expiring(Timestamp::from_millis(9));
            [put, full, Write::delete(key.clone(), expect), Write::check(key.clone(), expect)]
        });
        for write in writes {
            for is_over_expired in [false, true] {
                let planned = plan(&write, is_over_expired);
                let update = match &planned.action {
                    Action::Update(update) => update.as_str(),
                    _ => "",
                };
                let expressions = format!("{update} {}", planned.condition.as_deref().unwrap_or_default());
                let separators = |at: char| !(at.is_alphanumeric() || at == ':' || at == '_');
                let mut named: Vec<&str> = expressions.split(separators).filter(|word| word.starts_with(':')).collect();
                named.sort_unstable();
                named.dedup();
                let values = planned.values.unwrap_or_default();
                let mut sent: Vec<&str> = values.keys().map(String::as_str).collect();
                sent.sort_unstable();
                assert_eq!(named, sent, "{write:?}");
            }
        }
    }
}
