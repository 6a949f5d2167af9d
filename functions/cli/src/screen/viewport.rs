//! The viewport: the place in a chat, the files that fit a mention, the chats that fit the list.

use super::{
    chat_pane::State,
    draw,
    machine::Screen,
    pick::{Entry, fitting},
    scroll::Window,
    transcript::Item,
};
use crate::mentions::begun;

impl Screen {
    /// Moves the place in the chat by so many lines; negative ones are up.
    pub(super) fn scroll(&mut self, lines: i64) {
        let area = draw::areas(self).body;
        let view = self.view(usize::from(area.width));
        let Some(pane) = self.pane_mut() else { return };
        let window = Window { transcript: &pane.transcript, view, height: usize::from(area.height) };
        let by = usize::try_from(lines.unsigned_abs()).unwrap_or_default();
        pane.place = if lines < 0 { window.up(pane.place, by) } else { window.down(pane.place, by) };
    }

    /// Lines of the chat that are in sight.
    pub(super) fn page(&self) -> i64 {
        i64::from(draw::areas(self).body.height).saturating_sub(1).max(1)
    }

    /// The file that is being mentioned: the place of its `@`, and the letters after it.
    pub(crate) fn mention(&self) -> Option<(usize, &str)> {
        let (begin, query) = begun(self.pane()?.composer.before())?;
        (self.closed != Some(begin)).then_some((begin, query))
    }

    /// The files that fit the mention, the best first.
    pub(crate) fn files(&self) -> Vec<&Entry> {
        let Some((_, query)) = self.mention() else { return Vec::new() };
        fitting(&self.paths, query).into_iter().filter_map(|place| self.paths.get(place)).collect()
    }

    /// The chats that fit what was typed into the list: open ones first, then those of the workspace.
    pub(crate) fn listed(&self, query: &str) -> Vec<Entry> {
        let open = self.panes.iter().filter_map(|pane| {
            let state = match pane.state() {
                State::Idle => "open".to_owned(),
                state => format!("open, {}", draw::word(state)),
            };
            Some(Entry { value: pane.chat.clone()?, label: pane.name().to_owned(), detail: state })
        });
        let mut all: Vec<Entry> = open.collect();
        for chat in self.chats.iter().flatten() {
            if !all.iter().any(|other| other.value == chat.value) {
                all.push(chat.clone());
            }
        }
        fitting(&all, query).into_iter().filter_map(|place| all.get(place).cloned()).collect()
    }

    /// Whether nothing was said in the chat that is shown.
    pub(crate) fn is_blank(&self) -> bool {
        self.pane().is_some_and(|pane| {
            pane.transcript.items.iter().all(|item| matches!(item, Item::Remark { .. }))
                && pane.sent.is_empty()
                && pane.chat.is_none()
        })
    }
}
