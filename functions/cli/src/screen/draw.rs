//! The screen in lines. From the top: whose chat it is and its state; the chat; what matters now (a banner, the plan, messages that wait,
//! a form or files to pick); the draft; and a line of keys.

use super::{
    chat_pane::{ChatPane, State},
    machine::{Overlay, Screen},
    panel,
    rows::{ASK, BAD, BOLD, DIM, GOOD, WAIT},
    scroll::Window,
};
use crate::wrap::cut;
use ratatui::{
    Frame,
    layout::{Position, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

/// From this many lines on there is room for a rule below the head.
const TALL: u16 = 16;
/// From this many columns on there is room for the names of program and workspace.
const WIDE: u16 = 60;

/// The places on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Areas {
    pub(crate) head: Rect,
    /// Of the open chats; no line when one is open.
    pub(crate) tabs: Rect,
    pub(crate) body: Rect,
    pub(crate) panel: Rect,
    /// The most lines that the panel may have.
    most: u16,
    pub(crate) draft: Rect,
    pub(crate) keys: Rect,
}

/// Divides the screen.
pub(crate) fn areas(screen: &Screen) -> Areas {
    let (width, height) = screen.size;
    let tabs = u16::from(screen.panes.len() > 1 && height >= 10);
    let rule = u16::from(height >= TALL);
    let draft = draft_lines(screen, width).min((height / 4).max(1)) + u16::from(height >= 10);
    let above = (1 + tabs + rule).min(height);
    let left = height.saturating_sub(above + draft + 1);
    // Some lines of the chat stay in sight, wherever there is room for them.
    let most = left.saturating_sub(if height >= TALL { 4 } else { 1 });
    let panel = u16::try_from(panel::lines(screen, usize::from(width), usize::from(most)).0.len())
        .unwrap_or(u16::MAX)
        .min(most);
    let body = left - panel;
    let area = |y: u16, lines: u16| Rect::new(0, y, width, lines.min(height.saturating_sub(y)));
    let margin = u16::from(width > 30);
    let body_area = area(above, body);
    Areas {
        head: area(0, 1),
        tabs: area(1, tabs),
        body: Rect { x: margin, width: width.saturating_sub(2 * margin), ..body_area },
        panel: area(above + body, panel),
        most,
        draft: area(above + body + panel, draft),
        keys: area(height.saturating_sub(1), 1),
    }
}

fn draft_lines(screen: &Screen, width: u16) -> u16 {
    let lines = screen.pane().map_or(1, |pane| pane.composer.lay(usize::from(width.saturating_sub(3))).lines.len());
    u16::try_from(lines).unwrap_or(u16::MAX).min(8)
}

/// Draws the screen.
pub(crate) fn draw(screen: &Screen, frame: &mut Frame<'_>) {
    let areas = areas(screen);
    let Some(pane) = screen.pane() else { return };
    head(screen, pane, areas, frame);
    let body = Rect { height: areas.body.height + areas.panel.height + areas.draft.height, ..areas.body };
    match &screen.overlay {
        Some(overlay) => {
            let (lines, at) = panel::overlay(screen, overlay, usize::from(body.width), usize::from(body.height));
            put(&lines, body, frame);
            if let Some((line, column)) = at {
                cursor(body, line, column, frame);
            }
        }
        None => {
            let view = screen.view(usize::from(areas.body.width));
            let window = Window { transcript: &pane.transcript, view, height: usize::from(areas.body.height) };
            let mut lines =
                if screen.is_blank() { panel::welcome(screen, usize::from(areas.body.width)) } else { Vec::new() };
            lines.extend(window.visible(pane.place));
            put(&lines, areas.body, frame);
            let (lines, at) = panel::lines(screen, usize::from(areas.panel.width), usize::from(areas.most));
            put(&lines, areas.panel, frame);
            draft(pane, areas.draft, frame);
            if let (Some((line, column)), true) = (at, pane.in_form) {
                cursor(areas.panel, line, column, frame);
            }
        }
    }
    keys(screen, pane, areas.keys, frame);
    if !screen.colour {
        for cell in &mut frame.buffer_mut().content {
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
    }
}

fn put(lines: &[Line<'_>], area: Rect, frame: &mut Frame<'_>) {
    for (y, line) in (area.top()..area.bottom()).zip(lines) {
        frame.buffer_mut().set_line(area.x, y, line, area.width);
    }
}

fn cursor(area: Rect, line: usize, column: usize, frame: &mut Frame<'_>) {
    let (x, y) = (u16::try_from(column).unwrap_or(u16::MAX), u16::try_from(line).unwrap_or(u16::MAX));
    if x < area.width && y < area.height {
        frame.set_cursor_position(Position::new(area.x + x, area.y + y));
    }
}

fn rule(area: Rect, y: u16, frame: &mut Frame<'_>) {
    let line = Line::styled("─".repeat(usize::from(area.width)), DIM);
    frame.buffer_mut().set_line(area.x, y, &line, area.width);
}

/// The state of a chat in a word.
pub(crate) fn word(state: State) -> &'static str {
    match state {
        State::Idle => "ready",
        State::Connecting => "connecting",
        State::Reconnecting => "reconnecting",
        State::Offline => "offline",
        State::Sending => "sending",
        State::Working => "working",
        State::Streaming => "streaming",
        State::Waiting => "waiting",
        State::Asking => "asks you",
        State::Stopping => "stopping",
        State::Paused => "paused",
    }
}

fn mark(state: State) -> (&'static str, Style) {
    match state {
        State::Idle => ("○", DIM),
        State::Connecting | State::Sending => ("◌", DIM),
        State::Reconnecting | State::Waiting | State::Stopping => ("◌", WAIT),
        State::Offline | State::Paused => ("■", BAD),
        State::Working | State::Streaming => ("●", GOOD),
        State::Asking => ("?", ASK),
    }
}

fn head(screen: &Screen, pane: &ChatPane, areas: Areas, frame: &mut Frame<'_>) {
    let width = usize::from(areas.head.width);
    let (sign, look) = mark(pane.state());
    let mode = if matches!(pane.mode.as_str(), "" | "chat") { String::new() } else { format!("{} mode  ", pane.mode) };
    let state = format!("{mode}{sign} {} ", word(pane.state()));
    let mut left = vec![Span::raw(" ")];
    if areas.head.width >= WIDE {
        left.push(Span::styled("BuildScale", BOLD));
        left.push(Span::styled(format!("  {} › ", cut(&screen.workspace, width / 4)), DIM));
    }
    let used: usize = left.iter().map(|span| span.content.width()).sum();
    left.push(Span::raw(cut(pane.name(), width.saturating_sub(used + state.width() + 1))));
    put(&[Line::from(left)], areas.head, frame);
    let right = Rect { x: u16::try_from(width.saturating_sub(state.width())).unwrap_or_default(), ..areas.head };
    let right = Rect { width: areas.head.width.saturating_sub(right.x), ..right };
    put(&[Line::styled(state, look)], right, frame);
    if areas.tabs.height > 0 {
        put(&[tabs(screen, width)], areas.tabs, frame);
    }
    if areas.head.height + areas.tabs.height < areas.body.y {
        rule(areas.head, areas.body.y - 1, frame);
    }
}

/// The open chats in one line.
fn tabs(screen: &Screen, width: usize) -> Line<'static> {
    let room = (width / screen.panes.len().max(1)).clamp(8, 24);
    let mut spans = vec![Span::raw(" ")];
    for (place, pane) in screen.panes.iter().enumerate() {
        let here = place == screen.at;
        let (sign, look) = match pane.state() {
            State::Idle if pane.unread => ("•", GOOD),
            state => mark(state),
        };
        spans.push(Span::styled(sign, look));
        let style = if here { BOLD.add_modifier(Modifier::UNDERLINED) } else { DIM };
        spans.push(Span::raw(" "));
        spans.push(Span::styled(cut(pane.name(), room.saturating_sub(4)), style));
        spans.push(Span::raw("  "));
    }
    Line::from(spans)
}

fn draft(pane: &ChatPane, area: Rect, frame: &mut Frame<'_>) {
    let mut text = area;
    if area.height > 1 && area.bottom() > 0 && usize::from(area.height) > 1 {
        rule(area, area.y, frame);
        text = Rect { y: area.y + 1, height: area.height - 1, ..area };
    }
    let laid = pane.composer.lay(usize::from(text.width.saturating_sub(3)));
    let height = usize::from(text.height).max(1);
    let first = (laid.cursor.0 + 1).saturating_sub(height);
    let prompt = if pane.in_form { DIM } else { ASK };
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (place, line) in laid.lines.iter().enumerate().skip(first).take(height) {
        let sign = if place == 0 { " ❯ " } else { "   " };
        lines.push(Line::from(vec![Span::styled(sign, prompt), Span::raw(line.clone())]));
    }
    if pane.composer.text().is_empty() {
        let hint = if pane.chat.is_none() { "What shall the agent do?" } else { "Reply, or give another task" };
        lines = vec![Line::from(vec![Span::styled(" ❯ ", prompt), Span::styled(hint, DIM)])];
    }
    put(&lines, text, frame);
    if !pane.in_form {
        cursor(text, laid.cursor.0 - first, laid.cursor.1 + 3, frame);
    }
}

fn keys(screen: &Screen, pane: &ChatPane, area: Rect, frame: &mut Frame<'_>) {
    let width = usize::from(area.width);
    let scrolled = pane.place != super::scroll::ScrollPosition::End;
    let (left, style) = match (&screen.notice, &screen.overlay) {
        (Some(notice), _) => (notice.clone(), WAIT),
        (None, Some(Overlay::Help(_))) => ("any key closes · ↑↓ scroll".to_owned(), DIM),
        (None, Some(Overlay::Chats { .. })) => ("Enter open · Ctrl-N new · Esc close".to_owned(), DIM),
        (None, None) if scrolled && pane.composer.text().is_empty() => ("PgDn down · End to the end".to_owned(), DIM),
        (None, None) if scrolled => ("PgDn down".to_owned(), DIM),
        (None, None) if pane.in_form => ("↑↓ Enter choose · Tab write · Esc stop".to_owned(), DIM),
        (None, None) if !screen.files().is_empty() => ("↑↓ Tab pick · Esc close".to_owned(), DIM),
        (None, None) if !pane.transcript.asks.is_empty() => ("Tab answer · Esc stop".to_owned(), DIM),
        (None, None) if pane.is_busy() => ("Esc stop · Enter queues · ? help".to_owned(), DIM),
        (None, None) => ("Enter send · @ file · Ctrl-S chats · ? help".to_owned(), DIM),
    };
    let left = cut(&left, width.saturating_sub(2));
    put(&[Line::styled(format!(" {left}"), style)], area, frame);
    // A model's name that has no room is left out.
    let facts = Some(pane.model.as_str()).filter(|model| left.width() + model.width() + 4 <= width).unwrap_or_default();
    let x = u16::try_from(width.saturating_sub(facts.width() + 1)).unwrap_or_default();
    put(&[Line::styled(facts, DIM)], Rect { x, width: area.width.saturating_sub(x), ..area }, frame);
}
