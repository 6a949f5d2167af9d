//! The lines between the chat and the draft, and those that lie over the chat: lists, forms, help. Lines come with the place of the cursor.

use super::{
    chat_pane::{ChatPane, ConnectionState},
    commands::HELP,
    form::{self, Choice},
    machine::{Overlay, Screen},
    rows::{ASK, BAD, BOLD, DIM, GOOD, WAIT, wrapped},
    transcript::{Status, Step},
};
use crate::{asks::Ask, output::one_line, render::words, value::text, wrap::cut};
use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

/// The most files that are shown of those that fit.
const FILES: usize = 8;
/// The most messages that are shown of those that wait.
const QUEUED: usize = 3;
/// The most lines of a question.
const QUESTION: usize = 8;

type Placed = (Vec<Line<'static>>, Option<(usize, usize)>);

/// The lines of what matters now, at most `most`.
pub(crate) fn lines(screen: &Screen, width: usize, most: usize) -> Placed {
    let Some(pane) = screen.pane() else { return Placed::default() };
    let mut lines = Vec::new();
    lines.extend(banner(pane, width));
    for sent in pane.sent.iter().take(QUEUED) {
        lines.push(Line::styled(cut(&format!(" ⋯ {}", one_line(sent, 400)), width), DIM));
    }
    let asked = pane.transcript.asks.front().map(|(ask, data)| (ask, data));
    let files = screen.files();
    let steps = plan(pane, width, (most / 2).max(1));
    if asked.is_none() || pane.plan {
        lines.extend(steps);
    }
    let room = most.saturating_sub(lines.len());
    if let Some((ask, data)) = asked {
        // The answer goes before everything else that might be shown.
        let (own, at) = asks(pane, ask, data, width, room.max(most.min(3)));
        let begin = lines.len().min(most.saturating_sub(own.len()));
        lines.truncate(begin);
        let at = at.map(|(line, column)| (line + begin, column));
        lines.extend(own);
        return (lines, at);
    }
    if !files.is_empty() {
        let shown = room.min(FILES);
        let first = (screen.picked + 1).saturating_sub(shown);
        for (place, file) in files.iter().enumerate().skip(first).take(shown) {
            lines.push(row(place == screen.picked.min(files.len() - 1), &file.label, "", width));
        }
    }
    lines.truncate(most);
    (lines, None)
}

/// A line about a state that a person has to know of.
fn banner(pane: &ChatPane, width: usize) -> Option<Line<'static>> {
    let (words, style) = match (&pane.connection, &pane.transcript.waiting, &pane.transcript.paused) {
        (ConnectionState::Lost(why), ..) => (format!("{why}; trying again"), WAIT),
        (ConnectionState::Over(why), ..) => (format!("{why}; Ctrl-X or the list of chats tries again"), BAD),
        (_, Some(why), _) => (why.clone(), WAIT),
        (_, None, Some(why)) => (format!("paused: {why}; a message tries again"), BAD),
        (_, None, None) => return None,
    };
    Some(Line::styled(cut(&format!(" {}", one_line(&words, 400)), width), style))
}

/// The plan: its progress and the step that is worked on; all steps where they are wanted.
fn plan(pane: &ChatPane, width: usize, most: usize) -> Vec<Line<'static>> {
    let Some((done, total)) = pane.progress() else { return Vec::new() };
    // A plan that is carried out is history.
    if done == total && !pane.plan && !pane.transcript.running {
        return Vec::new();
    }
    let steps = &pane.transcript.steps;
    let current = steps
        .iter()
        .position(|step| step.status == Status::Working)
        .or_else(|| steps.iter().position(|step| step.status == Status::Open));
    if !pane.plan {
        let working = current.and_then(|place| steps.get(place)).filter(|_| done < total);
        let (sign, look, _) = working.map_or(("✓", GOOD, DIM), sign);
        let title = working.map(|step| step.title.as_str()).unwrap_or_default();
        let head = format!(" Plan {done}/{total} ");
        let room = width.saturating_sub(head.width() + 3);
        return vec![Line::from(vec![
            Span::styled(head, DIM),
            Span::styled(format!("{sign} "), look),
            Span::raw(cut(title, room)),
        ])];
    }
    let shown = most.saturating_sub(1);
    let first = current.unwrap_or_default().saturating_sub(shown / 2).min(steps.len().saturating_sub(shown));
    let mut lines = vec![Line::styled(cut(&format!(" Plan {done}/{total}  (Ctrl-G folds it)"), width), DIM)];
    for (place, step) in steps.iter().enumerate().skip(first).take(shown) {
        let (sign, look, style) = sign(step);
        let title = format!("{}. {}", place + 1, step.title);
        lines.push(Line::from(vec![
            Span::styled(format!("  {sign} "), look),
            Span::styled(cut(&title, width.saturating_sub(4)), style),
        ]));
    }
    lines
}

fn sign(step: &Step) -> (&'static str, Style, Style) {
    match step.status {
        Status::Open => ("☐", DIM, Style::new()),
        Status::Working => ("▸", WAIT, BOLD),
        Status::Done => ("✓", GOOD, DIM),
        Status::Failed => ("✗", BAD, Style::new()),
    }
}

fn row(here: bool, label: &str, detail: &str, width: usize) -> Line<'static> {
    let sign = if here { " ❯ " } else { "   " };
    let style = if here { ASK.add_modifier(Modifier::BOLD) } else { Style::new() };
    let detail = if detail.is_empty() || width < 50 { String::new() } else { format!("  {detail}") };
    let label = cut(label, width.saturating_sub(4 + detail.width()));
    let gap = width.saturating_sub(4 + label.width() + detail.width());
    Line::from(vec![
        Span::styled(sign, ASK),
        Span::styled(label, style),
        Span::raw(" ".repeat(gap)),
        Span::styled(detail, DIM),
    ])
}

/// The form of a question or a request for permission.
fn asks(pane: &ChatPane, ask: &Ask, data: &Value, width: usize, most: usize) -> Placed {
    let rows = form::choices(ask);
    let many = form::is_many(ask);
    let head = match ask {
        Ask::Permission { .. } => {
            let about = words::about(data);
            vec![Line::styled(cut(&format!(" ? May {} run? {about}", one_line(text(data, "tool"), 80)), width), ASK)]
        }
        Ask::Questions { .. } => {
            let words = format!("? {}", form::question(ask));
            let mut lines = wrapped(&words, width.saturating_sub(2), ASK);
            lines.truncate(QUESTION);
            lines.into_iter().map(|line| Line::styled(format!(" {line}"), ASK)).collect()
        }
    };
    let rule = Line::styled("─".repeat(width), DIM);
    let room = most.saturating_sub(rows.len());
    let mut lines: Vec<Line<'static>> = Vec::new();
    if room > head.len() {
        lines.push(rule);
    }
    lines.extend(head.into_iter().take(room.max(1)));
    if let Some(wrong) = &pane.form.wrong {
        lines.push(Line::styled(cut(&format!(" ! {}", one_line(wrong, 400)), width), BAD));
    } else if pane.form.sent {
        lines.push(Line::styled(" sending the answer…", DIM));
    }
    // Of many choices those around the chosen one are in sight.
    let shown = most.saturating_sub(lines.len()).max(1);
    let at = pane.form.at.min(rows.len().saturating_sub(1));
    let first = (at + 1).saturating_sub(shown);
    let mut cursor = None;
    for (place, choice) in rows.iter().enumerate().skip(first).take(shown) {
        let here = place == at && pane.in_form;
        if here && choice.is_written() {
            cursor = Some((lines.len(), 0));
        }
        let (line, column) = written(pane, choice, (place, here, many), width);
        if let Some((_, at)) = cursor.as_mut().filter(|_| here) {
            *at = column;
        }
        lines.push(line);
    }
    (lines, cursor)
}

/// A row of a form, and the column of the cursor in it.
fn written(
    pane: &ChatPane,
    choice: &Choice,
    (place, here, many): (usize, bool, bool),
    width: usize,
) -> (Line<'static>, usize) {
    let sign = if here { " ❯ " } else { "   " };
    let tick = match (many && !choice.is_written(), pane.form.ticked.contains(&place)) {
        (false, _) => String::new(),
        (true, true) => "[x] ".to_owned(),
        (true, false) => "[ ] ".to_owned(),
    };
    let label = format!("{sign}{}. {tick}{}", place + 1, choice.label);
    let style = if here { BOLD } else { Style::new() };
    if !choice.is_written() {
        return (Line::styled(cut(&label, width), style), 0);
    }
    let label = cut(&label, width / 2);
    let room = width.saturating_sub(label.width() + 3);
    let laid = pane.form.text.lay(usize::MAX);
    let line = laid.lines.first().cloned().unwrap_or_default();
    // The part around the cursor is in sight.
    let skipped = laid.cursor.1.saturating_sub(room);
    let text: String = line.chars().skip(skipped).collect();
    let column = label.width() + 1 + laid.cursor.1 - skipped;
    (Line::from(vec![Span::styled(label, style), Span::raw(" "), Span::raw(cut(&text, room + 1))]), column)
}

/// The lines of a list or the help, in place of the chat.
pub(crate) fn overlay(screen: &Screen, overlay: &Overlay, width: usize, height: usize) -> Placed {
    match overlay {
        Overlay::Help(first) => {
            let wide = if width < 50 { 14 } else { 22 };
            let first = (*first).min(HELP.len().saturating_sub(height.saturating_sub(2)));
            let mut lines = vec![Line::styled("Keys and commands", BOLD), Line::default()];
            for (key, meaning) in HELP.iter().skip(first) {
                let gap = " ".repeat(wide.max(key.width() + 1) - key.width());
                let room = width.saturating_sub(wide.max(key.width() + 1));
                lines.push(Line::from(vec![Span::styled(*key, ASK), Span::raw(gap), Span::raw(cut(meaning, room))]));
            }
            lines.truncate(height);
            (lines, None)
        }
        Overlay::Chats { query, at } => {
            let found = screen.listed(query);
            let head =
                Line::from(vec![Span::styled("Chats  ", BOLD), Span::styled("❯ ", ASK), Span::raw(query.clone())]);
            let column = 9 + query.width();
            let mut lines = vec![head, Line::default()];
            let shown = height.saturating_sub(2).max(1);
            let first = (at + 1).saturating_sub(shown);
            for (place, chat) in found.iter().enumerate().skip(first).take(shown) {
                lines.push(row(place == *at, &chat.label, &chat.detail, width));
            }
            if found.is_empty() {
                let words = match (&screen.chats, query.is_empty()) {
                    (None, _) => "loading…",
                    (Some(_), true) => "no chats yet: type a message",
                    (Some(_), false) => "none fits",
                };
                lines.push(Line::styled(format!("   {words}"), DIM));
            }
            (lines, Some((0, column)))
        }
    }
}

/// The first screen.
pub(crate) fn welcome(screen: &Screen, width: usize) -> Vec<Line<'static>> {
    let key = |key: &'static str, meaning: &'static str| {
        Line::from(vec![Span::styled(format!("  {key:<9}"), ASK), Span::raw(cut(meaning, width.saturating_sub(11)))])
    };
    vec![
        Line::default(),
        Line::styled("Type a task and press Enter.", BOLD),
        Line::styled(cut(&format!("Workspace {}, model {}", screen.workspace, screen.model), width), DIM),
        Line::default(),
        key("@", "mention a file"),
        key("Ctrl-S", "go on with another chat"),
        key("Esc", "stop the turn"),
        key("?", "all keys and commands"),
        Line::default(),
    ]
}
