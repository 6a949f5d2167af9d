//! The invariants of the state that a deployment leaves, after any fault: those of the simulator.

use crate::lane::{Lane, chat_id};
use actor::{ActorId, Entry};
use aws::S3Blobs;
use domain::{CallId, ChatEvent, TaskId, TurnId};
use emulators::account;
use journeys::{Event, Watch};
use ports::{Key, Query, Spilling, Table};
use serde::de::DeserializeOwned;
use simulation::{
    Seen,
    invariants::{self as must, Family, Held, Versioned},
};
use std::sync::Arc;

impl Lane {
    /// The table that the functions have written, read apart from all processes.
    pub fn table(&self) -> Arc<dyn Table> {
        let s3 = aws_sdk_s3::config::Builder::from(&account::sdk(self.world.s3.endpoint())).force_path_style(true);
        let blobs = S3Blobs::new(aws_sdk_s3::Client::from_conf(s3.build()), &self.world.name);
        Arc::new(Spilling::new(Arc::new(self.world.table()), Arc::new(blobs)))
    }

    /// The log of a chat.
    pub async fn log(&self, chat: &str) -> Vec<Entry<ChatEvent>> {
        self.log_of(&chat::actor_id(self.workspace, chat_id(chat))).await
    }

    async fn log_of<E: DeserializeOwned>(&self, actor: &ActorId) -> Vec<Entry<E>> {
        let (table, mut log) = (self.table(), Vec::<Entry<E>>::new());
        loop {
            let after = log.last().map_or(0, |entry| entry.next - 1);
            let page = actor::read_after(&*table, actor, after, 200).await.unwrap();
            log.extend(page.entries.into_iter().filter(|entry| entry.first > after));
            if !page.more {
                return log;
            }
        }
    }

    /// All that must hold of a chat at rest, after any faults: of its log, of its projections, and of the events that a
    /// watcher saw.
    pub async fn check(&self, chat: &str, watch: &Watch, what: &str) {
        self.settled().await;
        let (id, table) = (chat_id(chat), self.table());
        let log = self.log(chat).await;
        let body = async |key: Key| table.get(&key).await.unwrap().map(|item| item.body);
        let snapshot = body(chat::actor_id(self.workspace, id).snapshot_key()).await;
        let view = body(Key::new(format!("{}/chats", self.workspace), id.to_string())).await;
        let last = log.iter().flat_map(Entry::numbered).filter(|(_, event)| domain::native::encode(event).is_some());
        let last = last.map(|(number, _)| number).last().unwrap_or_default();
        watch.until(|events| events.last().is_some_and(|event| event.id >= last)).await.unwrap();
        let seen: Vec<Seen> = watch.events().into_iter().map(seen).collect();
        let usage = self.items(&format!("{}/usage", self.workspace)).await.into_iter();
        let of_chat = usage.filter(|(sk, _)| sk.contains(&id.to_string()));
        let usage: Vec<TurnId> = of_chat.filter_map(|(sk, _)| sk.rsplit('/').next()?.parse().ok()).collect();
        let (versions, records) = self.files(&log).await;
        let held = [
            must::entries_are_contiguous(&log),
            must::commands_were_consumed_once(&log),
            must::turns_began_and_ended_once(&log),
            must::attempts_count_up(&log),
            must::calls_were_answered_once(&log),
            must::history_can_be_sent_to_a_model(&log),
            must::nothing_is_stranded(&log, &[], &[]),
            must::snapshot_is_a_fold(&log, snapshot.as_deref()),
            must::view_is_that_of_the_fold(&log, view.as_deref()),
            must::usage_was_recorded_once(&log, &usage),
            must::stream_brought_each_event_once(&log, &seen),
            must::writes_took_effect_once(&log, &versions, &records),
        ];
        let broken: Vec<_> = held.into_iter().filter_map(Held::err).map(|violation| violation.to_string()).collect();
        assert!(broken.is_empty(), "{what}: {broken:#?}\n{log:#?}\n{}", self.world.log());
    }

    /// All that must hold of the tasks of the workspace, when each has ended: of their logs.
    pub async fn check_tasks(&self, what: &str) {
        self.settled().await;
        let mut family = Family::new();
        for (task, _) in self.items(&format!("{}/tasks", self.workspace)).await {
            let task: TaskId = task.parse().unwrap();
            family.insert(task, self.log_of(&engine::machine::actor_id(self.workspace, task)).await);
        }
        let mut held = vec![
            must::tasks_end_once(&family),
            must::merges_begin_once(&family),
            must::children_were_forked(&family),
            must::arrivals_are_taken_in_once(&family),
            must::node_attempts_count_up(&family),
        ];
        for log in family.values() {
            held.extend([must::entries_are_contiguous(log), must::commands_were_consumed_once(log)]);
        }
        let broken: Vec<_> = held.into_iter().filter_map(Held::err).map(|violation| violation.to_string()).collect();
        assert!(!family.is_empty() && broken.is_empty(), "{what}: {broken:#?}\n{family:#?}\n{}", self.world.log());
    }

    /// The versions of the files that a log tells of, and the calls that the workspace remembers.
    async fn files(&self, log: &[Entry<ChatEvent>]) -> (Vec<Versioned>, Vec<CallId>) {
        let mut files: Vec<_> = log.iter().flat_map(|entry| &entry.events).filter_map(file_of).collect();
        files.sort_unstable();
        files.dedup();
        let mut versions = Vec::new();
        for file in files {
            for (_, body) in self.items(&format!("{}/versions/{file}", self.workspace)).await {
                let version: workspace::Version = serde_json::from_str(&body).unwrap();
                versions.push((file, version.v, version.call_id));
            }
        }
        let calls = self.items(&format!("{}/calls", self.workspace)).await;
        (versions, calls.into_iter().filter_map(|(sk, _)| sk.parse().ok()).collect())
    }

    /// The sort keys and bodies of a partition.
    async fn items(&self, partition: &str) -> Vec<(String, String)> {
        let (table, mut query, mut items) = (self.table(), Query::all(partition, 200), Vec::new());
        loop {
            let page = table.query(&query).await.unwrap();
            items.extend(page.items.into_iter().map(|item| (item.key.sk, item.body)));
            match page.next {
                Some(next) => query = query.after(Some(next)),
                None => return items,
            }
        }
    }
}

fn file_of(event: &ChatEvent) -> Option<domain::FileId> {
    match event {
        ChatEvent::FileUpdated { file_id, .. } => Some(*file_id),
        _ => None,
    }
}

fn seen(event: Event) -> Seen {
    Seen { number: event.id, name: event.name, data: event.data.to_string() }
}
