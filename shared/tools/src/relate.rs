//! `tag`, `link` and `related`: tags of files, and links between them.

use crate::{
    call::{self, Answer, Call, Done},
    effects::{Declaration, Declare},
    list::to_value,
};
use domain::{Error, FilePath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashSet;
use workspace::{Link, Mark, MarkChange, Network};

pub(crate) const TAG: &str =
    "Add tags to a file or folder, or remove them. Tags survive moves and new versions. find filters by a tag.";
pub(crate) const LINK: &str = "Link a file or folder to another one, with a kind such as implements, answers or derived_from, or remove \
    that link. It survives moves of both. [text](path) and [[name]] in Markdown are links by themselves.";
pub(crate) const RELATED: &str = "Show the tags of a file, the links from it and the links to it, also those in texts. With a depth above \
    1: the files that links lead to and from, so many steps away.";

/// How many files a network has.
const NODES: usize = 100;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TagFile {
    /// The file or folder.
    path: String,
    /// The tags: letters, digits, -, _, . and :, such as status:open.
    #[schemars(length(min = 1, max = 64))]
    tags: Vec<String>,
    /// Remove them instead.
    remove: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkFiles {
    /// The file or folder at which the link begins.
    from: String,
    /// The file or folder to which it leads.
    to: String,
    /// The kind: implements, answers, derived_from, or another word of a-z, 0-9 and _.
    kind: String,
    /// Remove it instead.
    remove: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Related {
    /// The file or folder.
    path: String,
    /// How many links a file may be away; 1 by default.
    #[schemars(range(min = 1, max = 5))]
    depth: Option<usize>,
    /// Show only files at or below this folder; of the whole workspace by default.
    within: Option<String>,
}

impl Declare for TagFile {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.writes("path", &self.path)
    }
}

impl Declare for LinkFiles {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.writes("from", &self.from)?;
        into.reads("to", &self.to)
    }
}

impl Declare for Related {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.reads("path", &self.path)?;
        into.searches("within", self.within.as_deref())
    }
}

pub(crate) async fn tag(call: &Call<'_>, args: TagFile) -> Answer {
    let path = call::path("path", &args.path)?;
    let file = call.workspace.stat(&path).await?.file_id;
    let mark = if args.remove == Some(true) { Mark::Untag(args.tags) } else { Mark::Tag(args.tags) };
    let marked = call.workspace.mark(file, mark, &call.writer()).await?;
    let tags = if marked.tags.is_empty() { "none".into() } else { marked.tags.join(", ") };
    let output = format!("tags of {path}: {tags}");
    done(output, &marked)
}

pub(crate) async fn link(call: &Call<'_>, args: LinkFiles) -> Answer {
    let (from, to) = (call::path("from", &args.from)?, call::path("to", &args.to)?);
    let file = call.workspace.stat(&from).await?.file_id;
    let target = call.workspace.stat(&to).await?.file_id;
    let gone = args.remove == Some(true);
    let output = match gone {
        true => format!("{from} no longer {} {to}", args.kind),
        false => format!("{from} {} {to}", args.kind),
    };
    let mark = if gone { Mark::Unlink(target, args.kind) } else { Mark::Link(target, args.kind) };
    let marked = call.workspace.mark(file, mark, &call.writer()).await?;
    done(output, &marked)
}

fn done(output: String, marked: &MarkChange) -> Answer {
    Ok(Done { output, result: to_value(marked)?, ..Done::default() })
}

pub(crate) async fn related(call: &Call<'_>, args: Related) -> Answer {
    let path = call::path("path", &args.path)?;
    let within = args.within.as_deref().map_or(Ok(FilePath::root()), |path| call::path("within", path))?;
    let file = call.workspace.stat(&path).await?.file_id;
    if let Some(depth) = args.depth.filter(|depth| *depth > 1) {
        return around(call.workspace.network(file, depth, NODES).await?, &within);
    }
    let mut relations = call.workspace.relations(file).await?;
    let is_shown = |link: &Link| link.file.as_ref().is_none_or(|file| file.path.is_within(&within));
    relations.links.retain(is_shown);
    relations.backlinks.retain(is_shown);
    let tags = if relations.tags.is_empty() { "none".into() } else { relations.tags.join(", ") };
    let mut output = format!("tags: {tags}\nlinks from {path}:");
    lines(&mut output, &relations.links);
    output.push_str(&format!("\nlinks to {path}:"));
    lines(&mut output, &relations.backlinks);
    if relations.truncated {
        output.push_str("\n[there may be more links to it]");
    }
    Ok(Done { output, truncated: relations.truncated, result: to_value(&relations)?, ..Done::default() })
}

fn lines(output: &mut String, links: &[Link]) {
    if links.is_empty() {
        output.push_str(" none");
    }
    for link in links {
        let target = link.target.as_deref().unwrap_or_default();
        match &link.file {
            Some(file) => output.push_str(&format!("\n  {}  {}", link.kind, file.path)),
            None => output.push_str(&format!("\n  {}  {target} (nothing is there)", link.kind)),
        }
    }
}

fn around(mut network: Network, within: &FilePath) -> Answer {
    network.nodes.retain(|node| node.file.path.is_within(within));
    let known: HashSet<_> = network.nodes.iter().map(|node| node.file.file_id).collect();
    network.edges.retain(|edge| known.contains(&edge.from) && known.contains(&edge.to));
    let path = |id| network.nodes.iter().find(|node| node.file.file_id == id).map(|node| node.file.path.as_str());
    let mut output = String::new();
    for node in &network.nodes {
        output.push_str(&format!("{}  {}\n", node.distance, node.file.path));
    }
    for edge in &network.edges {
        let (from, to) = (path(edge.from).unwrap_or_default(), path(edge.to).unwrap_or_default());
        output.push_str(&format!("{from} {} {to}\n", edge.kind));
    }
    if network.truncated {
        output.push_str("[there may be more files around it]");
    }
    let result = json!({ "nodes": network.nodes, "edges": network.edges, "truncated": network.truncated });
    Ok(Done { output: output.trim_end().into(), truncated: network.truncated, result, ..Done::default() })
}
