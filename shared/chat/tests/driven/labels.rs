//! Labels of chats: kept from the first moment on, changed one by one, and copied by forks.

use crate::hub::Hub;
use buildscale_chat::{ForkPoint, NewChat, Setup};
use domain::{ChatId, CommandId, Error, LabelChanges, Labels, Principal};
use ports::Clock;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    Labels::checked("labels", pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))).unwrap()
}

#[tokio::test]
async fn labels_are_kept_changed_one_by_one_and_copied_by_forks() {
    let hub = Hub::new().await;
    let (by, chat) = (Principal::local(), ChatId(hub.clock.id()));
    hub.put("/projects/app/in.md", "input").await;
    let first = labels(&[("customer", "c-17"), ("ticket", "4")]);
    let new = NewChat { goal: "look at it".into(), labels: first.clone(), ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, CommandId(hub.clock.id()), new, &by).await.unwrap();
    let shown = async || hub.chats.get(hub.workspace, chat).await.unwrap().labels;
    assert_eq!(shown().await, first, "before the chat begins");
    hub.drive().await;
    assert_eq!(shown().await, first);

    let set = async |labels: LabelChanges| {
        let setup = Setup { labels, ..Setup::default() };
        hub.chats.configure(hub.workspace, chat, setup, &by).await?;
        hub.drive().await;
        Ok::<_, Error>(())
    };
    set([("customer".to_owned(), Some("c-18".to_owned())), ("ticket".to_owned(), None)].into()).await.unwrap();
    assert_eq!(shown().await, labels(&[("customer", "c-18")]));
    let ids = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let fork = hub.chats.fork(hub.workspace, chat, ForkPoint::Now, ids, None, &by).await.unwrap();
    assert_eq!(fork.labels, labels(&[("customer", "c-18")]));

    let many =
        |count: usize| -> LabelChanges { (0..count).map(|number| (number.to_string(), Some(String::new()))).collect() };
    assert_eq!(set(many(16)).await.unwrap_err().details["field"], "labels", "seventeen together");
    set(many(15)).await.unwrap();
    assert_eq!(shown().await.pairs().count(), 16);
}
