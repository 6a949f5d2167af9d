//! Texts in passages: Markdown by its headings, code between its items, everything in windows of whole lines that are not too long.
//!
//! Code is cut where a function, method or type begins, with the comments above it. Short ones share a passage. A grammar tells where they begin, and
//! their names; in a language without one, the layout does: a line without indentation that follows an empty one.

use crate::{
    outline::{Language, Outline},
    words::{GAP, joined, words},
};
use ports::Passage;

/// The longest content that is indexed, in bytes: a longer file is found by its name alone.
pub(crate) const MAX_TEXT: u64 = 8 * 1024 * 1024;
/// About how long a passage is, in bytes, and how many lines it has at most.
const WINDOW: usize = 2048;
const LINES: u64 = 60;
/// The least of a passage of code before another item begins one, in bytes.
const ITEM: usize = 512;
/// The most bytes of the headings of all passages of a text, as a multiple of the bytes of the text.
const HEADINGS: usize = 2;
/// The same of a short text, in bytes.
const HEADINGS_OF_SHORT: usize = 64 * 1024;
/// The ends of the names of files with code in a language without a grammar.
const CODE: [&str; 27] = [
    "java", "kt", "kts", "scala", "swift", "c", "h", "cc", "cpp", "hpp", "cs", "rb", "php", "lua", "pl", "r", "jl",
    "ex", "exs", "erl", "hs", "ml", "clj", "sh", "bash", "sql", "zig",
];

/// How a text is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Markdown,
    Code(Option<Language>),
    Plain,
}

impl Form {
    /// By the name of the file.
    pub fn of(name: &str) -> Self {
        let end = name.rsplit_once('.').map(|(_, end)| end.to_lowercase());
        let Some(end) = end.as_deref() else { return Self::Plain };
        match (end, Language::of(end)) {
            ("md" | "markdown", _) => Self::Markdown,
            (_, Some(language)) => Self::Code(Some(language)),
            (end, None) if CODE.contains(&end) => Self::Code(None),
            _ => Self::Plain,
        }
    }
}

/// The passage that has the words of a path.
pub(crate) fn name(path: &str) -> Passage {
    let found = words(path);
    let words = joined(found.iter().map(|word| word.text.as_str()));
    Passage { first_line: 0, last_line: 0, heading: String::new(), text: path.into(), words }
}

/// The passages of a text.
pub(crate) fn passages(text: &str, form: Form) -> Vec<Passage> {
    let room = text.len().saturating_mul(HEADINGS).max(HEADINGS_OF_SHORT);
    let mut found = Passages { room, ..Passages::default() };
    let mut fence: Option<&str> = None;
    let mut is_after_blank = false;
    let mut outline = match form {
        Form::Code(Some(language)) => Outline::of(text, language),
        _ => None,
    };
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let begun = line.trim_start();
        if form == Form::Markdown {
            let mark = ["```", "~~~"].into_iter().find(|mark| begun.starts_with(mark));
            match (fence, mark) {
                (None, Some(mark)) => fence = Some(mark),
                (Some(open), Some(mark)) if open == mark => fence = None,
                (None, None) => {
                    if let Some((level, title)) = heading(line) {
                        found.end();
                        found.enter(level, title);
                    }
                }
                _ => {}
            }
        }
        if let Form::Code(_) = form {
            let begins = match &mut outline {
                Some(outline) => outline.go_to(number),
                // A bracket that closes an item belongs to it.
                None => {
                    is_after_blank && line.starts_with(|c: char| !c.is_whitespace() && !matches!(c, '}' | ')' | ']'))
                }
            };
            if begins && found.text.len() >= ITEM {
                found.end();
            }
            is_after_blank = begun.is_empty();
        }
        found.make_room(number, line);
        // Blank lines and brackets that close an item say nothing of where a passage is.
        let says = !begun.trim_end().trim_end_matches(['}', ')', ']', ';', ',']).is_empty();
        if let Some(outline) = outline.as_ref().filter(|_| says) {
            found.within(outline.names());
        }
        found.add(number, line);
    }
    found.end();
    found.all
}

/// The level and the text of a heading such as `## Errors`.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line.get(level..)?;
    ((1..=6).contains(&level) && title.starts_with([' ', '\t']))
        .then(|| (level, title.trim().trim_end_matches('#').trim()))
}

#[derive(Default)]
struct Passages {
    all: Vec<Passage>,
    /// The headings that the next line is under, with their levels.
    headings: Vec<(usize, String)>,
    /// How many bytes of headings passages may still have: the same long ones above many short passages would be many times as long as the text.
    room: usize,
    text: String,
    first: u64,
    last: u64,
}

impl Passages {
    fn enter(&mut self, level: usize, title: &str) {
        while self.headings.last().is_some_and(|(above, _)| *above >= level) {
            self.headings.pop();
        }
        let title: String = title.chars().take(200).collect();
        self.headings.push((level, title));
    }

    /// That the next line is within these items: the passage is under those that all of its lines are in.
    fn within<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        if self.text.trim().is_empty() {
            self.headings = (1..).zip(names.map(str::to_owned)).collect();
        } else {
            let same = self.headings.iter().zip(names).take_while(|((_, one), other)| one == other).count();
            self.headings.truncate(same);
        }
    }

    /// Begins another passage where this one has no room for a line.
    fn make_room(&mut self, number: u64, line: &str) {
        if self.text.len() + line.len() > WINDOW || number.saturating_sub(self.first) >= LINES {
            self.end();
        }
    }

    fn add(&mut self, number: u64, line: &str) {
        let mut rest = line;
        while rest.len() > WINDOW {
            let end = rest.floor_char_boundary(WINDOW);
            // Between words, where there is a space.
            let end = rest.get(..end).and_then(|part| part.rfind(' ')).filter(|at| *at > WINDOW / 2).unwrap_or(end);
            let (part, after) = rest.split_at(end);
            self.push(number, part);
            self.end();
            rest = after;
        }
        self.push(number, rest);
    }

    fn push(&mut self, number: u64, line: &str) {
        if self.text.is_empty() {
            self.first = number;
        }
        self.last = number;
        self.text.push_str(line);
    }

    fn end(&mut self) {
        let text = std::mem::take(&mut self.text);
        if text.trim().is_empty() {
            return;
        }
        let mut heading = self.headings.iter().map(|(_, title)| title.as_str()).collect::<Vec<_>>().join(" > ");
        match self.room.checked_sub(heading.len()) {
            Some(left) => self.room = left,
            None => heading.clear(),
        }
        let (above, own) = (words(&heading), words(&text));
        let gap = if above.is_empty() { None } else { Some(GAP) };
        let all = above.iter().map(|word| word.text.as_str()).chain(gap);
        let words = joined(all.chain(own.iter().map(|word| word.text.as_str())));
        self.all.push(Passage { first_line: self.first, last_line: self.last, heading, text, words });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(u64, u64, String)> {
        passages(text, Form::Markdown)
            .into_iter()
            .map(|found| (found.first_line, found.last_line, found.heading))
            .collect()
    }

    #[test]
    fn markdown_is_cut_at_its_headings_but_not_in_code() {
        let text = "intro\n\n# A\none\n## B\n```\n# no heading\n```\ntwo\n# C\n\n#no\n";
        let expected = [(1, 2, ""), (3, 4, "A"), (5, 9, "A > B"), (10, 12, "C")];
        assert_eq!(shown(text), expected.map(|(first, last, heading)| (first, last, heading.to_owned())));
        assert_eq!(passages(text, Form::Plain).len(), 1);
    }

    #[test]
    fn passages_have_all_lines_once_and_are_not_long() {
        let text: String = (0..500).map(|n| format!("line {n} {}\n", "é".repeat(n % 90))).collect();
        let found = passages(&text, Form::Plain);
        assert_eq!(found.iter().map(|passage| passage.text.as_str()).collect::<String>(), text);
        assert!(
            found.iter().all(|passage| passage.text.len() <= WINDOW && passage.last_line - passage.first_line < LINES)
        );
        assert!(found.windows(2).all(|two| two[1].first_line == two[0].last_line + 1));
    }

    #[test]
    fn code_is_cut_between_its_items_and_short_ones_share_a_passage() {
        let item = |name: &str, lines: usize| {
            format!("/// Says {name}.\nfn {name}() {{\n\n{}}}\n\n", "    say();\n".repeat(lines))
        };
        let text = item("long", 50) + &item("other", 50) + &item("short", 1) + &item("small", 1);
        let found = passages(&text, Form::Code(None));
        let firsts: Vec<&str> = found.iter().filter_map(|passage| passage.text.lines().next()).collect();
        assert_eq!(firsts, ["/// Says long.", "/// Says other.", "/// Says short."]);
        assert_eq!(found.iter().map(|passage| passage.text.as_str()).collect::<String>(), text);
        let forms = ["a.RS", "a.java", "README.md", "notes"].map(Form::of);
        assert_eq!(forms, [Form::Code(Some(Language::Rust)), Form::Code(None), Form::Markdown, Form::Plain]);
    }

    #[test]
    fn methods_are_passages_under_the_name_of_their_type() {
        let method = |name: &str| {
            format!("    /// Says {name}.\n    fn {name}(&self) {{\n{}    }}\n", "        say();\n".repeat(50))
        };
        let text = format!("impl Parser {{\n{}{}}}\n\nfn a() {{}}\nfn b() {{}}\n", method("first"), method("second"));
        let found = passages(&text, Form::Code(Some(Language::Rust)));
        let shown: Vec<(u64, &str)> =
            found.iter().map(|passage| (passage.first_line, passage.heading.as_str())).collect();
        // The first passage has the line of its type, too.
        assert_eq!(shown, [(1, "Parser"), (55, "Parser > second"), (110, "")]);
        assert_eq!(found.iter().map(|passage| passage.text.as_str()).collect::<String>(), text);
        assert!(found[1].words.starts_with("parser second"), "{:?}", found[1].words);
    }

    /// The bytes of all passages beside their texts.
    fn beside(found: &[Passage]) -> usize {
        found.iter().map(|passage| passage.heading.len() + passage.words.len()).sum()
    }

    #[test]
    fn a_script_of_one_line_has_not_the_names_of_all_its_items_in_each_passage() {
        let text: String = (0..5_000).map(|n| format!("function f{n}(){{}}")).collect();
        let found = passages(&text, Form::Code(Some(Language::JavaScript)));
        assert_eq!(found.iter().map(|passage| passage.text.as_str()).collect::<String>(), text);
        assert!(beside(&found) <= 4 * text.len(), "{} bytes beside {} of text", beside(&found), text.len());
    }

    #[test]
    fn headings_above_many_short_passages_are_no_many_times_as_long_as_the_text() {
        let above: String = (1..6).map(|level| format!("{} {}\n", "#".repeat(level), "long ".repeat(40))).collect();
        let text = above + &"###### x\ny\n".repeat(20_000);
        let found = passages(&text, Form::Markdown);
        assert_eq!(found.len(), 20_005);
        assert!(found.get(5).is_some_and(|first| first.heading.ends_with(" > x")), "the first ones have theirs");
        assert!(beside(&found) <= 8 * text.len(), "{} bytes beside {} of text", beside(&found), text.len());
    }

    #[test]
    fn a_line_without_end_is_cut_and_keeps_its_number() {
        let text = format!("{}\nend", "索".repeat(100_000));
        let found = passages(&text, Form::Plain);
        assert!(found.iter().all(|passage| passage.text.len() <= WINDOW + 4 && passage.first_line <= 2));
        assert_eq!(found.iter().map(|passage| passage.text.as_str()).collect::<String>(), text);
    }

    #[test]
    fn the_words_of_headings_count_for_their_passages() {
        let found = passages("# Parsers\n\nbody text\n", Form::Markdown);
        assert_eq!(
            found.iter().map(|found| found.words.as_str()).collect::<Vec<_>>(),
            ["parser \u{B6} parser bodi text"]
        );
    }
}
