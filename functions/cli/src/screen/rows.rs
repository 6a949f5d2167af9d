//! From items of a chat to lines of a screen.

use super::transcript::{Call, Item, RemarkKind, Speaker};
use crate::{
    markdown,
    output::{Look, Style as Codes, counted},
    render::words::of_diff,
    wrap::cut,
};
use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

/// The changed lines of an edit that are shown of a folded call.
const DIFF: usize = 12;
/// The lines of an output that are shown of a folded call that failed.
const OUTPUT: usize = 3;
/// The last lines of an output that are shown of a folded call that runs.
const LIVE: usize = 5;

/// How items are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Columns.
    pub(crate) width: usize,
    /// Whether thoughts are unfolded.
    pub(crate) thoughts: bool,
    /// Whether calls have all arguments and the whole output.
    pub(crate) details: bool,
}

pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const GOOD: Style = Style::new().fg(Color::Green);
pub(crate) const BAD: Style = Style::new().fg(Color::Red);
pub(crate) const ASK: Style = Style::new().fg(Color::Cyan);
pub(crate) const WAIT: Style = Style::new().fg(Color::Yellow);

/// The lines of an item, each at most as wide as the view; with an empty one before it where it stands apart from the item before.
pub(crate) fn rows(item: &Item, before: Option<&Item>, view: View) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    if before.is_some_and(|before| is_apart(before, item)) {
        rows.push(Line::default());
    }
    let begin = rows.len();
    match item {
        Item::Said { by: Speaker::Person, text, .. } => {
            let bar = Span::styled("▌ ", ASK);
            rows.extend(wrapped(text, view.width.saturating_sub(2), BOLD).into_iter().map(|line| behind(&bar, line)));
        }
        Item::Said { by: Speaker::Agent, text, .. } => rows.extend(markdown_lines(text, view.width)),
        Item::Said { by: Speaker::System, text, .. } => rows.extend(wrapped(text, view.width, DIM)),
        Item::Thought { text, open } => thought(text, open.is_some(), view, &mut rows),
        Item::Call(call) => called(call, view, &mut rows),
        Item::Asked { tool, reason, args } => {
            let head = format!("? May {tool} run? {reason}");
            rows.extend(wrapped(head.trim_end(), view.width, ASK));
            arguments(args, view.width, &mut rows);
        }
        Item::Remark { text, tone } => {
            let style = match tone {
                RemarkKind::Quiet => DIM,
                RemarkKind::Bad => BAD,
                RemarkKind::Asking => WAIT,
            };
            let indent = Span::raw("  ");
            let lines = wrapped(text, view.width.saturating_sub(2), style);
            rows.extend(lines.into_iter().map(|line| behind(&indent, line)));
        }
        Item::Diff { heading, lines } => {
            rows.push(Line::styled(cut(&format!("  {heading}"), view.width), BOLD));
            let (indent, wide) = (Span::raw("    "), view.width.saturating_sub(4));
            let lines = lines.iter().flat_map(|line| hard(line, wide, of_diff(line).map_or(Style::new(), of_look)));
            rows.extend(lines.map(|line| behind(&indent, line)));
        }
    }
    if rows.len() == begin {
        rows.push(Line::default());
    }
    rows
}

/// Whether an empty line is between two items. Calls and remarks stand together.
fn is_apart(before: &Item, item: &Item) -> bool {
    let is_step =
        |item: &Item| matches!(item, Item::Call(_) | Item::Remark { .. } | Item::Asked { .. } | Item::Diff { .. });
    !(is_step(before) && is_step(item))
}

fn thought(text: &str, open: bool, view: View, rows: &mut Vec<Line<'static>>) {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let (mark, name) = (if view.thoughts { "▾" } else { "▸" }, if open { "Thinking" } else { "Thought" });
    let head = match (view.thoughts, open) {
        (true, _) => format!("{mark} {name}"),
        (false, true) => format!("{mark} {name}… {}", text.trim_end().lines().last().unwrap_or_default()),
        (false, false) => format!("{mark} {name} · {}", counted(lines, "line")),
    };
    rows.push(Line::styled(cut(&head, view.width), DIM));
    if view.thoughts {
        let bar = Span::styled("│ ", DIM);
        let style = DIM.add_modifier(Modifier::ITALIC);
        let lines = wrapped(text.trim_end(), view.width.saturating_sub(2), style);
        rows.extend(lines.into_iter().map(|line| behind(&bar, line)));
    }
}

fn called(call: &Call, view: View, rows: &mut Vec<Line<'static>>) {
    let mark = match &call.result {
        None => Span::styled("◌ ", WAIT),
        Some(result) if result.success => Span::styled("● ", GOOD),
        Some(_) => Span::styled("● ", BAD),
    };
    let about = if view.details { "" } else { call.about.as_str() };
    let room = view.width.saturating_sub(3 + call.tool.width());
    let tool = cut(&call.tool, view.width.saturating_sub(2));
    rows.push(Line::from(vec![mark, Span::styled(tool, BOLD), Span::raw(format!(" {}", cut(about, room)))]));
    if view.details {
        arguments(&call.args, view.width, rows);
    }
    let Some(result) = &call.result else {
        let lines: Vec<&str> = call.live.trim_end().lines().collect();
        let skipped = if view.details { 0 } else { lines.len().saturating_sub(LIVE) };
        let shown = lines.into_iter().skip(skipped).map(|line| format!("    {}", line.replace('\t', "    ")));
        rows.extend(shown.map(|line| Line::styled(cut(&line, view.width), DIM)));
        return;
    };
    let (indent, wide) = (Span::raw("    "), view.width.saturating_sub(4));
    if view.details {
        for line in result.output.trim_end().lines() {
            rows.extend(hard(line, wide, changed(line, &result.diff)).into_iter().map(|line| behind(&indent, line)));
        }
        return;
    }
    let style = if result.success { DIM } else { BAD };
    rows.push(Line::styled(cut(&format!("  └ {}", result.line), view.width), style));
    for line in result.diff.iter().take(DIFF) {
        rows.push(Line::styled(
            cut(&format!("    {}", line.replace('\t', "    ")), view.width),
            changed(line, &result.diff),
        ));
    }
    if let more @ 1.. = result.diff.len().saturating_sub(DIFF) {
        rows.push(Line::styled(cut(&format!("    … {more} more (Ctrl-O)"), view.width), DIM));
    }
    if !result.success {
        let lines = result.output.lines().filter(|line| !line.trim().is_empty()).skip(1).take(OUTPUT);
        rows.extend(
            lines.map(|line| Line::styled(cut(&format!("    {}", line.replace('\t', "    ")), view.width), DIM)),
        );
    }
}

/// The look of a line of an output: additions and removals of an edit have colours.
fn changed(line: &str, diff: &[String]) -> Style {
    match line.chars().next() {
        Some('+') if !diff.is_empty() => GOOD,
        Some('-') if !diff.is_empty() => BAD,
        _ => DIM,
    }
}

fn arguments(args: &[(String, String)], width: usize, rows: &mut Vec<Line<'static>>) {
    let (first, rest) = (Span::raw("    "), Span::raw("      "));
    for (name, value) in args {
        let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
        for (place, line) in value.lines().enumerate() {
            let indent = if place == 0 { &first } else { &rest };
            let line = if place == 0 { format!("{name}{line}") } else { line.to_owned() };
            let lines = hard(&line, width.saturating_sub(6), Style::new());
            rows.extend(lines.into_iter().map(|line| behind(indent, line)));
        }
        if value.is_empty() {
            rows.push(behind(&first, Line::raw(name)));
        }
    }
}

fn behind(before: &Span<'static>, line: Line<'static>) -> Line<'static> {
    let mut spans = vec![before.clone()];
    spans.extend(line.spans);
    Line::from(spans)
}

/// Markdown in lines of a width.
pub(crate) fn markdown_lines(text: &str, width: usize) -> Vec<Line<'static>> {
    let shown = markdown::render(text, width, Codes::Colour);
    shown.lines().flat_map(|line| folded(&spans(line), width)).collect()
}

fn of_look(look: Look) -> Style {
    match look {
        Look::Dim => DIM,
        Look::Bold => BOLD,
        Look::Good => GOOD,
        Look::Bad => BAD,
        Look::Ask => ASK,
    }
}

/// The spans of a line with the codes of [`Codes`], and no others: texts are clean before they are rendered.
fn spans(line: &str) -> Vec<(String, Style)> {
    let (mut found, mut style, mut rest) = (Vec::new(), Style::new(), line);
    while let Some((before, code)) = rest.split_once("\x1b[") {
        if !before.is_empty() {
            found.push((before.to_owned(), style));
        }
        let (number, after) = code.split_once('m').unwrap_or((code, ""));
        let on = |look: Look| Codes::Colour.on(look).trim_start_matches("\x1b[").trim_end_matches('m') == number;
        let looks = [Look::Dim, Look::Bold, Look::Good, Look::Bad, Look::Ask];
        style = looks.into_iter().find(|look| on(*look)).map_or(Style::new(), |look| style.patch(of_look(look)));
        rest = after;
    }
    if !rest.is_empty() {
        found.push((rest.to_owned(), style));
    }
    found
}

/// Text in lines that break between words.
pub(crate) fn wrapped(text: &str, width: usize, style: Style) -> Vec<Line<'static>> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for line in text.lines() {
        let (mut row, mut columns) = (String::new(), 0);
        for word in line.split_inclusive(' ') {
            let wide = word.trim_end().width();
            if columns > 0 && columns + wide > width {
                lines.push(Line::styled(std::mem::take(&mut row).trim_end().to_owned(), style));
                columns = 0;
            }
            if wide > width {
                // A word that no line has room for.
                let mut pieces = hard(word.trim_end(), width, style);
                let last = pieces.pop().map(|line| line.to_string()).unwrap_or_default();
                lines.append(&mut pieces);
                (row, columns) = (format!("{last} "), last.width() + 1);
                continue;
            }
            row.push_str(word);
            columns += word.width();
        }
        lines.push(Line::styled(row.trim_end().to_owned(), style));
    }
    lines
}

/// A line in lines that break anywhere.
fn hard(line: &str, width: usize, style: Style) -> Vec<Line<'static>> {
    folded(&[(line.to_owned(), style)], width)
}

fn folded(spans: &[(String, Style)], width: usize) -> Vec<Line<'static>> {
    let width = width.max(1);
    let (mut lines, mut row, mut columns) = (Vec::new(), Vec::new(), 0);
    for (text, style) in spans {
        let mut piece = String::new();
        let text = Span::raw(text.replace('\t', "    "));
        // Several code points may be one character on the screen, such as a family of emoji.
        for shown in text.styled_graphemes(Style::new()) {
            let wide = shown.symbol.width();
            if columns + wide > width && columns > 0 {
                row.push(Span::styled(std::mem::take(&mut piece), *style));
                lines.push(Line::from(std::mem::take(&mut row)));
                columns = 0;
            }
            piece.push_str(shown.symbol);
            columns += wide;
        }
        if !piece.is_empty() {
            row.push(Span::styled(piece, *style));
        }
    }
    lines.push(Line::from(row));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(lines: Vec<Line<'static>>) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_break_between_words_and_long_words_anywhere() {
        assert_eq!(plain(wrapped("one two three", 8, DIM)), ["one two", "three"]);
        assert_eq!(plain(wrapped("a abcdefghij k", 4, DIM)), ["a", "abcd", "efgh", "ij k"]);
        assert_eq!(plain(wrapped("日本語", 4, DIM)), ["日本", "語"]);
        assert_eq!(plain(wrapped("a\n\nb", 4, DIM)), ["a", "", "b"]);
    }

    #[test]
    fn joined_characters_stay_whole_and_take_the_columns_that_are_drawn() {
        assert_eq!(plain(hard("👩‍👩‍👧 ab", 5, DIM)), ["👩‍👩‍👧 ab"]);
        assert_eq!(plain(hard("abc👩‍👩‍👧d", 4, DIM)), ["abc", "👩‍👩‍👧d"]);
        assert_eq!(plain(markdown_lines("- 👩‍👩‍👧 one two three four", 23)), ["• 👩‍👩‍👧 one two three four"]);
    }

    #[test]
    fn codes_of_markdown_become_looks() {
        let lines = markdown_lines("**bold** and `code`", 40);
        let looks: Vec<(String, Style)> =
            lines[0].spans.iter().map(|span| (span.content.to_string(), span.style)).collect();
        assert_eq!(looks, [("bold".into(), BOLD), (" and ".into(), Style::new()), ("code".into(), ASK)]);
    }
}
