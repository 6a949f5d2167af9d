//! Documents are driven to their end through lost messages, later versions and deaths, over stores in memory.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::ActorDriver;
use async_trait::async_trait;
use buildscale_documents::Documents;
use bytes::Bytes;
use domain::{ConversionStatus, FilePath, Principal, Usage, WorkspaceId};
use ports::{
    Clock, Converted, Converter, Delivery, Described, Describer, ModelError, NotConverted, NotTaken, QueueMessage,
    Receipt, SystemClock,
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use testkit::fakes::{FakeBlobs, FakeQueue, FakeTable, Faults};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use workspace::{Expect, Info, Purpose, Workspace, Workspaces, Writer, documents::SHARDS};

const PATH: &str = "/data/a.pdf";

/// Answers with the content, after it has written another version if it is told to.
#[derive(Default)]
struct Echo {
    calls: AtomicUsize,
    writes_meanwhile: Mutex<Option<Workspace>>,
}

#[async_trait]
impl Converter for Echo {
    async fn convert(&self, _: &str, content: Bytes) -> Result<Converted, NotConverted> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let meanwhile = self.writes_meanwhile.lock().unwrap().take();
        if let Some(workspace) = meanwhile {
            write(&workspace, "the second").await;
        }
        let markdown = String::from_utf8(content.to_vec()).unwrap();
        if markdown.contains("broken") {
            return Err(NotConverted::Failed { reason: "damaged".into(), message: "it is damaged".into() });
        }
        if markdown.contains("picture") {
            let facts = vec![("format".into(), "png".into())];
            return Ok(Converted { kind: "image".into(), facts, markdown });
        }
        Ok(Converted { kind: "pdf".into(), facts: Vec::new(), markdown })
    }
}

/// Sees what it is told to see, as often as it is told.
#[derive(Default)]
struct Eyes {
    says: Mutex<Vec<Result<Described, ModelError>>>,
}

#[async_trait]
impl Describer for Eyes {
    fn model(&self) -> &str {
        "fake/eyes"
    }

    fn takes(&self, media_type: &str, length: usize) -> Result<(), NotTaken> {
        assert_eq!(media_type, "image/png");
        if length > 20 { Err(NotTaken::Longer(20)) } else { Ok(()) }
    }

    async fn describe(&self, _: &str, _: Bytes) -> Result<Described, ModelError> {
        self.says.lock().unwrap().pop().unwrap_or_else(|| Err(ModelError::Unavailable("away".into())))
    }
}

struct World {
    all: Workspaces,
    queue: Arc<FakeQueue>,
    echo: Arc<Echo>,
    documents: Documents,
    workspace: Workspace,
    _root: TempDir,
}

async fn write(workspace: &Workspace, content: &str) {
    let by = Writer::new(Principal::local());
    workspace.write(&FilePath::parse(PATH).unwrap(), content.to_owned(), Expect::Any, &by).await.unwrap();
}

impl World {
    async fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        let queue = Arc::new(FakeQueue::new(clock.clone(), 1, Faults::none(), 100));
        let root = TempDir::new().unwrap();
        let blobs = Arc::new(FakeBlobs::new(1, Faults::none()));
        let all = Workspaces::new(table, blobs, clock, root.path().into()).converting(queue.clone());
        let id = WorkspaceId(Uuid::now_v7());
        all.create(id, "test", &Principal::local()).await.unwrap();
        let echo = Arc::new(Echo::default());
        let documents = Documents::new(all.clone(), echo.clone(), 1);
        let workspace = all.open(id, workspace::Access::platform("a test")).await.unwrap();
        Self { all, queue, echo, documents, workspace, _root: root }
    }

    /// Drives the document of all its messages at this attempt, by this driver.
    async fn drive_at(&self, documents: &Documents, attempt: u32) -> usize {
        let message = self.queue.messages().pop().unwrap();
        let (group, id, body) = (message.group, message.id, message.body);
        let delivery = Delivery { group, id, body, attempt, receipt: Receipt(String::new()) };
        documents.deliver(&[delivery], &CancellationToken::new()).await.done
    }

    /// Drives the documents of these messages; the number of those that were dealt with.
    async fn drive(&self, messages: Vec<QueueMessage>) -> usize {
        let delivery = |message: QueueMessage| Delivery {
            group: message.group,
            id: message.id,
            body: message.body,
            attempt: 1,
            receipt: Receipt(String::new()),
        };
        let deliveries: Vec<Delivery> = messages.into_iter().map(delivery).collect();
        self.documents.deliver(&deliveries, &CancellationToken::new()).await.done
    }

    async fn info(&self) -> Info {
        self.workspace.stat(&FilePath::parse(PATH).unwrap()).await.unwrap()
    }

    async fn status(&self) -> ConversionStatus {
        self.info().await.conversion.unwrap().status
    }

    async fn markdown(&self) -> String {
        let content = self.workspace.markdown_of(&self.info().await).await.unwrap().unwrap();
        String::from_utf8(content.bytes.to_vec()).unwrap()
    }
}

#[tokio::test]
async fn a_picture_is_described_or_its_state_says_why_not() {
    let world = World::new().await;
    let state = async || {
        let conversion = world.info().await.conversion.unwrap();
        (conversion.status, conversion.reason.unwrap_or_default())
    };
    let done = |reason: &str| (ConversionStatus::Done, reason.to_owned());
    write(&world.workspace, "picture 1").await;
    assert_eq!(world.drive_at(&world.documents, 1).await, 1);
    assert_eq!(state().await, done("no_model"));
    assert!(world.markdown().await.contains("\nnot_described: \"no_model\"\n"), "{}", world.markdown().await);

    let eyes = Arc::new(Eyes::default());
    let documents = world.documents.clone().describing(Some(eyes.clone()));
    write(&world.workspace, "a picture that is too long").await;
    assert_eq!(world.drive_at(&documents, 1).await, 1);
    assert_eq!(state().await, done("too_large"));

    let usage = Usage { input_tokens: 5, output_tokens: 2, ..Usage::default() };
    let told = Described { text: " A red *bridge*. ".into(), usage };
    eyes.says.lock().unwrap().extend([Ok(told), Err(ModelError::Rejected("no".into()))]);
    write(&world.workspace, "picture 2").await;
    assert_eq!(world.drive_at(&documents, 1).await, 1);
    assert_eq!(state().await, done("model_refused"));
    write(&world.workspace, "picture 3").await;
    assert_eq!(world.drive_at(&documents, 1).await, 1);
    assert_eq!(state().await, done(""));
    let markdown = world.markdown().await;
    assert!(markdown.contains("\ndescribed_by: \"fake/eyes\"\n"), "{markdown}");
    assert!(markdown.ends_with("picture 3\n\n## Description\n\nA red *bridge*.\n"), "{markdown}");
    let spent = world.workspace.spent("2000-01-01", "2999-12-31").await.unwrap();
    assert_eq!(
        spent.iter().map(|it| (it.purpose, it.calls, it.usage)).collect::<Vec<_>>(),
        [(Purpose::Description, 1, usage)]
    );

    // A model that is away is waited for, and not for ever.
    write(&world.workspace, "picture 4").await;
    assert_eq!(world.drive_at(&documents, 1).await, 0);
    assert_eq!(world.status().await, ConversionStatus::Running);
    assert_eq!(world.drive_at(&documents, 5).await, 1);
    assert_eq!(state().await, done("model_unavailable"));
}

#[tokio::test]
async fn a_document_whose_message_was_lost_is_found_by_the_sweep() {
    let world = World::new().await;
    write(&world.workspace, "hello").await;
    let sent = world.queue.messages();
    assert_eq!((sent.len(), world.status().await), (1, ConversionStatus::Queued));

    // Nobody receives that message. The item of the commit is found by its time.
    let later = SystemClock.now() + Duration::from_secs(60);
    let mut found = 0;
    for shard in 0..SHARDS {
        found += world.all.convert_forgotten(later, shard, 10, None).await.unwrap().0;
    }
    assert_eq!(found, 1);
    let again = world.queue.messages().split_off(1);
    assert_eq!((world.drive(again).await, world.status().await), (1, ConversionStatus::Done));
    assert!(world.markdown().await.ends_with("---\n\nhello\n"), "{}", world.markdown().await);
    assert_eq!(world.workspace.unconverted(world.info().await.file_id).await.unwrap(), None);

    // The first message comes after all, and does nothing.
    assert_eq!((world.drive(sent).await, world.echo.calls.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn a_version_that_comes_meanwhile_is_converted_itself() {
    let world = World::new().await;
    *world.echo.writes_meanwhile.lock().unwrap() = Some(world.workspace.clone());
    write(&world.workspace, "the first").await;
    let first = world.queue.messages();
    assert_eq!((world.drive(first).await, world.status().await), (1, ConversionStatus::Queued));
    let second = world.queue.messages().split_off(1);
    assert_eq!((world.drive(second).await, world.status().await), (1, ConversionStatus::Done));
    let text = world.markdown().await;
    assert!(text.contains("version: 2\n") && text.ends_with("the second\n"), "{text}");
}

#[tokio::test]
async fn a_content_that_failed_is_not_tried_again() {
    let world = World::new().await;
    for content in ["broken", "whole", "broken"] {
        write(&world.workspace, content).await;
        let message = world.queue.messages().pop().unwrap();
        assert_eq!(world.drive(vec![message]).await, 1);
    }
    let conversion = world.info().await.conversion.unwrap();
    assert_eq!((conversion.status, conversion.reason.as_deref()), (ConversionStatus::Failed, Some("damaged")));
    assert_eq!(world.echo.calls.load(Ordering::SeqCst), 2);
    // The Markdown of the version before is not that of this one.
    assert!(world.workspace.stat(&FilePath::parse("/data/a.pdf.md").unwrap()).await.is_err());
}

#[tokio::test]
async fn a_process_that_ends_gives_its_documents_back() {
    let world = World::new().await;
    write(&world.workspace, "hello").await;
    let messages = world.queue.messages();
    let cut = CancellationToken::new();
    cut.cancel();
    let deliveries: Vec<Delivery> = messages
        .iter()
        .map(|message| Delivery {
            group: message.group.clone(),
            id: message.id.clone(),
            body: message.body.clone(),
            attempt: 1,
            receipt: Receipt(String::new()),
        })
        .collect();
    assert_eq!(world.documents.deliver(&deliveries, &cut).await.done, 0);
    assert_eq!((world.drive(messages).await, world.status().await), (1, ConversionStatus::Done));
}
