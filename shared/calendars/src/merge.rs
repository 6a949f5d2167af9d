//! Which side wins, per group of fields: the one that changed since both were the same. Pure.

use crate::remote::Event;
use domain::Sha256;
use organizer::FieldGroup;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The values of groups that both sides had last, as short digests.
pub type Digests = BTreeMap<FieldGroup, String>;

/// The groups of an event that differ, by the side whose value counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merge {
    /// The calendar elsewhere has the newer value.
    pub from_there: BTreeSet<FieldGroup>,
    /// The file has the newer value.
    pub from_here: BTreeSet<FieldGroup>,
    /// Both changed it: that of the calendar elsewhere counts, since versions of the file keep the other one.
    pub conflicts: BTreeSet<FieldGroup>,
}

/// The digests of an event.
pub fn digests(event: &Event, carries: impl Fn(FieldGroup) -> bool) -> Digests {
    let of = |group: FieldGroup| {
        let text = group.value(&event.entity, &event.item).to_string();
        Sha256::of(text.as_bytes()).to_string().chars().take(12).collect::<String>()
    };
    FieldGroup::ALL.into_iter().filter(|group| carries(*group)).map(|group| (group, of(group))).collect()
}

/// Compares both sides with what they had last; without that, every difference is a conflict.
pub fn merge(base: Option<&Digests>, here: &Digests, there: &Digests) -> Merge {
    let mut merge = Merge::default();
    for (group, value) in there {
        if here.get(group) == Some(value) {
            continue;
        }
        let last = base.and_then(|base| base.get(group));
        if last == here.get(group) && last.is_some() {
            merge.from_there.insert(*group);
        } else if last == Some(value) {
            merge.from_here.insert(*group);
        } else {
            merge.from_there.insert(*group);
            merge.conflicts.insert(*group);
        }
    }
    merge
}

/// The groups of which a side differs from what both had last.
pub fn changed(base: &Digests, now: &Digests) -> BTreeSet<FieldGroup> {
    now.iter().filter(|(group, value)| base.get(group) != Some(*value)).map(|(group, _)| *group).collect()
}

/// The fields of these groups as an update of a file has them: one that the event lacks is taken out.
pub fn fields_of(event: &Event, groups: &BTreeSet<FieldGroup>) -> Map<String, Value> {
    let fields = groups.iter().flat_map(|group| group.fields());
    fields
        .map(|name| {
            let value = event.entity.fields.get(*name).cloned().unwrap_or_else(|| "".into());
            ((*name).to_owned(), value)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: [&str; 3]) -> Digests {
        [FieldGroup::Title, FieldGroup::Times, FieldGroup::Location]
            .into_iter()
            .zip(values.map(str::to_owned))
            .collect()
    }

    #[test]
    fn the_side_that_changed_wins_and_a_change_of_both_is_a_conflict() {
        let merged = merge(Some(&of(["a", "b", "c"])), &of(["A", "b", "X"]), &of(["a", "B", "Y"]));
        assert_eq!(merged.from_here, [FieldGroup::Title].into());
        assert_eq!(merged.from_there, [FieldGroup::Times, FieldGroup::Location].into());
        assert_eq!(merged.conflicts, [FieldGroup::Location].into());
        assert_eq!(merge(Some(&of(["a", "b", "c"])), &of(["x", "y", "z"]), &of(["x", "y", "z"])), Merge::default());
        let without = merge(None, &of(["a", "b", "c"]), &of(["a", "b", "d"]));
        assert_eq!(
            (without.from_there, without.conflicts),
            ([FieldGroup::Location].into(), [FieldGroup::Location].into())
        );
    }
}
