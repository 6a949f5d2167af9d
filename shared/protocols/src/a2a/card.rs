//! The card of the agent (A2A 1.0 §4.4, §8).

use super::{OUTPUT, VERSION};
use serde_json::{Value, json};

/// The types of files that models of the field take; any other is kept as an attachment.
const FILES: [&str; 9] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "application/pdf",
    "audio/mpeg",
    "audio/wav",
    "text/markdown",
    "text/csv",
];

/// The facts that a card tells.
#[derive(Clone, Debug)]
pub struct Card<'a> {
    /// The URL of the endpoint.
    pub url: String,
    /// Whether a credential is needed.
    pub is_guarded: bool,
    /// Whether tasks are pushed.
    pub pushes: bool,
    /// The personas and the flows.
    pub skills: Vec<Skill<'a>>,
}

/// A persona, or a flow.
#[derive(Clone, Copy, Debug)]
pub struct Skill<'a> {
    /// Its kind: `persona` or `flow`.
    pub kind: &'static str,
    /// The name by which messages ask for it.
    pub name: &'a str,
    /// The name for people.
    pub title: &'a str,
    /// Its purpose.
    pub description: &'a str,
}

impl Card<'_> {
    /// The card as JSON.
    pub fn value(&self) -> Value {
        let skill = |one: &Skill<'_>| {
            // The protocol wants a description.
            let description = if one.description.is_empty() { one.title } else { one.description };
            json!({ "id": one.name, "name": one.title, "description": description, "tags": [one.kind] })
        };
        let bearer = json!({
            "scheme": "Bearer", "description": "A token of this server, an API key (POST /api/v1/keys), or a token of its issuer \
                (/.well-known/oauth-protected-resource).",
        });
        let taken = [&OUTPUT[..], &FILES].concat();
        let mut card = json!({
            "name": "BuildScale",
            "description": "Agents that work on the files of a workspace. metadata.skill of the first message of a context names the persona or the flow.",
            "version": env!("CARGO_PKG_VERSION"),
            "supportedInterfaces": [{ "url": self.url, "protocolBinding": "JSONRPC", "protocolVersion": VERSION }],
            "capabilities": { "streaming": true, "pushNotifications": self.pushes, "extendedAgentCard": true },
            "defaultInputModes": taken, "defaultOutputModes": OUTPUT,
            "skills": self.skills.iter().map(skill).collect::<Vec<_>>(),
            "securitySchemes": { "bearer": { "httpAuthSecurityScheme": bearer } },
        });
        if self.is_guarded {
            card["securityRequirements"] = json!([{ "schemes": { "bearer": { "list": [] } } }]);
        }
        card
    }
}
