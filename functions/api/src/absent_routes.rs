//! Routes that clients of LangGraph's server may call and that are not here: the way to do what they are for.

use http::Method;

/// The way to do what a route is for that clients of LangGraph's server call here in vain.
pub(crate) fn instead(method: &Method, path: &str) -> Option<&'static str> {
    let names: Vec<&str> = path.strip_prefix("/langgraph/")?.split('/').collect();
    Some(match (method.as_str(), &names[..]) {
        ("POST", ["assistants"]) | ("PATCH" | "DELETE", ["assistants", _]) => {
            "an assistant is a file: write /system/agents/NAME/AGENT.md, or a folder below /system/flows"
        }
        ("POST", ["assistants", _, "versions" | "latest"]) => {
            "the versions of an assistant are those of its files: GET /api/v1/workspaces/ID/files/ID/versions"
        }
        ("POST", ["threads", "prune"]) => "delete the threads one by one: DELETE /langgraph/threads/ID",
        ("POST", ["threads", "count"]) => "POST /langgraph/threads/search lists threads",
        ("PATCH", ["threads", _, "state"]) => "agents make the states of a thread: send a message",
        ("POST", ["threads", _, "commands"]) | (_, ["threads", _, "stream", "events"]) => {
            "threads.stream has a newer protocol: use runs.stream, or useStream of @langchain/langgraph-sdk/react"
        }
        ("DELETE", ["threads", _, "runs", _]) => "a run is a part of the log of its thread: delete the thread",
        ("GET", ["runs", _, "stream"]) => "join a run in its thread: GET /langgraph/threads/ID/runs/ID/stream",
        _ => return None,
    })
}
