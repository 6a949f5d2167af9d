//! Personas of agents of flows: the tools that a persona forbids, for the check of a flow and for its runs.
//!
//! A flow is of everybody, so its personas are those of the workspace: the caller reads them by a handle without a home.

use chat::Persona;
use domain::{Code, Error};
use flow::{
    Flow,
    flow::{Node, Op, ToolTarget},
    load::ManifestFault,
};
use workspace::Workspace;

/// The name by which personas list commands.
const COMMANDS: &str = "exec";

/// Why a persona forbids a tool of `tools.yaml`, if it does. A registered function is the flow's own code, which no persona lists.
pub(crate) fn forbids(persona: &Persona, target: &ToolTarget) -> Option<String> {
    let tool = match target {
        ToolTarget::Builtin(name) => name.as_str(),
        ToolTarget::Command(_) => COMMANDS,
        ToolTarget::Function(_) => return None,
    };
    (!persona.may_use(tool)).then(|| format!("the persona {} does not list {tool}", persona.role))
}

/// A note for each tool that a node lists and the persona of its agent forbids, and for each persona that cannot be read.
///
/// # Errors
/// Those of reading the workspace's files.
pub(crate) async fn notes(workspace: &Workspace, flow: &Flow) -> Result<Vec<ManifestFault>, Error> {
    let mut notes = Vec::new();
    let mut nodes: Vec<&Node> = flow.nodes.values().collect();
    nodes.sort_by(|one, other| one.id.cmp(&other.id));
    let mut agents: Vec<_> = flow.agents.iter().collect();
    agents.sort_by_key(|(id, _)| *id);
    for (id, agent) in agents {
        let Some(name) = &agent.persona else { continue };
        let persona = match chat::persona(workspace, name).await {
            Ok(persona) => persona,
            Err(error) if matches!(error.code, Code::NotFound | Code::Unprocessable | Code::InvalidArgument) => {
                let hint = error.hint.unwrap_or_else(|| "GET …/agents lists the personas with their faults".into());
                notes.push(note("agents.yaml", "unusable_persona", format!("agent `{id}`: {}", error.message), hint));
                continue;
            }
            Err(error) => return Err(error),
        };
        for node in nodes.iter().filter(|node| matches!(&node.op, Op::Agent { agent, .. } if agent == id)) {
            for tool in &node.tools {
                let Some(why) = flow.tools.get(tool).and_then(|tool| forbids(&persona, &tool.target)) else { continue };
                let message =
                    format!("node `{}` lists the tool `{tool}`, and {why}: its agent is not offered it", node.id);
                let hint =
                    format!("take it off the node, add it to `tools` of the persona {name}, or name another persona");
                notes.push(note("workflow.yaml", "forbidden_tool", message, hint));
            }
        }
    }
    Ok(notes)
}

fn note(file: &str, code: &'static str, message: String, hint: String) -> ManifestFault {
    ManifestFault { file: file.into(), line: 1, column: 1, code, message, hint }
}
