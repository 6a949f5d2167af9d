//! The rules for every request to a model, so that no provider refuses it.

use domain::Message;
use ports::ModelRequest;
use std::collections::HashSet;

/// Checks a request: a system text that is not blank, or none; a last message to answer; each call answered exactly once, right after the
/// message that made it, in order; no result without a call; tools with names of their own that every provider takes.
///
/// # Errors
/// The first fault, for developers.
pub fn check(request: &ModelRequest) -> Result<(), String> {
    if request.system.trim().is_empty() && !request.system.is_empty() {
        return Err("the system text is blank".into());
    }
    let mut names = HashSet::new();
    for tool in request.tools.iter() {
        let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
        if tool.name.is_empty() || tool.name.len() > 64 || !tool.name.bytes().all(fits) {
            return Err(format!("{:?} is no name for a tool", tool.name));
        }
        if !names.insert(&tool.name) {
            return Err(format!("there are two tools named {}", tool.name));
        }
        if tool.parameters.get("type").is_none_or(|kind| kind != "object") {
            return Err(format!("the parameters of {} are no object", tool.name));
        }
    }
    let mut seen = HashSet::new();
    // The calls of the last assistant message that are not answered yet, the next one last.
    let mut open = Vec::new();
    for (index, message) in request.messages.iter().enumerate() {
        let at = |what: String| Err(format!("message {index}: {what}"));
        match message.as_ref() {
            Message::Tool { call_id, tool, .. } => match open.pop() {
                Some((id, name)) if id == *call_id && name == *tool => {}
                Some((id, name)) => return at(format!("answers {tool} {call_id}, but {name} {id} comes first")),
                None => return at(format!("answers {tool} {call_id}, a call that was not made")),
            },
            _ if !open.is_empty() => return at(format!("comes before the answers to {open:?}")),
            Message::Assistant { calls, .. } => {
                if let Some(call) = calls.iter().find(|call| !seen.insert(call.call_id)) {
                    return at(format!("makes the call {} again", call.call_id));
                }
                open = calls.iter().rev().map(|call| (call.call_id, call.tool.as_str())).collect();
            }
            Message::User { .. } | Message::System { .. } => {}
        }
    }
    if !open.is_empty() {
        return Err(format!("no result answers {open:?}"));
    }
    match request.messages.last().map(AsRef::as_ref) {
        None => Err("there are no messages".into()),
        Some(Message::Assistant { .. }) => {
            Err("the last message is the model's own: there is nothing to answer".into())
        }
        Some(_) => Ok(()),
    }
}
