"""The types of requests, answers and events of a hub.

This file is written by generate.py. Do not edit it.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class Accepted(TypedDict):
    """A command that is durable; its result is told by events."""

    # The chat.
    chat_id: str
    # Always `accepted`.
    status: str


class AcceptedChat(TypedDict):
    """A chat that was made."""

    # The chat.
    chat_id: str
    # Its plan; none before there is one.
    plan_id: NotRequired[str | None]
    # Always `queued`.
    status: str
    # Its first turn.
    turn_id: str


class AcceptedCompaction(TypedDict):
    """A compaction that will be."""

    # The chat.
    chat_id: str
    # Always `queued`.
    status: str
    # The internal turn; its `compacted` or `compaction_skipped` event tells the result.
    turn_id: str


class AcceptedEdit(TypedDict):
    """A fork in which the message has other words."""

    # The fork.
    chat_id: str
    # The chat that it was forked from, which stays as it is.
    forked_from: str
    # Always `queued`.
    status: str
    # The turn that the new words begin.
    turn_id: str


class AcceptedRun(TypedDict):
    """A run that will be."""

    # The run.
    run: str
    # The schedule.
    schedule_id: str


class AcceptedTaskCommand(TypedDict):
    """A command to a task that is durable; its result is told by events."""

    # `accepted`; `finished` for the stop of a task that had ended.
    status: str
    # The task.
    task_id: str


class AccessDecision(TypedDict):
    """The decision on one action."""

    # The action.
    action: str
    # `permit`, `deny`, or `ask`: a person is asked.
    decision: str
    # The policy that decided: the id of a built-in one, or `<file>#<id>` for one of the workspace.
    policy: str
    # Why, as the policy says it.
    why: str


class AccessExplanation(TypedDict):
    """The decisions on a path."""

    # One per action.
    decisions: list[AccessDecision]
    # The path.
    path: str
    # Whose access it is.
    principal: str


# A right in a workspace; also a scope of API keys.
Action: TypeAlias = "Literal['read', 'converse', 'run', 'write', 'approve', 'administer', 'own']"


class AgentAsked(TypedDict):
    """A question or request for permission of an agent. Very long arguments are cut, and such a request has no `digest`; the chat has the whole."""

    # The data of that event.
    data: dict[str, Any]
    # `question` or `permission_required`.
    event: str


class AgentEvent(TypedDict):
    """An event of the stream. The fields beside its type are those of the specification of the planner chat."""

    # `session`, `analysis`, `plan_created`, `step_start`, `step_complete`, `executor_spawned`, `executor_result`, `text`, `tool_call`,
    # `tool_result`, `error` or `done`.
    type: str


class AgentRequest(TypedDict):
    """A message to the planner chat."""

    # Whether a person approves each plan before its executors begin, from this message on. A plan that waits is told by `plan_created` with the status
    # `pending` and its `permission`, which is decided on as any permission of the chat with the session's id. Without it the session keeps its own. `false`
    # for a session whose plans are approved needs the right to approve.
    approve_plans: NotRequired[bool | None]
    # `global`, `project`, `calendar`, `task`, `project_create`, `project_update`, `project_audit`, `project_forecast`, `task_update` or
    # `daily_brief_update`; `general` means `global`. Without it the session keeps its own.
    context_type: NotRequired[str | None]
    # Earlier messages, of a client that keeps them itself; a new session reads them.
    conversationHistory: NotRequired[list[HistoryMessage] | None]
    # The entity: for a context of a project the name of its folder below `/projects`.
    entity_id: NotRequired[str | None]
    # The words: at most 200 KiB of UTF-8.
    message: str
    on_busy: NotRequired[OnBusy | None]
    # The entity that the person looks at, in the form of the client, at most 4 KiB; null takes it away.
    project_focus: NotRequired[dict[str, Any] | None]
    # The session that goes on; a new one without it.
    session_id: NotRequired[str | None]
    # Whether the answer is the stream of the turn. With `false` it is the session, as soon as the message is durable; `GET` shows the answer later.
    # Where a server holds no streams, only `false` is taken.
    stream: NotRequired[bool | None]


class Answers(TypedDict):
    """Answers to questions of `ask_user`, one by each question's name."""

    # One value per question, by its name; it fits the question's schema.
    answers: dict[str, Any]


class ApiKey(TypedDict):
    """An API key, without its text."""

    # When it was made.
    created_at: str
    # From when on it is void.
    expires_at: NotRequired[str | None]
    # Its id, the first part of its text.
    key_id: str
    # Its purpose.
    name: str
    # When it was taken back.
    revoked_at: NotRequired[str | None]
    # Its rights; they hold where that person has them, too.
    scopes: list[Action]
    # Whom it works for.
    user_id: str
    # The workspaces that it is for; all when left out.
    workspaces: NotRequired[list[str] | None]


class ApiKeyPage(TypedDict):
    """A page of API keys."""

    # The keys, oldest first.
    keys: list[ApiKey]
    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]


class ApprovePlanRequest(TypedDict):
    """The approval of a plan."""

    # The words with which the agent is told; by default that the plan is approved. At most 200 KiB of UTF-8.
    content: NotRequired[str | None]
    limits: NotRequired[Limits | None]
    # The plan; the chat's own by default.
    plan_id: NotRequired[str | None]
    # The version of the plan that is approved: the one that was read.
    v: int


class Artifact(TypedDict):
    """An artifact of a task."""

    # When it came about.
    at: str
    # The number of the node's execution.
    attempt: int
    # The length of its content as JSON, in bytes.
    bytes: int
    # The flow that made it.
    flow: FlowRef
    # Its id, unique in its task.
    id: str
    # Its kind.
    kind: ArtifactKind
    # The node that it is of.
    node: NotRequired[str | None]
    # The offset of its line in the file, in bytes; none for one that was too large to keep.
    offset: NotRequired[int | None]
    # The file that it is in.
    path: str
    # The schema that it fits.
    schema: NotRequired[str | None]
    # The SHA-256 of its content as JSON.
    sha256: str
    # The task.
    task_id: str


# The kind of an artifact.
ArtifactKind: TypeAlias = "Literal['output', 'tool_result', 'prompt', 'telemetry']"


class ArtifactPage(TypedDict):
    """A page of artifacts."""

    # The artifacts, oldest first.
    artifacts: list[Artifact]
    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]


class CallClaim(TypedDict):
    """The program that wants a call."""

    # An id that the program has made for itself at its start.
    program: str


class CallResult(TypedDict):
    """The answer of a program to a call."""

    # Whether the call failed; the output then says why.
    is_error: NotRequired[bool]
    # The result: a text as it is, any other value as JSON. The agent reads at most 50 KiB of it.
    output: Any


class Cancelled(TypedDict):
    """A chat that was told to stop."""

    # The chat.
    chat_id: str
    # Always `cancelled`; the `stopped` event tells when it has.
    status: str


# The outcome of a case.
CaseOutcome: TypeAlias = "Literal['passed', 'blessed', 'failed', 'error', 'skipped']"


class CaseResult(TypedDict):
    """The result of one case."""

    # Its id in the suite.
    case: str
    # The places where values differ: `a` is the expected value, `b` the actual one.
    differences: NotRequired[list[ValueDifference]]
    # How long it took, in milliseconds.
    duration_ms: int
    # Why it failed, or could not be run.
    failures: NotRequired[list[str]]
    # The outcome.
    outcome: CaseOutcome
    status: NotRequired[TaskStatus | None]
    # Its suite.
    suite: str
    # The task that was run for it.
    task_id: NotRequired[str | None]
    # The workspace that was made for it, where it was kept because it did not pass.
    workspace_id: NotRequired[str | None]


# The effect of a command on a file or folder.
Change = TypedDict('Change', {
    # The time of the change.
    'at': 'str',
    # The author of the change.
    'author': 'str',
    'conversion': 'NotRequired[Conversion | None]',
    # The file or folder.
    'file_id': 'str',
    # The path before a move.
    'from': 'NotRequired[str | None]',
    # Its kind.
    'kind': 'FileKind',
    # The kind of change.
    'op': 'FileOp',
    # Its path now, or its last one.
    'path': 'str',
    # The SHA-256 of its content, where it has one.
    'sha256': 'NotRequired[str | None]',
    # The length of its content in bytes.
    'size': 'int',
    # Its version; 0 for folders and for removed files.
    'v': 'int',
})


class ChangeList(TypedDict):
    """A page of changes."""

    # The changes, newest first.
    changes: list[ChangeRecord]
    # The time since which all changes are kept.
    kept_since: str
    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]


# A change in a list of changes.
ChangeRecord = TypedDict('ChangeRecord', {
    # The time of the change.
    'at': 'str',
    # The author of the change.
    'author': 'str',
    # The file or folder.
    'file_id': 'str',
    # The path before a move.
    'from': 'NotRequired[str | None]',
    # The id of its record: `as_of` of a rewind takes it.
    'id': 'str',
    # Its kind.
    'kind': 'FileKind',
    # The kind of change.
    'op': 'FileOp',
    # Its path then, or its last one.
    'path': 'str',
    # The rewind that it is a part of.
    'rewind': 'NotRequired[str | None]',
    # Its version after the change; 0 for folders and for removed files.
    'v': 'int',
})


class Chat(TypedDict):
    """A chat."""

    # When it last began or ended an interaction.
    active_at: str
    # When it last chose a mode or an option.
    agent_chose_at: NotRequired[str | None]
    # The settings of its coding agent, once that has begun a session, or has chosen a mode or an option by itself: `mode`, `model_id`, `session_id`,
    # `config_overrides`.
    agent_options: NotRequired[dict[str, Any] | None]
    agents_usage: NotRequired[Usage | None]
    approval: NotRequired[PlanApproval | None]
    # Its id.
    chat_id: str
    compaction: NotRequired[Compaction | None]
    # When it was made.
    created_at: str
    # Of an executor: its session, its plan and its step.
    executor: NotRequired[dict[str, Any] | None]
    # Its own file, `/chats/<id>.md`.
    file_id: str
    forked_from: NotRequired[ForkOrigin | None]
    # Its labels.
    labels: NotRequired[dict[str, str]]
    # The messages of the turns that have ended: of people, of the model, and results of calls.
    message_count: int
    # How far it may go.
    mode: Mode
    # Its model, where one was chosen.
    model: NotRequired[str | None]
    model_settings: NotRequired[ModelSettings | None]
    # Of an agent of a team: the chat that has the team.
    parent_chat_id: NotRequired[str | None]
    # Why it is paused.
    paused_reason: NotRequired[str | None]
    # The rules that people have granted: calls that they cover need no permission in turns of people who may approve, or are denied.
    permissions: NotRequired[list[PermissionRule]]
    # The identity of its plan file.
    plan_id: NotRequired[str | None]
    # Its plan file, where there is one.
    plan_path: NotRequired[str | None]
    # Messages that wait behind the turn that runs or is suspended, in order; of many only the first ones.
    queued: NotRequired[list[QueuedMessage]]
    # Its persona.
    role: str
    scenario: NotRequired[ScenarioSetup | None]
    # Of a session of the planner chat: its context.
    session: NotRequired[dict[str, Any] | None]
    # Its state.
    status: ChatStatus
    # Its title.
    title: str
    # The turn that runs or waits.
    turn_id: NotRequired[str | None]
    # The number of the running turn's first event.
    turn_seq: NotRequired[int | None]
    # Turns ended.
    turns: int
    # The usage of all its turns.
    usage: Usage
    # The person for whom its agent works: the one who made it. A chat of an earlier version has it from its next turn on.
    user_id: NotRequired[str | None]
    # The open request while it is suspended: `question` or `permission_required`, as `{event, data}`.
    waiting_for: NotRequired[list[dict[str, Any]]]
    # Its workspace.
    workspace_id: str


class ChatAgentOption(TypedDict):
    """An answer that a coding agent offers."""

    # `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    kind: str
    # Its words for people.
    name: str
    # The agent's id of it.
    option_id: str


class ChatAgentPlan(TypedDict):
    """A coding agent has a plan, or another one than before."""

    # Its steps, each with `content`, `priority` and `status`.
    entries: Any


class ChatAgentPlanEvent(TypedDict):
    """The event `agent_plan` of a chat."""

    data: ChatAgentPlan
    # The block's `event:` field.
    event: Literal['agent_plan']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatAgentSession(TypedDict):
    """A coding agent works in a session of its own."""

    # The agent's id of it.
    session_id: str


class ChatAgentSessionEvent(TypedDict):
    """The event `agent_session` of a chat."""

    data: ChatAgentSession
    # The block's `event:` field.
    event: Literal['agent_session']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatAgentUpdate(TypedDict):
    """A coding agent told of something else: a call that goes on, its mode, its commands."""

    # The call, if it is about one.
    call_id: NotRequired[str | None]
    # The session update of the Agent Client Protocol.
    update: Any


class ChatAgentUpdateEvent(TypedDict):
    """The event `agent_update` of a chat."""

    data: ChatAgentUpdate
    # The block's `event:` field.
    event: Literal['agent_update']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatCall(TypedDict):
    """A call of a tool starts."""

    # Its arguments; a text where the model wrote no JSON.
    args: Any
    # The call.
    call_id: str
    # The path that it is about, where it has one.
    path: NotRequired[str | None]
    # Its title, of a call of a coding agent.
    title: NotRequired[str | None]
    # The tool.
    tool: str


class ChatCallEvent(TypedDict):
    """The event `call` of a chat."""

    data: ChatCall
    # The block's `event:` field.
    event: Literal['call']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatCallHandedOut(TypedDict):
    """A call waits for a program, which answers by `POST …/calls/{call_id}`."""

    # Its arguments.
    args: Any
    # The call that waits.
    call_id: str
    # When no answer becomes a failure.
    expires_at: str
    # Whether programs may run it more than once; else a program takes it first, by `POST …/calls/{call_id}/take`.
    repeatable: bool
    # The tool.
    tool: str


class ChatCallHandedOutEvent(TypedDict):
    """The event `call_handed_out` of a chat."""

    data: ChatCallHandedOut
    # The block's `event:` field.
    event: Literal['call_handed_out']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatChanges(TypedDict):
    """Changes of a chat's setup; at least one field."""

    # Labels to set; null removes the label of a key. Others stay.
    labels: NotRequired[dict[str, str | None] | None]
    mode: NotRequired[Mode | None]
    # Another model.
    model: NotRequired[str | None]
    model_settings: NotRequired[ModelSettings | None]
    # A new title: 1 to 200 characters.
    title: NotRequired[str | None]


class ChatChunkEvent(TypedDict):
    """The event `chunk` of a chat."""

    data: ChatDelta
    # The block's `event:` field.
    event: Literal['chunk']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatCompacted(TypedDict):
    """The oldest turns were compacted: the model reads the summary in place of their words."""

    error: NotRequired[InnerError | None]
    # Their last line in the chat's file.
    last_line: int
    # The second as a part of the first.
    ratio: float
    # The summary; none if no model gave one, and then the last ten messages stay.
    summary: str | None
    # The size of the context after, in tokens.
    tokens_after: int
    # The size of the context before, in tokens.
    tokens_before: int
    # Turns compacted.
    turns: int


class ChatCompactedEvent(TypedDict):
    """The event `compacted` of a chat."""

    data: ChatCompacted
    # The block's `event:` field.
    event: Literal['compacted']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatCompactionSkipped(TypedDict):
    """A compaction that was asked for was not done."""

    # The reason, for people.
    reason: str
    # The turn that it would have been.
    turn_id: str


class ChatCompactionSkippedEvent(TypedDict):
    """The event `compaction_skipped` of a chat."""

    data: ChatCompactionSkipped
    # The block's `event:` field.
    event: Literal['compaction_skipped']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatCompactionUndone(TypedDict):
    """The last compaction was taken back: the model reads the words again."""

    # The person.
    by: str


class ChatCompactionUndoneEvent(TypedDict):
    """The event `compaction_undone` of a chat."""

    data: ChatCompactionUndone
    # The block's `event:` field.
    event: Literal['compaction_undone']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatDelta(TypedDict):
    """A piece of the model's text or reasoning. It expires; the `message` has the whole."""

    # The message to come.
    message_id: str
    # The piece.
    text: str


class ChatDone(TypedDict):
    """The turn ended by itself or at a limit."""

    # The model's last words.
    message: str
    # Why it ended.
    stop_reason: ChatStopReason
    # The turn.
    turn_id: str


class ChatDoneEvent(TypedDict):
    """The event `done` of a chat."""

    data: ChatDone
    # The block's `event:` field.
    event: Literal['done']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatErrorEvent(TypedDict):
    """The event `error` of a chat."""

    data: InnerError
    # The block's `event:` field.
    event: Literal['error']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


# One block of a chat's stream: `event` is the block's `event:` field, `id` its `id:` field, and `data` its `data:` field, parsed as JSON. New events may come with later versions.
ChatEvent: TypeAlias = "ChatTurnStartedEvent | ChatWaitingEvent | ChatThoughtEvent | ChatChunkEvent | ChatMessageEvent | ChatCallEvent | ChatObservationEvent | ChatAgentSessionEvent | ChatAgentPlanEvent | ChatAgentUpdateEvent | ChatFileUpdatedEvent | ChatPlanStepEvent | ChatTeamStartedEvent | ChatMemberEndedEvent | ChatPermissionRequiredEvent | ChatPermissionResolvedEvent | ChatPermissionsForgottenEvent | ChatQuestionEvent | ChatCallHandedOutEvent | ChatModeChangedEvent | ChatPlanApprovedEvent | ChatUsageEvent | ChatCompactedEvent | ChatCompactionSkippedEvent | ChatCompactionUndoneEvent | ChatRolledBackEvent | ChatDoneEvent | ChatStoppedEvent | ChatErrorEvent | ChatResetEvent"


class ChatFileUpdated(TypedDict):
    """A file has a new version, a new place, or is gone."""

    # The author.
    author: str
    # The file.
    file_id: str
    # Its path.
    path: str
    # Its version; 0 when it is gone.
    v: int


class ChatFileUpdatedEvent(TypedDict):
    """The event `file_updated` of a chat."""

    data: ChatFileUpdated
    # The block's `event:` field.
    event: Literal['file_updated']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatMemberEnded(TypedDict):
    """An agent of the team has ended its turn; the steps that it had claimed and not ended are free again."""

    # Its chat.
    chat_id: str
    error: NotRequired[InnerError | None]
    # Why it ended: a stop reason, or `stopped`.
    stop_reason: str
    usage: NotRequired[Usage | None]


class ChatMemberEndedEvent(TypedDict):
    """The event `member_ended` of a chat."""

    data: ChatMemberEnded
    # The block's `event:` field.
    event: Literal['member_ended']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatMessage(TypedDict):
    """A message is complete."""

    # The whole text.
    content: str
    # Attached files, of a person's message.
    files: NotRequired[list[str] | None]
    # The message.
    message_id: str
    # The speaker.
    role: MessageRole
    # The person who wrote it, of a person's message; none in messages of earlier versions.
    user_id: NotRequired[str | None]


class ChatMessageEvent(TypedDict):
    """The event `message` of a chat."""

    data: ChatMessage
    # The block's `event:` field.
    event: Literal['message']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatModeChanged(TypedDict):
    """The mode was changed."""

    # The sender of the change.
    by: NotRequired[str | None]
    # The new mode.
    mode: Mode
    # The plan that it is about.
    plan_path: str | None


class ChatModeChangedEvent(TypedDict):
    """The event `mode_changed` of a chat."""

    data: ChatModeChanged
    # The block's `event:` field.
    event: Literal['mode_changed']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatObservation(TypedDict):
    """A call of a tool was answered."""

    # The call.
    call_id: str
    code: NotRequired[ErrorCode | None]
    # The text that the model reads.
    output: str
    resources: NotRequired[StageResources | None]
    # Whether it did what it was asked to.
    success: bool
    # The tool.
    tool: str
    # Whether the output was cut.
    truncated: NotRequired[bool | None]


class ChatObservationEvent(TypedDict):
    """The event `observation` of a chat."""

    data: ChatObservation
    # The block's `event:` field.
    event: Literal['observation']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatPage(TypedDict):
    """A page of chats."""

    # The chats, the last active first.
    chats: list[Chat]
    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]


class ChatPermissionRequired(TypedDict):
    """A call waits for a person's permission."""

    always: NotRequired[PermissionRule | None]
    # Its arguments; a text where the model wrote no JSON.
    args: Any
    # The call that waits.
    call_id: str
    # `command`, `file`, `network` or `mcp`.
    category: str
    # The SHA-256 of what is shown: of category, tool and arguments; of a coding agent's request of category, call and options. A decision may
    # name it, and then counts for no other request.
    digest: str
    # When no answer becomes a no.
    expires_at: str
    # The answers that the coding agent offers, in a chat of one.
    options: NotRequired[list[ChatAgentOption] | None]
    # The permission, to decide on by `POST …/permissions/{permission_id}`.
    permission_id: str
    # Why a person is asked.
    reason: str
    # The tool.
    tool: str


class ChatPermissionRequiredEvent(TypedDict):
    """The event `permission_required` of a chat."""

    data: ChatPermissionRequired
    # The block's `event:` field.
    event: Literal['permission_required']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatPermissionResolved(TypedDict):
    """A permission was decided."""

    always: NotRequired[PermissionRule | None]
    # The source of the decision: a principal, `stop` or `timeout`.
    by: str
    # The option of the coding agent that was chosen.
    option_id: NotRequired[str | None]
    # The decision.
    outcome: PermissionOutcome
    # The permission.
    permission_id: str
    # The reason of a no: the words of a person, or the rule beyond the chat that denies the call.
    reason: NotRequired[str | None]


class ChatPermissionResolvedEvent(TypedDict):
    """The event `permission_resolved` of a chat."""

    data: ChatPermissionResolved
    # The block's `event:` field.
    event: Literal['permission_resolved']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatPermissionsForgotten(TypedDict):
    """A person took back rules of the chat."""

    # The person.
    by: str
    # The rule that was taken back; left out for all of them.
    rule_id: NotRequired[str | None]


class ChatPermissionsForgottenEvent(TypedDict):
    """The event `permissions_forgotten` of a chat."""

    data: ChatPermissionsForgotten
    # The block's `event:` field.
    event: Literal['permissions_forgotten']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatPlanApproved(TypedDict):
    """A version of a plan was approved."""

    # The time of the approval.
    at: str
    # The person who approved it, as `user:<id>`.
    by: str
    # The plan file.
    plan_id: str
    # The path of the plan at that moment.
    plan_path: str
    # The version.
    v: int


class ChatPlanApprovedEvent(TypedDict):
    """The event `plan_approved` of a chat."""

    data: ChatPlanApproved
    # The block's `event:` field.
    event: Literal['plan_approved']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatPlanStep(TypedDict):
    """A step of the plan changed."""

    # Steps done.
    done: int
    # The id of the plan file.
    plan_id: NotRequired[str | None]
    # The plan file.
    plan_path: str
    # `pending`, `in_progress`, `done`, `failed` or `skipped`.
    status: str
    # Counts from 1.
    step: int
    # The text of the step.
    title: str
    # Steps in all.
    total: int


class ChatPlanStepEvent(TypedDict):
    """The event `plan_step` of a chat."""

    data: ChatPlanStep
    # The block's `event:` field.
    event: Literal['plan_step']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatQuestion(TypedDict):
    """The agent asks people; its call waits for the answers."""

    # The call that waits.
    call_id: str
    # When no answer becomes a refusal.
    expires_at: str
    # The set of questions, to answer by `POST …/answers/{question_id}`.
    question_id: str
    # The questions.
    questions: list[Question]


class ChatQuestionEvent(TypedDict):
    """The event `question` of a chat."""

    data: ChatQuestion
    # The block's `event:` field.
    event: Literal['question']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatResetEvent(TypedDict):
    """The event `reset` of a chat."""

    data: StreamReset
    # The block's `event:` field.
    event: Literal['reset']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatRolledBack(TypedDict):
    """The turn before was taken back, as `on_busy: rollback` asks for: its messages count no more, and its changes of files are undone."""

    # How many changes were taken back.
    changes: int
    code: NotRequired[ErrorCode | None]
    # The first 100 files that stay as they are: others changed them since, or their earlier content is lost.
    kept: list[str]
    # The same, for people.
    message: NotRequired[str | None]
    # The rewind of its files, which another rewind takes back; left out where it changed none.
    rewind_id: NotRequired[str | None]
    # The turn that was taken back.
    turn_id: str


class ChatRolledBackEvent(TypedDict):
    """The event `rolled_back` of a chat."""

    data: ChatRolledBack
    # The block's `event:` field.
    event: Literal['rolled_back']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


# The state of a chat.
ChatStatus: TypeAlias = "Literal['queued', 'running', 'suspended', 'idle', 'paused']"


# Why a turn ended by itself.
ChatStopReason: TypeAlias = "Literal['end_turn', 'max_output_tokens', 'refusal', 'step_limit', 'token_limit', 'time_limit', 'cost_limit', 'context_limit', 'error']"


class ChatStopped(TypedDict):
    """The turn was stopped."""

    # The text of the model until then.
    partial_response: str
    # The reason, such as `user_cancelled`.
    reason: str
    # The turn.
    turn_id: str


class ChatStoppedEvent(TypedDict):
    """The event `stopped` of a chat."""

    data: ChatStopped
    # The block's `event:` field.
    event: Literal['stopped']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatTeamMember(TypedDict):
    """An agent of a team."""

    # Its chat, which has a stream of its own.
    chat_id: str
    # Its persona.
    role: str


class ChatTeamStarted(TypedDict):
    """The agents of the team begin to carry the plan out, or go on with the steps that became free."""

    # The agents of this round.
    members: list[ChatTeamMember]
    # Counts from 1 within the turn.
    round: int


class ChatTeamStartedEvent(TypedDict):
    """The event `team_started` of a chat."""

    data: ChatTeamStarted
    # The block's `event:` field.
    event: Literal['team_started']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatThoughtEvent(TypedDict):
    """The event `thought` of a chat."""

    data: ChatDelta
    # The block's `event:` field.
    event: Literal['thought']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatTurnStarted(TypedDict):
    """A turn began, or began again after a crash."""

    # Counts from 1. Above 1 the pieces of text without a `message` are void.
    attempt: int
    # The turn.
    turn_id: str


class ChatTurnStartedEvent(TypedDict):
    """The event `turn_started` of a chat."""

    data: ChatTurnStarted
    # The block's `event:` field.
    event: Literal['turn_started']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatUsage(TypedDict):
    """A call of a model was paid for."""

    # Tokens read from the provider's cache.
    cached_tokens: int
    # Tokens of context allowed.
    context_limit: int
    # Tokens of context sent.
    context_used: int
    # US dollars; 0 where the price is not known.
    cost_usd: float
    # Tokens read, cached ones included.
    input_tokens: int
    # Tokens written, reasoning included.
    output_tokens: int


class ChatUsageEvent(TypedDict):
    """The event `usage` of a chat."""

    data: ChatUsage
    # The block's `event:` field.
    event: Literal['usage']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


# The turn waits, and nothing is held for it.
ChatWaiting: TypeAlias = "ChatWaitingSlots | ChatWaitingPlace | ChatWaitingSandbox | ChatWaitingModel"


class ChatWaitingEvent(TypedDict):
    """The event `waiting` of a chat."""

    data: ChatWaiting
    # The block's `event:` field.
    event: Literal['waiting']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class ChatWaitingModel(TypedDict):
    """The provider failed in a way that passes."""

    # When it failed.
    at: str
    # The kind of error.
    code: ErrorCode
    # The explanation.
    message: str
    # The message to come.
    message_id: str
    reason: Literal['model']
    # When the model is asked again.
    until: str


class ChatWaitingPlace(TypedDict):
    """As many commands run as may at once."""

    # The start of the wait.
    at: str
    # The call.
    call_id: str
    reason: Literal['place']


class ChatWaitingSandbox(TypedDict):
    """The machine of the command is not ready."""

    # The start of the wait.
    at: str
    # The call.
    call_id: str
    # Why it could not begin.
    message: str
    reason: Literal['sandbox']
    # The time at which it is made again.
    until: str | None


class ChatWaitingSlots(TypedDict):
    """As many models are asked as may be at once."""

    # The start of the wait.
    at: str
    # The message to come.
    message_id: str
    reason: Literal['slots']


class ChatWithHistory(TypedDict):
    """A chat with messages of it."""

    # When it last began or ended an interaction.
    active_at: str
    # When it last chose a mode or an option.
    agent_chose_at: NotRequired[str | None]
    # The settings of its coding agent, once that has begun a session, or has chosen a mode or an option by itself: `mode`, `model_id`, `session_id`,
    # `config_overrides`.
    agent_options: NotRequired[dict[str, Any] | None]
    agents_usage: NotRequired[Usage | None]
    approval: NotRequired[PlanApproval | None]
    # Its id.
    chat_id: str
    compaction: NotRequired[Compaction | None]
    # When it was made.
    created_at: str
    # Of an executor: its session, its plan and its step.
    executor: NotRequired[dict[str, Any] | None]
    # Its own file, `/chats/<id>.md`.
    file_id: str
    forked_from: NotRequired[ForkOrigin | None]
    # Its labels.
    labels: NotRequired[dict[str, str]]
    # The messages of the turns that have ended: of people, of the model, and results of calls.
    message_count: int
    # How far it may go.
    mode: Mode
    # Its model, where one was chosen.
    model: NotRequired[str | None]
    model_settings: NotRequired[ModelSettings | None]
    # Of an agent of a team: the chat that has the team.
    parent_chat_id: NotRequired[str | None]
    # Why it is paused.
    paused_reason: NotRequired[str | None]
    # The rules that people have granted: calls that they cover need no permission in turns of people who may approve, or are denied.
    permissions: NotRequired[list[PermissionRule]]
    # The identity of its plan file.
    plan_id: NotRequired[str | None]
    # Its plan file, where there is one.
    plan_path: NotRequired[str | None]
    # Messages that wait behind the turn that runs or is suspended, in order; of many only the first ones.
    queued: NotRequired[list[QueuedMessage]]
    # Its persona.
    role: str
    scenario: NotRequired[ScenarioSetup | None]
    # Of a session of the planner chat: its context.
    session: NotRequired[dict[str, Any] | None]
    # Its state.
    status: ChatStatus
    # Its title.
    title: str
    # The turn that runs or waits.
    turn_id: NotRequired[str | None]
    # The number of the running turn's first event.
    turn_seq: NotRequired[int | None]
    # Turns ended.
    turns: int
    # The usage of all its turns.
    usage: Usage
    # The person for whom its agent works: the one who made it. A chat of an earlier version has it from its next turn on.
    user_id: NotRequired[str | None]
    # The open request while it is suspended: `question` or `permission_required`, as `{event, data}`.
    waiting_for: NotRequired[list[dict[str, Any]]]
    # Its workspace.
    workspace_id: str
    # The number of the last event: the `after` to watch from.
    last_seq: int
    # The messages, oldest first.
    messages: list[Message]
    # The `after` of the next part; none at the end.
    next_after: NotRequired[int | None]
    # With `before`: the number to go on before; absent at the beginning.
    next_before: NotRequired[int | None]


class CheckFlowRequest(TypedDict):
    """Options of a check."""

    # The files of the flow, by their paths in its folder, to check them before they are saved; when absent, the saved ones are checked.
    files: NotRequired[dict[str, str] | None]


# The kind of a child task.
ChildKind: TypeAlias = "Literal['clone', 'subtask']"


class CodingAgent(TypedDict):
    """A coding agent: a program of its own that performs the turns of a chat."""

    # Whether it can be started.
    available: bool
    # Its id, to make a chat with.
    id: str
    # The command that would install it.
    install: NotRequired[str | None]
    # Its name for people.
    name: str
    # Why not.
    reason: NotRequired[str | None]


class CodingAgents(TypedDict):
    """All coding agents."""

    # The agents, in the order of their ids.
    agents: list[CodingAgent]
    # The folders in which the `cwd` of a chat with an agent has to be, after symbolic links are resolved.
    allowed_roots: list[str]


class Compaction(TypedDict):
    """A compaction of a chat's context."""

    # The time of it.
    at: str
    # Whether it can be taken back.
    can_be_undone: bool
    # The last line of the turns that it stands for, in the chat's file.
    last_line: int
    # The second as a part of the first.
    ratio: float
    # The summary; empty if no model gave one.
    summary: str
    # The size of the context after, in tokens.
    tokens_after: int
    # The size of the context before, in tokens.
    tokens_before: int


class ComparedNode(TypedDict):
    """The work of one node in two runs."""

    # In the first.
    a: NodeTotals
    # In the second.
    b: NodeTotals
    # Whether it gave the same in both.
    same: bool


class ComparedRun(TypedDict):
    """A run that is compared."""

    flow: NotRequired[FlowRef | None]
    status: NotRequired[TaskStatus | None]
    # The task.
    task_id: str


class ContextLocation(TypedDict):
    """The subject of a session at a model call."""

    # The kind of work, such as `project_update`.
    context_type: str
    # The entity that it is about.
    entity_id: NotRequired[str | None]
    # The focus, as the client says it.
    project_focus: NotRequired[Any]


class ContextPart(TypedDict):
    """A part of a context."""

    # Its messages, or for tools their number.
    count: NotRequired[int]
    # Its first line in the chat's file, where it is there.
    first_line: NotRequired[int]
    # Its last line in the chat's file.
    last_line: NotRequired[int]
    # `system`, `tools`, `summary`, `calls`, `history` or `turn`.
    part: str
    # Its size in tokens, estimated.
    tokens: int
    # The reason that the model was given it.
    why: str


class ContextTruncation(TypedDict):
    """A part of a context that was cut."""

    # The part: `location` or `profile` of the system text, `history`, `results` or `tools` of an answer, `conversation` of an analysis.
    part: str
    # The tokens that were kept.
    tokens_after: int
    # Its tokens before, estimated.
    tokens_before: int
    # The reason.
    why: str


class Conversion(TypedDict):
    """The conversion of the current version of a document."""

    # Whether it is a document because a message of a chat has it attached, and not because it lies under `/data`; left out where it is not.
    attached: NotRequired[bool]
    # The folder with the attachments of a message. Until the status is `done` they are those of an earlier version.
    attachments: NotRequired[str | None]
    # The file with the Markdown. Until the status is `done` it is that of an earlier version.
    markdown: NotRequired[str | None]
    # The same for people.
    message: NotRequired[str | None]
    # Why it failed or was skipped, for programs, such as `encrypted`.
    reason: NotRequired[str | None]
    # Its progress.
    status: ConversionStatus


# The progress of a conversion.
ConversionStatus: TypeAlias = "Literal['queued', 'running', 'done', 'failed', 'skipped']"


class CreatedApiKey(TypedDict):
    """An API key that was made."""

    # The facts about it that later answers have.
    api_key: ApiKey
    # Its text, for `Authorization: Bearer`. It is told this once.
    key: str


class DeadLetter(TypedDict):
    """A message that was put aside. Its content is not shown."""

    # How often it was tried.
    attempts: int
    # The receiver: a kind of actor, its workspace and its id.
    group: str
    # The id of the message, in its group.
    id: str
    # When it was put aside.
    put_aside_at: str


class DeadLetters(TypedDict):
    """Dead letters, the oldest first."""

    # The letters.
    dead_letters: list[DeadLetter]
    # Whether there are more.
    has_more: bool


# The differences between two versions.
Diff = TypedDict('Diff', {
    # A unified diff, capped; null when either is not a text, or too long.
    'diff': 'NotRequired[str | None]',
    # The older version.
    'from': 'int',
    # The newer version.
    'to': 'int',
})


class Divergence(TypedDict):
    """The first place where two runs part."""

    # The first run's value there.
    a: NotRequired[Any]
    # The second run's value there.
    b: NotRequired[Any]
    # The places where the values differ, at most 50.
    differences: NotRequired[list[ValueDifference]]
    # The node.
    node: NotRequired[str | None]
    # The task, by the names from the root down; empty for the root.
    task: str
    # The kind of difference.
    what: DivergenceKind


# A kind of difference.
DivergenceKind: TypeAlias = "Literal['input', 'output', 'status', 'denial', 'route', 'fork', 'merge', 'end']"


# The encoding of a content in JSON.
Encoding: TypeAlias = "Literal['text', 'base64']"


class Engine(TypedDict):
    """The engine that made a run."""

    # The revision of the events in its logs.
    events: int
    # Its name.
    name: str
    # Its version.
    version: str


# The codes.
ErrorCode: TypeAlias = "Literal['INVALID_ARGUMENT', 'UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND', 'CONFLICT', 'IDEMPOTENCY_MISMATCH', 'STALE_VERSION', 'PAYLOAD_TOO_LARGE', 'UNPROCESSABLE', 'RATE_LIMITED', 'LIMIT_REACHED', 'CANCELLED', 'INTERNAL', 'UPSTREAM_UNAVAILABLE', 'UPSTREAM_REFUSED', 'TIMEOUT', 'CONTENT_DAMAGED', 'CONTENT_MISSING', 'STORAGE_FULL', 'PAUSED', 'NOT_BEGUN', 'OUTCOME_UNKNOWN', 'QUARANTINED']"


class ErrorEnvelope(TypedDict):
    """The envelope of every refusal."""

    # The failure.
    error: RequestError


class Evaluation(TypedDict):
    """An evaluation of a flow."""

    # The caller who began it.
    by: Any
    # The results there are, in the order of the manifest.
    cases: list[CaseResult]
    # When it was accepted.
    created_at: str
    error: NotRequired[InnerError | None]
    # Its id.
    evaluation_id: str
    # How many have not.
    failed: int
    # When its last case had ended.
    finished_at: NotRequired[str | None]
    # The flow.
    flow: FlowRef
    # How many have passed.
    passed: int
    # The requested cases.
    selection: EvaluationSelection
    # How many are disabled.
    skipped: int
    # Its progress.
    status: EvaluationStatus
    # How many cases there are.
    total: int
    # The workspace that its flow is of.
    workspace_id: str


class EvaluationPage(TypedDict):
    """A page of evaluations."""

    # The evaluations, the newest first.
    evaluations: list[Evaluation]
    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]


class EvaluationSelection(TypedDict):
    """The cases to run, and whether to compare or to bless."""

    # Makes golden files of the results, instead of comparing with them.
    bless: NotRequired[bool]
    # Only these cases, each as `ID` or as `SUITE/ID`; all when none.
    cases: NotRequired[list[str]]
    # The suites, by name; those that are enabled when none.
    suites: NotRequired[list[str]]
    # Only cases with one of these tags; all when none.
    tags: NotRequired[list[str]]


# The progress of an evaluation.
EvaluationStatus: TypeAlias = "Literal['queued', 'running', 'finished']"


class FileInfo(TypedDict):
    """A file or folder as it is now."""

    # The author of the current version.
    author: str
    conversion: NotRequired[Conversion | None]
    # When it was made.
    created_at: str
    # Of the Markdown of a document, and of an attachment of a message or their folder: that document. An attachment has a conversion of its own.
    derived_from: NotRequired[str | None]
    # Its identity; survives moves and new versions.
    file_id: str
    # Its kind.
    kind: FileKind
    # The last name of the path.
    name: str
    # Its path.
    path: str
    # The SHA-256 of its content, where it has versions.
    sha256: NotRequired[str | None]
    # The length of its content in bytes.
    size: int
    # When its current version was written.
    updated_at: str
    # Its current version, from 1; 0 for folders and projections, which have none.
    v: int


# The kind of something in a workspace.
FileKind: TypeAlias = "Literal['file', 'folder', 'projection']"


# A kind of change.
FileOp: TypeAlias = "Literal['made', 'written', 'moved', 'removed', 'restored', 'purged', 'converted', 'marked']"


class FilePage(TypedDict):
    """A page of a folder."""

    # Its entries, by name.
    entries: list[FileInfo]
    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]


class FileRef(TypedDict):
    """A file or folder at the end of a link."""

    # Its identity.
    file_id: str
    # Its kind.
    kind: FileKind
    # Its path now.
    path: str


class FileTags(TypedDict):
    """The tags of a file after a change of its tags or links."""

    # False when all was so before.
    changed: bool
    # The file.
    file_id: str
    # Its path.
    path: str
    # All its tags, in order.
    tags: list[str]


class Flow(TypedDict):
    """A flow."""

    # The start node of tasks that name none.
    default_start: str
    # Its edges, in the order of the manifest, node by node.
    edges: list[FlowEdge]
    # The SHA-256 of its manifests.
    hash: str
    # The JSON Schema of that node's input, where it has one: forms are made of it.
    input_schema: NotRequired[dict[str, Any] | None]
    # The name of its folder.
    name: str
    # Its nodes, in the order of the manifest.
    nodes: list[FlowNode]
    # The files whose new versions start a task of it.
    on: NotRequired[list[FlowTrigger]]
    # The profiles of its `cli_profiles.yaml`, the default one first.
    profiles: list[dict[str, Any]]


# An edge of a flow.
FlowEdge = TypedDict('FlowEdge', {
    # The node that it leaves.
    'from': 'str',
    # Its name for decisions.
    'label': 'NotRequired[str | None]',
    # The node that it reaches.
    'to': 'str',
})


class FlowFault(TypedDict):
    """Something that is wrong with a flow."""

    # The kind of fault, for programs.
    code: str
    # The column in characters, from 1.
    column: int
    # The file, by its path in the folder.
    file: str
    # The advice.
    hint: NotRequired[str | None]
    # The line, from 1.
    line: int
    # The fault.
    message: str


class FlowNode(TypedDict):
    """A node of a flow."""

    # Its agent, for an agent node.
    agent: NotRequired[str | None]
    # Whether it makes a failure of every task that reaches it.
    always_fail: bool
    # The part of memory that it is given: `none`, `global`, or the name of a profile.
    context: str
    # Whether the task goes on when it fails.
    continue_on_failure: bool
    # Its id.
    id: str
    # Its name for people.
    name: NotRequired[str | None]
    # Its operation.
    op: NodeOp
    # Its role in the graph.
    role: NodeRole
    # The schema of its input.
    schema_in: NotRequired[str | None]
    # The schema of its output.
    schema_out: NotRequired[str | None]
    # The tools that it may use.
    tools: list[str]


class FlowRef(TypedDict):
    """A flow, with the hash of all its manifests."""

    # The SHA-256 of its manifests; a task keeps the manifests that it began with.
    hash: str
    # Its name: the folder's in `/system/flows`.
    name: str


class FlowReport(TypedDict):
    """All faults of a flow."""

    # The faults, by place.
    faults: list[FlowFault]
    # The SHA-256 of its manifests, where nothing is wrong with them.
    hash: NotRequired[str | None]
    # The keys of the manifests that have no effect here, by place. They are no faults.
    notes: list[FlowFault]
    # Whether nothing is.
    ok: bool


class FlowSchemas(TypedDict):
    """The JSON Schemas of all manifests."""

    # The schemas, by the manifests' names without extension.
    schemas: dict[str, Any]


class FlowSummary(TypedDict):
    """A flow in a list."""

    # Whether it is one in the box, which the workspace has no folder of.
    built_in: NotRequired[bool | None]
    # Its purpose, in the words of its manifest.
    description: NotRequired[str | None]
    # How many faults it has.
    faults: int
    # The SHA-256 of its manifests, where they have no fault.
    hash: NotRequired[str | None]
    # The name of its folder in `/system/flows`.
    name: str
    # How many nodes it has; 0 for one with faults.
    nodes: int
    # The files whose new versions start a task of it.
    on: NotRequired[list[FlowTrigger] | None]


class FlowTrigger(TypedDict):
    """Files whose new versions start a task of a flow: those that fulfil all conditions."""

    # `created` for first versions only, `updated` for later ones only.
    event: NotRequired[str | None]
    # Other keys of the front matter, with their values.
    front_matter: NotRequired[dict[str, Any] | None]
    # The pattern of their paths.
    path: str
    # The `status` in their front matter.
    status: NotRequired[str | None]


class Flows(TypedDict):
    """The flows of a workspace."""

    # The flows, by name.
    flows: list[FlowSummary]


class ForkOrigin(TypedDict):
    """The beginning of a fork."""

    # The chat that it was forked from.
    chat_id: str
    # The number of the last event of that chat that it has; 0 for none.
    seq: int


class FrontMatterFault(TypedDict):
    """A fault in the front matter of a persona or a skill. A skill with one is used as far as it can be read; a persona with one refuses new chats."""

    # The line of the file, from 1.
    line: int
    # The fault, and its remedy.
    message: str


class GrantedRule(TypedDict):
    """A rule by which calls are allowed or denied without a question."""

    # `allow` or `deny`. Of two rules that cover a call the one that denies wins.
    effect: str
    # The rule.
    rule: PermissionRule
    # Its id: the same for the same rule in every chat.
    rule_id: str
    # The rule in words.
    words: str


class Handoff(TypedDict):
    """The version of a file that started a task, and the tasks that led to this version."""

    # The tasks that led here, the first one first: each but the first was started by a file that the one before it wrote.
    chain: NotRequired[list[HandoffLink] | None]
    # The file.
    file_id: str
    # Its path when the version was written.
    path: str
    # The version.
    v: int


class HandoffLink(TypedDict):
    """A task of a chain of handoffs."""

    # The name of its flow.
    flow: str
    # The task.
    task: str


class Health(TypedDict):
    """That the process lives, or can work."""

    # Damage while it works, by part: `archive` when contents were lost, `disk` when it is full and additions are
    # refused. Empty as a rule, and left out then.
    degraded: NotRequired[dict[str, str]]
    # `ok`, or `ready`.
    status: str
    # The version of the program.
    version: str


class HistoryMessage(TypedDict):
    """A message that a client brings along."""

    # The words; null, or no such field, in a message of calls alone.
    content: NotRequired[str | None]
    # `user` or `assistant`.
    role: str


class HubAgent(TypedDict):
    """An agent that threads can have."""

    # Its id, for `agent` of a thread.
    id: str
    # The command that would install it.
    install: NotRequired[str | None]
    # `persona`, or `coding` for a program with tools of its own.
    kind: str
    # Its name for people.
    name: str
    # Why it is not available.
    reason: NotRequired[str | None]
    # `available` or `unavailable`.
    status: str


class HubAgentOptions(TypedDict):
    """The settings of a thread's agent."""

    # Options of its configuration, by their ids.
    configOverrides: NotRequired[dict[str, str]]
    # The mode of its session; of a persona `chat` or `plan`.
    mode: NotRequired[str | None]
    # The model that it asks.
    modelId: NotRequired[str | None]
    # The session of a coding agent that the next turn goes on with; none while it has begun none. A change that leaves it out begins a new one.
    sessionId: NotRequired[str | None]


class HubAgents(TypedDict):
    """The agents."""

    agents: list[HubAgent]


class HubChoice(TypedDict):
    """The choice of an option."""

    # The option.
    configId: str
    # One of its values.
    value: str


class HubCommand(TypedDict):
    """A slash command."""

    description: NotRequired[str | None]
    inputHint: NotRequired[str | None]
    # Its name, without the slash.
    name: str


class HubCommands(TypedDict):
    """The slash commands of a thread's agent."""

    commands: list[HubCommand]
    threadId: str


class HubCompact(TypedDict):
    """How to compact."""

    # The longest summary, in characters; 4,000 by default.
    maxSummaryChars: NotRequired[int | None]


class HubCompacted(TypedDict):
    """A compaction of a thread."""

    # Why there is no summary, where that is known.
    reason: NotRequired[str | None]
    # `completed`, `skipped`, `cancelled`, `error`, or `running` where it lasts longer than the answer was held back.
    status: str
    # `end_turn`, `cancelled` or `error`; none while it runs.
    stopReason: NotRequired[str | None]
    # The summary; empty where there is none.
    summary: str
    # Its length, in characters.
    summaryChars: int
    threadId: str
    # The internal turn, which histories leave out.
    turnId: str


class HubConfigOptions(TypedDict):
    """The options of a thread's agent."""

    # Each with `id`, `currentValue`, and `category`, `name`, `description`, `type`, `options` where known.
    configOptions: list[dict[str, Any]]
    threadId: str


class HubCreatedThread(TypedDict):
    """A thread that was made."""

    threadId: str


class HubDecision(TypedDict):
    """An answer to a permission."""

    # The `digest` of the request that was read. 409 when the request shows something else.
    digest: NotRequired[str | None]
    # One of the options of the request. It wins over `outcome`. `allow_once`, `allow_always`, `reject_once` and `reject_always` are understood
    # for every request, also where a coding agent has others.
    optionId: NotRequired[str | None]
    outcome: NotRequired[PermissionOutcome | None]
    scope: NotRequired[RuleScope | None]


class HubDeletedThread(TypedDict):
    """A thread that was deleted."""

    # Always `deleted`.
    status: str
    threadId: str


class HubDirectories(TypedDict):
    """The folders of the latest threads."""

    # Absolute paths, the last used first.
    directories: list[str]


class HubHealth(TypedDict):
    """A sign of life."""

    ok: bool


class HubHistory(TypedDict):
    """The turns of a thread."""

    # The cursor of the page with earlier turns; none where there are none, and without `limit`.
    nextCursor: NotRequired[str | None]
    # Oldest first, each with `turnId, requestText, responseText, status, stopReason, errorMessage, createdAt, completedAt, isInternal`,
    # and with `events` if they were asked for.
    turns: list[dict[str, Any]]


class HubModels(TypedDict):
    """The models of an agent."""

    agentId: str
    # Each with `id` and `name`.
    models: list[dict[str, Any]]


class HubNewThread(TypedDict):
    """A thread to make."""

    # The agent, of `GET /v1/agents`.
    agent: str
    agentOptions: NotRequired[HubAgentOptions | None]
    # The folder that it works in: an absolute path inside an allowed root.
    cwd: str
    # Functions that the client runs itself, for a persona: at most 64, each with `name`, `description`, `parameters` (JSON Schema) and `effects`.
    # Before a call of one with the effects `write`, `execute` or `mcp` a person is asked; `read` and `own` are not asked about. The stream tells a
    # call as `call_handed_out`. The client takes it and answers it: `POST …/chats/{thread_id}/calls/{toolCallId}`.
    functions: NotRequired[list[dict[str, Any]] | None]
    # A title: at most 200 characters.
    title: NotRequired[str | None]


class HubNewTurn(TypedDict):
    """A turn to begin."""

    # The words: at most 200 KiB of UTF-8.
    input: str
    # Whether the answer is the event stream of the turn; else the turn is answered by its id.
    stream: NotRequired[bool | None]


class HubPaths(TypedDict):
    """Folders that complete a path."""

    # The beginning that was asked for.
    query: str
    # Absolute paths of folders.
    results: list[str]


class HubRecordedDecision(TypedDict):
    """A decision that was recorded."""

    # The decision that it is.
    outcome: PermissionOutcome
    permissionId: str
    # Always `recorded`.
    status: str


class HubRevokedRule(TypedDict):
    """A rule that is revoked."""

    ruleId: str
    # Always `revoked`.
    status: str
    threadId: str


class HubRule(TypedDict):
    """A rule by which calls are allowed or denied without a question."""

    # `allow` or `deny`. Of two rules that cover a call the one that denies wins.
    effect: str
    # The rule.
    rule: PermissionRule
    # Its id: the same for the same rule in every thread.
    ruleId: str
    # The rule in words.
    words: str


class HubRules(TypedDict):
    """The rules of a thread."""

    # The oldest first.
    rules: list[HubRule]
    threadId: str


class HubSessionHistory(TypedDict):
    """The messages of one of the agent's own sessions."""

    # Each with `role` and `content`.
    messages: list[dict[str, Any]]
    # Whether the agent can replay it.
    supported: bool


class HubSessions(TypedDict):
    """The agent's own sessions."""

    nextCursor: NotRequired[str | None]
    # Each with `sessionId`, and `cwd`, `title`, `updatedAt` where known.
    sessions: list[dict[str, Any]]
    # Whether the agent keeps any.
    supported: bool
    threadId: str


class HubThread(TypedDict):
    """A thread."""

    agent: str
    agentOptions: HubAgentOptions
    # When it was made, in RFC 3339.
    createdAt: str
    cwd: str
    # Whether a turn runs, waits for a person, or is about to begin.
    hasActiveSession: bool
    # The summary of its earlier turns; empty while they were not compacted.
    summary: str
    threadId: str
    title: str
    # When it last changed, in RFC 3339.
    updatedAt: str


class HubThreadChange(TypedDict):
    """A change of a thread."""

    agentOptions: NotRequired[HubAgentOptions | None]
    # A new title: at most 200 characters.
    title: NotRequired[str | None]


class HubThreadResponse(TypedDict):
    """A thread alone."""

    thread: HubThread


class HubThreads(TypedDict):
    """A page of threads, the newest first."""

    # The cursor of the next page.
    nextCursor: NotRequired[str | None]
    threads: list[HubThread]


class HubTurnStatus(TypedDict):
    """A turn that will be."""

    # `running`, or `cancelling`.
    status: str
    threadId: str
    turnId: str


class ImportedWorkspace(TypedDict):
    """A workspace that was imported."""

    # The time of the creation.
    created_at: str
    # How many files it has. Zero when the same request made it before.
    files: int
    # The first 100 paths of the repository that no workspace can have: symbolic links, submodules, and files below a folder called `.git`. Of an
    # archive, the first 100 files, folders and versions that it lacks, because they were damaged when it was made.
    left_out: list[str]
    # Its name.
    name: str
    # Its creator.
    owner: str
    # How many versions they have.
    versions: int
    # Its id.
    workspace_id: str


class InnerError(TypedDict):
    """An error inside of an answer."""

    # The kind of error.
    code: ErrorCode
    # Further facts.
    details: NotRequired[dict[str, Any]]
    # The advice.
    hint: NotRequired[str | None]
    # The explanation.
    message: str


class Limits(TypedDict):
    """The limits of one turn; a limit that is left out has its default. A limit that is reached ends the turn and keeps its results."""

    # US dollars.
    max_cost_usd: NotRequired[float]
    # Model calls.
    max_steps: NotRequired[int]
    # Tokens read and written.
    max_tokens: NotRequired[int]
    # Milliseconds, without the time that it waits for people.
    max_wall_ms: NotRequired[int]


class Link(TypedDict):
    """A link as one of its ends sees it."""

    # Of an explicit link: the time at which it was made.
    at: NotRequired[str | None]
    # Of an explicit link: its author.
    by: NotRequired[str | None]
    file: NotRequired[FileRef | None]
    # Its kind; `markdown` or `wiki` for one in a text.
    kind: str
    # Of a link in a text: its target as it is written.
    target: NotRequired[str | None]


class McpServer(TypedDict):
    """A server of tools that speaks the Model Context Protocol."""

    # The name that it is declared with.
    name: str
    # Why it cannot be used.
    reason: NotRequired[str | None]
    # Whether the workspace has an account there.
    signed_in: bool
    # Whether it can be used.
    state: McpServerState
    # How many tools it gives.
    tools: int
    # The way to it.
    transport: McpTransport


class McpServerList(TypedDict):
    """The servers of a workspace."""

    # By name.
    servers: list[McpServer]


# Whether a server can be used.
McpServerState: TypeAlias = "Literal['connected', 'connecting', 'needs_sign_in', 'failed']"


class McpSignIn(TypedDict):
    """A sign-in that waits for a person."""

    # The address that the person opens in a browser.
    authorize_url: str
    # Whether the account has to be confirmed by the code that the browser shows.
    confirm: bool
    # Until when the answer is waited for.
    expires_at: str


class McpSignInCode(TypedDict):
    """The code of a completed sign-in."""

    # The eight digits that the browser shows; blanks and lines between them have no meaning.
    code: str


# The way to a server.
McpTransport: TypeAlias = "Literal['stdio', 'http', 'none']"


class Me(TypedDict):
    """The caller's own role and rights."""

    # The rights of this credential.
    may: list[Action]
    # Their role.
    role: Role
    # The person.
    user_id: str


class Member(TypedDict):
    """A member of a workspace."""

    # The time of the addition.
    added_at: str
    # The person who added them.
    added_by: str
    # Their role.
    role: Role
    # Their name at the issuer of tokens, when they were added under it.
    subject: NotRequired[str | None]
    # The person.
    user_id: str


class MemberPage(TypedDict):
    """A page of members."""

    # The members, by id.
    members: list[Member]
    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]


class MemoryItem(TypedDict):
    """One remembered thing."""

    # When it was remembered.
    at: str
    # The content.
    content: Any
    # Its key.
    key: str
    # `task`, `project` or `global`.
    store: str
    # Its tags.
    tags: NotRequired[list[str]]
    # Its tokens.
    tokens: int


class Message(TypedDict):
    """A message of a chat and its place."""

    # The time of the message.
    at: str
    # The call that a tool answers.
    call_id: NotRequired[str | None]
    # The calls, of an agent's message.
    calls: NotRequired[list[MessageToolCall] | None]
    # The text, but for a tool's answer.
    content: NotRequired[str | None]
    # Attached files, of a person's message.
    files: NotRequired[list[str] | None]
    # Its id; a tool's answer has `call_id` instead.
    id: NotRequired[str | None]
    # The answer of the tool.
    output: NotRequired[str | None]
    # The agent's reasoning, where there is one.
    reasoning: NotRequired[str | None]
    # The speaker.
    role: MessageRole
    # The number of its event.
    seq: int
    # Whether the tool succeeded.
    success: NotRequired[bool | None]
    # The tool.
    tool: NotRequired[str | None]
    # The person who wrote it, of a person's message; none in messages of earlier versions.
    user_id: NotRequired[str | None]


class MessageEdit(TypedDict):
    """An earlier message with other words."""

    # The new words: at most 200 KiB of UTF-8.
    content: str
    # Files to attach, by id.
    files: NotRequired[list[str]]
    # The turn that the message began.
    turn_id: str


# The speaker of a message.
MessageRole: TypeAlias = "Literal['user', 'assistant', 'tool', 'system']"


class MessageToolCall(TypedDict):
    """A call of a tool by a model."""

    # The arguments as the model wrote them: JSON text, usually.
    args: str
    # Its id.
    call_id: str
    # The tool.
    tool: str


# The treatment of times that are found more than five minutes late, as after a hub was switched off.
MissedRunPolicy: TypeAlias = "Literal['run_once', 'skip']"


# How far a chat may go.
Mode: TypeAlias = "Literal['chat', 'plan', 'build']"


class Model(TypedDict):
    """A model."""

    # Whether it can be asked now.
    available: bool
    # The tokens that fit its context, where known.
    context_tokens: NotRequired[int | None]
    # Whether it serves chats that name no model.
    default: bool
    # The name to request it by.
    id: str
    # The reason why it is not available, or a remark.
    note: NotRequired[str | None]
    # The provider that serves it.
    provider: str


class ModelCallContext(TypedDict):
    """The context of one model call."""

    # The time of the call.
    at: str
    # Counts from 1.
    attempt: int
    # The context budget, in tokens.
    budget: int
    # The parts that were cut, so that the context fits.
    cut: NotRequired[list[ContextTruncation]]
    # Whole turns that were left out right before this call.
    cut_turns: int
    # Tokens as the provider counted them; none before the answer.
    input_tokens: NotRequired[int | None]
    # Their last line in the chat's file.
    left_out_lines: int
    # All turns that the model does not read word for word.
    left_out_turns: int
    location: NotRequired[ContextLocation | None]
    # The message that the call brought.
    message_id: str
    # The model that answered, where that is known.
    model: NotRequired[str | None]
    # The parts, in the order of the request.
    parts: list[ContextPart]
    # The purpose of the call: `analysis` or `answer`.
    purpose: str
    # The number of the event that began the call.
    seq: int
    # The estimated size of all parts, in tokens.
    tokens: int


class ModelSettings(TypedDict):
    """The settings with which a model is asked. One that is left out is the provider's. A model that refuses a temperature, as one that reasons, is asked without
    `temperature` and `top_p`."""

    # The most tokens of one answer of the model. A turn whose answer is longer ends with `max_output_tokens`. A lower limit of the configuration holds.
    max_output_tokens: NotRequired[int | None]
    # The temperature of sampling.
    temperature: NotRequired[float | None]
    # The share of the likeliest tokens to sample from. Some models refuse it beside `temperature`.
    top_p: NotRequired[float | None]


class ModelUsage(TypedDict):
    """The usage of a model outside of turns."""

    # Model calls.
    calls: int
    # US dollars; 0 where the price is not known.
    cost_usd: float
    # Tokens read.
    input_tokens: int
    # Tokens written.
    output_tokens: int


class Models(TypedDict):
    """All models."""

    # Whether any model can be asked, the script of `ai.script` among them, and not the offline demo script alone.
    configured: bool
    # The models.
    models: list[Model]
    # The advice when the offline demo script answers.
    note: NotRequired[str | None]


class Move(TypedDict):
    """A move."""

    # The new path; that of a file does not end with `/`.
    path: str


class Network(TypedDict):
    """The files around a file."""

    # The links of those files that are nearer than the depth, to files of the network.
    edges: list[NetworkEdge]
    # The files, nearest first.
    nodes: list[NetworkNode]
    # Whether there may be more files within the depth.
    truncated: bool


# A link of a network.
NetworkEdge = TypedDict('NetworkEdge', {
    # The file at which it begins.
    'from': 'str',
    # Its kind; `markdown` or `wiki` for one in a text.
    'kind': 'str',
    # The file to which it leads.
    'to': 'str',
})


class NetworkNode(TypedDict):
    """A file of a network."""

    # The number of links between it and the file that was asked for.
    distance: int
    # Its identity.
    file_id: str
    # Its kind.
    kind: FileKind
    # Its path.
    path: str


class NewApiKey(TypedDict):
    """A key to make."""

    # From when on it is void; never when left out.
    expires_at: NotRequired[str | None]
    # Its purpose: 1 to 100 characters.
    name: str
    # Its rights; they hold where yours do.
    scopes: list[Action]
    # The workspaces that it is for; all of yours when left out.
    workspaces: NotRequired[list[str] | None]


class NewChat(TypedDict):
    """A chat to make."""

    # The coding agent that performs its turns, of `GET /api/v1/agents`; none for the agents of the system. Needs the right to approve.
    agent: NotRequired[str | None]
    # The personas of the team, one for each of its agents, for `parallel_agents` and `co_work`; three of the box when none.
    agents: NotRequired[list[str] | None]
    # The folder in which that agent works: an absolute path on the machine of the hub.
    cwd: NotRequired[str | None]
    # Files to attach, by id.
    files: NotRequired[list[str]]
    # Functions that the client runs itself: at most 64, each with `name`, `description`, `parameters` (JSON Schema) and `effects`. Before a call of one
    # with the effects `write`, `execute` or `mcp` a person is asked; `read` and `own` are not asked about. The stream tells a call as `call_handed_out`.
    # The client takes it and answers it: `POST …/chats/{chat_id}/calls/{call_id}`. Not for a coding agent, and not for a team.
    functions: NotRequired[list[dict[str, Any]] | None]
    # The goal: the first message, at most 200 KiB of UTF-8. `topic` is another name of it.
    goal: str
    # Labels to find it by: at most 16 pairs of text, with keys of at most 64 characters and values of at most 512. No agent reads them.
    labels: NotRequired[dict[str, str] | None]
    limits: NotRequired[Limits | None]
    mode: NotRequired[Mode | None]
    # The model, of `GET /api/v1/models`; the default one when none.
    model: NotRequired[str | None]
    model_settings: NotRequired[ModelSettings | None]
    # The plan that it works on, a Markdown checklist.
    plan_id: NotRequired[str | None]
    # The version of that plan that is approved: needed for `build` mode, and only for that.
    plan_v: NotRequired[int | None]
    # The persona, a folder in `/system/agents` or in `personas` of the caller's home; `assistant` when none. With `plan_then_execute` the one that carries the plan out,
    # `builder` when none.
    role: NotRequired[str | None]
    # How the chat works; without it as a conversation.
    scenario: NotRequired[Scenario]


class NewCompaction(TypedDict):
    """How to compact."""

    # The longest summary, in characters; 4,000 by default.
    max_summary_chars: NotRequired[int | None]


class NewContent(TypedDict):
    """A new content."""

    # The content.
    content: NotRequired[str | None]
    # The encoding.
    encoding: NotRequired[Encoding]
    # Instead of the content its SHA-256, when it was uploaded (`POST …/uploads`).
    sha256: NotRequired[str | None]


class NewFile(TypedDict):
    """A file or a folder to make; folders above it are made, too."""

    # The content of a file; empty when none.
    content: NotRequired[str | None]
    # The encoding of the content.
    encoding: NotRequired[Encoding]
    # The kind: file or folder.
    kind: NotRequired[NewFileKind]
    # The path of the new file or folder; that of a file does not end with `/`.
    path: str
    # Instead of the content its SHA-256, when it was uploaded (`POST …/uploads`).
    sha256: NotRequired[str | None]


# A file or folder to make.
NewFileKind: TypeAlias = "Literal['file', 'folder']"


class NewFork(TypedDict):
    """A fork to make. The point is one of `at_seq`, `at_turn` and `before_turn`; without one it has all turns that have ended."""

    # The number of an event: the fork has the turns that had ended then. With the number of a message of yours it has everything before that message.
    at_seq: NotRequired[int | None]
    # A turn: the fork ends with it.
    at_turn: NotRequired[str | None]
    # A turn: the fork ends before it.
    before_turn: NotRequired[str | None]
    # Its title: 1 to 200 characters; that of the chat when none is given.
    title: NotRequired[str | None]


class NewLink(TypedDict):
    """A link to make."""

    # Its kind: `implements`, `answers`, `derived_from`, or a word of your own of a-z, 0-9 and _.
    kind: str
    # The file or folder to which it leads.
    to: str


class NewMember(TypedDict):
    """Somebody to make a member: by `user_id` or by `subject`."""

    # The role to give.
    role: Role
    # Their name at the issuer of tokens: the `sub` of theirs.
    subject: NotRequired[str | None]
    # Their id.
    user_id: NotRequired[str | None]


class NewMessage(TypedDict):
    """A message to a chat."""

    # The words: at most 200 KiB of UTF-8.
    content: str
    # With `on_busy: steer` and `rollback`: the turn that is meant. `CONFLICT` when another one runs, or none.
    expected_turn_id: NotRequired[str | None]
    # Files to attach, by id.
    files: NotRequired[list[str]]
    limits: NotRequired[Limits | None]
    # The treatment of a message that comes while a turn runs.
    on_busy: NotRequired[OnBusy]


class NewRole(TypedDict):
    """Another role."""

    # The new role.
    role: Role


class NewSchedule(TypedDict):
    """A schedule to make: `at` for once, or `rrule` for again and again."""

    # The work that begins.
    action: ScheduleAction
    # The moment, for a schedule that is due once.
    at: NotRequired[str | None]
    # The first moment on the clock of the zone, from which a rule takes the parts that it does not name [default: this minute].
    begins: NotRequired[str | None]
    # The treatment of times that passed while nothing ran.
    missed: NotRequired[MissedRunPolicy]
    # Its name: 1 to 100 characters.
    name: str
    # The treatment of a run that is due while the work of an earlier run is not done.
    overlap: NotRequired[OverlapPolicy]
    # The rule of RFC 5545 §3.3.10, without COUNT and BYSECOND.
    rrule: NotRequired[str | None]
    # The time zone of the IANA database, for a rule [default: UTC].
    time_zone: NotRequired[str | None]


class NewTags(TypedDict):
    """Tags to add."""

    # The tags, of 1 to 64 characters each: letters, digits, `-`, `_`, `.` and `:`. They are kept in lower case.
    tags: list[str]


class NewTask(TypedDict):
    """A task to make."""

    # Nodes that it pauses before, in each clone and subtask too.
    breakpoints: NotRequired[list[str]]
    budget: NotRequired[TaskBudget | None]
    # Files to give along, by id.
    files: NotRequired[list[str]]
    # The input: any JSON, at most 192 KiB.
    input: NotRequired[Any]
    # Labels to find it by: at most 16 pairs of text, with keys of at most 64 characters and values of at most 512. No agent reads them, and
    # clones and subtasks have none of them.
    labels: NotRequired[dict[str, str] | None]
    # The priority: when not all tasks can run, those with higher values go first.
    priority: NotRequired[int]
    # The start node; the flow's default one when none.
    start: NotRequired[str | None]
    # Whether it pauses before each node, and so do its clones and subtasks.
    stepping: NotRequired[bool]


class NewTicket(TypedDict):
    """The stream to open: that of a chat or of a task; without either, the changes of the workspace."""

    # The `after` of the stream, which `url` then has: only events after the one with this `id:`; 0 for all that are kept. A browser that connects
    # again names its last event by itself, and that one counts first.
    after: NotRequired[int | None]
    # The chat.
    chat_id: NotRequired[str | None]
    # The task.
    task_id: NotRequired[str | None]


class NewUpload(TypedDict):
    """A content to bring."""

    # The SHA-256 of each part of 16 MiB (16,777,216 bytes) in their order, the last one shorter: then the content comes part by part, and a broken upload
    # goes on where it ended.
    parts: NotRequired[list[str] | None]
    # Its SHA-256, in hexadecimal digits.
    sha256: str
    # Its length in bytes.
    size: int


class NewWebhook(TypedDict):
    """A webhook to make."""

    # The only chat that it is told of.
    chat_id: NotRequired[str | None]
    # The types of events that it is told.
    events: list[WebhookEventType]
    # The only flow that it is told of, by name: its tasks, and the questions of their steps.
    flow: NotRequired[str | None]
    # Its name: 1 to 100 characters.
    name: str
    # The address that events are posted to: http or https, on a public network unless the operator allows private ones.
    url: str


# The operation of a node.
NodeOp: TypeAlias = "Literal['identity', 'expr', 'template', 'tool', 'command', 'function', 'agent', 'ask']"


# The role of a node.
NodeRole: TypeAlias = "Literal['start', 'linear', 'decision', 'branch', 'split', 'merge', 'exit']"


class NodeTotals(TypedDict):
    """The work of one node in one run."""

    # US dollars.
    cost_usd: float
    # Milliseconds in all.
    duration_ms: int
    # How often it failed.
    failures: int
    # How often it was tried again.
    retries: int
    # How often it executed.
    runs: int
    # Tokens read and written.
    tokens: int


# The treatment of a message that comes while a turn runs.
OnBusy: TypeAlias = "Literal['enqueue', 'reject', 'interrupt', 'steer', 'rollback']"


class Origin(TypedDict):
    """The task that a clone or a subtask comes from."""

    # All tasks above it, the root first.
    ancestors: list[str]
    # Its place among its siblings, from 0.
    index: int
    # Its kind.
    kind: ChildKind
    # Its name and those of the tasks between it and the root.
    line: list[str]
    # The branch or split that made it.
    node: str
    # The task that made it.
    parent: str
    # The places of the same among their siblings, from 0.
    place: list[int]
    # The node that it began at.
    to: str


# The treatment of a run that is due while the work of an earlier run is not done: a task that has not ended, a chat that is not idle.
OverlapPolicy: TypeAlias = "Literal['begin', 'skip']"


class PauseTaskRequest(TypedDict):
    """The nodes to pause before."""

    # Before these nodes, whenever they come; before the next node, whichever it is, when none.
    before: NotRequired[list[str]]


class PermissionDecision(TypedDict):
    """A decision on a permission."""

    # Grants a rule, too: with `approved` the one that the request offers as `always`, with `declined` the one that denies the same calls.
    # Calls that it covers are asked about no more in this chat.
    always: NotRequired[bool]
    # The `digest` of the request that was read. `CONFLICT` when the request shows something else.
    digest: NotRequired[str | None]
    # The option of the coding agent that asks, of the `options` of the request; it has to agree with the outcome. Without it the agent's
    # own yes or no for this once is chosen.
    option_id: NotRequired[str | None]
    # Yes or no.
    outcome: PermissionOutcome
    # With `declined`: why, in words that the agent reads; at most 1,000 characters.
    reason: NotRequired[str | None]
    # With `always`: how far the rule goes.
    scope: NotRequired[RuleScope]


# A decision on a permission.
PermissionOutcome: TypeAlias = "Literal['approved', 'declined', 'cancelled']"


# A rule of a chat: calls that need no further permission, or that are denied.
PermissionRule: TypeAlias = "PermissionRuleCommandPrefix | PermissionRuleCommand | PermissionRuleFile | PermissionRuleTool | PermissionRuleDeny"


class PermissionRuleCommand(TypedDict):
    """One command with all of its words."""

    # The folder that it runs in; the root of the workspace when it is left out.
    folder: NotRequired[str | None]
    kind: Literal['command']
    # The program and its arguments.
    words: list[str]


class PermissionRuleCommandPrefix(TypedDict):
    """Commands that begin with these words. A command counts only when it has no character that means something to a shell."""

    # The folder that they run in; the root of the workspace when it is left out.
    folder: NotRequired[str | None]
    kind: Literal['command_prefix']
    # The program and its subcommand, each a whole word; in front of them the words of a program that runs them, as `timeout 10`.
    words: list[str]


class PermissionRuleDeny(TypedDict):
    """The calls that another rule covers are denied."""

    kind: Literal['deny']
    # That rule, of one of the other kinds.
    rule: dict[str, Any]


class PermissionRuleFile(TypedDict):
    """New contents of one file under `/system`; moves and removals are asked about."""

    kind: Literal['file']
    # The file.
    path: str


class PermissionRuleTool(TypedDict):
    """A tool of a server, with any arguments."""

    kind: Literal['tool']
    # Its name for agents.
    tool: str


class PersonaList(TypedDict):
    """The personas of a workspace."""

    # The personas, by name.
    agents: list[PersonaOrSkill]


class PersonaOrSkill(TypedDict):
    """A persona or a skill."""

    # Of a skill the tools that it declares as approved in advance. They give it no right: the persona, the mode and the policies decide.
    allowed_tools: NotRequired[list[str]]
    # Of a skill its requirements.
    compatibility: NotRequired[str | None]
    # Its purpose.
    description: str
    # The faults in its front matter, by line.
    faults: NotRequired[list[FrontMatterFault]]
    # The identity of its file; none for a persona in the box.
    file_id: NotRequired[str | None]
    # Of a skill its licence.
    license: NotRequired[str | None]
    # Of a skill what its author adds.
    metadata: NotRequired[dict[str, str]]
    # Of a persona the model that it is made for.
    model: NotRequired[str | None]
    model_settings: NotRequired[ModelSettings | None]
    # The name of its folder, as a chat's `role` names it.
    name: str
    # Its file. Of a persona in the box, the file that a workspace writes to have its own of that name.
    path: str
    # Of a persona that is read by itself, the text of its file with the front matter.
    text: NotRequired[str | None]
    # Its own name.
    title: str
    # Of a persona its tools, each with the glob of the paths that it may touch where it has one; all tools when none.
    tools: NotRequired[list[str] | None]


class PlanApproval(TypedDict):
    """A version of a plan that somebody has approved."""

    # The time of the approval.
    at: str
    # The approver, as `user:<id>`.
    by: str
    # The SHA-256 of that version with every step pending.
    digest: str
    # The plan file.
    plan_id: str
    # The path that the plan had.
    plan_path: str
    # The version that was approved.
    v: int


class PresenceUpdate(TypedDict):
    """The subject of attention: `chat_id` or `path`."""

    # The chat.
    chat_id: NotRequired[str | None]
    # False when you have looked away.
    here: NotRequired[bool]
    # The file or folder.
    path: NotRequired[str | None]


class Question(TypedDict):
    """One question to people."""

    # Ready answers to show as buttons.
    buttons: NotRequired[list[Any] | None]
    # The key of the answer.
    name: str
    # The text of the question.
    question: str
    # The JSON Schema of the answer.
    schema: Any


# The reason that a message waits.
QueuedBehind: TypeAlias = "Literal['running_turn', 'open_question', 'open_permission', 'handed_out_call', 'paused_turn']"


class QueuedMessage(TypedDict):
    """A message that was accepted and has not begun."""

    # When it was accepted.
    at: str
    # The beginning of its words, at most 1,024 bytes.
    content: str
    # Attached files.
    files: NotRequired[list[str]]
    # The turn that it becomes.
    turn_id: str
    # The person who wrote it; none where a program did.
    user_id: NotRequired[str | None]


class RedriveRequest(TypedDict):
    """The dead letters to send again."""

    # The group: those of one actor, as the list names it.
    group: str


class Redriven(TypedDict):
    """The dead letters that were sent again."""

    # How many.
    redriven: int


class Relations(TypedDict):
    """The tags of a file and its links in both directions."""

    # The links to it, by the path of the other file.
    backlinks: list[Link]
    # The file.
    file: FileRef
    # The links from it: explicit ones first, then those of its text, in their order.
    links: list[Link]
    # Its tags, in order.
    tags: list[str]
    # Whether there may be more links to it.
    truncated: bool


# Options of a re-run.
ReplayTaskRequest = TypedDict('ReplayTaskRequest', {
    # Nodes that it pauses before, in each clone and subtask too.
    'breakpoints': 'NotRequired[list[str]]',
    'budget': 'NotRequired[TaskBudget | None]',
    # The nodes that do not come after this one take their recorded output; it and the nodes after it run for real. Without it every node
    # runs, with the recorded answers of models, tools and people.
    'from': 'NotRequired[str | None]',
    # Whether the new task pauses before each node, and so do its clones and subtasks.
    'stepping': 'NotRequired[bool]',
})


class RequestError(TypedDict):
    """Why a request was refused."""

    # The kind of error, for programs. Codes are stable; messages are not.
    code: ErrorCode
    # Further facts: the field at fault, the version found.
    details: dict[str, Any]
    # The advice.
    hint: NotRequired[str | None]
    # The explanation, for people.
    message: str
    # Below `/openai/` alone: the field at fault.
    param: NotRequired[str | None]
    # The request, for the log: also in the header `X-Request-Id`.
    request_id: str
    # Below `/openai/` alone: the kind of error, as that API has it.
    type: NotRequired[str | None]


# A fault of a cursor.
ResetReason: TypeAlias = "Literal['unknown_cursor', 'cursor_too_old']"


class ResourceMetadata(TypedDict):
    """This server as a protected resource (RFC 9728 §2). Parameters without a value are left out."""

    # The audience that tokens must be for; an addition to RFC 9728.
    audience: NotRequired[str | None]
    # The issuers whose tokens it accepts.
    authorization_servers: NotRequired[list[str]]
    # How a token is sent: in the header `Authorization`.
    bearer_methods_supported: list[str]
    # The public client id of the command line at the issuer; an addition to RFC 9728.
    cli_client_id: NotRequired[str | None]
    # The public client id of the console at the issuer; an addition to RFC 9728.
    console_client_id: NotRequired[str | None]
    # The URL of this server.
    resource: str
    # The scopes to ask an issuer for.
    scopes_supported: NotRequired[list[str]]


class ResumeChatRequest(TypedDict):
    """Options of a resume."""

    # Whether to give up the failed turn instead of trying it again.
    drop: NotRequired[bool]


class ResumeTaskRequest(TypedDict):
    """Options of a resume."""

    # Whether to give up the part that failed again and again instead of trying it once more.
    drop: NotRequired[bool]


class RetryTaskRequest(TypedDict):
    """Options of a retry."""

    # Nodes that it pauses before, in each clone and subtask too.
    breakpoints: NotRequired[list[str]]
    budget: NotRequired[TaskBudget | None]
    # Whether the new task pauses before each node, and so do its clones and subtasks.
    stepping: NotRequired[bool]


class Rewind(TypedDict):
    """A rewind, or its preview."""

    # The newest record of a change that the plan has seen, for a rewind after a preview.
    as_of: str
    # Entries that stay as others left them, at most 1,000.
    conflicts: list[RewindConflict]
    # The numbers of all steps, of those done once it runs.
    counts: RewindCounts
    # The chat that was forked along with it, where one was asked for.
    forked_chat_id: NotRequired[str | None]
    # The cursor of the next page of steps; none at the end.
    next_cursor: NotRequired[str | None]
    # The id of its changes; none for a preview.
    rewind_id: NotRequired[str | None]
    # How far it is.
    state: RewindState
    # A page of the steps, in their order; the first 1,000 of those done once it runs.
    steps: list[RewindStep]
    # Entries that cannot be brought back, at most 1,000.
    unavailable: list[RewindLoss]


class RewindConflict(TypedDict):
    """Something that stays as others left it."""

    # The time of the other change, where one is known.
    at: NotRequired[str | None]
    # The author of the other change, where one is known.
    by: NotRequired[str | None]
    # The file or folder.
    file_id: str
    # Its last known path.
    path: str
    # The reason, for people.
    reason: str


class RewindCounts(TypedDict):
    """The numbers of steps by their effect."""

    # Entries that stay as others left them.
    conflicts: int
    # Entries that come back from the trash.
    creates: int
    # Entries that go to the trash.
    deletes: int
    # Changes of tags and links.
    marks: int
    # Entries with another path.
    moves: int
    # Entries that cannot be brought back.
    unavailable: int
    # Files with a new version.
    updates: int


class RewindLoss(TypedDict):
    """Something that cannot be brought back."""

    # The file or folder; none where it is not about a single one.
    file_id: NotRequired[str | None]
    # Its last known path.
    path: str
    # The reason, for people.
    reason: str


# The effect of a step.
RewindOp: TypeAlias = "Literal['create', 'update', 'delete', 'move', 'mark']"


class RewindPoint(TypedDict):
    """The point to go back to: `time`; `chat_id` and `seq`; `chat_id` and `turn_id`; or `file_id` and `v`."""

    # The chat of `seq` or `turn_id`.
    chat_id: NotRequired[str | None]
    # The file of `v`.
    file_id: NotRequired[str | None]
    # The number of an event of the chat: later changes are taken back.
    seq: NotRequired[int | None]
    # A time: later changes are taken back.
    time: NotRequired[str | None]
    # A turn of the chat: its changes and later ones are taken back.
    turn_id: NotRequired[str | None]
    # A version of the file: later changes are taken back.
    v: NotRequired[int | None]


class RewindRelationChange(TypedDict):
    """Tags or a link that a step adds or removes: one of these fields is there."""

    # The target and the kind of a link that it gets.
    link: NotRequired[list[str] | None]
    # Tags that it gets.
    tag: NotRequired[list[str] | None]
    # The target and the kind of a link that it loses.
    unlink: NotRequired[list[str] | None]
    # Tags that it loses.
    untag: NotRequired[list[str] | None]


class RewindRequest(TypedDict):
    """A rewind to preview or to do."""

    # `as_of` of a preview: changes after it count as made by others, and are kept [default: now].
    as_of: NotRequired[str | None]
    # `next_cursor` of the page of a preview before.
    cursor: NotRequired[str | None]
    # Whether the chat goes back, too: a fork of it is made that ends before the turn, or at the point. For a turn, and for a chat with a point. A preview
    # makes none, and so does a rewind that is still running.
    fork: NotRequired[bool]
    # The most steps that a preview shows; 1 to 1,000 [default: 200].
    limit: NotRequired[int | None]
    # Whether to show the steps only, and change nothing.
    preview: NotRequired[bool]
    # The id of the rewind: the same id again goes on with the same rewind [default: a new one].
    rewind_id: NotRequired[str | None]
    # The changes to take back.
    scope: RewindScope
    to: NotRequired[RewindPoint | None]


# The changes that a rewind takes back.
RewindScope: TypeAlias = "RewindScopeWorkspace | RewindScopePath | RewindScopeChat | RewindScopeTurn | RewindScopeTask | RewindScopeRewind"


class RewindScopeChat(TypedDict):
    """The changes of a chat's agent."""

    # The chat.
    chat_id: str
    kind: Literal['chat']


class RewindScopePath(TypedDict):
    """All changes at or below a path."""

    kind: Literal['path']
    # The path, as it is now or as it was.
    path: str


class RewindScopeRewind(TypedDict):
    """The changes of another rewind."""

    kind: Literal['rewind']
    # The rewind.
    rewind_id: str


class RewindScopeTask(TypedDict):
    """The changes of a task, its clones and subtasks, and their agents."""

    kind: Literal['task']
    # The task.
    task_id: str


class RewindScopeTurn(TypedDict):
    """The changes of one turn."""

    # The chat.
    chat_id: str
    kind: Literal['turn']
    # The turn.
    turn_id: str


class RewindScopeWorkspace(TypedDict):
    """All changes."""

    kind: Literal['workspace']


# How far a rewind is.
RewindState: TypeAlias = "Literal['preview', 'running', 'done']"


# One step of a rewind.
RewindStep = TypedDict('RewindStep', {
    # In a preview, the unified diff of an update, cut to 8 KiB and said so; none where a content is not text or too long, and beyond 256 KiB a page.
    'diff': 'NotRequired[str | None]',
    # The file or folder.
    'file_id': 'str',
    # The path before a move.
    'from': 'NotRequired[str | None]',
    # Whether a folder is deleted only if it is empty.
    'if_empty': 'NotRequired[bool | None]',
    # Its kind.
    'kind': 'FileKind',
    'mark': 'NotRequired[RewindRelationChange | None]',
    # Its effect.
    'op': 'RewindOp',
    # Its path after the step; of a deleted one the path before it.
    'path': 'str',
    # The version whose content an update makes current.
    'to_v': 'NotRequired[int | None]',
    # The version that the step expects, where it is known.
    'v': 'NotRequired[int | None]',
})


# A role in a workspace; each has all rights of those after it.
Role: TypeAlias = "Literal['owner', 'admin', 'editor', 'member', 'viewer']"


# How far a granted rule goes.
RuleScope: TypeAlias = "Literal['chat', 'person', 'workspace']"


class Rules(TypedDict):
    """The rules of a chat."""

    # Each with its id, the oldest first.
    permissions: list[GrantedRule]


class Sandbox(TypedDict):
    """How the workspace's sandbox is."""

    # The thing that it waits for, or the reason why it could not start.
    reason: NotRequired[str | None]
    # The start of this state, where that is known.
    since: NotRequired[str | None]
    # `cold`: there is none. `starting`: one was asked for. `ready`: it answers. `failed`: it could not be started.
    state: str


# The way in which a chat works.
Scenario: TypeAlias = "Literal['chat_mode', 'plan_then_execute', 'parallel_agents', 'autonomous', 'co_work']"


class ScenarioSetup(TypedDict):
    """The scenario of a chat."""

    # The personas of the team.
    agents: NotRequired[list[str]]
    # The persona that carries the plan out once it is approved.
    executor: NotRequired[str | None]
    # The scenario.
    name: Scenario
    # The place of the plan before it is written.
    plan_path: NotRequired[str | None]


class Schedule(TypedDict):
    """A schedule."""

    # The work that begins.
    action: ScheduleAction
    # When it was made.
    created_at: str
    last_run: NotRequired[ScheduleRun | None]
    # The treatment of times that passed while nothing ran.
    missed: MissedRunPolicy
    # Its name.
    name: str
    # Its next time.
    next_at: NotRequired[str | None]
    overlap: NotRequired[OverlapPolicy | None]
    paused_because: NotRequired[InnerError | None]
    # How many runs began.
    runs: int
    # Its id.
    schedule_id: str
    # How many times were skipped or missed.
    skipped: int
    # Its state.
    status: ScheduleStatus
    # When it is due.
    times: ScheduleTimes
    # The person for whom it acts, with the rights that they have when it is due.
    user_id: str
    # Its workspace.
    workspace_id: str


# The work that begins when a schedule is due.
ScheduleAction: TypeAlias = "ScheduleActionChat | ScheduleActionMessage | ScheduleActionTask | ScheduleActionTool | ScheduleActionDailyBrief"


class ScheduleActionChat(TypedDict):
    """A new chat."""

    # Its goal.
    goal: str
    kind: Literal['chat']
    limits: NotRequired[Limits | None]
    # How far it may go: `chat` or `plan`.
    mode: NotRequired[Mode]
    # The model; the default one when left out.
    model: NotRequired[str | None]
    # The persona; `assistant` when left out.
    role: NotRequired[str | None]
    scenario: NotRequired[Scenario | None]


class ScheduleActionDailyBrief(TypedDict):
    """The daily brief of the person for whom it acts: a new chat writes `/users/<id>/brief.md` by the settings in `/users/<id>/daily-brief.md`."""

    kind: Literal['daily_brief']
    # The model; the default one when left out.
    model: NotRequired[str | None]


class ScheduleActionMessage(TypedDict):
    """A message to a chat that there is."""

    # The chat.
    chat_id: str
    # The words.
    content: str
    kind: Literal['message']


class ScheduleActionTask(TypedDict):
    """A task of a flow."""

    # The flow.
    flow: str
    # Its input.
    input: NotRequired[Any]
    kind: Literal['task']


class ScheduleActionTool(TypedDict):
    """A call of a tool, as `POST …/tools` makes it."""

    # Its arguments.
    args: NotRequired[dict[str, Any]]
    kind: Literal['tool']
    # The tool.
    tool: str


class ScheduleChanges(TypedDict):
    """Changes of a schedule; what is left out stays."""

    action: NotRequired[ScheduleAction | None]
    # Another moment, for a schedule that is due once from now on.
    at: NotRequired[str | None]
    # The first moment, beside `rrule` [default: this minute].
    begins: NotRequired[str | None]
    missed: NotRequired[MissedRunPolicy | None]
    # Another name.
    name: NotRequired[str | None]
    overlap: NotRequired[OverlapPolicy | None]
    # Whether nothing begins until it is resumed.
    paused: NotRequired[bool | None]
    # Another rule.
    rrule: NotRequired[str | None]
    # The time zone, beside `rrule` [default: UTC].
    time_zone: NotRequired[str | None]


class SchedulePage(TypedDict):
    """A page of schedules, the oldest first."""

    # The cursor of the next page.
    next_cursor: NotRequired[str | None]
    # The schedules.
    schedules: list[Schedule]


class ScheduleRun(TypedDict):
    """A run of a schedule."""

    # When it began.
    at: str
    # The chat that it began, or wrote to.
    chat_id: NotRequired[str | None]
    # The time that it was due; left out for one that a person asked for.
    due: NotRequired[str | None]
    error: NotRequired[InnerError | None]
    # The answer of the tool that it called: its first 1,000 characters.
    output: NotRequired[str | None]
    # Its id.
    run: str
    # The task that it began.
    task_id: NotRequired[str | None]


# The state of a schedule.
ScheduleStatus: TypeAlias = "Literal['active', 'paused', 'ended']"


# The times at which a schedule is due.
ScheduleTimes: TypeAlias = "ScheduleTimesOnce | ScheduleTimesRule"


class ScheduleTimesOnce(TypedDict):
    """Once."""

    # The moment.
    at: str
    kind: Literal['once']


class ScheduleTimesRule(TypedDict):
    """Again and again."""

    # The first moment on the clock of the zone, as iCalendar writes it.
    begins: str
    kind: Literal['rule']
    # The rule of RFC 5545 §3.3.10.
    rrule: str
    # The time zone.
    time_zone: str


class SearchAnswer(TypedDict):
    """The files that match."""

    # Whether everything that was committed was searched. When it is false, the index is being made, or the search was cut: a later or a narrower
    # search finds more.
    complete: bool
    # The way that was searched: `text`, `regex`, `semantic` or `hybrid`. A `hybrid` search without an embedding model, or with one that fails, is
    # `text`.
    mode: str
    # The reason if a `hybrid` search was one by words: no embedding model is configured, or it failed.
    note: NotRequired[str | None]
    # How many passages of the files that were searched have no vector yet, in the modes `semantic` and `hybrid`: they are not found by their meaning,
    # and a later search finds them.
    pending: int
    # The best ones, best first.
    results: list[SearchResult]
    # How many files match; in a `semantic` search, how many have one of the nearest passages.
    total: int
    usage: NotRequired[Usage | None]


# The kind of a result.
SearchKind: TypeAlias = "Literal['file', 'document', 'chat']"


class SearchLines(TypedDict):
    """Lines, from 1."""

    # The first.
    first: int
    # The last.
    last: int


# How a query is understood.
SearchMode: TypeAlias = "Literal['text', 'regex', 'semantic', 'hybrid']"


class SearchRequest(TypedDict):
    """A search."""

    # Only versions by this author: `user:<id>`, `agent:<persona>`, `task:<id>`, `system`, or one of an imported repository, such as
    # `Ada <ada@example.org>`. Another text is refused.
    author: NotRequired[str | None]
    # Only these kinds [default: all].
    kinds: NotRequired[list[SearchKind] | None]
    # At most this many files; 1 to 100 [default: 10].
    limit: NotRequired[int | None]
    mode: NotRequired[SearchMode | None]
    # Only files that were written then or later.
    modified_after: NotRequired[str | None]
    # Only files that were written before.
    modified_before: NotRequired[str | None]
    # The file or folder to search [default: the whole workspace].
    path: NotRequired[str | None]
    # Words, which match in any form; `"a phrase"`, `begin*`, `+needed` and `-unwanted` words. At most 4 KiB and 32 terms. In the mode `regex`, a
    # regular expression for single lines (Rust syntax).
    query: str
    # Only files that have this tag.
    tag: NotRequired[str | None]


class SearchResult(TypedDict):
    """A file that matches."""

    # The principal that wrote the version.
    author: str
    # Its identity.
    file_id: str
    # The headings above the snippet, or the items of code around it, from the outermost: `Parser > next`.
    heading: NotRequired[str | None]
    # Its kind.
    kind: SearchKind
    lines: NotRequired[SearchLines | None]
    # How many passages of the file match; of a regular expression how many lines.
    passages: int
    # Its path.
    path: str
    # The parts of its score.
    score: SearchScore
    # The place that matches best, in parts that follow each other.
    snippet: list[SnippetPart]
    # When it was written.
    updated_at: str
    # Its version; 0 for a conversation.
    v: int
    # Why it was found, for people.
    why: str


class SearchScore(TypedDict):
    """The parts of a score. Statistics are those of files that the caller may read, so scores of two callers cannot be compared."""

    # The cosine of the angle between the vectors of the query and of the nearest passage, up to 1.
    meaning: NotRequired[float | None]
    # BM25 of the name, which counts half.
    name: float
    # BM25 of the best passage.
    text: float
    # By words the sum of `text` and `name`, by meaning `meaning`; in a `hybrid` search the sum of 1 / (60 + place) over the orders by words and by
    # meaning; 0 for a regular expression.
    total: float


class SessionRecords(TypedDict):
    """The plans of a session with their agents, and its compressions: the latest 100 plans and compressions, the oldest first."""

    # The executors of these plans. Each has `id`, which is its chat, `session_id`, `plan_id`, `execution_id`, `status`, `created_at` and
    # `completed_at`.
    agents: list[dict[str, Any]]
    # Each has `id`, `session_id`, `turns`, `last_line`, `summary`, `tokens_before`, `tokens_after`, `ratio` and `created_at`; the one of
    # `compression_id` has `original_messages`, too: the messages that gave way to its summary, whole, the oldest first.
    compressions: list[dict[str, Any]]
    # Each has `id`, `session_id`, `strategy`, `version`, `steps`, `status` (`pending`, `executing`, `completed`, `failed` or `cancelled`),
    # `created_at` and `executions`: one for each step that began, with `id`, `plan_id`, `step`, `executor_id`, `task`, `status` and `created_at`, and
    # once it has ended with `result`, `error`, `tool_calls`, `tokens_used`, `duration_ms` and `ended_at`. A step has a `status`, too. A plan that
    # waits for a person has `permission`, with `id` and `expires_at`.
    plans: list[dict[str, Any]]


class SessionsResponse(TypedDict):
    """Sessions, or one with its latest messages."""

    # The number of its last event.
    last_seq: NotRequired[int | None]
    # Its latest messages, the oldest first.
    messages: NotRequired[list[dict[str, Any]] | None]
    # The `cursor` of the next page of sessions; none at the end.
    next_cursor: NotRequired[str | None]
    # The session that was asked for.
    session: NotRequired[dict[str, Any] | None]
    # The sessions, the last active first.
    sessions: NotRequired[list[dict[str, Any]] | None]


class SkillList(TypedDict):
    """The skills of a workspace."""

    # The skills, by name.
    skills: list[PersonaOrSkill]


class SnippetPart(TypedDict):
    """A part of a snippet."""

    # Whether it is a word that matches.
    mark: bool
    # The text.
    text: str


class StageAnswer(TypedDict):
    """The answers of people."""

    # One value per question.
    answers: dict[str, Any]
    # The time of the answers.
    at: str
    # The person who answered.
    by: str


class StageContext(TypedDict):
    """The context that a node was given."""

    # Its items, in the order in which the node reads them.
    items: list[MemoryItem]
    # Items that matched and did not fit the budget.
    left_out: int
    # The profile; `global` for all of it.
    profile: str
    # Its tokens.
    tokens: int


class StageDenial(TypedDict):
    """A refusal of a policy."""

    # The rule.
    rule: str
    # The thing that was refused.
    what: str


class StageFork(TypedDict):
    """The children of a branch or a split."""

    # How many failed.
    failed: int
    # Their kind.
    kind: ChildKind
    # How many went on into a merge.
    merged: int
    # How many ended with some of their work done.
    partial: int
    # How many were sent off.
    spawned: int
    # How many ended by themselves with success.
    succeeded: int
    # The nodes that its edges lead to.
    to: list[str]
    # How many there will be.
    total: int


# The executor of a node.
StageKind: TypeAlias = "Literal['agent', 'human', 'deterministic']"


class StageMerge(TypedDict):
    """How a merge came to begin."""

    # Those that the merge has stopped waiting for.
    cancelled: NotRequired[list[str]]
    # Those that could have come and failed.
    failed: NotRequired[list[str]]
    # The nodes whose outputs it takes, in the order of its input.
    taken: list[str]


class StageMetrics(TypedDict):
    """The usage of one execution of a node."""

    # Tokens of context.
    context_tokens: int
    # From start to end, in milliseconds.
    duration_ms: int
    # How long the task waited in the queue before it, in milliseconds.
    queue_ms: int
    # Tools called.
    tool_calls: int
    usage: NotRequired[Usage | None]


class StagePause(TypedDict):
    """A pause."""

    # The time of the pause.
    at: str
    # The time of the continuation; none while it lasts.
    continued_at: NotRequired[str | None]


class StageQuestion(TypedDict):
    """The questions to people."""

    answer: NotRequired[StageAnswer | None]
    # The time of the questions.
    at: str
    # When no answer becomes a failure.
    expires_at: NotRequired[str | None]
    # The set of questions.
    question_id: str
    # The questions, as in the `question` event.
    questions: list[dict[str, Any]]


class StageRejection(TypedDict):
    """An output that did not fit the schema."""

    # The messages of the validator.
    errors: list[str]
    # Counts from 1.
    round: int


class StageReply(TypedDict):
    """The answer of an agent."""

    # The chat.
    chat: str
    error: NotRequired[InnerError | None]
    # Counts from 1.
    round: int
    # Model calls.
    steps: int
    # Why its turn ended.
    stop_reason: str
    # Its last words.
    text: str
    # The tools it called.
    tools: NotRequired[list[StageTool]]
    # Its usage.
    usage: Usage


class StageResources(TypedDict):
    """The resources that a command used."""

    # The size of its standard input, in bytes.
    bytes_in: int
    # The size of its standard output and standard error, in bytes, dropped parts included.
    bytes_out: int
    # CPU time, of the kernel's too, in milliseconds: of the command and of those of its processes that it waited for.
    cpu_ms: int
    # The most memory that one of its processes had, in bytes. It is looked at ten times a second.
    peak_memory_bytes: int


class StageRetry(TypedDict):
    """A retry."""

    # When it was begun anew.
    at: str
    # The earlier failure.
    error: InnerError
    # Counts from 1.
    number: int


class StageRound(TypedDict):
    """One round of a conversation with an agent."""

    # The chat that carries it.
    chat: str
    # The prompt; its beginning where it is long, the whole is an artifact of the task.
    prompt: NotRequired[str]
    reply: NotRequired[StageReply | None]
    # Counts from 1.
    round: int


class StageTool(TypedDict):
    """One use of a tool."""

    # Its arguments; cut when they are long.
    args: str
    code: NotRequired[ErrorCode | None]
    # How long it took, in milliseconds.
    duration_ms: int
    # The answer; cut when it is long.
    output: str
    # How long it waited before for slots, for a place on its machine and for the machine itself, in milliseconds.
    queue_ms: NotRequired[int | None]
    resources: NotRequired[StageResources | None]
    # How it ended: a misuse is a failure, an ordinary error is partial.
    status: TaskStatus
    # The tool.
    tool: str


class StandingRule(TypedDict):
    """A rule by which calls are allowed or denied in more than one chat."""

    # When it was granted.
    at: str
    # The person who granted it.
    by: str
    # The folder of the machine that its paths are in, where a coding agent asked.
    cwd: NotRequired[str | None]
    # `allow` or `deny`. Both count for calls that are asked about; of two rules that cover one the one that denies wins.
    effect: str
    # The rule.
    rule: PermissionRule
    # Its id.
    rule_id: str
    # How far it goes: `workspace` or `person`.
    scope: RuleScope
    # The rule in words.
    words: str


class StandingRules(TypedDict):
    """The rules of a workspace, and those of the caller in it."""

    # In no certain order.
    permissions: list[StandingRule]


class StepAnswers(TypedDict):
    """Answers to a human step, one by each question's name."""

    # One value per question, by its name; for an approval `approved`, and maybe a `comment`.
    answers: dict[str, Any]


class StreamReset(TypedDict):
    """The client's cursor is of no use: the stream goes on from `after`, and the client's view may have gaps."""

    # The `id:` after which the stream begins.
    after: int
    # The reason.
    reason: ResetReason


class TagCount(TypedDict):
    """A tag, and the number of files that have it."""

    # The number of files and folders that have it.
    files: int
    # The tag.
    tag: str


class TagCounts(TypedDict):
    """The tags of a workspace."""

    # The tags, in order.
    tags: list[TagCount]
    # Whether only the first 10,000 pairs of a tag and a file were counted.
    truncated: bool


class TaggedPage(TypedDict):
    """A page of the files that have a tag."""

    # The files and folders, oldest identity first.
    files: list[FileInfo]
    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]


class Task(TypedDict):
    """A task."""

    # Whether the agent of its node waits for people: the list of what waits has the request.
    agent_waits: NotRequired[bool]
    budget: NotRequired[TaskBudget | None]
    # Clones and subtasks made.
    children: int
    # When it was made.
    created_at: str
    error: NotRequired[InnerError | None]
    # When it ended.
    finished_at: NotRequired[str | None]
    # Its flow.
    flow: FlowRef
    handoff: NotRequired[Handoff | None]
    # Its labels.
    labels: NotRequired[dict[str, str]]
    # The node that executes or waits.
    node: NotRequired[str | None]
    origin: NotRequired[Origin | None]
    # Its output, once it is finished.
    output: NotRequired[Any]
    # Why it is parked.
    parked_reason: NotRequired[str | None]
    # Its state.
    phase: TaskPhase
    # The priority: when not all tasks can run, those with higher values go first. Left out where it is 0.
    priority: NotRequired[int | None]
    # Its outcome, once `phase` is `finished`. Before that it tells only that nothing has failed so far (`success`), or that something has.
    status: TaskStatus
    # Nodes executed.
    steps: int
    # Its id.
    task_id: str
    # Its usage, without its clones' and subtasks'.
    usage: Usage
    usage_below: NotRequired[Usage | None]
    wait: NotRequired[TaskWait | None]
    # The open question to people, as `{event, data}`.
    waiting_for: NotRequired[list[dict[str, Any]]]
    # Its workspace.
    workspace_id: str


class TaskAccepted(TypedDict):
    """A task that will be."""

    # The flow, with the manifests that it will run.
    flow: FlowRef
    # Always `queued`.
    status: str
    # The task.
    task_id: str


class TaskAgentAsked(TypedDict):
    """A node asked its agent."""

    # The chat that carries the conversation; it has a stream of its own.
    chat_id: str
    # The node.
    node: str
    # The prompt; its beginning where it is long.
    prompt: str
    # Counts from 1; above 1 when the output did not fit the node's schema.
    round: int


class TaskAgentAskedEvent(TypedDict):
    """The event `agent_asked` of a task."""

    data: TaskAgentAsked
    # The block's `event:` field.
    event: Literal['agent_asked']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskAgentReplied(TypedDict):
    """An agent answered."""

    # The chat.
    chat_id: str
    error: NotRequired[InnerError | None]
    # The node.
    node: str
    # The round that it answers.
    round: int
    # Model calls.
    steps: int
    # Why its turn ended: a stop reason of `done`, or `stopped`.
    stop_reason: str
    # The agent's last words.
    text: str
    # The tools that it called, in order.
    tools: list[StageTool]
    # Its usage.
    usage: Usage


class TaskAgentRepliedEvent(TypedDict):
    """The event `agent_replied` of a task."""

    data: TaskAgentReplied
    # The block's `event:` field.
    event: Literal['agent_replied']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskAgentWaits(TypedDict):
    """The agent of a node waits for people, or goes on. They answer it at its chat."""

    asked: NotRequired[AgentAsked | None]
    # The time at which the task was told.
    at: str
    # The chat.
    chat_id: str
    # The node.
    node: str


class TaskAgentWaitsEvent(TypedDict):
    """The event `agent_waits` of a task."""

    data: TaskAgentWaits
    # The block's `event:` field.
    event: Literal['agent_waits']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskAnswered(TypedDict):
    """People answered."""

    # One value per question.
    answers: dict[str, Any]
    # The time of the answers.
    at: str
    # The person who answered.
    by: str
    # The node.
    node: str


class TaskAnsweredEvent(TypedDict):
    """The event `answered` of a task."""

    data: TaskAnswered
    # The block's `event:` field.
    event: Literal['answered']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskBudget(TypedDict):
    """A budget of a task and all tasks below it; a part that is left out has no limit."""

    # US dollars.
    max_cost_usd: NotRequired[float | None]
    # Tokens read and written.
    max_tokens: NotRequired[int | None]
    # Milliseconds since the task was made, waits included.
    max_wall_ms: NotRequired[int | None]


class TaskCaught(TypedDict):
    """A failure of the node that has just ended is taken by an edge of its own."""

    # Its error.
    error: InnerError
    # The node.
    node: str


class TaskCaughtEvent(TypedDict):
    """The event `caught` of a task."""

    data: TaskCaught
    # The block's `event:` field.
    event: Literal['caught']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskChange(TypedDict):
    """Changes of a task; at least one field."""

    # Labels to set; null removes the label of a key. Others stay.
    labels: NotRequired[dict[str, str | None] | None]
    # The priority: when not all tasks can run, those with higher values go first.
    priority: NotRequired[int | None]


# Something came to a merge of this task.
TaskChildArrived = TypedDict('TaskChildArrived', {
    # The child, by the names from here down, joined by `/`; empty for the task itself.
    'child': 'str',
    # The node before it.
    'from': 'str',
    # The merge.
    'node': 'str',
    # Its output.
    'output': 'Any',
    # How it was when it came.
    'status': 'TaskStatus',
})


class TaskChildArrivedEvent(TypedDict):
    """The event `child_arrived` of a task."""

    data: TaskChildArrived
    # The block's `event:` field.
    event: Literal['child_arrived']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskChildFinished(TypedDict):
    """A child has come to its end."""

    # The child.
    child: str
    error: NotRequired[InnerError | None]
    # Whether it went on into a merge above instead of ending by itself.
    merged: bool
    # Its output; null for one that went on into a merge.
    output: Any
    # Its status.
    status: TaskStatus


class TaskChildFinishedEvent(TypedDict):
    """The event `child_finished` of a task."""

    data: TaskChildFinished
    # The block's `event:` field.
    event: Literal['child_finished']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskContext(TypedDict):
    """The context of a node was put together."""

    # Its items, without their contents.
    items: list[TaskContextItem]
    # Items that matched and did not fit the budget.
    left_out: int
    # The node.
    node: str
    # The profile; `global` for all of it.
    profile: str
    # Its tokens.
    tokens: int


class TaskContextEvent(TypedDict):
    """The event `context` of a task."""

    data: TaskContext
    # The block's `event:` field.
    event: Literal['context']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskContextItem(TypedDict):
    """One remembered thing in a context."""

    # Its key.
    key: str
    # `task`, `project` or `global`.
    store: str
    # Its tokens.
    tokens: int


class TaskContinued(TypedDict):
    """The task goes on."""

    # The time of the continuation.
    at: str
    # Whether it pauses again after one node.
    step: bool


class TaskContinuedEvent(TypedDict):
    """The event `continued` of a task."""

    data: TaskContinued
    # The block's `event:` field.
    event: Literal['continued']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskDenied(TypedDict):
    """A policy refused something."""

    # The node.
    node: str
    # The rule.
    rule: str
    # The thing that was refused.
    what: str


class TaskDeniedEvent(TypedDict):
    """The event `denied` of a task."""

    data: TaskDenied
    # The block's `event:` field.
    event: Literal['denied']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskDiff(TypedDict):
    """How two runs compare."""

    # The first run.
    a: ComparedRun
    # The second run.
    b: ComparedRun
    # The work of each node in both.
    nodes: dict[str, ComparedNode]
    parts: NotRequired[Divergence | None]


class TaskDiverged(TypedDict):
    """A re-run cannot go on as the recorded task did: from here on it decides by itself."""

    # The time of the divergence.
    at: str


class TaskDivergedEvent(TypedDict):
    """The event `diverged` of a task."""

    data: TaskDiverged
    # The block's `event:` field.
    event: Literal['diverged']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskDoneEvent(TypedDict):
    """The event `done` of a task."""

    data: TaskEnd
    # The block's `event:` field.
    event: Literal['done']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskEnd(TypedDict):
    """The task has come to its end. It is the last event of its stream."""

    # The time of the end.
    at: str
    error: NotRequired[InnerError | None]
    # The exit that it reached; none when it ended elsewhere.
    exit: str | None
    # The output of the task.
    output: Any
    # The status.
    status: TaskStatus


class TaskErrorEvent(TypedDict):
    """The event `error` of a task."""

    data: TaskParked
    # The block's `event:` field.
    event: Literal['error']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


# One block of a task's stream: `event` is the block's `event:` field, `id` its `id:` field, and `data` its `data:` field, parsed as JSON. New events may come with later versions.
TaskEvent: TypeAlias = "TaskTaskStartedEvent | TaskNodeStartedEvent | TaskContextEvent | TaskDeniedEvent | TaskAgentAskedEvent | TaskAgentRepliedEvent | TaskAgentWaitsEvent | TaskToolEvent | TaskOutputRejectedEvent | TaskQuestionEvent | TaskAnsweredEvent | TaskNodeFinishedEvent | TaskRoutedEvent | TaskForkedEvent | TaskChildArrivedEvent | TaskChildFinishedEvent | TaskMergedEvent | TaskWentUpEvent | TaskPausedEvent | TaskPlanStepEvent | TaskContinuedEvent | TaskDoneEvent | TaskStoppedEvent | TaskErrorEvent | TaskWaitingEvent | TaskCaughtEvent | TaskStatusEvent | TaskDivergedEvent | TaskResetEvent"


class TaskForked(TypedDict):
    """A branch or a split made children."""

    # The kind of the children.
    kind: ChildKind
    # The branch or split.
    node: str
    # The targets of its edges.
    to: list[str]
    # The number of children.
    total: int


class TaskForkedEvent(TypedDict):
    """The event `forked` of a task."""

    data: TaskForked
    # The block's `event:` field.
    event: Literal['forked']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskHistory(TypedDict):
    """A page of a task's history."""

    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]
    # The stages, in the order in which they began.
    stages: list[TaskStage]


class TaskMemory(TypedDict):
    """The memory of a task."""

    # When that was so.
    at: str
    # Stores that have more than is shown.
    cut: NotRequired[list[str]]
    # The items, by store, then by key.
    items: list[MemoryItem]


class TaskMerged(TypedDict):
    """A merge has what it waited for; its node begins."""

    # Children that the merge has stopped waiting for.
    cancelled: list[str]
    # Those that could have come and failed.
    failed: list[str]
    # The merge.
    node: str
    # The children whose outputs it takes; when empty, all that have come.
    taken: list[str]


class TaskMergedEvent(TypedDict):
    """The event `merged` of a task."""

    data: TaskMerged
    # The block's `event:` field.
    event: Literal['merged']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskMetadata(TypedDict):
    """The origins of a run: versions and hashes."""

    # The adapters behind the flow's models and tools.
    adapters: list[dict[str, Any]]
    # The facts in `engine_metadata.yaml`: `name`, `flow_version`, `engine_version`, `authors`, and `schema_revisions`, its names of
    # the revisions of its schemas.
    declared: NotRequired[dict[str, Any]]
    # The engine.
    engine: Engine
    # The flow.
    flow: FlowRef
    # The SHA-256 of its input.
    input: NotRequired[str | None]
    # The facts that `engine_metadata.yaml` has every run record.
    labels: NotRequired[dict[str, Any]]
    # The SHA-256 of every manifest, by its path.
    manifests: dict[str, str]
    # The task that it is a re-run of, and from which node.
    replay: NotRequired[dict[str, Any] | None]
    # The SHA-256 of every schema.
    schemas: dict[str, str]
    # When it was made.
    started_at: str
    # The task.
    task_id: str


class TaskNodeFinished(TypedDict):
    """A node ended."""

    # The time of the end.
    at: str
    # Counts from 1.
    attempt: int
    error: NotRequired[InnerError | None]
    # Its usage.
    metrics: StageMetrics
    # The node.
    node: str
    # Its output; null when it failed without one.
    output: Any
    # The status.
    status: TaskStatus


class TaskNodeFinishedEvent(TypedDict):
    """The event `node_finished` of a task."""

    data: TaskNodeFinished
    # The block's `event:` field.
    event: Literal['node_finished']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskNodeStarted(TypedDict):
    """A node began."""

    # The time of the start.
    at: str
    # Counts from 1; above 1 after a crash or a retry.
    attempt: int
    # The node.
    node: str
    # How long the task waited in the queue before it, in milliseconds.
    queue_ms: int
    retry: NotRequired[TaskRetry | None]


class TaskNodeStartedEvent(TypedDict):
    """The event `node_started` of a task."""

    data: TaskNodeStarted
    # The block's `event:` field.
    event: Literal['node_started']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskOutputRejected(TypedDict):
    """An output did not fit the node's schema."""

    # The messages of the validator.
    errors: list[str]
    # The node.
    node: str
    # Counts from 1.
    round: int


class TaskOutputRejectedEvent(TypedDict):
    """The event `output_rejected` of a task."""

    data: TaskOutputRejected
    # The block's `event:` field.
    event: Literal['output_rejected']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskPage(TypedDict):
    """A page of tasks."""

    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]
    # The tasks.
    tasks: list[Task]


class TaskParked(TypedDict):
    """A command failed again and again: the task is put aside until a person resumes it or drops the command."""

    # The time of the pause.
    at: str
    # Always `PAUSED`.
    code: ErrorCode
    # Advice for the operator.
    hint: str
    # The reason.
    message: str


class TaskPaused(TypedDict):
    """The task is paused before a node."""

    # The time of the pause.
    at: str
    # The node.
    node: str


class TaskPausedEvent(TypedDict):
    """The event `paused` of a task."""

    data: TaskPaused
    # The block's `event:` field.
    event: Literal['paused']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


# The state of a task.
TaskPhase: TypeAlias = "Literal['queued', 'running', 'suspended', 'paused', 'parked', 'finished']"


class TaskPlanStep(TypedDict):
    """A step of a plan file changed."""

    # Steps done.
    done: int
    # The node.
    node: str
    # The id of the plan file.
    plan_id: str | None
    # The plan file.
    plan_path: str
    # `pending`, `in_progress`, `done`, `failed` or `skipped`.
    status: str
    # Counts from 1.
    step: int
    # The text of the step.
    title: str
    # Steps in all.
    total: int


class TaskPlanStepEvent(TypedDict):
    """The event `plan_step` of a task."""

    data: TaskPlanStep
    # The block's `event:` field.
    event: Literal['plan_step']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskQuestion(TypedDict):
    """A human step asks."""

    # The time of the questions.
    at: str
    # When no answer becomes a failure; none for never.
    expires_at: str | None
    # The node, to answer by `POST …/answers/{node}`.
    node: str
    # The set of questions.
    question_id: str
    # The questions.
    questions: list[Question]


class TaskQuestionEvent(TypedDict):
    """The event `question` of a task."""

    data: TaskQuestion
    # The block's `event:` field.
    event: Literal['question']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


# A re-run of a task that has ended.
TaskReplay = TypedDict('TaskReplay', {
    # Nodes that do not come after this one take their recorded outputs. Without it every node runs, on recorded answers.
    'from': 'NotRequired[str | None]',
    # The recorded task.
    'of': 'str',
    # Whether only what failed runs for real.
    'retry': 'NotRequired[bool | None]',
})


class TaskResetEvent(TypedDict):
    """The event `reset` of a task."""

    data: StreamReset
    # The block's `event:` field.
    event: Literal['reset']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskRetry(TypedDict):
    """A retry of a node."""

    # The last failure.
    error: InnerError
    # Counts from 1.
    number: int


# The router decided where the task goes on.
TaskRouted = TypedDict('TaskRouted', {
    # The node that it leaves.
    'from': 'str',
    # The node that it reaches.
    'to': 'str',
})


class TaskRoutedEvent(TypedDict):
    """The event `routed` of a task."""

    data: TaskRouted
    # The block's `event:` field.
    event: Literal['routed']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskStage(TypedDict):
    """One execution of a node."""

    # How often it was begun.
    attempt: int
    context: NotRequired[StageContext | None]
    # The conversation with its agent.
    conversation: NotRequired[list[StageRound]]
    # How often a worker died with it.
    crashes: NotRequired[int | None]
    # A refusal of a policy.
    denials: NotRequired[list[StageDenial]]
    error: NotRequired[InnerError | None]
    # When it ended.
    finished_at: NotRequired[str | None]
    fork: NotRequired[StageFork | None]
    # Its input, exactly.
    input: Any
    kind: NotRequired[StageKind | None]
    merge: NotRequired[StageMerge | None]
    metrics: NotRequired[StageMetrics | None]
    # The node.
    node: str
    # Counts from 1 in its task.
    number: int
    # Its output, exactly.
    output: Any
    # When it was paused before it.
    pauses: NotRequired[list[StagePause]]
    # The questions to people, and their answers.
    questions: NotRequired[list[StageQuestion]]
    # Outputs that did not fit the node's schema.
    rejected: NotRequired[list[StageRejection]]
    # Why it was begun anew.
    retries: NotRequired[list[StageRetry]]
    role: NotRequired[NodeRole | None]
    # The node that the task went to next.
    routed_to: NotRequired[str | None]
    # When it first began.
    started_at: NotRequired[str | None]
    status: NotRequired[TaskStatus | None]
    # The tools that it called itself.
    tools: NotRequired[list[StageTool]]


class TaskStarted(TypedDict):
    """The task was made."""

    # The time of the creation.
    at: str
    # Files given along.
    files: NotRequired[list[str] | None]
    # Its flow.
    flow: FlowRef
    # Its input, exactly.
    input: Any
    origin: NotRequired[TaskStartedBy | None]
    replay: NotRequired[TaskReplay | None]
    # The node that it begins at.
    start: str
    # The task.
    task_id: str


class TaskStartedBy(TypedDict):
    """The task that made a clone or a subtask."""

    # Its name among its siblings.
    child: str
    # The kind of the child.
    kind: ChildKind
    # That task.
    parent: str


# The universal status of tools, nodes and tasks.
TaskStatus: TypeAlias = "Literal['success', 'failure', 'partial']"


class TaskStatusEvent(TypedDict):
    """The event `status` of a task."""

    data: TaskStatusSet
    # The block's `event:` field.
    event: Literal['status']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskStatusSet(TypedDict):
    """The task is like this from here on."""

    # The new status.
    status: TaskStatus


class TaskStoppedEvent(TypedDict):
    """The event `stopped` of a task."""

    data: TaskEnd
    # The block's `event:` field.
    event: Literal['stopped']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskTaskStartedEvent(TypedDict):
    """The event `task_started` of a task."""

    data: TaskStarted
    # The block's `event:` field.
    event: Literal['task_started']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskTool(TypedDict):
    """A node called a tool."""

    # Its arguments; cut when they are long.
    args: str
    code: NotRequired[ErrorCode | None]
    # How long it took, in milliseconds.
    duration_ms: int
    # The node.
    node: str
    # The answer; cut when it is long.
    output: str
    # How long it waited before, in milliseconds.
    queue_ms: NotRequired[int | None]
    resources: NotRequired[StageResources | None]
    # The outcome: a misuse is a failure, any other error is partial.
    status: TaskStatus
    # The tool.
    tool: str


class TaskToolEvent(TypedDict):
    """The event `tool` of a task."""

    data: TaskTool
    # The block's `event:` field.
    event: Literal['tool']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskWait(TypedDict):
    """A wait of a node; it holds no worker."""

    # The name under which it waits.
    holder: NotRequired[str | None]
    # The names that it waits for.
    names: NotRequired[list[str] | None]
    # How long it waited before, in milliseconds.
    queue_ms: NotRequired[int | None]
    # `backoff`: it failed, and is tried again at `until`. `slots`: as many are at work as may be. `place`: the machine of its
    # command has as many as it takes, or starts. `budget`: nothing is left of the budget for its agent, until a clone or subtask gives back its rest.
    reason: str
    retry: NotRequired[TaskRetry | None]
    # Of `budget`: the answers of its agent so far.
    round: NotRequired[int | None]
    # When it goes on at the latest.
    until: NotRequired[str | None]
    # Why it could not begin, where the machine is not ready.
    why: NotRequired[str | None]


# A node waits, and nothing is held for it.
TaskWaiting: TypeAlias = "TaskWaitingBackoff | TaskWaitingSlots | TaskWaitingBudget | TaskWaitingPlace"


class TaskWaitingBackoff(TypedDict):
    """It failed, and is tried again at `until`."""

    # The start of the wait.
    at: str
    # The attempt that it waits after.
    attempt: int
    # The node.
    node: str
    reason: Literal['backoff']
    # The retry that follows, with the error.
    retry: TaskRetry
    # The end of the wait.
    until: str


class TaskWaitingBudget(TypedDict):
    """Nothing is left of the budget for its agent. It goes on when a clone or subtask gives back its rest, or the task above gives more."""

    # The start of the wait.
    at: str
    # The attempt that waits.
    attempt: int
    # The node.
    node: str
    reason: Literal['budget']
    # The answers of its agent so far; 0 if it is not asked yet.
    round: int


class TaskWaitingEvent(TypedDict):
    """The event `waiting` of a task."""

    data: TaskWaiting
    # The block's `event:` field.
    event: Literal['waiting']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class TaskWaitingPlace(TypedDict):
    """The machine of its command has as many as it takes, or starts."""

    # The start of the wait.
    at: str
    # The attempt that begins then.
    attempt: int
    # The name under which it waits.
    holder: str
    # The node.
    node: str
    # How long it waited before, in milliseconds.
    queue_ms: int
    reason: Literal['place']
    retry: NotRequired[TaskRetry | None]
    # When it is begun again then.
    until: NotRequired[str | None]
    # Why it could not begin, where the machine is not ready.
    why: NotRequired[str | None]


class TaskWaitingSlots(TypedDict):
    """Its flow, or the node, has as many at work as may be."""

    # The start of the wait.
    at: str
    # The attempt that begins then.
    attempt: int
    # The name under which it waits.
    holder: str
    # The names that it waits for.
    names: list[str]
    # The node.
    node: str
    # How long the task waited in the queue before, in milliseconds.
    queue_ms: int
    reason: Literal['slots']
    retry: NotRequired[TaskRetry | None]


class TaskWentUp(TypedDict):
    """The task went on into a merge of a task above. It is the last event of its stream."""

    # The merge.
    node: str
    # Its owner.
    task_id: str


class TaskWentUpEvent(TypedDict):
    """The event `went_up` of a task."""

    data: TaskWentUp
    # The block's `event:` field.
    event: Literal['went_up']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class Ticket(TypedDict):
    """A ticket to one event stream."""

    # From when on it is void.
    expires_at: str
    # The ticket, for `?ticket=`.
    ticket: str
    # The stream's path with the ticket in it, and with `after` where the request had it.
    url: str


class Tool(TypedDict):
    """A tool."""

    # Its effect, and when to use it.
    description: str
    # Its name.
    name: str
    # Whether a chat has it only where its context, its persona or its flow lists it.
    optional: bool
    # The JSON Schema of its arguments.
    parameters: dict[str, Any]


class ToolCall(TypedDict):
    """A call of a tool."""

    # Its arguments, as its `parameters` describe them.
    args: NotRequired[dict[str, Any]]
    # Its name.
    tool: str


class ToolResult(TypedDict):
    """The outcome of a tool's call."""

    error: NotRequired[InnerError | None]
    # The text that a model would read.
    output: str
    # Its result, as data; null for a failure.
    result: Any
    # Whether the call succeeded.
    success: bool
    # Whether the output was cut.
    truncated: bool


class Tools(TypedDict):
    """All tools."""

    # The tools.
    tools: list[Tool]


class Transfer(TypedDict):
    """The address to send a content to or to read it from, apart from other requests."""

    # From when on it is void.
    expires_at: str
    parts: NotRequired[UploadProgress | None]
    request: NotRequired[TransferRequest | None]


class TransferRequest(TypedDict):
    """A request to be sent as it is, without a token."""

    # The headers that must be sent as they are.
    headers: dict[str, str]
    # `GET` or `PUT`.
    method: str
    # An absolute URL, or a path on this server. A secret until it expires.
    url: str


class TrashEntry(TypedDict):
    """Something in the trash."""

    # The time of the removal.
    at: str
    # The person or agent who removed it.
    by: str
    # As it was, with its old path.
    info: FileInfo


class TrashPage(TypedDict):
    """A page of the trash."""

    # A page of the trash.
    files: list[TrashEntry]
    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]


class Turn(TypedDict):
    """A turn that will be."""

    # The chat.
    chat_id: str
    # When the message is read, and how to have it read sooner; beside `queued_behind`.
    hint: NotRequired[str | None]
    # Why the chat is paused, when it is.
    paused_reason: NotRequired[str | None]
    queued_behind: NotRequired[QueuedBehind | None]
    # Always `queued`.
    status: str
    # The turn.
    turn_id: str


class TurnAnalysis(TypedDict):
    """The analysis of a message."""

    # The time of it.
    at: str
    # Its author: `rule`, `model`, or `fallback` where the model's answer was missing or wrong.
    by: str
    # How many operations it may take.
    estimated_operations: int
    # The reasons.
    reasoning: str
    # Whether executors are needed.
    requires_executors: bool
    # Whether tools are needed.
    requires_tools: bool
    # `simple`, `tool` or `complex`.
    strategy: str


class TurnContexts(TypedDict):
    """The contexts of a turn."""

    analysis: NotRequired[TurnAnalysis | None]
    # The model calls, in order; a call that was made again after a crash is there again.
    calls: list[ModelCallContext]
    compaction: NotRequired[Compaction | None]
    # The turn; none for a chat that has had no turn.
    turn_id: str | None


class UiStopped(TypedDict):
    """A chat that was told to stop."""

    # Always `cancelled`; the stream tells when it has.
    status: str


# A part of a content.
UploadPart = TypedDict('UploadPart', {
    # Where it begins in the content, in bytes.
    'from': 'int',
    # Its length in bytes.
    'size': 'int',
})


class UploadProgress(TypedDict):
    """How far an upload in parts has come."""

    next: NotRequired[UploadPart | None]
    # How many bytes of the content are there.
    received: int


class Usage(TypedDict):
    """Usage."""

    # Tokens read from the provider's cache.
    cached_tokens: int
    # US dollars; 0 where the price is not known.
    cost_usd: float
    # Tokens read, cached ones included.
    input_tokens: int
    # Tokens written, reasoning included.
    output_tokens: int


class UsageByChat(TypedDict):
    """The usage of the turns of one day, person, chat and model."""

    # Tokens read from the provider's cache.
    cached_tokens: int
    # Model calls.
    calls: int
    # US dollars; 0 where the price is not known.
    cost_usd: float
    # Tokens read, cached ones included.
    input_tokens: int
    # Tokens written, reasoning included.
    output_tokens: int
    # Turns.
    turns: int
    # The chat.
    chat_id: str
    # The day, in UTC.
    day: str
    # The model; null for the default one.
    model: NotRequired[str | None]
    # The chat that it works for, as an executor or in a team.
    parent_chat_id: NotRequired[str | None]
    # The person that its agent works for; absent where a turn ended before persons were kept.
    user_id: NotRequired[str | None]


class UsageByPurpose(TypedDict):
    """The usage of a model outside of turns, on one day and for one purpose."""

    # Model calls.
    calls: int
    # US dollars; 0 where the price is not known.
    cost_usd: float
    # Tokens read.
    input_tokens: int
    # Tokens written.
    output_tokens: int
    # The day, in UTC.
    day: str
    # The model.
    model: str
    # The purpose.
    purpose: UsagePurpose


# The work of a model outside of turns.
UsagePurpose: TypeAlias = "Literal['embedding', 'description']"


# The usage of a workspace.
UsageReport = TypedDict('UsageReport', {
    # The first day.
    'from': 'str',
    # Outside of turns, by day, purpose and model.
    'other': 'list[UsageByPurpose]',
    # By day, chat and model.
    'parts': 'list[UsageByChat]',
    # The last day.
    'to': 'str',
    # All together.
    'total': 'UsageTotals',
})


class UsageTotals(TypedDict):
    """The usage of models."""

    # Tokens read from the provider's cache.
    cached_tokens: int
    # Model calls.
    calls: int
    # US dollars; 0 where the price is not known.
    cost_usd: float
    # Tokens read, cached ones included.
    input_tokens: int
    # Tokens written, reasoning included.
    output_tokens: int
    # Turns.
    turns: int


class ValueDifference(TypedDict):
    """One place where two values differ."""

    # The first's value there.
    a: NotRequired[Any]
    # The second's value there.
    b: NotRequired[Any]
    # A JSON pointer.
    path: str


class Version(TypedDict):
    """One version of a file."""

    # The time of the write.
    at: str
    # The author of the version.
    author: str
    # The tool call that wrote it, if one did.
    call_id: NotRequired[str | None]
    # The SHA-256 of the content.
    sha256: str
    # The length of the content in bytes.
    size: int
    # Counts from 1.
    v: int


class VersionPage(TypedDict):
    """A page of versions."""

    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]
    # The versions, newest first.
    versions: list[Version]


class WaitingEntry(TypedDict):
    """A chat or task that waits for people: its requests, and where they are from."""

    # The tasks above that one, the root first.
    above: NotRequired[list[str]]
    # The chat, where a chat asks.
    chat_id: NotRequired[str | None]
    # The node.
    node: NotRequired[str | None]
    # The task, where a node or its agent asks.
    task_id: NotRequired[str | None]
    # The title of the chat, or the name of the flow.
    title: str
    # The person that it works for.
    user_id: str
    # The open questions and requests for permission, each as `{event, data}`: `question` or `permission_required`.
    waiting_for: list[dict[str, Any]]
    # The workspace.
    workspace_id: str


class WaitingPage(TypedDict):
    """A page of what waits for people."""

    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]
    # The chats and tasks.
    waiting: list[WaitingEntry]


class Webhook(TypedDict):
    """A webhook. Its secret is shown when it is made, and never again."""

    # The only chat that it is told of.
    chat_id: NotRequired[str | None]
    # When it was made.
    created_at: str
    disabled: NotRequired[WebhookDisabled | None]
    # Whether it is told anything.
    enabled: bool
    # The types of events that it is told.
    events: list[WebhookEventType]
    # The first failure since the last success.
    failing_since: NotRequired[str | None]
    # The only flow that it is told of.
    flow: NotRequired[str | None]
    # Its name.
    name: str
    # Until when the secret before the last one is good, too.
    previous_secret_until: NotRequired[str | None]
    # The address that events are posted to.
    url: str
    # The person who made it.
    user_id: str
    # Its id.
    webhook_id: str
    # Its workspace.
    workspace_id: str


class WebhookAttempt(TypedDict):
    """An attempt of a delivery."""

    # When it was made.
    at: str
    # How long it took, in milliseconds.
    duration_ms: int
    # Why it failed.
    error: NotRequired[str | None]
    # The status of the answer; left out where nothing was answered.
    status: NotRequired[int | None]


class WebhookChanges(TypedDict):
    """Changes of a webhook; what is left out stays."""

    # Whether it is told anything. To enable one that was disabled forgets its failures.
    enabled: NotRequired[bool | None]
    # Other types of events.
    events: NotRequired[list[WebhookEventType] | None]
    # Another name.
    name: NotRequired[str | None]
    # Another address.
    url: NotRequired[str | None]


class WebhookDelivery(TypedDict):
    """A delivery of an event to a webhook."""

    # The last 20 of them, the oldest first.
    attempts: list[WebhookAttempt]
    # How many attempts were made.
    attempts_made: int
    # When it was recorded.
    created_at: str
    # The facts that are posted.
    data: dict[str, Any]
    # Its id.
    delivery_id: str
    # Why it was given up, where that is not the failure of the last attempt.
    given_up: NotRequired[str | None]
    # `webhook-id`, by which a receiver knows an event that comes again.
    message_id: str
    # When it is tried next, at the earliest.
    next_at: NotRequired[str | None]
    # The state.
    status: WebhookDeliveryStatus
    # The time of the event.
    timestamp: str
    # The type of the event.
    type: WebhookEventType
    # The webhook.
    webhook_id: str


class WebhookDeliveryPage(TypedDict):
    """A page of deliveries, the newest first."""

    # The deliveries.
    deliveries: list[WebhookDelivery]
    # The cursor of the next page.
    next_cursor: NotRequired[str | None]


# The state of a delivery.
WebhookDeliveryStatus: TypeAlias = "Literal['pending', 'delivered', 'failed']"


class WebhookDisabled(TypedDict):
    """The end of a webhook until it is enabled again."""

    # The time of it.
    at: str
    # The reason.
    because: WebhookDisabledBecause


# Why a webhook is told nothing.
WebhookDisabledBecause: TypeAlias = "Literal['person', 'gone', 'failing']"


# A type of event that webhooks tell.
WebhookEventType: TypeAlias = "Literal['turn.ended', 'task.ended', 'question.asked', 'permission.asked', 'plan.submitted', 'webhook.test', 'event.lost']"


class WebhookList(TypedDict):
    """The webhooks of a workspace, the oldest first."""

    # The webhooks: at most 20.
    webhooks: list[Webhook]


class WebhookWithSecret(TypedDict):
    """A webhook with the secret that was just made for it."""

    # The secret of Standard Webhooks, with which receivers check signatures. It is in this answer and nowhere else.
    secret: str
    # The webhook.
    webhook: Webhook


class Workspace(TypedDict):
    """A workspace."""

    # The time of the creation.
    created_at: str
    # Its name.
    name: str
    # Its creator.
    owner: str
    # Its id.
    workspace_id: str


class WorkspaceChatDeleted(TypedDict):
    """A chat was deleted."""

    # The chat.
    chat_id: str


class WorkspaceChatDeletedEvent(TypedDict):
    """The event `chat_deleted` of a workspace."""

    data: WorkspaceChatDeleted
    # The block's `event:` field.
    event: Literal['chat_deleted']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class WorkspaceChatEvent(TypedDict):
    """An event of a chat that the client named in `actors`."""

    # The chat.
    chat_id: str
    # Its data, as in the stream of the chat.
    data: NotRequired[Any]
    # Its name, as in the stream of the chat; `cursor` tells nothing but the number.
    event: str
    # Its number in the chat, the cursor to go on from there.
    id: int


class WorkspaceChatEventEvent(TypedDict):
    """The event `chat_event` of a workspace."""

    data: WorkspaceChatEvent
    # The block's `event:` field.
    event: Literal['chat_event']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class WorkspaceChatUpdated(TypedDict):
    """A chat was made, has another status, title, model or mode, or began or ended a turn."""

    # The time at which it last began or ended a turn.
    active_at: str
    # The chat.
    chat_id: str
    # The call that waits for a program, if one does.
    handed_out: NotRequired[str | None]
    # Its mode.
    mode: Mode
    # Its model, if one was chosen.
    model: NotRequired[str | None]
    # Its status.
    status: ChatStatus
    # Its title.
    title: str
    # The turn that runs or waits.
    turn_id: NotRequired[str | None]
    # The number of open questions, requests for permission, and calls that wait for a program.
    waiting_for: int


class WorkspaceChatUpdatedEvent(TypedDict):
    """The event `chat_updated` of a workspace."""

    data: WorkspaceChatUpdated
    # The block's `event:` field.
    event: Literal['chat_updated']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


# One block of a workspace's stream: `event` is the block's `event:` field, `id` its `id:` field, and `data` its `data:` field, parsed as JSON. New events may come with later versions.
WorkspaceEvent: TypeAlias = "WorkspaceFileUpdatedEvent | WorkspaceChatUpdatedEvent | WorkspaceChatDeletedEvent | WorkspaceTaskUpdatedEvent | WorkspaceTaskDeletedEvent | WorkspaceWaitingUpdatedEvent | WorkspacePresenceEvent | WorkspaceChatEventEvent | WorkspaceTaskEventEvent | WorkspaceResetEvent"


# A file or folder was made, written, moved, removed or restored, by any author.
WorkspaceFileUpdated = TypedDict('WorkspaceFileUpdated', {
    # The time of the change.
    'at': 'str',
    # The author: `user:…`, `agent:…` or `system`.
    'author': 'str',
    'conversion': 'NotRequired[Conversion | None]',
    # Its identity.
    'file_id': 'str',
    # Its path before the change, if it was moved.
    'from': 'NotRequired[str | None]',
    # Its kind.
    'kind': 'FileKind',
    # The effect of the change.
    'op': 'FileOp',
    # Its path after the change; the last one, if it is gone.
    'path': 'str',
    # Its current version; 0 for a folder, for a chat's own file, and for one that is gone.
    'v': 'int',
})


class WorkspaceFileUpdatedEvent(TypedDict):
    """The event `file_updated` of a workspace."""

    data: WorkspaceFileUpdated
    # The block's `event:` field.
    event: Literal['file_updated']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class WorkspaceName(TypedDict):
    """The name of a workspace."""

    # Its name, for people: 1 to 200 characters.
    name: str


class WorkspacePage(TypedDict):
    """A page of workspaces."""

    # The cursor of the next page; none at the end.
    next_cursor: NotRequired[str | None]
    # The workspaces, in a page the oldest first.
    workspaces: list[Workspace]


class WorkspacePresence(TypedDict):
    """A person looks at a chat, a file or a folder, or has looked away: of these `chat_id` or `path` is there. Presences are of this connection: after a
    reconnect, forget those that were told, and they are told anew."""

    # The chat.
    chat_id: NotRequired[str | None]
    # Whether they look at it. A presence that is not repeated for 60 s ends with `false`.
    here: bool
    # The file or folder.
    path: NotRequired[str | None]
    # The person.
    user_id: str


class WorkspacePresenceEvent(TypedDict):
    """The event `presence` of a workspace."""

    data: WorkspacePresence
    # The block's `event:` field.
    event: Literal['presence']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class WorkspaceResetEvent(TypedDict):
    """The event `reset` of a workspace."""

    data: StreamReset
    # The block's `event:` field.
    event: Literal['reset']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class WorkspaceTaskDeleted(TypedDict):
    """A task was deleted."""

    # The task.
    task_id: str


class WorkspaceTaskDeletedEvent(TypedDict):
    """The event `task_deleted` of a workspace."""

    data: WorkspaceTaskDeleted
    # The block's `event:` field.
    event: Literal['task_deleted']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class WorkspaceTaskEvent(TypedDict):
    """An event of a task that the client named in `actors`."""

    # Its data, as in the stream of the task.
    data: NotRequired[Any]
    # Its name, as in the stream of the task; `cursor` tells nothing but the number.
    event: str
    # Its number in the task, the cursor to go on from there.
    id: int
    # The task.
    task_id: str


class WorkspaceTaskEventEvent(TypedDict):
    """The event `task_event` of a workspace."""

    data: WorkspaceTaskEvent
    # The block's `event:` field.
    event: Literal['task_event']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class WorkspaceTaskUpdated(TypedDict):
    """A task was made, or has another phase or status. Clones and subtasks are not told: the task's own stream has them."""

    # The node that waits for a person, if one does.
    asks: NotRequired[str | None]
    # The time at which it ended.
    finished_at: NotRequired[str | None]
    # The name of its flow.
    flow: str
    # Its phase.
    phase: TaskPhase
    # Its outcome, once `phase` is `finished`. Before that it tells only whether something has failed so far.
    status: TaskStatus
    # The task.
    task_id: str


class WorkspaceTaskUpdatedEvent(TypedDict):
    """The event `task_updated` of a workspace."""

    data: WorkspaceTaskUpdated
    # The block's `event:` field.
    event: Literal['task_updated']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int


class WorkspaceWaitingUpdated(TypedDict):
    """An agent of a task, or a clone or subtask, waits for a person, or does so no more. Their states are not told otherwise; a task that people
    made and a chat of people tell it by theirs."""

    # The chat of its agent, where that asks.
    chat_id: NotRequired[str | None]
    # The node.
    node: NotRequired[str | None]
    # The ids of its open questions and requests for permission; none when it waits no more.
    requests: list[str]
    # The task that people made.
    root_task_id: str
    # The task.
    task_id: str


class WorkspaceWaitingUpdatedEvent(TypedDict):
    """The event `waiting_updated` of a workspace."""

    data: WorkspaceWaitingUpdated
    # The block's `event:` field.
    event: Literal['waiting_updated']
    # The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace.
    id: int
