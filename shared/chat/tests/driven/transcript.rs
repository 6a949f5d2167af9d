//! The file of a chat follows its log, also after others have changed it.

use crate::hub::Hub;
use buildscale_chat::{NewChat, NewMessage, Transcript};
use domain::{ChatId, CommandId, FilePath, Principal};
use ports::Clock;
use std::{fs, path::PathBuf};
use workspace::{Access, Workspace};

/// A chat that has had its first turn.
struct Begun {
    hub: Hub,
    chat: ChatId,
}

impl Begun {
    async fn new() -> Self {
        let hub = Hub::new().await;
        let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
        let new = NewChat { goal: "first".into(), ..NewChat::default() };
        hub.chats.create(hub.workspace, chat, command, new, &Principal::local()).await.unwrap();
        hub.settle().await;
        Self { hub, chat }
    }

    /// One more turn. The process has the chat in memory, so it does not read the file again.
    async fn turn(&self, words: &str) {
        let post = NewMessage { content: words.into(), ..NewMessage::default() };
        let command = CommandId(self.hub.clock.id());
        self.hub.chats.post(self.hub.workspace, self.chat, command, post, &Principal::local()).await.unwrap();
        self.hub.settle().await;
    }

    async fn files(&self) -> Workspace {
        self.hub.workspaces.open(self.hub.workspace, Access::platform("a test")).await.unwrap()
    }

    fn at(&self) -> FilePath {
        format!("/chats/{}.md", self.chat).parse().unwrap()
    }

    async fn on_disk(&self) -> PathBuf {
        self.files().await.latest().join(self.at().relative())
    }

    async fn text(&self) -> String {
        fs::read_to_string(self.on_disk().await).unwrap()
    }

    /// Its file begins as that of every chat, and has each of these messages once.
    async fn has_once(&self, messages: &[&str]) {
        let text = self.text().await;
        assert!(text.starts_with(&format!("---\nchat: {}\n", self.chat)), "{text}");
        for words in messages {
            assert_eq!(text.matches(&format!("\n\n{words}\n\n")).count(), 1, "{words}: {text}");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_ahead_of_its_log_is_written_anew() {
    let begun = Begun::new().await;
    let whole = begun.text().await;
    let mut file = begun.files().await.projection(&begun.at()).unwrap();
    // As after a power cut that took the newest commits, and not the text of their events.
    file.append("## user · then\n\nlost\n\n<!-- 9999 -->\n").await.unwrap();
    let transcript = Transcript::new(begun.hub.log.clone(), begun.hub.workspaces.clone());
    transcript.catch_up(begun.hub.workspace, begun.chat).await.unwrap();
    assert_eq!(begun.text().await, whole);
}

#[tokio::test]
async fn a_file_that_the_disk_has_lost_has_all_messages_after_the_next_one() {
    let begun = Begun::new().await;
    fs::remove_file(begun.on_disk().await).unwrap();
    begun.turn("second").await;
    begun.has_once(&["first", "second"]).await;
}

#[tokio::test]
async fn a_file_that_was_changed_on_the_disk_is_written_anew_with_the_next_message() {
    let begun = Begun::new().await;
    let at = begun.on_disk().await;
    fs::write(&at, begun.text().await + "noise\n").unwrap();
    begun.turn("second").await;
    begun.has_once(&["first", "second"]).await;
    assert!(!begun.text().await.contains("noise"));
    let cut = begun.text().await.replace("\n\nsecond\n\n", "\n\n");
    fs::write(&at, cut).unwrap();
    begun.turn("third").await;
    begun.has_once(&["first", "second", "third"]).await;
}
