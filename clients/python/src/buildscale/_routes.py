"""The routes of a hub: which arguments each takes, and its answer.

This file is written by generate.py. Do not edit it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict, overload

from .schema import (
    Accepted,
    AcceptedChat,
    AcceptedCompaction,
    AcceptedEdit,
    AcceptedRun,
    AcceptedTaskCommand,
    AccessExplanation,
    AgentRequest,
    Answers,
    ApiKey,
    ApiKeyPage,
    ApprovePlanRequest,
    Artifact,
    ArtifactPage,
    CallClaim,
    CallResult,
    Cancelled,
    Change,
    ChangeList,
    ChangeRecord,
    Chat,
    ChatCallHandedOut,
    ChatChanges,
    ChatPage,
    ChatWithHistory,
    CheckFlowRequest,
    CodingAgents,
    CreatedApiKey,
    DeadLetters,
    Diff,
    Evaluation,
    EvaluationPage,
    EvaluationSelection,
    FileInfo,
    FileOp,
    FilePage,
    FileTags,
    Flow,
    FlowReport,
    FlowSchemas,
    Flows,
    Health,
    HubAgents,
    HubChoice,
    HubCommands,
    HubCompact,
    HubCompacted,
    HubConfigOptions,
    HubCreatedThread,
    HubDecision,
    HubDeletedThread,
    HubDirectories,
    HubHealth,
    HubHistory,
    HubModels,
    HubNewThread,
    HubNewTurn,
    HubPaths,
    HubRecordedDecision,
    HubRevokedRule,
    HubRules,
    HubSessionHistory,
    HubSessions,
    HubThread,
    HubThreadChange,
    HubThreadResponse,
    HubThreads,
    HubTurnStatus,
    ImportedWorkspace,
    McpServerList,
    McpSignIn,
    McpSignInCode,
    Me,
    Member,
    MemberPage,
    MessageEdit,
    Models,
    Move,
    Network,
    NewApiKey,
    NewChat,
    NewCompaction,
    NewContent,
    NewFile,
    NewFork,
    NewLink,
    NewMember,
    NewMessage,
    NewRole,
    NewSchedule,
    NewTags,
    NewTask,
    NewTicket,
    NewUpload,
    NewWebhook,
    PauseTaskRequest,
    PermissionDecision,
    PersonaList,
    PersonaOrSkill,
    PresenceUpdate,
    RedriveRequest,
    Redriven,
    Relations,
    ReplayTaskRequest,
    ResourceMetadata,
    ResumeChatRequest,
    ResumeTaskRequest,
    RetryTaskRequest,
    Rewind,
    RewindRequest,
    Rules,
    Sandbox,
    Schedule,
    ScheduleChanges,
    SchedulePage,
    SearchAnswer,
    SearchRequest,
    SessionRecords,
    SessionsResponse,
    SkillList,
    StandingRules,
    StepAnswers,
    TagCounts,
    TaggedPage,
    Task,
    TaskAccepted,
    TaskChange,
    TaskDiff,
    TaskHistory,
    TaskMemory,
    TaskMetadata,
    TaskPage,
    TaskPhase,
    TaskStage,
    TaskStatus,
    Ticket,
    ToolCall,
    ToolResult,
    Tools,
    Transfer,
    TrashEntry,
    TrashPage,
    Turn,
    TurnContexts,
    UiStopped,
    UsageReport,
    Version,
    VersionPage,
    WaitingEntry,
    WaitingPage,
    Webhook,
    WebhookChanges,
    WebhookDelivery,
    WebhookDeliveryPage,
    WebhookList,
    WebhookWithSecret,
    Workspace,
    WorkspaceName,
    WorkspacePage,
)

# The paths that can be read as they are.
Readable: TypeAlias = Literal[
    '/',
    '/.well-known/agent-card.json',
    '/.well-known/oauth-protected-resource',
    '/a2a/{workspace_id}/.well-known/agent-card.json',
    '/api/agent/plans',
    '/api/agent/stream',
    '/api/v1/agents',
    '/api/v1/dead-letters',
    '/api/v1/flow-schemas',
    '/api/v1/flow-schemas/{name}',
    '/api/v1/keys',
    '/api/v1/mcp/callback',
    '/api/v1/models',
    '/api/v1/workspaces',
    '/api/v1/workspaces/{workspace_id}',
    '/api/v1/workspaces/{workspace_id}/access',
    '/api/v1/workspaces/{workspace_id}/agents',
    '/api/v1/workspaces/{workspace_id}/agents/{agent}',
    '/api/v1/workspaces/{workspace_id}/ai-sdk/chat/{id}/stream',
    '/api/v1/workspaces/{workspace_id}/artifacts',
    '/api/v1/workspaces/{workspace_id}/changes',
    '/api/v1/workspaces/{workspace_id}/chats',
    '/api/v1/workspaces/{workspace_id}/chats/{chat_id}',
    '/api/v1/workspaces/{workspace_id}/chats/{chat_id}/context',
    '/api/v1/workspaces/{workspace_id}/chats/{chat_id}/events',
    '/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions',
    '/api/v1/workspaces/{workspace_id}/contents/{sha256}',
    '/api/v1/workspaces/{workspace_id}/evaluations',
    '/api/v1/workspaces/{workspace_id}/evaluations/{evaluation_id}',
    '/api/v1/workspaces/{workspace_id}/events',
    '/api/v1/workspaces/{workspace_id}/export',
    '/api/v1/workspaces/{workspace_id}/files',
    '/api/v1/workspaces/{workspace_id}/files/by-path',
    '/api/v1/workspaces/{workspace_id}/files/by-path/content',
    '/api/v1/workspaces/{workspace_id}/files/tags',
    '/api/v1/workspaces/{workspace_id}/files/tags/{tag}',
    '/api/v1/workspaces/{workspace_id}/files/trash',
    '/api/v1/workspaces/{workspace_id}/files/{file_id}',
    '/api/v1/workspaces/{workspace_id}/files/{file_id}/address',
    '/api/v1/workspaces/{workspace_id}/files/{file_id}/content',
    '/api/v1/workspaces/{workspace_id}/files/{file_id}/diff',
    '/api/v1/workspaces/{workspace_id}/files/{file_id}/links',
    '/api/v1/workspaces/{workspace_id}/files/{file_id}/network',
    '/api/v1/workspaces/{workspace_id}/files/{file_id}/versions',
    '/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}',
    '/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/content',
    '/api/v1/workspaces/{workspace_id}/flows',
    '/api/v1/workspaces/{workspace_id}/flows/{flow}',
    '/api/v1/workspaces/{workspace_id}/flows/{flow}/graph',
    '/api/v1/workspaces/{workspace_id}/mcp/servers',
    '/api/v1/workspaces/{workspace_id}/members',
    '/api/v1/workspaces/{workspace_id}/members/me',
    '/api/v1/workspaces/{workspace_id}/permissions',
    '/api/v1/workspaces/{workspace_id}/sandbox',
    '/api/v1/workspaces/{workspace_id}/schedules',
    '/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}',
    '/api/v1/workspaces/{workspace_id}/skills',
    '/api/v1/workspaces/{workspace_id}/tasks',
    '/api/v1/workspaces/{workspace_id}/tasks/{task_id}',
    '/api/v1/workspaces/{workspace_id}/tasks/{task_id}/artifacts',
    '/api/v1/workspaces/{workspace_id}/tasks/{task_id}/diff',
    '/api/v1/workspaces/{workspace_id}/tasks/{task_id}/events',
    '/api/v1/workspaces/{workspace_id}/tasks/{task_id}/history',
    '/api/v1/workspaces/{workspace_id}/tasks/{task_id}/memory',
    '/api/v1/workspaces/{workspace_id}/tasks/{task_id}/metadata',
    '/api/v1/workspaces/{workspace_id}/tasks/{task_id}/trace',
    '/api/v1/workspaces/{workspace_id}/tools',
    '/api/v1/workspaces/{workspace_id}/usage',
    '/api/v1/workspaces/{workspace_id}/waiting',
    '/api/v1/workspaces/{workspace_id}/webhooks',
    '/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}',
    '/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries',
    '/attachments/{file_id}',
    '/health',
    '/healthz',
    '/langgraph/assistants/{assistant_id}',
    '/langgraph/assistants/{assistant_id}/graph',
    '/langgraph/assistants/{assistant_id}/schemas',
    '/langgraph/assistants/{assistant_id}/subgraphs',
    '/langgraph/info',
    '/langgraph/ok',
    '/langgraph/store/items',
    '/langgraph/threads/{thread_id}',
    '/langgraph/threads/{thread_id}/runs',
    '/langgraph/threads/{thread_id}/runs/{run_id}',
    '/langgraph/threads/{thread_id}/runs/{run_id}/join',
    '/langgraph/threads/{thread_id}/runs/{run_id}/stream',
    '/langgraph/threads/{thread_id}/state',
    '/langgraph/threads/{thread_id}/state/{checkpoint_id}',
    '/langgraph/threads/{thread_id}/stream',
    '/metrics',
    '/openai/v1/models',
    '/openai/v1/models/{model}',
    '/openai/v1/responses/{response_id}',
    '/openapi.json',
    '/ready',
    '/v1/agents',
    '/v1/agents/{agent}/models',
    '/v1/path-search',
    '/v1/recent-directories',
    '/v1/threads',
    '/v1/threads/{thread_id}',
    '/v1/threads/{thread_id}/config-options',
    '/v1/threads/{thread_id}/events',
    '/v1/threads/{thread_id}/history',
    '/v1/threads/{thread_id}/rules',
    '/v1/threads/{thread_id}/session-history',
    '/v1/threads/{thread_id}/sessions',
    '/v1/threads/{thread_id}/slash-commands',
    '/v1/turns/{turn_id}/events',
]


class AgentPlansQuery(TypedDict):
    # The workspace; the first one of the caller without it.
    workspace_id: NotRequired[str]
    # The session; it is needed.
    session_id: str
    # The compression that comes with its `original_messages`.
    compression_id: NotRequired[str]


class AgentSessionsQuery(TypedDict):
    # The workspace; the first one of the caller without it.
    workspace_id: NotRequired[str]
    # The session; a list of them without it.
    session_id: NotRequired[str]
    # Goes on with the stream of a session after the event with this `id:`; `Last-Event-ID` comes before it.
    after: NotRequired[int]
    # At most this many sessions; 1 to 200. A page can be shorter although there are more.
    limit: NotRequired[int]
    # `next_cursor` of the page of sessions before.
    cursor: NotRequired[str]


class AgentStreamQuery(TypedDict):
    # The workspace; the first one of the caller without it.
    workspace_id: NotRequired[str]


class CancelRunQuery(TypedDict):
    # Whether the answer comes when the run has ended: `1` or `0`.
    wait: NotRequired[str]
    # `interrupt`: what was done stays.
    action: NotRequired[str]


class CancelRunsQuery(TypedDict):
    # `interrupt`: what was done stays.
    action: NotRequired[str]


class CompleteMcpSignInQuery(TypedDict):
    # The sign-in that it answers.
    state: str
    # The code for tokens.
    code: NotRequired[str]
    # Why there is none.
    error: NotRequired[str]
    # The issuer.
    iss: NotRequired[str]


DiffTasksQuery = TypedDict('DiffTasksQuery', {
    # The other task.
    'with': 'str',
})


DiffVersionsQuery = TypedDict('DiffVersionsQuery', {
    # The older one.
    'from': 'int',
    # The newer one.
    'to': 'int',
})


class DownloadQuery(TypedDict):
    # It comes with the address.
    ticket: str


class DrawFlowQuery(TypedDict):
    # The format of the drawing.
    format: NotRequired[Literal['svg', 'dot', 'mermaid', 'text']]
    # The run to paint on it: then the flow is drawn as it was when this task began.
    task: NotRequired[str]


class ExplainAccessQuery(TypedDict):
    # The path; nothing needs to be there.
    path: str
    # `me`, `user:<id>`, `agent:<persona>`, `task`, or one of these two for another person: `agent:<persona>:<id>`, `task:<id>`. Admins ask about
    # others. `service:sandbox` fills the mirrors that commands see, `service:handoff` looks at files that start flows.
    principal: NotRequired[str]
    # The action; all when none.
    action: NotRequired[str]


class ExportWorkspaceQuery(TypedDict):
    # `tar`, which is the default, or `git`.
    format: NotRequired[Literal['tar', 'git']]


class FindArtifactsQuery(TypedDict):
    # Of this task.
    task: NotRequired[str]
    # Of tasks of this flow, by name.
    flow: NotRequired[str]
    # Of this node; with `flow` or `task`.
    node: NotRequired[str]
    # That fit this schema, by name; with `flow` or `task`.
    schema: NotRequired[str]
    # That came about then or later (RFC 3339).
    after: NotRequired[str]
    # That came about before (RFC 3339).
    before: NotRequired[str]
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class ForgetPermissionsQuery(TypedDict):
    # The rule [default: all of them].
    rule_id: NotRequired[str]


class GetChatQuery(TypedDict):
    # Only messages after the event with this number.
    after: NotRequired[int]
    # Only messages before the event with this number, the last of them: so a long chat opens at its end. The largest number gives the
    # newest messages. Either this or `after`.
    before: NotRequired[int]
    # At most about this many messages; 1 to 1,000.
    limit: NotRequired[int]


GetContentByPathQuery = TypedDict('GetContentByPathQuery', {
    # The path.
    'path': 'str',
    # The form: as it was written, which is the default, or the Markdown of a document.
    'as': "NotRequired[Literal['raw', 'markdown']]",
})


GetContentQuery = TypedDict('GetContentQuery', {
    # The form: as it was written, which is the default, or the Markdown of a document.
    'as': "NotRequired[Literal['raw', 'markdown']]",
})


class GetContextQuery(TypedDict):
    # The turn; the last one by default.
    turn: NotRequired[str]


class GetEvaluationQuery(TypedDict):
    # The format of the report.
    format: NotRequired[Literal['json', 'junit']]


class GetFileByPathQuery(TypedDict):
    # The path.
    path: str


class GetHistoryQuery(TypedDict):
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class GetItemQuery(TypedDict):
    # Its namespace: labels with dots between them.
    namespace: str
    # Its key.
    key: str


class GetNetworkQuery(TypedDict):
    # How many links a file may be away; 1 to 5.
    depth: NotRequired[int]
    # At most this many files; 1 to 500.
    limit: NotRequired[int]


class GetResponseQuery(TypedDict):
    # Whether its events are streamed.
    stream: NotRequired[bool]
    # Only events after the one with this `sequence_number`.
    starting_after: NotRequired[int]


class GetSessionHistoryQuery(TypedDict):
    # The agent's id of the session.
    sessionId: str


class GetThreadHistoryQuery(TypedDict):
    # Whether each turn has the events of its stream.
    includeEvents: NotRequired[bool]
    # Whether turns of the system itself are shown, too.
    includeInternal: NotRequired[bool]
    # Only turns of this session of the coding agent.
    sessionId: NotRequired[str]
    # The most turns of a page, which has the newest ones; all turns when none.
    limit: NotRequired[int]
    # The `nextCursor` of the page before: this one has earlier turns.
    cursor: NotRequired[str]


GetUsageQuery = TypedDict('GetUsageQuery', {
    # The first day, in UTC; 29 days before the last one when none.
    'from': 'NotRequired[str]',
    # The last day, in UTC; today when none.
    'to': 'NotRequired[str]',
    # Only this chat, with the agents that work for it: its executors, or its team.
    'chat_id': 'NotRequired[str]',
    # Only turns of agents that work for this person.
    'user_id': 'NotRequired[str]',
})


class ImportWorkspaceQuery(TypedDict):
    # The name of the workspace, for people; that of the archive when none is given.
    name: NotRequired[str]
    # `tar` for an archive, which is the default, or `git` for the output of `git fast-export`.
    format: NotRequired[Literal['tar', 'git']]
    # The folder that gets the files of a repository; the root when none is given. An archive has the places of its files itself.
    folder: NotRequired[str]


class JoinRunStreamQuery(TypedDict):
    # Whether the run is stopped when the client goes: `1` or `0`.
    cancel_on_disconnect: NotRequired[str]
    # A mode, once for each: `values`, `messages`, `messages-tuple`, `updates`, `custom`, `tools`. Without any: `values`, `messages-tuple`, `updates`
    # and `custom`.
    stream_mode: NotRequired[str]


class JoinThreadStreamQuery(TypedDict):
    # A mode, once for each: `run_modes` (`values`, `messages-tuple`, `updates` and `custom` of each run), `state_update` (`values`), `lifecycle` (the
    # begin and the end of each run).
    stream_mode: NotRequired[str]


class ListArtifactsQuery(TypedDict):
    # Of this node.
    node: NotRequired[str]
    # That fit this schema, by name.
    schema: NotRequired[str]
    # That came about then or later (RFC 3339).
    after: NotRequired[str]
    # That came about before (RFC 3339).
    before: NotRequired[str]
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class ListChangesQuery(TypedDict):
    # Only changes at or below this path, and moves from there.
    path: NotRequired[str]
    # Only changes by this author, as changes name it: `user:<id>`, `agent:<persona>`, `task:<id>`, `system`, or one of an imported repository, such as
    # `Ada <ada@example.org>`. Another text is refused.
    author: NotRequired[str]
    # Only changes of this kind.
    op: NotRequired[FileOp]
    # Only changes at this time or later.
    since: NotRequired[str]
    # Only changes before this time.
    until: NotRequired[str]
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class ListChatsQuery(TypedDict):
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]
    # Only those that have this label, as `key=value`; given more than once, those that have all of them. A page may have fewer than its limit
    # then, or none, and still have a next one.
    label: NotRequired[list[str]]


class ListDeadLettersQuery(TypedDict):
    # How many at most; 1 to 200 [default: 50].
    limit: NotRequired[int]


class ListEvaluationsQuery(TypedDict):
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class ListFilesQuery(TypedDict):
    # The folder.
    path: NotRequired[str]
    # At most this many; 1 to 1,000.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]
    # Whether files that are derived from documents are listed, too.
    hidden: NotRequired[bool]
    # Only files and folders with this tag: of each page, so it may have fewer entries than `limit`.
    tag: NotRequired[str]


class ListHubModelsQuery(TypedDict):
    # The folder that the agent is asked in; the first allowed root by default.
    cwd: NotRequired[str]


class ListKeysQuery(TypedDict):
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class ListMembersQuery(TypedDict):
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class ListRunsQuery(TypedDict):
    # At most this many; 1 to 100.
    limit: NotRequired[int]
    # So many of the newest are left out.
    offset: NotRequired[int]
    # Only those that are, or were, like this: `pending`, `running`, `interrupted`, `success`, `error` or `timeout`.
    status: NotRequired[str]


class ListSchedulesQuery(TypedDict):
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class ListSessionsQuery(TypedDict):
    # The `nextCursor` of the page before.
    cursor: NotRequired[str]


class ListTaggedQuery(TypedDict):
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class ListTasksQuery(TypedDict):
    # Only those of this flow.
    flow: NotRequired[str]
    # Only those that are, or were, like this.
    status: NotRequired[TaskStatus]
    # Only those that do this.
    phase: NotRequired[TaskPhase]
    # Only those that were made then or later (RFC 3339).
    since: NotRequired[str]
    # Only those that were made before (RFC 3339).
    until: NotRequired[str]
    # The clones and subtasks of this task, in their order, instead of the tasks that people made.
    parent: NotRequired[str]
    # Tasks whose ids begin so, of all creators, in the order of their ids, instead. No other filter counts then.
    id: NotRequired[str]
    # At most this many; 1 to 200. A page may have fewer and still have a next one.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]
    # Only those that have this label, as `key=value`; given more than once, those that have all of them. A page may have fewer than its limit
    # then, or none, and still have a next one.
    label: NotRequired[list[str]]


class ListThreadsQuery(TypedDict):
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `nextCursor` of the page before.
    cursor: NotRequired[str]


class ListTrashQuery(TypedDict):
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class ListVersionsQuery(TypedDict):
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class ListWaitingQuery(TypedDict):
    # Only this task, its clones and subtasks, and their agents.
    task: NotRequired[str]
    # At most this many; 1 to 200. A page may have fewer and still have a next one.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class ListWebhookDeliveriesQuery(TypedDict):
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class ListWorkspacesQuery(TypedDict):
    # At most this many; 1 to 200.
    limit: NotRequired[int]
    # The `next_cursor` of the page before.
    cursor: NotRequired[str]


class PutContentByPathQuery(TypedDict):
    # The path of the file; one that ends with `/` is refused.
    path: str


class PutFileByPathQuery(TypedDict):
    # The path of the file; one that ends with `/` is refused.
    path: str


class RemoveLinkQuery(TypedDict):
    # The file or folder to which it leads.
    to: str
    # Its kind.
    kind: str


class RemoveMemberQuery(TypedDict):
    # Whether all that is in their home `/users/<id>` is removed for good, with all versions, and what was removed from it before. The home of one who is no
    # member any more can be erased in this way, too.
    erase_home: NotRequired[bool]


class RemoveTagQuery(TypedDict):
    # The tag.
    tag: str


class RevokeStandingRuleQuery(TypedDict):
    # The rule.
    rule_id: str


class SearchPathsQuery(TypedDict):
    # The beginning of a path; the allowed roots without it.
    q: NotRequired[str]


class UploadQuery(TypedDict):
    # It comes with the address.
    ticket: str


class WatchChatQuery(TypedDict):
    # Only events after the one with this `id:`; 0 for all that are kept. `Last-Event-ID` comes before it. Without either, the
    # stream of a chat begins at the start of the running turn, or live when none runs; that of a task at its beginning; that of
    # a workspace with the next change. The `id:` of a change of a workspace is a time in milliseconds since 1970.
    after: NotRequired[int]
    # As the header `Last-Event-ID`, for an `EventSource` of a library: it puts the number behind the address when it connects again.
    lastEventId: NotRequired[int]
    # The wire format: `native`.
    protocol: NotRequired[str]
    # A ticket to this stream, of `POST …/stream-tickets`, instead of a token. It is checked before the handler.
    ticket: NotRequired[str]


class WatchTaskQuery(TypedDict):
    # Only events after the one with this `id:`; 0 for all that are kept. `Last-Event-ID` comes before it. Without either, the
    # stream of a chat begins at the start of the running turn, or live when none runs; that of a task at its beginning; that of
    # a workspace with the next change. The `id:` of a change of a workspace is a time in milliseconds since 1970.
    after: NotRequired[int]
    # As the header `Last-Event-ID`, for an `EventSource` of a library: it puts the number behind the address when it connects again.
    lastEventId: NotRequired[int]
    # The wire format: `native`.
    protocol: NotRequired[str]
    # A ticket to this stream, of `POST …/stream-tickets`, instead of a token. It is checked before the handler.
    ticket: NotRequired[str]


class WatchThreadQuery(TypedDict):
    # Only events after the one with this `id:`; `Last-Event-ID` comes before it. Without either, all events are sent.
    after: NotRequired[int]


class WatchTurnQuery(TypedDict):
    # Only events after the one with this `id:`; `Last-Event-ID` comes before it. Without either, all events are sent.
    after: NotRequired[int]


class WatchWorkspaceQuery(TypedDict):
    # Only events after the one with this `id:`; 0 for all that are kept. `Last-Event-ID` comes before it. Without either, the
    # stream of a chat begins at the start of the running turn, or live when none runs; that of a task at its beginning; that of
    # a workspace with the next change. The `id:` of a change of a workspace is a time in milliseconds since 1970.
    after: NotRequired[int]
    # As the header `Last-Event-ID`, for an `EventSource` of a library: it puts the number behind the address when it connects again.
    lastEventId: NotRequired[int]
    # The wire format: `native`.
    protocol: NotRequired[str]
    # A ticket to this stream, of `POST …/stream-tickets`, instead of a token. It is checked before the handler.
    ticket: NotRequired[str]
    # Up to 32 chats and tasks whose events come along: `chat:ID` or `task:ID`, with `:AFTER` where the client has events, and commas
    # between. Their events are `chat_event` and `task_event`. A client that comes back names the last number of each.
    actors: NotRequired[str]


class Routes(Protocol):
    """The typed methods of a client."""

    def _json(self, method: str, route: str, /, **request: Any) -> Any: ...

    def _all(self, route: str, /, **request: Any) -> Iterator[Any]: ...

    @overload
    def get(self, route: Literal['/'], /, *, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/.well-known/agent-card.json'], /, *, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/.well-known/oauth-protected-resource'], /, *, headers: Mapping[str, str] | None = None) -> ResourceMetadata: ...

    @overload
    def get(self, route: Literal['/a2a/{workspace_id}/.well-known/agent-card.json'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/api/agent/plans'], /, *, query: AgentPlansQuery, headers: Mapping[str, str] | None = None) -> SessionRecords: ...

    @overload
    def get(self, route: Literal['/api/agent/stream'], /, *, query: AgentSessionsQuery | None = None, headers: Mapping[str, str] | None = None) -> SessionsResponse | None: ...

    @overload
    def get(self, route: Literal['/api/v1/agents'], /, *, headers: Mapping[str, str] | None = None) -> CodingAgents: ...

    @overload
    def get(self, route: Literal['/api/v1/dead-letters'], /, *, query: ListDeadLettersQuery | None = None, headers: Mapping[str, str] | None = None) -> DeadLetters: ...

    @overload
    def get(self, route: Literal['/api/v1/flow-schemas'], /, *, headers: Mapping[str, str] | None = None) -> FlowSchemas: ...

    @overload
    def get(self, route: Literal['/api/v1/flow-schemas/{name}'], /, *, name: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/keys'], /, *, query: ListKeysQuery | None = None, headers: Mapping[str, str] | None = None) -> ApiKeyPage: ...

    @overload
    def get(self, route: Literal['/api/v1/mcp/callback'], /, *, query: CompleteMcpSignInQuery, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/models'], /, *, headers: Mapping[str, str] | None = None) -> Models: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces'], /, *, query: ListWorkspacesQuery | None = None, headers: Mapping[str, str] | None = None) -> WorkspacePage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> Workspace: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/access'], /, *, workspace_id: str, query: ExplainAccessQuery, headers: Mapping[str, str] | None = None) -> AccessExplanation: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/agents'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> PersonaList: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/agents/{agent}'], /, *, workspace_id: str, agent: str, headers: Mapping[str, str] | None = None) -> PersonaOrSkill: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/ai-sdk/chat/{id}/stream'], /, *, workspace_id: str, id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/artifacts'], /, *, workspace_id: str, query: FindArtifactsQuery | None = None, headers: Mapping[str, str] | None = None) -> ArtifactPage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/changes'], /, *, workspace_id: str, query: ListChangesQuery | None = None, headers: Mapping[str, str] | None = None) -> ChangeList: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats'], /, *, workspace_id: str, query: ListChatsQuery | None = None, headers: Mapping[str, str] | None = None) -> ChatPage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}'], /, *, workspace_id: str, chat_id: str, query: GetChatQuery | None = None, headers: Mapping[str, str] | None = None) -> ChatWithHistory: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/context'], /, *, workspace_id: str, chat_id: str, query: GetContextQuery | None = None, headers: Mapping[str, str] | None = None) -> TurnContexts: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/events'], /, *, workspace_id: str, chat_id: str, query: WatchChatQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions'], /, *, workspace_id: str, chat_id: str, headers: Mapping[str, str] | None = None) -> Rules: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/contents/{sha256}'], /, *, workspace_id: str, sha256: str, query: DownloadQuery, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/evaluations'], /, *, workspace_id: str, query: ListEvaluationsQuery | None = None, headers: Mapping[str, str] | None = None) -> EvaluationPage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/evaluations/{evaluation_id}'], /, *, workspace_id: str, evaluation_id: str, query: GetEvaluationQuery | None = None, headers: Mapping[str, str] | None = None) -> Evaluation: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/events'], /, *, workspace_id: str, query: WatchWorkspaceQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/export'], /, *, workspace_id: str, query: ExportWorkspaceQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files'], /, *, workspace_id: str, query: ListFilesQuery | None = None, headers: Mapping[str, str] | None = None) -> FilePage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/by-path'], /, *, workspace_id: str, query: GetFileByPathQuery, headers: Mapping[str, str] | None = None) -> FileInfo: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/by-path/content'], /, *, workspace_id: str, query: GetContentByPathQuery, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/tags'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> TagCounts: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/tags/{tag}'], /, *, workspace_id: str, tag: str, query: ListTaggedQuery | None = None, headers: Mapping[str, str] | None = None) -> TaggedPage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/trash'], /, *, workspace_id: str, query: ListTrashQuery | None = None, headers: Mapping[str, str] | None = None) -> TrashPage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}'], /, *, workspace_id: str, file_id: str, headers: Mapping[str, str] | None = None) -> FileInfo: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/address'], /, *, workspace_id: str, file_id: str, headers: Mapping[str, str] | None = None) -> Transfer: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/content'], /, *, workspace_id: str, file_id: str, query: GetContentQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/diff'], /, *, workspace_id: str, file_id: str, query: DiffVersionsQuery, headers: Mapping[str, str] | None = None) -> Diff: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/links'], /, *, workspace_id: str, file_id: str, headers: Mapping[str, str] | None = None) -> Relations: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/network'], /, *, workspace_id: str, file_id: str, query: GetNetworkQuery | None = None, headers: Mapping[str, str] | None = None) -> Network: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/versions'], /, *, workspace_id: str, file_id: str, query: ListVersionsQuery | None = None, headers: Mapping[str, str] | None = None) -> VersionPage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}'], /, *, workspace_id: str, file_id: str, v: int, headers: Mapping[str, str] | None = None) -> Version: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/content'], /, *, workspace_id: str, file_id: str, v: int, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/flows'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> Flows: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/flows/{flow}'], /, *, workspace_id: str, flow: str, headers: Mapping[str, str] | None = None) -> Flow: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/flows/{flow}/graph'], /, *, workspace_id: str, flow: str, query: DrawFlowQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/mcp/servers'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> McpServerList: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/members'], /, *, workspace_id: str, query: ListMembersQuery | None = None, headers: Mapping[str, str] | None = None) -> MemberPage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/members/me'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> Me: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/permissions'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> StandingRules: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/sandbox'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> Sandbox: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules'], /, *, workspace_id: str, query: ListSchedulesQuery | None = None, headers: Mapping[str, str] | None = None) -> SchedulePage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}'], /, *, workspace_id: str, schedule_id: str, headers: Mapping[str, str] | None = None) -> Schedule: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/skills'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> SkillList: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks'], /, *, workspace_id: str, query: ListTasksQuery | None = None, headers: Mapping[str, str] | None = None) -> TaskPage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None) -> Task: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/artifacts'], /, *, workspace_id: str, task_id: str, query: ListArtifactsQuery | None = None, headers: Mapping[str, str] | None = None) -> ArtifactPage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/diff'], /, *, workspace_id: str, task_id: str, query: DiffTasksQuery, headers: Mapping[str, str] | None = None) -> TaskDiff: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/events'], /, *, workspace_id: str, task_id: str, query: WatchTaskQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/history'], /, *, workspace_id: str, task_id: str, query: GetHistoryQuery | None = None, headers: Mapping[str, str] | None = None) -> TaskHistory: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/memory'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None) -> TaskMemory: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/metadata'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None) -> TaskMetadata: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/trace'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tools'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> Tools: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/usage'], /, *, workspace_id: str, query: GetUsageQuery | None = None, headers: Mapping[str, str] | None = None) -> UsageReport: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/waiting'], /, *, workspace_id: str, query: ListWaitingQuery | None = None, headers: Mapping[str, str] | None = None) -> WaitingPage: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> WebhookList: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}'], /, *, workspace_id: str, webhook_id: str, headers: Mapping[str, str] | None = None) -> Webhook: ...

    @overload
    def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries'], /, *, workspace_id: str, webhook_id: str, query: ListWebhookDeliveriesQuery | None = None, headers: Mapping[str, str] | None = None) -> WebhookDeliveryPage: ...

    @overload
    def get(self, route: Literal['/attachments/{file_id}'], /, *, file_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/health'], /, *, headers: Mapping[str, str] | None = None) -> Health: ...

    @overload
    def get(self, route: Literal['/healthz'], /, *, headers: Mapping[str, str] | None = None) -> HubHealth: ...

    @overload
    def get(self, route: Literal['/langgraph/assistants/{assistant_id}'], /, *, assistant_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/assistants/{assistant_id}/graph'], /, *, assistant_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/assistants/{assistant_id}/schemas'], /, *, assistant_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/assistants/{assistant_id}/subgraphs'], /, *, assistant_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/info'], /, *, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/ok'], /, *, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/store/items'], /, *, query: GetItemQuery, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/threads/{thread_id}'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/threads/{thread_id}/runs'], /, *, thread_id: str, query: ListRunsQuery | None = None, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/threads/{thread_id}/runs/{run_id}'], /, *, thread_id: str, run_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/threads/{thread_id}/runs/{run_id}/join'], /, *, thread_id: str, run_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/threads/{thread_id}/runs/{run_id}/stream'], /, *, thread_id: str, run_id: str, query: JoinRunStreamQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/langgraph/threads/{thread_id}/state'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/threads/{thread_id}/state/{checkpoint_id}'], /, *, thread_id: str, checkpoint_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/langgraph/threads/{thread_id}/stream'], /, *, thread_id: str, query: JoinThreadStreamQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/metrics'], /, *, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/openai/v1/models'], /, *, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/openai/v1/models/{model}'], /, *, model: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/openai/v1/responses/{response_id}'], /, *, response_id: str, query: GetResponseQuery | None = None, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def get(self, route: Literal['/openapi.json'], /, *, headers: Mapping[str, str] | None = None) -> dict[str, Any]: ...

    @overload
    def get(self, route: Literal['/ready'], /, *, headers: Mapping[str, str] | None = None) -> Health: ...

    @overload
    def get(self, route: Literal['/v1/agents'], /, *, headers: Mapping[str, str] | None = None) -> HubAgents: ...

    @overload
    def get(self, route: Literal['/v1/agents/{agent}/models'], /, *, agent: str, query: ListHubModelsQuery | None = None, headers: Mapping[str, str] | None = None) -> HubModels: ...

    @overload
    def get(self, route: Literal['/v1/path-search'], /, *, query: SearchPathsQuery | None = None, headers: Mapping[str, str] | None = None) -> HubPaths: ...

    @overload
    def get(self, route: Literal['/v1/recent-directories'], /, *, headers: Mapping[str, str] | None = None) -> HubDirectories: ...

    @overload
    def get(self, route: Literal['/v1/threads'], /, *, query: ListThreadsQuery | None = None, headers: Mapping[str, str] | None = None) -> HubThreads: ...

    @overload
    def get(self, route: Literal['/v1/threads/{thread_id}'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> HubThreadResponse: ...

    @overload
    def get(self, route: Literal['/v1/threads/{thread_id}/config-options'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> HubConfigOptions: ...

    @overload
    def get(self, route: Literal['/v1/threads/{thread_id}/events'], /, *, thread_id: str, query: WatchThreadQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def get(self, route: Literal['/v1/threads/{thread_id}/history'], /, *, thread_id: str, query: GetThreadHistoryQuery | None = None, headers: Mapping[str, str] | None = None) -> HubHistory: ...

    @overload
    def get(self, route: Literal['/v1/threads/{thread_id}/rules'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> HubRules: ...

    @overload
    def get(self, route: Literal['/v1/threads/{thread_id}/session-history'], /, *, thread_id: str, query: GetSessionHistoryQuery, headers: Mapping[str, str] | None = None) -> HubSessionHistory: ...

    @overload
    def get(self, route: Literal['/v1/threads/{thread_id}/sessions'], /, *, thread_id: str, query: ListSessionsQuery | None = None, headers: Mapping[str, str] | None = None) -> HubSessions: ...

    @overload
    def get(self, route: Literal['/v1/threads/{thread_id}/slash-commands'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> HubCommands: ...

    @overload
    def get(self, route: Literal['/v1/turns/{turn_id}/events'], /, *, turn_id: str, query: WatchTurnQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    def get(self, route: str, /, **request: Any) -> Any:
        return self._json('get', route, **request)

    @overload
    def post(self, route: Literal['/a2a'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/a2a/{workspace_id}'], /, *, workspace_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/api/agent/stream'], /, *, query: AgentStreamQuery | None = None, body: AgentRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None | SessionsResponse: ...

    @overload
    def post(self, route: Literal['/api/v1/dead-letters/redrive'], /, *, body: RedriveRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Redriven: ...

    @overload
    def post(self, route: Literal['/api/v1/imports'], /, *, query: ImportWorkspaceQuery | None = None, body: bytes | str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> ImportedWorkspace: ...

    @overload
    def post(self, route: Literal['/api/v1/keys'], /, *, body: NewApiKey, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> CreatedApiKey: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces'], /, *, body: WorkspaceName, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Workspace: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/ag-ui'], /, *, workspace_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/ai-sdk/chat'], /, *, workspace_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/ai-sdk/chat/{id}/stop'], /, *, workspace_id: str, id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> UiStopped: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats'], /, *, workspace_id: str, body: NewChat, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedChat: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}'], /, *, workspace_id: str, chat_id: str, body: NewMessage, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Turn: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/answers/{question_id}'], /, *, workspace_id: str, chat_id: str, question_id: str, body: Answers, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Accepted: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/approve'], /, *, workspace_id: str, chat_id: str, body: ApprovePlanRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Turn: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/calls/{call_id}'], /, *, workspace_id: str, chat_id: str, call_id: str, body: CallResult, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Accepted: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/calls/{call_id}/take'], /, *, workspace_id: str, chat_id: str, call_id: str, body: CallClaim, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> ChatCallHandedOut: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/compact'], /, *, workspace_id: str, chat_id: str, body: NewCompaction, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedCompaction: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/edit'], /, *, workspace_id: str, chat_id: str, body: MessageEdit, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedEdit: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/fork'], /, *, workspace_id: str, chat_id: str, body: NewFork, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Chat: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions/{permission_id}'], /, *, workspace_id: str, chat_id: str, permission_id: str, body: PermissionDecision, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Accepted: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/resume'], /, *, workspace_id: str, chat_id: str, body: ResumeChatRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Accepted: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/stop'], /, *, workspace_id: str, chat_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Cancelled: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/evaluations/{evaluation_id}/stop'], /, *, workspace_id: str, evaluation_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Evaluation: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/files'], /, *, workspace_id: str, body: NewFile, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Change: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/links'], /, *, workspace_id: str, file_id: str, body: NewLink, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> FileTags: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/restore'], /, *, workspace_id: str, file_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Change: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/tags'], /, *, workspace_id: str, file_id: str, body: NewTags, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> FileTags: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/restore'], /, *, workspace_id: str, file_id: str, v: int, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Change: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/flows/{flow}/check'], /, *, workspace_id: str, flow: str, body: CheckFlowRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> FlowReport: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/flows/{flow}/evaluations'], /, *, workspace_id: str, flow: str, body: EvaluationSelection, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Evaluation: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks'], /, *, workspace_id: str, flow: str, body: NewTask, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> TaskAccepted: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/mcp'], /, *, workspace_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any | None: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/mcp/{server}/authorize'], /, *, workspace_id: str, server: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> McpSignIn: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/mcp/{server}/authorize/confirm'], /, *, workspace_id: str, server: str, body: McpSignInCode, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/members'], /, *, workspace_id: str, body: NewMember, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Member: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/rewind'], /, *, workspace_id: str, body: RewindRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Rewind: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/sandbox'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Sandbox: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules'], /, *, workspace_id: str, body: NewSchedule, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Schedule: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}/run'], /, *, workspace_id: str, schedule_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedRun: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/search'], /, *, workspace_id: str, body: SearchRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> SearchAnswer: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/stream-tickets'], /, *, workspace_id: str, body: NewTicket, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Ticket: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/answers/{node}'], /, *, workspace_id: str, task_id: str, node: str, body: StepAnswers, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedTaskCommand: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/pause'], /, *, workspace_id: str, task_id: str, body: PauseTaskRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedTaskCommand: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/replay'], /, *, workspace_id: str, task_id: str, body: ReplayTaskRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> TaskAccepted: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/resume'], /, *, workspace_id: str, task_id: str, body: ResumeTaskRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedTaskCommand: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/retry'], /, *, workspace_id: str, task_id: str, body: RetryTaskRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> TaskAccepted: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/step'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedTaskCommand: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/stop'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedTaskCommand: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tools'], /, *, workspace_id: str, body: ToolCall, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> ToolResult: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/uploads'], /, *, workspace_id: str, body: NewUpload, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Transfer: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks'], /, *, workspace_id: str, body: NewWebhook, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> WebhookWithSecret: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/retry'], /, *, workspace_id: str, webhook_id: str, delivery_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> WebhookDelivery: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/secret'], /, *, workspace_id: str, webhook_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> WebhookWithSecret: ...

    @overload
    def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/test'], /, *, workspace_id: str, webhook_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> WebhookDelivery: ...

    @overload
    def post(self, route: Literal['/langgraph/assistants/count'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/assistants/search'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/runs'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/runs/batch'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/runs/cancel'], /, *, query: CancelRunsQuery | None = None, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    def post(self, route: Literal['/langgraph/runs/crons'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/runs/crons/count'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/runs/crons/search'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/runs/stream'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    def post(self, route: Literal['/langgraph/runs/wait'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/store/items/search'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/store/namespaces'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/threads'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/threads/search'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/threads/{thread_id}/copy'], /, *, thread_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/threads/{thread_id}/history'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/threads/{thread_id}/runs'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/threads/{thread_id}/runs/crons'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/threads/{thread_id}/runs/stream'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    def post(self, route: Literal['/langgraph/threads/{thread_id}/runs/wait'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/threads/{thread_id}/runs/{run_id}/cancel'], /, *, thread_id: str, run_id: str, query: CancelRunQuery | None = None, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    def post(self, route: Literal['/langgraph/threads/{thread_id}/state'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/langgraph/threads/{thread_id}/state/checkpoint'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/mcp'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any | None: ...

    @overload
    def post(self, route: Literal['/openai/v1/chat/completions'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/openai/v1/responses'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/openai/v1/responses/{response_id}/cancel'], /, *, response_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    def post(self, route: Literal['/v1/permissions/{permission_id}'], /, *, permission_id: str, body: HubDecision, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> HubRecordedDecision: ...

    @overload
    def post(self, route: Literal['/v1/threads'], /, *, body: HubNewThread, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> HubCreatedThread: ...

    @overload
    def post(self, route: Literal['/v1/threads/{thread_id}/compact'], /, *, thread_id: str, body: HubCompact, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> HubCompacted: ...

    @overload
    def post(self, route: Literal['/v1/threads/{thread_id}/config-options'], /, *, thread_id: str, body: HubChoice, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> HubConfigOptions: ...

    @overload
    def post(self, route: Literal['/v1/threads/{thread_id}/turns'], /, *, thread_id: str, body: HubNewTurn, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None | HubTurnStatus: ...

    @overload
    def post(self, route: Literal['/v1/turns/{turn_id}/cancel'], /, *, turn_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> HubTurnStatus: ...

    def post(self, route: str, /, **request: Any) -> Any:
        return self._json('post', route, **request)

    @overload
    def put(self, route: Literal['/api/v1/workspaces/{workspace_id}/contents/{sha256}'], /, *, workspace_id: str, sha256: str, query: UploadQuery, body: bytes | str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def put(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/by-path'], /, *, workspace_id: str, query: PutFileByPathQuery, body: NewContent, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    def put(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/by-path/content'], /, *, workspace_id: str, query: PutContentByPathQuery, body: bytes | str, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    def put(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}'], /, *, workspace_id: str, file_id: str, body: NewContent, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    def put(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/content'], /, *, workspace_id: str, file_id: str, body: bytes | str, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    def put(self, route: Literal['/api/v1/workspaces/{workspace_id}/presence'], /, *, workspace_id: str, body: PresenceUpdate, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def put(self, route: Literal['/langgraph/store/items'], /, *, body: Any, headers: Mapping[str, str] | None = None) -> None: ...

    def put(self, route: str, /, **request: Any) -> Any:
        return self._json('put', route, **request)

    @overload
    def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}'], /, *, workspace_id: str, body: WorkspaceName, headers: Mapping[str, str] | None = None) -> Workspace: ...

    @overload
    def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}'], /, *, workspace_id: str, chat_id: str, body: ChatChanges, headers: Mapping[str, str] | None = None) -> Accepted: ...

    @overload
    def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}'], /, *, workspace_id: str, file_id: str, body: Move, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}/members/{user_id}'], /, *, workspace_id: str, user_id: str, body: NewRole, headers: Mapping[str, str] | None = None) -> Member: ...

    @overload
    def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}'], /, *, workspace_id: str, schedule_id: str, body: ScheduleChanges, headers: Mapping[str, str] | None = None) -> Schedule: ...

    @overload
    def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}'], /, *, workspace_id: str, task_id: str, body: TaskChange, headers: Mapping[str, str] | None = None) -> AcceptedTaskCommand: ...

    @overload
    def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}'], /, *, workspace_id: str, webhook_id: str, body: WebhookChanges, headers: Mapping[str, str] | None = None) -> Webhook: ...

    @overload
    def patch(self, route: Literal['/langgraph/runs/crons/{cron_id}'], /, *, cron_id: str, body: Any, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def patch(self, route: Literal['/langgraph/threads/{thread_id}'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    def patch(self, route: Literal['/v1/threads/{thread_id}'], /, *, thread_id: str, body: HubThreadChange, headers: Mapping[str, str] | None = None) -> HubThreadResponse: ...

    def patch(self, route: str, /, **request: Any) -> Any:
        return self._json('patch', route, **request)

    @overload
    def delete(self, route: Literal['/api/v1/keys/{key_id}'], /, *, key_id: str, headers: Mapping[str, str] | None = None) -> ApiKey: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}'], /, *, workspace_id: str, chat_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/compact'], /, *, workspace_id: str, chat_id: str, headers: Mapping[str, str] | None = None) -> Accepted: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions'], /, *, workspace_id: str, chat_id: str, query: ForgetPermissionsQuery | None = None, headers: Mapping[str, str] | None = None) -> Accepted: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}'], /, *, workspace_id: str, file_id: str, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/links'], /, *, workspace_id: str, file_id: str, query: RemoveLinkQuery, headers: Mapping[str, str] | None = None) -> FileTags: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/purge'], /, *, workspace_id: str, file_id: str, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/tags'], /, *, workspace_id: str, file_id: str, query: RemoveTagQuery, headers: Mapping[str, str] | None = None) -> FileTags: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/mcp/{server}/authorize'], /, *, workspace_id: str, server: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/members/{user_id}'], /, *, workspace_id: str, user_id: str, query: RemoveMemberQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/permissions'], /, *, workspace_id: str, query: RevokeStandingRuleQuery, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/sandbox'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}'], /, *, workspace_id: str, schedule_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}'], /, *, workspace_id: str, webhook_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def delete(self, route: Literal['/langgraph/runs/crons/{cron_id}'], /, *, cron_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def delete(self, route: Literal['/langgraph/store/items'], /, *, body: Any, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def delete(self, route: Literal['/langgraph/threads/{thread_id}'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    def delete(self, route: Literal['/v1/threads/{thread_id}'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> HubDeletedThread: ...

    @overload
    def delete(self, route: Literal['/v1/threads/{thread_id}/rules/{rule_id}'], /, *, thread_id: str, rule_id: str, headers: Mapping[str, str] | None = None) -> HubRevokedRule: ...

    def delete(self, route: str, /, **request: Any) -> Any:
        return self._json('delete', route, **request)

    @overload
    def all(self, route: Literal['/api/v1/keys'], /, *, query: ListKeysQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[ApiKey]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces'], /, *, query: ListWorkspacesQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[Workspace]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/artifacts'], /, *, workspace_id: str, query: FindArtifactsQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[Artifact]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/changes'], /, *, workspace_id: str, query: ListChangesQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[ChangeRecord]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats'], /, *, workspace_id: str, query: ListChatsQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[Chat]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/evaluations'], /, *, workspace_id: str, query: ListEvaluationsQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[Evaluation]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/files'], /, *, workspace_id: str, query: ListFilesQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[FileInfo]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/tags/{tag}'], /, *, workspace_id: str, tag: str, query: ListTaggedQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[FileInfo]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/trash'], /, *, workspace_id: str, query: ListTrashQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[TrashEntry]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/versions'], /, *, workspace_id: str, file_id: str, query: ListVersionsQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[Version]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/members'], /, *, workspace_id: str, query: ListMembersQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[Member]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules'], /, *, workspace_id: str, query: ListSchedulesQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[Schedule]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks'], /, *, workspace_id: str, query: ListTasksQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[Task]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/artifacts'], /, *, workspace_id: str, task_id: str, query: ListArtifactsQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[Artifact]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/history'], /, *, workspace_id: str, task_id: str, query: GetHistoryQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[TaskStage]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/waiting'], /, *, workspace_id: str, query: ListWaitingQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[WaitingEntry]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries'], /, *, workspace_id: str, webhook_id: str, query: ListWebhookDeliveriesQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[WebhookDelivery]: ...

    @overload
    def all(self, route: Literal['/v1/threads'], /, *, query: ListThreadsQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[HubThread]: ...

    @overload
    def all(self, route: Literal['/v1/threads/{thread_id}/history'], /, *, thread_id: str, query: GetThreadHistoryQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]: ...

    @overload
    def all(self, route: Literal['/v1/threads/{thread_id}/sessions'], /, *, thread_id: str, query: ListSessionsQuery | None = None, headers: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]: ...

    def all(self, route: str, /, **request: Any) -> Iterator[Any]:
        """The elements of all pages of a list."""
        return self._all(route, **request)


class AsyncRoutes(Protocol):
    """The typed methods of a client."""

    async def _json(self, method: str, route: str, /, **request: Any) -> Any: ...

    def _all(self, route: str, /, **request: Any) -> AsyncIterator[Any]: ...

    @overload
    async def get(self, route: Literal['/'], /, *, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/.well-known/agent-card.json'], /, *, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/.well-known/oauth-protected-resource'], /, *, headers: Mapping[str, str] | None = None) -> ResourceMetadata: ...

    @overload
    async def get(self, route: Literal['/a2a/{workspace_id}/.well-known/agent-card.json'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/api/agent/plans'], /, *, query: AgentPlansQuery, headers: Mapping[str, str] | None = None) -> SessionRecords: ...

    @overload
    async def get(self, route: Literal['/api/agent/stream'], /, *, query: AgentSessionsQuery | None = None, headers: Mapping[str, str] | None = None) -> SessionsResponse | None: ...

    @overload
    async def get(self, route: Literal['/api/v1/agents'], /, *, headers: Mapping[str, str] | None = None) -> CodingAgents: ...

    @overload
    async def get(self, route: Literal['/api/v1/dead-letters'], /, *, query: ListDeadLettersQuery | None = None, headers: Mapping[str, str] | None = None) -> DeadLetters: ...

    @overload
    async def get(self, route: Literal['/api/v1/flow-schemas'], /, *, headers: Mapping[str, str] | None = None) -> FlowSchemas: ...

    @overload
    async def get(self, route: Literal['/api/v1/flow-schemas/{name}'], /, *, name: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/keys'], /, *, query: ListKeysQuery | None = None, headers: Mapping[str, str] | None = None) -> ApiKeyPage: ...

    @overload
    async def get(self, route: Literal['/api/v1/mcp/callback'], /, *, query: CompleteMcpSignInQuery, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/models'], /, *, headers: Mapping[str, str] | None = None) -> Models: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces'], /, *, query: ListWorkspacesQuery | None = None, headers: Mapping[str, str] | None = None) -> WorkspacePage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> Workspace: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/access'], /, *, workspace_id: str, query: ExplainAccessQuery, headers: Mapping[str, str] | None = None) -> AccessExplanation: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/agents'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> PersonaList: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/agents/{agent}'], /, *, workspace_id: str, agent: str, headers: Mapping[str, str] | None = None) -> PersonaOrSkill: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/ai-sdk/chat/{id}/stream'], /, *, workspace_id: str, id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/artifacts'], /, *, workspace_id: str, query: FindArtifactsQuery | None = None, headers: Mapping[str, str] | None = None) -> ArtifactPage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/changes'], /, *, workspace_id: str, query: ListChangesQuery | None = None, headers: Mapping[str, str] | None = None) -> ChangeList: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats'], /, *, workspace_id: str, query: ListChatsQuery | None = None, headers: Mapping[str, str] | None = None) -> ChatPage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}'], /, *, workspace_id: str, chat_id: str, query: GetChatQuery | None = None, headers: Mapping[str, str] | None = None) -> ChatWithHistory: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/context'], /, *, workspace_id: str, chat_id: str, query: GetContextQuery | None = None, headers: Mapping[str, str] | None = None) -> TurnContexts: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/events'], /, *, workspace_id: str, chat_id: str, query: WatchChatQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions'], /, *, workspace_id: str, chat_id: str, headers: Mapping[str, str] | None = None) -> Rules: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/contents/{sha256}'], /, *, workspace_id: str, sha256: str, query: DownloadQuery, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/evaluations'], /, *, workspace_id: str, query: ListEvaluationsQuery | None = None, headers: Mapping[str, str] | None = None) -> EvaluationPage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/evaluations/{evaluation_id}'], /, *, workspace_id: str, evaluation_id: str, query: GetEvaluationQuery | None = None, headers: Mapping[str, str] | None = None) -> Evaluation: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/events'], /, *, workspace_id: str, query: WatchWorkspaceQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/export'], /, *, workspace_id: str, query: ExportWorkspaceQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files'], /, *, workspace_id: str, query: ListFilesQuery | None = None, headers: Mapping[str, str] | None = None) -> FilePage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/by-path'], /, *, workspace_id: str, query: GetFileByPathQuery, headers: Mapping[str, str] | None = None) -> FileInfo: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/by-path/content'], /, *, workspace_id: str, query: GetContentByPathQuery, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/tags'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> TagCounts: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/tags/{tag}'], /, *, workspace_id: str, tag: str, query: ListTaggedQuery | None = None, headers: Mapping[str, str] | None = None) -> TaggedPage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/trash'], /, *, workspace_id: str, query: ListTrashQuery | None = None, headers: Mapping[str, str] | None = None) -> TrashPage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}'], /, *, workspace_id: str, file_id: str, headers: Mapping[str, str] | None = None) -> FileInfo: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/address'], /, *, workspace_id: str, file_id: str, headers: Mapping[str, str] | None = None) -> Transfer: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/content'], /, *, workspace_id: str, file_id: str, query: GetContentQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/diff'], /, *, workspace_id: str, file_id: str, query: DiffVersionsQuery, headers: Mapping[str, str] | None = None) -> Diff: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/links'], /, *, workspace_id: str, file_id: str, headers: Mapping[str, str] | None = None) -> Relations: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/network'], /, *, workspace_id: str, file_id: str, query: GetNetworkQuery | None = None, headers: Mapping[str, str] | None = None) -> Network: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/versions'], /, *, workspace_id: str, file_id: str, query: ListVersionsQuery | None = None, headers: Mapping[str, str] | None = None) -> VersionPage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}'], /, *, workspace_id: str, file_id: str, v: int, headers: Mapping[str, str] | None = None) -> Version: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/content'], /, *, workspace_id: str, file_id: str, v: int, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/flows'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> Flows: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/flows/{flow}'], /, *, workspace_id: str, flow: str, headers: Mapping[str, str] | None = None) -> Flow: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/flows/{flow}/graph'], /, *, workspace_id: str, flow: str, query: DrawFlowQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/mcp/servers'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> McpServerList: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/members'], /, *, workspace_id: str, query: ListMembersQuery | None = None, headers: Mapping[str, str] | None = None) -> MemberPage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/members/me'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> Me: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/permissions'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> StandingRules: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/sandbox'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> Sandbox: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules'], /, *, workspace_id: str, query: ListSchedulesQuery | None = None, headers: Mapping[str, str] | None = None) -> SchedulePage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}'], /, *, workspace_id: str, schedule_id: str, headers: Mapping[str, str] | None = None) -> Schedule: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/skills'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> SkillList: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks'], /, *, workspace_id: str, query: ListTasksQuery | None = None, headers: Mapping[str, str] | None = None) -> TaskPage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None) -> Task: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/artifacts'], /, *, workspace_id: str, task_id: str, query: ListArtifactsQuery | None = None, headers: Mapping[str, str] | None = None) -> ArtifactPage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/diff'], /, *, workspace_id: str, task_id: str, query: DiffTasksQuery, headers: Mapping[str, str] | None = None) -> TaskDiff: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/events'], /, *, workspace_id: str, task_id: str, query: WatchTaskQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/history'], /, *, workspace_id: str, task_id: str, query: GetHistoryQuery | None = None, headers: Mapping[str, str] | None = None) -> TaskHistory: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/memory'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None) -> TaskMemory: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/metadata'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None) -> TaskMetadata: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/trace'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/tools'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> Tools: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/usage'], /, *, workspace_id: str, query: GetUsageQuery | None = None, headers: Mapping[str, str] | None = None) -> UsageReport: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/waiting'], /, *, workspace_id: str, query: ListWaitingQuery | None = None, headers: Mapping[str, str] | None = None) -> WaitingPage: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> WebhookList: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}'], /, *, workspace_id: str, webhook_id: str, headers: Mapping[str, str] | None = None) -> Webhook: ...

    @overload
    async def get(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries'], /, *, workspace_id: str, webhook_id: str, query: ListWebhookDeliveriesQuery | None = None, headers: Mapping[str, str] | None = None) -> WebhookDeliveryPage: ...

    @overload
    async def get(self, route: Literal['/attachments/{file_id}'], /, *, file_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/health'], /, *, headers: Mapping[str, str] | None = None) -> Health: ...

    @overload
    async def get(self, route: Literal['/healthz'], /, *, headers: Mapping[str, str] | None = None) -> HubHealth: ...

    @overload
    async def get(self, route: Literal['/langgraph/assistants/{assistant_id}'], /, *, assistant_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/assistants/{assistant_id}/graph'], /, *, assistant_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/assistants/{assistant_id}/schemas'], /, *, assistant_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/assistants/{assistant_id}/subgraphs'], /, *, assistant_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/info'], /, *, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/ok'], /, *, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/store/items'], /, *, query: GetItemQuery, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/threads/{thread_id}'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/threads/{thread_id}/runs'], /, *, thread_id: str, query: ListRunsQuery | None = None, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/threads/{thread_id}/runs/{run_id}'], /, *, thread_id: str, run_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/threads/{thread_id}/runs/{run_id}/join'], /, *, thread_id: str, run_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/threads/{thread_id}/runs/{run_id}/stream'], /, *, thread_id: str, run_id: str, query: JoinRunStreamQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/langgraph/threads/{thread_id}/state'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/threads/{thread_id}/state/{checkpoint_id}'], /, *, thread_id: str, checkpoint_id: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/langgraph/threads/{thread_id}/stream'], /, *, thread_id: str, query: JoinThreadStreamQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/metrics'], /, *, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/openai/v1/models'], /, *, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/openai/v1/models/{model}'], /, *, model: str, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/openai/v1/responses/{response_id}'], /, *, response_id: str, query: GetResponseQuery | None = None, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def get(self, route: Literal['/openapi.json'], /, *, headers: Mapping[str, str] | None = None) -> dict[str, Any]: ...

    @overload
    async def get(self, route: Literal['/ready'], /, *, headers: Mapping[str, str] | None = None) -> Health: ...

    @overload
    async def get(self, route: Literal['/v1/agents'], /, *, headers: Mapping[str, str] | None = None) -> HubAgents: ...

    @overload
    async def get(self, route: Literal['/v1/agents/{agent}/models'], /, *, agent: str, query: ListHubModelsQuery | None = None, headers: Mapping[str, str] | None = None) -> HubModels: ...

    @overload
    async def get(self, route: Literal['/v1/path-search'], /, *, query: SearchPathsQuery | None = None, headers: Mapping[str, str] | None = None) -> HubPaths: ...

    @overload
    async def get(self, route: Literal['/v1/recent-directories'], /, *, headers: Mapping[str, str] | None = None) -> HubDirectories: ...

    @overload
    async def get(self, route: Literal['/v1/threads'], /, *, query: ListThreadsQuery | None = None, headers: Mapping[str, str] | None = None) -> HubThreads: ...

    @overload
    async def get(self, route: Literal['/v1/threads/{thread_id}'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> HubThreadResponse: ...

    @overload
    async def get(self, route: Literal['/v1/threads/{thread_id}/config-options'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> HubConfigOptions: ...

    @overload
    async def get(self, route: Literal['/v1/threads/{thread_id}/events'], /, *, thread_id: str, query: WatchThreadQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def get(self, route: Literal['/v1/threads/{thread_id}/history'], /, *, thread_id: str, query: GetThreadHistoryQuery | None = None, headers: Mapping[str, str] | None = None) -> HubHistory: ...

    @overload
    async def get(self, route: Literal['/v1/threads/{thread_id}/rules'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> HubRules: ...

    @overload
    async def get(self, route: Literal['/v1/threads/{thread_id}/session-history'], /, *, thread_id: str, query: GetSessionHistoryQuery, headers: Mapping[str, str] | None = None) -> HubSessionHistory: ...

    @overload
    async def get(self, route: Literal['/v1/threads/{thread_id}/sessions'], /, *, thread_id: str, query: ListSessionsQuery | None = None, headers: Mapping[str, str] | None = None) -> HubSessions: ...

    @overload
    async def get(self, route: Literal['/v1/threads/{thread_id}/slash-commands'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> HubCommands: ...

    @overload
    async def get(self, route: Literal['/v1/turns/{turn_id}/events'], /, *, turn_id: str, query: WatchTurnQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    async def get(self, route: str, /, **request: Any) -> Any:
        return await self._json('get', route, **request)

    @overload
    async def post(self, route: Literal['/a2a'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/a2a/{workspace_id}'], /, *, workspace_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/api/agent/stream'], /, *, query: AgentStreamQuery | None = None, body: AgentRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None | SessionsResponse: ...

    @overload
    async def post(self, route: Literal['/api/v1/dead-letters/redrive'], /, *, body: RedriveRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Redriven: ...

    @overload
    async def post(self, route: Literal['/api/v1/imports'], /, *, query: ImportWorkspaceQuery | None = None, body: bytes | str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> ImportedWorkspace: ...

    @overload
    async def post(self, route: Literal['/api/v1/keys'], /, *, body: NewApiKey, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> CreatedApiKey: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces'], /, *, body: WorkspaceName, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Workspace: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/ag-ui'], /, *, workspace_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/ai-sdk/chat'], /, *, workspace_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/ai-sdk/chat/{id}/stop'], /, *, workspace_id: str, id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> UiStopped: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats'], /, *, workspace_id: str, body: NewChat, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedChat: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}'], /, *, workspace_id: str, chat_id: str, body: NewMessage, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Turn: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/answers/{question_id}'], /, *, workspace_id: str, chat_id: str, question_id: str, body: Answers, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Accepted: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/approve'], /, *, workspace_id: str, chat_id: str, body: ApprovePlanRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Turn: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/calls/{call_id}'], /, *, workspace_id: str, chat_id: str, call_id: str, body: CallResult, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Accepted: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/calls/{call_id}/take'], /, *, workspace_id: str, chat_id: str, call_id: str, body: CallClaim, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> ChatCallHandedOut: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/compact'], /, *, workspace_id: str, chat_id: str, body: NewCompaction, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedCompaction: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/edit'], /, *, workspace_id: str, chat_id: str, body: MessageEdit, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedEdit: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/fork'], /, *, workspace_id: str, chat_id: str, body: NewFork, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Chat: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions/{permission_id}'], /, *, workspace_id: str, chat_id: str, permission_id: str, body: PermissionDecision, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Accepted: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/resume'], /, *, workspace_id: str, chat_id: str, body: ResumeChatRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Accepted: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/stop'], /, *, workspace_id: str, chat_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Cancelled: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/evaluations/{evaluation_id}/stop'], /, *, workspace_id: str, evaluation_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Evaluation: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/files'], /, *, workspace_id: str, body: NewFile, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Change: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/links'], /, *, workspace_id: str, file_id: str, body: NewLink, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> FileTags: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/restore'], /, *, workspace_id: str, file_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Change: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/tags'], /, *, workspace_id: str, file_id: str, body: NewTags, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> FileTags: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/restore'], /, *, workspace_id: str, file_id: str, v: int, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Change: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/flows/{flow}/check'], /, *, workspace_id: str, flow: str, body: CheckFlowRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> FlowReport: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/flows/{flow}/evaluations'], /, *, workspace_id: str, flow: str, body: EvaluationSelection, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Evaluation: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks'], /, *, workspace_id: str, flow: str, body: NewTask, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> TaskAccepted: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/mcp'], /, *, workspace_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any | None: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/mcp/{server}/authorize'], /, *, workspace_id: str, server: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> McpSignIn: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/mcp/{server}/authorize/confirm'], /, *, workspace_id: str, server: str, body: McpSignInCode, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/members'], /, *, workspace_id: str, body: NewMember, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Member: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/rewind'], /, *, workspace_id: str, body: RewindRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Rewind: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/sandbox'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Sandbox: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules'], /, *, workspace_id: str, body: NewSchedule, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Schedule: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}/run'], /, *, workspace_id: str, schedule_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedRun: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/search'], /, *, workspace_id: str, body: SearchRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> SearchAnswer: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/stream-tickets'], /, *, workspace_id: str, body: NewTicket, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Ticket: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/answers/{node}'], /, *, workspace_id: str, task_id: str, node: str, body: StepAnswers, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedTaskCommand: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/pause'], /, *, workspace_id: str, task_id: str, body: PauseTaskRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedTaskCommand: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/replay'], /, *, workspace_id: str, task_id: str, body: ReplayTaskRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> TaskAccepted: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/resume'], /, *, workspace_id: str, task_id: str, body: ResumeTaskRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedTaskCommand: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/retry'], /, *, workspace_id: str, task_id: str, body: RetryTaskRequest, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> TaskAccepted: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/step'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedTaskCommand: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/stop'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> AcceptedTaskCommand: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/tools'], /, *, workspace_id: str, body: ToolCall, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> ToolResult: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/uploads'], /, *, workspace_id: str, body: NewUpload, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Transfer: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks'], /, *, workspace_id: str, body: NewWebhook, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> WebhookWithSecret: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/retry'], /, *, workspace_id: str, webhook_id: str, delivery_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> WebhookDelivery: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/secret'], /, *, workspace_id: str, webhook_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> WebhookWithSecret: ...

    @overload
    async def post(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/test'], /, *, workspace_id: str, webhook_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> WebhookDelivery: ...

    @overload
    async def post(self, route: Literal['/langgraph/assistants/count'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/assistants/search'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/runs'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/runs/batch'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/runs/cancel'], /, *, query: CancelRunsQuery | None = None, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    async def post(self, route: Literal['/langgraph/runs/crons'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/runs/crons/count'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/runs/crons/search'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/runs/stream'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    async def post(self, route: Literal['/langgraph/runs/wait'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/store/items/search'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/store/namespaces'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/threads'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/threads/search'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/threads/{thread_id}/copy'], /, *, thread_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/threads/{thread_id}/history'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/threads/{thread_id}/runs'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/threads/{thread_id}/runs/crons'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/threads/{thread_id}/runs/stream'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    async def post(self, route: Literal['/langgraph/threads/{thread_id}/runs/wait'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/threads/{thread_id}/runs/{run_id}/cancel'], /, *, thread_id: str, run_id: str, query: CancelRunQuery | None = None, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None: ...

    @overload
    async def post(self, route: Literal['/langgraph/threads/{thread_id}/state'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/langgraph/threads/{thread_id}/state/checkpoint'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/mcp'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any | None: ...

    @overload
    async def post(self, route: Literal['/openai/v1/chat/completions'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/openai/v1/responses'], /, *, body: Any, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/openai/v1/responses/{response_id}/cancel'], /, *, response_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> Any: ...

    @overload
    async def post(self, route: Literal['/v1/permissions/{permission_id}'], /, *, permission_id: str, body: HubDecision, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> HubRecordedDecision: ...

    @overload
    async def post(self, route: Literal['/v1/threads'], /, *, body: HubNewThread, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> HubCreatedThread: ...

    @overload
    async def post(self, route: Literal['/v1/threads/{thread_id}/compact'], /, *, thread_id: str, body: HubCompact, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> HubCompacted: ...

    @overload
    async def post(self, route: Literal['/v1/threads/{thread_id}/config-options'], /, *, thread_id: str, body: HubChoice, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> HubConfigOptions: ...

    @overload
    async def post(self, route: Literal['/v1/threads/{thread_id}/turns'], /, *, thread_id: str, body: HubNewTurn, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> None | HubTurnStatus: ...

    @overload
    async def post(self, route: Literal['/v1/turns/{turn_id}/cancel'], /, *, turn_id: str, headers: Mapping[str, str] | None = None, idempotency_key: str | None = None) -> HubTurnStatus: ...

    async def post(self, route: str, /, **request: Any) -> Any:
        return await self._json('post', route, **request)

    @overload
    async def put(self, route: Literal['/api/v1/workspaces/{workspace_id}/contents/{sha256}'], /, *, workspace_id: str, sha256: str, query: UploadQuery, body: bytes | str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def put(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/by-path'], /, *, workspace_id: str, query: PutFileByPathQuery, body: NewContent, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    async def put(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/by-path/content'], /, *, workspace_id: str, query: PutContentByPathQuery, body: bytes | str, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    async def put(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}'], /, *, workspace_id: str, file_id: str, body: NewContent, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    async def put(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/content'], /, *, workspace_id: str, file_id: str, body: bytes | str, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    async def put(self, route: Literal['/api/v1/workspaces/{workspace_id}/presence'], /, *, workspace_id: str, body: PresenceUpdate, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def put(self, route: Literal['/langgraph/store/items'], /, *, body: Any, headers: Mapping[str, str] | None = None) -> None: ...

    async def put(self, route: str, /, **request: Any) -> Any:
        return await self._json('put', route, **request)

    @overload
    async def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}'], /, *, workspace_id: str, body: WorkspaceName, headers: Mapping[str, str] | None = None) -> Workspace: ...

    @overload
    async def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}'], /, *, workspace_id: str, chat_id: str, body: ChatChanges, headers: Mapping[str, str] | None = None) -> Accepted: ...

    @overload
    async def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}'], /, *, workspace_id: str, file_id: str, body: Move, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    async def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}/members/{user_id}'], /, *, workspace_id: str, user_id: str, body: NewRole, headers: Mapping[str, str] | None = None) -> Member: ...

    @overload
    async def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}'], /, *, workspace_id: str, schedule_id: str, body: ScheduleChanges, headers: Mapping[str, str] | None = None) -> Schedule: ...

    @overload
    async def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}'], /, *, workspace_id: str, task_id: str, body: TaskChange, headers: Mapping[str, str] | None = None) -> AcceptedTaskCommand: ...

    @overload
    async def patch(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}'], /, *, workspace_id: str, webhook_id: str, body: WebhookChanges, headers: Mapping[str, str] | None = None) -> Webhook: ...

    @overload
    async def patch(self, route: Literal['/langgraph/runs/crons/{cron_id}'], /, *, cron_id: str, body: Any, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def patch(self, route: Literal['/langgraph/threads/{thread_id}'], /, *, thread_id: str, body: Any, headers: Mapping[str, str] | None = None) -> Any: ...

    @overload
    async def patch(self, route: Literal['/v1/threads/{thread_id}'], /, *, thread_id: str, body: HubThreadChange, headers: Mapping[str, str] | None = None) -> HubThreadResponse: ...

    async def patch(self, route: str, /, **request: Any) -> Any:
        return await self._json('patch', route, **request)

    @overload
    async def delete(self, route: Literal['/api/v1/keys/{key_id}'], /, *, key_id: str, headers: Mapping[str, str] | None = None) -> ApiKey: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}'], /, *, workspace_id: str, chat_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/compact'], /, *, workspace_id: str, chat_id: str, headers: Mapping[str, str] | None = None) -> Accepted: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions'], /, *, workspace_id: str, chat_id: str, query: ForgetPermissionsQuery | None = None, headers: Mapping[str, str] | None = None) -> Accepted: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}'], /, *, workspace_id: str, file_id: str, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/links'], /, *, workspace_id: str, file_id: str, query: RemoveLinkQuery, headers: Mapping[str, str] | None = None) -> FileTags: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/purge'], /, *, workspace_id: str, file_id: str, headers: Mapping[str, str] | None = None) -> Change: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/tags'], /, *, workspace_id: str, file_id: str, query: RemoveTagQuery, headers: Mapping[str, str] | None = None) -> FileTags: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/mcp/{server}/authorize'], /, *, workspace_id: str, server: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/members/{user_id}'], /, *, workspace_id: str, user_id: str, query: RemoveMemberQuery | None = None, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/permissions'], /, *, workspace_id: str, query: RevokeStandingRuleQuery, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/sandbox'], /, *, workspace_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}'], /, *, workspace_id: str, schedule_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}'], /, *, workspace_id: str, task_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def delete(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}'], /, *, workspace_id: str, webhook_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def delete(self, route: Literal['/langgraph/runs/crons/{cron_id}'], /, *, cron_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def delete(self, route: Literal['/langgraph/store/items'], /, *, body: Any, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def delete(self, route: Literal['/langgraph/threads/{thread_id}'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> None: ...

    @overload
    async def delete(self, route: Literal['/v1/threads/{thread_id}'], /, *, thread_id: str, headers: Mapping[str, str] | None = None) -> HubDeletedThread: ...

    @overload
    async def delete(self, route: Literal['/v1/threads/{thread_id}/rules/{rule_id}'], /, *, thread_id: str, rule_id: str, headers: Mapping[str, str] | None = None) -> HubRevokedRule: ...

    async def delete(self, route: str, /, **request: Any) -> Any:
        return await self._json('delete', route, **request)

    @overload
    def all(self, route: Literal['/api/v1/keys'], /, *, query: ListKeysQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[ApiKey]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces'], /, *, query: ListWorkspacesQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[Workspace]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/artifacts'], /, *, workspace_id: str, query: FindArtifactsQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[Artifact]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/changes'], /, *, workspace_id: str, query: ListChangesQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[ChangeRecord]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/chats'], /, *, workspace_id: str, query: ListChatsQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[Chat]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/evaluations'], /, *, workspace_id: str, query: ListEvaluationsQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[Evaluation]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/files'], /, *, workspace_id: str, query: ListFilesQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[FileInfo]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/tags/{tag}'], /, *, workspace_id: str, tag: str, query: ListTaggedQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[FileInfo]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/trash'], /, *, workspace_id: str, query: ListTrashQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[TrashEntry]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/files/{file_id}/versions'], /, *, workspace_id: str, file_id: str, query: ListVersionsQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[Version]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/members'], /, *, workspace_id: str, query: ListMembersQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[Member]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/schedules'], /, *, workspace_id: str, query: ListSchedulesQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[Schedule]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks'], /, *, workspace_id: str, query: ListTasksQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[Task]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/artifacts'], /, *, workspace_id: str, task_id: str, query: ListArtifactsQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[Artifact]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/tasks/{task_id}/history'], /, *, workspace_id: str, task_id: str, query: GetHistoryQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[TaskStage]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/waiting'], /, *, workspace_id: str, query: ListWaitingQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[WaitingEntry]: ...

    @overload
    def all(self, route: Literal['/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries'], /, *, workspace_id: str, webhook_id: str, query: ListWebhookDeliveriesQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[WebhookDelivery]: ...

    @overload
    def all(self, route: Literal['/v1/threads'], /, *, query: ListThreadsQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[HubThread]: ...

    @overload
    def all(self, route: Literal['/v1/threads/{thread_id}/history'], /, *, thread_id: str, query: GetThreadHistoryQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[dict[str, Any]]: ...

    @overload
    def all(self, route: Literal['/v1/threads/{thread_id}/sessions'], /, *, thread_id: str, query: ListSessionsQuery | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[dict[str, Any]]: ...

    def all(self, route: str, /, **request: Any) -> AsyncIterator[Any]:
        """The elements of all pages of a list."""
        return self._all(route, **request)
