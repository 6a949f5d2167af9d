//! Pages of histories.

use super::{chat, done, get, hub, started, thread, turn};
use crate::support::Reply;
use domain::TurnId;
use serde_json::{Value, json};
use uuid::Uuid;

#[tokio::test]
async fn a_history_has_pages_from_the_newest_turn_on() {
    let (door, cwd, _place) = hub();
    let thread = thread(&door, &cwd).await;
    turn(&door, &thread).await.is(202);
    let ids: Vec<Uuid> = (1..=3).map(Uuid::from_u128).collect();
    let events = ids.iter().flat_map(|id| [started(&id.to_string()), done(TurnId(*id))]).collect();
    door.put_events(&chat(&door, &thread).await, events).await;
    let page = async |query: &str| get(&door, &format!("{thread}/history{query}")).await;
    let shown = |reply: Reply| {
        let json = reply.is(200).json;
        let turns = json["turns"].as_array().unwrap().iter().map(|turn| turn["turnId"].clone()).collect::<Vec<_>>();
        (json!(turns), json["nextCursor"].clone())
    };
    assert_eq!(shown(page("").await), (json!(ids), Value::Null));
    assert_eq!(shown(page("?limit=2").await), (json!(ids[1..]), json!(ids[1])));
    assert_eq!(shown(page(&format!("?limit=2&cursor={}", ids[1])).await), (json!(ids[..1]), Value::Null));
    page(&format!("?cursor={}", Uuid::from_u128(9))).await.refuses(400, "INVALID_ARGUMENT");
    page("?limit=0").await.refuses(400, "INVALID_ARGUMENT");
}
