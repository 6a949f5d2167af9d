//! The table: the rights that each route needs, and a call of it that works with them.

use identity::Action;
use std::collections::BTreeSet;

/// The rights that a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Everybody, without any credential.
    Nothing,
    /// A valid credential with this scope, if any is asked for: the route shows public data, or one's own.
    Credential(Option<Action>),
    /// A person, not a key.
    InPerson,
    /// The operator of the server.
    Machine,
    /// A member of the workspace whose role may do this.
    In(Action),
}

/// A route, and a call of it. Names in braces stand for ids or names of the tenant.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Method and path as the document has them.
    pub route: &'static str,
    /// The rights that it needs.
    pub needs: Needs,
    /// The rest of the path's ids, where the route's own names do not say which: `file_id` as `trashed_id`.
    pub like: &'static [(&'static str, &'static str)],
    /// The query string.
    pub query: &'static str,
    /// The JSON body.
    pub body: &'static str,
}

const fn row(route: &'static str, needs: Needs, query: &'static str, body: &'static str) -> Row {
    Row { route, needs, like: &[], query, body }
}

const fn like(route: &'static str, needs: Needs, like: &'static [(&'static str, &'static str)]) -> Row {
    Row { route, needs, like, query: "", body: "" }
}

/// The workspace of a route of the hub, whose paths name none.
pub const HERE: &str = "workspaceId={workspace_id}";

/// An assistant, a run, and a body of a run and of a cron at the routes of LangGraph.
const ASSISTANT: &[(&str, &str)] = &[("assistant_id", "agent")];
const RUN: &[(&str, &str)] = &[("run_id", "turn_id")];
const SAYS: &str = r#"{"assistant_id": "assistant", "input": {"messages": "more"}}"#;
const MODE: &str = r#"{"configId": "mode", "value": "plan"}"#;
const CRON: &str = r#"{"assistant_id": "assistant", "schedule": "0 9 * * *", "input": {"messages": "more"}}"#;

/// One row per route.
pub const ROWS: &[Row] = {
    use Action::{Administer, Approve, Converse, Own, Read, Run, Write};
    use Needs::{Credential, In, InPerson, Machine, Nothing};
    &[
        row("GET /", Nothing, "", ""),
        row("GET /health", Nothing, "", ""),
        row("GET /ready", Nothing, "", ""),
        row("GET /openapi.json", Nothing, "", ""),
        row("GET /.well-known/oauth-protected-resource", Nothing, "", ""),
        row("GET /metrics", Machine, "", ""),
        row("GET /api/v1/dead-letters", Machine, "", ""),
        row("POST /api/v1/dead-letters/redrive", Machine, "", r#"{"group": "chat/a/b"}"#),
        row("GET /api/v1/agents", Credential(None), "", ""),
        row("GET /api/agent/stream", In(Read), "workspace_id={workspace_id}", ""),
        row("POST /api/agent/stream", In(Converse), "workspace_id={workspace_id}", r#"{"message": "go on"}"#),
        // Without a session, which is of one person alone: the right is asked for first.
        row("GET /api/agent/plans", In(Read), "workspace_id={workspace_id}", ""),
        row("GET /healthz", Nothing, "", ""),
        row("GET /v1/agents", In(Read), HERE, ""),
        row("GET /v1/agents/{agent}/models", In(Read), HERE, ""),
        row("GET /v1/path-search", In(Read), HERE, ""),
        row("GET /v1/recent-directories", In(Read), HERE, ""),
        row("GET /v1/threads", In(Read), HERE, ""),
        row("POST /v1/threads", In(Converse), HERE, r#"{"agent": "buildscale", "cwd": "/workspace"}"#),
        row("GET /v1/threads/{thread_id}", In(Read), HERE, ""),
        row("PATCH /v1/threads/{thread_id}", In(Converse), HERE, r#"{"title": "other"}"#),
        row("DELETE /v1/threads/{thread_id}", In(Converse), HERE, ""),
        row("POST /v1/threads/{thread_id}/turns", In(Converse), HERE, r#"{"input": "go on"}"#),
        row("GET /v1/threads/{thread_id}/events", In(Read), HERE, ""),
        row("GET /v1/threads/{thread_id}/history", In(Read), HERE, ""),
        row("GET /v1/threads/{thread_id}/rules", In(Read), HERE, ""),
        row("DELETE /v1/threads/{thread_id}/rules/{rule_id}", In(Approve), HERE, ""),
        row("POST /v1/threads/{thread_id}/compact", In(Converse), HERE, "{}"),
        row("GET /v1/threads/{thread_id}/config-options", In(Read), HERE, ""),
        row("POST /v1/threads/{thread_id}/config-options", In(Converse), HERE, MODE),
        row("GET /v1/threads/{thread_id}/sessions", In(Read), HERE, ""),
        row("GET /v1/threads/{thread_id}/session-history", In(Read), "workspaceId={workspace_id}&sessionId=s", ""),
        row("GET /v1/threads/{thread_id}/slash-commands", In(Read), HERE, ""),
        row("GET /v1/turns/{turn_id}/events", In(Read), HERE, ""),
        row("POST /v1/turns/{turn_id}/cancel", In(Converse), HERE, ""),
        row("POST /v1/permissions/{permission_id}", In(Approve), HERE, r#"{"outcome": "approved"}"#),
        row("GET /attachments/{file_id}", In(Read), HERE, ""),
        row("GET /.well-known/agent-card.json", Nothing, "", ""),
        row("GET /a2a/{workspace_id}/.well-known/agent-card.json", In(Read), "", ""),
        row("POST /a2a", In(Converse), HERE, r#"{"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}"#),
        row(
            "POST /a2a/{workspace_id}",
            In(Converse),
            "",
            r#"{"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}"#,
        ),
        row("GET /openai/v1/models", In(Read), HERE, ""),
        Row { query: HERE, ..like("GET /openai/v1/models/{model}", In(Read), &[("model", "agent")]) },
        row(
            "POST /openai/v1/chat/completions",
            In(Converse),
            HERE,
            r#"{"model": "assistant", "messages": [{"role": "user", "content": "more"}], "stream": true}"#,
        ),
        row(
            "POST /openai/v1/responses",
            In(Converse),
            HERE,
            r#"{"model": "assistant", "input": "more", "background": true}"#,
        ),
        row("GET /openai/v1/responses/{response_id}", In(Read), HERE, ""),
        row("POST /openai/v1/responses/{response_id}/cancel", In(Converse), HERE, ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/ai-sdk/chat",
            In(Converse),
            "",
            r#"{"id": "c", "messages": [{"role": "user", "parts": [{"type": "text", "text": "more"}]}]}"#,
        ),
        // A client asks for the stream of any id that it has made; there is none for an id of another workspace.
        like("GET /api/v1/workspaces/{workspace_id}/ai-sdk/chat/{id}/stream", In(Read), &[("id", "name")]),
        like("POST /api/v1/workspaces/{workspace_id}/ai-sdk/chat/{id}/stop", In(Converse), &[("id", "chat_id")]),
        row(
            "POST /api/v1/workspaces/{workspace_id}/ag-ui",
            In(Converse),
            "",
            r#"{"threadId": "c", "runId": "r", "messages": [{"role": "user", "content": "more"}]}"#,
        ),
        row("GET /langgraph/ok", Nothing, "", ""),
        row("GET /langgraph/info", Credential(None), "", ""),
        row("POST /langgraph/assistants/search", In(Read), HERE, "{}"),
        Row { query: HERE, ..like("GET /langgraph/assistants/{assistant_id}", In(Read), ASSISTANT) },
        Row { query: HERE, ..like("GET /langgraph/assistants/{assistant_id}/graph", In(Read), ASSISTANT) },
        Row { query: HERE, ..like("GET /langgraph/assistants/{assistant_id}/schemas", In(Read), ASSISTANT) },
        row("POST /langgraph/threads", In(Converse), HERE, "{}"),
        row("POST /langgraph/threads/search", In(Read), HERE, "{}"),
        row("GET /langgraph/threads/{thread_id}", In(Read), HERE, ""),
        row("DELETE /langgraph/threads/{thread_id}", In(Converse), HERE, ""),
        row("POST /langgraph/threads/{thread_id}/copy", In(Converse), HERE, ""),
        row("GET /langgraph/threads/{thread_id}/state", In(Read), HERE, ""),
        Row {
            query: HERE,
            ..like("GET /langgraph/threads/{thread_id}/state/{checkpoint_id}", In(Read), &[("checkpoint_id", "v")])
        },
        row("POST /langgraph/threads/{thread_id}/state", In(Converse), HERE, "{}"),
        row("POST /langgraph/threads/{thread_id}/state/checkpoint", In(Read), HERE, "{}"),
        row("PATCH /langgraph/threads/{thread_id}", In(Converse), HERE, "{}"),
        row("POST /langgraph/threads/{thread_id}/history", In(Read), HERE, "{}"),
        row("GET /langgraph/threads/{thread_id}/runs", In(Read), HERE, ""),
        row("POST /langgraph/threads/{thread_id}/runs", In(Converse), HERE, SAYS),
        row("POST /langgraph/threads/{thread_id}/runs/stream", In(Converse), HERE, SAYS),
        // An answer that is waited for does not come here: nothing runs.
        row("POST /langgraph/threads/{thread_id}/runs/wait", In(Converse), HERE, r#"{"assistant_id": "assistant"}"#),
        Row { query: HERE, ..like("GET /langgraph/threads/{thread_id}/runs/{run_id}", In(Read), RUN) },
        Row {
            query: "workspaceId={workspace_id}&cancel_on_disconnect=1",
            ..like("GET /langgraph/threads/{thread_id}/runs/{run_id}/join", In(Read), RUN)
        },
        Row { query: HERE, ..like("GET /langgraph/threads/{thread_id}/runs/{run_id}/stream", In(Read), RUN) },
        Row { query: HERE, ..like("POST /langgraph/threads/{thread_id}/runs/{run_id}/cancel", In(Converse), RUN) },
        row("POST /langgraph/runs", In(Converse), HERE, SAYS),
        row("POST /langgraph/runs/stream", In(Converse), HERE, SAYS),
        row("POST /langgraph/runs/wait", In(Converse), HERE, r#"{"assistant_id": "assistant"}"#),
        row("POST /langgraph/runs/crons", In(Converse), HERE, CRON),
        row("POST /langgraph/threads/{thread_id}/runs/crons", In(Converse), HERE, CRON),
        row("POST /langgraph/runs/crons/search", In(Read), HERE, "{}"),
        Row {
            query: HERE,
            body: r#"{"enabled": false}"#,
            ..like("PATCH /langgraph/runs/crons/{cron_id}", In(Converse), &[("cron_id", "schedule_id")])
        },
        Row {
            query: HERE,
            ..like("DELETE /langgraph/runs/crons/{cron_id}", In(Converse), &[("cron_id", "schedule_id")])
        },
        row("PUT /langgraph/store/items", In(Write), HERE, r#"{"namespace": ["a"], "key": "k", "value": {}}"#),
        row("GET /langgraph/store/items", In(Read), "workspaceId={workspace_id}&namespace=a&key=k", ""),
        row("DELETE /langgraph/store/items", In(Write), HERE, r#"{"namespace": ["a"], "key": "k"}"#),
        row("POST /langgraph/store/items/search", In(Read), HERE, "{}"),
        row("POST /langgraph/store/namespaces", In(Read), HERE, "{}"),
        row("GET /api/v1/models", Credential(None), "", ""),
        row("GET /api/v1/flow-schemas", Credential(None), "", ""),
        row("GET /api/v1/flow-schemas/{name}", Credential(None), "", ""),
        row("GET /api/v1/workspaces", Credential(Some(Read)), "", ""),
        row("POST /api/v1/workspaces", Credential(Some(Own)), "", r#"{"name": "more"}"#),
        row("POST /api/v1/imports", Credential(Some(Own)), "name=more", include_str!("empty.tar")),
        row("GET /api/v1/keys", InPerson, "", ""),
        row(
            "POST /api/v1/keys",
            InPerson,
            "",
            r#"{"name": "k", "scopes": ["read"], "workspaces": ["{workspace_id}"]}"#,
        ),
        row("DELETE /api/v1/keys/{key_id}", InPerson, "", ""),
        row("GET /api/v1/workspaces/{workspace_id}", In(Read), "", ""),
        row("PATCH /api/v1/workspaces/{workspace_id}", In(Administer), "", r#"{"name": "other"}"#),
        row("DELETE /api/v1/workspaces/{workspace_id}", In(Own), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/export", In(Read), "", ""),
        row("PUT /api/v1/workspaces/{workspace_id}/presence", In(Read), "", r#"{"path": "/notes.md"}"#),
        row("GET /api/v1/workspaces/{workspace_id}/members", In(Read), "", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/members",
            In(Administer),
            "",
            r#"{"subject": "new@example.org", "role": "viewer"}"#,
        ),
        row("GET /api/v1/workspaces/{workspace_id}/members/me", In(Read), "", ""),
        row("PATCH /api/v1/workspaces/{workspace_id}/members/{user_id}", In(Administer), "", r#"{"role": "member"}"#),
        row("DELETE /api/v1/workspaces/{workspace_id}/members/{user_id}", In(Administer), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/access", In(Read), "path=/notes.md", ""),
        row("GET /api/v1/workspaces/{workspace_id}/agents", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/agents/{agent}", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/skills", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/usage", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/tools", In(Read), "", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/tools",
            In(Write),
            "",
            r#"{"tool": "read", "args": {"path": "/notes.md"}}"#,
        ),
        row("POST /api/v1/workspaces/{workspace_id}/search", In(Read), "", r#"{"query": "notes"}"#),
        row(
            "POST /api/v1/workspaces/{workspace_id}/mcp",
            In(Read),
            "",
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#,
        ),
        row("POST /mcp", In(Read), HERE, r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#),
        row("GET /api/v1/workspaces/{workspace_id}/mcp/servers", In(Read), "", ""),
        row("POST /api/v1/workspaces/{workspace_id}/mcp/{server}/authorize", In(Administer), "", ""),
        row("DELETE /api/v1/workspaces/{workspace_id}/mcp/{server}/authorize", In(Administer), "", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/mcp/{server}/authorize/confirm",
            In(Administer),
            "",
            r#"{"code": "12345678"}"#,
        ),
        row("GET /api/v1/mcp/callback", Nothing, "state=a&code=b", ""),
        // Chats.
        row("GET /api/v1/workspaces/{workspace_id}/chats", In(Read), "", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/chats",
            In(Converse),
            "",
            r#"{"goal": "more", "files": ["{file_id}"]}"#,
        ),
        row("GET /api/v1/workspaces/{workspace_id}/chats/{chat_id}", In(Read), "after=0", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}",
            In(Converse),
            "",
            r#"{"content": "more", "files": ["{file_id}"]}"#,
        ),
        row("PATCH /api/v1/workspaces/{workspace_id}/chats/{chat_id}", In(Converse), "", r#"{"title": "other"}"#),
        row("DELETE /api/v1/workspaces/{workspace_id}/chats/{chat_id}", In(Converse), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/chats/{chat_id}/events", In(Read), "after=0", ""),
        row("GET /api/v1/workspaces/{workspace_id}/chats/{chat_id}/context", In(Read), "", ""),
        row("POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/compact", In(Converse), "", "{}"),
        row("DELETE /api/v1/workspaces/{workspace_id}/chats/{chat_id}/compact", In(Converse), "", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/edit",
            In(Converse),
            "",
            r#"{"turn_id": "019bf537-f228-7cd3-aa1c-000000000001", "content": "other words"}"#,
        ),
        row("POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/fork", In(Converse), "", "{}"),
        row("POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/stop", In(Converse), "", ""),
        row("POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/resume", In(Converse), "", "{}"),
        row(
            "POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/answers/{question_id}",
            In(Converse),
            "",
            r#"{"answers": {}}"#,
        ),
        row(
            "POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/calls/{call_id}/take",
            In(Converse),
            "",
            r#"{"program": "019bf537-f228-7cd3-aa1c-000000000001"}"#,
        ),
        row(
            "POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/calls/{call_id}",
            In(Converse),
            "",
            r#"{"output": "rung"}"#,
        ),
        row(
            "POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions/{permission_id}",
            In(Approve),
            "",
            r#"{"outcome": "approved"}"#,
        ),
        row("GET /api/v1/workspaces/{workspace_id}/waiting", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/permissions", In(Read), "", ""),
        row("DELETE /api/v1/workspaces/{workspace_id}/permissions", In(Approve), "rule_id={standing_id}", ""),
        row("GET /api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions", In(Read), "", ""),
        row("DELETE /api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions", In(Approve), "", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/approve",
            In(Approve),
            "",
            r#"{"plan_id": "{plan_id}", "v": 1}"#,
        ),
        row("GET /api/v1/workspaces/{workspace_id}/events", In(Read), "after=0", ""),
        row("POST /api/v1/workspaces/{workspace_id}/stream-tickets", In(Read), "", r#"{"chat_id": "{chat_id}"}"#),
        // Files.
        row("GET /api/v1/workspaces/{workspace_id}/files", In(Read), "", ""),
        row("POST /api/v1/workspaces/{workspace_id}/files", In(Write), "", r#"{"path": "/new.md", "content": "new"}"#),
        row("GET /api/v1/workspaces/{workspace_id}/files/by-path", In(Read), "path=/notes.md", ""),
        row(
            "PUT /api/v1/workspaces/{workspace_id}/files/by-path",
            In(Write),
            "path=/notes.md",
            r#"{"content": "other"}"#,
        ),
        row("GET /api/v1/workspaces/{workspace_id}/files/by-path/content", In(Read), "path=/notes.md", ""),
        row("PUT /api/v1/workspaces/{workspace_id}/files/by-path/content", In(Write), "path=/notes.md", "as it is"),
        row("GET /api/v1/workspaces/{workspace_id}/files/trash", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/files/{file_id}", In(Read), "", ""),
        row("PUT /api/v1/workspaces/{workspace_id}/files/{file_id}", In(Write), "", r#"{"content": "other"}"#),
        row("PATCH /api/v1/workspaces/{workspace_id}/files/{file_id}", In(Write), "", r#"{"path": "/moved.md"}"#),
        row("DELETE /api/v1/workspaces/{workspace_id}/files/{file_id}", In(Write), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/files/{file_id}/address", In(Read), "", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/uploads",
            In(Write),
            "",
            r#"{"sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "size": 20000}"#,
        ),
        // Without their tickets, which are credentials themselves: `transfers.rs` has those.
        row("GET /api/v1/workspaces/{workspace_id}/contents/{sha256}", In(Read), "", ""),
        row("PUT /api/v1/workspaces/{workspace_id}/contents/{sha256}", In(Write), "", "as it is"),
        row("GET /api/v1/workspaces/{workspace_id}/files/{file_id}/content", In(Read), "", ""),
        row("PUT /api/v1/workspaces/{workspace_id}/files/{file_id}/content", In(Write), "", "as it is"),
        like("POST /api/v1/workspaces/{workspace_id}/files/{file_id}/restore", In(Write), &[("file_id", "trashed_id")]),
        like(
            "DELETE /api/v1/workspaces/{workspace_id}/files/{file_id}/purge",
            In(Administer),
            &[("file_id", "trashed_id")],
        ),
        row("GET /api/v1/workspaces/{workspace_id}/files/{file_id}/versions", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/content", In(Read), "", ""),
        row("POST /api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/restore", In(Write), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/files/{file_id}/diff", In(Read), "from=1&to=2", ""),
        row("GET /api/v1/workspaces/{workspace_id}/files/tags", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/files/tags/{tag}", In(Read), "", ""),
        row("POST /api/v1/workspaces/{workspace_id}/files/{file_id}/tags", In(Write), "", r#"{"tags": ["open"]}"#),
        row("DELETE /api/v1/workspaces/{workspace_id}/files/{file_id}/tags", In(Write), "tag=open", ""),
        row("GET /api/v1/workspaces/{workspace_id}/files/{file_id}/links", In(Read), "", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/files/{file_id}/links",
            In(Write),
            "",
            r#"{"to": "{plan_id}", "kind": "answers"}"#,
        ),
        row(
            "DELETE /api/v1/workspaces/{workspace_id}/files/{file_id}/links",
            In(Write),
            "to={plan_id}&kind=answers",
            "",
        ),
        row("GET /api/v1/workspaces/{workspace_id}/files/{file_id}/network", In(Read), "depth=2", ""),
        row("GET /api/v1/workspaces/{workspace_id}/changes", In(Read), "", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/rewind",
            In(Write),
            "",
            r#"{"scope": {"kind": "workspace"}, "to": {"time": "2100-01-01T00:00:00Z"}}"#,
        ),
        // Flows.
        row("GET /api/v1/workspaces/{workspace_id}/flows", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/flows/{flow}", In(Read), "", ""),
        row("POST /api/v1/workspaces/{workspace_id}/flows/{flow}/check", In(Read), "", "{}"),
        row("GET /api/v1/workspaces/{workspace_id}/flows/{flow}/graph", In(Read), "format=dot", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/flows/{flow}/tasks",
            In(Run),
            "",
            r#"{"input": 1, "files": ["{file_id}"]}"#,
        ),
        row("POST /api/v1/workspaces/{workspace_id}/flows/{flow}/evaluations", In(Run), "", "{}"),
        row("GET /api/v1/workspaces/{workspace_id}/evaluations", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/evaluations/{evaluation_id}", In(Read), "", ""),
        row("POST /api/v1/workspaces/{workspace_id}/evaluations/{evaluation_id}/stop", In(Run), "", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/schedules",
            In(Converse),
            "",
            r#"{"name": "n", "rrule": "FREQ=DAILY", "action": {"kind": "message", "chat_id": "{chat_id}", "content": "x"}}"#,
        ),
        row("GET /api/v1/workspaces/{workspace_id}/schedules", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/schedules/{schedule_id}", In(Read), "", ""),
        row("PATCH /api/v1/workspaces/{workspace_id}/schedules/{schedule_id}", In(Converse), "", r#"{"paused": true}"#),
        row("POST /api/v1/workspaces/{workspace_id}/schedules/{schedule_id}/run", In(Converse), "", ""),
        row("DELETE /api/v1/workspaces/{workspace_id}/schedules/{schedule_id}", In(Converse), "", ""),
        // Webhooks.
        row(
            "POST /api/v1/workspaces/{workspace_id}/webhooks",
            In(Administer),
            "",
            r#"{"name": "n", "url": "https://receiver.example/", "events": ["turn.ended"], "chat_id": "{chat_id}"}"#,
        ),
        row("GET /api/v1/workspaces/{workspace_id}/webhooks", In(Administer), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}", In(Administer), "", ""),
        row("PATCH /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}", In(Administer), "", r#"{"name": "n"}"#),
        row("POST /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/secret", In(Administer), "", ""),
        row("POST /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/test", In(Administer), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries", In(Administer), "", ""),
        row(
            "POST /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/retry",
            In(Administer),
            "",
            "",
        ),
        row("DELETE /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}", In(Administer), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/sandbox", In(Read), "", ""),
        row("POST /api/v1/workspaces/{workspace_id}/sandbox", In(Run), "", ""),
        row("DELETE /api/v1/workspaces/{workspace_id}/sandbox", In(Write), "", ""),
        // Tasks.
        row("GET /api/v1/workspaces/{workspace_id}/tasks", In(Read), "parent={task_id}", ""),
        row("GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}", In(Read), "", ""),
        row("PATCH /api/v1/workspaces/{workspace_id}/tasks/{task_id}", In(Run), "", r#"{"priority": 3}"#),
        row("DELETE /api/v1/workspaces/{workspace_id}/tasks/{task_id}", In(Run), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/events", In(Read), "after=0", ""),
        row("GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/history", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/artifacts", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/artifacts", In(Read), "task={task_id}", ""),
        row("GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/trace", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/memory", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/metadata", In(Read), "", ""),
        row("GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/diff", In(Read), "with={other_task_id}", ""),
        row("POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/stop", In(Run), "", ""),
        row("POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/pause", In(Run), "", "{}"),
        row("POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/step", In(Run), "", ""),
        row("POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/resume", In(Run), "", "{}"),
        row(
            "POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/answers/{node}",
            In(Run),
            "",
            r#"{"answers": {"approved": true}}"#,
        ),
        row("POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/replay", In(Run), "", "{}"),
        row("POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/retry", In(Run), "", ""),
    ]
};

/// Further calls of the same routes, and the names in them that are worth swapping.
pub const ALSO: &[(Row, &str)] = &[
    (
        row(
            "GET /api/v1/workspaces/{workspace_id}/flows/{flow}/graph",
            Needs::In(Action::Read),
            "format=dot&task={task_id}",
            "",
        ),
        "task_id",
    ),
    (
        row(
            "POST /api/v1/workspaces/{workspace_id}/stream-tickets",
            Needs::In(Action::Read),
            "",
            r#"{"task_id": "{task_id}"}"#,
        ),
        "task_id",
    ),
];

impl Row {
    pub fn method(&self) -> &'static str {
        self.route.split(' ').next().unwrap()
    }

    /// Path and query, with names in braces.
    pub fn target(&self) -> String {
        let mut path = self.route.split(' ').nth(1).unwrap().to_owned();
        for (name, like) in self.like {
            path = path.replace(&format!("{{{name}}}"), &format!("{{{like}}}"));
        }
        if self.query.is_empty() { path } else { format!("{path}?{}", self.query) }
    }

    /// The names in braces, wherever they are.
    pub fn names(&self) -> BTreeSet<String> {
        let text = format!("{} {}", self.target(), self.body);
        let names = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
        let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        names.map(|(name, _)| name.to_owned()).filter(|name| is_name(name)).collect()
    }
}
