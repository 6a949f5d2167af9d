//! Stores in memory for the tests of this crate.

use async_trait::async_trait;
use bytes::Bytes;
use domain::{Principal, Sha256, Timestamp, WorkspaceId};
use ports::{Blobs, Clock, Error, Expect, Item, Key, Page, Query, Result, Table, Write};
use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
};
use tempfile::TempDir;
use uuid::Uuid;
use workspace::{Workspace, Workspaces};

#[derive(Default)]
pub struct MemoryTable(Mutex<BTreeMap<Key, Item>>);

#[async_trait]
impl Table for MemoryTable {
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        Ok(self.0.lock().unwrap().get(key).cloned())
    }
    async fn query(&self, query: &Query) -> Result<Page> {
        let items = self.0.lock().unwrap();
        let inside = |key: &Key| {
            key.pk == query.pk
                && query.from.as_ref().is_none_or(|from| key.sk >= *from)
                && query.to.as_ref().is_none_or(|to| key.sk < *to)
                && query.cursor.as_ref().is_none_or(|at| if query.descending { key.sk < *at } else { key.sk > *at })
        };
        let mut found: Vec<Item> = items.iter().filter(|(key, _)| inside(key)).map(|(_, item)| item.clone()).collect();
        if query.descending {
            found.reverse();
        }
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        let next = more.then(|| found.last().unwrap().key.sk.clone());
        Ok(Page { items: found, next })
    }
    async fn query_index(&self, _: &Query) -> Result<Page> {
        Ok(Page::default())
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<()> {
        tokio::task::yield_now().await;
        let mut items = self.0.lock().unwrap();
        if writes.len() > ports::MAX_WRITES {
            return Err(Error::Invalid("too many writes".into()));
        }
        let keys: std::collections::BTreeSet<_> = writes.iter().map(Write::key).collect();
        if keys.len() != writes.len() || keys.iter().any(|key| key.pk.is_empty() || key.sk.is_empty()) {
            return Err(Error::Invalid("a key twice, or an empty one".into()));
        }
        for (position, write) in writes.iter().enumerate() {
            let rev = items.get(write.key()).map(|item| item.rev);
            let holds = match write.expect() {
                Expect::Any => true,
                Expect::Absent => rev.is_none(),
                Expect::Present => rev.is_some(),
                Expect::Rev(wanted) => rev == Some(wanted),
            };
            if !holds {
                return Err(Error::Conflict { write: position });
            }
        }
        for write in writes {
            match write {
                Write::Put { key, body, index, expires_at, .. } => {
                    let rev = items.get(&key).map_or(1, |item| item.rev + 1);
                    items.insert(key.clone(), Item { key, rev, body, index, expires_at });
                }
                Write::Delete { key, .. } => drop(items.remove(&key)),
                Write::Check { .. } => {}
            }
        }
        Ok(())
    }
}

impl MemoryTable {
    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

#[derive(Default)]
pub struct MemoryBlobs(Mutex<HashMap<(String, Sha256), Bytes>>);

#[async_trait]
impl Blobs for MemoryBlobs {
    async fn put(&self, space: &str, content: Bytes) -> Result<Sha256> {
        let digest = Sha256::of(&content);
        self.0.lock().unwrap().insert((space.into(), digest), content);
        Ok(digest)
    }
    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<Option<Bytes>> {
        assert!(range.is_none());
        Ok(self.0.lock().unwrap().get(&(space.into(), digest)).cloned())
    }
    async fn delete(&self, space: &str, digest: Sha256) -> Result<()> {
        self.0.lock().unwrap().remove(&(space.into(), digest));
        Ok(())
    }
    async fn delete_space(&self, space: &str) -> Result<()> {
        self.0.lock().unwrap().retain(|(of, _), _| of != space);
        Ok(())
    }
}

/// A clock that goes on by a millisecond with every look, and a minute when told to.
pub struct Ticks(AtomicI64);

impl Ticks {
    pub fn skip(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Ticks {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1, Ordering::SeqCst))
    }
    fn id(&self) -> Uuid {
        let ms = self.0.fetch_add(1, Ordering::SeqCst).cast_unsigned();
        let random = Uuid::now_v7().as_u128() & ((1 << 62) - 1);
        Uuid::from_u128((u128::from(ms) << 80) | (0x7 << 76) | (0b10 << 62) | random)
    }
}

/// A workspace over stores that survive it.
pub struct World {
    pub table: Arc<MemoryTable>,
    pub blobs: Arc<MemoryBlobs>,
    pub clock: Arc<Ticks>,
    pub root: TempDir,
    pub id: WorkspaceId,
}

impl World {
    pub async fn new() -> (Self, Workspace) {
        let world = Self {
            table: Arc::default(),
            blobs: Arc::default(),
            clock: Arc::new(Ticks(AtomicI64::new(1_700_000_000_000))),
            root: TempDir::new().unwrap(),
            id: WorkspaceId(Uuid::now_v7()),
        };
        let all = world.workspaces();
        all.create(world.id, "test", &Principal::local()).await.unwrap();
        let workspace = all.open(world.id).await.unwrap();
        (world, workspace)
    }

    /// As after a restart: the same stores, new handles.
    pub fn workspaces(&self) -> Workspaces {
        let (table, blobs, clock) = (self.table.clone(), self.blobs.clone(), self.clock.clone());
        Workspaces::new(table, blobs, clock, self.root.path().into())
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join(self.id.to_string())
    }

    pub fn on_disk(&self, path: &str) -> PathBuf {
        self.home().join("latest").join(path.trim_start_matches('/'))
    }

    pub fn disk_text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.on_disk(path)).ok()
    }
}

/// Every file and folder below, by its path from there, folders with none.
pub fn tree(root: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    fn walk(root: &Path, at: &Path, found: &mut BTreeMap<String, Option<Vec<u8>>>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("/{}", path.strip_prefix(root).unwrap().to_str().unwrap());
            if path.is_dir() {
                found.insert(name, None);
                walk(root, &path, found);
            } else {
                found.insert(name, Some(std::fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}
