//! Sessions of the planner chat over the runtime: executors are chats, and their results come back.

use crate::hub::Hub;
use actor::read_after;
use async_trait::async_trait;
use buildscale_chat::{
    Decision, ForkPoint, LocationCounts, NewChat, NewMessage, NewSessionMessage, SessionChange, Sessions, Setup,
    TurnUsage, actor_id,
};
use domain::{
    ChatEvent, ChatId, Code, CommandId, Message, Principal, Session, SessionContext, StopReason, Strategy, Usage,
    chat::SessionConfig,
    event::PermissionOutcome,
    session::{AnalysisOrigin, StepOutcome},
};
use futures::{StreamExt, stream};
use ports::{Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// Finds every message hard, plans two steps, of which the second needs the first, and answers from the results.
struct Plans;

#[async_trait]
impl Model for Plans {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let last = request.messages.last().map(AsRef::as_ref);
        let delta = match last {
            _ if request.system.starts_with("You are the analyst") => Delta::Text(r#"{"strategy": "complex"}"#.into()),
            Some(Message::User { content, .. }) if request.system.starts_with("You are an executor") => {
                Delta::Text(format!("did: {content}"))
            }
            Some(Message::User { .. }) => {
                let step = |step, description: &str, depends_on: &[u32]| json!({ "step": step, "description": description, "depends_on": depends_on });
                let args = json!({ "steps": [step(1, "look", &[]), step(2, "join", &[1])] });
                Delta::Call { tool: "run_plan".into(), args: args.to_string() }
            }
            Some(Message::Tool { output, .. }) => Delta::Text(format!("from {output}")),
            _ => Delta::Text("?".into()),
        };
        let usage = Usage { input_tokens: 7, output_tokens: 1, cached_tokens: 0, cost_usd: 0.1 };
        let end = Delta::End { reason: StopReason::EndTurn, usage, provider: Value::Null, model: None };
        Ok(stream::iter([Ok(delta), Ok(end)]).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

/// Plans, and takes neither a schema nor a temperature.
struct TakesNoSchema;

#[async_trait]
impl Model for TakesNoSchema {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        match (&request.schema, request.temperature) {
            (None, None) => Plans.stream(request).await,
            _ => Err(ModelError::Rejected("400 unknown field".into())),
        }
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

fn message(text: &str) -> NewSessionMessage {
    NewSessionMessage { message: text.into(), ..NewSessionMessage::default() }
}

async fn events(hub: &Hub, chat: ChatId) -> Vec<ChatEvent> {
    let page = read_after::<ChatEvent>(&*hub.log, &actor_id(hub.workspace, chat), 0, 1_000).await.unwrap();
    page.entries.into_iter().flat_map(|entry| entry.events).collect()
}

#[tokio::test]
async fn a_plan_is_carried_out_by_chats_that_are_on_no_list() {
    let hub = Hub::with(Arc::new(Plans)).await;
    let (sessions, by) = (Sessions::new(hub.chats.clone()), Principal::local());
    let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let view = sessions.create(hub.workspace, chat, command, message("do the hard thing"), &by).await.unwrap();
    assert_eq!((view.title.as_str(), view.user_id), ("do the hard thing", Some(by.user())));
    hub.settle().await;

    let log = events(&hub, chat).await;
    let ends: Vec<&StepOutcome> = log
        .iter()
        .filter_map(|event| match event {
            ChatEvent::StepEnded { result, .. } => Some(&**result),
            _ => None,
        })
        .collect();
    assert!(ends.len() == 2 && ends.iter().all(|end| end.success), "{ends:?}");
    assert!(ends[1].data.contains("Result of step 1: did: look"), "{ends:?}");
    assert_eq!(ends[0].usage.input_tokens, 7);
    let Some(ChatEvent::Done { message: said, .. }) = log.last() else { panic!("{log:?}") };
    assert!(said.contains("2 of 2 steps are completed"), "{said}");

    let executor = log.iter().find_map(|event| match event {
        ChatEvent::StepStarted { executor, .. } => Some(*executor),
        _ => None,
    });
    let executor = executor.unwrap();
    let listed = hub.chats.list(hub.workspace, 10, None).await.unwrap();
    assert_eq!(listed.chats.iter().map(|chat| chat.chat_id).collect::<Vec<_>>(), [chat]);
    assert_eq!(sessions.list(hub.workspace, &by, 10, None).await.unwrap().chats.len(), 1);
    let view = hub.chats.get(hub.workspace, executor).await.unwrap();
    assert_eq!((view.executor.map(|one| (one.session, one.step)), view.task_id), (Some((chat, 1)), None));
    assert_eq!(sessions.get(hub.workspace, executor).await.unwrap_err().code, Code::NotFound);
    let post = NewMessage { content: "hello".into(), ..NewMessage::default() };
    let refused = hub.chats.post(hub.workspace, executor, CommandId(hub.clock.id()), post, &by).await.unwrap_err();
    assert_eq!((refused.code, &refused.details["session_id"]), (Code::Conflict, &json!(chat)));
}

#[tokio::test]
async fn sessions_are_listed_in_pages_that_leave_none_out() {
    let hub = Hub::with(Arc::new(Plans)).await;
    let (sessions, by) = (Sessions::new(hub.chats.clone()), Principal::local());
    let mut made = Vec::new();
    for number in 0..7 {
        let id = || (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
        let ((chat, command), new) = (id(), NewChat { goal: "no session".into(), ..NewChat::default() });
        hub.chats.create(hub.workspace, chat, command, new, &by).await.unwrap();
        let ((chat, command), new) = (id(), message(&format!("Hello {number}")));
        sessions.create(hub.workspace, chat, command, new, &by).await.unwrap();
        made.push(chat);
        hub.settle().await;
    }
    made.reverse();
    for limit in 1..=8 {
        let (mut listed, mut cursor) = (Vec::new(), None);
        loop {
            let page = sessions.list(hub.workspace, &by, limit, cursor).await.unwrap();
            assert!(page.chats.len() <= limit, "{} of {limit}", page.chats.len());
            listed.extend(page.chats.iter().map(|view| view.chat_id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(listed, made, "pages of {limit}");
    }
}

#[tokio::test]
async fn a_model_that_takes_no_schema_is_asked_for_the_analysis_without_one() {
    let hub = Hub::with(Arc::new(TakesNoSchema)).await;
    let (sessions, by, chat) = (Sessions::new(hub.chats.clone()), Principal::local(), ChatId(hub.clock.id()));
    let new = message("do the hard thing");
    sessions.create(hub.workspace, chat, CommandId(hub.clock.id()), new, &by).await.unwrap();
    hub.settle().await;
    let analysed = events(&hub, chat).await.into_iter().find_map(|event| match event {
        ChatEvent::Analysed { analysis, by, .. } => Some((analysis.strategy, by)),
        _ => None,
    });
    assert_eq!(analysed, Some((Strategy::Complex, AnalysisOrigin::Model)));
}

#[tokio::test]
async fn a_session_and_its_executors_add_up_in_the_records_of_usage() {
    let hub = Hub::with(Arc::new(Plans)).await;
    let (sessions, by) = (Sessions::new(hub.chats.clone()), Principal::local());
    let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    sessions.create(hub.workspace, chat, command, message("do the hard thing"), &by).await.unwrap();
    hub.settle().await;
    sessions.post(hub.workspace, chat, CommandId(hub.clock.id()), message("do it again"), &by).await.unwrap();
    hub.settle().await;

    let records = hub.chats.usage(hub.workspace, "2000-01-01", "2999-12-31").await.unwrap();
    let sum = |is: &dyn Fn(&&TurnUsage) -> bool| {
        records.iter().filter(is).fold(Usage::default(), |mut sum, record| {
            sum += record.usage;
            sum
        })
    };
    let told = |usage: Usage| (usage.input_tokens, usage.output_tokens, (usage.cost_usd * 100.0).round());
    let view = hub.chats.get(hub.workspace, chat).await.unwrap();
    // Twice: an analysis, a plan and an answer; and two executors.
    assert_eq!(told(view.usage), (42, 6, 60.0));
    assert_eq!(told(view.agents_usage), (28, 4, 40.0));
    assert_eq!(told(sum(&|record| record.chat_id == chat)), told(view.usage));
    assert_eq!(told(sum(&|record| record.parent_chat_id == Some(chat))), told(view.agents_usage));
    assert_eq!(told(sum(&|_| true)), (70, 10, 100.0), "every turn is there once, with the chat that it is of");
    assert_eq!(told(sum(&|record| record.of_session)), (70, 10, 100.0), "also those of executors");
}

#[tokio::test]
async fn the_location_is_abbreviated_and_changes_with_the_context() {
    let hub = Hub::with(Arc::new(Plans)).await;
    hub.put("/projects/atlas/README.md", &format!("# Atlas\n{}", "x".repeat(2_000))).await;
    hub.put("/projects/atlas/tasks/draw.md", "---\ntitle: Draw\nstatus: in_progress\n---\nWith ink.").await;
    hub.put("/projects/atlas/tasks/done.md", "---\ntitle: Over\nstatus: done\n---\n").await;
    let (sessions, by) = (Sessions::new(hub.chats.clone()), Principal::local());
    let chat = ChatId(hub.clock.id());
    let about = |context, entity: &str| NewSessionMessage {
        change: SessionChange {
            context: Some(context),
            entity: Some(entity.to_owned()),
            focus: Some(json!({ "task": 7 })),
            ..SessionChange::default()
        },
        ..message("Hello!")
    };
    let command = || CommandId(hub.clock.id());
    let unknown = about(SessionContext::Project, "apollo");
    let refused = sessions.create(hub.workspace, ChatId(hub.clock.id()), command(), unknown, &by).await.unwrap_err();
    assert_eq!((refused.code, &refused.details["field"]), (Code::NotFound, &json!("entity_id")));
    let update = about(SessionContext::ProjectUpdate, "atlas");
    sessions.create(hub.workspace, chat, command(), update, &by).await.unwrap();
    hub.settle().await;
    let audit = about(SessionContext::ProjectAudit, "atlas");
    let view = sessions.post(hub.workspace, chat, command(), audit, &by).await.unwrap();
    assert_eq!(view.session.map(|session| session.context), Some(SessionContext::ProjectAudit));
    hub.settle().await;

    let configs: Vec<_> = events(&hub, chat)
        .await
        .into_iter()
        .filter_map(|event| match event {
            ChatEvent::Created { config } | ChatEvent::Configured { config } => Some(config),
            _ => None,
        })
        .collect();
    let [update, audit] = configs.as_slice() else { panic!("{configs:?}") };
    let has = |config: &domain::ChatConfig, tool: &str| config.tools.iter().flatten().any(|one| one == tool);
    assert!(has(update, "write") && !has(audit, "write") && has(audit, "read"));
    assert!(has(update, "create_task") && !has(audit, "create_task") && has(audit, "get_task_details"));
    for config in [update, audit] {
        let cut = "(cut; /projects/atlas/README.md has the whole)";
        assert!(config.system.contains("# Atlas") && config.system.contains(cut), "{}", config.system);
        assert!(config.system.contains("/projects/atlas/tasks/draw.md: Draw") && !config.system.contains("Over"));
        assert!(config.system.contains(r#"{"task":7}"#));
        assert_eq!(config.context_tokens, 10_000);
    }
    assert!(audit.system.contains("You change nothing") && !update.system.contains("You change nothing"));
}

#[tokio::test]
async fn an_entity_is_shown_by_its_context_and_a_focus_with_its_links() {
    let hub = Hub::with(Arc::new(Plans)).await;
    let days = |from: u64| (hub.clock.now() + Duration::from_secs(from * 24 * 3_600)).to_string()[..10].to_owned();
    hub.put("/projects/atlas/README.md", "# Atlas").await;
    let draw = format!("---\ntitle: Draw\nstatus: in_progress\n---\nWith ink, as in [[style]]. {}", "x".repeat(300));
    hub.put("/projects/atlas/tasks/draw.md", &draw).await;
    hub.put("/projects/atlas/style.md", "Thin lines.").await;
    for (project, title) in [("atlas", "Review"), ("other", "Party")] {
        let event = format!("---\ntitle: {title}\nstart: {}T10:00\nend: {}T11:00\n---\n", days(2), days(2));
        hub.put(&format!("/projects/{project}/calendar/one.md"), &event).await;
    }
    let (sessions, by) = (Sessions::new(hub.chats.clone()), Principal::local());
    let system = async |context, entity: &str, focus: Option<Value>| {
        let (chat, entity) = (ChatId(hub.clock.id()), Some(entity.to_owned()));
        let change = SessionChange { context: Some(context), entity, focus, ..SessionChange::default() };
        let new = NewSessionMessage { change, ..message("Hello!") };
        sessions.create(hub.workspace, chat, CommandId(hub.clock.id()), new, &by).await?;
        hub.settle().await;
        let made = events(&hub, chat).await.into_iter().find_map(|event| match event {
            ChatEvent::Created { config } => Some(config.system),
            _ => None,
        });
        Ok::<_, domain::Error>(made.unwrap())
    };
    let task = system(SessionContext::Task, "/projects/atlas/tasks/draw.md", None).await.unwrap();
    let shown = "The task is /projects/atlas/tasks/draw.md: Draw; status in_progress";
    assert!(task.contains(shown) && task.contains("links to: /projects/atlas/style.md (wiki)"), "{task}");
    assert!(!task.contains(&"x".repeat(101)), "a description is abbreviated");
    let calendar = system(SessionContext::Calendar, "atlas", None).await.unwrap();
    assert!(calendar.contains("Review") && !calendar.contains("Party"), "{calendar}");
    let focus = Some(json!({ "path": "/projects/atlas/tasks/draw.md" }));
    let audit = system(SessionContext::ProjectAudit, "atlas", focus).await.unwrap();
    assert!(audit.contains("The person looks at: /projects/atlas/tasks/draw.md: Draw"), "{audit}");
    // A focus on something that is no file here is in the client's words.
    let words = system(SessionContext::Project, "atlas", Some(json!({ "path": "/nowhere" }))).await.unwrap();
    assert!(words.contains(r#"The person looks at: {"path":"/nowhere"}"#), "{words}");
    // The settings of the daily brief are a file of the person.
    let place = format!("/users/{}/daily-brief.md", by.user());
    let brief = async || system(SessionContext::DailyBriefUpdate, "mine", None).await.unwrap();
    assert!(brief().await.contains(&format!("There are no settings yet. The file for them is {place}.")));
    hub.put(&place, "At most ten lines, and the calendar first.").await;
    assert!(brief().await.contains("The settings, ") && brief().await.contains("At most ten lines"));
    for (context, entity) in [(SessionContext::Task, "nothing"), (SessionContext::Calendar, "apollo")] {
        let refused = system(context, entity, None).await.unwrap_err();
        assert_eq!((refused.code, &refused.details["field"]), (Code::NotFound, &json!("entity_id")), "{refused:?}");
        assert!(refused.hint.is_some(), "{refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_without_the_right_to_approve_has_plans_carried_out_that_are_to_be_approved() {
    let hub = Hub::with(Arc::new(Plans)).await;
    let (sessions, by) = (Sessions::new(hub.chats.clone()), Principal::local());
    let (chat, command) = (ChatId(hub.clock.id()), || CommandId(hub.clock.id()));
    sessions.create(hub.workspace, chat, command(), message("Hello!"), &by).await.unwrap();
    hub.settle().await;
    let asks = async || hub.chats.get(hub.workspace, chat).await.unwrap().session.unwrap().approve_plans;
    let say = async |approve_plans: bool, may_approve: bool| {
        let change = SessionChange { approve_plans: Some(approve_plans), ..SessionChange::default() };
        let post = NewSessionMessage { change, may_approve, ..message("Hello!") };
        let said = sessions.post(hub.workspace, chat, command(), post, &by).await;
        hub.settle().await;
        said.map(drop).map_err(|error| error.code)
    };
    assert_eq!((say(true, false).await, asks().await), (Ok(()), true), "anybody may want plans to be approved");
    assert_eq!((say(false, false).await, asks().await), (Err(Code::Forbidden), true));
    // One who reads the location again may have seen the session as it was before.
    let now = hub.chats.get(hub.workspace, chat).await.unwrap().session.unwrap();
    let session = Session { approve_plans: false, focus: Some(json!("a file")), ..now };
    let (system, tools, refreshes) = ("the location".into(), Vec::new(), false);
    let setup = Box::new(SessionConfig { session, system, tools, refreshes });
    let setup = Setup { session: Some(setup), ..Setup::default() };
    hub.chats.configure(hub.workspace, chat, setup, &by).await.unwrap();
    hub.settle().await;
    let seen = hub.chats.get(hub.workspace, chat).await.unwrap().session.unwrap();
    assert_eq!((seen.focus, seen.approve_plans), (Some(json!("a file")), true));
    let fork = (ChatId(hub.clock.id()), command());
    let fork = hub.chats.fork(hub.workspace, chat, ForkPoint::Now, fork, None, &by).await.unwrap();
    assert!(fork.session.unwrap().approve_plans, "it was asked for after the session was made");
    assert_eq!((say(false, true).await, asks().await), (Ok(()), false));
}

#[tokio::test(start_paused = true)]
async fn a_plan_waits_for_a_person_where_the_session_asks() {
    let hub = Hub::with(Arc::new(Plans)).await;
    let (sessions, by) = (Sessions::new(hub.chats.clone()), Principal::local());
    let chat = ChatId(hub.clock.id());
    let asks = SessionChange { approve_plans: Some(true), ..SessionChange::default() };
    let first = NewSessionMessage { change: asks, may_approve: true, ..message("do the hard thing") };
    let view = sessions.create(hub.workspace, chat, CommandId(hub.clock.id()), first, &by).await.unwrap();
    assert!(view.session.unwrap().approve_plans);
    hub.drive().await;
    let asked = async || {
        let view = hub.chats.get(hub.workspace, chat).await.unwrap();
        let [asked] = view.waiting_for.as_slice() else { panic!("{view:?}") };
        asked["data"].clone()
    };
    let decide = async |asked: &Value, outcome, reason: Option<&str>| {
        let id = asked["permission_id"].as_str().unwrap().parse().unwrap();
        let decision = Decision { reason: reason.map(str::to_owned), ..Decision::new(id, outcome) };
        hub.chats.decide(hub.workspace, chat, CommandId(hub.clock.id()), decision, &by).await.unwrap();
        hub.settle().await;
    };
    let started = async || {
        let log = events(&hub, chat).await;
        log.iter().filter(|event| matches!(event, ChatEvent::StepStarted { .. })).count()
    };
    let plan = asked().await;
    assert_eq!((&plan["tool"], &plan["category"]), (&json!("run_plan"), &json!("plan")));
    assert_eq!(plan["args"]["steps"][1]["description"], "join", "the person reads the steps");
    assert_eq!(started().await, 0);
    decide(&plan, PermissionOutcome::Approved, None).await;
    assert_eq!(started().await, 2);
    let log = events(&hub, chat).await;
    let Some(ChatEvent::Done { message: said, .. }) = log.last() else { panic!("{log:?}") };
    assert!(said.contains("2 of 2 steps are completed"), "{said}");

    // The session keeps asking, and the planner reads why a person declined.
    let post = NewSessionMessage { may_approve: true, ..message("do it again") };
    sessions.post(hub.workspace, chat, CommandId(hub.clock.id()), post, &by).await.unwrap();
    hub.drive().await;
    let plan = asked().await;
    decide(&plan, PermissionOutcome::Declined, Some("begin with the atlas")).await;
    assert_eq!(started().await, 2, "nothing more was begun");
    let log = events(&hub, chat).await;
    let Some(ChatEvent::Done { message: said, .. }) = log.last() else { panic!("{log:?}") };
    assert_eq!(said, "from not permitted: a person declined: begin with the atlas");
}

#[tokio::test]
async fn the_profile_of_the_person_is_in_the_system_text_as_far_as_its_budget_goes() {
    let hub = Hub::with(Arc::new(Plans)).await;
    let (sessions, by) = (Sessions::new(hub.chats.clone()), Principal::local());
    let system = async || {
        let chat = ChatId(hub.clock.id());
        let view =
            sessions.create(hub.workspace, chat, CommandId(hub.clock.id()), message("Hello!"), &by).await.unwrap();
        hub.settle().await;
        let log = events(&hub, chat).await;
        let created = log.into_iter().find_map(|event| match event {
            ChatEvent::Created { config } => Some(config.system.to_string()),
            _ => None,
        });
        (created.unwrap(), view.session.unwrap().cut)
    };
    let (without, cut) = system().await;
    assert!(!without.contains("# The person you work for") && cut.is_empty(), "{without}");
    let profile = format!("/users/{}/profile.md", by.user());
    hub.put(&profile, &format!("---\ntime_zone: Europe/Paris\n---\nI write {}.", "plainly, ".repeat(400))).await;
    let (with, cut) = system().await;
    let told = with.split_once("# The person you work for\n").unwrap().1;
    assert!(
        told.contains(&format!("<file path=\"{profile}\" role=\"profile\">\n---\ntime_zone: Europe/Paris")),
        "{told}"
    );
    assert!(told.ends_with("</file>") && told.len() <= 1_450, "{} bytes: {told}", told.len());
    let [cut] = cut.as_slice() else { panic!("{cut:?}") };
    assert!(cut.part == "profile" && cut.tokens > 800 && cut.kept <= 310, "{cut:?}");
}

#[tokio::test(start_paused = true)]
async fn a_changed_entity_is_seen_by_the_next_turn_and_the_location_is_kept_for_five_minutes_at_most() {
    let hub = Hub::with(Arc::new(Plans)).await;
    hub.put("/projects/atlas/README.md", "# Atlas").await;
    // Records of changes that are committed late have earlier ids, so changes of the last moments count as new.
    tokio::time::advance(workspace::LATE * 2).await;
    let (sessions, by) = (Sessions::new(hub.chats.clone()), Principal::local());
    let chat = ChatId(hub.clock.id());
    let command = || CommandId(hub.clock.id());
    let (context, entity) = (Some(SessionContext::Project), Some("atlas".to_owned()));
    let first = NewSessionMessage {
        change: SessionChange { context, entity, ..SessionChange::default() },
        ..message("Hello!")
    };
    sessions.create(hub.workspace, chat, command(), first, &by).await.unwrap();
    hub.settle().await;
    let says = async |after: u64| {
        tokio::time::advance(Duration::from_secs(after)).await;
        sessions.post(hub.workspace, chat, command(), message("Hello again!"), &by).await.unwrap();
        hub.settle().await;
        let changed = |event: &ChatEvent| match event {
            ChatEvent::Configured { config } => Some(config.system.contains("Draw the Elbe")),
            _ => None,
        };
        events(&hub, chat).await.iter().filter_map(changed).collect::<Vec<bool>>()
    };
    let counts = |hits, misses, outdated| LocationCounts { hits, misses, outdated };
    assert_eq!((says(60).await, hub.chats.location_counts()), (vec![], counts(1, 0, 0)), "nothing has changed");
    hub.put("/projects/other/tasks/draw.md", "---\ntitle: Draw the Elbe\nstatus: backlog\n---\n").await;
    assert_eq!((says(1).await, hub.chats.location_counts()), (vec![], counts(2, 0, 0)), "it is of another project");
    hub.put("/projects/atlas/tasks/draw.md", "---\ntitle: Draw the Elbe\nstatus: backlog\n---\n").await;
    assert_eq!((says(1).await, hub.chats.location_counts()), (vec![true], counts(2, 0, 1)), "the next turn sees it");
    hub.put("/projects/atlas/tasks/draw.md", "---\ntitle: Draw the Rhine\nstatus: backlog\n---\n").await;
    assert_eq!((says(1).await, hub.chats.location_counts()), (vec![true, false], counts(2, 0, 2)));
    let read = vec![true, false, false];
    assert_eq!((says(300).await, hub.chats.location_counts()), (read, counts(2, 1, 2)), "it is old");
    let read = vec![true, false, false];
    assert_eq!((says(60).await, hub.chats.location_counts()), (read, counts(3, 1, 2)), "the same text is new again");
    // A file of the home that is not in the text.
    hub.put(&format!("/users/{}/draft.md", by.user()), "A draft.").await;
    let read = vec![true, false, false, false];
    assert_eq!((says(1).await, hub.chats.location_counts()), (read, counts(3, 1, 3)));
    let read = vec![true, false, false, false, false];
    let late = workspace::LATE.as_secs() + 1;
    assert_eq!((says(late).await, hub.chats.location_counts()), (read.clone(), counts(3, 1, 4)), "it may be late");
    assert_eq!((says(late).await, hub.chats.location_counts()), (read, counts(4, 1, 4)));
    tokio::time::advance(Duration::from_secs(300)).await;
    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    files.rm(&"/projects/atlas".parse().unwrap(), &workspace::Writer::new(by.clone())).await.unwrap();
    sessions.post(hub.workspace, chat, command(), message("Hello once more!"), &by).await.unwrap();
    hub.settle().await;
    let ends = events(&hub, chat).await.iter().filter(|event| matches!(event, ChatEvent::Done { .. })).count();
    assert_eq!(ends, 11, "a project that is gone keeps no message from its session");
}

#[tokio::test(start_paused = true)]
async fn a_session_reads_its_location_again_whichever_way_a_message_comes() {
    let hub = Hub::with(Arc::new(Plans)).await;
    hub.put("/projects/atlas/README.md", "# Atlas").await;
    tokio::time::advance(workspace::LATE * 2).await;
    let (sessions, by) = (Sessions::new(hub.chats.clone()), Principal::local());
    let chat = ChatId(hub.clock.id());
    let command = || CommandId(hub.clock.id());
    let (context, entity) = (Some(SessionContext::Project), Some("atlas".to_owned()));
    let change = SessionChange { context, entity, ..SessionChange::default() };
    let first = NewSessionMessage { change, ..message("Hello!") };
    sessions.create(hub.workspace, chat, command(), first, &by).await.unwrap();
    hub.settle().await;
    hub.put("/projects/atlas/tasks/draw.md", "---\ntitle: Draw the Elbe\nstatus: backlog\n---\n").await;
    tokio::time::advance(Duration::from_secs(1)).await;
    // As a schedule does, and a client that knows chats alone.
    let post = NewMessage { content: "Hello again!".into(), ..NewMessage::default() };
    hub.chats.post(hub.workspace, chat, command(), post, &by).await.unwrap();
    hub.settle().await;
    let log = events(&hub, chat).await;
    let seen = log.iter().position(|event| match event {
        ChatEvent::Configured { config } => config.system.contains("Draw the Elbe"),
        _ => false,
    });
    let asked = log.iter().rposition(|event| matches!(event, ChatEvent::TurnStarted { .. }));
    assert!(seen.is_some() && seen < asked, "the turn begins with the location as it is: {log:?}");
    assert_eq!(hub.chats.location_counts(), LocationCounts { hits: 0, misses: 0, outdated: 1 });
}
