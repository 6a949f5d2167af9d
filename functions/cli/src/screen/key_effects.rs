//! The effects of keys: those that mean the same everywhere first, then the list that is open, the form, and the draft.

use super::{
    commands::HELP,
    form::KeyResult,
    keys::Key,
    machine::{Action, Overlay, Screen},
    scroll::ScrollPosition,
};
use crate::mentions::mention;

/// Lines that a turn of the wheel moves.
const WHEEL: i64 = 3;

impl Screen {
    /// Takes a key.
    pub(super) fn press(&mut self, key: &Key) -> Vec<Action> {
        self.notice = None;
        let leaving = std::mem::take(&mut self.leaving);
        if *key == Key::Ctrl('c') {
            return self.interrupt(leaving);
        }
        if let Some(overlay) = self.overlay.take() {
            return self.over(overlay, key);
        }
        if let Some(actions) = self.anywhere(key) {
            return actions;
        }
        if let Some(actions) = self.pick_file(key) {
            return actions;
        }
        if let Some(actions) = self.answer(key) {
            return actions;
        }
        self.write(key)
    }

    /// Ctrl-C: closes what is open, stops the turn or clears the draft; once more leaves.
    fn interrupt(&mut self, leaving: bool) -> Vec<Action> {
        if leaving {
            return vec![Action::Leave];
        }
        self.leaving = true;
        let closed = self.overlay.take().is_some();
        let actions = if closed { Vec::new() } else { self.stop() };
        let cleared = match self.pane_mut() {
            Some(pane) if !closed && actions.is_empty() && !pane.composer.is_blank() => Some(pane.composer.take()),
            _ => None,
        };
        // The arrow key brings it back.
        self.history.extend(cleared);
        self.notice = Some("Ctrl-C again leaves".into());
        actions
    }

    /// Keys that mean the same everywhere.
    fn anywhere(&mut self, key: &Key) -> Option<Vec<Action>> {
        match key {
            Key::Ctrl('z') => return Some(vec![Action::Suspend]),
            Key::Ctrl('l') => return Some(vec![Action::Redraw]),
            Key::Ctrl('s') => return Some(self.list_chats()),
            Key::Ctrl('n') => return Some(self.begin()),
            Key::Ctrl('x') => return Some(self.cycle()),
            Key::Ctrl('t') => self.thoughts = !self.thoughts,
            Key::Ctrl('o') => self.details = !self.details,
            Key::Ctrl('g') => {
                if let Some(pane) = self.pane_mut() {
                    pane.plan = !pane.plan;
                }
            }
            Key::PageUp => self.scroll(-self.page()),
            Key::PageDown => self.scroll(self.page()),
            Key::WheelUp => self.scroll(-WHEEL),
            Key::WheelDown => self.scroll(WHEEL),
            Key::Ctrl('d') if self.pane().is_some_and(|pane| pane.composer.text().is_empty()) => {
                return Some(vec![Action::Leave]);
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    pub(super) fn list_chats(&mut self) -> Vec<Action> {
        self.overlay = Some(Overlay::Chats { query: String::new(), at: 0 });
        vec![Action::ListChats]
    }

    /// Keys of the list or of the help that lies over the chat.
    fn over(&mut self, overlay: Overlay, key: &Key) -> Vec<Action> {
        let (mut query, mut at) = match (overlay, key) {
            (Overlay::Chats { query, at }, _) => (query, at),
            (Overlay::Help(line), Key::Up | Key::PageUp | Key::WheelUp) => {
                self.overlay = Some(Overlay::Help(line.saturating_sub(1)));
                return Vec::new();
            }
            (Overlay::Help(line), Key::Down | Key::PageDown | Key::WheelDown) => {
                self.overlay = Some(Overlay::Help((line + 1).min(HELP.len() - 1)));
                return Vec::new();
            }
            // Any other key closes it.
            (Overlay::Help(_), _) => return Vec::new(),
        };
        let fit = self.listed(&query);
        match key {
            Key::Esc | Key::Ctrl('s') => return Vec::new(),
            Key::Ctrl('n') => return self.begin(),
            Key::Enter => {
                return fit.get(at).map(|chat| self.open(&chat.value, &chat.label)).unwrap_or_default();
            }
            Key::Up => at = at.saturating_sub(1),
            Key::Down => at = (at + 1).min(fit.len().saturating_sub(1)),
            Key::Backspace => {
                query.pop();
                at = 0;
            }
            Key::Char(c) => {
                query.push(*c);
                at = 0;
            }
            _ => {}
        }
        self.overlay = Some(Overlay::Chats { query, at });
        Vec::new()
    }

    /// Keys of the picker of files, while a file is mentioned.
    fn pick_file(&mut self, key: &Key) -> Option<Vec<Action>> {
        let (begin, _) = self.mention()?;
        let files = self.files();
        let (last, picked) = (files.len().checked_sub(1)?, self.picked.min(files.len() - 1));
        match key {
            Key::Up => self.picked = picked.checked_sub(1).unwrap_or(last),
            Key::Down => self.picked = if picked < last { picked + 1 } else { 0 },
            Key::Esc => self.closed = Some(begin),
            Key::Tab | Key::Enter => {
                let path = files.get(picked).map(|file| format!("{} ", mention(&file.value)))?;
                self.picked = 0;
                self.pane_mut()?.composer.replace_from(begin, &path);
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    /// Keys of the form, while it has them.
    fn answer(&mut self, key: &Key) -> Option<Vec<Action>> {
        let pane = self.pane_mut()?;
        let chat = pane.chat.clone()?;
        let (ask, _) = pane.transcript.asks.front_mut()?;
        if matches!(key, Key::Tab | Key::BackTab) {
            pane.in_form = !pane.in_form;
            return Some(Vec::new());
        }
        if !pane.in_form {
            return None;
        }
        let (key_of_pane, id) = (pane.key, ask.id().to_owned());
        match pane.form.take(ask, key) {
            KeyResult::Key => Some(Vec::new()),
            KeyResult::Reply(reply) => {
                Some(vec![Action::Reply { key: key_of_pane, chat, ask: id, path: reply.path, body: reply.body }])
            }
            KeyResult::Nothing if *key == Key::Esc => None,
            KeyResult::Nothing => Some(Vec::new()),
        }
    }

    /// Keys of the draft.
    fn write(&mut self, key: &Key) -> Vec<Action> {
        let mentioned = self.mention().map(|(begin, _)| begin);
        let blank = self.pane().is_some_and(|pane| pane.composer.text().is_empty());
        let history = std::mem::take(&mut self.history);
        let mut actions = Vec::new();
        match (key, self.pane_mut().map(|pane| (&mut pane.composer, &mut pane.place))) {
            (_, None) => {}
            (Key::Char('?'), _) if blank => self.overlay = Some(Overlay::Help(0)),
            (Key::Char(c), Some((composer, _))) => composer.insert(c.encode_utf8(&mut [0; 4])),
            (Key::Paste(text), Some((composer, _))) => composer.insert(text),
            (Key::NewLine, Some((composer, _))) => composer.insert("\n"),
            (Key::Backspace, Some((composer, _))) => composer.backspace(),
            (Key::Delete | Key::Ctrl('d'), Some((composer, _))) => composer.delete(),
            (Key::Left | Key::Ctrl('b'), Some((composer, _))) => composer.left(),
            (Key::Right | Key::Ctrl('f'), Some((composer, _))) => composer.right(),
            (Key::WordLeft, Some((composer, _))) => composer.word_left(),
            (Key::WordRight, Some((composer, _))) => composer.word_right(),
            (Key::Home, Some((_, place))) if blank => *place = ScrollPosition::At { item: 0, line: 0 },
            (Key::End, Some((_, place))) if blank => *place = ScrollPosition::End,
            (Key::Home | Key::Ctrl('a'), Some((composer, _))) => composer.home(),
            (Key::End | Key::Ctrl('e'), Some((composer, _))) => composer.end(),
            (Key::Up, Some((composer, _))) => composer.up(&history),
            (Key::Down, Some((composer, _))) => composer.down(&history),
            (Key::Ctrl('w'), Some((composer, _))) => composer.cut_word(),
            (Key::Ctrl('u'), Some((composer, _))) => composer.cut_to_begin(),
            (Key::Ctrl('k'), Some((composer, _))) => composer.cut_to_end(),
            (Key::Ctrl('y'), Some((composer, _))) => composer.paste_cut(),
            (Key::Esc, _) => actions = self.stop(),
            (Key::Enter, Some((composer, _))) if composer.text().ends_with('\\') => {
                // As in a shell: the line goes on.
                composer.end();
                composer.backspace();
                composer.insert("\n");
            }
            (Key::Enter, _) => {
                self.history = history;
                return self.enter();
            }
            _ => {}
        }
        self.history = history;
        let now = self.mention().map(|(begin, _)| begin);
        if matches!(key, Key::Char(_) | Key::Backspace | Key::Paste(_)) {
            self.picked = 0;
        }
        if now.is_some() && now != mentioned {
            actions.push(Action::ListPaths);
        }
        // Another mention opens the picker again.
        if self.closed.is_some() && self.pane().is_some_and(|pane| !pane.composer.before().contains('@')) {
            self.closed = None;
        }
        actions
    }

    fn enter(&mut self) -> Vec<Action> {
        let Some(pane) = self.pane_mut() else { return Vec::new() };
        if pane.composer.is_blank() {
            return Vec::new();
        }
        if pane.beginning {
            self.notice = Some("the first message is on its way".into());
            return Vec::new();
        }
        self.closed = None;
        let Some(text) = self.pane_mut().map(|pane| pane.composer.take()) else { return Vec::new() };
        match text.trim_start().strip_prefix('/') {
            Some(rest) if rest.starts_with('/') => self.send(rest.to_owned()),
            Some(command) => self.command(command.trim()),
            None => self.send(text),
        }
    }
}
