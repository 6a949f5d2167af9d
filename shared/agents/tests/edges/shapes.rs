//! Messages of another shape than that of the protocol.

use super::World;
use ports::{AgentUpdate, Error};

#[tokio::test]
async fn updates_of_another_shape_end_no_turn() {
    let mut world = World::new("");
    assert_eq!(world.said("odd").await, "still here");
}

#[tokio::test]
async fn a_session_without_a_name_or_with_an_endless_one_is_none() {
    for start in ["nameless", "named"] {
        let (_, prompted) = World::new(start).prompt("say hello").await;
        let why = prompted.unwrap_err();
        assert!(matches!(&why, Error::Unavailable { .. }), "{start}: {why}");
        assert!(why.with_causes().contains("gave its session no name of 1 to 1024 bytes"), "{}", why.with_causes());
    }
}

#[tokio::test]
async fn an_agent_that_nobody_has_signed_in_to_says_how_and_starts_afresh_with_the_next_message() {
    let told = "Test wants a sign-in: Authentication required. Sign in with its own program where it runs, \
        or give it a key in `env` and choose its `auth` in the configuration: chatgpt, api-key";
    let (_, prompted) = World::new("out").prompt("say hello").await;
    let Err(Error::Unavailable { source, .. }) = prompted else { panic!("nobody has signed in") };
    assert_eq!(source.to_string(), told);
    // One that was signed out while it ran.
    let mut world = World::new("");
    let before = world.said("settings").await;
    let (turn, prompted) = world.prompt("logout").await;
    prompted.unwrap();
    assert_eq!(world.end(&turn).await.pop(), Some(AgentUpdate::Gone { reason: told.into() }));
    let after = world.said("settings").await;
    assert_ne!(before, after, "another process has another session");
}

#[tokio::test]
async fn a_failure_under_the_number_of_a_missing_sign_in_is_told_as_it_is() {
    let mut world = World::new("");
    let (turn, prompted) = world.prompt("overloaded").await;
    prompted.unwrap();
    let told = AgentUpdate::Gone { reason: "the agent failed: the model is overloaded".into() };
    assert_eq!(world.end(&turn).await.pop(), Some(told));
}

#[tokio::test]
async fn of_a_reason_that_is_none_of_the_protocol_the_beginning_is_told() {
    let mut world = World::new("");
    let (turn, prompted) = world.prompt("because why").await;
    prompted.unwrap();
    let Some(AgentUpdate::Ended { stop_reason }) = world.end(&turn).await.pop() else { panic!("it has ended") };
    assert!(stop_reason.starts_with("whywhy") && stop_reason.len() < 210, "{stop_reason}");
}
