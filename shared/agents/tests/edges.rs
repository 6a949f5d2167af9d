//! The adapter against an agent that misbehaves in each way.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "edges/choices.rs"]
mod choices;
#[path = "edges/copies.rs"]
mod copies;
#[path = "edges/shapes.rs"]
mod shapes;

use buildscale_agents::{ChildAgents, ConfineThread, KnownAgent, Options};
use domain::{AgentOptions, ChatId, ThreadAgent, TurnId, WorkspaceId};
use ports::{AgentPrompt, AgentRequest, AgentTurn, AgentUpdate, Agents, Error, KnownSecrets, Secret};
use processes::ProcessStat;
use serde_json::json;
use std::{fs, sync::Arc, time::Duration};
use tempfile::TempDir;
use testkit::Means;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    agents: Arc<ChildAgents>,
    folder: TempDir,
    turns: u128,
}

impl World {
    fn new(start: &str) -> Self {
        Self::with(start, |_| {})
    }

    fn with(start: &str, change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("app")).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agent.py");
        let agent = KnownAgent {
            id: "test".into(),
            name: "Test".into(),
            command: "python3".into(),
            args: vec![script.into(), start.into()],
            env: [("GIVEN".to_owned(), "1".to_owned())].into(),
            ..KnownAgent::default()
        };
        let known = KnownSecrets::default();
        known.learn([&Secret::new("hunter2-secret")]);
        let environment = ["PATH", "HOME"].map(|name| (name.to_owned(), std::env::var(name).unwrap_or_default()));
        let ours = ("OPENAI_API_KEY".to_owned(), "ours".to_owned());
        let mut options = Options {
            agents: vec![agent],
            roots: vec![folder.path().join("app")],
            environment: environment.into_iter().chain([ours]).collect(),
            known,
            grace: Duration::from_millis(500),
            ..Options::default()
        };
        change(&mut options);
        Self { agents: Arc::new(ChildAgents::new(options)), folder, turns: 0 }
    }

    fn app(&self) -> String {
        fs::canonicalize(self.folder.path().join("app")).unwrap().display().to_string()
    }

    async fn prompt(&mut self, words: &str) -> (AgentTurn, ports::Result<()>) {
        self.prompt_in(words, None).await
    }

    async fn prompt_in(&mut self, words: &str, session: Option<&str>) -> (AgentTurn, ports::Result<()>) {
        self.prompt_of(vec![json!({ "type": "text", "text": words })], session).await
    }

    async fn prompt_with(&mut self, content: Vec<serde_json::Value>) -> (AgentTurn, ports::Result<()>) {
        self.prompt_of(content, None).await
    }

    async fn prompt_at(&mut self, cwd: &str, words: &str) -> (AgentTurn, ports::Result<()>) {
        self.prompt_of_at(cwd.into(), vec![json!({ "type": "text", "text": words })], None).await
    }

    async fn prompt_of(
        &mut self,
        content: Vec<serde_json::Value>,
        session: Option<&str>,
    ) -> (AgentTurn, ports::Result<()>) {
        self.prompt_of_at(self.app(), content, session).await
    }

    async fn prompt_of_at(
        &mut self,
        cwd: String,
        content: Vec<serde_json::Value>,
        session: Option<&str>,
    ) -> (AgentTurn, ports::Result<()>) {
        self.turns += 1;
        let (workspace, chat) = (WorkspaceId(Uuid::from_u128(1)), ChatId(Uuid::from_u128(2)));
        let turn = AgentTurn { workspace, chat, turn: TurnId(Uuid::from_u128(100 + self.turns)) };
        let options = AgentOptions { session_id: session.map(ToOwned::to_owned), ..AgentOptions::default() };
        let thread = ThreadAgent { agent: "test".into(), cwd, options };
        let prompt = AgentPrompt { turn, thread, content, context: "User: before".into(), own_mode: false };
        (turn, self.agents.prompt(prompt).await)
    }

    /// The updates of a turn until one of these comes, which is the last.
    async fn until(&self, turn: &AgentTurn, last: impl Fn(&AgentUpdate) -> bool) -> Vec<AgentUpdate> {
        let mut all = Vec::new();
        loop {
            all.extend(timeout(PATIENCE, self.agents.updates(turn)).await.unwrap().unwrap());
            if all.last().is_some_and(&last) {
                return all;
            }
        }
    }

    async fn end(&self, turn: &AgentTurn) -> Vec<AgentUpdate> {
        self.until(turn, |update| matches!(update, AgentUpdate::Ended { .. } | AgentUpdate::Gone { .. })).await
    }

    /// The text of a whole turn.
    async fn said(&mut self, words: &str) -> String {
        let (turn, prompted) = self.prompt(words).await;
        prompted.unwrap();
        text(&self.end(&turn).await)
    }

    async fn asked(&mut self, words: &str) -> (AgentTurn, AgentRequest) {
        let (turn, prompted) = self.prompt(words).await;
        prompted.unwrap();
        (turn, self.request(&turn).await)
    }

    async fn request(&self, turn: &AgentTurn) -> AgentRequest {
        let updates = self.until(turn, |update| matches!(update, AgentUpdate::Asks(_))).await;
        match updates.last() {
            Some(AgentUpdate::Asks(request)) => request.clone(),
            other => panic!("{other:?}"),
        }
    }
}

fn text(updates: &[AgentUpdate]) -> String {
    let texts = updates.iter().filter_map(|update| match update {
        AgentUpdate::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn ended(reason: &str) -> AgentUpdate {
    AgentUpdate::Ended { stop_reason: reason.into() }
}

fn why(updates: &[AgentUpdate]) -> &str {
    match updates.last() {
        Some(AgentUpdate::Gone { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

fn is_alive(pid: &str) -> bool {
    ProcessStat::of(pid).is_some_and(|stat| !stat.has_ended)
}

async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        // poll: a process of another process ends unseen
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_turn_is_told_in_its_order_and_a_second_goes_on_in_the_same_process() {
    let mut world = World::new("");
    let (turn, prompted) = world.prompt("say one two").await;
    prompted.unwrap();
    let updates = world.end(&turn).await;
    let Some(AgentUpdate::Bound { session }) = updates.first() else { panic!("{updates:?}") };
    assert_eq!(text(&updates), "one two ");
    assert!(updates.contains(&AgentUpdate::Thought("hm".into())), "{updates:?}");
    assert_eq!(updates.last(), Some(&ended("end_turn")));
    assert_eq!(world.agents.updates(&turn).await.unwrap(), [ended("end_turn")], "the end is told again");
    let commands = world.agents.commands(turn.workspace, turn.chat).await;
    assert_eq!(commands[0].name, "web");
    let (turn, prompted) = world.prompt("call").await;
    prompted.unwrap();
    let updates = world.end(&turn).await;
    assert_eq!(updates[0], AgentUpdate::Bound { session: session.clone() });
    assert!(matches!(&updates[1], AgentUpdate::Session(update) if update["title"] == "make"), "{updates:?}");
    assert_eq!(updates.len(), 4, "{updates:?}");
}

#[tokio::test]
async fn a_request_waits_for_its_own_answer() {
    let mut world = World::new("");
    for (option, told) in [(Some("once"), "once"), (Some("no"), "no"), (None, "cancelled")] {
        let (turn, request) = world.asked("ask rm -r x").await;
        assert_eq!((request.category.as_str(), request.title.as_str()), ("command", "rm -r x"));
        assert!(request.call.contains("rawInput"), "the call is told whole: {}", request.call);
        assert_eq!(
            request.options.iter().map(|option| &*option.kind).collect::<Vec<_>>(),
            ["allow_once", "allow_always", "reject_once"]
        );
        assert_eq!(
            world.agents.updates(&turn).await.unwrap(),
            [AgentUpdate::Asks(request.clone())],
            "it is told again"
        );
        let wrong = [("other", Some("once")), (request.request.as_str(), Some("unknown"))];
        for (id, option) in wrong {
            assert!(matches!(world.agents.answer(&turn, id, option).await, Err(Error::Conflict { .. })));
        }
        world.agents.answer(&turn, &request.request, option).await.unwrap();
        let again = world.agents.answer(&turn, &request.request, Some("once")).await;
        assert!(matches!(again, Err(Error::Conflict { .. })), "a request is answered once");
        assert_eq!(text(&world.end(&turn).await), told);
    }
}

#[tokio::test]
async fn requests_at_the_same_time_are_told_one_after_the_other() {
    let mut world = World::new("");
    let (turn, first) = world.asked("asktwice").await;
    world.agents.answer(&turn, &first.request, Some("once")).await.unwrap();
    let second = world.request(&turn).await;
    assert_eq!((first.title.as_str(), second.title.as_str()), ("one", "two"));
    world.agents.answer(&turn, &second.request, Some("no")).await.unwrap();
    assert!(text(&world.end(&turn).await).ends_with("no "));
}

#[tokio::test]
async fn a_crash_ends_the_turn_with_its_exit_code_and_last_words_without_secrets() {
    let mut world = World::new("");
    let (turn, prompted) = world.prompt("crash").await;
    prompted.unwrap();
    let updates = world.end(&turn).await;
    let reason = why(&updates);
    assert!(reason.contains("exit code 7") && reason.contains("about to fail"), "{reason}");
    assert!(!reason.contains("hunter2-secret"), "{reason}");
    assert!(world.said("blocks").await.contains("User: before"), "the next turn begins afresh, with the conversation");
}

#[tokio::test]
async fn a_request_of_a_process_that_is_gone_gets_no_answer() {
    let mut world = World::new("");
    let (turn, request) = world.asked("ask x").await;
    world.agents.end(turn.workspace, turn.chat).await.unwrap();
    let answered = world.agents.answer(&turn, &request.request, Some("once")).await;
    assert!(matches!(answered, Err(Error::Conflict { .. })), "{answered:?}");
    let other = AgentTurn { turn: TurnId(Uuid::from_u128(9)), ..turn };
    assert!(matches!(world.agents.updates(&other).await, Err(Error::Conflict { .. })));
}

#[tokio::test]
async fn hostile_output_ends_in_a_clear_error() {
    let mut world = World::new("");
    for (words, told) in [
        ("garbage", "lines that are no JSON"),
        ("long", "a line of more than 16 MiB"),
        ("flood", "more than 64 MiB in one turn"),
        ("id", "names a request by something"),
        ("refuse", "it does not want to"),
    ] {
        let (turn, prompted) = world.prompt(words).await;
        prompted.unwrap();
        let updates = world.end(&turn).await;
        assert!(why(&updates).contains(told), "{words}: {}", why(&updates));
        assert_eq!(world.said("say still here").await, "still here ");
    }
}

#[tokio::test]
async fn only_so_many_requests_wait_for_the_ends_of_commands() {
    let mut world = World::new("");
    assert_eq!(world.said("waits 257").await, "256 requests wait for the ends of commands already");
}

#[tokio::test]
async fn a_start_that_fails_says_why() {
    // An agent that answers may take long on a busy machine; only the one that never does is waited for to the end.
    for (start, seconds, told) in [
        ("exit", 60, "exit code 3. Its last words:\nno licence"),
        ("silent", 1, "did not answer initialize within 1 s"),
        ("version", 60, "speaks version Some(9)"),
    ] {
        let mut world = World::with(start, |options| options.start = Duration::from_secs(seconds));
        let Err(Error::Unavailable { source, .. }) = world.prompt("say x").await.1 else { panic!("{start}") };
        assert!(source.to_string().contains(told), "{source}");
    }
    let mut noisy = World::new("noise");
    assert_eq!(noisy.said("say x").await, "x ", "a greeting is no fault");
}

#[tokio::test]
async fn a_cancelled_turn_ends_by_itself_or_with_its_process_group() {
    // An agent that ends its turn may take long on a busy machine; the one that never does is killed soon.
    let mut world = World::with("", |options| options.grace = 10 * PATIENCE);
    let (turn, prompted) = world.prompt("slow").await;
    prompted.unwrap();
    world.until(&turn, |update| matches!(update, AgentUpdate::Text(_))).await;
    let cancelled = timeout(PATIENCE, world.agents.cancel(&turn)).await;
    cancelled.expect("it waits for no end").unwrap();
    assert_eq!(world.end(&turn).await.last(), Some(&ended("cancelled")));
    world.agents.cancel(&turn).await.unwrap();
    let (turn, _) = world.asked("ask x").await;
    world.agents.cancel(&turn).await.unwrap();
    assert_eq!(world.end(&turn).await.last(), Some(&ended("cancelled")), "an open request is cancelled with it");
    let mut world = World::new("");
    let (turn, prompted) = world.prompt("deaf").await;
    prompted.unwrap();
    world.until(&turn, |update| matches!(update, AgentUpdate::Text(_))).await;
    world.agents.cancel(&turn).await.unwrap();
    assert!(why(&world.end(&turn).await).contains("signal 9"));
    assert_eq!(world.said("say again").await, "again ", "the next turn has another process");
}

#[tokio::test]
async fn all_that_an_agent_started_ends_with_the_thread() {
    let mut world = World::new("");
    // In its process group, and in a session of its own.
    for words in ["child", "stray"] {
        let (turn, prompted) = world.prompt(words).await;
        prompted.unwrap();
        let child = text(&world.until(&turn, |update| matches!(update, AgentUpdate::Text(_))).await);
        assert!(is_alive(&child), "{child}");
        world.agents.end(turn.workspace, turn.chat).await.unwrap();
        eventually("the child of the agent ends", || !is_alive(&child)).await;
    }
}

#[tokio::test]
async fn a_process_that_is_idle_ends_and_its_session_is_loaded_by_the_next() {
    let mut world = World::with("", |options| options.idle = Duration::from_millis(100));
    let (turn, prompted) = world.prompt("say x").await;
    prompted.unwrap();
    let updates = world.end(&turn).await;
    let Some(AgentUpdate::Bound { session }) = updates.first().cloned() else { panic!("{updates:?}") };
    let pid = session.trim_start_matches("s-").to_owned();
    eventually("the idle process ends", || !is_alive(&pid)).await;
    let (turn, prompted) = world.prompt_in("blocks", Some(&session)).await;
    prompted.unwrap();
    let updates = world.end(&turn).await;
    assert_eq!(updates.first(), Some(&AgentUpdate::Bound { session }));
    assert_eq!(text(&updates), r#"["blocks"]"#, "what was loaded is neither told nor sent again");
}

#[tokio::test]
async fn commands_that_are_announced_while_a_session_is_loaded_are_known() {
    let mut world = World::new("");
    let (turn, prompted) = world.prompt("say x").await;
    prompted.unwrap();
    let updates = world.end(&turn).await;
    let Some(AgentUpdate::Bound { session }) = updates.first() else { panic!("{updates:?}") };
    world.agents.end(turn.workspace, turn.chat).await.unwrap();
    let (turn, prompted) = world.prompt_in("say y", Some(session)).await;
    prompted.unwrap();
    assert_eq!(text(&world.end(&turn).await), "y ");
    let commands = world.agents.commands(turn.workspace, turn.chat).await;
    assert_eq!(commands[0].name, "web");
}

#[tokio::test]
async fn a_new_session_is_begun_where_one_is_chosen() {
    let mut world = World::new("");
    let (turn, prompted) = world.prompt("settings").await;
    prompted.unwrap();
    let first = world.end(&turn).await;
    let (turn, prompted) = world.prompt_in("blocks", Some("")).await;
    prompted.unwrap();
    let second = world.end(&turn).await;
    assert!(matches!(second.first(), Some(AgentUpdate::Bound { session }) if !session.is_empty()), "{second:?}");
    assert_ne!(first.first(), second.first());
    assert!(text(&second).contains("User: before"), "it reads the conversation so far");
}

#[tokio::test]
async fn an_agent_that_loads_no_sessions_reads_the_conversation() {
    let mut world = World::new("forgets");
    let (turn, prompted) = world.prompt_in("blocks", Some("s-old")).await;
    prompted.unwrap();
    let updates = world.end(&turn).await;
    assert!(text(&updates).contains("User: before"), "{updates:?}");
    assert_ne!(updates.first(), Some(&AgentUpdate::Bound { session: "s-old".into() }));
}

#[tokio::test]
async fn files_are_read_and_written_in_the_allowed_roots_alone() {
    let mut world = World::new("");
    let app = world.app();
    fs::write(format!("{app}/a.txt"), "one\ntwo\nthree\n").unwrap();
    fs::write(world.folder.path().join("secret"), "x\ny\n").unwrap();
    std::os::unix::fs::symlink(world.folder.path().join("secret"), format!("{app}/link")).unwrap();
    assert!(world.said(&format!("read {app}/a.txt")).await.contains(r#"{"content": "two\n"}"#));
    assert!(world.said(&format!("write {app}/new/b.txt")).await.contains(r#""result""#));
    assert_eq!(fs::read_to_string(format!("{app}/new/b.txt")).unwrap(), "written");
    let outside = world.folder.path().join("out.txt").display().to_string();
    for path in [format!("{app}/link"), format!("{app}/../secret"), outside.clone(), "a.txt".into()] {
        for verb in ["read", "write"] {
            assert!(world.said(&format!("{verb} {path}")).await.contains(r#""error""#), "{verb} {path}");
        }
    }
    assert!(!fs::exists(&outside).unwrap());
    assert_eq!(fs::read_to_string(world.folder.path().join("secret")).unwrap(), "x\ny\n");
    assert!(world.said("other").await.contains("other/method is not offered"));
}

#[tokio::test]
async fn commands_of_an_agent_run_in_terminals_of_ours_and_are_confined() {
    let mut world = World::new("");
    let said = world.said("run printf hello; exit 2").await;
    assert_eq!(said, r#"{"exit": 2, "output": "hello"}"#);
    assert!(!world.said("run env").await.contains("GIVEN"), "a setting of the agent is not one of its commands");
    let Some(()) = Means::Landlock.needed(sandbox::can_confine()) else { return };
    let mut world = World::with("", |options| options.confine = Ok(sandbox::confine as ConfineThread));
    let said =
        world.said("run echo made > made.txt; cat made.txt; echo x > /etc/buildscale-test || echo refused").await;
    assert!(said.contains(r"made\n") && said.contains("refused"), "{said}");
    assert_eq!(fs::read_to_string(format!("{}/made.txt", world.app())).unwrap(), "made\n");
}

#[tokio::test]
async fn an_agent_has_no_key_of_ours() {
    let mut world = World::new("");
    let names = world.said("env").await;
    let names: Vec<&str> = names.split(' ').collect();
    assert!(names.contains(&"PATH") && names.contains(&"GIVEN"), "{names:?}");
    assert!(!names.contains(&"OPENAI_API_KEY"), "{names:?}");
}

#[tokio::test]
async fn a_folder_outside_of_the_roots_and_an_unknown_agent_are_refused() {
    let world = World::new("");
    let outside = world.folder.path().display().to_string();
    assert!(matches!(world.agents.allowed(&outside).await, Err(Error::Invalid(_))));
    assert_eq!(world.agents.allowed(&world.app()).await.unwrap(), world.app());
    assert_eq!(world.agents.roots(), [world.app()]);
    assert!(matches!(world.agents.offers("nobody", &world.app()).await, Err(Error::Invalid(_))));
    let listed = world.agents.list().await;
    let test = listed.iter().find(|agent| agent.id == "test").unwrap();
    assert_eq!(test.unavailable, None);
    assert!(listed.len() > 8, "{listed:?}");
}

#[tokio::test]
async fn offers_and_histories_come_from_processes_of_their_own() {
    let world = World::new("");
    let offers = world.agents.offers("test", &world.app()).await.unwrap();
    assert_eq!(offers.modes, [json!({ "id": "ask", "name": "Ask" }), json!({ "id": "plan", "name": "Plan" })]);
    assert_eq!((offers.mode.as_deref(), offers.model, offers.options.len()), (Some("ask"), None, 1));
    let history = world.agents.session_history("test", &world.app(), "s-old").await.unwrap().unwrap();
    let said: Vec<_> = history.iter().map(|message| (message.role.as_str(), message.content.as_str())).collect();
    assert_eq!(said, [("user", "hello"), ("assistant", "hi there\n\nIt is built.")]);
    assert_eq!(world.agents.sessions("test", &world.app(), None).await.unwrap(), None);
}

#[tokio::test]
async fn the_same_prompt_again_is_not_given_twice() {
    let mut world = World::new("");
    let (turn, prompted) = world.prompt("say once").await;
    prompted.unwrap();
    world.turns -= 1;
    let (again, prompted) = world.prompt("say once").await;
    prompted.unwrap();
    assert_eq!(turn, again);
    assert_eq!(text(&world.end(&turn).await), "once ");
}

#[tokio::test]
async fn turns_beyond_the_places_wait_for_one() {
    let mut world = World::with("", |options| options.max_active = Some(1));
    let (first, prompted) = world.prompt("slow").await;
    prompted.unwrap();
    let second = AgentTurn { chat: ChatId(Uuid::from_u128(3)), turn: TurnId(Uuid::from_u128(300)), ..first };
    let thread = ThreadAgent { agent: "test".into(), cwd: world.app(), options: AgentOptions::default() };
    let content = vec![json!({ "type": "text", "text": "say me too" })];
    let prompt = AgentPrompt { turn: second, thread, content, context: String::new(), own_mode: false };
    let mut prompting = Box::pin(world.agents.prompt(prompt));
    assert!(timeout(Duration::from_millis(200), &mut prompting).await.is_err(), "it waits");
    assert!(world.agents.updates(&second).await.is_err(), "nothing is started for it");
    world.agents.cancel(&first).await.unwrap();
    prompting.await.unwrap();
    assert_eq!(text(&world.end(&second).await).trim(), "me too");
}

#[tokio::test]
async fn words_of_an_agent_have_no_secret_in_them() {
    let mut world = World::new("");
    assert_eq!(world.said("say hunter2-secret").await, "[redacted] ");
    let (_, request) = world.asked("ask curl -H hunter2-secret").await;
    assert!(!format!("{request:?}").contains("hunter2"), "{request:?}");
    let (turn, prompted) = world.prompt("sh printf hunter2-; printf secret").await;
    prompted.unwrap();
    assert!(!format!("{:?}", world.end(&turn).await).contains("hunter2-secret"));
}
