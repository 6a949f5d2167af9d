//! Files of chats on a machine whose disk is only a cache.

use crate::hub::Hub;
use async_trait::async_trait;
use buildscale_chat::{NewChat, NewMessage, Transcript};
use domain::{ChatId, CommandId, FilePath, Principal};
use ports::{Clock, IndexQuery, Item, Key, Page, Query, Table, Write};
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use testkit::fakes::FakeTable;
use workspace::{Budget, Workspaces};

/// A table that counts its requests.
struct Counted {
    table: Arc<FakeTable>,
    asked: AtomicUsize,
}

#[async_trait]
impl Table for Counted {
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.table.get(key).await
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.table.query(query).await
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.table.query_index(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> ports::Result<()> {
        self.table.commit(writes).await
    }
}

#[tokio::test]
async fn a_search_asks_about_chats_of_which_something_was_said_and_no_others() {
    let hub = Hub::new().await;
    let by = Principal::local();
    let mut chats = Vec::new();
    for goal in ["one", "two", "three", "four", "five", "six", "seven", "eight"] {
        let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
        let new = NewChat { goal: goal.into(), ..NewChat::default() };
        hub.chats.create(hub.workspace, chat, command, new, &by).await.unwrap();
        chats.push(chat);
    }
    hub.drive().await;

    let disk = tempfile::tempdir().unwrap();
    let table = Arc::new(Counted { table: hub.table.clone(), asked: AtomicUsize::new(0) });
    let (blobs, clock) = (hub.blobs.clone(), hub.clock.clone());
    let cold = Workspaces::new(table.clone(), blobs, clock, disk.path().into()).caching(Budget::default());
    cold.project_on_read(Arc::new(Transcript::new(table.clone(), cold.clone())));
    let files = cold.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let folder: FilePath = "/chats".parse().unwrap();
    let text = |chat: ChatId| fs::read_to_string(files.latest().join(format!("chats/{chat}.md"))).unwrap();
    let asked = async || {
        table.asked.store(0, Ordering::SeqCst);
        files.hydrate(&folder).await.unwrap();
        table.asked.load(Ordering::SeqCst)
    };
    let for_all = asked().await;
    assert!(for_all > chats.len(), "there was no file: {for_all}");
    assert!(chats.iter().all(|chat| text(*chat).contains("## assistant")));
    // The place of the folder, its files, and the views of the chats: three requests for any number of chats.
    let for_none = asked().await;
    assert_eq!(for_none, 3);

    let post = NewMessage { content: "more".into(), ..NewMessage::default() };
    hub.chats.post(hub.workspace, chats[2], CommandId(hub.clock.id()), post, &by).await.unwrap();
    hub.drive().await;
    let for_one = asked().await;
    let most = for_none + (for_all - for_none) / chats.len();
    assert!(for_one > for_none && for_one <= most, "{for_one} of {most}");
    assert!(text(chats[2]).contains("\n\nmore\n\n"), "{}", text(chats[2]));
    assert_eq!(asked().await, for_none);
}
