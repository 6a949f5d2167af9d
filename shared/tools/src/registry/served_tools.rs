//! Tools of servers (spec 004 §11), beside the built-in ones: of servers that speak the Model Context Protocol, HTTP tools and tools in
//! code that workspaces declare, and the web.
//!
//! Which tools there are is known to their servers alone, and changes. So they are on no list of the registry: [`Registry::served`] asks for them
//! when a model is asked, and their names alone say that a server runs them. Their specifications are offered within a budget, in the order of
//! their names; [`SEARCH`] finds the others, and those that it has found are offered for as long as the model reads the finding.

use super::Registry;
use crate::{
    call::{Answer, Call, CallOutcome, Done},
    caps,
    kind::ToolKind,
};
use domain::{
    Code, Error, FilePath, ToolSpec,
    event::Question,
    served::{CODE_PREFIX, HTTP_PREFIX, MAX_DECLARATION, MOST_DECLARED, SERVED_PREFIX, WEB_FETCH, WEB_SEARCH},
    text::counted,
};
use ports::{Listener, Served, ServedAnswer, ServedCall, ServedStep, ServedTool, ServersOf, ToolServers, server_of};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{cell::LazyCell, sync::Arc, time::Duration};
use workspace::{Action, Workspace};

/// The tool that searches the tools of servers.
pub const SEARCH: &str = "mcp_search";
/// The file in which a workspace declares its servers.
pub const DECLARED: &str = "/system/mcp.json";
/// The folder in which a workspace declares its HTTP tools and its tools in code, a file for each.
pub const HTTP_TOOLS: &str = "/system/tools";

/// The specifications that are offered unasked, and those that a search has found, in bytes each: about 6,000 tokens.
const BUDGET: usize = 24 * 1024;
/// How long a model waits for servers that are not connected yet.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The most tools that a search tells of.
const MOST_FOUND: usize = 10;

const SEARCHES: &str = "Find tools of connected servers that are not on your list, by words of their purpose. Answers with their names and \
    arguments; from then on you can call them.";

/// Whether this is the name of a tool of a server.
pub fn is_served(name: &str) -> bool {
    is_of_mcp(name)
        || name.starts_with(HTTP_PREFIX)
        || name.starts_with(CODE_PREFIX)
        || [WEB_FETCH, WEB_SEARCH].contains(&name)
}

/// Whether this is the name of a tool of a server that speaks the Model Context Protocol.
pub fn is_of_mcp(name: &str) -> bool {
    name.starts_with(SERVED_PREFIX)
}

/// The kind of a tool by its name, if servers have it or it searches theirs.
pub(crate) fn kind(name: &str) -> Option<ToolKind> {
    match name {
        SEARCH => Some(ToolKind::Read),
        _ => is_served(name).then_some(ToolKind::Served),
    }
}

/// Arguments as an object.
pub(crate) fn args(text: &str) -> Result<Map<String, Value>, Error> {
    match serde_json::from_str(text) {
        Ok(Value::Object(args)) => Ok(args),
        Ok(_) => Err(Error::invalid("args", "the arguments are no object")),
        Err(error) => Err(Error::invalid("args", format!("the arguments are not JSON: {error}"))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArgs {
    query: String,
}

fn search_spec() -> ToolSpec {
    let query = json!({ "type": "string", "description": "Words of the purpose, such as: create issue." });
    let parameters = json!({ "type": "object", "properties": { "query": query }, "required": ["query"],
        "additionalProperties": false });
    ToolSpec { name: SEARCH.into(), description: SEARCHES.into(), parameters }
}

impl Registry {
    /// Whether there may be tools of servers.
    pub fn has_servers(&self) -> bool {
        self.servers().is_some()
    }

    /// The tools of servers that are offered in a workspace, of those that `may` be: within the budget, and those whose names are in `found`, the
    /// answers of searches, which are gathered only where they decide. `declared` is that of [`Call`].
    pub async fn served(
        &self,
        workspace: &Workspace,
        declared: &[(String, String)],
        may: impl Fn(&str) -> bool,
        found: impl FnOnce() -> String,
    ) -> Vec<ToolSpec> {
        let Some(servers) = self.servers() else { return Vec::new() };
        let Served { tools, missing } = servers.tools(&with_declared(workspace, declared).await, PATIENCE).await;
        offered(tools.into_iter().filter(|tool| may(&tool.name)).collect(), found, !missing.is_empty() && may(SEARCH))
    }

    /// Refuses a call that may have taken effect before, unless its server says that it may be repeated. `declared` is that of [`Call`].
    ///
    /// # Errors
    /// `OUTCOME_UNKNOWN`.
    pub async fn check_repeat(
        &self,
        workspace: &Workspace,
        declared: &[(String, String)],
        name: &str,
    ) -> Result<(), Error> {
        let Some(servers) = self.servers().filter(|_| is_served(name)) else { return Ok(()) };
        let Served { tools, .. } = servers.tools(&with_declared(workspace, declared).await, PATIENCE).await;
        match tools.iter().any(|tool| tool.name == name && tool.is_repeatable) {
            true => Ok(()),
            false => Err(Error::new(
                Code::OutcomeUnknown,
                format!("the call of {name} was interrupted, and is not made again"),
            )
            .hint("it may have taken effect or not: look before you make it again")),
        }
    }
}

/// The servers of a workspace, as far as its caller may read of their declarations.
pub async fn of(workspace: &Workspace) -> ServersOf {
    let (mut declared, mut tools) = (None, Vec::new());
    // Nearly every workspace declares nothing, and this is asked for with each call of a model.
    for path in workspace.in_system(&[DECLARED, HTTP_TOOLS]).await.unwrap_or_default() {
        match path.as_str() {
            DECLARED => {
                let text = workspace.read(&path, None).await.ok();
                declared = text.map(|content| Arc::from(&*String::from_utf8_lossy(&content.bytes)));
            }
            HTTP_TOOLS => tools = tools_of(workspace).await,
            _ => {}
        }
    }
    let asked = workspace.clone();
    let mirrored = workspace.sandboxes().is_some_and(|sandboxes| sandboxes.have_mirrors());
    // Programs of servers see the root, whatever folder they run in: names beside it are hidden, too.
    let hidden = async move { asked.hidden_from_programs(mirrored).await };
    let of = ServersOf::new(workspace.id()).with_party(workspace.party_name(), hidden);
    ServersOf { declared, tools: tools.into(), ..of }
}

/// The same, with the HTTP tools that a flow brings. Of two declarations of one name the first counts.
async fn with_declared(workspace: &Workspace, declared: &[(String, String)]) -> ServersOf {
    let of = of(workspace).await;
    match declared.is_empty() {
        true => of,
        false => ServersOf { tools: declared.iter().chain(&*of.tools).cloned().collect(), ..of },
    }
}

/// The files of a workspace's HTTP tools, by name. One that cannot be read is none.
async fn tools_of(workspace: &Workspace) -> Vec<(String, String)> {
    let Ok(folder) = FilePath::parse(HTTP_TOOLS) else { return Vec::new() };
    let Ok(found) = workspace.list_readable(&folder, MOST_DECLARED).await else { return Vec::new() };
    let mut files = Vec::new();
    for info in found.entries {
        let name = info.path.as_str().strip_prefix(HTTP_TOOLS).unwrap_or_default().trim_start_matches('/').to_owned();
        if !name.contains('/')
            && [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending))
            && let Ok(content) = workspace.read(&info.path, Some(0..MAX_DECLARATION as u64)).await
        {
            files.push((name, String::from_utf8_lossy(&content.bytes).into_owned()));
        }
    }
    files
}

/// The specifications within the budget. The order and the choice are the same for the same tools, as providers cache the beginning of a request.
fn offered(tools: Vec<ServedTool>, found: impl FnOnce() -> String, searches: bool) -> Vec<ToolSpec> {
    let found = LazyCell::new(found);
    let (mut specs, mut left, mut left_for_found) = (Vec::new(), BUDGET, BUDGET);
    let (mut later, mut is_whole) = (Vec::new(), true);
    for tool in tools {
        let ServedTool { name, description, parameters, .. } = tool;
        let size = name.len() + description.len() + parameters.to_string().len();
        let spec = ToolSpec { name, description, parameters };
        // Once one does not fit, none does: else a small tool would be offered before a large one of the same server.
        if is_whole && size <= left {
            left -= size;
            specs.push(spec);
            continue;
        }
        is_whole = false;
        // A name is whole in the answer of a search: it ends with its line.
        if size <= left_for_found && found.contains(&format!("{}\n", spec.name)) {
            left_for_found -= size;
            later.push(spec);
        }
    }
    specs.extend((searches || !is_whole).then(search_spec));
    specs.extend(later);
    specs
}

/// How far a call has come.
pub enum Followed {
    /// It is done.
    Done(Box<CallOutcome>),
    /// Its server asks a person, and the call waits under its id.
    Asks(Question),
    /// Its server asks the model of the chat, as [`ServedStep::Samples`] has it, and the call waits.
    Samples(Value),
}

impl Registry {
    /// Runs a tool as [`Registry::call`] does, where a person can answer what a server asks meanwhile: the call is then made again under the same id with
    /// the answer.
    pub async fn follow(
        &self,
        call: &Call<'_>,
        name: &str,
        text: &str,
        (reply, told): (Option<Value>, Option<Listener>),
    ) -> Followed {
        let Some(servers) = self.servers().filter(|_| is_of_mcp(name)) else {
            return Followed::Done(Box::new(self.call(call, name, text).await));
        };
        match followed(&**servers, call, name, text, (reply, told)).await {
            Ok(ServedStep::Asks(question)) => Followed::Asks(question),
            Ok(ServedStep::Samples(request)) => Followed::Samples(request),
            Ok(ServedStep::Answered(answer)) => Followed::Done(Box::new(Answer::Ok(observed(answer)).into())),
            Err(error) => Followed::Done(Box::new(error.into())),
        }
    }
}

async fn followed(
    servers: &dyn ToolServers,
    call: &Call<'_>,
    name: &str,
    text: &str,
    (reply, told): (Option<Value>, Option<Listener>),
) -> Result<ServedStep, Error> {
    let (of, args) = (of(&call.workspace).await, args(text)?);
    demand_of(servers, &of, &call.workspace, name).await?;
    servers.follow(&of, ServedCall { id: call.call_id, tool: name.to_owned(), args, reply, told }).await
}

/// Refuses the use of a server whose program the caller may not run in its folder, or whose sandbox cannot hide what the caller may not read.
///
/// # Errors
/// `FORBIDDEN`; else those of [`ToolServers::sees`] and [`Workspace::demand`].
pub(super) async fn demand(
    servers: &dyn ToolServers,
    of: &ServersOf,
    workspace: &Workspace,
    server: &str,
) -> Result<(), Error> {
    match servers.sees(of, server).await? {
        Some(folder) => workspace.demand(Action::Execute, &folder),
        None => Ok(()),
    }
}

/// The same by the name of a tool.
async fn demand_of(servers: &dyn ToolServers, of: &ServersOf, workspace: &Workspace, tool: &str) -> Result<(), Error> {
    match server_of(tool) {
        Some(server) => demand(servers, of, workspace, server).await,
        None => Ok(()),
    }
}

pub(crate) async fn call(servers: &dyn ToolServers, call: &Call<'_>, name: &str, text: &str) -> Answer {
    let (of, args) = (with_declared(&call.workspace, call.declared).await, args(text)?);
    if name == SEARCH {
        let SearchArgs { query } = serde_json::from_value(Value::Object(args))
            .map_err(|error| Error::invalid("args", error.to_string()).hint("give a query"))?;
        return Ok(search(&servers.tools(&of, PATIENCE).await, &query));
    }
    demand_of(servers, &of, &call.workspace, name).await?;
    Ok(observed(servers.call(&of, name, args).await?))
}

/// The answer of a server as a model reads it.
fn observed(answer: ServedAnswer) -> Done {
    let (output, is_capped) = caps::cap(answer.text);
    let failed = answer.is_error.then(|| {
        let first: String = output.lines().next().unwrap_or("the tool says no more").chars().take(500).collect();
        Error::new(Code::Unprocessable, first)
    });
    let truncated = answer.is_cut || is_capped;
    Done { output, truncated, result: answer.data, failed, capped: true, ..Done::default() }
}

/// The tools with most of the words in their names and descriptions; the name counts twice.
fn search(served: &Served, query: &str) -> Done {
    let words: Vec<String> = query.split_whitespace().take(16).map(str::to_lowercase).collect();
    let score = |tool: &ServedTool| {
        let (name, description) = (tool.name.to_lowercase(), tool.description.to_lowercase());
        let of = |word: &String| 2 * usize::from(name.contains(word)) + usize::from(description.contains(word));
        words.iter().map(of).sum::<usize>()
    };
    let mut hits: Vec<_> =
        served.tools.iter().map(|tool| (score(tool), tool)).filter(|(score, _)| *score > 0).collect();
    hits.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.name.cmp(&other.name)));
    let mut output = match hits.len() {
        0 => format!("No tool has these words; the servers have {}.\n", counted(served.tools.len(), "tool")),
        1 => "1 tool:\n".to_owned(),
        all => format!("{all} tools, the nearest first:\n"),
    };
    let mut names = Vec::new();
    for (_, tool) in hits.iter().take(MOST_FOUND) {
        output.push_str(&format!("\n{}\n{}\nArguments: {}\n", tool.name, tool.description, tool.parameters));
        names.push(tool.name.clone());
    }
    for (server, why) in &served.missing {
        output.push_str(&format!("\nThe server {server} cannot be used now: {why}\n"));
    }
    Done { output, result: json!({ "tools": names }), ..Done::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> ServedTool {
        let (name, description) = (format!("mcp__s__{name}"), description.to_owned());
        ServedTool { name, description, parameters: json!({ "type": "object" }), is_repeatable: false }
    }

    fn names(specs: &[ToolSpec]) -> Vec<&str> {
        specs.iter().map(|spec| spec.name.as_str()).collect()
    }

    #[test]
    fn few_tools_are_offered_as_they_are() {
        let specs = offered(vec![tool("a", "one"), tool("b", "two")], String::new, false);
        assert_eq!(names(&specs), ["mcp__s__a", "mcp__s__b"]);
        assert_eq!(names(&offered(Vec::new(), String::new, true)), [SEARCH], "a search tells why there are none");
        assert!(offered(Vec::new(), String::new, false).is_empty());
    }

    #[test]
    fn beyond_the_budget_a_search_finds_tools_and_offers_them() {
        let many: Vec<_> = (0..40).map(|n| tool(&format!("tool_{n:02}"), &"x".repeat(1_000))).collect();
        let unasked = offered(many.clone(), String::new, false);
        assert!(unasked.len() < 30 && names(&unasked).ends_with(&[SEARCH]), "{:?}", names(&unasked));
        let found = search(&Served { tools: many.clone(), missing: Vec::new() }, "tool_39").output;
        let then = offered(many, || found, false);
        assert_eq!(names(&then)[..unasked.len()], names(&unasked), "the beginning stays for the provider's cache");
        assert_eq!(names(&then)[unasked.len()..], ["mcp__s__tool_39"]);
    }

    #[test]
    fn a_search_tells_of_servers_that_do_not_answer() {
        let served = Served {
            tools: vec![tool("create_issue", "Opens an issue.")],
            missing: vec![("git".into(), "it is gone".into())],
        };
        let output = search(&served, "Issue create").output;
        assert!(output.contains("mcp__s__create_issue\nOpens an issue.\nArguments: {"), "{output}");
        assert!(output.ends_with("The server git cannot be used now: it is gone\n"), "{output}");
        assert!(search(&served, "nothing").output.starts_with("No tool has these words"));
    }
}
