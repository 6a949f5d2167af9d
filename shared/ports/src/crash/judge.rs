//! The judgement: from the marks that deaths of the process left to what is refused. Pure.

use super::Id;
use domain::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An input is refused after this many deaths while it computed alone. So an operator who kills the process three times in a
/// row, at any moments, has no innocent input refused.
pub const ENOUGH: u32 = 3;
/// The lifetime of the record of an input.
pub const KEPT: Duration = Duration::from_secs(24 * 3600);
/// How many inputs are known at most: as many as are computed at once.
pub const MOST: usize = 1024;

/// The computation of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The input.
    pub id: Id,
    /// For people: a route, or a file.
    pub place: String,
    /// Whether nothing else computed.
    pub alone: bool,
}

/// The record of a suspect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The input.
    pub id: Id,
    /// For people.
    pub place: String,
    /// The number of deaths of the process while it was computed.
    pub deaths: u32,
    /// The number of these in which it was computed alone.
    pub alone: u32,
    /// When the last one was found.
    pub at: Timestamp,
}

/// The judgement on an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputVerdict {
    /// Nothing is known.
    Free,
    /// The process died in it: it computes alone.
    Suspect,
    /// The process died in it alone, often enough: it is not tried again.
    Refused,
}

/// The inputs that the process died in. An input that came to its end is none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspects {
    /// The version of the program that found them.
    pub version: String,
    /// The suspects.
    pub cases: Vec<Case>,
}

impl Suspects {
    /// Those that still count for this version. Another version may have fixed the fault of the one before, so it tries again; alone.
    #[must_use]
    pub fn for_version(mut self, version: &str, now: Timestamp) -> Self {
        self.cases.retain(|case| now.is_within(KEPT, case.at));
        if self.version != version {
            self.cases.iter_mut().for_each(|case| case.alone = 0);
        }
        version.clone_into(&mut self.version);
        self
    }

    /// A process died and left these marks.
    pub fn died(&mut self, marks: &[Mark], now: Timestamp) {
        for mark in marks {
            let case = match self.cases.iter().position(|case| case.id == mark.id) {
                Some(known) => self.cases.remove(known),
                None => Case { id: mark.id, place: mark.place.clone(), deaths: 0, alone: 0, at: now },
            };
            let alone = case.alone + u32::from(mark.alone);
            self.cases.push(Case { deaths: case.deaths + 1, alone, at: now, ..case });
        }
        // Those with evidence stay longest, and of the others the newest.
        let excess = self.cases.len().saturating_sub(MOST);
        let mut by_weight: Vec<_> = self.cases.iter().map(|case| (case.alone, case.at, case.id)).collect();
        by_weight.sort_unstable();
        let gone: Vec<Id> = by_weight.into_iter().take(excess).map(|(_, _, id)| id).collect();
        self.cases.retain(|case| !gone.contains(&case.id));
    }

    /// The standing of an input.
    pub fn standing(&self, id: Id, now: Timestamp) -> InputVerdict {
        match self.cases.iter().find(|case| case.id == id) {
            Some(case) if !now.is_within(KEPT, case.at) => InputVerdict::Free,
            Some(case) if case.alone >= ENOUGH => InputVerdict::Refused,
            Some(_) => InputVerdict::Suspect,
            None => InputVerdict::Free,
        }
    }

    /// An input came to its end. Returns its record, if it had one.
    pub fn survived(&mut self, id: Id) -> Option<Case> {
        let known = self.cases.iter().position(|case| case.id == id)?;
        Some(self.cases.remove(known))
    }

    /// Those that are refused.
    pub fn refused(&self, now: Timestamp) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(move |case| self.standing(case.id, now) == InputVerdict::Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> Id {
        Id::of(&[&[n]])
    }

    fn mark(n: u8, alone: bool) -> Mark {
        Mark { id: id(n), place: format!("input {n}"), alone }
    }

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + hours * 3_600_000)
    }

    #[test]
    fn deaths_beside_others_make_suspects_and_only_deaths_alone_refuse() {
        let crowd: Vec<Mark> = (0..200).map(|n| mark(n, false)).collect();
        let mut known = Suspects::default();
        for _ in 0..30 {
            known.died(&crowd, at(0));
        }
        let all = |known: &Suspects, standing| (0..200).all(|n| known.standing(id(n), at(1)) == standing);
        assert!(all(&known, InputVerdict::Suspect), "a process that is killed again and again refuses nothing");
        (0..200).for_each(|n| assert!(known.survived(id(n)).is_some()));
        assert!(all(&known, InputVerdict::Free) && known.survived(id(0)).is_none());

        for (deaths, standing) in [
            (vec![mark(1, true)], InputVerdict::Suspect),
            (vec![mark(1, false), mark(1, true), mark(1, true)], InputVerdict::Suspect),
            (vec![mark(1, true), mark(1, false), mark(1, true), mark(1, true)], InputVerdict::Refused),
        ] {
            let mut known = Suspects::default();
            deaths.iter().for_each(|death| known.died(std::slice::from_ref(death), at(0)));
            assert_eq!(known.standing(id(1), at(1)), standing, "{deaths:?}");
            assert_eq!(known.standing(id(2), at(1)), InputVerdict::Free);
            assert_eq!(known.standing(id(1), at(24)), InputVerdict::Free, "after a day it is tried again");
            assert_eq!(known.standing(id(1), at(-24)), InputVerdict::Free, "the clock was set back");
        }
    }

    #[test]
    fn another_version_tries_again_what_killed_the_one_before() {
        let mut known = Suspects::default().for_version("1", at(0));
        (0..ENOUGH).for_each(|_| known.died(&[mark(1, true)], at(0)));
        assert_eq!(known.refused(at(1)).count(), 1);
        let same = known.clone().for_version("1", at(1));
        assert_eq!(same.standing(id(1), at(1)), InputVerdict::Refused);
        let next = known.clone().for_version("2", at(1));
        assert_eq!(next.standing(id(1), at(1)), InputVerdict::Suspect);
        assert_eq!(known.for_version("1", at(24)).cases, []);
    }

    #[test]
    fn there_is_an_end_of_them_and_those_with_evidence_stay() {
        let mut known = Suspects::default();
        let many =
            |from: u32| (from..from + MOST as u32).map(|n| Mark { id: Id::of(&[&n.to_le_bytes()]), ..mark(0, false) });
        known.died(&[mark(1, true)], at(0));
        known.died(&many(0).collect::<Vec<_>>(), at(1));
        known.died(&many(10_000).collect::<Vec<_>>(), at(2));
        assert_eq!(known.cases.len(), MOST);
        assert_eq!(known.standing(id(1), at(2)), InputVerdict::Suspect);
        assert_eq!(known.cases.iter().filter(|case| case.at == at(2)).count(), MOST - 1);
    }

    #[test]
    fn suspects_are_read_as_they_were_written() {
        let mut known = Suspects::default().for_version("1", at(0));
        known.died(&[mark(1, true)], at(0));
        let text = serde_json::to_string(&known).unwrap_or_default();
        assert_eq!(serde_json::from_str::<Suspects>(&text).ok(), Some(known), "{text}");
    }
}
