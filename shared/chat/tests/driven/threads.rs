//! Threads: the record and the chat of one agree, also after a request that ended in between.

use crate::hub::Hub;
use buildscale_chat::{Chats, NewThread, Settings, ThreadTurn, Threads, TurnRecord, actor_id};
use domain::{AgentOptions, ChatEvent, ChatId, CommandId, Labels, Mode, Principal, ThreadAgent};
use ports::{Clock, Key};
use std::{sync::Arc, time::Duration};
use testkit::fakes::{FakeBus, FakeQueue, Faults};

/// The options of the agent in each setup that a chat has had.
async fn options_of(hub: &Hub, chat: ChatId) -> Vec<AgentOptions> {
    let page = actor::read_after::<ChatEvent>(&*hub.log, &actor_id(hub.workspace, chat), 0, 1_000).await.unwrap();
    let options = |event| match event {
        ChatEvent::Created { config } | ChatEvent::Configured { config } => config.thread.map(|thread| thread.options),
        _ => None,
    };
    page.entries.into_iter().flat_map(|entry| entry.events).filter_map(options).collect()
}

/// A thread whose first turn has ended.
async fn thread(hub: &Hub, by: &Principal) -> (Threads, ChatId) {
    let (threads, thread) = (Threads::new(hub.chats.clone()), ChatId(hub.clock.id()));
    let agent = ThreadAgent { agent: "test".into(), cwd: "/srv/app".into(), options: AgentOptions::default() };
    let new = NewThread { agent, functions: Vec::new(), title: None, labels: Labels::default(), client: "test".into() };
    threads.create(hub.workspace, thread, new).await.unwrap();
    let turn = ThreadTurn { input: "go".into(), first: 1, client: "test".into(), ..ThreadTurn::default() };
    threads.start(hub.workspace, thread, CommandId(hub.clock.id()), turn, by).await.unwrap();
    // No agent is there, so the turn fails at once.
    hub.settle().await;
    (threads, thread)
}

#[tokio::test]
async fn a_thread_has_nothing_of_a_change_that_is_refused() {
    let (hub, by) = (Hub::new().await, Principal::local());
    let (threads, thread) = thread(&hub, &by).await;
    let before = threads.reader().get(hub.workspace, thread).await.unwrap().record;
    let wanted = AgentOptions { model_id: Some("fast".into()), ..AgentOptions::default() };
    let without_approval = (None, Some(Mode::Build), false);
    let changed = threads.change(hub.workspace, thread, Some("New".into()), Some(wanted), without_approval, &by).await;
    changed.unwrap_err();
    let record = threads.reader().get(hub.workspace, thread).await.unwrap().record;
    assert_eq!((record.title, record.agent.options), (before.title, before.agent.options));
}

#[tokio::test]
async fn options_whose_command_was_lost_reach_the_agent_when_the_same_change_is_made_again() {
    let hub = Hub::new().await;
    let by = Principal::local();
    let (threads, thread) = thread(&hub, &by).await;

    let down = Faults { unavailable_before: 1.0, ..Faults::none() };
    let queue = Arc::new(FakeQueue::new(hub.clock.clone(), 2, down, 100));
    let bus = Arc::new(FakeBus::new(2, Faults::none()));
    let (clock, workspaces) = (hub.clock.clone(), hub.workspaces.clone());
    let cut_off = Threads::new(Chats::new(hub.log.clone(), queue, bus, clock, workspaces, Settings::default()));
    let wanted = AgentOptions { model_id: Some("fast".into()), ..AgentOptions::default() };
    let change = async |threads: &Threads| {
        threads.change(hub.workspace, thread, None, Some(wanted.clone()), (None, None, true), &by).await
    };
    change(&cut_off).await.unwrap_err();
    let found = threads.reader().get(hub.workspace, thread).await.unwrap();
    assert_eq!(found.record.agent.options, wanted, "the record has them");
    hub.settle().await;
    assert_eq!(options_of(&hub, thread).await, [AgentOptions::default()], "the chat does not");

    for _ in 0..2 {
        change(&threads).await.unwrap();
        hub.settle().await;
    }
    assert_eq!(options_of(&hub, thread).await, [AgentOptions::default(), wanted], "the chat takes them in once");
}

#[tokio::test]
async fn the_words_of_a_threads_turns_go_with_it() {
    let (hub, by) = (Hub::new().await, Principal::local());
    let (threads, deleted) = thread(&hub, &by).await;
    let (_, other) = thread(&hub, &by).await;
    for _ in 0..2 {
        let turn = ThreadTurn { input: "on".into(), first: 1, client: "test".into(), ..ThreadTurn::default() };
        threads.start(hub.workspace, deleted, CommandId(hub.clock.id()), turn, &by).await.unwrap();
        hub.settle().await;
    }
    let partition = format!("{}/threads", hub.workspace);
    let left = || {
        let turns = hub.table.partition(&partition).into_iter().filter(|item| item.key.sk.starts_with("turn/"));
        turns.map(|item| item.content::<TurnRecord>().unwrap().thread_id).collect::<Vec<_>>()
    };
    assert_eq!(left().len(), 4);
    threads.delete(hub.workspace, deleted, &by).await.unwrap();
    assert_eq!(left(), [other]);
}

#[tokio::test]
async fn a_client_that_does_not_come_back_is_forgotten() {
    let (hub, by) = (Hub::new().await, Principal::local());
    thread(&hub, &by).await;
    let clients = || {
        let all = hub.table.partition(&format!("{}/threads", hub.workspace)).into_iter();
        all.filter(|item| item.key.sk.starts_with("client/")).map(|item| item.expires_at).collect::<Vec<_>>()
    };
    let until = hub.clock.now() + Duration::from_secs(90 * 24 * 3600);
    let [Some(at)] = clients()[..] else { panic!("{:?}", clients()) };
    assert!(at <= until && at > hub.clock.now(), "{at}");
}

#[tokio::test]
async fn a_thread_whose_chat_is_damaged_keeps_no_other_back() {
    let (hub, by) = (Hub::new().await, Principal::local());
    let (threads, damaged) = thread(&hub, &by).await;
    let (_, whole) = thread(&hub, &by).await;
    let listed = async || {
        let page = threads.reader().list(hub.workspace, 10, None).await.unwrap();
        page.threads.into_iter().map(|thread| thread.record.thread).collect::<Vec<_>>()
    };
    hub.table.damage(&Key::new(format!("{}/chats", hub.workspace), damaged.to_string()), "{}");
    assert_eq!(listed().await, [whole, damaged], "its view is made of its log");
    hub.table.damage(&actor_id(hub.workspace, damaged).entry_key(1), "{}");
    assert_eq!(listed().await, [whole]);
}
