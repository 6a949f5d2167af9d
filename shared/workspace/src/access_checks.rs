//! The access of a handle: every operation asks here before it acts, and lists only what exists for its subject (spec 001 §5).
//!
//! Invariant: a path that is hidden from the subject of a handle looks exactly like one where nothing is: in results, in errors with their hints, and
//! in time, since the index is not asked about it.

use crate::{
    Change, FileKind, Info, Result, Workspace,
    model::{Entry, InForce, Node},
    party::{Access, HandleAccess, Party, Settled},
    trash_entry::Item,
};
use access::{Action, Decision, Effect, Policies, Subject};
use domain::{Code, Error, FileId, FilePath, WorkspaceEvent};
use futures::future::BoxFuture;
use std::sync::Arc;

/// The detail of a refusal that a person can answer.
const ASK: &str = "ask";
/// How many entries of a list are looked at together for one that exists for its reader.
const LOOKED_AHEAD: usize = 100;
/// How often that is done for one page.
const MOST_AHEAD: usize = 50;
/// How many files a folder may have that is moved or removed where policies look at names.
const MOST_NAMED: usize = 100_000;

/// The last place of a file.
enum LastPath {
    Current(FilePath),
    /// At or below something in the trash.
    Trashed(FilePath),
    Nowhere,
}

impl Workspace {
    /// The decision on an action at a path; none for BuildScale itself, which nothing is decided on.
    pub fn decision(&self, action: Action, path: &FilePath) -> Option<Decision> {
        match &self.1.access.0 {
            Party::Platform(_) => None,
            Party::Subject(subject, _) => Some(self.1.policies.decide(subject, action, path)),
        }
    }

    /// The decision for somebody else, for people who ask why.
    pub fn explain(&self, subject: &Subject, action: Action, path: &FilePath) -> Decision {
        self.1.policies.decide(subject, action, path)
    }

    /// The time now, as changes are stamped with it.
    pub fn now(&self) -> domain::Timestamp {
        self.0.clock.now()
    }

    pub(crate) fn party(&self) -> &Party {
        &self.1.access.0
    }

    pub(crate) fn policies_in_force(&self) -> &Policies {
        &self.1.policies
    }

    /// Whether the path exists for the subject of this handle, as far as policies say.
    pub fn shows(&self, path: &FilePath) -> bool {
        match &self.1.access.0 {
            Party::Platform(_) => true,
            Party::Subject(subject, _) => self.1.policies.shows(subject, path),
        }
    }

    /// Whether contents at the path may be read; for lists, where an error would tell that there is something.
    pub fn may_read(&self, path: &FilePath) -> bool {
        self.decision(Action::Read, path).is_none_or(|decision| decision.is_permit())
    }

    /// A file as this party sees it: without the digest of a content that it may not read. A digest tells a content from others, and a file can be made
    /// of it.
    pub(crate) fn as_seen(&self, info: Info) -> Info {
        match info.sha256.is_none() || self.knows_digest(&info.path) {
            true => info,
            false => Info { sha256: None, ..info },
        }
    }

    /// The same for a change that this party has made.
    pub(crate) fn as_told(&self, change: Change) -> Change {
        match change.sha256.is_none() || self.knows_digest(&change.path) {
            true => change,
            false => Change { sha256: None, ..change },
        }
    }

    /// Whether the party may know the digest of the content at a path: whether it reads the content, also after a person has said yes to that.
    pub(crate) fn knows_digest(&self, path: &FilePath) -> bool {
        self.1.policies.reads_what_it_lists() || self.demand(Action::Read, path).is_ok()
    }

    /// The same for all paths in a folder, but not for those below it; none where each has a decision of its own.
    pub fn may_read_in(&self, folder: &FilePath) -> Option<bool> {
        match &self.1.access.0 {
            Party::Platform(_) => Some(true),
            Party::Subject(subject, _) => {
                self.1.policies.decide_in(subject, Action::Read, folder).map(|decision| decision.is_permit())
            }
        }
    }

    /// Whether everything in a folder exists for the subject, or everything at all, as far as one decision tells.
    fn shows_all_in(&self, folder: Option<&FilePath>) -> bool {
        let Party::Subject(subject, _) = &self.1.access.0 else { return true };
        let policies = &self.1.policies;
        let whole = |folder| policies.decide_in(subject, Action::List, folder).is_some_and(|all| all.is_permit());
        policies.shows_all(subject) || folder.is_some_and(whole)
    }

    /// A page of a list: up to `limit` things that exist for the subject, and the cursor of the next page. A page that is cut short by hidden things would
    /// tell of them, and so would a cursor behind which nothing exists for the subject: it is left out. `read` gives those that exist of so many things
    /// after a cursor, and the cursor behind these; `folder` is the one that is listed.
    pub(crate) async fn page<'a, T>(
        &self,
        limit: usize,
        mut cursor: Option<String>,
        folder: Option<&FilePath>,
        read: impl Fn(usize, Option<String>) -> BoxFuture<'a, Result<(Vec<T>, Option<String>)>>,
    ) -> Result<(Vec<T>, Option<String>)> {
        let mut page = Vec::new();
        loop {
            let (shown, next) = read(limit - page.len(), cursor).await?;
            page.extend(shown);
            cursor = next;
            if cursor.is_none() || page.len() >= limit {
                break;
            }
        }
        if cursor.is_none() || self.shows_all_in(folder) {
            return Ok((page, cursor));
        }
        let mut at = cursor.clone();
        for _ in 0..MOST_AHEAD {
            let (shown, next) = read(LOOKED_AHEAD, at).await?;
            if !shown.is_empty() {
                return Ok((page, cursor));
            }
            if next.is_none() {
                return Ok((page, None));
            }
            at = next;
        }
        // Beyond that the cursor may tell of hidden entries: a look without end would tell of them by its time.
        Ok((page, cursor))
    }

    /// The same workspace for the subject `service`, which serves several people at once.
    pub(crate) fn for_service(&self, name: &'static str) -> Self {
        let access = Access::subject(Subject::Service { name });
        Self(self.0.clone(), HandleAccess::new(access, self.1.policies.clone()))
    }

    /// Whether this party reads below `path` just what a service reads.
    pub(crate) async fn sees_as_service(&self, name: &'static str, path: &FilePath) -> bool {
        let Party::Subject(subject, _) = &self.1.access.0 else { return true };
        if !self.1.policies.read_alike(subject, &Subject::Service { name }, path) {
            return false;
        }
        let home = subject.person().and_then(|person| FilePath::parse(&access::home(person)).ok());
        match home.filter(|home| home.is_within(path) || path.is_within(home)) {
            None => true,
            // One that its person has not touched has nothing to be found.
            Some(home) => match self.folder_at(&home).await {
                Ok(folder) => self.is_untouched_home(folder).await.unwrap_or(false),
                Err(error) => error.code == Code::NotFound,
            },
        }
    }

    /// Refuses an action that the policies do not permit.
    ///
    /// # Errors
    /// `NOT_FOUND` for a path that does not exist for the subject; `FORBIDDEN` with the deciding `policy` for any other, and with `access: ask` where a
    /// person may allow it.
    pub fn demand(&self, action: Action, path: &FilePath) -> Result<()> {
        match self.decision(action, path) {
            None => Ok(()),
            Some(decision) => self.follow(decision, action, path),
        }
    }

    fn follow(&self, decision: Decision, action: Action, path: &FilePath) -> Result<()> {
        let settled = match &self.1.access.0 {
            Party::Platform(_) => Settled::All,
            Party::Subject(_, settled) => *settled,
        };
        match decision.effect {
            Effect::Permit => Ok(()),
            Effect::Ask if settled == Settled::All => Ok(()),
            Effect::Ask if settled == Settled::BuiltIn && !decision.policy.contains('#') => Ok(()),
            Effect::Deny | Effect::Ask if !self.shows(path) => Err(hidden(path)),
            Effect::Deny | Effect::Ask => Err(refusal(&decision, action, path)),
        }
    }

    /// Refuses what is done to a file, or to a folder with all in it: `below` are the paths in it, which are asked for only where policies look at names.
    pub(crate) async fn demand_tree(&self, action: Action, path: &FilePath, of: &Entry) -> Result<()> {
        self.demand(action, path)?;
        let Party::Subject(subject, _) = &self.1.access.0 else { return Ok(()) };
        if of.kind != FileKind::Folder {
            return Ok(());
        }
        if let Some(decision) = self.1.policies.decide_tree(subject, action, path) {
            // A path in it that is hidden must not be named.
            return self.follow(decision, action, path);
        }
        let mut folders = vec![(of.file_id, path.clone())];
        let mut seen = 0_usize;
        while let Some((id, at)) = folders.pop() {
            for (name, entry) in self.all_entries(id).await? {
                seen += 1;
                let inside = at.join(&name)?;
                let decision = self.1.policies.decide(subject, action, &inside);
                if seen > MOST_NAMED || !decision.is_permit() {
                    return self.follow(Decision { effect: Effect::Deny, ..decision }, action, path);
                }
                if entry.kind == FileKind::Folder {
                    folders.push((entry.file_id, inside));
                }
            }
        }
        Ok(())
    }

    /// Refuses all but BuildScale itself: projections are kept by it.
    pub(crate) fn platform_alone(&self, path: &FilePath) -> Result<()> {
        match &self.1.access.0 {
            Party::Platform(_) => Ok(()),
            Party::Subject(..) => Err(Error::new(Code::Forbidden, format!("{path} is kept by BuildScale itself"))),
        }
    }

    /// How many names of a path lead to what exists for the subject; none when all do.
    pub(crate) fn shown_names(&self, path: &FilePath) -> Option<usize> {
        if matches!(self.1.access.0, Party::Platform(_)) || self.shows(path) {
            return None;
        }
        let mut shown = Some(path.clone());
        while let Some(at) = shown.take() {
            if self.shows(&at) {
                return Some(at.names().count());
            }
            shown = at.parent();
        }
        Some(0)
    }

    /// Whether the history of a file may be read: that of one that does not exist for the subject is that of no file.
    ///
    /// # Errors
    /// `FORBIDDEN` for a file that is listed and may not be read; else those of [`Workspace`].
    pub(crate) async fn has_history(&self, file_id: FileId) -> Result<bool> {
        match self.party() {
            Party::Platform(_) => return Ok(true),
            // They see everything, so its place does not have to be looked up.
            Party::Subject(subject, _) if self.1.policies.shows_all(subject) => return Ok(true),
            Party::Subject(..) => {}
        }
        match self.place(file_id).await? {
            LastPath::Current(path) | LastPath::Trashed(path) if self.shows(&path) => {
                self.demand(Action::Read, &path).map(|()| true)
            }
            LastPath::Current(_) | LastPath::Trashed(_) | LastPath::Nowhere => Ok(false),
        }
    }

    async fn place(&self, file_id: FileId) -> Result<LastPath> {
        let (mut names, mut at) = (Vec::new(), file_id);
        let join = |base: &FilePath, names: &[String]| {
            names.iter().rev().try_fold(base.clone(), |path, name| path.join(name)).map_err(Error::from)
        };
        while at != self.0.keys.root() {
            if names.len() > crate::index::MAX_DEPTH {
                return Ok(LastPath::Nowhere);
            }
            let item = self.0.table.get(&self.0.keys.node(at)).await.map_err(crate::error::port)?;
            let Some(item) = item else {
                let trashed = self.0.table.get(&self.0.keys.trashed(at)).await.map_err(crate::error::port)?;
                return Ok(match trashed {
                    Some(item) => LastPath::Trashed(join(&crate::error::parse::<Item>(&item.body)?.path, &names)?),
                    None => LastPath::Nowhere,
                });
            };
            let Node { folder, name } = crate::error::parse(&item.body)?;
            let Some(folder) = folder else { return Ok(LastPath::Nowhere) };
            names.push(name);
            at = folder;
        }
        Ok(LastPath::Current(join(&FilePath::root(), &names)?))
    }

    /// A change as it looks from here: none when it happened out of sight. An entry that came from out of sight was made, and one that went there was removed.
    pub fn seen(&self, event: WorkspaceEvent) -> Option<WorkspaceEvent> {
        if let WorkspaceEvent::Presence { at, .. } = &event {
            return at.path().is_ok_and(|path| self.may_read(&path)).then_some(event);
        }
        let WorkspaceEvent::FileUpdated { path, from, op, v, file_id, kind, author, at, conversion } = event else {
            return Some(event);
        };
        let from_shown = from.filter(|from| self.shows(from));
        match (self.shows(&path), from_shown) {
            (true, None) if op == domain::FileOp::Moved => Some(WorkspaceEvent::FileUpdated {
                path,
                from: None,
                op: domain::FileOp::Made,
                v,
                file_id,
                kind,
                author,
                at,
                conversion,
            }),
            (true, from) => {
                Some(WorkspaceEvent::FileUpdated { path, from, op, v, file_id, kind, author, at, conversion })
            }
            (false, Some(from)) => {
                let (path, from, op, v, conversion) = (from, None, domain::FileOp::Removed, 0, None);
                Some(WorkspaceEvent::FileUpdated { path, from, op, v, file_id, kind, author, at, conversion })
            }
            (false, None) => None,
        }
    }

    /// The entries that exist for the subject.
    pub(crate) fn only_shown(&self, mut entries: Vec<Info>) -> Vec<Info> {
        entries.retain(|entry| self.shows(&entry.path));
        entries
    }

    /// The policies in force.
    pub(crate) async fn policies(&self, in_force: &[InForce]) -> Result<Arc<Policies>> {
        crate::policies::load(&self.0, in_force).await
    }
}

/// The answer for a path that is hidden: the same as for one where nothing is.
fn hidden(path: &FilePath) -> Error {
    Error::not_found("file or folder", path).hint("list the folder to see what is there")
}

fn refusal(decision: &Decision, action: Action, path: &FilePath) -> Error {
    let why = if decision.why.is_empty() { String::new() } else { format!(": {}", decision.why) };
    let (message, hint) = match decision.effect {
        Effect::Ask => (
            format!("a person has to allow it to {action} {path}{why}"),
            "an agent asks in its chat; an editor does it by hand",
        ),
        Effect::Permit | Effect::Deny => (
            format!("the policies do not let you {action} {path}{why}"),
            "GET …/access?path= explains the decision; an owner or an admin may change the policies in /system/policies",
        ),
    };
    let error = Error::new(Code::Forbidden, message).hint(hint).detail("policy", &*decision.policy);
    let error = error.detail("path", path.as_str()).detail("action", action.as_str());
    if decision.effect == Effect::Ask { error.detail("access", ASK) } else { error }
}

/// The question to people that a refusal is, if it is one: its reason.
pub fn asks(error: &Error) -> Option<&str> {
    let is_question = error.code == Code::Forbidden && error.details.get("access").is_some_and(|access| access == ASK);
    is_question.then_some(error.message.as_str())
}
