//! The file of a chat follows its log, also after others have changed it.

use crate::{first_turn::Begun, hub::Hub};
use buildscale_chat::Transcript;
use std::fs;

#[tokio::test]
async fn a_file_that_is_ahead_of_its_log_is_written_anew() {
    let begun = Begun::of(Hub::new().await).await;
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
    let begun = Begun::of(Hub::new().await).await;
    fs::remove_file(begun.on_disk().await).unwrap();
    begun.turn("second").await;
    begun.has_once(&["first", "second"]).await;
}

#[tokio::test]
async fn a_file_that_was_changed_on_the_disk_is_written_anew_with_the_next_message() {
    let begun = Begun::of(Hub::new().await).await;
    let at = begun.on_disk().await;
    fs::write(&at, begun.text().await.unwrap() + "noise\n").unwrap();
    begun.turn("second").await;
    begun.has_once(&["first", "second"]).await;
    assert!(!begun.text().await.unwrap().contains("noise"));
    let cut = begun.text().await.unwrap().replace("\n\nsecond\n\n", "\n\n");
    fs::write(&at, cut).unwrap();
    begun.turn("third").await;
    begun.has_once(&["first", "second", "third"]).await;
}
