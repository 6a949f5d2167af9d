//! The place of a sweep in an index of due items.

use domain::Timestamp;

/// The place from which a step goes through an index of due items.
///
/// A cursor is good for one range alone, and the table keeps it between the steps, also for a later sweep. So the place has the end of its range, and
/// each step of a round asks for the items before the same time.
#[derive(Debug, PartialEq)]
pub(super) struct DuePlace {
    /// The shard of the index; 0 where it has none.
    pub shard: u8,
    /// The range has the items before this time.
    pub before: Timestamp,
    /// The cursor in this range; none at its beginning.
    pub cursor: Option<String>,
}

impl DuePlace {
    /// The place that the last step has left. Without a cursor, the items before `due` are due. A place of an earlier version has no time, so its shard
    /// begins anew.
    pub fn read(from: Option<&str>, due: Timestamp) -> Self {
        let from = from.unwrap_or_default();
        let (shard, rest) = from.split_once(' ').unwrap_or((from, ""));
        let (before, cursor) = rest.split_once(' ').unwrap_or_default();
        let kept: Option<Timestamp> = before.parse().ok().filter(|_| !cursor.is_empty());
        Self {
            shard: shard.parse().unwrap_or(0),
            before: kept.unwrap_or(due),
            cursor: kept.is_some().then(|| cursor.to_owned()),
        }
    }

    /// The place behind a step that ended at this cursor, as [`Self::read`] takes it; none after the last one of `shards`.
    pub fn next(&self, cursor: Option<String>, shards: u8) -> Option<String> {
        let following = self.shard.saturating_add(1);
        match cursor {
            Some(cursor) => Some(format!("{} {} {cursor}", self.shard, self.before)),
            None => (following < shards).then(|| following.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_the_end_of_its_range_and_one_of_an_earlier_version_begins_its_shard_anew() {
        let [due, later] = [1_000, 2_000].map(Timestamp::from_millis);
        let place = |shard, before, cursor: Option<&str>| DuePlace { shard, before, cursor: cursor.map(str::to_owned) };
        let first = DuePlace::read(None, due);
        assert_eq!(first, place(0, due, None));
        let next = first.next(Some("a b".to_owned()), 2);
        assert_eq!(DuePlace::read(next.as_deref(), later), place(0, due, Some("a b")));
        let next = first.next(None, 2);
        assert_eq!(DuePlace::read(next.as_deref(), later), place(1, later, None));
        assert_eq!(place(1, due, None).next(None, 2), None);
        for (earlier, shard) in [("3", 3), ("3 ", 3), ("3 00ff", 3), ("00ff00ff", 0), ("[\"a\", 1] b", 0)] {
            assert_eq!(DuePlace::read(Some(earlier), later), place(shard, later, None), "{earlier}");
        }
    }
}
