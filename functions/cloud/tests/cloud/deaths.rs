//! Invocations that end before the turn does: by their deadline, and by death.

use crate::world::{Event, Options, Result, World, count};
use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

/// A turn of so many calls of a tool, each after a model that takes about a second.
fn long(calls: usize) -> String {
    let mut script = "rules:\n- steps:\n".to_owned();
    for n in 0..calls {
        let call = format!("{{tool: write, args: {{path: '/projects/{n}.md', content: 'one'}}}}");
        let _ = writeln!(script, "  - {{text: 'I go on with it.', chunks: 10, delay_ms: 100, calls: [{call}]}}");
    }
    script.push_str("  - {text: 'All is done.'}\n");
    script
}

/// Each call was observed once, by any attempt, and the turn ended once.
fn whole(events: &[Event], calls: usize) {
    let mut observed = BTreeMap::new();
    for event in events.iter().filter(|event| event.name == "observation") {
        *observed.entry(event.data["call_id"].to_string()).or_insert(0) += 1;
    }
    assert_eq!(observed.len(), calls, "{observed:?}");
    assert!(observed.values().all(|times| *times == 1), "{observed:?}");
    assert_eq!(count(events, "done"), 1);
    assert!(events.windows(2).all(|pair| pair[0].id < pair[1].id), "in order, each once");
    let last = events.last().unwrap();
    assert_eq!(last.data["message"], "All is done.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_outlasts_its_invocation_goes_on_in_the_next() -> Result {
    const CALLS: usize = 14;
    // Ten seconds of work, and twenty to come to an end in.
    let timeout = Duration::from_secs(10) + buildscale_cloud::worker::MARGIN;
    let world = World::deploy(Options { script: long(CALLS), timeout, ..Options::default() }).await?;
    let chat = world.client.chat(&world.client.place().await?, "go").await?;
    let watch = world.client.watch(&chat);
    watch.until_event("done").await?;
    let events = watch.events();
    whole(&events, CALLS);
    assert!(count(&events, "turn_started") >= 2, "it had to be continued");
    let log = world.log_of("worker");
    assert!(log.contains("the deadline is near"), "{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_is_replaced_within_its_lease_and_nothing_is_done_twice() -> Result {
    const CALLS: usize = 4;
    let world = World::deploy(Options { script: long(CALLS), ..Options::default() }).await?;
    let place = world.client.place().await?;
    let chat = world.client.chat(&place, "go").await?;
    let watch = world.client.watch(&chat);
    watch.until_event("observation").await?;
    assert_eq!(world.worker.kill_busy(), 1);
    watch.until_event("done").await?;
    let events = watch.events();
    whole(&events, CALLS);
    let attempts =
        events.iter().filter(|event| event.name == "turn_started").map(|event| event.data["attempt"].as_u64());
    assert_eq!(attempts.collect::<Vec<_>>(), [Some(1), Some(2)]);
    for n in 0..CALLS {
        let path = format!("/projects/{n}.md");
        let file = world.client.get(&format!("{place}/files/by-path?path={path}")).await?;
        assert_eq!(file["v"], 1, "{path}");
    }
    Ok(())
}
