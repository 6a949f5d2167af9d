//! Every way to a path asks the policies: a workspace is opened for a party, and the places that open it as BuildScale itself, where nothing is
//! decided, are listed here with their reasons.

use crate::repository::{none, rust_files};
use std::collections::BTreeMap;

/// The files that open a workspace as BuildScale itself, how often, and why nothing is decided there.
const PLATFORM: &[(&str, usize, &str)] = &[
    ("functions/cloud/src/programs.rs", 1, "the mirror of a sandbox gets what everybody may read, by `bring_to`"),
    ("functions/hub/src/backup/make.rs", 1, "a backup has everything; the operator makes it"),
    ("shared/chat/src/commands.rs", 1, "the file of a new chat, at the path that its id gives"),
    ("shared/chat/src/delete.rs", 1, "the file of a deleted chat, at the path that its id gives"),
    ("shared/chat/src/fork.rs", 1, "the file of a fork, at the path that its id gives"),
    (
        "shared/chat/src/perform.rs",
        2,
        "the plan that a person approved is compared by its id and not shown; a command is ended by its id",
    ),
    (
        "shared/chat/src/team/plan_poll.rs",
        1,
        "the claims of an agent that has ended are freed, also where its persona may not write",
    ),
    (
        "functions/assembly/src/sweeps/ended.rs",
        1,
        "whether the file of a deleted chat is still there, before its log goes",
    ),
    ("shared/chat/src/transcript.rs", 2, "the file of a chat follows its log"),
    ("shared/documents/src/lib.rs", 1, "the Markdown of a document is beside it, under the same policies"),
    ("shared/engine/src/artifact/flush.rs", 1, "artifacts are read with the history of their task"),
    (
        "shared/engine/src/flows.rs",
        5,
        "manifests of flows are of everybody, and a worker reads them without a caller; their tools are compared with those of the workspace",
    ),
    (
        "shared/engine/src/handoff/driver.rs",
        1,
        "a version is compared with triggers; one that not everybody may read starts nothing",
    ),
    ("shared/engine/src/perform/clear.rs", 1, "the artifacts of a deleted task"),
    ("shared/engine/src/perform/command.rs", 1, "a command is ended by its id"),
    ("shared/engine/src/memory/semantic.rs", 1, "the usage of a model is noted for the workspace"),
    (
        "shared/evaluation/src/case.rs",
        2,
        "the workspace of a case is made by its evaluation, and nobody else is in it; golden files are written in the folder of their flow alone",
    ),
    ("shared/evaluation/src/drive.rs", 1, "reports of evaluations, at the path that the id gives"),
    ("shared/search/src/lib.rs", 1, "an index has all texts; each result is asked for with the handle of its caller"),
    (
        "shared/workspace/src/homes.rs",
        2,
        "the home of a new member, at the path that their id gives; the home of one who leaves is erased, and nothing of it is shown",
    ),
    ("shared/workspace/src/retention.rs", 1, "what is old in the trash is purged for all"),
];

/// Code that is not a test.
fn is_product(path: &str) -> bool {
    (path.starts_with("shared/") || path.starts_with("functions/"))
        && path.contains("/src/")
        && !path.ends_with("tests.rs")
        && !path.starts_with("shared/testkit/")
        && path != "shared/workspace/src/party.rs"
}

#[test]
fn nothing_is_opened_past_the_policies_but_for_a_reason_that_is_listed() {
    let mut found = BTreeMap::new();
    for (path, text) in rust_files("").into_iter().filter(|(path, _)| is_product(path)) {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let times = code.matches("Access::platform(").count();
        if times > 0 {
            found.insert(path, times);
        }
    }
    let listed: BTreeMap<String, usize> =
        PLATFORM.iter().map(|(path, times, _)| ((*path).to_owned(), *times)).collect();
    let mut faults = Vec::new();
    for (path, times) in &found {
        match listed.get(path) {
            Some(expected) if expected == times => {}
            Some(expected) => faults.push(format!("{path}: {times} times, {expected} are listed")),
            None => faults.push(format!("{path}: open it for a principal, or list it here with the reason")),
        }
    }
    let gone = listed.keys().filter(|path| !found.contains_key(*path));
    faults.extend(gone.map(|path| format!("{path}: opens nothing as BuildScale itself; take it off the list")));
    none(faults, "A workspace is opened for the party that asks (`workspace::Access::of`)");
}

/// The functions that decide, or that ask the one that does.
const DECIDES: [&str; 10] = [
    "demand",
    "demand_tree",
    "follow",
    "has_history",
    "may_read",
    "may_read_in",
    "only_shown",
    "platform_alone",
    "shown_names",
    "shows",
];
/// A value that shows what exists for its party and nothing else.
const SHOWS: &str = "Places::of(self)";

/// The public functions of a workspace that reach no decision, and why they need none.
const UNDECIDED: &[(&str, &str)] = &[
    ("address_for", "where a content goes whose digest the caller knows; its file is decided on when it is written"),
    ("applied", "the change of a call is known to those that have the id of the call"),
    ("begin", "a note that a call began, by its id; the command itself is decided on by `hidden_from_commands`"),
    ("begun", "the same"),
    ("bring_to", "a sandbox gets the files of its manifest, which the index decides on"),
    ("converted", "by the digest of a content, for the converter"),
    ("decision", "is the decision"),
    ("explain", "is the decision, for others"),
    ("export", "asks `shows` and `may_read` for each path, in a task of its own"),
    ("handed_off", "a note of the driver of handoffs, by its id"),
    ("handoff", "a version that waits for the driver of handoffs, by its id"),
    ("hydrate", "the plain files of the disk, which nobody reads without a decision on their paths"),
    ("id", "is in the address of each request"),
    ("ids_tagged", "filters a list that was decided on"),
    ("knows_rewind", "by the id of a rewind; what it changed is decided on path by path"),
    ("latest", "the folder of the plain files; their paths are decided on"),
    ("length_of", "by the digest of a content, from a ticket that was signed for it"),
    ("not_begun", "as `begin`"),
    ("note_spent", "as `spend`"),
    ("now", "the clock"),
    ("party_name", "names its own party"),
    ("pieces", "by the digest of a content, from a version that was decided on"),
    ("receive", "a content whose digest the caller knows; its file is decided on when it is written"),
    ("receive_part", "the same"),
    ("remember_conversion", "by the digest of a content, from the converter"),
    ("resume", "as `address_for`"),
    ("sandboxes", "the machines of the installation"),
    ("settle_document", "the end of a conversion, from the converter"),
    ("spend", "adds to the usage of the workspace"),
    ("spent", "the usage of the workspace, which names no file"),
    ("start_nothing", "a switch of evaluations, in the workspaces that they made"),
    ("tags_of", "takes the description of a file, which the caller was shown"),
    ("unconverted", "what waits for the converter"),
    ("uploaded", "as `address_for`"),
];

/// A function over a workspace: its name, and its text on one line.
struct Function {
    name: String,
    /// Whether it is a method of `Workspace`.
    is_method: bool,
    /// Whether everybody may call it.
    is_public: bool,
    text: String,
}

/// The methods of `Workspace`, and the free functions that take one.
fn functions_of(text: &str) -> Vec<Function> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let (mut found, mut is_method) = (Vec::<Function>::new(), false);
    let mut end: Option<&str> = None;
    for line in code.lines() {
        match line {
            "impl Workspace {" => is_method = true,
            "}" => is_method = false,
            _ => {}
        }
        if let (Some(closing), Some(function)) = (end, found.last_mut()) {
            function.text.push(' ');
            function.text.push_str(line.trim());
            if line == closing {
                end = None;
            }
            continue;
        }
        let margin = if is_method { "    " } else { "" };
        let Some(head) = line.strip_prefix(margin).filter(|head| !head.starts_with(' ')) else { continue };
        let Some((before, after)) = head.split_once("fn ").filter(|(before, _)| {
            before.split_whitespace().all(|word| word.starts_with("pub") || matches!(word, "async" | "const"))
        }) else {
            continue;
        };
        let name = after.split(['(', '<']).next().unwrap_or_default().to_owned();
        let is_public = is_method && before.starts_with("pub ");
        found.push(Function { name, is_method, is_public, text: line.trim().to_owned() });
        end = Some(if is_method { "    }" } else { "}" }).filter(|_| !line.ends_with('}'));
    }
    // Calls that are written over several lines.
    for function in &mut found {
        function.text = function.text.replace(" .", ".").replace("( ", "(");
    }
    found.retain(|function| {
        let head = function.text.split('{').next().unwrap_or_default();
        head.contains("self") || head.contains("Workspace")
    });
    found
}

/// Whether a function calls another one on its workspace: as its method, or with the workspace as its first argument.
fn calls(function: &Function, (name, is_method): (&str, bool)) -> bool {
    let body = function.text.split_once('{').map_or("", |(_, body)| body);
    // Another name may end with this one.
    let is_called = |call: String| {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        body.match_indices(&call).any(|(at, _)| !body[..at].ends_with(is_name))
    };
    ["self", "this", "here", "workspace"].iter().any(|of| match is_method {
        true => is_called(format!("{of}.{name}(")),
        false => is_called(format!("{name}({of}")) || is_called(format!("{name}(&{of}")),
    })
}

/// Of a workspace's public functions, those from which no decision is reached.
fn undecided(functions: &[Function]) -> Vec<&str> {
    let mut decided: Vec<(&str, bool)> = DECIDES.map(|name| (name, true)).to_vec();
    let mut rest: Vec<&Function> = functions.iter().filter(|function| !DECIDES.contains(&&*function.name)).collect();
    loop {
        let is_decided =
            |function: &Function| function.text.contains(SHOWS) || decided.iter().any(|known| calls(function, *known));
        let (more, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(|function| is_decided(function));
        rest = others;
        if more.is_empty() {
            return rest.into_iter().filter(|function| function.is_public).map(|function| &*function.name).collect();
        }
        decided.extend(more.into_iter().map(|function| (&*function.name, function.is_method)));
    }
}

#[test]
fn each_way_into_a_workspace_reaches_a_decision_or_says_why_it_needs_none() {
    let sources = rust_files("shared/workspace/src");
    let functions: Vec<Function> =
        sources.iter().filter(|(path, _)| is_product(path)).flat_map(|(_, text)| functions_of(text)).collect();
    let found = undecided(&functions);
    let (mut faults, is_listed) = (Vec::new(), |name: &str| UNDECIDED.iter().any(|(listed, _)| *listed == name));
    for name in found.iter().filter(|name| !is_listed(name)) {
        faults.push(format!(
            "Workspace::{name}: ask `demand` for the action and the path, or list it here with the reason"
        ));
    }
    let gone = UNDECIDED.iter().filter(|(name, _)| !found.contains(name));
    faults.extend(gone.map(|(name, _)| format!("Workspace::{name}: is gone or decides now; take it off the list")));
    none(faults, "Each public function of `Workspace` asks the policies");
}

#[test]
fn a_function_that_forgets_to_ask_is_found() {
    let text = "impl Workspace {\n    pub async fn good(&self) {\n        self\n            .inner(1)\n    }\n    fn inner(&self, n: u8) {\n        self.demand(Action::Read);\n    }\n    pub fn bad(&self) {\n        self.table.get();\n    }\n    pub fn not_good(&self) {\n        good(self);\n    }\n}\n\npub fn free(n: u8) {\n}\n";
    assert_eq!(undecided(&functions_of(text)), ["bad", "not_good"]);
}
