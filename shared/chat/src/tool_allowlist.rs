//! The tool allowlist of a persona: the tools that its front matter lists, each with the paths that it may touch.
//!
//! An entry is the name of a tool, as `read`, or a name with a glob over whole paths, as `write(/projects/**/review.md)`. Several entries of
//! one tool add up, and a name alone is bounded by nothing. The entries are kept in the setup of the chat as they are written. So a process that does
//! not know globs takes such an entry for the name of an unknown tool, and refuses the call.

use crate::front_matter::{FrontMatter, words};
use domain::{ChatConfig, Code, Error, FilePath, ToolSpec};
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use tools::{Commands, Effects, Registry, SEARCH, ToolKind};

/// The tool that writes a whole file.
pub(crate) const WRITE: &str = "write";
/// The tool that writes a whole plan.
pub(crate) const PLAN_WRITE: &str = "plan_write";

/// The tool of an entry, and its glob.
fn parts(entry: &str) -> (&str, Option<&str>) {
    match entry.split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.strip_suffix(')').unwrap_or(rest).trim())),
        None => (entry.trim(), None),
    }
}

/// The tools that the front matter of a persona lists, as they are kept; all when it lists none.
pub(crate) fn listed(head: &FrontMatter<'_>) -> Result<Option<Vec<String>>, Error> {
    let wrong = |what: String| Err(Error::new(Code::Unprocessable, what));
    if let Some(fault) = &head.fault {
        let what = "its front matter cannot be read, and it says which tools there are";
        return if head.mentions("tools") { wrong(format!("{what}: {}", fault.message)) } else { Ok(None) };
    }
    let entries = match head.keys.get("tools") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => words(text, |character| character == ','),
        Some(Value::Array(list)) => {
            let texts: Option<Vec<String>> = list.iter().map(|one| one.as_str().map(str::to_owned)).collect();
            match texts {
                Some(texts) => texts,
                None => return wrong("tools lists something that is no name of a tool".into()),
            }
        }
        Some(_) => return wrong("tools is no list of names".into()),
    };
    parse(&entries).map(Some)
}

/// The tools that a list may name. Each request to a model whose persona has a list asks it.
static KNOWN: LazyLock<Registry> = LazyLock::new(|| Registry::builtin().with_commands(Commands::default()));

/// The entries as they are kept. A text says why one is not understood.
fn parse(entries: &[String]) -> Result<Vec<String>, Error> {
    let one = |entry: &String| {
        let (name, glob) = parts(entry.trim());
        let name = name.to_lowercase();
        // A deployable that only accepts chats has no index to search, and its chats are driven by one that has.
        let search = (name == SEARCH).then_some(ToolKind::Read);
        if tools::is_served(&name) && glob.is_none() {
            // Names of servers' tools are told apart by case.
            return Ok(entry.trim().to_owned());
        }
        let Some(kind) = KNOWN.kind(&name).or(search) else {
            let specs = KNOWN.specs();
            let names = specs.iter().map(|spec| spec.name.as_str()).chain([SEARCH]).collect::<Vec<_>>().join(", ");
            let error = Error::new(Code::Unprocessable, format!("there is no tool {name:?}"));
            return Err(error.hint(format!("tools: lists some of {names}")));
        };
        let Some(glob) = glob else { return Ok(name) };
        if matches!(kind, ToolKind::Exec | ToolKind::Ask) {
            // A command keeps its files where `write` may write.
            let message = format!("the tool {name} takes no glob");
            return Err(Error::new(Code::Unprocessable, message).hint("list its name alone"));
        }
        if !entry.trim().ends_with(')') || !glob.starts_with('/') {
            let message = format!("{entry:?} is no tool with a glob");
            return Err(Error::new(Code::Unprocessable, message)
                .hint("such as write(/projects/**/review.md): a glob over whole paths"));
        }
        tools::check_glob("tools", glob)?;
        Ok(format!("{name}({glob})"))
    };
    entries.iter().map(one).collect()
}

/// Whether a tool is withheld from a chat whatever its persona lists: agents that share a plan change its steps, and none writes it anew over the claims of
/// the others.
pub(crate) fn is_withheld(config: &ChatConfig, tool: &str) -> bool {
    config.member.is_some() && tool == PLAN_WRITE
}

/// Whether a chat's persona has a tool.
pub(crate) fn has(config: &ChatConfig, tool: &str) -> bool {
    if is_withheld(config, tool) {
        return false;
    }
    let searches = tool == tools::SERVED_SEARCH && may_have_served(config);
    searches || lists(config.tools.as_deref(), tool)
}

/// Whether the entries of a persona, which has all tools without any, have a tool. An entry that ends in `*`, as `mcp__github__*`, stands for all tools
/// of servers that begin so.
pub(crate) fn lists(entries: Option<&[String]>, tool: &str) -> bool {
    let Some(entries) = entries else { return true };
    let is_meant = |name: &str| match name.strip_suffix('*').filter(|start| tools::is_served(start)) {
        Some(start) => tool.starts_with(start),
        None => name == tool,
    };
    entries.iter().any(|entry| is_meant(parts(entry).0))
}

/// Whether a chat's persona may have tools of servers.
pub(crate) fn may_have_served(config: &ChatConfig) -> bool {
    config.tools.as_ref().is_none_or(|entries| entries.iter().any(|entry| tools::is_served(entry)))
}

/// The tools of a chat's persona, by name; nothing for a persona that has all.
pub(crate) fn names(config: &ChatConfig) -> Option<Vec<&str>> {
    let mut names: Vec<&str> = config.tools.as_ref()?.iter().map(|entry| parts(entry).0).collect();
    names.dedup();
    Some(names)
}

/// The globs of a tool; none when it may touch every path.
fn globs<'a>(config: &'a ChatConfig, tool: &str) -> Option<Vec<&'a str>> {
    // Their arguments name no paths.
    if tools::is_served(tool) || tool == tools::SERVED_SEARCH {
        return None;
    }
    let entries = config.tools.as_ref()?.iter().map(|entry| parts(entry));
    entries.filter(|(name, _)| *name == tool).map(|(_, glob)| glob).collect()
}

/// Whether the globs of `write` mean a path and all below it.
pub(crate) fn may_write_below(config: &ChatConfig, path: &FilePath) -> bool {
    // With another end a glob that means a path may mean some of the paths below it, and no others.
    let is_open = |glob: &str| (glob.ends_with("/**") || glob.ends_with("/**/*")) && tools::is_at(glob, path);
    globs(config, WRITE).is_none_or(|globs| globs.into_iter().any(is_open))
}

/// The refusal of a call of a tool, by its own name, that touches a path that none of the tool's globs means.
pub(crate) fn violation(config: &ChatConfig, tool: &str, effects: &Effects) -> Option<Error> {
    let globs = globs(config, tool)?;
    let touch = effects.touches.iter().find(|touch| !globs.iter().any(|glob| tools::is_at(glob, &touch.path)))?;
    let message = format!("the persona {} may not use {tool} at {}", config.persona(), touch.path);
    Some(Error::new(Code::Forbidden, message).hint(format!("it may at {}", globs.join(", "))))
}

/// A tool as a model reads it, with its globs. A model that does not know them finds out by refusals, which cost steps.
pub(crate) fn with_globs(config: &ChatConfig, spec: &Arc<ToolSpec>) -> Arc<ToolSpec> {
    let bounds = bounds(config, &spec.name);
    if bounds.is_empty() {
        return Arc::clone(spec);
    }
    let ToolSpec { name, description, parameters } = (**spec).clone();
    Arc::new(ToolSpec { name, description: description + &bounds, parameters })
}

/// The globs of a tool in words; empty for one that may touch every path.
pub(crate) fn bounds(config: &ChatConfig, tool: &str) -> String {
    globs(config, tool).map_or_else(String::new, |globs| format!(" Here it works at {} only.", globs.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(entries: &[&str]) -> Result<Vec<String>, String> {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        parse(&entries).map_err(|error| error.message)
    }

    #[test]
    fn entries_are_tools_with_or_without_a_glob() {
        let entries = ["Read", " write( /projects/**/Review.md )", "write(/**/*-{a,b}.md)"];
        let kept = ["read", "write(/projects/**/Review.md)", "write(/**/*-{a,b}.md)"];
        assert_eq!(parsed(&entries), Ok(kept.map(str::to_owned).to_vec()));
        for served in ["mcp__Git__*", "http__*", "http__Ticket", "web_fetch", "web_search"] {
            assert_eq!(parsed(&[served, "read"]), Ok(vec![served.into(), "read".into()]));
        }
        for (entry, word) in [
            ("raed", "no tool"),
            ("mcp__git__log(/x)", "no tool"),
            ("exec(/x)", "no glob"),
            ("write(x.md)", "no tool with a glob"),
            ("write(/x", "no tool with a glob"),
            ("write(/[)", "not a glob"),
        ] {
            assert!(parsed(&[entry]).is_err_and(|told| told.contains(word)), "{entry}");
        }
    }
}
