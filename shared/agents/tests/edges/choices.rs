//! The options of a thread, the agent's own choices of them, and the attachments that it takes.

use super::{World, text};
use domain::{AgentOptions, ChatId, ThreadAgent, TurnId, WorkspaceId};
use ports::{AgentPrompt, AgentTurn, AgentUpdate, Agents, Error};
use serde_json::json;
use uuid::Uuid;

#[tokio::test]
async fn an_agent_gets_the_attachments_that_it_takes_and_links_to_the_others() {
    let content = vec![
        json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=", "uri": "file:///projects/a.png" }),
        json!({ "type": "audio", "mimeType": "audio/wav", "data": "UklGRg==", "uri": "file:///projects/b.wav" }),
        json!({ "type": "resource", "resource": { "uri": "file:///projects/c.md", "text": "# C" } }),
        json!({ "type": "text", "text": "kinds" }),
    ];
    let link = "resource_link";
    for (start, expected) in [
        ("sees", ["image", link, link]),
        ("hears", [link, "audio", link]),
        ("embeds", [link, link, "resource"]),
        ("", [link, link, link]),
    ] {
        let mut world = World::new(start);
        let (turn, prompted) = world.prompt_with(content.clone()).await;
        prompted.unwrap();
        let said = text(&world.end(&turn).await);
        let kinds: Vec<String> = serde_json::from_str(&said).unwrap();
        assert_eq!(kinds.len(), 5, "the conversation so far, the attachments, and the words: {said}");
        assert_eq!(kinds[1..4], expected, "{start}: {said}");
    }
}

#[tokio::test]
async fn a_choice_of_the_agent_is_told_and_the_next_prompt_with_it_finds_the_same_process() {
    let mut world = World::new("");
    let (turn, prompted) = world.prompt("choose plan high").await;
    prompted.unwrap();
    let updates = world.end(&turn).await;
    let choices: Vec<_> = updates
        .iter()
        .filter_map(|update| match update {
            AgentUpdate::Session(update) if AgentOptions::is_choice(update) => Some(update),
            _ => None,
        })
        .collect();
    assert_eq!((&choices[0]["currentModeId"], &choices[1]["changed"]), (&json!("plan"), &json!(["effort"])));
    let mut options = AgentOptions::default();
    assert!(choices.into_iter().all(|choice| options.follow(choice)));
    let session = |updates: &[AgentUpdate]| {
        updates.iter().find_map(|update| match update {
            AgentUpdate::Bound { session } => Some(session.clone()),
            _ => None,
        })
    };
    let first = session(&updates);
    let again = async |world: &mut World, options: AgentOptions| {
        world.turns += 1;
        let turn = AgentTurn { turn: TurnId(Uuid::from_u128(100 + world.turns)), ..turn };
        let thread = ThreadAgent { agent: "test".into(), cwd: world.app(), options };
        let content = vec![json!({ "type": "text", "text": "settings" })];
        world
            .agents
            .prompt(AgentPrompt { turn, thread, content, context: String::new(), own_mode: false })
            .await
            .unwrap();
        world.end(&turn).await
    };
    let followed = again(&mut world, options).await;
    assert_eq!(session(&followed), first);
    assert!(!text(&followed).contains("plan"), "nothing was set again in the process: {}", text(&followed));
    let started = again(&mut world, AgentOptions { mode: Some("ask".into()), ..AgentOptions::default() }).await;
    assert!(text(&started).contains("\"mode\": \"ask\""), "other settings need another process: {}", text(&started));
}

#[tokio::test]
async fn an_option_that_an_agent_does_not_offer_is_refused_by_name_when_its_session_begins() {
    let world = World::new("");
    assert_eq!(world.agents.told_offers("test", &world.app()).await, None, "nothing is started for that");
    let turn = AgentTurn {
        workspace: WorkspaceId(Uuid::from_u128(1)),
        chat: ChatId(Uuid::from_u128(2)),
        turn: TurnId(Uuid::from_u128(100)),
    };
    let options = AgentOptions { mode: Some("fly".into()), ..AgentOptions::default() };
    let thread = ThreadAgent { agent: "test".into(), cwd: world.app(), options };
    let content = vec![json!({ "type": "text", "text": "say hi" })];
    let prompted =
        world.agents.prompt(AgentPrompt { turn, thread, content, context: String::new(), own_mode: false }).await;
    let Err(Error::Invalid(why)) = prompted else { panic!("{prompted:?}") };
    assert_eq!(why, "the agent's option mode has no value \"fly\"; one of: ask, plan");
    let told = world.agents.told_offers("test", &world.app()).await.unwrap();
    assert_eq!((told.modes.len(), told.options.len()), (2, 1), "it has told its offers now");
    let options = AgentOptions { mode: Some("unlisted".into()), ..AgentOptions::default() };
    let thread = ThreadAgent { agent: "test".into(), cwd: world.app(), options };
    let content = vec![json!({ "type": "text", "text": "say hi" })];
    let prompted =
        world.agents.prompt(AgentPrompt { turn, thread, content, context: String::new(), own_mode: false }).await;
    assert!(prompted.is_ok(), "the agent takes what it did not list: {prompted:?}");
}

#[tokio::test]
async fn a_mode_that_the_agent_chose_itself_and_refuses_later_gives_way_to_its_default() {
    let world = World::new("");
    let turn = |number| AgentTurn {
        workspace: WorkspaceId(Uuid::from_u128(1)),
        chat: ChatId(Uuid::from_u128(2)),
        turn: TurnId(Uuid::from_u128(number)),
    };
    let prompt = async |turn: AgentTurn, options: &AgentOptions| {
        let thread = ThreadAgent { agent: "test".into(), cwd: world.app(), options: options.clone() };
        let content = vec![json!({ "type": "text", "text": "settings" })];
        let prompt = AgentPrompt { turn, thread, content, context: String::new(), own_mode: true };
        world.agents.prompt(prompt).await.unwrap();
        world.end(&turn).await
    };
    let session =
        |updates: &[AgentUpdate]| updates.iter().find(|one| matches!(one, AgentUpdate::Bound { .. })).cloned();
    let mut options = AgentOptions { mode: Some("fly".into()), ..AgentOptions::default() };
    let updates = prompt(turn(100), &options).await;
    let choice = updates.iter().find_map(|update| match update {
        AgentUpdate::Session(update) if AgentOptions::is_choice(update) => Some(update),
        _ => None,
    });
    let choice = choice.unwrap();
    assert_eq!((&choice["currentModeId"], &choice["_meta"]["refused"]), (&json!("ask"), &json!("fly")));
    assert!(!text(&updates).contains("mode"), "the session has the agent's own: {}", text(&updates));
    assert!(options.follow(choice));
    let next = prompt(turn(101), &options).await;
    assert_eq!(session(&next), session(&updates), "the thread that has followed finds the same process");
    assert!(!next.iter().any(|one| matches!(one, AgentUpdate::Session(one) if AgentOptions::is_choice(one))));
}
