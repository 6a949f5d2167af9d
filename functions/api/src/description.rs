//! The OpenAPI document, without its operations: the parts that hold for all of them, and the text that is served.

use crate::{described_routes::Describe, refusals, schema};
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use utoipa::{
    OpenApi,
    openapi::{
        Content, ObjectBuilder, Ref, RefOr, Required, Response, Type, path::Operation, path::ParameterBuilder,
        path::ParameterIn, security::HttpAuthScheme, security::HttpBuilder, security::SecurityRequirement,
        security::SecurityScheme,
    },
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "BuildScale",
        description = "Agents that work on files, talk over SSE and survive a crash. Commands answer 202 as soon as they \
            are durable; what comes of them is told by events. Every error has the same envelope. Routes below /api refuse \
            parameters that they do not describe; those of other protocols ignore them."
    ),
    components(schemas(schema::ErrorEnvelope)),
    servers((url = "/", description = "The server that this document comes from.")),
    tags(
        (name = "workspaces", description = "A logical volume of files with its chats."),
        (name = "members", description = "The people of a workspace and their roles."),
        (name = "keys", description = "API keys: for programs that work for you."),
        (name = "login", description = "How to get a token."),
        (name = "chats", description = "Durable conversations with agents."),
        (name = "planner", description = "The planner chat: messages that are answered, or planned and carried out."),
        (name = "flows", description = "Graphs of agents and code, as folders of manifests."),
        (name = "tasks", description = "Durable runs of flows, with their clones and subtasks."),
        (name = "webhooks", description = "Events of a workspace, told to receivers elsewhere."),
        (name = "schedules", description = "Chats, messages and tasks that begin at a time, or again and again."),
        (name = "files", description = "Identities with immutable versions."),
        (name = "versions", description = "The history of a file."),
        (name = "links", description = "Tags of files, links between them, and the network that they make."),
        (name = "trash", description = "Removed files, until they are restored or purged."),
        (name = "access", description = "Who may do what at which path, and why."),
        (name = "tools", description = "The very tools that agents use."),
        (name = "sandbox", description = "The machine on which a workspace's commands run."),
        (name = "agents", description = "Personas and skills."),
        (name = "models", description = "Which models and coding agents can be asked."),
        (name = "usage", description = "Tokens, money and calls."),
        (name = "openai", description = "Completions and responses for clients of OpenAI's API, with personas as models."),
        (name = "clients", description = "The protocols of front ends: AI SDK and AG-UI."),
        (name = "a2a", description = "The Agent2Agent protocol: turns as tasks, personas as skills."),
        (name = "langgraph", description = "The protocol of the LangGraph server, with personas and flows as assistants."),
        (name = "hub", description = "The code agent hub: threads of personas and of coding agents, each in a folder."),
        (name = "health", description = "For operators.")
    )
)]
struct Document;

/// The document as text, made when it is asked for the first time.
#[derive(Clone)]
pub(crate) struct Text(Arc<(Vec<Describe>, OnceLock<Bytes>)>);

impl Text {
    pub(crate) fn of(descriptions: Vec<Describe>) -> Self {
        Self(Arc::new((descriptions, OnceLock::new())))
    }

    /// The text. The first one takes a while to make.
    pub(crate) fn bytes(&self) -> Bytes {
        let (descriptions, text) = &*self.0;
        text.get_or_init(|| described(descriptions).to_string().into()).clone()
    }
}

/// The document with these operations.
pub(crate) fn described(descriptions: &[Describe]) -> Value {
    let mut document = Document::openapi();
    descriptions.iter().for_each(|describe| describe(&mut document));
    complete(document)
}

/// Adds the parts that hold for every operation: its refusals, the error envelope, the token, the idempotency key of every POST.
fn complete(mut document: utoipa::openapi::OpenApi) -> Value {
    let components = document.components.get_or_insert_default();
    let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    components.add_security_scheme("token", scheme);
    components.responses.insert("Error".into(), RefOr::T(error_response()));
    document.security = Some(vec![SecurityRequirement::default(), SecurityRequirement::new("token", [""; 0])]);
    for (path, item) in &mut document.paths.paths {
        let operations = [
            ("get", &mut item.get),
            ("post", &mut item.post),
            ("put", &mut item.put),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
        ];
        for (method, operation) in operations {
            let Some(operation) = operation else { continue };
            refusals::describe((method, path.as_str()), operation, &mut components.responses);
            let error = RefOr::Ref(Ref::from_response_name("Error"));
            operation.responses.responses.insert("default".into(), error);
            if method == "post" {
                add_idempotency_key(operation);
            }
        }
    }
    serde_json::to_value(document).unwrap_or_default()
}

fn add_idempotency_key(post: &mut Operation) {
    let key = ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("The same key with the same request is done once and answered the same, for 24 hours."))
        .schema(Some(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .min_length(Some(1))
                .max_length(Some(255))
                .pattern(Some(r"^[\x21-\x7E]([\x20-\x7E]*[\x21-\x7E])?$"))
                .build(),
        ));
    post.parameters.get_or_insert_default().push(key.build().into());
}

fn error_response() -> Response {
    let mut content = Content::new(Some(Ref::from_schema_name("ErrorEnvelope")));
    content.example = Some(json!({ "error": {
        "code": "STALE_VERSION",
        "message": "/projects/notes.md has changed: it is now version 4, written by agent:assistant",
        "hint": "read the file again and base the write on its current content",
        "request_id": "019bf537-f228-7cd3-aa1c-3da8af302e12",
        "details": { "current_v": 4 },
    } }));
    let mut response = Response::new("The request was refused.");
    response.content.insert("application/json".into(), RefOr::T(content));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    static MADE: AtomicU32 = AtomicU32::new(0);

    fn counted(_: &mut utoipa::openapi::OpenApi) {
        MADE.fetch_add(1, SeqCst);
    }

    #[test]
    fn section_14_the_document_is_made_once_when_it_is_first_asked_for() {
        let text = Text::of(vec![counted as Describe]);
        let at_the_start = MADE.load(SeqCst);
        let first = text.bytes();
        assert_eq!((at_the_start, text.clone().bytes() == first, MADE.load(SeqCst)), (0, true, 1));
    }
}
