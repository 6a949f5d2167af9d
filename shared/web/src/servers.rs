//! The tools of the web, as servers of tools.

use crate::{
    call,
    config::WebConfig,
    dependencies::WebDependencies,
    fetch::{self, Fetch},
    search::{self, Search},
    tool_declarations::{self, CodeTool, DeclaredTool},
};
use async_trait::async_trait;
use domain::{
    Error,
    served::{CODE_PREFIX, HTTP_PREFIX, WEB_FETCH, WEB_SEARCH},
};
use ports::{HandedOut, Served, ServedAnswer, ServersOf, ToolServers};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, time::Duration};

/// HTTP tools and tools in code of workspaces, `web_fetch` and `web_search`.
pub struct Web {
    parts: WebDependencies,
    allow_private: bool,
    fetch: Option<Fetch>,
    search: Option<Search>,
}

impl Web {
    /// With the tools that the configuration has.
    ///
    /// # Errors
    /// The fault of the configuration, for people.
    pub fn new(config: &WebConfig, parts: WebDependencies) -> Result<Self, String> {
        let search = config.search.checked()?.map(|(provider, url, key)| Search { provider, url, key });
        let fetch = config.fetch.then(Fetch::default);
        Ok(Self { parts, allow_private: config.allow_private, fetch, search })
    }
}

/// The declared tools of a workspace by name, and the faults of those that are none, by file.
fn declared(of: &ServersOf) -> (BTreeMap<String, DeclaredTool>, Vec<(String, String)>) {
    let (mut tools, mut faults) = (BTreeMap::<String, DeclaredTool>::new(), Vec::new());
    for (file, text) in &*of.tools {
        match tool_declarations::parse(file, text) {
            Ok(tool) if tools.contains_key(&tool.served().name) => {
                faults.push((file.clone(), format!("another file declares {} already", tool.served().name)));
            }
            Ok(tool) => _ = tools.insert(tool.served().name.clone(), tool),
            Err(why) => faults.push((file.clone(), why)),
        }
    }
    (tools, faults)
}

/// Hands a call out to programs, if its arguments fit.
fn hand_out(tool: &CodeTool, args: Map<String, Value>) -> Error {
    let name = &tool.served.name;
    match tool.schema.errors(&Value::Object(args), 1).first() {
        Some(first) => Error::invalid("args", format!("the arguments of {name} are wrong: {first}")),
        None => HandedOut { timeout: tool.timeout, is_repeatable: tool.is_repeatable }.error(name),
    }
}

#[async_trait]
impl ToolServers for Web {
    fn may_have(&self, tool: &str) -> bool {
        tool.starts_with(HTTP_PREFIX) || tool.starts_with(CODE_PREFIX) || [WEB_FETCH, WEB_SEARCH].contains(&tool)
    }

    async fn tools(&self, of: &ServersOf, _: Duration) -> Served {
        let (tools, missing) = declared(of);
        let mut tools: Vec<_> = tools.into_values().map(|tool| tool.served().clone()).collect();
        tools.extend(self.fetch.as_ref().map(|_| fetch::tool()));
        tools.extend(self.search.as_ref().map(|_| search::tool()));
        Served { tools, missing }
    }

    async fn call(&self, of: &ServersOf, tool: &str, args: Map<String, Value>) -> Result<ServedAnswer, Error> {
        match (tool, &self.fetch, &self.search) {
            (WEB_FETCH, Some(fetch), _) => fetch.call(&self.parts, self.allow_private, of.workspace, args).await,
            (WEB_SEARCH, _, Some(search)) => search.call(&self.parts, args).await,
            _ => {
                let (mut tools, faults) = declared(of);
                let Some(found) = tools.remove(tool) else {
                    let error = Error::no_tool(tool);
                    let why: Vec<_> = faults.iter().map(|(file, why)| format!("{file}: {why}")).collect();
                    return Err(match why.is_empty() {
                        true => error.hint("files in /system/tools declare tools"),
                        false => error.hint(format!("these files declare none: {}", why.join("; "))),
                    });
                };
                match found {
                    DeclaredTool::Http(found) => {
                        call::call(&self.parts, self.allow_private, of.workspace, &found, args).await
                    }
                    DeclaredTool::Code(found) => Err(hand_out(&found, args)),
                }
            }
        }
    }
}
