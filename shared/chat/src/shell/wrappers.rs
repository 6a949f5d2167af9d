//! Programs that run another command, which their words have in them: `env`, `sudo`, `xargs` and the like; and shells that run a line.

/// Shells that run the line after `-c`.
const SHELLS: [&str; 4] = ["bash", "dash", "sh", "zsh"];

/// The command, or the line, that a command has run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WrappedCommand {
    /// Its words, and whether these are all.
    Command(Vec<String>, bool),
    /// A line for a shell.
    Line(String),
}

/// A program that runs a command.
struct Wrapper {
    name: &'static str,
    /// Its options that stand alone. One that is not listed may mean that no command is run, or in another folder.
    alone: &'static [&'static str],
    /// Its options with a value.
    valued: &'static [&'static str],
    /// How many words stand between its options and the command.
    operands: usize,
    /// Whether variables may be set in front of the command.
    assigns: bool,
    /// Whether it gives the command further words.
    adds: bool,
}

const fn wrapper(name: &'static str, alone: &'static [&'static str], valued: &'static [&'static str]) -> Wrapper {
    Wrapper { name, alone, valued, operands: 0, assigns: false, adds: false }
}

const WRAPPERS: [Wrapper; 14] = [
    Wrapper { assigns: true, ..wrapper("env", &["-", "-i", "--ignore-environment"], &["-u", "--unset"]) },
    Wrapper {
        assigns: true,
        ..wrapper("sudo", &["-A", "-b", "-E", "-H", "-k", "-n", "-P", "-S"], &["-u", "--user", "-g", "--group", "-p"])
    },
    wrapper("doas", &["-n"], &["-u"]),
    wrapper("command", &["-p"], &[]),
    wrapper("builtin", &[], &[]),
    wrapper("exec", &["-c", "-l"], &["-a"]),
    wrapper("nohup", &[], &[]),
    wrapper("setsid", &["-f", "--fork", "-w", "--wait"], &[]),
    wrapper("nice", &[], &["-n", "--adjustment"]),
    wrapper("ionice", &["-t"], &["-c", "--class", "-n", "--classdata"]),
    wrapper("stdbuf", &[], &["-i", "--input", "-o", "--output", "-e", "--error"]),
    wrapper("time", &["-p", "-v"], &["-f", "-o"]),
    Wrapper {
        operands: 1,
        ..wrapper("timeout", &["--foreground", "--preserve-status", "-v"], &["-k", "--kill-after", "-s", "--signal"])
    },
    Wrapper {
        adds: true,
        ..wrapper("xargs", &["-0", "--null", "-r", "-t", "-x"], &["-n", "--max-args", "-L", "-P", "--max-procs", "-d"])
    },
];

impl Wrapper {
    /// The place of the command in the words after the program.
    fn command_at(&self, rest: &[String]) -> Option<usize> {
        let mut at = 0;
        while let Some(word) = rest.get(at).map(String::as_str).filter(|word| word.starts_with('-')) {
            at += 1;
            match word {
                "--" => break,
                _ if self.alone.contains(&word) || self.has_value(word) => {}
                _ if self.valued.contains(&word) => at += 1,
                _ => return None,
            }
        }
        at += self.operands;
        let set = rest.iter().skip(at).take_while(|word| self.assigns && is_assignment(word)).count();
        Some(at + set)
    }

    /// Whether a word is an option together with its value, as `-n1` and `--user=me`.
    fn has_value(&self, word: &str) -> bool {
        match word.starts_with("--") {
            true => word.split_once('=').is_some_and(|(option, _)| self.valued.contains(&option)),
            false => word.get(..2).is_some_and(|option| word.len() > 2 && self.valued.contains(&option)),
        }
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Whether a shell can have a variable of this name.
pub(super) fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_first) && text.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

/// The command, or the line, that a command with these words has run for certain. `is_whole` says whether these are all of its words.
pub(super) fn inner(words: &[String], is_whole: bool) -> Option<WrappedCommand> {
    let (program, rest) = words.split_first()?;
    let name = program.rsplit('/').next()?;
    if SHELLS.contains(&name) {
        return shell_line(rest).map(|line| WrappedCommand::Line(line.to_owned()));
    }
    if name == "eval" {
        return is_whole.then(|| WrappedCommand::Line(rest.join(" ")));
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    let words = rest.get(wrapper.command_at(rest)?..).filter(|words| !words.is_empty())?;
    Some(WrappedCommand::Command(words.to_vec(), is_whole && !wrapper.adds))
}

/// The place in these words of the command that runs in the end, behind programs that run another one: 0 for a command that runs itself. None where that
/// command is not certain.
pub(crate) fn place_of_command(words: &[String]) -> Option<usize> {
    let mut at = 0;
    loop {
        let (program, rest) = words.get(at..)?.split_first()?;
        let name = program.rsplit('/').next()?;
        if name == "eval" {
            return None;
        }
        let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) else { return Some(at) };
        at += 1 + wrapper.command_at(rest)?;
    }
}

/// The line that a shell runs which is started with these words, as in `bash -lc LINE`.
fn shell_line(rest: &[String]) -> Option<&str> {
    let is_flags = |word: &&String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphabetic() && c != 'o')
    };
    let flags = rest.iter().take_while(is_flags).count();
    let runs_a_line = rest.iter().take(flags).any(|word| word.contains('c'));
    rest.get(flags).filter(|_| runs_a_line).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_behind_programs_that_run_it() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let git = |is_whole| Some(WrappedCommand::Command(words("git push"), is_whole));
        for (line, expected) in [
            ("env -i --unset=C A=b git push", git(true)),
            ("/usr/bin/env git push", git(true)),
            ("env -S git push", None),
            ("env -C /tmp git push", None),
            ("env A=b", None),
            ("sudo -nE -u me git push", None),
            ("sudo -n -u me A=b git push", git(true)),
            ("sudo --user=me -- git push", git(true)),
            ("sudo -l git push", None),
            ("sudo -i git push", None),
            ("xargs -0 -n1 -P 4 git push", git(false)),
            ("xargs -I {} git push", None),
            ("timeout -k 5 10 git push", git(true)),
            ("timeout 10", None),
            ("nice -n 5 git push", git(true)),
            ("nice -5 git push", None),
            ("command git push", git(true)),
            ("command -v git push", None),
            ("stdbuf -oL git push", git(true)),
            ("eval git push", Some(WrappedCommand::Line("git push".into()))),
            ("bash -c ls", Some(WrappedCommand::Line("ls".into()))),
            ("git push", None),
        ] {
            assert_eq!(inner(&words(line), true), expected, "{line}");
        }
        for (line, place) in [
            ("git push", Some(0)),
            ("bash deploy", Some(0)),
            ("timeout -k 5 10 git push", Some(4)),
            ("/usr/bin/sudo -n env A=b nice git push", Some(5)),
            ("sudo -i git push", None),
            ("command -v git", None),
            ("eval git push", None),
            ("nice", None),
        ] {
            assert_eq!(place_of_command(&words(line)), place, "{line}");
        }
        assert_eq!(inner(&words("sudo git push"), false), git(false), "further words are not known");
        assert_eq!(inner(&words("eval git"), false), None);
    }
}
