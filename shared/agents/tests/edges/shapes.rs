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
async fn of_a_reason_that_is_none_of_the_protocol_the_beginning_is_told() {
    let mut world = World::new("");
    let (turn, prompted) = world.prompt("because why").await;
    prompted.unwrap();
    let Some(AgentUpdate::Ended { stop_reason }) = world.end(&turn).await.pop() else { panic!("it has ended") };
    assert!(stop_reason.starts_with("whywhy") && stop_reason.len() < 210, "{stop_reason}");
}
