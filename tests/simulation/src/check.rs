//! Asks every invariant about a world at rest.

use crate::{
    invariants::{self as must, Held, StoredFile, Violation},
    person::{Person, Sent},
    watcher::Watcher,
    world::World,
};
use actor::Entry;
use chat::TurnUsage;
use domain::{CallId, ChatEvent, ChatId, FilePath, Sha256, TeamFact, TurnId};
use ports::Item;
use std::{collections::BTreeSet, path::Path, time::Duration};
use tokio::time::sleep;
use workspace::Workspaces;

/// All faults of the stored state of `chat`.
pub(crate) fn stored(world: &World, chat: ChatId, person: &Person, watcher: &Watcher) -> Vec<Violation> {
    let log = world.log(chat, 1);
    let sent: Vec<Sent> = person.sent.iter().filter(|sent| sent.chat == chat).cloned().collect();
    let actor = chat::actor_id(world.workspace, chat);
    let own = world.table.partition(actor.as_str());
    let snapshot = own.iter().find(|item| item.key.sk == "snapshot").map(|item| item.body.as_str());
    let views = world.table.partition(&format!("{}/chats", world.workspace));
    let view = views.iter().find(|item| item.key.sk == chat.to_string()).map(|item| item.body.as_str());
    let waiting = world.table.partition(&format!("{}/waiting", world.workspace));
    let waiting = waiting.iter().find(|item| item.key.sk == chat.to_string()).map(|item| item.body.as_str());
    let usage = world.table.partition(&format!("{}/usage", world.workspace));
    let of_chat = usage.iter().filter(|item| item.key.sk.contains(&chat.to_string()));
    let records: Vec<TurnUsage> = usage.iter().filter_map(|item| serde_json::from_str(&item.body).ok()).collect();
    let (own, others): (Vec<_>, Vec<_>) = records.into_iter().partition(|record| record.chat_id == chat);
    let of_agents: Vec<TurnUsage> = others.into_iter().filter(|one| one.parent_chat_id == Some(chat)).collect();
    let agents: Vec<Vec<Entry<ChatEvent>>> = agents_of(&log).into_iter().map(|agent| world.log(agent, 1)).collect();
    let usage: Vec<TurnId> = of_chat.filter_map(|item| item.key.sk.rsplit('/').next()?.parse().ok()).collect();
    let (versions, records) = files(world);
    let noted = world.book.lock().clone();
    let held = [
        must::prompts_were_given_once(&noted),
        must::agents_heard_their_own_answers(&log, &noted),
        must::agents_updates_are_in_the_log(&log, &noted),
        must::entries_are_contiguous(&log),
        must::commands_were_consumed_once(&log),
        must::accepted_messages_became_turns(&log, &sent),
        must::turns_began_and_ended_once(&log),
        must::deleted_chats_stay_deleted(&log, view, person.deleted.get(&chat).copied()),
        must::attempts_count_up(&log),
        must::calls_were_answered_once(&log),
        must::compactions_lose_nothing(&log),
        must::history_can_be_sent_to_a_model(&log),
        must::nothing_is_stranded(&log, &world.queue.messages(), &world.queue.dead()),
        must::snapshot_is_a_fold(&log, snapshot),
        must::view_is_that_of_the_fold(&log, view),
        must::waiting_is_that_of_the_fold(&log, waiting),
        must::usage_was_recorded_once(&log, &usage),
        must::usage_adds_up(&log, &own, &of_agents),
        must::steps_were_done_once(&log, &agents),
        must::steps_of_plans_ended_once(&log),
        must::steps_have_one_live_agent(&agents),
        must::stream_brought_each_event_once(&log, &watcher.seen()),
        must::writes_took_effect_once(&log, &versions, &records),
    ];
    held.into_iter().filter_map(Held::err).collect()
}

/// The chats that a person made and did not delete, and those of the agents that were begun for them.
pub(crate) fn chats_of(world: &World, person: &Person) -> BTreeSet<ChatId> {
    let own = person.chats.iter().copied().filter(|chat| !person.deleted.contains_key(chat));
    own.flat_map(|chat| agents_of(&world.log(chat, 1)).into_iter().chain([chat])).collect()
}

/// The agents that were begun for a chat.
fn agents_of(log: &must::Log) -> BTreeSet<ChatId> {
    let members = |event: &ChatEvent| match event {
        ChatEvent::Team { fact } => match &**fact {
            TeamFact::Started { members, .. } => members.iter().map(|member| member.chat_id).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    log.iter().flat_map(|entry| &entry.events).flat_map(members).collect()
}

/// Every version with its call, by file and number; and the calls that are remembered.
pub(crate) fn files(world: &World) -> (Vec<must::Versioned>, Vec<CallId>) {
    let (versions, calls) = (format!("{}/versions/", world.workspace), format!("{}/calls", world.workspace));
    let version = |item: &Item| {
        let file = item.key.pk.strip_prefix(&versions)?.parse().ok()?;
        let version: workspace::Version = serde_json::from_str(&item.body).ok()?;
        Some((file, version.v, version.call_id))
    };
    let records = world.table.partition(&calls);
    (
        world.table.items().iter().filter_map(version).collect(),
        records.iter().filter_map(|item| item.key.sk.parse().ok()).collect(),
    )
}

/// All that is wrong with the folders behind `workspaces`, and with the files of chats.
pub(crate) async fn on_disk(world: &World, workspaces: &Workspaces, person: &Person) -> Vec<Violation> {
    let workspace =
        until_done(async || workspaces.open(world.workspace, workspace::Access::platform("a test")).await).await;
    let (found, _) = until_done(async || workspace.list_tree(&FilePath::root(), 10_000).await).await;
    let index = found.into_iter().filter(|info| info.kind != workspace::FileKind::Projection);
    let index: BTreeSet<StoredFile> = index
        .map(|info| StoredFile { path: info.path.to_string(), digest: info.sha256.map(|digest| digest.to_string()) })
        .collect();
    let mut disk = BTreeSet::new();
    walk(&workspace.latest(), "", &mut disk);
    // The file of a deleted chat is to be gone like any other: it is in the trash.
    let chats = chats_of(world, person);
    let files: Vec<String> = chats.iter().map(|chat| format!("/chats/{chat}.md")).collect();
    disk.retain(|file| !files.contains(&file.path));
    let mut wrong: Vec<Violation> = must::latest_agrees_with_the_index(&index, &disk).err().into_iter().collect();
    for (chat, file) in chats.iter().zip(&files) {
        let log = world.log(*chat, 1);
        if !log.is_empty() {
            let path = workspace.latest().join(file.trim_start_matches('/'));
            let text = std::fs::read_to_string(path).unwrap_or_default();
            wrong.extend(must::chat_file_agrees_with_the_log(&log, &text).err());
        }
    }
    wrong
}

fn walk(folder: &Path, above: &str, found: &mut BTreeSet<StoredFile>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = format!("{above}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            walk(&entry.path(), &path, found);
            found.insert(StoredFile { path, digest: None });
        } else {
            let content = std::fs::read(entry.path()).unwrap_or_default();
            found.insert(StoredFile { path, digest: Some(Sha256::of(&content).to_string()) });
        }
    }
}

/// Calls until the stores have answered.
pub(crate) async fn until_done<T>(call: impl AsyncFn() -> workspace::Result<T>) -> T {
    loop {
        if let Ok(answer) = call().await {
            return answer;
        }
        sleep(Duration::from_millis(20)).await;
    }
}
