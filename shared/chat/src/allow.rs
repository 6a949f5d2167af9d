//! The rules that people grant with "always here" or "never here": the rule that a call would get, and the calls that a rule covers. A rule that denies
//! covers what the rule inside of it covers, and wins over all others.
//!
//! A rule is compared with words, never with text. So a command counts only when its words are known without a shell: it is given as words,
//! or as a plain line, which has no character that means something to a shell. Of the other arguments, the folder is part of the rule,
//! since the same words run other files elsewhere. A command with standard input has no rule, because an interpreter runs what it reads
//! there. The time limit does not matter: a longer run can do nothing that two runs cannot. The network is not an argument: the
//! installation gives it to all commands or to none. A command whose files are kept has no rule: a rule would be for all places.
//!
//! A rule that denies looks further: at each command that a line runs for certain (`shell`), at the folder, and at the places of files that are kept. A call
//! of several commands is denied with one of them.

use crate::{
    gate::GateRequest,
    shell::{self, SimpleCommand},
};
use domain::{FilePath, Mode, PermissionRule, ThreadAgent, json_length};
use ports::SERVED_FILES;
use serde::Deserialize;
use tools::{Access, Effects, ToolKind};

/// The longest rule, as JSON, in bytes: people read it before they grant it, and the view of the chat has all of them.
const MAX_RULE: usize = 1_000;

/// The note for people beside the reason of a request whose call has a rule that is too long to be offered.
pub(crate) const NO_RULE: &str =
    "; a rule for it would be too long to be kept, so it can be neither always allowed nor always denied";

/// Whether a rule is too long to be kept.
pub(crate) fn is_too_long(rule: &PermissionRule) -> bool {
    json_length(rule) > MAX_RULE
}

/// The arguments of a command. It has no rule if there is an argument that is not known here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: Option<String>,
    words: Option<Vec<String>>,
    folder: Option<String>,
    stdin: Option<String>,
    #[serde(rename = "timeout_s")]
    _timeout_s: Option<u64>,
}

/// The arguments of a command that rules which deny look at.
#[derive(Deserialize)]
struct Runs {
    command: Option<String>,
    words: Option<Vec<String>>,
    folder: Option<String>,
}

/// The places at which a command keeps files.
#[derive(Default, Deserialize)]
struct Keeps {
    #[serde(default)]
    keep: Vec<KeptAt>,
}

#[derive(Deserialize)]
struct KeptAt {
    to: FilePath,
}

/// A command whose words are known.
pub(crate) struct PlainCommand {
    words: Vec<String>,
    /// Whether these are all words: a part of a line may have further ones, which are not known.
    is_whole: bool,
    folder: FilePath,
}

impl PlainCommand {
    pub fn of(args: &str) -> Option<Self> {
        let Arguments { command, words, folder, stdin, .. } = serde_json::from_str(args).ok()?;
        let words = match (command, words) {
            (Some(line), None) => words_of(&line)?,
            (None, Some(words)) if !words.is_empty() => words,
            _ => return None,
        };
        let folder = folder_of(folder)?;
        stdin.is_none().then_some(Self { words, is_whole: true, folder })
    }

    /// All commands that a call runs for certain, in its folder. One of a plain line is among them as it stands. `cwd` is the root of the call's
    /// folders on its machine, where that is not the one of workspaces.
    pub fn all(args: &str, cwd: Option<&str>) -> Vec<Self> {
        let Ok(Runs { command, words, folder }) = serde_json::from_str(args) else { return Vec::new() };
        let Some(folder) = folder_of(folder) else { return Vec::new() };
        let here = cwd.map_or_else(|| ThreadAgent::cwd_of(&folder), str::to_owned);
        let found: Vec<SimpleCommand> = match (command, words) {
            (Some(line), None) => {
                let plain = words_of(&line).map(SimpleCommand::whole);
                plain.into_iter().chain(shell::in_line(&line, &here)).collect()
            }
            (None, Some(words)) if !words.is_empty() => shell::in_words(words, &here),
            _ => Vec::new(),
        };
        let of = |SimpleCommand { words, is_whole, below }| {
            Some(Self { words, is_whole, folder: folder.join(&below).ok()? })
        };
        found.into_iter().filter_map(of).collect()
    }

    /// The rule for this command: its program and its subcommand if it has one, else all of it. Of a program that runs another one, as `timeout 10`, the words in front
    /// of that one belong to the rule. None where neither is known.
    pub fn rule(self) -> Option<PermissionRule> {
        let place = shell::place_of_command(&self.words);
        place.and_then(|at| self.prefix(at)).or_else(|| {
            let Self { words, is_whole, folder } = self;
            is_whole.then_some(PermissionRule::Command { words, folder })
        })
    }

    /// The rule for the program at this place in its words, and its subcommand, with the words in front of them; none for a command without a subcommand.
    fn prefix(&self, at: usize) -> Option<PermissionRule> {
        let (program, subcommand) = (self.words.get(at)?, self.words.get(at + 1)?);
        let words =
            self.words.get(..at + 2).filter(|_| PermissionRule::is_plain(program) && is_subcommand(subcommand))?;
        Some(PermissionRule::CommandPrefix { words: words.to_vec(), folder: self.folder.clone() })
    }

    /// The rule that earlier versions offered for a program that runs another one: its first two words. Calls are denied by such rules still.
    fn first_words(&self) -> Option<PermissionRule> {
        let runs_itself = shell::place_of_command(&self.words) == Some(0);
        self.prefix(0).filter(|_| !runs_itself)
    }

    /// Whether a rule that allows covers it. A rule that ends in front of the command that another program runs would allow every command, and allows none.
    pub fn is_allowed_by(&self, rule: &PermissionRule) -> bool {
        let ends_before = |length: usize| match shell::place_of_command(&self.words) {
            Some(0) => false,
            Some(at) => length < at + 2,
            None => true,
        };
        let is_too_wide = matches!(rule, PermissionRule::CommandPrefix { words, .. } if ends_before(words.len()));
        !is_too_wide && self.is_covered_by(rule)
    }

    pub fn is_covered_by(&self, rule: &PermissionRule) -> bool {
        match rule {
            PermissionRule::CommandPrefix { words, folder } => {
                !words.is_empty() && self.words.starts_with(words) && self.folder == *folder
            }
            PermissionRule::Command { words, folder } => {
                self.is_whole && self.words == *words && self.folder == *folder
            }
            PermissionRule::File { .. } | PermissionRule::Tool { .. } | PermissionRule::Deny { .. } => false,
        }
    }
}

/// The folder that a command runs in; none for a path that is none.
fn folder_of(folder: Option<String>) -> Option<FilePath> {
    folder.map_or(Some(FilePath::root()), |folder| FilePath::parse(&folder).ok())
}

/// The words of a plain line; none for a line that a shell may take for something else. That includes a line that begins with an
/// assignment.
fn words_of(line: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
    let is_command = words.first().is_some_and(|program| !program.contains('='));
    let is_plain = is_command && words.iter().all(|word| PermissionRule::is_plain(word));
    is_plain.then(|| words.into_iter().map(str::to_owned).collect())
}

/// Whether a word is the name of a subcommand, as in `cargo test`, and neither an option nor a file.
fn is_subcommand(word: &str) -> bool {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !word.is_empty() && !word.starts_with('-') && word.chars().all(is_name)
}

/// The rule for a call that gives one file a new content. A call that moves, removes or makes a folder may touch more than it names.
fn of_file(effects: &Effects) -> Option<PermissionRule> {
    let mut changed = effects.touches.iter().filter(|touch| touch.access != Access::Read);
    let one = changed.next().filter(|touch| touch.access == Access::Write)?;
    let is_only = changed.all(|other| other.access == Access::Write && other.path == one.path);
    is_only.then(|| PermissionRule::File { path: one.path.clone() })
}

/// The rule for a tool of a server. The server alone knows the meaning of its arguments, so they are no part of the rule. A file of a server is read under a rule
/// for this server's files: no tool has such a name.
fn of_tool(request: &GateRequest<'_>) -> PermissionRule {
    let file = request.effects.touches.first().filter(|_| !tools::is_served(request.tool));
    let server = file.and_then(|touch| touch.path.as_str().strip_prefix(SERVED_FILES)?.split('/').nth(1));
    let tool = match server {
        Some(server) => format!("{} {SERVED_FILES}/{server}", request.tool),
        None => request.tool.to_owned(),
    };
    PermissionRule::Tool { tool }
}

/// Whether rules count in this chat: in `plan` mode nothing is permitted that people are asked about, and the agent of a task has its flow.
fn count(request: &GateRequest<'_>) -> bool {
    request.config.mode != Mode::Plan && request.config.agent.is_none()
}

/// Whether a rule may be for calls of this kind.
pub(crate) fn may_have_rule(kind: ToolKind) -> bool {
    match kind {
        ToolKind::Exec | ToolKind::Write | ToolKind::Served => true,
        ToolKind::Read | ToolKind::Ask | ToolKind::Arrange => false,
    }
}

/// The rule that a person grants who says that this call is always allowed; none where there is none to grant.
pub(crate) fn rule(request: &GateRequest<'_>) -> Option<PermissionRule> {
    own(request).filter(|rule| count(request) && !is_too_long(rule))
}

/// The note for people about a call that is offered no rule because the rule would be too long; empty for others.
pub(crate) fn note(request: &GateRequest<'_>) -> &'static str {
    if own(request).is_some_and(|rule| count(request) && is_too_long(&rule)) { NO_RULE } else { "" }
}

/// The rule that is for this call, in every mode and however long.
fn own(request: &GateRequest<'_>) -> Option<PermissionRule> {
    match request.effects.kind {
        ToolKind::Exec => PlainCommand::of(request.args).and_then(PlainCommand::rule),
        ToolKind::Write => of_file(request.effects),
        ToolKind::Served => Some(of_tool(request)),
        ToolKind::Read | ToolKind::Ask | ToolKind::Arrange => None,
    }
}

/// The rules that are for this call, for each command in it, and for each of these files that a command may keep: standing rules that deny are looked
/// for by them.
pub(crate) fn all(request: &GateRequest<'_>, files: &[FilePath]) -> Vec<PermissionRule> {
    match request.effects.kind {
        ToolKind::Exec => {
            // An older log has the ids of the rules without their files.
            let kept = request.effects.changed().map(|path| PermissionRule::File { path: path.clone() });
            of_command(request.args, files).into_iter().chain(kept).collect()
        }
        ToolKind::Write | ToolKind::Served | ToolKind::Read | ToolKind::Ask | ToolKind::Arrange => {
            own(request).into_iter().collect()
        }
    }
}

/// The rules that are for a call of `exec`, for each command in it, and for each of these files that it may keep: a place may be that of a folder.
pub(crate) fn of_command(args: &str, files: &[FilePath]) -> Vec<PermissionRule> {
    let Keeps { keep } = serde_json::from_str(args).unwrap_or_default();
    let kept = files.iter().filter(|file| keep.iter().any(|place| file.is_within(&place.to)));
    let files = kept.map(|path| PermissionRule::File { path: path.clone() });
    rules_of(PlainCommand::all(args, None)).into_iter().chain(files).collect()
}

/// The rules by which these commands may be denied, each once.
pub(crate) fn rules_of(commands: Vec<PlainCommand>) -> Vec<PermissionRule> {
    let mut rules = Vec::new();
    for rule in commands.into_iter().flat_map(|command| [command.first_words(), command.rule()]).flatten() {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

/// Whether a rule that counts in this turn allows the call.
pub(crate) fn is_covered(request: &GateRequest<'_>) -> bool {
    !request.permissions.is_empty() && count(request) && covering(request, request.permissions.iter()).is_some()
}

/// The rule of the request that denies the call, or a command in it, if there is one. It counts in every mode, under every plan, and in the turns of all people: rights
/// only ever allow more.
pub(crate) fn denying(request: &GateRequest<'_>) -> Option<PermissionRule> {
    let mut denied = request.permissions.iter().filter_map(PermissionRule::denies);
    let covers = match request.effects.kind {
        ToolKind::Exec => {
            let commands = PlainCommand::all(request.args, None);
            denied.find(|rule| {
                keeps_at(request.effects, rule) || commands.iter().any(|command| command.is_covered_by(rule))
            })
        }
        ToolKind::Write | ToolKind::Served | ToolKind::Read | ToolKind::Ask | ToolKind::Arrange => {
            covering(request, denied)
        }
    };
    Some(covers?.clone().denied())
}

/// Whether a command may keep a file at the path of a rule, or in a folder around it.
fn keeps_at(effects: &Effects, rule: &PermissionRule) -> bool {
    matches!(rule, PermissionRule::File { path } if effects.changed().any(|place| path.is_within(place)))
}

/// The first of these rules that covers the call.
fn covering<'a>(
    request: &GateRequest<'_>,
    mut rules: impl Iterator<Item = &'a PermissionRule>,
) -> Option<&'a PermissionRule> {
    match request.effects.kind {
        ToolKind::Exec => {
            let command = PlainCommand::of(request.args)?;
            rules.find(|rule| command.is_allowed_by(rule))
        }
        ToolKind::Write => {
            let own = of_file(request.effects)?;
            rules.find(|rule| **rule == own)
        }
        ToolKind::Served => {
            let own = of_tool(request);
            rules.find(|rule| **rule == own)
        }
        ToolKind::Read | ToolKind::Ask | ToolKind::Arrange => None,
    }
}
