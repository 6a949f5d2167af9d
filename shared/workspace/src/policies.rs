//! The workspace's own policies (spec 001 §5): the files `/system/policies/*.cedar`. The set in force is part of the workspace's record, as the
//! digests of its texts. A change of these files is checked before it is committed, and the commit that changes a file changes the record, too. So a
//! set that does not parse never comes into force, and the last good one stays.

use crate::{
    FileKind, Result, Workspace, error,
    handle::{Archive, Inner},
    model::{Entry, InForce},
};
use access::{FOLDER, Policies, Source, is_policy};
use bytes::Bytes;
use domain::{Code, Error, FileId, FilePath, Sha256};
use ports::{Expect, Write};
use std::{collections::BTreeMap, sync::Arc};

/// The policies of a set that cannot be read: nobody but admins gets in, until one of them mends it.
const LOCKED: &str = r#"
@id("policies-cannot-be-read")
@why("the workspace's own policies cannot be read: an owner or an admin has to write them anew")
forbid (principal, action, resource) unless { principal in Role::"admin" };
"#;

/// The compiled set of these texts.
pub(crate) async fn load(inner: &Inner, in_force: &[InForce]) -> Result<Arc<Policies>> {
    if in_force.is_empty() {
        return Ok(Policies::builtin());
    }
    let cached = inner.policies.lock().clone();
    if let Some((_, policies)) = cached.filter(|(of, _)| of == in_force) {
        return Ok(policies);
    }
    let policies = match texts(&inner.archive, in_force).await.and_then(|texts| compiled(&texts)) {
        Ok(policies) => policies,
        // A store that does not answer is no reason to change who gets in.
        Err(error) if error.code == Code::UpstreamUnavailable => return Err(error),
        Err(error) => {
            tracing::error!(workspace = %inner.id, %error, "the policies of a workspace cannot be read");
            return compiled(&BTreeMap::from([(FOLDER.to_owned(), LOCKED.to_owned())]));
        }
    };
    let known = (in_force.to_vec(), policies.clone());
    *inner.policies.lock() = Some(known);
    Ok(policies)
}

async fn texts(archive: &Archive, in_force: &[InForce]) -> Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for InForce { path, sha256, size } in in_force {
        let content = archive.get(*sha256, *size).await?;
        texts.insert(path.to_string(), text_of(path, &content)?);
    }
    Ok(texts)
}

fn text_of(path: &FilePath, content: &Bytes) -> Result<String> {
    let text = std::str::from_utf8(content).map_err(|_| {
        Error::invalid("content", format!("{path} is no text in UTF-8")).hint("write policies in Cedar, as UTF-8")
    })?;
    Ok(text.to_owned())
}

fn compiled(texts: &BTreeMap<String, String>) -> Result<Arc<Policies>> {
    let sources: Vec<Source<'_>> = texts.iter().map(|(name, text)| Source { name, text }).collect();
    let fault = |fault: access::SyntaxError| {
        Error::new(Code::Unprocessable, format!("{fault}"))
            .hint("the policies that are in force stay in force; mend the text and write it again")
            .detail("field", "content")
            .detail("path", fault.name)
            .detail("line", fault.line)
            .detail("column", fault.column)
    };
    Policies::with(&sources).map(Arc::new).map_err(fault)
}

/// A change that may concern policies.
pub(crate) enum Touches<'a> {
    /// A file gets this content.
    Writes(&'a FilePath, Sha256, u64, Option<&'a Bytes>),
    /// This goes away from a path.
    Takes(&'a FilePath),
    /// This comes to a path.
    Puts(&'a FilePath, &'a Entry),
}

impl Workspace {
    /// The write that brings the policies in force which are there after these changes; none when they stay the same.
    ///
    /// # Errors
    /// `UNPROCESSABLE`, with `path`, `line` and `column`, when they would not parse or not fit the schema; else those of [`Workspace`].
    pub(crate) async fn policies_after(&self, changes: &[Touches<'_>]) -> Result<Option<Write>> {
        let folder = FilePath::parse(FOLDER)?;
        let concerns = |path: &FilePath| is_policy(path) || *path == folder;
        if !changes.iter().any(|change| concerns(change.path())) {
            return Ok(None);
        }
        let (mut record, rev) = self.record().await?.ok_or_else(|| Error::not_found("workspace", self.0.id))?;
        let mut files = BTreeMap::new();
        if let Some(found) = self.unlimited("policies are read with their folder").walk(&folder).await?.found {
            files = self.policy_files(found.entry.file_id).await?;
        }
        let mut fresh: BTreeMap<FilePath, Bytes> = BTreeMap::new();
        for change in changes.iter().filter(|change| concerns(change.path())) {
            match change {
                Touches::Writes(path, sha256, size, content) => {
                    files.insert((*path).clone(), (*sha256, *size));
                    fresh.extend(content.map(|content| ((*path).clone(), content.clone())));
                }
                Touches::Takes(path) if **path == folder => files.clear(),
                Touches::Takes(path) => drop(files.remove(*path)),
                Touches::Puts(path, entry) if **path == folder && entry.kind == FileKind::Folder => {
                    files = self.policy_files(entry.file_id).await?;
                }
                Touches::Puts(path, entry) => {
                    let known = entry.sha256.filter(|_| is_policy(path)).map(|sha256| (sha256, entry.size));
                    files.extend(known.map(|known| ((*path).clone(), known)));
                }
            }
        }
        let in_force = self.in_force(&files, &fresh).await?;
        if record.policies == in_force {
            return Ok(None);
        }
        record.policies = in_force;
        Ok(Some(Write::put(self.0.keys.workspace(), error::json(&record)?, Expect::Rev(rev))))
    }

    /// The set of these policies, of which some have a text that the archive may not have yet.
    ///
    /// # Errors
    /// `UNPROCESSABLE`, with `path`, `line` and `column`, when they do not parse or do not fit the schema; else those of [`Workspace`].
    pub(crate) async fn in_force(
        &self,
        files: &BTreeMap<FilePath, (Sha256, u64)>,
        fresh: &BTreeMap<FilePath, Bytes>,
    ) -> Result<Vec<InForce>> {
        let mut texts = BTreeMap::new();
        for (path, (sha256, size)) in files {
            if *size > access::MAX_TEXT as u64 {
                let message =
                    format!("{path} is {size} bytes long; a text of policies has at most {}", access::MAX_TEXT);
                return Err(Error::new(Code::Unprocessable, message).detail("field", "content"));
            }
            let content = match fresh.get(path) {
                Some(content) => content.clone(),
                None => self.0.archive.get(*sha256, *size).await?,
            };
            texts.insert(path.to_string(), text_of(path, &content)?);
        }
        compiled(&texts)?;
        let listed =
            files.iter().map(|(path, (sha256, size))| InForce { path: path.clone(), sha256: *sha256, size: *size });
        Ok(listed.collect())
    }

    async fn policy_files(&self, folder: FileId) -> Result<BTreeMap<FilePath, (Sha256, u64)>> {
        let at = FilePath::parse(FOLDER)?;
        let mut files = BTreeMap::new();
        for (name, entry) in self.all_entries(folder).await? {
            let path = at.join(&name)?;
            if let Some(sha256) = entry.sha256.filter(|_| is_policy(&path)) {
                files.insert(path, (sha256, entry.size));
            }
        }
        Ok(files)
    }
}

impl Touches<'_> {
    fn path(&self) -> &FilePath {
        match self {
            Self::Writes(path, ..) | Self::Takes(path) | Self::Puts(path, _) => path,
        }
    }
}
