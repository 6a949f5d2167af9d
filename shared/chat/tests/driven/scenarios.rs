//! Scenarios over the runtime, real tools and real plan files: a plan that is approved and handed over, a team that shares a plan, and a
//! campaign.

use crate::hub::Hub;
use actor::read_after;
use async_trait::async_trait;
use buildscale_chat::{Approve, NewChat, NewMessage, actor_id, set_up};
use domain::{ChatEvent, ChatId, Code, CommandId, Message, Mode, Principal, Scenario, StopReason, TeamFact, Usage};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{
    Clock, Delta, IndexQuery, Item, Key, Model, ModelError, ModelInfo, ModelRequest, ModelStream, Page, Query, Table,
    Write,
};
use serde_json::{Value, json};
use std::sync::Arc;
use workspace::Access;

const STEPS: [&str; 5] = ["one", "two", "three", "four", "five"];

/// Plans in the place of planners and strategists; everybody else claims a step, writes a file, and ends the step, until none is free.
struct Works;

fn call(tool: &str, args: &Value) -> Delta {
    Delta::Call { tool: tool.into(), args: args.to_string() }
}

fn works(request: &ModelRequest) -> Delta {
    let is_planner = request.system.starts_with("# Planner");
    let is_strategist = request.system.starts_with("# Content strategist");
    let (folder, role) = match request.system.split_whitespace().nth(1).unwrap_or_default() {
        "Builder" => ("/projects/a", "builder"),
        "Researcher" => ("/projects/a", "researcher"),
        "SEO" => ("/content/green-tea", "seo"),
        "Content" => ("/content/green-tea", "strategist"),
        _ => ("/projects/a", "assistant"),
    };
    let in_team = request
        .messages
        .iter()
        .any(|message| matches!(&**message, Message::User { content, .. } if content.contains("You work on the plan")));
    match request.messages.last().map(AsRef::as_ref) {
        Some(Message::User { content, .. }) if is_planner || (is_strategist && !in_team) => {
            let needs = |step: u32, on: &[u32]| json!({ "step": step, "on": on });
            let order = [needs(3, &[1, 2]), needs(4, &[3]), needs(5, &[3])];
            let order = if content.contains("in order") { &order[..] } else { &[] };
            call("plan_write", &json!({ "title": "Plan", "steps": STEPS, "depends_on": order }))
        }
        Some(Message::User { .. }) => call("plan_update_step", &json!({ "status": "in_progress" })),
        Some(Message::Tool { tool, output, success: true, .. }) if tool == "plan_update_step" => {
            let number = output.split_whitespace().nth(1).unwrap_or_default();
            match output.contains("is in_progress") {
                // Dies with a claim in its hand: the provider refuses it for ever.
                true if role == "researcher" && output.contains("step 2 ") => Delta::Text("REFUSED".into()),
                true => {
                    let path = format!("{folder}/{number}-{role}.md");
                    call("write", &json!({ "path": path, "content": format!("{number} by {role}") }))
                }
                false => call("plan_update_step", &json!({ "status": "in_progress" })),
            }
        }
        Some(Message::Tool { tool, success: true, .. }) if tool == "write" => {
            call("plan_update_step", &json!({ "status": "done" }))
        }
        _ => Delta::Text("Nothing is left for me.".into()),
    }
}

#[async_trait]
impl Model for Works {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let delta = works(&request);
        if delta == Delta::Text("REFUSED".into()) {
            return Err(ModelError::Rejected("so says the test".into()));
        }
        let usage = Usage { input_tokens: 7, ..Usage::default() };
        let end = Delta::End { reason: StopReason::EndTurn, usage, provider: Value::Null, model: None };
        Ok(stream::iter([Ok(delta), Ok(end)]).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

async fn hub() -> Hub {
    Hub::with(Arc::new(Works)).await
}

async fn begin(hub: &Hub, goal: &str, scenario: Scenario, change: impl FnOnce(&mut NewChat)) -> ChatId {
    let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let mut new = NewChat { goal: goal.into(), may_approve: true, ..NewChat::default() };
    change(&mut new);
    set_up(&mut new, scenario, None, None).unwrap();
    hub.chats.create(hub.workspace, chat, command, new, &Principal::local()).await.unwrap();
    hub.settle().await;
    chat
}

async fn approve(hub: &Hub, chat: ChatId) {
    let approve = Approve { v: 1, ..Approve::default() };
    let command = CommandId(hub.clock.id());
    hub.chats.approve(hub.workspace, chat, command, approve, &Principal::local()).await.unwrap();
    hub.settle().await;
}

async fn events(hub: &Hub, chat: ChatId) -> Vec<ChatEvent> {
    let page = read_after::<ChatEvent>(&*hub.log, &actor_id(hub.workspace, chat), 0, 1_000).await.unwrap();
    page.entries.into_iter().flat_map(|entry| entry.events).collect()
}

async fn text(hub: &Hub, path: &str) -> String {
    let files = hub.workspaces.open(hub.workspace, Access::platform("a test")).await.unwrap();
    let content = files.read(&path.parse().unwrap(), None).await.unwrap();
    String::from_utf8_lossy(&content.bytes).into_owned()
}

/// The steps that the plan says who ended, as (mark, title, persona).
fn steps(plan: &str) -> Vec<(String, String, String)> {
    let step = |line: &str| {
        let rest = line.strip_prefix("- [")?;
        let (mark, rest) = rest.split_once("] ")?;
        let (title, by) = rest.split_once(" <!-- ").unwrap_or((rest, ""));
        let by = by.split_whitespace().next().unwrap_or_default();
        Some((mark.to_owned(), title.to_owned(), by.to_owned()))
    };
    plan.lines().filter_map(step).collect()
}

fn said(log: &[ChatEvent]) -> &str {
    match log.last() {
        Some(ChatEvent::Done { message, stop_reason: StopReason::EndTurn, .. }) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_plan_is_approved_handed_over_and_ticked_version_by_version() {
    let hub = hub().await;
    let chat = begin(&hub, "build it", Scenario::PlanThenExecute, |_| {}).await;
    let view = hub.chats.get(hub.workspace, chat).await.unwrap();
    let path = format!("/chats/{chat}/plan.md");
    let planned = view.plan_path.as_ref().map(ToString::to_string);
    assert_eq!((view.role.as_str(), view.mode, planned), ("planner", Mode::Plan, Some(path.clone())));
    approve(&hub, chat).await;
    let view = hub.chats.get(hub.workspace, chat).await.unwrap();
    assert_eq!((view.role.as_str(), view.mode), ("builder", Mode::Build));
    let plan = text(&hub, &path).await;
    assert_eq!(plan.matches("- [x] ").count(), 5, "{plan}");
    assert!(!plan.contains("<!--"), "an agent that shares its plan with no other leaves no claim: {plan}");
    let files = hub.workspaces.open(hub.workspace, Access::platform("a test")).await.unwrap();
    let v = files.stat(&path.parse().unwrap()).await.unwrap().v;
    assert_eq!(v, 11, "the plan, and a version for each begin and each end of a step");
    let log = events(&hub, chat).await;
    assert!(said(&log).contains("Nothing is left"), "{log:?}");

    // With the plan at hand, another chat carries it out without planning.
    let plan_id = view.plan_id.unwrap();
    let other = begin(&hub, "carry it out", Scenario::PlanThenExecute, |new| {
        (new.plan, new.plan_v) = (Some(plan_id), Some(1));
    })
    .await;
    let view = hub.chats.get(hub.workspace, other).await.unwrap();
    assert_eq!((view.role.as_str(), view.mode, view.plan_id), ("builder", Mode::Build, Some(plan_id)));
    let log = events(&hub, other).await;
    assert!(!log.iter().any(|event| matches!(event, ChatEvent::CallStarted { tool, .. } if tool == "plan_write")));
}

#[tokio::test]
async fn a_team_does_every_step_once_and_the_steps_of_a_dead_agent_are_taken_by_the_others() {
    let hub = hub().await;
    let chat = begin(&hub, "build it", Scenario::ParallelAgents, |_| {}).await;
    approve(&hub, chat).await;

    let log = events(&hub, chat).await;
    assert_eq!(said(&log), "All 5 steps of the plan are done.", "{log:?}");
    let plan = text(&hub, &format!("/chats/{chat}/plan.md")).await;
    let done = steps(&plan);
    assert_eq!(
        done.iter().map(|(mark, title, _)| (mark.as_str(), title.as_str())).collect::<Vec<_>>(),
        STEPS.map(|step| ("x", step))
    );
    assert!(done.iter().all(|(_, _, by)| !by.is_empty()), "each says by whom: {plan}");
    let ends: Vec<u32> = log
        .iter()
        .filter_map(|event| match event {
            ChatEvent::PlanStep { step, status, .. } if status == "done" => Some(*step),
            _ => None,
        })
        .collect();
    let mut once = ends.clone();
    once.sort_unstable();
    assert_eq!(once, [1, 2, 3, 4, 5], "each step is done once: {ends:?}");
    let reasons: Vec<String> = log
        .iter()
        .filter_map(|event| match event {
            ChatEvent::Team { fact } => match &**fact {
                TeamFact::MemberEnded { end, .. } => Some(end.stop_reason.clone()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert!(reasons.len() >= 3, "{reasons:?}");

    // Each agent is a chat of its own, with a file, on the list, and under its chat.
    let listed = hub.chats.list(hub.workspace, 10, None).await.unwrap().chats;
    let members: Vec<_> = listed.iter().filter(|view| view.parent_chat_id == Some(chat)).collect();
    assert_eq!((listed.len(), members.len()), (4, 3));
    for member in members {
        let file = text(&hub, &format!("/chats/{}.md", member.chat_id)).await;
        assert!(
            file.contains(&format!("role: \"{}\"", member.role)) && file.contains("You work on the plan"),
            "{file}"
        );
        let post = NewMessage { content: "hello".into(), ..NewMessage::default() };
        let command = CommandId(hub.clock.id());
        let by = Principal::local();
        let refused = hub.chats.post(hub.workspace, member.chat_id, command, post, &by).await.unwrap_err();
        assert_eq!((refused.code, &refused.details["parent_chat_id"]), (Code::Conflict, &json!(chat)));
    }
}

/// The name of a row, and how often it is not answered.
pub type Silence = Arc<Mutex<(String, u32)>>;

/// A table that is silent about a row.
pub struct Stumbles {
    pub table: Arc<dyn Table>,
    pub silence: Silence,
}

#[async_trait]
impl Table for Stumbles {
    fn max_body(&self) -> usize {
        self.table.max_body()
    }
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        let is_silent = {
            let mut silence = self.silence.lock();
            let is_silent = silence.1 > 0 && key.sk == silence.0;
            silence.1 -= u32::from(is_silent);
            is_silent
        };
        if is_silent {
            return Err(ports::Error::unavailable("the table", "so says the test"));
        }
        self.table.get(key).await
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        self.table.query(query).await
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        self.table.query_index(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> ports::Result<()> {
        self.table.commit(writes).await
    }
}

#[tokio::test]
async fn a_table_that_stumbles_while_the_plan_is_read_stops_no_team() {
    let silence = Silence::default();
    let of_table = silence.clone();
    let hub = Hub::over(Arc::new(Works), |_, table, _| Arc::new(Stumbles { table, silence: of_table })).await;
    let chat = begin(&hub, "build it", Scenario::ParallelAgents, |_| {}).await;
    let plan = hub.chats.get(hub.workspace, chat).await.unwrap().plan_id.unwrap();
    let (command, approval) = (CommandId(hub.clock.id()), Approve { v: 1, ..Approve::default() });
    hub.chats.approve(hub.workspace, chat, command, approval, &Principal::local()).await.unwrap();
    *silence.lock() = (plan.to_string(), 1);
    hub.settle().await;
    assert_eq!(silence.lock().1, 0, "it has stumbled");
    let log = events(&hub, chat).await;
    assert_eq!(said(&log), "All 5 steps of the plan are done.", "{log:?}");
}

#[tokio::test]
async fn steps_of_a_team_wait_for_those_that_they_need() {
    let hub = hub().await;
    let chat = begin(&hub, "build it in order", Scenario::ParallelAgents, |_| {}).await;
    let plan = text(&hub, &format!("/chats/{chat}/plan.md")).await;
    assert!(plan.contains("- [ ] three (after 1, 2)\n- [ ] four (after 3)\n"), "{plan}");
    approve(&hub, chat).await;
    let log = events(&hub, chat).await;
    assert_eq!(said(&log), "All 5 steps of the plan are done.", "{log:?}");
    let at = |step: u32, status: &str| {
        let is_it = |event: &ChatEvent| matches!(event, ChatEvent::PlanStep { step: of, status: its, .. } if *of == step && its == status);
        log.iter().rposition(is_it).unwrap()
    };
    assert!(at(3, "in_progress") > at(1, "done").min(at(2, "done")), "{log:?}");
    assert!(at(3, "done") > at(1, "done").max(at(2, "done")) && at(4, "done") > at(3, "done"), "{log:?}");
    let titles = log.iter().filter_map(|event| match event {
        ChatEvent::PlanStep { title, .. } => Some(title.as_str()),
        _ => None,
    });
    assert!(titles.clone().all(|title| STEPS.contains(&title)), "{:?}", titles.collect::<Vec<_>>());

    // The usage of the team is in the view of the chat, and in the records of its agents.
    let view = hub.chats.get(hub.workspace, chat).await.unwrap();
    let records = hub.chats.usage(hub.workspace, "2000-01-01", "2999-12-31").await.unwrap();
    let of_agents = records.iter().filter(|record| record.parent_chat_id == Some(chat));
    assert_eq!(view.agents_usage.input_tokens, of_agents.map(|record| record.usage.input_tokens).sum::<u64>());
}

#[tokio::test]
async fn a_topic_becomes_a_campaign_whose_plan_is_ticked_while_its_files_are_written() {
    let hub = hub().await;
    let chat = begin(&hub, "Green tea", Scenario::CoWork, |_| {}).await;
    let log = events(&hub, chat).await;
    assert_eq!(said(&log), "All 5 steps of the plan are done.", "{log:?}");
    let progress: Vec<(u32, u32)> = log
        .iter()
        .filter_map(|event| match event {
            ChatEvent::PlanStep { done, total, .. } => Some((*done, *total)),
            _ => None,
        })
        .collect();
    assert!(progress.windows(2).all(|pair| pair[0] <= pair[1]), "progress does not go back: {progress:?}");
    assert_eq!((progress.first(), progress.last()), (Some(&(0, 5)), Some(&(5, 5))));
    let plan = text(&hub, "/content/green-tea/plan.md").await;
    assert_eq!(steps(&plan).iter().filter(|(mark, ..)| mark == "x").count(), 5, "{plan}");

    // The same topic once more is another campaign.
    let again = begin(&hub, "Green tea", Scenario::CoWork, |_| {}).await;
    let view = hub.chats.get(hub.workspace, again).await.unwrap();
    assert_eq!(view.plan_path.map(|path| path.to_string()).as_deref(), Some("/content/green-tea-2/plan.md"));
}

#[tokio::test]
async fn an_unknown_agent_is_refused_before_anything_is_made() {
    let hub = hub().await;
    let mut new = NewChat { goal: "build it".into(), ..NewChat::default() };
    set_up(&mut new, Scenario::ParallelAgents, None, Some(vec!["nobody".into()])).unwrap();
    let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let refused = hub.chats.create(hub.workspace, chat, command, new, &Principal::local()).await.unwrap_err();
    assert_eq!(refused.code, Code::NotFound);
    assert!(hub.chats.list(hub.workspace, 10, None).await.unwrap().chats.is_empty());
}
