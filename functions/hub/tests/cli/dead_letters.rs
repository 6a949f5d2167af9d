//! Messages that a hub put aside, as its operator sees them.

use crate::support::{ANYWHERE, Hub, metrics, text};
use embedded::{Options, Store};
use ports::{DeadLetterQueue, QueueMessage, QueueReceiver, QueueSender, SystemClock};
use std::{path::Path, sync::Arc, time::Duration};

/// No worker knows actors of this kind: what is sent to them again stays in the queue.
const GROUP: &str = "nobody/w/1";

/// A store in which a message was tried in vain.
async fn with_a_dead_letter(folder: &Path) {
    let options = || Options { max_attempts: 1, ..Options::default() };
    let open = || Store::open(folder.join("buildscale.sqlite3"), Arc::new(SystemClock), options()).unwrap();
    let store = open();
    let (group, id) = (GROUP.to_owned(), "m1".to_owned());
    let message = QueueMessage { group, id, body: "SECRET words".into(), ..QueueMessage::default() };
    store.queue().send(vec![message]).await.unwrap();
    assert_eq!(store.queue().receive(1, Duration::ZERO).await.unwrap().len(), 1);
    assert_eq!(store.queue().dead_letters(9).await.unwrap().len(), 1);
    store.close().await;
}

#[tokio::test]
async fn an_operator_lists_dead_letters_and_sends_them_again() {
    let folder = tempfile::tempdir().unwrap();
    with_a_dead_letter(folder.path()).await;
    let hub = Hub::start(folder.path(), ANYWHERE, &[]);
    let counted = || {
        let metrics = metrics(&hub.address).unwrap();
        metrics.lines().find_map(|line| line.strip_prefix("buildscale_queue_dead ")?.parse::<u64>().ok())
    };
    assert_eq!(counted(), Some(1));
    let doctor = text(&hub.run(&["doctor", "--data-dir", folder.path().to_str().unwrap()]).stdout);
    assert!(doctor.contains("queue: messages put aside after too many attempts: 1\n"), "{doctor}");
    let listed = text(&hub.run(&["dead-letters"]).stdout);
    assert!(listed.contains(GROUP) && !listed.contains("SECRET"), "{listed}");

    let wrong = hub.run(&["dead-letters", "redrive", "chat/w/2"]);
    assert_eq!(wrong.status.code(), Some(3), "{}", text(&wrong.stderr));
    assert!(text(&wrong.stderr).contains("`buildscale dead-letters` lists"), "{}", text(&wrong.stderr));
    assert_eq!(hub.run(&["dead-letters", "redrive"]).status.code(), Some(2), "all of them are asked for by name");
    let sent = hub.run(&["dead-letters", "redrive", "--all"]);
    assert_eq!(text(&sent.stdout), "1 message sent again\n", "{}", text(&sent.stderr));
    assert_eq!(counted(), Some(0));
    assert_eq!(text(&hub.run(&["dead-letters"]).stderr), "no dead letters\n");
}
