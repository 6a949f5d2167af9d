//! The commands in a line for a shell, as far as they are certain without running it: rules that deny look for them. No line is refused for a command
//! that it does not run, so a line is read up to the first sign whose meaning depends on more than the line, as a document in the line. The rest
//! of the line is not known, nor are words with a variable, a pattern or a substitution in them. The commands in a substitution and in a shell of its own, in
//! parentheses, are known; and those that another program runs, as `sudo` does ([`wrappers`]).
//!
//! A command runs in the folder where the line starts, or below it where `cd … &&` is in front of it: after a `cd` that may fail the folder is not known.

mod reader;
mod wrappers;

use reader::Reader;
pub(crate) use reader::SimpleCommand;
pub(crate) use wrappers::place_of_command;
use wrappers::{WrappedCommand, inner};

/// The most commands of a line that are looked at.
const MOST: usize = 256;
/// How many programs may run one another.
const DEPTH: usize = 4;

/// The commands that a shell runs for this line in the folder where it starts, which has the path `here` for it.
pub(crate) fn in_line(line: &str, here: &str) -> Vec<SimpleCommand> {
    let mut found = Vec::new();
    collect(line, (here, ""), 0, &mut found);
    found
}

/// The words of the commands that a shell runs for a line, each up to the first word that is not certain.
pub fn commands_in(line: &str) -> Vec<Vec<String>> {
    in_line(line, "/").into_iter().map(|simple| simple.words).collect()
}

/// A command that is given by its words; and what it runs.
pub(crate) fn in_words(words: Vec<String>, here: &str) -> Vec<SimpleCommand> {
    let mut found = Vec::new();
    take_in(SimpleCommand::whole(words), here, 0, &mut found);
    found
}

fn collect(line: &str, (here, below): (&str, &str), depth: usize, found: &mut Vec<SimpleCommand>) {
    for simple in Reader::read(line, here, below) {
        take_in(simple, here, depth, found);
    }
}

fn take_in(simple: SimpleCommand, here: &str, depth: usize, found: &mut Vec<SimpleCommand>) {
    if found.len() >= MOST {
        return;
    }
    let runs = inner(&simple.words, simple.is_whole).filter(|_| depth < DEPTH);
    let below = simple.below.clone();
    found.push(simple);
    match runs {
        Some(WrappedCommand::Line(line)) => collect(&line, (here, &below), depth + 1, found),
        Some(WrappedCommand::Command(words, is_whole)) => {
            take_in(SimpleCommand { words, is_whole, below }, here, depth + 1, found);
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The commands of a line, each with `…` where more words may follow.
    fn read(line: &str) -> Vec<String> {
        let shown = |SimpleCommand { words, is_whole, below }: SimpleCommand| {
            let place = if below.is_empty() { String::new() } else { format!("{below}: ") };
            place + &words.join(" ") + if is_whole { "" } else { " …" }
        };
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
            ("ls; (git push; ls >out) 2>&1 | tail", &["ls", "git push", "ls", "tail"]),
            ("if (git push); then ls; fi", &["git push", "ls", "fi"]),
            ("echo $(git push) now; ls", &["git push", "echo …", "ls"]),
            ("echo \"it is $(git push \"a)b\")\"; ls", &["git push a)b", "echo …", "ls"]),
            ("A=$(git push) make", &["git push", "make"]),
            ("echo `git push`; ls", &["git push", "echo …", "ls"]),
            ("sudo -n env A=b git push", &["sudo -n env A=b git push", "env A=b git push", "git push"]),
            ("git ls-files | xargs git push", &["git ls-files", "xargs git push", "git push …"]),
            ("eval 'ls; git push'", &["eval ls; git push", "ls", "git push"]),
            ("sudo bash -c 'git push'", &["sudo bash -c git push", "bash -c git push", "git push"]),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn nothing_is_certain_after_a_sign_that_depends_on_more_than_the_line() {
        for (line, expected) in [
            ("echo $((1 + 2)); git push", &["echo …"][..]),
            ("((git push))", &[]),
            ("echo `ls \\`git push\\``; git push", &["echo …"]),
            ("echo $(case x in y) git push;; esac)", &["case x in …", "echo …"]),
            ("diff <(git push) x", &["diff …"]),
            ("for ((i = 0; i < 2; i++)); do git push; done", &["for …"]),
            ("(git push", &["git push"]),
            ("echo ${A:-;git push}", &["echo …"]),
            ("echo $'a\\'; git push'", &["echo …"]),
            ("f() { git push; }", &[]),
            ("a=(git push)", &[]),
            ("cat <<END\ngit push\nEND", &["cat …"]),
            ("case a in b) git push;; esac", &["case a in …"]),
            ("echo 'git push", &["echo …"]),
            ("make; cd app && git push | tail; ls", &["make", "cd app", "app: git push", "app: tail"]),
            ("cd app; git push", &["cd app"]),
            ("cd app || git push", &["cd app"]),
            ("cd app | git push", &["cd app"]),
            ("ls || cd app && git push", &["ls", "cd app"]),
            ("ls | cd app && git push", &["ls", "cd app"]),
            ("! cd app && git push", &["cd app"]),
            ("CDPATH=/ cd app && git push", &["cd app"]),
            ("command cd app && git push", &["command cd app", "cd app"]),
            ("command -p cd app && git push", &["command -p cd app", "cd app"]),
            ("cd app &&\n\n git push", &["cd app", "app: git push"]),
            ("ls ||\n cd app && git push", &["ls", "cd app"]),
            ("function f {\n git push\n}", &["function f {"]),
            ("eval 'cd app' && git push", &["eval cd app", "cd app"]),
            ("ls || make && cd app && git push", &["ls", "make", "cd app", "app: git push"]),
            ("cd app/../.. && git push", &["cd app/../.."]),
            ("cd - && git push", &["cd -"]),
            ("cd /srv/app/a/ && cd ./b && git push", &["cd /srv/app/a/", "a: cd ./b", "a/b: git push"]),
            ("cd /srv/apple && git push", &["cd /srv/apple"]),
            ("(cd app && git push); git push", &["cd app", "app: git push", "git push"]),
            ("cd app && bash -c 'git push'", &["cd app", "app: bash -c git push", "app: git push"]),
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
        assert_eq!(found.last(), Some(&SimpleCommand::whole(words(&["git", "push"]))));
        for open in ["(", "$(", "echo `"] {
            assert!(in_line(&open.repeat(10_000), "/").len() <= MOST, "{open}");
        }
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
            let expected = SimpleCommand::whole(vec![word, "x".into()]);
            prop_assert!(found.contains(&expected), "{:?}", found);
        }
    }
}
