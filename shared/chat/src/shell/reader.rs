//! Reads a line for a shell, sign by sign, up to the first one whose meaning depends on more than the line.

use super::wrappers::is_name;
use std::{iter::Peekable, str::Chars};

/// How deep parentheses and substitutions may be in one another.
const NESTED: usize = 8;
/// Words before a command that are no part of it.
const RESERVED: [&str; 10] = ["!", "{", "do", "elif", "else", "if", "then", "time", "until", "while"];
/// Commands after which the line goes on in another folder.
const MOVES: [&str; 4] = ["cd", "eval", "popd", "pushd"];

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    /// Its words, up to the first one that is not known.
    pub words: Vec<String>,
    /// Whether these are all.
    pub is_whole: bool,
    /// Its folder, as a path from the one where the line starts; empty for that one.
    pub below: String,
}

impl SimpleCommand {
    /// One in the folder where the line starts, with all of its words.
    pub(crate) fn whole(words: Vec<String>) -> Self {
        Self { words, is_whole: true, below: String::new() }
    }
}

/// A word as far as it has been read.
#[derive(Default)]
struct Word {
    text: String,
    /// The shell makes another word of it, none, or several.
    is_unknown: bool,
    is_quoted: bool,
    has_brace: bool,
    is_assignment: bool,
}

impl Word {
    fn push(&mut self, c: char) {
        if c == '=' && !self.is_unknown && !self.is_quoted && is_name(self.text.trim_end_matches('+')) {
            self.is_assignment = true;
        }
        self.has_brace |= matches!(c, '{' | '}');
        self.text.push(c);
    }

    fn push_quoted(&mut self, c: char) {
        self.is_quoted = true;
        self.text.push(c);
    }

    fn push_unknown(&mut self, c: char) {
        self.is_unknown = true;
        self.text.push(c);
    }

    fn is_known(&self) -> bool {
        !self.is_unknown && (!self.has_brace || self.text == "{" || self.text == "}")
    }

    fn is_reserved(&self) -> bool {
        self.is_known() && !self.is_quoted && RESERVED.contains(&self.text.as_str())
    }

    /// Whether it is the number of a file in front of `>` or `<`.
    fn is_number(&self) -> bool {
        !self.is_quoted && !self.is_unknown && self.text.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// The sign that a command ends with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// `&&`: the next command runs if this one succeeds.
    And,
    /// `||`: the next command runs if this one fails.
    Or,
    /// `|`: the next command is in the same list.
    Pipe,
    /// Any other one.
    Other,
}

/// The part of a line around a parenthesis or a substitution.
struct Outer {
    word: Option<Word>,
    words: Vec<Word>,
    is_target: bool,
    is_open: bool,
    before: End,
    below: String,
    has_entered: bool,
}

/// Reads a line sign by sign.
pub(super) struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    /// The folder that the shell starts in.
    here: &'a str,
    /// The folder that it is in, from there.
    below: String,
    /// Whether it is there only if a `cd` has succeeded.
    has_entered: bool,
    /// The sign before the command that is read.
    before: End,
    /// How many parentheses and substitutions are around.
    nested: usize,
    word: Option<Word>,
    /// The words of the command that is read.
    words: Vec<Word>,
    /// The next word is a file that is read or written.
    is_target: bool,
    /// Further words of the command are not certain.
    is_open: bool,
    found: Vec<SimpleCommand>,
}

impl<'a> Reader<'a> {
    /// The commands of a line of a shell that starts in the folder `here`, and has gone to the one `below` it.
    pub(super) fn read(line: &'a str, here: &'a str, below: &str) -> Vec<SimpleCommand> {
        let mut reader = Self::new(line, here, below, 0);
        reader.read_to(None);
        reader.found
    }

    fn new(line: &'a str, here: &'a str, below: &str, nested: usize) -> Self {
        Self {
            rest: line.chars().peekable(),
            here,
            below: below.to_owned(),
            has_entered: false,
            before: End::Other,
            nested,
            word: None,
            words: Vec::new(),
            is_target: false,
            is_open: false,
            found: Vec::new(),
        }
    }

    /// Reads to this sign, or to the end of the line without one. False where the rest of the line is not certain.
    fn read_to(&mut self, end: Option<char>) -> bool {
        while let Some(c) = self.rest.next() {
            if Some(c) == end {
                // This may be a part of `case`, and not the end.
                let is_end = !self.is_case();
                self.is_open |= !is_end;
                self.end_command(End::Other);
                return is_end;
            }
            if !self.take_in(c) {
                self.word = None;
                self.is_open = true;
                self.end_command(End::Other);
                return false;
            }
        }
        self.end_command(End::Other);
        end.is_none()
    }

    fn is_case(&self) -> bool {
        let mut words = self.words.iter().skip_while(|word| word.is_reserved());
        words.next().is_some_and(|word| word.text == "case")
    }

    /// Reads the commands in parentheses, up to the one that closes: a shell of its own runs them. False where the rest is not certain.
    fn inside(&mut self) -> bool {
        if self.nested >= NESTED || self.rest.peek() == Some(&'(') {
            return false;
        }
        let outer = Outer {
            word: self.word.take(),
            words: std::mem::take(&mut self.words),
            is_target: std::mem::take(&mut self.is_target),
            is_open: std::mem::take(&mut self.is_open),
            before: std::mem::replace(&mut self.before, End::Other),
            below: self.below.clone(),
            has_entered: std::mem::take(&mut self.has_entered),
        };
        self.nested += 1;
        let is_known = self.read_to(Some(')'));
        self.nested -= 1;
        (self.word, self.words) = (outer.word, outer.words);
        (self.is_target, self.is_open) = (outer.is_target, outer.is_open);
        (self.before, self.below, self.has_entered) = (outer.before, outer.below, outer.has_entered);
        is_known
    }

    /// Reads a substitution whose first sign was read, and makes its word one that is not known.
    fn substitution(&mut self) -> bool {
        self.word().is_unknown = true;
        self.rest.next_if_eq(&'(').is_some() && self.inside()
    }

    /// Reads a substitution in backquotes. A backslash in it has a meaning of its own.
    fn backquoted(&mut self) -> bool {
        self.word().is_unknown = true;
        let mut line = String::new();
        loop {
            match self.rest.next() {
                Some('`') => break,
                None | Some('\\') => return false,
                Some(c) => line.push(c),
            }
        }
        if self.nested >= NESTED {
            return false;
        }
        let mut reader = Reader::new(&line, self.here, &self.below, self.nested + 1);
        reader.read_to(None);
        self.found.extend(reader.found);
        true
    }

    /// Reads a shell of its own, where one can begin: elsewhere a parenthesis means something else.
    fn subshell(&mut self) -> bool {
        let is_free = self.word.is_none() && !self.is_target && !self.is_open;
        if !is_free || !self.words.iter().all(Word::is_reserved) || !self.inside() {
            return false;
        }
        // Nothing but redirections follows.
        self.is_open = true;
        true
    }

    /// False where the rest of the line is not certain.
    fn take_in(&mut self, c: char) -> bool {
        match c {
            ' ' | '\t' => self.end_word(),
            // A line that ends behind `&&`, `||` or `|` goes on with the next one.
            '\n' if self.is_between() => {}
            '\n' | ';' => return self.end_command(End::Other),
            '|' => {
                let is_or = self.rest.next_if(|next| "|&".contains(*next)) == Some('|');
                return self.end_command(if is_or { End::Or } else { End::Pipe });
            }
            // Some shells write both outputs to a file, others begin another command here.
            '&' if self.rest.next_if_eq(&'>').is_some() => {
                self.rest.next_if_eq(&'>');
                self.end_word();
                (self.is_open, self.is_target) = (true, true);
            }
            '&' => {
                let is_and = self.rest.next_if_eq(&'&').is_some();
                return self.end_command(if is_and { End::And } else { End::Other });
            }
            '<' | '>' => return self.redirect(c),
            '#' if self.word.is_none() => while self.rest.next_if(|next| *next != '\n').is_some() {},
            '\'' => return self.single_quoted(),
            '"' => return self.double_quoted(),
            '\\' => match self.rest.next() {
                Some('\n') => {}
                Some(next) => self.word().push_quoted(next),
                None => return false,
            },
            '`' => return self.backquoted(),
            '(' => return self.subshell(),
            ')' => return false,
            '$' if self.rest.peek() == Some(&'(') => return self.substitution(),
            '$' if self.rest.peek().is_some_and(|next| "{'\"".contains(*next)) => return false,
            '$' | '*' | '?' | '[' | '~' => self.word().push_unknown(c),
            _ => self.word().push(c),
        }
        true
    }

    /// Whether nothing was read since a sign that another command has to follow.
    fn is_between(&self) -> bool {
        let is_empty = self.word.is_none() && self.words.is_empty() && !self.is_target && !self.is_open;
        is_empty && self.before != End::Other
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn single_quoted(&mut self) -> bool {
        self.word().is_quoted = true;
        while let Some(c) = self.rest.next() {
            if c == '\'' {
                return true;
            }
            self.word().push_quoted(c);
        }
        false
    }

    fn double_quoted(&mut self) -> bool {
        self.word().is_quoted = true;
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return true,
                '`' if !self.backquoted() => return false,
                '`' => {}
                '$' if self.rest.peek() == Some(&'(') => {
                    if !self.substitution() {
                        return false;
                    }
                }
                '$' if self.rest.peek() == Some(&'{') => return false,
                '$' => self.word().push_unknown(c),
                '\\' => match self.rest.next() {
                    Some('\n') => {}
                    Some(next) => {
                        if !"\"\\$`".contains(next) {
                            self.word().push_quoted('\\');
                        }
                        self.word().push_quoted(next);
                    }
                    None => return false,
                },
                _ => self.word().push_quoted(c),
            }
        }
        false
    }

    fn redirect(&mut self, c: char) -> bool {
        if self.word.as_ref().is_some_and(Word::is_number) {
            self.word = None;
        }
        self.end_word();
        if c == '<' && self.rest.peek() == Some(&'<') {
            return false;
        }
        let seconds = if c == '<' { "&>" } else { "&>|" };
        self.rest.next_if(|next| seconds.contains(*next));
        self.is_target = true;
        true
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let is_target = std::mem::take(&mut self.is_target);
        if !is_target && !self.is_open {
            self.words.push(word);
        }
    }

    /// The folder that `cd` goes to with this path, from the one where the line starts; none for one elsewhere.
    fn entered(&self, to: &str) -> Option<String> {
        let (from, rest) = match to.starts_with('/') {
            true => ("", to.strip_prefix(self.here.trim_end_matches('/'))?),
            false => (self.below.as_str(), to),
        };
        let is_inside = !to.starts_with('/') || rest.is_empty() || rest.starts_with('/');
        let names = from.split('/').chain(rest.split('/')).filter(|name| !matches!(*name, "" | "."));
        let names: Vec<&str> = names.collect();
        let is_known = !to.is_empty() && !to.starts_with('-') && !names.contains(&"..");
        (is_inside && is_known).then(|| names.join("/"))
    }

    /// False where the commands after it are not certain: they run in a folder that is not known, or are those of `case` or of a function.
    fn end_command(&mut self, end: End) -> bool {
        self.end_word();
        self.is_target = false;
        let before = std::mem::replace(&mut self.before, end);
        let (words, is_open) = (std::mem::take(&mut self.words), std::mem::take(&mut self.is_open));
        // With a variable in front a `cd` may go elsewhere, and behind `!` the next command runs if it fails.
        let is_plain = !words.iter().any(|word| word.is_assignment || word.text == "!");
        let words = words.into_iter().skip_while(Word::is_reserved).skip_while(|word| word.is_assignment);
        let words: Vec<Word> = words.collect();
        let length = words.len();
        let known = words.into_iter().take_while(Word::is_known);
        let words: Vec<String> = known.map(|word| word.text).collect();
        let stays = !self.has_entered || matches!(end, End::And | End::Pipe);
        let is_whole = words.len() == length && !is_open;
        let (to, moved) = match &words[..] {
            [] => return stays,
            [cd, to] if cd == "cd" && is_whole && is_plain => (self.entered(to), cd.as_str()),
            [run, rest @ ..] if matches!(run.as_str(), "builtin" | "command") => {
                (None, rest.iter().find(|word| !word.starts_with('-')).map_or("", String::as_str))
            }
            [program, ..] => (None, program.as_str()),
        };
        // A function runs where it is called, if it is.
        let goes_on = stays && !MOVES.contains(&moved) && !matches!(moved, "case" | "function");
        // After `||` the next command also runs without it, and in a pipe it moves another shell.
        let moves_this = end == End::And && !matches!(before, End::Or | End::Pipe);
        self.found.push(SimpleCommand { words, is_whole, below: self.below.clone() });
        match to {
            Some(to) if to == self.below => stays,
            Some(to) if moves_this => {
                (self.below, self.has_entered) = (to, true);
                true
            }
            _ => goes_on,
        }
    }
}
