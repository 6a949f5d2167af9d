//! The plan for one object, made of the versions that both sides had last and have now. Pure.

use crate::{
    merge::{Digests, changed, merge},
    state::KnownObject,
};
use organizer::FieldGroup;
use std::collections::{BTreeMap, BTreeSet};

/// The values of the events of an object on one side, by occurrence.
pub type Side = BTreeMap<String, Digests>;

/// An object in the calendar elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub enum RemoteObject {
    /// It is as it was, or was never there.
    Same,
    /// It is new, or was changed.
    Changed(Side),
    /// It was deleted.
    Gone,
}

/// A write to the calendar elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// The object is made with these events.
    Create(Vec<String>),
    /// These events of it change in these groups; none for one that is taken out.
    Update(BTreeMap<String, Option<BTreeSet<FieldGroup>>>),
    /// It is deleted.
    Delete,
}

/// A change of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum FileChange {
    /// It is made.
    Make,
    /// It takes these groups over.
    Take(BTreeSet<FieldGroup>),
    /// It goes to the trash.
    Remove,
}

/// The action that an object needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the calendar elsewhere.
    pub write: Option<Write>,
    /// With the files of its events, by occurrence.
    pub files: BTreeMap<String, FileChange>,
    /// Changes of both sides that met, by occurrence, for people.
    pub conflicts: Vec<(String, String)>,
    /// The values that both sides have afterwards.
    pub values: Side,
}

/// The plan for an object. A change of both sides loses nothing: that of the calendar elsewhere counts, since the versions of the file keep the other
/// one, and a change wins over a deletion.
pub fn plan(known: Option<&KnownObject>, here: &Side, there: &RemoteObject, takes_new: bool) -> Plan {
    let last: Side =
        known.into_iter().flat_map(|known| &known.events).map(|(at, one)| (at.clone(), one.values.clone())).collect();
    // The event itself, before its moved occurrences.
    let is_removed = last.keys().next().is_some_and(|main| !here.contains_key(main));
    match there {
        RemoteObject::Gone => gone(&last, here),
        RemoteObject::Same if last.is_empty() => match takes_new {
            true => Plan {
                write: Some(Write::Create(here.keys().cloned().collect())),
                values: here.clone(),
                ..Plan::default()
            },
            false => Plan::default(),
        },
        RemoteObject::Same if is_removed => removed(here),
        RemoteObject::Same => both(&last, here, &last),
        RemoteObject::Changed(there) if is_removed && *there == last => removed(here),
        RemoteObject::Changed(there) => {
            let mut plan = both(&last, here, there);
            if is_removed && last.contains_key("") {
                plan.conflicts
                    .push((String::new(), "it was deleted here and changed elsewhere: it is here again".into()));
            }
            plan
        }
    }
}

/// It was deleted elsewhere.
fn gone(last: &Side, here: &Side) -> Plan {
    if here.iter().all(|(at, values)| last.get(at) == Some(values)) {
        let files = here.keys().map(|at| (at.clone(), FileChange::Remove)).collect();
        return Plan { files, ..Plan::default() };
    }
    let first = here.keys().next().cloned().unwrap_or_default();
    Plan {
        write: Some(Write::Create(here.keys().cloned().collect())),
        conflicts: vec![(first, "it was deleted elsewhere and changed here: it stays, and is made there again".into())],
        values: here.clone(),
        ..Plan::default()
    }
}

/// It was deleted here. Moved occurrences go with it.
fn removed(here: &Side) -> Plan {
    let files = here.keys().map(|at| (at.clone(), FileChange::Remove)).collect();
    Plan { write: Some(Write::Delete), files, ..Plan::default() }
}

/// Its events are compared one by one.
fn both(last: &Side, here: &Side, there: &Side) -> Plan {
    let (mut plan, mut parts) = (Plan::default(), BTreeMap::new());
    let all: BTreeSet<&String> = last.keys().chain(here.keys()).chain(there.keys()).collect();
    for at in all {
        let at = at.clone();
        match (last.get(&at), here.get(&at), there.get(&at)) {
            (last, Some(here), Some(there)) => {
                let merged = merge(last, here, there);
                let mut values = here.clone();
                for group in &merged.from_there {
                    values.extend(there.get(group).map(|value| (*group, value.clone())));
                }
                if !merged.conflicts.is_empty() {
                    let names: Vec<_> = merged.conflicts.iter().map(|group| group.name()).collect();
                    let what = format!("{} changed on both sides: those of the other calendar count", names.join(", "));
                    plan.conflicts.push((at.clone(), what));
                }
                if !merged.from_there.is_empty() {
                    plan.files.insert(at.clone(), FileChange::Take(merged.from_there));
                }
                if !merged.from_here.is_empty() {
                    parts.insert(at.clone(), Some(merged.from_here));
                }
                plan.values.insert(at, values);
            }
            (Some(last), Some(here), None) if last == here => _ = plan.files.insert(at, FileChange::Remove),
            (last, Some(here), None) => {
                if let Some(last) = last {
                    let names: Vec<_> = changed(last, here).into_iter().map(FieldGroup::name).collect();
                    let what = format!("it was taken out elsewhere, and {} changed here: it stays", names.join(", "));
                    plan.conflicts.push((at.clone(), what));
                }
                parts.insert(at.clone(), Some(here.keys().copied().collect()));
                plan.values.insert(at, here.clone());
            }
            (Some(last), None, Some(there)) if last == there && !at.is_empty() => _ = parts.insert(at, None),
            (last, None, Some(there)) => {
                if last.is_some() && !at.is_empty() {
                    plan.conflicts
                        .push((at.clone(), "it was deleted here and changed elsewhere: it is here again".into()));
                }
                plan.files.insert(at.clone(), FileChange::Make);
                plan.values.insert(at, there.clone());
            }
            (_, None, None) => {}
        }
    }
    plan.write = (!parts.is_empty()).then_some(Write::Update(parts));
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::KnownEvent;
    use domain::FileId;

    fn digests(title: &str, times: &str) -> Digests {
        [(FieldGroup::Title, title.to_owned()), (FieldGroup::Times, times.to_owned())].into()
    }

    fn side(events: &[(&str, &str, &str)]) -> Side {
        events.iter().map(|(at, title, times)| ((*at).to_owned(), digests(title, times))).collect()
    }

    fn known(events: &[(&str, &str, &str)]) -> KnownObject {
        let file = FileId(uuid::Uuid::nil());
        let of = |(at, values): (String, Digests)| (at, KnownEvent { file, sha256: None, values });
        KnownObject { etag: "1".into(), uid: "u".into(), events: side(events).into_iter().map(of).collect() }
    }

    const ONE: &[(&str, &str, &str)] = &[("", "a", "t")];

    #[test]
    fn nothing_changed_is_nothing_to_do() {
        let plan = plan(Some(&known(ONE)), &side(ONE), &RemoteObject::Same, true);
        assert_eq!((plan.write, plan.files.len(), plan.conflicts.len()), (None, 0, 0));
    }

    #[test]
    fn a_new_event_goes_to_the_other_side() {
        assert_eq!(plan(None, &side(ONE), &RemoteObject::Same, true).write, Some(Write::Create(vec![String::new()])));
        assert_eq!(plan(None, &side(ONE), &RemoteObject::Same, false), Plan::default());
        let from_there = plan(None, &Side::new(), &RemoteObject::Changed(side(ONE)), true);
        assert_eq!((from_there.write, from_there.files), (None, [(String::new(), FileChange::Make)].into()));
    }

    #[test]
    fn a_deletion_goes_to_the_other_side_unless_that_changed() {
        let here = plan(Some(&known(ONE)), &Side::new(), &RemoteObject::Same, true);
        assert_eq!((here.write, here.files.len()), (Some(Write::Delete), 0));
        let there = plan(Some(&known(ONE)), &side(ONE), &RemoteObject::Gone, true);
        assert_eq!((there.write, there.files), (None, [(String::new(), FileChange::Remove)].into()));

        let kept = plan(Some(&known(ONE)), &side(&[("", "A", "t")]), &RemoteObject::Gone, true);
        assert_eq!((kept.write, kept.conflicts.len()), (Some(Write::Create(vec![String::new()])), 1));
        let again = plan(Some(&known(ONE)), &Side::new(), &RemoteObject::Changed(side(&[("", "A", "t")])), true);
        assert_eq!((again.write, again.files), (None, [(String::new(), FileChange::Make)].into()));
        assert_eq!(again.conflicts.len(), 1);
        // A server that tells an unchanged object again says nothing new.
        assert_eq!(
            plan(Some(&known(ONE)), &Side::new(), &RemoteObject::Changed(side(ONE)), true).write,
            Some(Write::Delete)
        );
    }

    #[test]
    fn changes_of_different_groups_meet_and_of_the_same_are_told() {
        let merged =
            plan(Some(&known(ONE)), &side(&[("", "A", "t")]), &RemoteObject::Changed(side(&[("", "a", "T")])), true);
        assert_eq!(merged.write, Some(Write::Update([(String::new(), Some([FieldGroup::Title].into()))].into())));
        assert_eq!(merged.files, [(String::new(), FileChange::Take([FieldGroup::Times].into()))].into());
        assert_eq!((merged.values, merged.conflicts.len()), (side(&[("", "A", "T")]), 0));
        let conflict =
            plan(Some(&known(ONE)), &side(&[("", "A", "t")]), &RemoteObject::Changed(side(&[("", "B", "t")])), true);
        assert!(conflict.conflicts[0].1.contains("title"), "{conflict:?}");
        assert_eq!((conflict.write, conflict.values), (None, side(&[("", "B", "t")])));
    }

    #[test]
    fn moved_occurrences_come_and_go_on_both_sides() {
        let two: &[_] = &[("", "a", "t"), ("2026", "a", "u")];
        let added = plan(Some(&known(ONE)), &side(two), &RemoteObject::Same, true);
        let Some(Write::Update(parts)) = added.write else { panic!() };
        assert_eq!(parts.get("2026"), Some(&Some([FieldGroup::Title, FieldGroup::Times].into())));
        let taken = plan(Some(&known(two)), &side(ONE), &RemoteObject::Same, true);
        assert_eq!(taken.write, Some(Write::Update([("2026".to_owned(), None)].into())));
        let there = plan(Some(&known(two)), &side(two), &RemoteObject::Changed(side(ONE)), true);
        assert_eq!(there.files, [("2026".to_owned(), FileChange::Remove)].into());
        // The event itself goes with all of them.
        let all = plan(Some(&known(two)), &side(&two[1..]), &RemoteObject::Same, true);
        assert_eq!((all.write, all.files.len()), (Some(Write::Delete), 1));
    }

    #[test]
    fn after_every_plan_both_sides_have_the_same_values_and_nothing_that_changed_is_gone() {
        let states = |main: &[Option<&'static str>]| -> Vec<Option<Side>> {
            main.iter().map(|title| title.map(|title| side(&[("", title, "t")]))).collect()
        };
        for here in states(&[None, Some("a"), Some("A")]).into_iter().map(Option::unwrap_or_default) {
            for there in states(&[None, Some("a"), Some("B")]) {
                let given = there.clone().map_or(RemoteObject::Gone, RemoteObject::Changed);
                let plan = plan(Some(&known(ONE)), &here, &given, true);
                let (mut after_here, mut after_there) = (here.clone(), there.clone().unwrap_or_default());
                for (at, change) in &plan.files {
                    match change {
                        FileChange::Remove => _ = after_here.remove(at),
                        FileChange::Make | FileChange::Take(_) => {
                            after_here.insert(at.clone(), plan.values[at].clone());
                        }
                    }
                }
                match &plan.write {
                    None => {}
                    Some(Write::Delete) => after_there.clear(),
                    Some(Write::Create(_) | Write::Update(_)) => after_there = plan.values.clone(),
                }
                assert_eq!(after_here, after_there, "{here:?} {there:?} {plan:?}");
                let has_news = here.values().chain(there.iter().flat_map(|side| side.values()));
                let is_new = |values: &Digests| values[&FieldGroup::Title] != "a";
                assert!(!has_news.into_iter().any(is_new) || !after_here.is_empty(), "{here:?} {there:?}");
            }
        }
    }
}
