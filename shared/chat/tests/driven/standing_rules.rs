//! Standing rules: a yes for all chats of a workspace, or for those of one person.

use crate::hub::Hub;
use async_trait::async_trait;
use buildscale_chat::{Decision, NewChat, NewMessage, RuleScope, Setup, StandingRule};
use domain::{
    ChatEvent, ChatId, ChatStatus, Code, CommandId, Message, PermissionId, PermissionRule, Principal, Sha256,
    StopReason, Timestamp, Usage, UserId, event::PermissionOutcome,
};
use futures::{StreamExt, stream};
use ports::{
    Clock, Delta, Expect, IndexQuery, Item, Key, Model, ModelError, ModelInfo, ModelRequest, ModelStream, Page, Query,
    Table, Write,
};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tools::{Commands, Registry};
use uuid::Uuid;

/// Writes a persona, or keeps the files of a command around it, which both are asked about, unless it is only talked to.
struct Persona;

#[async_trait]
impl Model for Persona {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let args = r#"{"path": "/system/agents/poet/AGENT.md", "content": "You are a poet."}"#;
        let said = match request.messages.last().map(AsRef::as_ref) {
            Some(Message::User { content, .. }) if content == "keep" => {
                let args = r#"{"command": "make", "keep": [{"from": "out", "to": "/system/agents"}]}"#;
                Delta::Call { tool: "exec".into(), args: args.into() }
            }
            Some(Message::User { content, .. }) if content != "talk" => {
                Delta::Call { tool: "write".into(), args: args.into() }
            }
            _ => Delta::Text("Done.".into()),
        };
        let usage = Usage { input_tokens: 7, ..Usage::default() };
        let end = Delta::End { reason: StopReason::EndTurn, usage, provider: Value::Null, model: None };
        Ok(stream::iter([said, end].map(Ok)).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

/// Runs the line that it is told.
struct Runner;

#[async_trait]
impl Model for Runner {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let said = match request.messages.last().map(AsRef::as_ref) {
            Some(Message::User { content, .. }) => {
                Delta::Call { tool: "exec".into(), args: json!({ "command": content }).to_string() }
            }
            _ => Delta::Text("Done.".into()),
        };
        let end =
            Delta::End { reason: StopReason::EndTurn, usage: Usage::default(), provider: Value::Null, model: None };
        Ok(stream::iter([said, end].map(Ok)).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

/// A new chat of this person, driven as far as it goes: whether it asks people, and for what.
async fn chat(hub: &Hub, by: &Principal, may_approve: bool) -> (ChatId, Option<Value>) {
    chat_about(hub, "become a poet", by, may_approve).await
}

async fn chat_about(hub: &Hub, goal: &str, by: &Principal, may_approve: bool) -> (ChatId, Option<Value>) {
    let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let new = NewChat { goal: goal.into(), may_approve, ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, command, new, by).await.unwrap();
    hub.drive().await;
    // A rule has decided; the message that lets the request expire is due later.
    if hub.queue.messages().iter().any(|message| message.deliver_at.is_none()) {
        hub.drive().await;
    }
    let view = hub.chats.get(hub.workspace, chat).await.unwrap();
    let asked = view.waiting_for.first().map(|asked| asked["data"].clone());
    assert_eq!(view.status == ChatStatus::Suspended, asked.is_some());
    (chat, asked)
}

async fn allow(hub: &Hub, chat: ChatId, asked: &Value, scope: RuleScope, by: &Principal) {
    let id = asked["permission_id"].as_str().unwrap().parse().unwrap();
    let decision = Decision { always: true, scope, ..Decision::new(id, PermissionOutcome::Approved) };
    hub.chats.decide(hub.workspace, chat, CommandId(hub.clock.id()), decision, by).await.unwrap();
    hub.drive().await;
    assert_eq!(hub.chats.get(hub.workspace, chat).await.unwrap().status, ChatStatus::Idle);
}

async fn deny(hub: &Hub, chat: ChatId, asked: &Value, scope: RuleScope, by: &Principal) {
    let id = asked["permission_id"].as_str().unwrap().parse().unwrap();
    let decision = Decision { always: true, scope, ..Decision::new(id, PermissionOutcome::Declined) };
    hub.chats.decide(hub.workspace, chat, CommandId(hub.clock.id()), decision, by).await.unwrap();
    hub.drive().await;
}

/// The answers to calls that the model has read in a chat.
async fn read(hub: &Hub, chat: ChatId) -> String {
    let read = hub.chats.history(hub.workspace, chat, 0, 100).await.unwrap();
    let outputs = read.messages.into_iter().filter_map(|one| match one.message {
        Message::Tool { output, .. } => Some(output),
        _ => None,
    });
    outputs.collect::<Vec<_>>().join("\n")
}

fn person(id: u128) -> Principal {
    Principal::User { id: UserId(Uuid::from_u128(id)) }
}

#[tokio::test]
async fn a_rule_of_the_workspace_answers_in_every_chat_until_it_is_revoked() {
    let hub = Hub::with(Arc::new(Persona)).await;
    let (ann, bob) = (person(5), person(6));
    let (first, asked) = chat(&hub, &ann, true).await;
    allow(&hub, first, &asked.unwrap(), RuleScope::Workspace, &ann).await;
    assert_eq!(chat(&hub, &bob, true).await.1, None, "it is answered by the rule");
    assert!(chat(&hub, &bob, false).await.1.is_some(), "a rule counts in turns of people with the right to approve");
    let rules = hub.chats.standing_rules(hub.workspace, bob.user()).await.unwrap();
    let [rule] = &rules[..] else { panic!("{rules:?}") };
    assert_eq!((rule.scope, rule.by), (RuleScope::Workspace, ann.user()));
    hub.chats.revoke_standing(hub.workspace, &rule.rule_id, bob.user()).await.unwrap();
    assert!(chat(&hub, &bob, true).await.1.is_some(), "it is asked about again");
    let again = hub.chats.revoke_standing(hub.workspace, &rule.rule_id, bob.user()).await;
    assert_eq!(again.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_standing_rule_that_is_revoked_is_left_in_no_chat() {
    let hub = Hub::with(Arc::new(Persona)).await;
    let ann = person(5);
    for scope in [RuleScope::Workspace, RuleScope::Person] {
        let (granted_in, asked) = chat(&hub, &ann, true).await;
        allow(&hub, granted_in, &asked.unwrap(), scope, &ann).await;
        let rules = hub.chats.standing_rules(hub.workspace, ann.user()).await.unwrap();
        hub.chats.revoke_standing(hub.workspace, &rules[0].rule_id, ann.user()).await.unwrap();
        let new = NewMessage { content: "write".into(), may_approve: true, ..NewMessage::default() };
        hub.chats.post(hub.workspace, granted_in, CommandId(hub.clock.id()), new, &ann).await.unwrap();
        hub.drive().await;
        let view = hub.chats.get(hub.workspace, granted_in).await.unwrap();
        assert_eq!(view.status, ChatStatus::Suspended, "{scope:?}: the chat in which it was granted asks again, too");
    }
}

#[tokio::test]
async fn a_rule_of_a_person_answers_in_their_own_chats_alone() {
    let hub = Hub::with(Arc::new(Persona)).await;
    let (ann, bob) = (person(5), person(6));
    let (first, asked) = chat(&hub, &ann, true).await;
    allow(&hub, first, &asked.unwrap(), RuleScope::Person, &ann).await;
    assert_eq!(chat(&hub, &ann, true).await.1, None);
    assert!(chat(&hub, &bob, true).await.1.is_some());
    assert_eq!(hub.chats.standing_rules(hub.workspace, bob.user()).await.unwrap(), []);
    let rules = hub.chats.standing_rules(hub.workspace, ann.user()).await.unwrap();
    let theirs = hub.chats.revoke_standing(hub.workspace, &rules[0].rule_id, bob.user()).await;
    assert_eq!(theirs.unwrap_err().code, Code::NotFound, "it is not theirs");
}

#[tokio::test]
async fn a_rule_that_denies_answers_before_one_that_allows_and_the_model_reads_which_it_is() {
    let hub = Hub::with(Arc::new(Persona)).await;
    let (ann, bob) = (person(5), person(6));
    let (first, asked) = chat(&hub, &ann, true).await;
    let (second, also_asked) = chat(&hub, &bob, true).await;
    allow(&hub, first, &asked.unwrap(), RuleScope::Workspace, &ann).await;
    assert_eq!(chat(&hub, &bob, true).await.1, None);
    // Bob was asked before Ann's rule was there.
    deny(&hub, second, &also_asked.unwrap(), RuleScope::Person, &bob).await;
    let rules = hub.chats.standing_rules(hub.workspace, bob.user()).await.unwrap();
    let denies = rules.iter().find(|rule| rule.rule.denies().is_some()).unwrap();
    assert_eq!((rules.len(), denies.scope), (2, RuleScope::Person));
    for may_approve in [true, false] {
        let (refused, asked) = chat(&hub, &bob, may_approve).await;
        assert_eq!(asked, None, "a rule that denies counts in the turns of all people");
        let expected = format!(
            "not permitted: a person declined: the rule {} of this person denies new contents of /system/agents/poet/AGENT.md",
            denies.rule_id
        );
        assert_eq!(read(&hub, refused).await, expected);
    }
    hub.chats.revoke_standing(hub.workspace, &denies.rule_id, bob.user()).await.unwrap();
    let (allowed, _) = chat(&hub, &bob, true).await;
    assert!(!read(&hub, allowed).await.contains("not permitted"), "the rule of the workspace is left");
}

#[tokio::test]
async fn a_rule_that_denies_answers_for_a_line_with_its_command_for_which_no_rule_is_offered() {
    let tools = Registry::builtin().with_commands(Commands::default());
    let hub = Hub::built(Arc::new(Runner), |_, fake, _| fake, tools).await;
    let (ann, bob) = (person(5), person(6));
    let (first, asked) = chat_about(&hub, "git push", &ann, true).await;
    deny(&hub, first, &asked.unwrap(), RuleScope::Workspace, &ann).await;
    let rules = hub.chats.standing_rules(hub.workspace, bob.user()).await.unwrap();
    let (refused, asked) = chat_about(&hub, "make && git push --tags 2>&1 | tail", &bob, false).await;
    assert_eq!(asked, None, "nobody is asked about what is denied");
    let expected = format!(
        "not permitted: a person declined: the rule {} of the workspace denies commands that begin with `git push`",
        rules[0].rule_id
    );
    assert_eq!(read(&hub, refused).await, expected);
    assert_eq!(read(&hub, first).await, expected, "so reads the agent of the chat in which it was granted");
    let (_, asked) = chat_about(&hub, "make && git pull", &bob, true).await;
    assert!(!asked.unwrap()["always"].is_object(), "the line offers no rule");
}

#[tokio::test]
async fn a_rule_that_denies_answers_for_a_command_that_keeps_a_folder_around_its_file() {
    let tools = Registry::builtin().with_commands(Commands::default());
    let hub = Hub::built(Arc::new(Persona), |_, fake, _| fake, tools).await;
    let ann = person(5);
    let (_, asked) = chat_about(&hub, "keep", &ann, true).await;
    assert!(asked.is_some());
    let (first, asked) = chat(&hub, &ann, true).await;
    deny(&hub, first, &asked.unwrap(), RuleScope::Workspace, &ann).await;
    let (refused, asked) = chat_about(&hub, "keep", &ann, true).await;
    assert_eq!(asked, None, "nobody is asked about what is denied");
    let told = "of the workspace denies new contents of /system/agents/poet/AGENT.md";
    assert!(read(&hub, refused).await.ends_with(told));
}

/// The embedded store, with a count of the reads of rules, which may be damaged.
struct RuleReads {
    table: Arc<dyn Table>,
    reads: Arc<AtomicUsize>,
    are_damaged: bool,
    _store: embedded::Store,
}

#[async_trait]
impl Table for RuleReads {
    fn max_body(&self) -> usize {
        self.table.max_body()
    }
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        self.reads.fetch_add(usize::from(key.pk.ends_with("/rules")), Ordering::SeqCst);
        self.table.get(key).await
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        let of_rules = query.pk.ends_with("/rules");
        self.reads.fetch_add(usize::from(of_rules), Ordering::SeqCst);
        match of_rules && self.are_damaged {
            true => Err(ports::Error::Damaged("the rules".into())),
            false => self.table.query(query).await,
        }
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        self.table.query_index(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> ports::Result<()> {
        self.table.commit(writes).await
    }
}

#[tokio::test]
async fn a_rule_that_denies_reaches_calls_that_nobody_is_asked_about_and_is_read_once_in_a_turn_with_such_calls() {
    let reads = Arc::new(AtomicUsize::new(0));
    let count = reads.clone();
    let hub = Hub::over(Arc::new(Persona), |clock, _, folder| {
        let store = embedded::Store::open(folder.join("store.sqlite"), clock, embedded::Options::default()).unwrap();
        Arc::new(RuleReads { table: store.table(), reads: count, are_damaged: false, _store: store })
    })
    .await;
    let (ann, bob) = (person(5), person(6));
    let (own, asked) = chat(&hub, &ann, true).await;
    allow(&hub, own, &asked.unwrap(), RuleScope::Chat, &ann).await;
    // One more turn of that chat: its last answer to a call, and how often rules were read.
    let turn = async |words: &str| {
        reads.store(0, Ordering::SeqCst);
        let new = NewMessage { content: words.into(), may_approve: true, ..NewMessage::default() };
        hub.chats.post(hub.workspace, own, CommandId(hub.clock.id()), new, &ann).await.unwrap();
        hub.drive().await;
        assert_eq!(hub.chats.get(hub.workspace, own).await.unwrap().status, ChatStatus::Idle);
        let answers = read(&hub, own).await;
        (answers.lines().last().unwrap_or_default().to_owned(), reads.load(Ordering::SeqCst))
    };
    let (written, reads) = turn("write").await;
    assert!(!written.contains("not permitted"), "the rule of the chat allows it: {written}");
    assert_eq!(reads, 1);
    assert_eq!(turn("talk").await.1, 0, "a turn without calls reads no rules");
    let (other, asked) = chat(&hub, &bob, true).await;
    deny(&hub, other, &asked.unwrap(), RuleScope::Workspace, &bob).await;
    let rules = hub.chats.standing_rules(hub.workspace, ann.user()).await.unwrap();
    let expected = format!(
        "not permitted: a person has denied new contents of /system/agents/poet/AGENT.md in all chats from now on (rule {}), and is not asked \
         again",
        rules[0].rule_id
    );
    assert_eq!(turn("write").await, (expected, 1));
    hub.chats.revoke_standing(hub.workspace, &rules[0].rule_id, bob.user()).await.unwrap();
    assert!(!turn("write").await.0.contains("not permitted"));
}

#[tokio::test]
async fn an_answer_whose_denials_cannot_be_read_runs_no_call_and_its_tokens_count() {
    let reads = Arc::new(AtomicUsize::new(0));
    let count = reads.clone();
    let hub = Hub::over(Arc::new(Persona), |clock, _, folder| {
        let store = embedded::Store::open(folder.join("store.sqlite"), clock, embedded::Options::default()).unwrap();
        Arc::new(RuleReads { table: store.table(), reads: count, are_damaged: true, _store: store })
    })
    .await;
    let (chat, asked) = chat(&hub, &person(5), true).await;
    assert_eq!((asked, reads.load(Ordering::SeqCst)), (None, 1));
    assert_eq!(read(&hub, chat).await, "", "no call has run");
    let view = hub.chats.get(hub.workspace, chat).await.unwrap();
    assert_eq!((view.turns, view.usage.input_tokens), (1, 7));
}

#[tokio::test]
async fn a_decision_counts_for_the_request_that_was_shown_alone() {
    let hub = Hub::with(Arc::new(Persona)).await;
    let ann = person(5);
    let (chat, asked) = chat(&hub, &ann, true).await;
    let asked = asked.unwrap();
    let id = asked["permission_id"].as_str().unwrap().parse().unwrap();
    let shown: Sha256 = asked["digest"].as_str().unwrap().parse().unwrap();
    let decide = async |digest| {
        let decision = Decision { digest: Some(digest), ..Decision::new(id, PermissionOutcome::Approved) };
        hub.chats.decide(hub.workspace, chat, CommandId(hub.clock.id()), decision, &ann).await
    };
    let refused = decide(Sha256::of(b"another request")).await.unwrap_err();
    assert_eq!((refused.code, refused.details["field"].as_str()), (Code::Conflict, Some("digest")));
    assert_eq!(refused.details["digest"], asked["digest"]);
    decide(shown).await.unwrap();
    hub.drive().await;
    assert_eq!(hub.chats.get(hub.workspace, chat).await.unwrap().status, ChatStatus::Idle);
}

/// Gives the workspace, or this person, 500 rules that cover no call of these tests.
async fn fill(hub: &Hub, scope: RuleScope, by: UserId) {
    let place = if scope == RuleScope::Person { format!("person/{by}") } else { "workspace".to_owned() };
    for number in 0..500 {
        let granted = StandingRule {
            rule_id: format!("{number:016}"),
            scope,
            rule: PermissionRule::Tool { tool: format!("mcp__tracker__{number}") },
            cwd: None,
            by,
            at: Timestamp::default(),
        };
        let key = Key::new(format!("{}/rules", hub.workspace), format!("{place}/{}", granted.rule_id));
        let body = serde_json::to_string(&granted).unwrap();
        hub.log.commit(vec![Write::put(key, body, Expect::Absent)]).await.unwrap();
    }
}

#[tokio::test]
async fn a_rule_behind_a_page_of_others_denies_is_listed_and_is_revoked_also_where_it_cannot_be_read() {
    let hub = Hub::with(Arc::new(Persona)).await;
    let (ann, bob) = (person(5), person(6));
    let (first, asked) = chat(&hub, &ann, true).await;
    deny(&hub, first, &asked.unwrap(), RuleScope::Workspace, &ann).await;
    // The keys of these come before it.
    fill(&hub, RuleScope::Person, bob.user()).await;
    let (refused, asked) = chat(&hub, &ann, true).await;
    assert_eq!(asked, None, "the rule answers");
    assert!(read(&hub, refused).await.contains("of the workspace denies"));
    let rules = hub.chats.standing_rules(hub.workspace, ann.user()).await.unwrap();
    let [rule] = &rules[..] else { panic!("{rules:?}") };

    let key = Key::new(format!("{}/rules", hub.workspace), format!("workspace/{}", rule.rule_id));
    hub.table.damage(&key, "{}");
    assert_eq!(hub.chats.standing_rules(hub.workspace, ann.user()).await.unwrap(), []);
    for wrong in ["", "../workspace", "0123456789abcdef0"] {
        let refused = hub.chats.revoke_standing(hub.workspace, wrong, ann.user()).await;
        assert_eq!(refused.unwrap_err().code, Code::NotFound, "{wrong}");
    }
    hub.chats.revoke_standing(hub.workspace, &rule.rule_id, ann.user()).await.unwrap();
    assert!(hub.log.get(&key).await.unwrap().is_none());
    assert!(chat(&hub, &ann, true).await.1.is_some(), "it is asked about again");
}

#[tokio::test]
async fn a_rule_for_which_there_is_no_room_stands_against_no_plain_decision() {
    let hub = Hub::with(Arc::new(Persona)).await;
    let ann = person(5);
    let (chat, asked) = chat(&hub, &ann, true).await;
    let asked: PermissionId = asked.unwrap()["permission_id"].as_str().unwrap().parse().unwrap();
    fill(&hub, RuleScope::Workspace, ann.user()).await;
    let decide =
        async |decision| hub.chats.decide(hub.workspace, chat, CommandId(hub.clock.id()), decision, &ann).await;
    let (scope, no) = (RuleScope::Workspace, Decision::new(asked, PermissionOutcome::Declined));
    let refused = decide(Decision { always: true, scope, ..no }).await.unwrap_err();
    assert_eq!(refused.code, Code::Conflict);
    assert!(refused.message.contains("500 rules"), "{refused:?}");
    // The next one is another decision, and comes at once.
    decide(Decision::new(asked, PermissionOutcome::Approved)).await.unwrap();
    hub.drive().await;
    assert_eq!(hub.chats.get(hub.workspace, chat).await.unwrap().status, ChatStatus::Idle);
}

#[tokio::test]
async fn a_decision_that_is_refused_is_kept_once_however_often_it_is_repeated() {
    let hub = Hub::with(Arc::new(Persona)).await;
    let ann = person(5);
    let (chat, asked) = chat(&hub, &ann, true).await;
    let asked: PermissionId = asked.unwrap()["permission_id"].as_str().unwrap().parse().unwrap();
    let decide = async |id, outcome, command| {
        let decided = hub.chats.decide(hub.workspace, chat, command, Decision::new(id, outcome), &ann).await;
        if hub.queue.messages().iter().any(|message| message.deliver_at.is_none()) {
            hub.drive().await;
        }
        decided.map_err(|error| error.code)
    };
    let refused = async || {
        let actor = buildscale_chat::actor_id(hub.workspace, chat);
        let (mut log, mut refused) = (actor::LogReader::<ChatEvent>::starting_at(actor, 1), 0);
        while let Some((_, _, event)) = log.next(&*hub.log).await.unwrap() {
            refused += usize::from(matches!(event, ChatEvent::DecisionRefused { .. }));
        }
        refused
    };
    let (yes, no) = (PermissionOutcome::Approved, PermissionOutcome::Declined);
    let command = CommandId(hub.clock.id());
    assert_eq!(decide(asked, yes, command).await, Ok(()));
    assert_eq!(decide(asked, yes, command).await, Ok(()), "its sender repeats it, as the first answer was lost");
    assert_eq!(refused().await, 0);
    for _ in 0..2 {
        assert_eq!(decide(asked, no, CommandId(hub.clock.id())).await, Err(Code::Conflict));
    }
    assert_eq!(refused().await, 1);
    // More commands than the chat remembers.
    for number in 0..260 {
        let setup = Setup { title: Some(format!("Title {number}")), ..Setup::default() };
        hub.chats.configure(hub.workspace, chat, setup, &ann).await.unwrap();
        hub.drive().await;
    }
    assert_eq!(decide(asked, no, CommandId(hub.clock.id())).await, Err(Code::Conflict));
    assert_eq!(refused().await, 1);
    // Ids that are made up.
    for _ in 0..3 {
        let made_up = PermissionId(hub.clock.id());
        assert_eq!(decide(made_up, yes, CommandId(hub.clock.id())).await, Err(Code::NotFound));
    }
    assert_eq!(refused().await, 2, "a person is told of once");
}

#[test]
fn old_standing_rules_are_read_for_ever() {
    let rule = StandingRule {
        rule_id: "0123456789abcdef".into(),
        scope: RuleScope::Person,
        rule: PermissionRule::Tool { tool: "mcp__github__create_issue".into() },
        cwd: Some("/srv/app".into()),
        by: UserId(Uuid::from_u128(5)),
        at: Timestamp::default(),
    };
    testkit::golden::check(env!("CARGO_MANIFEST_DIR"), "standing_rules", &rule);
}
