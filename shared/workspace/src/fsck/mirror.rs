//! `latest/`, which is to have what the index has, and nothing else.

use super::{Check, FaultPlace, FsckPart, join};
use crate::{
    Result,
    contents::{self, digest_of, is_large},
    mirror::{Area, Mirror, OnDisk},
    model::Entry,
};
use domain::{Code, FilePath};
use std::{collections::HashSet, io};

impl Check<'_> {
    /// `latest/` itself. One that is not there at all is made by a repair, or by the next start of a hub.
    pub(super) async fn mirror(&mut self) -> Result<()> {
        let look = |mirror: &Mirror| mirror.look(Area::Latest, &FilePath::root());
        if !self.repair && self.workspace.disk("to look at a folder", look).await? == OnDisk::Nothing {
            self.has_mirror = false;
            self.done.without_mirror += 1;
            return Ok(());
        }
        self.mirrored_folder(&FilePath::root()).await
    }

    pub(super) async fn mirrored_folder(&mut self, path: &FilePath) -> Result<()> {
        let found = self.look(path).await?;
        if found != OnDisk::Folder {
            let message = if found == OnDisk::Nothing { "the folder is missing" } else { "no folder is there" };
            self.put_right(path, "folder_missing", message).await?;
        }
        Ok(())
    }

    pub(super) async fn mirrored_projection(&mut self, path: &FilePath) -> Result<()> {
        if !matches!(self.look(path).await?, OnDisk::File(_)) {
            // A hub that starts fills it from its log.
            self.put_right(path, "file_missing", "the file is missing").await?;
        }
        Ok(())
    }

    pub(super) async fn mirrored_file(&mut self, path: &FilePath, entry: &Entry) -> Result<()> {
        self.at.v = Some(entry.v);
        match self.look(path).await? {
            OnDisk::File(size) if size == entry.size && self.is_same(path, entry).await? => {}
            OnDisk::File(_) => self.put_right(path, "file_altered", "the file is not what the index has").await?,
            _ => self.put_right(path, "file_missing", "the file is missing").await?,
        }
        Ok(())
    }

    /// Entries on the disk that the index does not have.
    pub(super) async fn strays(&mut self, folder: &FilePath, known: &HashSet<String>) -> Result<()> {
        let at = folder.clone();
        let names = move |mirror: &Mirror| match mirror.names(&at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            names => names,
        };
        for name in self.workspace.disk("to list a folder", names).await? {
            if known.contains(&name) {
                continue;
            }
            self.at = FaultPlace { path: Some(join(folder, &name)), ..FaultPlace::default() };
            let message = "the index has nothing there";
            match folder.join(&name) {
                Ok(path) => self.put_right(&path, "stray", message).await?,
                Err(_) => self.fault(FsckPart::Mirror, "stray", message, false),
            }
        }
        Ok(())
    }

    pub(super) async fn look(&mut self, path: &FilePath) -> Result<OnDisk> {
        self.done.mirrored += 1;
        let at = path.clone();
        self.workspace.disk("to look at a file", move |mirror| mirror.look(Area::Latest, &at)).await
    }

    async fn is_same(&self, path: &FilePath, entry: &Entry) -> Result<bool> {
        let Some(digest) = entry.sha256 else { return Ok(false) };
        if is_large(entry.size) {
            let at = path.clone();
            let found = move |mirror: &Mirror| digest_of(mirror.open(&at)?);
            return Ok(self.workspace.disk("to read a file", found).await? == digest);
        }
        match self.workspace.in_latest(path, entry.size).await? {
            Some(content) => Ok(contents::digest(&content).await? == digest),
            None => Ok(false),
        }
    }

    async fn put_right(&mut self, path: &FilePath, code: &'static str, message: &str) -> Result<()> {
        let repaired = self.repair && self.settles(path).await?;
        self.fault(FsckPart::Mirror, code, format!("in latest/, {message}"), repaired);
        Ok(())
    }

    /// Whether a path of `latest/` was put right. One whose folders the index has damaged waits for their repair.
    pub(super) async fn settles(&self, path: &FilePath) -> Result<bool> {
        match self.workspace.settle(path, false).await {
            Ok(settled) => Ok(settled.fixed > 0),
            Err(error) if error.code == Code::Internal => Ok(false),
            Err(error) => Err(error),
        }
    }
}
