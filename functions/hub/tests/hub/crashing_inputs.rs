//! Inputs that end the hub. No input is known that does, so the test ends it: by SIGKILL, while the hub notes that it computes on one.

use crate::support::{Client, Hub, PATIENCE, Result, start};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, path::Path, time::Duration};
use tokio::time::timeout;

const MIB: usize = 1024 * 1024;

/// The lines of the current computations: a letter, the input, the place.
fn computed(data: &Path) -> Vec<String> {
    let text = fs::read_to_string(data.join("crashes/computing")).unwrap_or_default();
    text.lines().filter(|line| !line.starts_with('.')).map(|line| line.trim_end().to_owned()).collect()
}

/// Kills the hub as soon as the lines of what it computes fit.
async fn kill_when(hub: &mut Hub, data: &Path, fits: impl Fn(&[String]) -> bool) -> Result<Vec<String>> {
    let seen = async {
        loop {
            let lines = computed(data);
            if fits(&lines) {
                return lines;
            }
            tokio::task::yield_now().await;
        }
    };
    let seen = timeout(PATIENCE, seen).await?;
    hub.kill().await?;
    Ok(seen)
}

/// The lines of what computes at this route or file.
fn at<'a>(lines: &'a [String], alone: char, place: &str) -> Vec<&'a String> {
    lines.iter().filter(|line| line.starts_with(alone) && line.contains(place)).collect()
}

/// A workspace with files that take seconds to search, when the pattern is hard.
async fn to_search(client: &Client) -> Result<String> {
    let place = client.place().await?;
    let content = "abcdefghijklmnopqrstuvwxyz ".repeat(30 * MIB / 27);
    for name in ["one", "two"] {
        let file = client.file(&place, &format!("/data/{name}.txt"), "x").await?;
        let long = client.request(Method::PUT, &format!("{file}/content")).body(content.clone());
        client.send(long).await?.is(200)?;
    }
    Ok(place)
}

/// A search that looks at each byte many times.
fn hard(context: u32) -> Value {
    json!({ "tool": "grep", "args": { "pattern": "[a-q][^u-z]{13}x|([a-f]|[a-z ]{0,90}){3}[A-Z]", "context": context, "path": "/data" } })
}

#[tokio::test]
async fn an_input_that_ends_the_hub_is_tried_again_alone_and_then_not_at_all() -> Result {
    let data = tempfile::tempdir()?;
    fs::write(data.path().join(crate::support::LOG), "")?;
    let mut hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = to_search(&client).await?;
    let tools = format!("{place}/tools");
    let search = |context| {
        let (client, tools) = (client.clone(), tools.clone());
        tokio::spawn(async move { client.call(Method::POST, &tools, hard(context)).await.ok() })
    };

    // It dies once beside others, then three times alone. The marks name the request and the file, and nothing of the content.
    let searching = search(1);
    let seen = kill_when(&mut hub, data.path(), |lines| {
        !at(lines, 'c', "/tools").is_empty() && !at(lines, 'c', "a search of").is_empty()
    });
    let seen = seen.await?;
    assert!(seen.iter().all(|line| !line.contains("ghijk")), "nothing of the content is told: {seen:?}");
    assert_eq!(searching.await?, None);
    for _ in 0..3 {
        hub.restart().await?;
        let (searching, beside) = (search(1), client.clone());
        let others = tokio::spawn(async move { while beside.look("/api/v1/workspaces").await.is_ok() {} });
        let seen = kill_when(&mut hub, data.path(), |lines| {
            !at(lines, 'a', "/tools").is_empty() && !at(lines, 'a', "a search of").is_empty()
        });
        let seen = seen.await?;
        assert_eq!(at(&seen, 'c', "").len(), 0, "nothing computes beside it: {seen:?}");
        assert_eq!(searching.await?, None);
        others.await?;
    }

    hub.restart().await?;
    let refused = client.ask(Method::POST, &tools, hard(1)).await?.refuses(422, "QUARANTINED")?;
    assert!(refused.to_string().contains("ended the server's process 3 times"), "{refused}");
    // Any difference makes another request, which leaves out the file that the hub died in.
    let easy = json!({ "tool": "grep", "args": { "pattern": "xyz", "mode": "count" } });
    let other = client.post(&tools, easy).await?;
    let not_searched = other["result"]["not_searched"].as_array().map_or(0, Vec::len);
    assert!(other["success"] == true && (1..=2).contains(&not_searched), "{other}");
    assert!(other["output"].as_str().is_some_and(|text| text.contains("the server died of searching it")), "{other}");
    let ready = client.get("/ready").await?;
    assert!(ready["degraded"]["inputs"].as_str().is_some_and(|text| text.starts_with("refused")), "{ready}");
    let counted = client.look("/metrics").await?.text();
    assert!(counted.contains("buildscale_crash_refused 2\n"), "the request and the file: {counted}");
    assert!(!counted.contains("buildscale_crash_refusals_total 0\n"), "{counted}");
    let log = fs::read_to_string(data.path().join(crate::support::LOG))?;
    for told in
        ["the hub before this one ended in the middle of this", "the hub died of this input, which is not tried again"]
    {
        assert!(log.contains(told), "{told} is in the log");
    }
    // A file with new content is searched again.
    for name in ["one", "two"] {
        let file = client.get(&format!("{place}/files/by-path?path=/data/{name}.txt")).await?;
        let content = format!("{place}/files/{}/content", file["file_id"].as_str().ok_or("no file_id")?);
        client.send(client.request(Method::PUT, &content).body("xyz")).await?.is(200)?;
    }
    let other = client.post(&tools, json!({ "tool": "grep", "args": { "pattern": "xyz" } })).await?;
    assert_eq!((&other["result"]["total"], &other["result"]["not_searched"]), (&json!(2), &Value::Null), "{other}");
    Ok(())
}

#[tokio::test]
async fn a_hub_that_is_killed_while_many_requests_run_refuses_none_of_them() -> Result {
    const REQUESTS: usize = 200;
    let data = tempfile::tempdir()?;
    let mut hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let file = client.file(&place, "/data/a.md", "some text").await?;
    let ask = |number: usize| {
        let (client, place, file) = (client.clone(), place.clone(), file.clone());
        async move {
            match number % 4 {
                0 => client.call(Method::GET, &format!("{file}/content"), Value::Null).await,
                1 => client.call(Method::GET, &format!("{place}/files?path=/data"), Value::Null).await,
                2 => {
                    let search = json!({ "tool": "grep", "args": { "pattern": format!("text{number}?") } });
                    client.call(Method::POST, &format!("{place}/tools"), search).await
                }
                _ => {
                    let path = format!("/data/{number}.md");
                    let edit = json!({ "tool": "write", "args": { "path": path, "content": "more" } });
                    client.call(Method::POST, &format!("{place}/tools"), edit).await
                }
            }
        }
    };
    let all = || join_all((0..REQUESTS).map(ask));
    // Each time at the worst moment: when an input is computed, alone if there is one.
    // An input may come to its end before the kill reaches the hub, so the rounds count in which some were left.
    let (mut left, mut rounds) = (0, 0);
    while left < 3 && rounds < 20 {
        let asking = tokio::spawn(all());
        kill_when(&mut hub, data.path(), |lines| !lines.is_empty()).await?;
        let _ = asking.await?;
        left += usize::from(!computed(data.path()).is_empty());
        rounds += 1;
        hub.restart().await?;
    }
    assert!(left > 0, "some were computed when it was killed");
    let answers = timeout(PATIENCE + Duration::from_secs(60), all()).await?;
    let refused: Vec<_> =
        answers.into_iter().filter(|answer| !answer.as_ref().is_ok_and(|(status, _)| *status == 200)).collect();
    // The content is text, and no JSON: a request without one is answered all the same.
    assert!(refused.is_empty(), "{refused:?}");
    let counted = client.look("/metrics").await?.text();
    assert!(
        counted.contains("buildscale_crash_refusals_total 0\n") && counted.contains("buildscale_crash_refused 0\n"),
        "{counted}"
    );
    // A stop that is asked for and then forced, as by a deploy, makes no suspects.
    let asking = tokio::spawn(all());
    hub.terminate().await?;
    let _ = asking.await?;
    assert_eq!(fs::read(data.path().join("crashes/computing"))?, b"");
    Ok(())
}
