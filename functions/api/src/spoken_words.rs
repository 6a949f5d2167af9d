//! Words to agents and tasks lose the secrets that the process knows before any handler reads them: chats, tasks and turns keep them for good. Contents of files are people's own and pass as they are.

use axum::extract::Request;
use ports::{KnownSecrets, Redactor};

/// A part of the path of each route, of every protocol, at which somebody says something to an agent or a task. No route that takes the content of a
/// file has one.
const SPOKEN_AT: [&str; 12] = [
    "a2a",
    "ag-ui",
    "agent",
    "ai-sdk",
    "chats",
    "evaluations",
    "openai",
    "permissions",
    "runs",
    "schedules",
    "tasks",
    "threads",
];

/// The redactor of a request's words. It takes nothing out where the request says nothing to an agent or a task, and where the server around these routes has named no secrets
/// (the extension [`KnownSecrets`]).
pub(crate) fn redactor_of(request: &Request) -> Redactor {
    let is_spoken = request.uri().path().split('/').any(|part| SPOKEN_AT.contains(&part));
    let known = request.extensions().get::<KnownSecrets>().filter(|_| is_spoken);
    known.map(KnownSecrets::redactor).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use ports::Secret;

    #[test]
    fn s10_11_words_are_looked_through_at_the_door_of_every_protocol_and_contents_of_files_at_none() {
        let known = KnownSecrets::default();
        known.learn(&[Secret::new("planted-secret")]);
        let says = |path: &str| {
            let request = http::Request::builder().method("POST").uri(path).extension(known.clone());
            !redactor_of(&request.body(Body::empty()).expect("a request")).is_empty()
        };
        let workspace = "/api/v1/workspaces/019bf537-f228-7cd3-aa1c-3da8af302e12";
        for path in [
            format!("{workspace}/chats/x/turns"),
            format!("{workspace}/flows/f/tasks"),
            format!("{workspace}/schedules"),
            format!("{workspace}/ai-sdk/chat"),
            format!("{workspace}/ag-ui"),
            "/v1/threads/x/turns?workspaceId=x".to_owned(),
            "/v1/permissions/x".to_owned(),
            "/openai/v1/responses".to_owned(),
            "/langgraph/threads/x/runs/stream".to_owned(),
            "/langgraph/runs/wait".to_owned(),
            "/a2a".to_owned(),
            "/api/agent/stream".to_owned(),
        ] {
            assert!(says(&path), "{path}");
        }
        // An id may begin as the name of a protocol does.
        let by_id = format!("{workspace}/files/a2af5370-f228-7cd3-aa1c-3da8af302e12");
        for path in [by_id, format!("{workspace}/files/by-path"), "/langgraph/store/items".to_owned()] {
            assert!(!says(&path), "{path}");
        }
    }
}
