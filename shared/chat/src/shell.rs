//! The commands in a line for a shell, as far as they are certain without running it: rules that deny look for them. No line is refused for a command
//! that it does not run, so a line is read up to the first sign whose meaning depends on more than the line: a substitution, a parenthesis, a document
//! in the line. What comes after it is not known, nor are words with a variable or a pattern in them.

use std::{iter::Peekable, str::Chars};

/// The most commands of a line that are looked at.
const MOST: usize = 256;
/// How many shells may start one another.
const DEPTH: usize = 4;
/// Words before a command that are no part of it.
const RESERVED: [&str; 10] = ["!", "{", "do", "elif", "else", "if", "then", "time", "until", "while"];
/// Commands after which the line goes on in another folder.
const MOVES: [&str; 3] = ["cd", "popd", "pushd"];
/// Shells that run the line after `-c`.
const SHELLS: [&str; 4] = ["bash", "dash", "sh", "zsh"];

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Simple {
    /// Its words, up to the first one that is not known.
    pub words: Vec<String>,
    /// Whether these are all.
    pub is_whole: bool,
}

/// The commands that a shell runs for this line in the folder where it starts, which has the path `here` for it.
pub(crate) fn in_line(line: &str, here: &str) -> Vec<Simple> {
    let mut found = Vec::new();
    collect((line, here), 0, &mut found);
    found
}

/// A command that is given by its words; and where it is a shell with a line, those of the line.
pub(crate) fn in_words(words: Vec<String>, here: &str) -> Vec<Simple> {
    let mut found = Vec::new();
    take_in((Simple { words, is_whole: true }, here), 0, &mut found);
    found
}

fn collect((line, here): (&str, &str), depth: usize, found: &mut Vec<Simple>) {
    for simple in Reader::read(line, here) {
        take_in((simple, here), depth, found);
    }
}

fn take_in((simple, here): (Simple, &str), depth: usize, found: &mut Vec<Simple>) {
    if found.len() >= MOST {
        return;
    }
    let line = shell_line(&simple.words).filter(|_| depth < DEPTH).map(str::to_owned);
    found.push(simple);
    if let Some(line) = line {
        collect((&line, here), depth + 1, found);
    }
}

/// The line that a shell runs which is started with these words, as in `bash -lc LINE`.
fn shell_line(words: &[String]) -> Option<&str> {
    let (program, rest) = words.split_first()?;
    let name = program.rsplit('/').next()?;
    if !SHELLS.contains(&name) {
        return None;
    }
    let is_flags = |word: &&String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphabetic() && c != 'o')
    };
    let flags = rest.iter().take_while(is_flags).count();
    let runs_a_line = rest[..flags].iter().any(|word| word.contains('c'));
    rest.get(flags).filter(|_| runs_a_line).map(String::as_str)
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

/// Whether a shell can have a variable of this name.
fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_first) && text.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

/// Whether a path is that of the folder `here`.
fn is_folder(path: &str, here: &str) -> bool {
    matches!(path, "." | "./") || path.starts_with('/') && path.trim_end_matches('/') == here.trim_end_matches('/')
}

/// Reads a line sign by sign.
struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    /// The folder that the shell starts in.
    here: &'a str,
    word: Option<Word>,
    /// The words of the command that is read.
    words: Vec<Word>,
    /// The next word is a file that is read or written.
    is_target: bool,
    /// Further words of the command are not certain.
    is_open: bool,
    found: Vec<Simple>,
}

impl<'a> Reader<'a> {
    fn read(line: &'a str, here: &'a str) -> Vec<Simple> {
        let mut reader = Self {
            rest: line.chars().peekable(),
            here,
            word: None,
            words: Vec::new(),
            is_target: false,
            is_open: false,
            found: Vec::new(),
        };
        while let Some(c) = reader.rest.next() {
            if !reader.take_in(c) {
                reader.word = None;
                reader.is_open = true;
                break;
            }
        }
        reader.end_command();
        reader.found
    }

    /// False where the rest of the line is not certain.
    fn take_in(&mut self, c: char) -> bool {
        match c {
            ' ' | '\t' => self.end_word(),
            '\n' | ';' => return self.end_command(),
            '|' => {
                self.rest.next_if(|next| "|&".contains(*next));
                return self.end_command();
            }
            // Some shells write both outputs to a file, others begin another command here.
            '&' if self.rest.next_if_eq(&'>').is_some() => {
                self.rest.next_if_eq(&'>');
                self.end_word();
                (self.is_open, self.is_target) = (true, true);
            }
            '&' => {
                self.rest.next_if_eq(&'&');
                return self.end_command();
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
            '`' | '(' | ')' => return false,
            '$' if self.rest.peek().is_some_and(|next| "({'\"".contains(*next)) => return false,
            '$' | '*' | '?' | '[' | '~' => self.word().push_unknown(c),
            _ => self.word().push(c),
        }
        true
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
                '`' => return false,
                '$' if self.rest.peek().is_some_and(|next| "({".contains(*next)) => return false,
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

    /// False where the line goes on in another folder.
    fn end_command(&mut self) -> bool {
        self.end_word();
        self.is_target = false;
        let (words, is_open) = (std::mem::take(&mut self.words), std::mem::take(&mut self.is_open));
        let words = words.into_iter().skip_while(Word::is_reserved).skip_while(|word| word.is_assignment);
        let words: Vec<Word> = words.collect();
        let length = words.len();
        let known = words.into_iter().take_while(Word::is_known);
        let words: Vec<String> = known.map(|word| word.text).collect();
        let Some(program) = words.first() else { return true };
        let is_whole = words.len() == length && !is_open;
        let stays = is_whole && matches!(&words[..], [cd, to] if cd == "cd" && is_folder(to, self.here));
        let moves = MOVES.contains(&program.as_str()) && !stays;
        self.found.push(Simple { words, is_whole });
        !moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The commands of a line, each with `…` where more words may follow.
    fn read(line: &str) -> Vec<String> {
        let shown = |simple: Simple| simple.words.join(" ") + if simple.is_whole { "" } else { " …" };
        in_line(line, "/srv/app").into_iter().map(shown).collect()
    }

    #[test]
    fn a_line_is_split_into_the_commands_that_it_runs() {
        for (line, expected) in [
            ("cargo test; ls", &["cargo test", "ls"][..]),
            ("cargo build && cargo test || git push & ls", &["cargo build", "cargo test", "git push", "ls"]),
            ("cargo test 2>&1 | tail -20", &["cargo test", "tail -20"]),
            ("cargo test >out.txt 2>>err all", &["cargo test all"]),
            ("cargo test &> out.txt all", &["cargo test …"]),
            ("make < in\nls # git push; git push", &["make", "ls"]),
            ("echo 'a; git push' \"b && git push\" c\\;d", &["echo a; git push b && git push c;d"]),
            ("'git' pu\"sh\"", &["git push"]),
            ("git \\\n push", &["git push"]),
            ("A=b C='d e' cargo test", &["cargo test"]),
            ("A=$B", &[]),
            ("if cargo test; then ! git push; else { make; }; fi", &["cargo test", "git push", "make", "}", "fi"]),
            ("for x in a b; do git push; done", &["for x in a b", "git push", "done"]),
            ("git push $BRANCH now", &["git push …"]),
            ("ls *.rs; $X git push; git pull", &["ls …", "git pull"]),
            ("bash -lc 'cargo test; ls'", &["bash -lc cargo test; ls", "cargo test", "ls"]),
            ("/bin/sh -e -c \"git push\" x; ls", &["/bin/sh -e -c git push x", "git push", "ls"]),
            ("bash script -c 'git push'", &["bash script -c git push"]),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn nothing_is_certain_after_a_sign_that_depends_on_more_than_the_line() {
        for (line, expected) in [
            ("cargo test; (git push)", &["cargo test"][..]),
            ("git push $(date) now", &["git push …"]),
            ("echo `git push`; git push", &["echo …"]),
            ("echo \"$(git push)\"; git push", &["echo …"]),
            ("echo ${A:-;git push}", &["echo …"]),
            ("echo $'a\\'; git push'", &["echo …"]),
            ("f() { git push; }", &[]),
            ("a=(git push)", &[]),
            ("cat <<END\ngit push\nEND", &["cat …"]),
            ("case a in b) git push;; esac", &["case a in …"]),
            ("echo 'git push", &["echo …"]),
            ("make; cd app && git push", &["make", "cd app"]),
            ("cd /srv && git push", &["cd /srv"]),
            ("cd /srv/app/ && git push; cd .; ls", &["cd /srv/app/", "git push", "cd .", "ls"]),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn shells_in_shells_come_to_an_end() {
        let nested = (0..8).fold("git push".to_owned(), |line, _| format!("sh -c {line:?}"));
        assert!(in_line(&nested, "/").len() <= DEPTH + 1, "{:?}", in_line(&nested, "/"));
        assert_eq!(in_line(&"ls;".repeat(1_000), "/").len(), MOST);
        let words = |of: &[&str]| of.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let found = in_words(words(&["bash", "-lc", "git push"]), "/");
        assert_eq!(found.last(), Some(&Simple { words: words(&["git", "push"]), is_whole: true }));
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "[a-z ='\"$`;|&<>(){}*?~#!\\\\\\n-]{0,60}") {
            for simple in in_line(&line, "/") {
                prop_assert!(!simple.words.is_empty(), "{}", line);
            }
        }

        /// Words without a sign that a shell knows are one command, whatever is around it.
        #[test]
        fn a_plain_command_is_found_between_others(
            word in "[a-z]{1,8}-[a-z]{1,8}",
            before in prop::sample::select(vec!["", "ls; ", "A=b ", "true && ", "echo 'x;' | "]),
            after in prop::sample::select(vec!["", "; ls", " 2>&1", " | tail", " &", " >out", "\n"]),
        ) {
            let found = in_line(&format!("{before}{word} x{after}"), "/");
            let expected = Simple { words: vec![word, "x".into()], is_whole: true };
            prop_assert!(found.contains(&expected), "{:?}", found);
        }
    }
}
