//! Documents are driven to their end through lost messages, later versions and deaths, over stores in memory.
#![expect(clippy::unwrap_used, reason = "tests")]

mod mail;
mod sweeps;
mod texts;

use actor::ActorDriver;
use async_trait::async_trait;
use buildscale_documents::Documents;
use bytes::Bytes;
use domain::{Code, Conversion, ConversionStatus, FilePath, Principal, Usage, UserId, WorkspaceId};
use parking_lot::Mutex;
use ports::{
    Attachment, Clock, Converted, Converter, Delivery, Describer, Description, ModelError, NotConverted, QueueMessage,
    Receipt, SystemClock, Table, UnsupportedContent,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use testkit::fakes::{FakeBlobs, FakeQueue, FakeTable, Faults};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use workspace::{Access, Expect, Info, Purpose, Subject, Workspace, Workspaces, Writer, documents::SHARDS};

const PATH: &str = "/data/a.pdf";

/// A change while a document is converted.
enum Meanwhile {
    /// A version with this content.
    Write(&'static str, &'static str),
    Remove(&'static str),
    /// A move of the first to the second.
    Move(&'static str, &'static str),
}

/// Answers with the content, after it has made another change if it is told to. A content of `mail` and lines `name|text` is a message with these
/// attachments, and `nested 2` one with the attachment `nested 1`.
#[derive(Default)]
struct Echo {
    calls: AtomicUsize,
    meanwhile: Mutex<Option<(Workspace, Meanwhile)>>,
}

#[async_trait]
impl Converter for Echo {
    async fn convert(&self, _: &str, content: Bytes) -> Result<Converted, NotConverted> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let meanwhile = self.meanwhile.lock().take();
        match meanwhile {
            Some((workspace, Meanwhile::Write(at, content))) => put(&workspace, at, content).await,
            Some((workspace, Meanwhile::Remove(at))) => drop(workspace.rm(&path(at), &person()).await.unwrap()),
            Some((workspace, Meanwhile::Move(from, to))) => {
                drop(workspace.mv(&path(from), &path(to), &person()).await.unwrap());
            }
            None => {}
        }
        let markdown = String::from_utf8(content.to_vec()).unwrap();
        if markdown.contains("broken") {
            return Err(NotConverted::Failed { reason: "damaged".into(), message: "it is damaged".into() });
        }
        if markdown.contains("picture") {
            let facts = vec![("format".into(), "png".into())];
            return Ok(Converted { kind: "image".into(), facts, markdown, ..Converted::default() });
        }
        let attachment = |name: &str, text: &str| Attachment { name: name.into(), content: text.into() };
        if let Some(lines) = markdown.strip_prefix("mail") {
            let attached = lines.lines().filter_map(|line| line.split_once('|'));
            let attachments = attached.map(|(name, text)| attachment(name, text)).collect();
            return Ok(Converted {
                kind: "email".into(),
                markdown: "# Mail".into(),
                attachments,
                ..Converted::default()
            });
        }
        if let Some(level) = markdown.strip_prefix("nested ").and_then(|level| level.parse::<u32>().ok()) {
            let attachments = vec![attachment("inner.eml", &format!("nested {}", level - 1))];
            return Ok(Converted { kind: "email".into(), markdown, attachments, ..Converted::default() });
        }
        Ok(Converted { kind: "pdf".into(), markdown, ..Converted::default() })
    }
}

/// Sees what it is told to see, as often as it is told.
#[derive(Default)]
struct Eyes {
    says: Mutex<Vec<Result<Description, ModelError>>>,
}

#[async_trait]
impl Describer for Eyes {
    fn model(&self) -> &str {
        "fake/eyes"
    }

    fn takes(&self, media_type: &str, length: usize) -> Result<(), UnsupportedContent> {
        assert_eq!(media_type, "image/png");
        if length > 20 { Err(UnsupportedContent::Longer(20)) } else { Ok(()) }
    }

    async fn describe(&self, _: &str, _: Bytes) -> Result<Description, ModelError> {
        self.says.lock().pop().unwrap_or_else(|| Err(ModelError::Unavailable("away".into())))
    }
}

struct World {
    all: Workspaces,
    queue: Arc<FakeQueue>,
    echo: Arc<Echo>,
    documents: Documents,
    workspace: Workspace,
    id: WorkspaceId,
    /// The messages that were dealt with by [`World::settle`].
    settled: AtomicUsize,
    _root: TempDir,
}

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

fn person() -> Writer {
    Writer::new(Principal::local())
}

async fn write(workspace: &Workspace, content: &str) {
    put(workspace, PATH, content).await;
}

async fn put(workspace: &Workspace, at: &str, content: &str) {
    workspace.write(&path(at), content.to_owned(), Expect::Any, &person()).await.unwrap();
}

impl World {
    async fn new() -> Self {
        Self::on(|table| table).await
    }

    /// On this table in the place of the usual one.
    async fn on(wrap: impl FnOnce(Arc<dyn Table>) -> Arc<dyn Table>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let table = wrap(Arc::new(FakeTable::new(clock.clone(), 1, Faults::none())));
        let queue = Arc::new(FakeQueue::new(clock.clone(), 1, Faults::none(), 100));
        let root = TempDir::new().unwrap();
        let blobs = Arc::new(FakeBlobs::new(1, Faults::none()));
        let all = Workspaces::new(table, blobs, clock, root.path().into()).converting(queue.clone());
        let id = WorkspaceId(Uuid::now_v7());
        all.create(id, "test", &Principal::local()).await.unwrap();
        let echo = Arc::new(Echo::default());
        let documents = Documents::new(all.clone(), echo.clone(), 1);
        let workspace = all.open(id, workspace::Access::platform("a test")).await.unwrap();
        Self { all, queue, echo, documents, workspace, id, settled: AtomicUsize::new(0), _root: root }
    }

    /// Has the next conversion make this change.
    fn meanwhile(&self, change: Meanwhile) {
        *self.echo.meanwhile.lock() = Some((self.workspace.clone(), change));
    }

    /// Drives all documents until nothing is left to do.
    async fn settle(&self) {
        loop {
            let messages = self.queue.messages().split_off(self.settled.load(Ordering::SeqCst));
            let all = messages.len();
            if all == 0 {
                return;
            }
            self.settled.fetch_add(all, Ordering::SeqCst);
            assert_eq!(self.drive(messages).await, all);
        }
    }

    /// The names in a folder, without those of Markdown that was made; nothing when there is no such folder.
    async fn names(&self, folder: &str) -> Vec<String> {
        match self.workspace.ls(&path(folder), 1000, None).await {
            Ok(page) => page.entries.into_iter().filter(|it| it.document().is_none()).map(|it| it.name).collect(),
            Err(error) => {
                assert_eq!(error.code, Code::NotFound, "{error:?}");
                Vec::new()
            }
        }
    }

    async fn text(&self, at: &str) -> String {
        let content = self.workspace.read(&path(at), None).await.unwrap();
        String::from_utf8(content.bytes.to_vec()).unwrap()
    }

    fn conversions(&self) -> usize {
        self.echo.calls.load(Ordering::SeqCst)
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
        self.workspace.stat(&path(PATH)).await.unwrap()
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
    let told = Description { text: " A red *bridge*. ".into(), usage };
    eyes.says.lock().extend([Ok(told), Err(ModelError::Rejected("no".into()))]);
    write(&world.workspace, "picture 2").await;
    assert_eq!(world.drive_at(&documents, 1).await, 1);
    assert_eq!(state().await, done("model_refused"));
    write(&world.workspace, "picture 3").await;
    assert_eq!(world.drive_at(&documents, 1).await, 1);
    assert_eq!(state().await, done(""));
    let markdown = world.markdown().await;
    assert!(markdown.contains("\ndescribed_by: \"fake/eyes\"\n"), "{markdown}");
    assert!(markdown.ends_with("picture 3\n\n## Description\n\nA red *bridge*.\n"), "{markdown}");
    // No description, and paid for.
    eyes.says.lock().push(Ok(Description { text: " ".into(), usage }));
    write(&world.workspace, "picture 3a").await;
    assert_eq!(world.drive_at(&documents, 1).await, 1);
    assert_eq!(state().await, done("model_refused"));
    let twice = Usage { input_tokens: 10, output_tokens: 4, ..Usage::default() };
    let spent = world.workspace.spent("2000-01-01", "2999-12-31").await.unwrap();
    assert_eq!(
        spent.iter().map(|it| (it.purpose, it.calls, it.usage)).collect::<Vec<_>>(),
        [(Purpose::Description, 2, twice)]
    );

    // A model that is away is waited for, and not for ever.
    write(&world.workspace, "picture 4").await;
    assert_eq!(world.drive_at(&documents, 1).await, 0);
    assert_eq!(world.status().await, ConversionStatus::Running);
    assert_eq!(world.drive_at(&documents, 5).await, 1);
    assert_eq!(state().await, done("model_unavailable"));
}

#[tokio::test]
async fn a_version_that_comes_meanwhile_is_converted_itself() {
    let world = World::new().await;
    world.meanwhile(Meanwhile::Write(PATH, "the second"));
    write(&world.workspace, "the first").await;
    let first = world.queue.messages();
    assert_eq!((world.drive(first).await, world.status().await), (1, ConversionStatus::Queued));
    let second = world.queue.messages().split_off(1);
    assert_eq!((world.drive(second).await, world.status().await), (1, ConversionStatus::Done));
    let text = world.markdown().await;
    assert!(text.contains("version: 2\n") && text.ends_with("the second\n"), "{text}");
}

#[tokio::test]
async fn a_document_that_waited_in_a_folder_in_the_trash_is_converted_after_its_restore() {
    let world = World::new().await;
    for at in ["/data/b/a.pdf", "/data/b/c/d/a.pdf"] {
        put(&world.workspace, at, at).await;
    }
    let folder = world.workspace.rm(&path("/data/b"), &person()).await.unwrap().file_id;
    world.settle().await;
    assert_eq!(world.conversions(), 0);
    world.workspace.restore(folder, &Writer { may_run: false, ..person() }).await.unwrap();
    // The right to run flows is that of the person who restored it.
    let message = world.queue.messages().pop().unwrap();
    assert_eq!(world.drive(vec![message]).await, 1);
    let info = world.workspace.stat(&path("/data/b/a.pdf")).await.unwrap();
    assert!(world.workspace.unconverted(info.file_id).await.unwrap().unwrap().0.may_not_run);
    world.settle().await;
    for at in ["/data/b/a.pdf", "/data/b/c/d/a.pdf"] {
        let info = world.workspace.stat(&path(at)).await.unwrap();
        assert_eq!(info.conversion.unwrap().status, ConversionStatus::Done, "{at}");
        assert!(world.text(&format!("{at}.md")).await.ends_with(&format!("{at}\n")), "{at}");
        assert_eq!(world.workspace.unconverted(info.file_id).await.unwrap(), None, "{at}");
    }
    assert_eq!(world.workspace.unconverted(folder).await.unwrap(), None);
}

#[tokio::test]
async fn files_that_come_under_data_with_their_folder_become_documents() {
    let world = World::new().await;
    for at in ["/projects/old/a.pdf", "/projects/old/b/c/a.pdf", "/projects/old/half.pdf"] {
        put(&world.workspace, at, at).await;
    }
    put(&world.workspace, "/projects/old/empty.pdf", "").await;
    let may_not = Writer { may_run: false, ..person() };
    world.workspace.mv(&path("/projects/old"), &path("/data/old"), &may_not).await.unwrap();
    // The move gives one task, with the right of the person who moved the folder.
    assert_eq!(world.queue.messages().len(), 1);
    // A driver that died in the middle has noted one document, and has given it no task.
    let half = world.workspace.stat(&path("/data/old/half.pdf")).await.unwrap();
    let queued = Conversion::new(ConversionStatus::Queued, None);
    assert!(world.workspace.note_conversion(&half, queued, None).await.unwrap());
    let message = world.queue.messages().pop().unwrap();
    world.settled.store(1, Ordering::SeqCst);
    assert_eq!(world.drive(vec![message]).await, 1);
    assert!(world.workspace.unconverted(half.file_id).await.unwrap().unwrap().0.may_not_run);
    world.settle().await;
    for at in ["a.pdf", "b/c/a.pdf", "half.pdf"] {
        let info = world.workspace.stat(&path(&format!("/data/old/{at}"))).await.unwrap();
        assert_eq!((info.v, info.conversion.unwrap().status), (1, ConversionStatus::Done), "{at}");
        let text = world.text(&format!("/data/old/{at}.md")).await;
        assert!(text.ends_with(&format!("/projects/old/{at}\n")), "{text}");
        assert_eq!(world.workspace.unconverted(info.file_id).await.unwrap(), None, "{at}");
    }
    let empty = world.workspace.stat(&path("/data/old/empty.pdf")).await.unwrap().conversion.unwrap();
    assert_eq!((empty.status, empty.reason.as_deref()), (ConversionStatus::Skipped, Some("empty")));
    // Inside of /data a folder with its documents moves without a task.
    let sent = world.queue.messages().len();
    world.workspace.mv(&path("/data/old"), &path("/data/new"), &person()).await.unwrap();
    assert_eq!((world.queue.messages().len(), world.conversions()), (sent, 3));
}

#[tokio::test]
async fn a_file_that_is_attached_to_a_chat_is_a_document_wherever_it_lies() {
    let world = World::new().await;
    let stat = async |at: &str| world.workspace.stat(&path(at)).await.unwrap();
    put(&world.workspace, "/projects/a/b.pdf", "the first").await;
    world.settle().await;
    assert_eq!((stat("/projects/a/b.pdf").await.conversion, world.conversions()), (None, 0));
    for _ in 0..2 {
        let conversion = world.workspace.attach(&stat("/projects/a/b.pdf").await).await.unwrap().unwrap();
        assert_eq!((conversion.status, conversion.attached), (ConversionStatus::Queued, true));
    }
    let file = stat("/projects/a/b.pdf").await.file_id;
    assert!(world.workspace.unconverted(file).await.unwrap().unwrap().0.may_not_run, "to attach is to read");
    world.settle().await;
    let info = stat("/projects/a/b.pdf").await;
    let markdown = stat("/projects/a/b.pdf.md").await;
    assert_eq!((markdown.document(), info.is_document(), world.conversions()), (Some(file), true, 1));
    assert!(world.text("/projects/a/b.pdf.md").await.ends_with("the first\n"));
    assert_eq!(world.workspace.attach(&info).await.unwrap(), info.conversion, "it is attached again");

    // A later version is converted, too. The Markdown follows the file, and goes and comes back with it.
    put(&world.workspace, "/projects/a/b.pdf", "the second").await;
    world.workspace.mv(&path("/projects/a/b.pdf"), &path("/projects/c.pdf"), &person()).await.unwrap();
    world.settle().await;
    assert!(world.text("/projects/c.pdf.md").await.ends_with("the second\n"));
    assert_eq!((world.names("/projects/a").await, world.conversions()), (Vec::<String>::new(), 2));
    world.workspace.rm(&path("/projects/c.pdf"), &person()).await.unwrap();
    world.settle().await;
    assert!(world.workspace.stat(&path("/projects/c.pdf.md")).await.is_err());
    world.workspace.restore(file, &person()).await.unwrap();
    world.settle().await;
    let text = world.text("/projects/c.pdf.md").await;
    assert!(text.contains("path: \"/projects/c.pdf\"\n") && text.ends_with("the second\n"), "{text}");

    // The attachments of a message are documents like itself.
    put(&world.workspace, "/projects/d.eml", "mail\na.pdf|inside").await;
    world.workspace.attach(&stat("/projects/d.eml").await).await.unwrap();
    world.settle().await;
    assert_eq!(world.names("/projects/d.eml.attachments").await, ["a.pdf"]);
    assert!(world.text("/projects/d.eml.attachments/a.pdf.md").await.ends_with("inside\n"));

    // One that left `/data` has no conversion, until it is a document again.
    put(&world.workspace, "/data/e.pdf", "the third").await;
    world.settle().await;
    world.workspace.mv(&path("/data/e.pdf"), &path("/projects/e.pdf"), &person()).await.unwrap();
    world.settle().await;
    let left = stat("/projects/e.pdf").await;
    assert_eq!((left.is_document(), &left.conversion), (false, &None));
    assert!(world.workspace.stat(&path("/projects/e.pdf.md")).await.is_err());
    world.workspace.mv(&path("/projects/e.pdf"), &path("/data/f.pdf"), &person()).await.unwrap();
    world.settle().await;
    assert!(world.text("/data/f.pdf.md").await.ends_with("the third\n"));
    world.workspace.mv(&path("/data/f.pdf"), &path("/projects/e.pdf"), &person()).await.unwrap();
    world.settle().await;
    let left = stat("/projects/e.pdf").await;
    world.workspace.attach(&left).await.unwrap();
    world.settle().await;
    assert!(world.text("/projects/e.pdf.md").await.ends_with("the third\n"));
}

#[tokio::test]
async fn a_folder_that_leaves_data_before_its_task_has_no_documents() {
    let world = World::new().await;
    put(&world.workspace, "/projects/old/a.pdf", "hello").await;
    world.workspace.mv(&path("/projects/old"), &path("/data/old"), &person()).await.unwrap();
    world.workspace.mv(&path("/data/old"), &path("/projects/old"), &person()).await.unwrap();
    world.settle().await;
    let info = world.workspace.stat(&path("/projects/old/a.pdf")).await.unwrap();
    assert_eq!((info.conversion, world.conversions()), (None, 0));
}

#[tokio::test]
async fn a_document_whose_folder_moves_just_before_the_end_keeps_its_task() {
    let world = World::new().await;
    put(&world.workspace, "/data/old/a.pdf", "hello").await;
    let of = world.workspace.stat(&path("/data/old/a.pdf")).await.unwrap();
    let rev = world.workspace.unconverted(of.file_id).await.unwrap().unwrap().1;
    let writer = Writer { derived_from: Some(of.file_id), ..Writer::new(Principal::System) };
    let before = path("/data/old/a.pdf.md");
    world.workspace.mv(&path("/data/old"), &path("/data/new"), &person()).await.unwrap();
    // A conversion that read the old path writes there, and is told at its end.
    let text = "---\nderived_from:\n  path: \"/data/old/a.pdf\"\nkind: pdf\n---\n\nhello\n";
    let markdown = world.workspace.write(&before, text, Expect::Absent, &writer).await.unwrap().file_id;
    let done = Conversion::new(ConversionStatus::Done, Some(markdown));
    let error = world.workspace.note_conversion(&of, done, Some(rev)).await.unwrap_err();
    assert_eq!(error.code, Code::Conflict, "{error:?}");
    assert_eq!(world.workspace.unconverted(of.file_id).await.unwrap().unwrap().1, rev);

    world.settle().await;
    let info = world.workspace.stat(&path("/data/new/a.pdf")).await.unwrap();
    assert_eq!(info.conversion.unwrap().status, ConversionStatus::Done);
    let moved = world.workspace.stat(&path("/data/new/a.pdf.md")).await.unwrap();
    assert_eq!((moved.file_id, world.conversions()), (markdown, 0));
    assert!(world.text("/data/new/a.pdf.md").await.contains("path: \"/data/new/a.pdf\"\n"));
    assert_eq!(world.workspace.unconverted(of.file_id).await.unwrap(), None);
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
    assert!(world.workspace.stat(&path("/data/a.pdf.md")).await.is_err());
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
