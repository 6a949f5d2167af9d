//! The check of everything that a workspace is made of: the index with the links in it, the archive, and the mirror. It reads every version of every
//! file, so it is for a data folder on which no hub runs; a hub that runs has the [scrub](Workspaces::scrub).
//!
//! The index decides. So a check goes from the root along the index, and compares everything else with it. Nodes that this walk does not reach
//! are entries that got lost.

mod contents;
mod links;
mod mirror;
mod relations;

use crate::{
    FileKind, Result, Workspace, Workspaces, error,
    keys::{DELETIONS, WORKSPACES},
    model::{Entry, Record},
    trash_entry::Item,
};
use domain::{FileId, FilePath, Sha256, WorkspaceId};
use ports::{Pages, Query};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};

const PAGE: usize = 500;

/// The store that has a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FsckPart {
    /// The items of workspaces, files and versions.
    Index,
    /// The links between a file and its place: an entry names its file, and the file's node names the entry.
    Links,
    /// Contents.
    Archive,
    /// The folder `latest/`.
    Mirror,
}

/// A difference from a sound workspace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FsckFault {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The store.
    pub part: FsckPart,
    /// The path of the file or folder, as far as one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The file or folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<FileId>,
    /// The version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v: Option<u64>,
    /// The kind of fault, for programs.
    pub code: &'static str,
    /// The fault, for people.
    pub message: String,
    /// Whether it was repaired.
    pub repaired: bool,
}

/// The counts of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckCounts {
    /// Workspaces.
    pub workspaces: u64,
    /// Folders, those in the trash among them.
    pub folders: u64,
    /// Files, those in the trash among them.
    pub files: u64,
    /// Versions of files.
    pub versions: u64,
    /// Contents that were compared with their digests.
    pub contents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Paths of `latest/` that were compared with the index.
    pub mirrored: u64,
    /// Workspaces without a `latest/`, as after a restore of a backup. That is no fault: a hub makes it when it starts.
    pub without_mirror: u64,
    /// Faults that were found.
    pub faults: u64,
    /// Those of them that were repaired.
    pub repaired: u64,
}

impl Workspaces {
    /// Checks all workspaces and tells each fault; with `repair` it also repairs those that can be. Without it nothing is written.
    ///
    /// Repaired are: a content, from any good copy; `latest/`, from the index and the archive; a node, an entry and the item of a current version,
    /// each from the other two; tags, links in texts, and explicit links of the last 30 days; a deletion that broke off, which is completed.
    ///
    /// # Errors
    /// Those of [`Workspaces`] when a store does not answer. A fault is no error.
    pub async fn fsck(&self, repair: bool, tell: &mut (dyn FnMut(&FsckFault) + Send)) -> Result<CheckCounts> {
        let mut done = CheckCounts::default();
        let mut pages = self.0.table.pages(Query::all(WORKSPACES, PAGE));
        while let Some(items) = pages.next().await.map_err(error::port)? {
            for item in &items {
                let Ok(id) = item.key.sk.parse::<WorkspaceId>() else { continue };
                let workspace = crate::handle::Shared::handle(&self.0, id);
                let _tree = workspace.lock_tree().await;
                let mut check = Check::new(&workspace, repair, &mut done, tell);
                check.done.workspaces += 1;
                if error::parse::<Record>(&item.body).is_err() {
                    check.fault(
                        FsckPart::Index,
                        "record_unreadable",
                        "the item of the workspace cannot be read",
                        false,
                    );
                }
                check.everything().await?;
            }
        }
        self.broken_off(repair, &mut done, tell).await?;
        if repair {
            // Contents of known damage are looked at again: they may be good by now.
            self.recheck_all().await?;
            self.scrub(None).await?;
        }
        Ok(done)
    }

    /// Workspaces of which only a part is left, or only a part came.
    async fn broken_off(
        &self,
        repair: bool,
        done: &mut CheckCounts,
        tell: &mut (dyn FnMut(&FsckFault) + Send),
    ) -> Result<()> {
        let mut pages = self.0.table.pages(Query::all(DELETIONS, PAGE));
        while let Some(items) = pages.next().await.map_err(error::port)? {
            for id in items.iter().filter_map(|item| item.key.sk.parse::<WorkspaceId>().ok()) {
                let workspace = crate::handle::Shared::handle(&self.0, id);
                let repaired = repair && self.complete_deletion(id).await.is_ok();
                let message = "a deletion or an import of the workspace broke off, and a part of it is left";
                Check::new(&workspace, repair, done, tell).fault(FsckPart::Index, "remains", message, repaired);
            }
        }
        Ok(())
    }
}

/// The check of one workspace. Under its tree's lock.
struct Check<'a> {
    workspace: &'a Workspace,
    repair: bool,
    done: &'a mut CheckCounts,
    tell: &'a mut (dyn FnMut(&FsckFault) + Send),
    /// The files and folders that the walk reached.
    reached: HashSet<FileId>,
    /// Entries that cannot be read, by their folders and names.
    unreadable: BTreeMap<(FileId, String), FaultPlace>,
    /// The contents that were compared, and whether the archive has them.
    compared: HashMap<Sha256, bool>,
    /// Whether lost entries wait for a lost folder.
    waits: bool,
    /// Whether `latest/` is compared with the index.
    has_mirror: bool,
    /// Contents that are looked at once more at the end, with their places and sizes; none at the end.
    later: Option<Vec<(FaultPlace, Sha256, u64)>>,
    at: FaultPlace,
}

/// The fault of an entry that cannot be read: its code, and its words.
const UNREADABLE: (&str, &str) = ("entry_unreadable", "the entry cannot be read");

/// The place that faults are told of.
#[derive(Clone, Default)]
struct FaultPlace {
    path: Option<String>,
    file_id: Option<FileId>,
    v: Option<u64>,
}

/// A folder to walk through; `mirrored` when `latest/` has it.
struct Folder {
    path: FilePath,
    id: FileId,
    mirrored: bool,
}

impl<'a> Check<'a> {
    fn new(
        workspace: &'a Workspace,
        repair: bool,
        done: &'a mut CheckCounts,
        tell: &'a mut (dyn FnMut(&FsckFault) + Send),
    ) -> Self {
        let (reached, unreadable, compared) = (HashSet::new(), BTreeMap::new(), HashMap::new());
        Self {
            workspace,
            repair,
            done,
            tell,
            reached,
            unreadable,
            compared,
            waits: false,
            has_mirror: true,
            later: Some(Vec::new()),
            at: FaultPlace::default(),
        }
    }

    /// The items of a partition, page by page. The pages do not borrow the check, so it can note faults between them.
    fn pages(&self, partition: String) -> Pages<'a> {
        self.workspace.0.table.pages(Query::all(partition, PAGE))
    }

    /// Tells a fault at the present place.
    fn fault(&mut self, part: FsckPart, code: &'static str, message: impl Into<String>, repaired: bool) {
        let FaultPlace { path, file_id, v } = self.at.clone();
        let message = message.into();
        let fault = FsckFault { workspace_id: self.workspace.0.id, part, path, file_id, v, code, message, repaired };
        self.done.faults += 1;
        self.done.repaired += u64::from(repaired);
        (self.tell)(&fault);
    }

    async fn everything(&mut self) -> Result<()> {
        let root = self.workspace.0.keys.root();
        self.reached.insert(root);
        self.mirror().await?;
        self.walk(Folder { path: FilePath::root(), id: root, mirrored: self.has_mirror }).await?;
        self.trash().await?;
        // An entry that comes back brings along what is below it.
        let mut patient = true;
        loop {
            let before = self.reached.len();
            self.lost(patient).await?;
            if !self.waits {
                break;
            }
            // Their folder may have been reached meanwhile; if it cannot be, they are told of as they are.
            patient = self.reached.len() > before;
        }
        self.relations().await?;
        self.contents_left().await?;
        for (_, place) in std::mem::take(&mut self.unreadable) {
            self.at = place;
            self.fault(FsckPart::Index, UNREADABLE.0, UNREADABLE.1, false);
        }
        Ok(())
    }

    /// Checks all that is in a folder and below it.
    async fn walk(&mut self, from: Folder) -> Result<()> {
        let mut folders = vec![from];
        while let Some(folder) = folders.pop() {
            self.done.folders += 1;
            let mut names = HashSet::new();
            let mut pages = self.pages(self.workspace.0.keys.folder(folder.id));
            while let Some(items) = pages.next().await.map_err(error::port)? {
                for item in items {
                    let name = item.key.sk;
                    self.at = FaultPlace { path: Some(join(&folder.path, &name)), ..FaultPlace::default() };
                    let (Ok(path), Ok(entry)) = (folder.path.join(&name), error::parse::<Entry>(&item.body)) else {
                        self.unreadable.insert((folder.id, name.clone()), self.at.clone());
                        names.insert(name);
                        continue;
                    };
                    names.insert(name);
                    let found =
                        WalkedEntry { folder: folder.id, path, entry, rev: item.rev, mirrored: folder.mirrored };
                    folders.extend(self.entry(found).await?);
                }
            }
            if folder.mirrored {
                self.strays(&folder.path, &names).await?;
            }
        }
        Ok(())
    }

    /// Checks one entry; gives the folder that it is.
    async fn entry(&mut self, found: WalkedEntry) -> Result<Option<Folder>> {
        let id = found.entry.file_id;
        self.at.file_id = Some(id);
        if !self.reached.insert(id) {
            self.fault(FsckPart::Links, "entry_twice", "the same file has another place, too", false);
            return Ok(None);
        }
        self.node(&found).await?;
        match found.entry.kind {
            FileKind::Folder => {
                if found.mirrored {
                    self.mirrored_folder(&found.path).await?;
                }
                return Ok(Some(Folder { path: found.path, id, mirrored: found.mirrored }));
            }
            FileKind::File => {
                self.done.files += 1;
                let entry = self.versions(&found).await?;
                if found.mirrored {
                    self.mirrored_file(&found.path, &entry).await?;
                }
            }
            FileKind::Projection => {
                self.done.files += 1;
                if found.mirrored {
                    self.mirrored_projection(&found.path).await?;
                }
            }
        }
        Ok(None)
    }

    /// Checks what is in the trash. Its contents are in the archive; the copies on the disk only save reads.
    async fn trash(&mut self) -> Result<()> {
        let mut pages = self.pages(self.workspace.0.keys.trash());
        while let Some(items) = pages.next().await.map_err(error::port)? {
            for item in items {
                self.at = FaultPlace { file_id: item.key.sk.parse().ok(), ..FaultPlace::default() };
                let Ok(Item { path, entry, .. }) = error::parse::<Item>(&item.body) else {
                    self.fault(FsckPart::Index, "entry_unreadable", "the entry of the trash cannot be read", false);
                    continue;
                };
                self.at.path = Some(path.to_string());
                let id = entry.file_id;
                if !self.reached.insert(id) {
                    self.fault(FsckPart::Links, "entry_twice", "the file is in the trash and has a place, too", false);
                    continue;
                }
                match entry.kind {
                    FileKind::Folder => self.walk(Folder { path, id, mirrored: false }).await?,
                    FileKind::File => {
                        self.done.files += 1;
                        self.history(&entry, None).await?;
                    }
                    FileKind::Projection => self.done.files += 1,
                }
            }
        }
        Ok(())
    }
}

/// An entry that the walk came to.
struct WalkedEntry {
    folder: FileId,
    path: FilePath,
    entry: Entry,
    rev: u64,
    mirrored: bool,
}

fn join(folder: &FilePath, name: &str) -> String {
    if folder.is_root() { format!("/{name}") } else { format!("{folder}/{name}") }
}
