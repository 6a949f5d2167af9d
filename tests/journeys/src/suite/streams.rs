//! Event streams: left, taken up again, and opened by tickets.

use super::Stage;
use crate::{Client, Event, Result, count};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// A chat that has had a turn, and the events of it.
async fn with_a_turn(client: &Client, goal: &str) -> Result<(String, String, Vec<Event>)> {
    let place = client.place().await?;
    let chat = client.chat(&place, goal).await?;
    let watch = client.watch(&chat);
    watch.until_event("done").await?;
    Ok((place, chat, watch.events()))
}

pub(super) async fn a_stream_goes_on_wherever_it_was_left(stage: Stage) -> Result {
    let client = stage.client();
    let (_, chat, seen) = with_a_turn(&client, "leave and come back").await?;
    assert!(seen.len() > 5, "{seen:?}");
    let events = format!("{chat}/events");
    assert_eq!(client.open(&format!("{events}?after=0")).await?.until_event("done").await?, seen);
    for left in [0, seen.len() / 2, seen.len() - 2] {
        let (after, rest) = (seen[left].id, &seen[left + 1..]);
        let resumed = client.open(&format!("{events}?after={after}")).await?.until_event("done").await?;
        assert_eq!(resumed, rest, "by ?after={after}");
        // The browser's own header counts more than the cursor in the address that was first opened.
        let request = client.request(Method::GET, &format!("{events}?after=0")).header("last-event-id", after);
        let resumed = client.open_with(request).await?.until_event("done").await?;
        assert_eq!(resumed, rest, "by Last-Event-ID: {after}");
    }
    // A number that no event has is no error: the client is told to begin anew.
    let reset = client.open(&format!("{events}?after=999999999")).await?.until_event("reset").await?;
    assert_eq!(reset.last().map(|event| &event.data["reason"]), Some(&json!("unknown_cursor")));
    client.look(&format!("{events}?protocol=odd")).await?.refuses(400, "INVALID_ARGUMENT")?;
    Ok(())
}

pub(super) async fn one_connection_sees_turn_after_turn(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let chat = client.chat(&place, "hello").await?;
    let stream = client.open(&format!("{chat}/events?after=0")).await?;
    let watch = client.watch(&chat);
    for turn in 1..=3 {
        watch.until_nth("done", turn).await?;
        if turn < 3 {
            client.post(&chat, json!({ "content": format!("hello again {turn}") })).await?;
        }
    }
    let seen = stream.until(|events| count(events, "done") == 3).await?;
    assert_eq!(seen, watch.events(), "one connection, from the first event to the last");
    Ok(())
}

pub(super) async fn a_ticket_opens_its_stream_and_nothing_else(stage: Stage) -> Result {
    let client = stage.client();
    let (place, chat, seen) = with_a_turn(&client, "with a ticket").await?;
    let other = client.chat(&place, "without one").await?;
    let id = chat.rsplit('/').next().unwrap_or_default();
    let made = client.ask(Method::POST, &format!("{place}/stream-tickets"), json!({ "chat_id": id })).await?.is(201)?;
    assert_eq!(made.header("cache-control"), "no-store");
    let (ticket, url) = (made.json()["ticket"].clone(), made.json()["url"].clone());
    let (ticket, url) = (ticket.as_str().ok_or("no ticket")?, url.as_str().ok_or("no url")?);

    // As `EventSource` does, which can send no token; and comes again by itself.
    let browser = client.with_token(None);
    for _ in 0..2 {
        assert_eq!(browser.open(&format!("{url}&after=0")).await?.until_event("done").await?, seen);
    }
    // A ticket may bring its cursor along.
    let cursor = seen.first().ok_or("no event")?.id;
    let wanted = json!({ "chat_id": id, "after": cursor });
    let made = client.ask(Method::POST, &format!("{place}/stream-tickets"), wanted).await?.is(201)?.json();
    let from_cursor = made["url"].as_str().ok_or("no url")?;
    assert_eq!(browser.open(from_cursor).await?.until_event("done").await?, seen[1..]);
    for path in [format!("{other}/events?after=0&ticket={ticket}"), format!("{chat}?ticket={ticket}")] {
        assert_eq!(browser.look(&path).await?.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert_eq!(browser.look(&format!("{chat}/events?after=0")).await?.status, StatusCode::UNAUTHORIZED);
    let both = json!({ "chat_id": id, "task_id": id });
    let made = client.ask(Method::POST, &format!("{place}/stream-tickets"), both).await?;
    assert_eq!(made.status, StatusCode::BAD_REQUEST, "one ticket opens one stream");
    Ok(())
}

pub(super) async fn a_workspace_tells_its_watchers_of_every_change(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let before = client.file(&place, "/projects/before.md", "there before").await?;
    // As a page does: it opens the stream, and then loads the current state.
    let watch = client.watch_live(&place).await?;
    let told = |name: &'static str, of: Value| {
        move |event: &Event| {
            let fits = |(key, value): (&String, &Value)| event.data[key] == *value;
            event.name == name && of.as_object().is_some_and(|of| of.iter().all(fits))
        }
    };

    // A person changes files.
    let file = client.file(&place, "/projects/a.md", "first").await?;
    let id = file.rsplit('/').next().unwrap_or_default().to_owned();
    let is_written = told("file_updated", json!({ "path": "/projects/a.md", "v": 1, "op": "written", "file_id": id }));
    watch.until(|events| events.iter().any(&is_written)).await?;
    client.ask(Method::PATCH, &file, json!({ "path": "/projects/b.md" })).await?.is(200)?;
    let is_moved = told("file_updated", json!({ "path": "/projects/b.md", "from": "/projects/a.md", "op": "moved" }));
    watch.until(|events| events.iter().any(&is_moved)).await?;
    client.ask(Method::DELETE, &before, Value::Null).await?.is(200)?;
    let is_removed = told("file_updated", json!({ "path": "/projects/before.md", "v": 0, "op": "removed" }));
    watch.until(|events| events.iter().any(&is_removed)).await?;

    // An agent does, in a chat that the client does not watch.
    let chat = client.chat(&place, "watched").await?;
    let chat_id = chat.rsplit('/').next().unwrap_or_default().to_owned();
    let by_agent = told("file_updated", json!({ "path": "/projects/watched/a.md", "v": 2, "kind": "file" }));
    let is_running = told("chat_updated", json!({ "chat_id": chat_id, "status": "running" }));
    let is_idle = told("chat_updated", json!({ "chat_id": chat_id, "status": "idle", "waiting_for": 0 }));
    watch
        .until(|events| {
            let first = |fits: &dyn Fn(&Event) -> bool| events.iter().position(fits);
            first(&by_agent).is_some() && first(&is_running).zip(first(&is_idle)).is_some_and(|(run, idle)| run < idle)
        })
        .await?;

    // A task runs.
    client.flow(&place, "choice", &[("workflow.yaml", testkit::flows::CHOICE)]).await?;
    let task = client.run(&place, "choice", json!({ "good": true })).await?;
    let is_finished =
        told("task_updated", json!({ "task_id": task["task_id"], "flow": "choice", "phase": "finished" }));
    watch.until(|events| events.iter().any(&is_finished)).await?;

    client.ask(Method::DELETE, &chat, Value::Null).await?;
    let is_deleted = told("chat_deleted", json!({ "chat_id": chat_id }));
    watch.until(|events| events.iter().any(&is_deleted)).await?;

    // A client that was away gets the events that it missed; events that it had may come again.
    let seen = watch.events();
    let left = seen.iter().position(&is_moved).ok_or("not told")?;
    let missed = client.watch_after(&place, seen[left].id);
    missed.until(|events| events.iter().any(&is_removed) && events.iter().any(&by_agent)).await?;
    let all = client.open(&format!("{place}/events?after=0")).await?.until(|all| all.iter().any(&by_agent)).await?;
    let versions = all.iter().filter(|event| is_written(event)).count();
    assert_eq!(versions, 1, "in one stream each change comes once: {all:#?}");
    assert!(all.iter().any(told("file_updated", json!({ "path": "/projects/before.md", "v": 1 }))), "{all:#?}");
    let odd = client.open(&format!("{place}/events?after=99999999999999")).await?.until_event("reset").await?;
    assert_eq!(odd.last().map(|event| &event.data["reason"]), Some(&json!("unknown_cursor")));

    // A page has no token in its stream's headers.
    let made = client.ask(Method::POST, &format!("{place}/stream-tickets"), json!({})).await?.is(201)?.json();
    let url = made["url"].as_str().ok_or("no url")?;
    let browser = client.with_token(None);
    browser.open(&format!("{url}&after=0")).await?.until(|events| events.iter().any(&is_moved)).await?;
    assert_eq!(browser.look(&format!("{place}/events")).await?.status, StatusCode::UNAUTHORIZED);
    Ok(())
}
