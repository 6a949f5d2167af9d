//! Markdown as a terminal shows it: wrapped between words, block by block, so that it can stream.

use crate::{
    output::{Look, Style},
    wrap::seen_width,
};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;
use unicode_width::UnicodeWidthStr;

/// The longest line, in columns: longer ones are hard to read.
const WIDEST: usize = 100;

/// Text that comes in pieces, and is given back in whole blocks; of the block that is open, in whole lines.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    waiting: String,
    /// The lines of the block that is open which were given, as they look.
    begun: String,
    /// The length of that block when its lines were last looked for.
    looked: usize,
}

impl Blocks {
    /// Takes a piece; gives the blocks that are complete with it.
    pub(crate) fn push(&mut self, piece: &str) -> Option<String> {
        self.waiting.push_str(piece);
        let end = end_of_blocks(&self.waiting)?;
        let rest = self.waiting.split_off(end);
        // Further empty lines between two blocks are no block.
        Some(std::mem::replace(&mut self.waiting, rest)).filter(|text| !text.trim().is_empty())
    }

    /// Returns the rest: the last block.
    pub(crate) fn finish(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.waiting)).filter(|text| !text.trim().is_empty())
    }

    /// The lines of the block that is open which no later words can change, without those that were given before.
    pub(crate) fn settled(&mut self, width: usize, style: Style) -> Option<String> {
        // The whole block is laid out for it, so not for each piece.
        if self.waiting.len() < self.looked + width / 2 {
            return None;
        }
        self.looked = self.waiting.len();
        if !is_settled(&self.waiting) {
            return None;
        }
        let shown = render(&self.waiting, width, style);
        // The last line grows, or its last word does not fit any more.
        let (settled, _) = shown.trim_end_matches('\n').rsplit_once('\n')?;
        let settled = format!("{settled}\n");
        let more = settled.strip_prefix(self.begun.as_str()).filter(|more| !more.is_empty())?.to_owned();
        self.begun = settled;
        Some(more)
    }

    /// Whether lines were given of the block that is open.
    pub(crate) fn is_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// The lines that were given of the block that is complete now; none are of the next one.
    pub(crate) fn take_begun(&mut self) -> String {
        self.looked = 0;
        std::mem::take(&mut self.begun)
    }
}

/// Whether no look, link or table is open at the end of this block: later text changes none of its lines but the last one then.
fn is_settled(block: &str) -> bool {
    // Lines of code have no looks, and they end the paragraph before them.
    let Some(text) = after_code(block) else { return true };
    // A line of these marks alone makes a heading of the paragraph before it, or it begins an item.
    let last = text.lines().next_back().unwrap_or_default().trim();
    if !last.is_empty() && (last.trim_matches('-').is_empty() || last.trim_matches('=').is_empty()) {
        return false;
    }
    // A mark that stands alone is that of an item.
    let words = || text.split_whitespace().filter(|word| *word != "*");
    let pairs = |mark: &str| words().map(|word| word.matches(mark).count()).sum::<usize>().is_multiple_of(2);
    // Within a word it is a part of a name.
    let underlined = words().filter(|word| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '_');
        word.starts_with('_') != word.ends_with('_')
    });
    let brackets = text.matches('[').count() <= text.matches(']').count();
    let address = text.rsplit_once("](").is_none_or(|(_, address)| address.contains(')'));
    let mut rows = text.lines().enumerate();
    let table = rows.any(|(at, line)| line.trim_start().starts_with('|') || (at == 0 && line.contains('|')));
    ["`", "``", "*", "**", "~", "~~"].into_iter().all(pairs)
        && underlined.count().is_multiple_of(2)
        && brackets
        && address
        && !table
}

/// The text after the last code of a block; none while code is open.
fn after_code(block: &str) -> Option<&str> {
    let (mut fence, mut begin, mut at) = (None, 0, 0);
    for line in block.split_inclusive('\n') {
        at += line.len();
        let before = fence;
        fence = fence_after(before, line);
        if before.is_some() && fence.is_none() {
            begin = at;
        }
    }
    block.get(begin..).filter(|_| fence.is_none())
}

/// The place after the last empty line that is in no block of code.
fn end_of_blocks(text: &str) -> Option<usize> {
    let (mut fence, mut end, mut at) = (None, None, 0);
    for line in text.split_inclusive('\n') {
        at += line.len();
        if fence.is_none() && line.trim().is_empty() && line.ends_with('\n') {
            end = Some(at);
        }
        fence = fence_after(fence, line);
    }
    end
}

/// The fence of the code that is open after this line, when this one was open before it.
fn fence_after(open: Option<&'static str>, line: &str) -> Option<&'static str> {
    let mark = ["```", "~~~"].into_iter().find(|mark| line.trim().starts_with(mark));
    match (open, mark) {
        (None, mark) => mark,
        (Some(fence), Some(mark)) if fence == mark => None,
        (Some(fence), _) => Some(fence),
    }
}

/// `text` as lines of at most `width` columns, each with its end; blocks have an empty line between them.
pub(crate) fn render(text: &str, width: usize, style: Style) -> String {
    let mut page = Page::new(text, width.clamp(20, WIDEST), style);
    for (event, range) in
        Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH).into_offset_iter()
    {
        page.take(event, range);
    }
    page.out
}

/// The text written so far, and the position.
struct Page<'a> {
    source: &'a str,
    width: usize,
    style: Style,
    out: String,
    /// The words of the paragraph that is being read.
    words: Vec<String>,
    /// A word that is not complete: looks change inside of words.
    word: String,
    /// The looks that are on.
    looks: Vec<Look>,
    /// The text before each line: of quotes and lists.
    indent: Vec<String>,
    /// The text before the next line instead: the mark of an item.
    mark: Option<String>,
    /// The numbers of the lists that are open; none of one with points.
    lists: Vec<Option<u64>>,
    /// The address of the link that is open.
    link: Option<String>,
    /// In something that is shown as it was written: until its end nothing else is.
    verbatim: usize,
}

impl<'a> Page<'a> {
    fn new(source: &'a str, width: usize, style: Style) -> Self {
        Self {
            source,
            width,
            style,
            out: String::new(),
            words: Vec::new(),
            word: String::new(),
            looks: Vec::new(),
            indent: Vec::new(),
            mark: None,
            lists: Vec::new(),
            link: None,
            verbatim: 0,
        }
    }

    fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(Tag::Table(_)) => {
                let table = self.source.get(range).unwrap_or_default().to_owned();
                self.apart();
                self.lines(&table, Look::Dim);
                self.verbatim += 1;
            }
            Event::End(TagEnd::Table) => self.verbatim -= 1,
            _ if self.verbatim > 0 => {}
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.in_code() => self.lines(&text, Look::Dim),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(code) => {
                self.looks.push(Look::Ask);
                self.text(&code);
                self.looks.pop();
            }
            Event::SoftBreak => self.end_word(),
            Event::HardBreak => {
                self.end_word();
                self.paragraph();
            }
            Event::Rule => {
                self.apart();
                let rule = "─".repeat(self.width.min(40));
                self.line(&rule);
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.apart(),
            Tag::Heading { .. } => {
                self.apart();
                self.looks.push(Look::Bold);
            }
            Tag::Strong => self.looks.push(Look::Bold),
            Tag::Emphasis | Tag::Strikethrough => self.looks.push(Look::Dim),
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => {
                self.paragraph();
                self.apart();
                self.indent.push("    ".into());
                self.looks.push(Look::Dim);
                self.link = Some(CODE.into());
            }
            Tag::BlockQuote(_) => {
                self.apart();
                self.indent.push("│ ".into());
            }
            Tag::List(first) => {
                self.paragraph();
                if self.lists.is_empty() {
                    self.apart();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.paragraph();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                self.indent.push(" ".repeat(mark.width()));
                self.mark = Some(mark);
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link = Some(dest_url.into_string()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.paragraph(),
            TagEnd::Heading(_) => {
                self.paragraph();
                self.looks.pop();
            }
            TagEnd::Strong | TagEnd::Emphasis | TagEnd::Strikethrough => drop(self.looks.pop()),
            TagEnd::CodeBlock => {
                self.indent.pop();
                self.looks.pop();
                self.link = None;
            }
            TagEnd::BlockQuote(_) => drop(self.indent.pop()),
            TagEnd::List(_) => {
                self.paragraph();
                self.lists.pop();
            }
            TagEnd::Item => {
                self.paragraph();
                self.indent.pop();
                self.mark = None;
            }
            TagEnd::Link | TagEnd::Image => {
                // An address that is its own text is said once.
                if let Some(address) = self.link.take().filter(|address| !self.word.contains(address.as_str())) {
                    self.end_word();
                    self.text(&format!("({address})"));
                }
            }
            _ => {}
        }
    }

    fn in_code(&self) -> bool {
        self.link.as_deref() == Some(CODE)
    }

    /// Adds text to the paragraph, word by word.
    fn text(&mut self, text: &str) {
        for (place, piece) in text.split(char::is_whitespace).enumerate() {
            if place > 0 {
                self.end_word();
            }
            if piece.is_empty() {
                continue;
            }
            match self.looks.last() {
                Some(look) => self.word.push_str(&self.style.paint(*look, piece)),
                None => self.word.push_str(piece),
            }
        }
    }

    fn end_word(&mut self) {
        if !self.word.is_empty() {
            self.words.push(std::mem::take(&mut self.word));
        }
    }

    /// Writes the paragraph that was read, in lines.
    fn paragraph(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        let room = self.width.saturating_sub(self.indent.iter().map(|indent| indent.width()).sum()).max(10);
        let (mut line, mut columns) = (String::new(), 0);
        for word in words {
            let wide = seen_width(&word);
            if columns > 0 && columns + 1 + wide > room {
                self.line(&std::mem::take(&mut line));
                columns = 0;
            }
            if columns > 0 {
                line.push(' ');
                columns += 1;
            }
            line.push_str(&word);
            columns += wide;
        }
        if columns > 0 {
            self.line(&line);
        }
    }

    /// Writes lines as they are.
    fn lines(&mut self, text: &str, look: Look) {
        for line in text.lines() {
            let painted = self.style.paint(look, line);
            self.line(&painted);
        }
    }

    fn line(&mut self, line: &str) {
        let mark = self.mark.take();
        let before = match (&mark, self.indent.split_last()) {
            (Some(mark), Some((_, above))) => above.concat() + mark,
            _ => self.indent.concat(),
        };
        self.out.push_str(format!("{before}{line}").trim_end());
        self.out.push('\n');
    }

    /// An empty line between blocks; none within a list.
    fn apart(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") && self.lists.is_empty() {
            self.out.push('\n');
        }
    }
}

/// Stands for the address of a link while a block of code is read, which has no links.
const CODE: &str = "\0code";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_open_block_are_given_once_later_words_cannot_change_them() {
        let given = |pieces: &[&str]| {
            let mut blocks = Blocks::default();
            let lines: Vec<Option<String>> = pieces
                .iter()
                .map(|piece| {
                    assert!(blocks.push(piece).is_none(), "{piece:?}");
                    blocks.settled(20, Style::Plain)
                })
                .collect();
            let begun = blocks.take_begun();
            let whole = render(&blocks.finish().unwrap_or_default(), 20, Style::Plain);
            assert!(whole.starts_with(&begun), "{whole:?} and {begun:?}");
            lines
        };
        let line = |text: &str| Some(text.to_owned());
        let words = ["one two three four fi", "ve six", " seven eight nine", " ten eleven"];
        assert_eq!(given(&words), [line("one two three four\n"), None, line("five six seven eight\n"), None]);
        // A look that is open may turn out to be none.
        assert_eq!(given(&["one **two three four five", " six** seven"]), [None, line("one two three four\n")]);
        assert_eq!(given(&["a `name_with_marks and no end of it"]), [None]);
        assert_eq!(given(&["the name_of_it is in the words", " of a line"])[0], line("the name_of_it is in\n"));
        assert_eq!(given(&["see [the page about this](http", "://a.example/) and more"])[0], None);
        assert_eq!(given(&["| a | b that is very long | c |", "\n|---|---|---|\n"]), [None, None]);
        // Items, and the lines of code.
        let list = given(&["- one two three four five\n", "- six seven"]);
        assert_eq!(list, [line("• one two three four\n"), line("  five\n")]);
        assert_eq!(given(&["```\nlet a = 1;\nlet b * 2"]), [line("    let a = 1;\n")]);
        let code = given(&["```\na\n```\none **two three four five six", "** seven eight nine"]);
        assert_eq!(code, [None, line("    a\n\none two three four\nfive six seven eight\n")]);
        // A paragraph may turn out to be a heading, and a line below a heading a table.
        let item = given(&["one two three four five\n-", " six seven eight"]);
        assert_eq!(item, [None, line("one two three four\nfive\n\n")]);
        assert_eq!(given(&["# Title\n| a | b that is very long | c |"]), [None]);
    }

    #[test]
    fn lines_break_between_words_and_items_hang() {
        let text =
            "# Title\n\nOne two three four five six.\n\n- first point that is long\n- second\n\n3. third\n\n> said\n";
        let expected =
            "Title\n\nOne two three four\nfive six.\n\n• first point that\n  is long\n• second\n\n3. third\n\n│ said\n";
        assert_eq!(render(text, 20, Style::Plain), expected);
    }

    #[test]
    fn code_and_tables_stay_as_they_are() {
        let text = "See `a b`:\n\n```rust\nlet  x = 1;\n\nfn main() { something_long_that_is_not_wrapped(); }\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
        let shown = render(text, 30, Style::Plain);
        assert!(
            shown.contains("    let  x = 1;\n\n    fn main() { something_long_that_is_not_wrapped(); }\n"),
            "{shown}"
        );
        assert!(shown.ends_with("| a | b |\n|---|---|\n| 1 | 2 |\n"), "{shown}");
    }

    #[test]
    fn looks_take_no_room_and_links_keep_their_address() {
        let shown = render("**bold** and [here](http://a.example)", 80, Style::Colour);
        assert_eq!(shown, "\x1b[1mbold\x1b[0m and here (http://a.example)\n");
    }

    #[test]
    fn blocks_come_when_they_are_complete_and_code_is_one() {
        let mut blocks = Blocks::default();
        assert_eq!(blocks.push("One"), None);
        assert_eq!(blocks.push(" two.\n\n").as_deref(), Some("One two.\n\n"));
        assert_eq!(blocks.push("\n"), None, "another empty line is no block");
        assert_eq!(blocks.push("```\na\n"), None);
        assert_eq!(blocks.push("\n\nb\n"), None, "an empty line in code ends nothing");
        assert_eq!(blocks.push("```\n\nend").as_deref(), Some("```\na\n\n\nb\n```\n\n"));
        assert_eq!(blocks.finish().as_deref(), Some("end"));
        assert_eq!(blocks.finish(), None);
    }
}
