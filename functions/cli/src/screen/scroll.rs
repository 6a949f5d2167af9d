//! The part of a chat that is in sight: its end, or lines from a place that stays where it is while the chat grows.

use super::{
    rows::{View, rows},
    transcript::Transcript,
};
use ratatui::text::Line;

/// The first line in sight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ScrollPosition {
    /// As far down as there is something.
    #[default]
    End,
    /// A line of an item; items are counted from the chat's first one, also when that is gone.
    At { item: usize, line: usize },
}

/// The items of a chat, as a view shows them in so many lines.
pub(crate) struct Window<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) view: View,
    pub(crate) height: usize,
}

impl Window<'_> {
    fn count(&self) -> usize {
        self.transcript.items.len()
    }

    fn rows(&self, item: usize) -> Vec<Line<'static>> {
        let items = &self.transcript.items;
        let before = item.checked_sub(1).and_then(|before| items.get(before));
        items.get(item).map(|item| rows(item, before, self.view)).unwrap_or_default()
    }

    /// The place of the first line when the end is in sight.
    fn last_page(&self) -> (usize, usize) {
        let (mut item, mut room) = (self.count(), self.height);
        while room > 0 && item > 0 {
            item -= 1;
            let lines = self.rows(item).len();
            if lines >= room {
                return (item, lines - room);
            }
            room -= lines;
        }
        (item, 0)
    }

    fn begin(&self, place: ScrollPosition) -> (usize, usize) {
        let last = self.last_page();
        match place {
            ScrollPosition::End => last,
            ScrollPosition::At { item, line } => match item.checked_sub(self.transcript.dropped) {
                None => (0, 0),
                Some(item) => (item, line.min(self.rows(item).len().saturating_sub(1))).min(last),
            },
        }
    }

    /// The lines in sight.
    pub(crate) fn visible(&self, place: ScrollPosition) -> Vec<Line<'static>> {
        let (first, skipped) = self.begin(place);
        let mut lines = Vec::new();
        for item in first..self.count() {
            lines.extend(self.rows(item).into_iter().skip(if item == first { skipped } else { 0 }));
            if lines.len() >= self.height {
                break;
            }
        }
        lines.truncate(self.height);
        lines
    }

    /// The place so many lines further up.
    pub(crate) fn up(&self, place: ScrollPosition, lines: usize) -> ScrollPosition {
        let (mut item, mut line) = self.begin(place);
        let mut left = lines;
        while left > line {
            let Some(before) = item.checked_sub(1) else {
                (line, left) = (0, 0);
                break;
            };
            left -= line + 1;
            item = before;
            line = self.rows(item).len().saturating_sub(1);
        }
        self.at(item, line - left.min(line))
    }

    /// The place so many lines further down.
    pub(crate) fn down(&self, place: ScrollPosition, lines: usize) -> ScrollPosition {
        let (mut item, mut line) = self.begin(place);
        line += lines;
        while item < self.count() {
            let length = self.rows(item).len();
            if line < length {
                break;
            }
            line -= length;
            item += 1;
        }
        self.at(item, line)
    }

    fn at(&self, item: usize, line: usize) -> ScrollPosition {
        if (item, line) >= self.last_page() {
            ScrollPosition::End
        } else {
            ScrollPosition::At { item: item + self.transcript.dropped, line }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::transcript::RemarkKind;

    #[test]
    fn a_place_stays_while_the_chat_grows_and_the_end_follows() {
        let mut transcript = Transcript::default();
        let say = |transcript: &mut Transcript, text: &str| transcript.remark(text.to_owned(), RemarkKind::Quiet);
        for number in 0..10 {
            say(&mut transcript, &format!("{number}\nmore"));
        }
        let view = View { width: 20, thoughts: false, details: false };
        let shown = |transcript: &Transcript, place: ScrollPosition| {
            let lines = Window { transcript, view, height: 3 }.visible(place);
            lines.iter().map(|line| line.to_string().trim().to_owned()).collect::<Vec<_>>()
        };
        let moved = |transcript: &Transcript, place: ScrollPosition, by: isize| {
            let window = Window { transcript, view, height: 3 };
            if by < 0 { window.up(place, by.unsigned_abs()) } else { window.down(place, by.unsigned_abs()) }
        };
        assert_eq!(shown(&transcript, ScrollPosition::End), ["more", "9", "more"]);
        let up = moved(&transcript, ScrollPosition::End, -2);
        assert_eq!(shown(&transcript, up), ["more", "8", "more"]);
        say(&mut transcript, "new");
        assert_eq!(shown(&transcript, up), ["more", "8", "more"]);
        assert_eq!(shown(&transcript, ScrollPosition::End), ["9", "more", "new"]);
        assert_eq!(moved(&transcript, up, 3), ScrollPosition::End);
        assert_eq!(moved(&transcript, up, 2), ScrollPosition::At { item: 8, line: 1 });
        assert_eq!(shown(&transcript, moved(&transcript, up, -100)), ["0", "more", "1"]);
        assert_eq!(moved(&transcript, moved(&transcript, up, -100), 1), ScrollPosition::At { item: 0, line: 1 });
    }
}
