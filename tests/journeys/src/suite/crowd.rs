//! Two people and the agents of three chats work on one folder at the same time: each write is a version, or a refusal that its writer saw.

use super::Stage;
use crate::{Answer, Client, Event, Other, Result, answered, count};
use domain::{Code, FileId, Sha256};
use futures::future::{try_join, try_join_all};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testkit::{
    Random,
    crowd::{Attempt, Histories, HistoryVersion, faults},
};

const FOLDER: &str = "/projects/shared";
/// Files that all of them want.
const FILES: u64 = 3;
/// Attempts of a person at these files.
const ATTEMPTS: usize = 24;
const CHATS: usize = 3;
const TURNS: usize = 3;
/// The calls of a turn: see the rule of the script.
const CALLS: usize = 10;

type Outcome = std::result::Result<(FileId, u64), Code>;

pub(super) async fn two_people_and_three_agents_write_one_folder(stage: Stage) -> Result {
    let (ann, Other { client: bob, subject }) = (stage.client(), stage.shared.other()?);
    let place = ann.place().await?;
    ann.post(&format!("{place}/members"), json!({ "subject": subject, "role": "editor" })).await?;
    let people = try_join_all([person(&ann, &place, "ann", 1), person(&bob, &place, "bob", 2)]);
    let agents = try_join_all((0..CHATS).map(|number| converse(&ann, &place, number)));
    let (people, told) = try_join(people, agents).await?;

    let histories = histories(&ann, &place).await?;
    let mut by_writer = people;
    let mut refused = Vec::new();
    for events in &told {
        let agent = Agent::of(events, &histories)?;
        by_writer.push(agent.attempts);
        refused.extend(agent.refused);
    }
    let wrote = |attempt: &&Attempt| attempt.content.is_some() && attempt.outcome.is_ok();
    assert!(by_writer.iter().all(|attempts| attempts.iter().any(|attempt| wrote(&attempt))), "each of them wrote");
    let attempts: Vec<Attempt> = by_writer.into_iter().flatten().collect();
    assert_eq!(faults(&attempts, &histories), [""; 0]);
    let versions: usize = histories.values().map(Vec::len).sum();
    assert_eq!(attempts.iter().filter(wrote).count(), versions);
    for line in refused {
        let has_it = |kept: &HistoryVersion| String::from_utf8_lossy(&kept.content).contains(&line);
        assert!(!histories.values().flatten().any(has_it), "a refused edit is there: {line}");
    }
    Ok(())
}

/// One person: reads a file, then puts, edits or moves it as the version that they read; in the end they make a file of their own.
async fn person(client: &Client, place: &str, name: &str, seed: u64) -> Result<Vec<Attempt>> {
    let me = client.get(&format!("{place}/members/me")).await?;
    let by = format!("user:{}", me["user_id"].as_str().ok_or("no user_id")?);
    let (mut random, mut attempts, files) = (Random::new(seed), Vec::new(), format!("{place}/files"));
    let attempt = |base, content: Option<String>, outcome| Attempt {
        by: by.clone(),
        base,
        content: content.map(Into::into),
        outcome,
    };
    for number in 0..ATTEMPTS {
        let (at, line) = (random.below(FILES), format!("by {name} {number}\n"));
        let path = format!("{FOLDER}/{at}.md");
        let found = client.look(&format!("{files}/by-path?path={path}")).await?;
        if found.status == 404 {
            let content = format!("{line}end\n");
            let made = make(client, &files, &path, &content).await?;
            attempts.push(attempt(None, Some(content), made));
            continue;
        }
        let (file, v) = version(&found.good()?)?;
        let current = format!("{files}/{file}");
        let content = match random.below(4) {
            0 => {
                let to = json!({ "path": format!("{FOLDER}/{}.md", (at + 1) % FILES) });
                let moved = outcome(&client.ask(Method::PATCH, &current, to).await?)?;
                assert!(moved.is_err() || moved.is_ok_and(|(moved, _)| moved == file), "another file was moved");
                attempts.push(attempt(None, None, moved));
                continue;
            }
            1 => format!("{line}end\n"),
            _ => {
                let read = client.look(&format!("{current}/versions/{v}/content")).await?.is(200)?.text();
                read.replacen("end\n", &format!("{line}end\n"), 1)
            }
        };
        let put = client.request(Method::PUT, &current).header("if-match", format!("\"{v}\""));
        let put = outcome(&client.send(put.json(&json!({ "content": content }))).await?)?;
        attempts.push(attempt(Some((file, v)), Some(content), put));
    }
    let content = format!("by {name}\n");
    let made = make(client, &files, &format!("{FOLDER}/{name}.md"), &content).await?;
    attempts.push(attempt(None, Some(content), made));
    assert_eq!(attempts.len(), ATTEMPTS + 1);
    Ok(attempts)
}

async fn make(client: &Client, files: &str, path: &str, content: &str) -> Result<Outcome> {
    outcome(&client.ask(Method::POST, files, json!({ "path": path, "content": content })).await?)
}

fn version(file: &Value) -> Result<(FileId, u64)> {
    Ok((serde_json::from_value(file["file_id"].clone())?, file["v"].as_u64().ok_or("no v")?))
}

fn outcome(answer: &Answer) -> Result<Outcome> {
    let body = answer.json();
    match answer.status.is_success() {
        true => Ok(Ok(version(&body)?)),
        false => Ok(Err(serde_json::from_value(body["error"]["code"].clone())?)),
    }
}

/// One chat, turn after turn: its events.
async fn converse(client: &Client, place: &str, number: usize) -> Result<Vec<Event>> {
    let chat = client.chat(place, &format!("share-{number}-1")).await?;
    let watch = client.watch(&chat);
    for turn in 2..=TURNS {
        watch.until_nth("done", turn - 1).await?;
        client.post(&chat, json!({ "content": format!("share-{number}-{turn}") })).await?;
    }
    watch.until_nth("done", TURNS).await?;
    Ok(watch.events())
}

/// All versions of all files of the folder, as people read them.
async fn histories(client: &Client, place: &str) -> Result<Histories> {
    let (files, mut histories) = (format!("{place}/files"), Histories::new());
    let listed = client.get(&format!("{files}?path={FOLDER}&limit=200")).await?;
    for entry in listed["entries"].as_array().ok_or("no entries")? {
        let (file, current) = version(entry)?;
        let listed = client.get(&format!("{files}/{file}/versions?limit=200")).await?;
        let mut versions = Vec::new();
        for one in listed["versions"].as_array().ok_or("no versions")?.iter().rev() {
            let v = one["v"].as_u64().ok_or("no v")?;
            let content = client.look(&format!("{files}/{file}/versions/{v}/content")).await?.is(200)?;
            // The versions of an agent say the call that made them: the agents have one name.
            let author = one["call_id"].as_str().or(one["author"].as_str()).ok_or("no author")?.to_owned();
            let sha256: Sha256 = serde_json::from_value(one["sha256"].clone())?;
            let size = one["size"].as_u64().ok_or("no size")?;
            versions.push(HistoryVersion { v, author, sha256, size, content: content.bytes.clone().into() });
        }
        let now = client.look(&format!("{files}/{file}/content")).await?.is(200)?;
        assert_eq!(versions.last().map(|last| (last.v, last.content.to_vec())), Some((current, now.bytes.clone())));
        assert!(histories.insert(file, versions).is_none(), "{file} has two places");
    }
    Ok(histories)
}

/// The agent of a chat, as its events tell of it.
#[derive(Default)]
struct Agent {
    attempts: Vec<Attempt>,
    /// The lines of its refused edits.
    refused: Vec<String>,
    /// The versions that it has read or written last, by path.
    known: BTreeMap<String, (FileId, u64)>,
}

impl Agent {
    fn of(events: &[Event], histories: &Histories) -> Result<Self> {
        let (mut agent, answered) = (Self::default(), answered(events)?);
        for (call, answer) in &answered {
            agent.observed(call["call_id"].as_str().unwrap_or_default(), call, answer, histories)?;
        }
        let counts = (answered.len(), count(events, "call"));
        assert_eq!(counts, (TURNS * CALLS, TURNS * CALLS), "each call is answered once");
        Ok(agent)
    }

    fn observed(&mut self, id: &str, call: &Value, answer: &Value, histories: &Histories) -> Result {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (tool, args, output) = (text(&call["tool"]), &call["args"], text(&answer["output"]));
        let (path, edit) = (text(&args["path"]), &args["edits"][0]);
        let mut attempt = Attempt { by: id.to_owned(), base: None, content: None, outcome: Err(Code::Internal) };
        if answer["success"] != true {
            attempt.outcome = Err(serde_json::from_value(answer["code"].clone())?);
            match tool.as_str() {
                "write" => attempt.content = Some(text(&args["content"]).into()),
                "edit" => self.refused.push(text(&edit["new"])),
                _ => {}
            }
            self.attempts.push(attempt);
            return Ok(());
        }
        let of = |fits: &dyn Fn(&HistoryVersion) -> bool| {
            histories.iter().find_map(|(file, all)| all.iter().find(|kept| fits(kept)).map(|kept| (*file, kept.v)))
        };
        match tool.as_str() {
            "read" => {
                let hash: Sha256 = between(&output, "hash ", "]")?.parse()?;
                let read = of(&|kept| kept.sha256 == hash).ok_or_else(|| format!("nobody wrote {output}"))?;
                self.known.insert(path, read);
            }
            "mv" => {
                let (from, to) = (text(&args["from"]), text(&args["to"]));
                if let Some(moved) = self.known.remove(&from) {
                    self.known.insert(to, moved);
                }
            }
            "write" | "edit" => {
                let v: u64 = between(&output, "version ", ",")?.parse()?;
                let (file, _) = of(&|kept| kept.author == id).ok_or_else(|| format!("lost: {output}"))?;
                let content = match tool.as_str() {
                    "write" => text(&args["content"]),
                    _ => {
                        let before =
                            histories[&file].iter().find(|kept| kept.v + 1 == v).ok_or("an edit of nothing")?;
                        let before = String::from_utf8_lossy(&before.content);
                        before.replacen(&text(&edit["old"]), &text(&edit["new"]), 1)
                    }
                };
                (attempt.base, attempt.outcome) = (self.known.insert(path, (file, v)), Ok((file, v)));
                attempt.content = Some(content.into());
                self.attempts.push(attempt);
            }
            other => return Err(format!("{other} is not in the script").into()),
        }
        Ok(())
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Result<&'a str> {
    let rest = text.split_once(before).map(|(_, rest)| rest);
    let found = rest.and_then(|rest| rest.split_once(after)).map(|(found, _)| found);
    found.ok_or_else(|| format!("no {before}… in {text}").into())
}
