//! A workspace with files of events, and a person who syncs a calendar.

use async_trait::async_trait;
use buildscale_calendars::{CalendarParts, Calendars, Egress};
use domain::{CallId, Code, Error, FilePath, Principal, WorkspaceId};
use ports::{Address, Recipient, Secret, SecretRef, Secrets};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeTable, Faults},
};
use tools::{Call, organizer::CalendarSync};
use uuid::Uuid;
use workspace::{Access, Expect, FileKind, Workspace, Workspaces, Writer};

/// Clients for this machine.
pub struct Anywhere;

impl Egress for Anywhere {
    fn client(&self, url: &str, allow_private: bool) -> Result<reqwest::Client, String> {
        if !allow_private && url.contains("127.0.0.1") {
            return Err("addresses in private networks are not allowed here".into());
        }
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        builder.build().map_err(|error| error.to_string())
    }
}

/// One password, which is granted for every host but `elsewhere.example`.
pub struct One;

#[async_trait]
impl Secrets for One {
    async fn get(&self, reference: &SecretRef, to: Recipient<'_>) -> ports::Result<Option<Secret>> {
        let is_granted = to.address != Address::Url("https://elsewhere.example");
        Ok((is_granted && *reference == SecretRef::Named("word".into())).then(|| Secret::new("open-sesame")))
    }
}

pub struct Desk {
    pub files: Workspace,
    pub table: Arc<FakeTable>,
    pub calendars: Calendars,
    by: Principal,
    _root: tempfile::TempDir,
}

impl Desk {
    pub async fn new(allow_private: bool) -> Self {
        let clock = Arc::new(TestClock::new(1));
        let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        let blobs = Arc::new(FakeBlobs::new(1, Faults::none()));
        let root = tempfile::TempDir::new().unwrap();
        let all = Workspaces::new(table.clone(), blobs, clock.clone(), root.path().into());
        let (id, by) = (WorkspaceId(Uuid::now_v7()), Principal::local());
        all.create(id, "test", &by).await.unwrap();
        let files = all.open(id, Access::of(&by, None)).await.unwrap();
        let parts = CalendarParts { egress: Arc::new(Anywhere), secrets: Arc::new(One), clock };
        Self { files, table, calendars: Calendars::new(parts, allow_private), by, _root: root }
    }

    pub fn home(&self, rest: &str) -> FilePath {
        FilePath::parse(&format!("/users/{}/{rest}", self.by.user())).unwrap()
    }

    pub async fn put(&self, rest: &str, text: &str) {
        let path = self.home(rest);
        self.files.write(&path, text.to_owned(), Expect::Any, &Writer::new(self.by.clone())).await.unwrap();
    }

    /// [`Desk::put`], to be awaited elsewhere.
    pub fn putting(&self, rest: &str, text: &str) -> impl Future<Output = ()> + Send + use<> {
        let (files, path, writer) = (self.files.clone(), self.home(rest), Writer::new(self.by.clone()));
        let text = text.to_owned();
        async move {
            files.write(&path, text, Expect::Any, &writer).await.unwrap();
        }
    }

    pub async fn remove(&self, rest: &str) {
        self.files.rm(&self.home(rest), &Writer::new(self.by.clone())).await.unwrap();
    }

    pub async fn read(&self, rest: &str) -> String {
        let content = self.files.read(&self.home(rest), None).await.unwrap();
        String::from_utf8_lossy(&content.bytes).into_owned()
    }

    /// The files of events, by name.
    pub async fn events(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        let listing = match self.files.ls(&self.home("calendar"), 1_000, None).await {
            Ok(listing) => listing.entries,
            Err(error) if error.code == Code::NotFound => Vec::new(),
            Err(error) => panic!("{error}"),
        };
        for info in listing.into_iter().filter(|info| info.kind == FileKind::File) {
            all.insert(info.name.clone(), self.read(&format!("calendar/{}", info.name)).await);
        }
        all
    }

    /// The file of the event with this word in it.
    pub async fn with(&self, word: &str) -> String {
        let all = self.events().await;
        let found = all.iter().filter(|(_, text)| text.contains(word)).map(|(name, _)| name.clone());
        let found: Vec<_> = found.collect();
        let [one] = found.as_slice() else { panic!("{word}: {found:?} of {all:#?}") };
        format!("calendar/{one}")
    }

    pub async fn sync_at(&self, path: &FilePath) -> Result<Value, Error> {
        self.sync_as(CallId(Uuid::now_v7()), path).await
    }

    pub async fn sync_as(&self, call_id: CallId, path: &FilePath) -> Result<Value, Error> {
        let call = Call::outside(self.files.clone(), call_id, self.by.clone());
        self.calendars.sync(&call, path).await.map(|synced| synced.result)
    }

    pub async fn sync(&self) -> Value {
        self.sync_at(&self.home("calendars/work.yaml")).await.unwrap()
    }

    /// A sync that changes nothing on either side.
    pub async fn settled(&self) {
        let counts = self.sync().await;
        for side in ["here", "there"] {
            assert_eq!(counts[side], serde_json::json!({ "made": 0, "changed": 0, "removed": 0 }), "{counts}");
        }
    }
}
