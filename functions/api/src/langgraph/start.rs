//! The start of a run: its command is sent, and the log that it is in is found.

use super::{
    Thread,
    assistants::meant,
    conversation, course, labels,
    log::{Log, Started},
};
use crate::{
    access::demand,
    converse::{MessageInput, Reply, Run, Speaker},
    error::Answer,
};
use domain::{ChatId, ChatView, Code, Error, Labels, OnBusy, TaskId, TaskView};
use engine::NewTask;
use identity::Action;
use protocols::{
    langgraph::{self as wire, AssistantKind, Input, Resumed, RunId, Strategy},
    task_as_turn,
};
use serde_json::{Map, Value, json};

/// Sends the command of a run in a thread; without a thread it makes one.
pub(super) async fn start(speaker: &Speaker<'_>, thread: Option<String>, run: wire::Run) -> Answer<Started> {
    let context = speaker.context;
    let assistant = meant(speaker, &run.assistant).await?;
    let (kind, graph) = (assistant.kind, assistant.name);
    if kind == AssistantKind::Flow {
        demand(speaker.caller, speaker.role, Action::Run)?;
        if run.subgraphs {
            return Err(Error::invalid(
                "stream_subgraphs",
                "the tasks and chats below a task have streams of their own",
            )
            .hint("leave it out, and watch them: GET /api/v1/workspaces/ID/tasks/ID/events")
            .into());
        }
    } else if !run.breakpoints.is_empty() {
        return Err(Error::invalid("interrupt_before", "only a flow pauses before its nodes")
            .hint("a persona asks for permission where its policies say so")
            .into());
    }
    if run.thread.as_ref().is_some_and(|named| thread.as_ref() != Some(named)) {
        return Err(Error::invalid("config", "thread_id of config is not the thread of the run")
            .hint("leave it out: the path names the thread")
            .into());
    }
    let (thread, mut found) = match thread {
        None => {
            let chat = ChatId(speaker.ids.id("chat"));
            (chat.to_string(), Thread::Nothing(chat))
        }
        Some(id) => {
            let found = Thread::find(&context.base, speaker.workspace, &id).await?;
            let found = if run.makes_thread { found } else { found.there(&id)? };
            (id, found)
        }
    };
    check_checkpoint(speaker, &found, run.checkpoint).await?;
    let (changes, labels) = (run.labels.clone(), labels::changed(&found, &run.labels)?);
    let log = match (&found, kind) {
        (Thread::Chat(view), AssistantKind::Persona) if view.role == graph => {
            Log::Chat(go_on(speaker, view, run).await?)
        }
        (Thread::Task(view), AssistantKind::Flow) if view.flow.name == graph => go_on_task(speaker, view, run).await?,
        (Thread::Chat(view), _) => return Err(another(&view.role).into()),
        (Thread::Task(view), _) => return Err(another(&view.flow.name).into()),
        (Thread::Empty(chat, ..) | Thread::Nothing(chat), kind) => {
            let log = begin(speaker, *chat, kind, &graph, (run, labels)).await?;
            return Ok(Started { thread, kind, graph, log });
        }
    };
    labels::change(speaker, &mut found, changes).await?;
    Ok(Started { thread, kind, graph, log })
}

/// Refuses a run at another state than the last one. A page that shows an earlier state gets an error, since its message is not meant for the last state.
async fn check_checkpoint(speaker: &Speaker<'_>, thread: &Thread, checkpoint: Option<u64>) -> Result<(), Error> {
    if checkpoint.is_none() {
        return Ok(());
    }
    let (stage, workspace) = (&speaker.context.base, speaker.workspace);
    let last = match thread {
        Thread::Chat(view) => conversation(stage, workspace, view.chat_id).await?.history().last_checkpoint(),
        Thread::Task(view) => course(stage, workspace, view.task_id).await?.history().last_checkpoint(),
        Thread::Empty(..) | Thread::Nothing(_) => None,
    };
    if checkpoint == last {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, "a thread goes on at its last checkpoint alone")
        .detail("field", "checkpoint")
        .hint("leave checkpoint out; or copy the chat at an earlier event: POST /api/v1/workspaces/ID/chats/ID/fork"))
}

pub(super) fn another(assistant: &str) -> Error {
    Error::invalid("assistant_id", "another assistant has this thread")
        .hint(format!("go on with {assistant}, or make another thread"))
}

/// The first run of a thread.
async fn begin(
    speaker: &Speaker<'_>,
    chat: ChatId,
    kind: AssistantKind,
    graph: &str,
    (run, labels): (wire::Run, Labels),
) -> Answer<Log> {
    let max_steps = run.max_model_calls();
    let input = match run.input {
        Input::New(input) => input,
        Input::Nothing if kind == AssistantKind::Flow => Value::Null,
        Input::Nothing => return Err(nothing().into()),
        Input::Resume(_) => return Err(not_asked().into()),
    };
    if kind == AssistantKind::Persona {
        let wire::Words { content, earlier, files } = wire::words(&input)?;
        let (role, model) = (Some(graph.to_owned()), run.model);
        let words = MessageInput { content, earlier, role, model, files, max_steps, labels, ..MessageInput::default() };
        return Ok(Log::Chat(speaker.begin(chat, words).await?));
    }
    if run.model.is_some() {
        return Err(Error::invalid("config", "the agents of a flow have models of their own").into());
    }
    let stepping = run.breakpoints.iter().any(|node| node == "*");
    let breakpoints = if stepping { Vec::new() } else { run.breakpoints };
    let new = NewTask { input, stepping, breakpoints, trace: speaker.trace, labels, ..NewTask::default() };
    let tasks = &speaker.context.tasks;
    let task = tasks.create(speaker.workspace, TaskId::root(chat.0), graph, new, &speaker.by).await?;
    Ok(Log::Task(RunId { of: task.task_id.0, number: 0 }, 0))
}

/// A further run in a chat.
async fn go_on(speaker: &Speaker<'_>, view: &ChatView, run: wire::Run) -> Answer<Run> {
    let max_steps = run.max_model_calls();
    match run.input {
        Input::New(input) => {
            let words = wire::words(&input)?;
            if !words.earlier.is_empty() {
                return Err(Error::invalid("input", "the thread has the messages before this one")
                    .hint("send the new message alone")
                    .into());
            }
            if run.model.is_some() {
                return Err(Error::invalid("config", "the chat has its model already")
                    .hint("change it: PATCH /api/v1/workspaces/ID/chats/ID")
                    .into());
            }
            let on_busy = match run.strategy {
                Strategy::Enqueue => OnBusy::Enqueue,
                Strategy::Reject => OnBusy::Reject,
                Strategy::Interrupt => OnBusy::Interrupt,
                Strategy::Rollback => OnBusy::Rollback,
            };
            let wire::Words { content, files, .. } = words;
            let words = MessageInput { content, files, max_steps, ..MessageInput::default() };
            Ok(speaker.post(view.chat_id, words, on_busy).await?)
        }
        Input::Resume(value) => {
            let data = view.waiting_for.first().map(|open| &open["data"]).ok_or_else(not_asked)?;
            // A call that was handed out is known by itself.
            let id = ["question_id", "permission_id", "call_id"].iter().find_map(|key| data[*key].as_str());
            let id = id.unwrap_or_default();
            let reply = reply_of(wire::resumed(&value, id)?);
            let id = id.parse().map_err(|_| not_asked())?;
            Ok(speaker.reply(view.chat_id, id, reply).await?)
        }
        Input::Nothing => Err(nothing().into()),
    }
}

fn reply_of(resumed: Resumed) -> Reply {
    match resumed {
        Resumed::Decision { approved, reason } => Reply::Decision { approved, reason },
        Resumed::Given(value) => Reply::Given(value),
    }
}

/// A further run of a task: the answer to a question of a node or to a request of its agent, or on from a breakpoint.
async fn go_on_task(speaker: &Speaker<'_>, view: &TaskView, run: wire::Run) -> Answer<Log> {
    let (workspace, task, tasks) = (speaker.workspace, view.task_id, &speaker.context.tasks);
    let course = course(&speaker.context.base, workspace, task).await?;
    let number = course.history().runs().last().map_or(0, |run| run.id.number + 1);
    let next = Log::Task(RunId { of: task.0, number }, course.resumed());
    match run.input {
        Input::New(_) => Err(Error::new(Code::Conflict, "the thread of a flow has one input")
            .detail("field", "input")
            .hint("make another thread for another run of the flow")
            .into()),
        Input::Resume(value) => {
            let node = course.waits().ok_or_else(not_asked)?;
            let interrupt = course.history().interrupts().first().ok_or_else(not_asked)?;
            let id = interrupt["id"].as_str().unwrap_or_default();
            let resumed = wire::resumed(&value, id)?;
            if course.is_agent() {
                let id = id.parse().map_err(|_| not_asked())?;
                speaker.reply(task_as_turn::chat_of(task), id, reply_of(resumed)).await?;
                return Ok(next);
            }
            let answers = match resumed {
                Resumed::Decision { approved, reason } => match reason {
                    Some(comment) => json!({ "approved": approved, "comment": comment }),
                    None => json!({ "approved": approved }),
                },
                Resumed::Given(value) => value,
            };
            let answers = named(answers, &interrupt["value"]["questions"])?;
            let given = engine::Answers { answers, may_approve: speaker.may_approve() };
            tasks.answer(workspace, task, node, given, speaker.command(), &speaker.by).await?;
            Ok(next)
        }
        Input::Nothing if course.waits().is_some() && course.history().interrupts().is_empty() => {
            tasks.resume(workspace, task, false, speaker.command(), &speaker.by).await?;
            Ok(next)
        }
        Input::Nothing => Err(nothing().into()),
    }
}

/// Answers by the names of the questions. One value is the answer to one question.
fn named(given: Value, questions: &Value) -> Result<Map<String, Value>, Error> {
    match (given, questions.as_array().map(Vec::as_slice)) {
        (Value::Object(answers), _) => Ok(answers),
        (value, Some([one])) => Ok(Map::from_iter([(one["name"].as_str().unwrap_or_default().to_owned(), value)])),
        _ => Err(Error::invalid("command", "there are several questions, and one answer")
            .hint("send an object with an answer by the name of each")),
    }
}

fn nothing() -> Error {
    Error::invalid("input", "there is nothing to do").hint("send input with a message, or command with resume")
}

fn not_asked() -> Error {
    Error::new(Code::Conflict, "nothing is asked in this thread")
        .detail("field", "command")
        .hint("the thread's interrupts list what is; send input with a message")
}
