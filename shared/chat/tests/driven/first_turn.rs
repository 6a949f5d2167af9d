//! A chat that has had its first turn, and its file.

use crate::hub::Hub;
use buildscale_chat::{NewChat, NewMessage};
use domain::{ChatId, CommandId, FilePath, Principal};
use ports::Clock;
use std::{fs, path::PathBuf};
use workspace::{Access, Workspace};

/// A chat whose first message was `first`, and the hub that it is in.
pub struct Begun {
    pub hub: Hub,
    pub chat: ChatId,
}

impl Begun {
    pub async fn of(hub: Hub) -> Self {
        let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
        let new = NewChat { goal: "first".into(), ..NewChat::default() };
        hub.chats.create(hub.workspace, chat, command, new, &Principal::local()).await.unwrap();
        hub.settle().await;
        Self { hub, chat }
    }

    /// One more turn. The process has the chat in memory, so it does not read the file again.
    pub async fn turn(&self, words: &str) {
        let post = NewMessage { content: words.into(), ..NewMessage::default() };
        let command = CommandId(self.hub.clock.id());
        self.hub.chats.post(self.hub.workspace, self.chat, command, post, &Principal::local()).await.unwrap();
        self.hub.settle().await;
    }

    pub async fn files(&self) -> Workspace {
        self.hub.workspaces.open(self.hub.workspace, Access::platform("a test")).await.unwrap()
    }

    /// The path of its file.
    pub fn at(&self) -> FilePath {
        format!("/chats/{}.md", self.chat).parse().unwrap()
    }

    pub async fn on_disk(&self) -> PathBuf {
        self.files().await.latest().join(self.at().relative())
    }

    /// The text of its file, as readers of the disk find it.
    pub async fn text(&self) -> Option<String> {
        fs::read_to_string(self.on_disk().await).ok()
    }

    /// Its file begins as that of every chat, and has each of these messages once.
    pub async fn has_once(&self, messages: &[&str]) {
        let text = self.text().await.unwrap();
        assert!(text.starts_with(&format!("---\nchat: {}\n", self.chat)), "{text}");
        for words in messages {
            assert_eq!(text.matches(&format!("\n\n{words}\n\n")).count(), 1, "{words}: {text}");
        }
    }
}
