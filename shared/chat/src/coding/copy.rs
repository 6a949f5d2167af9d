//! The working copy of a coding agent (spec 004 §14): before a turn it gets the files of the workspace, and the changes of the agent become
//! versions with the agent as their author, when a call of it is over and when its turn is.
//!
//! Workspace and copy are compared path by path with the version that they had in common last ([`step`]). Nothing is lost: where both have changed
//! a file, the workspace keeps its own, and that of the agent becomes a file beside it.

mod step;

use crate::{machine::AgentWork, perform::ChatEffects};
use domain::{CallId, ChatEvent, Code, Error, FilePath, Principal, ThreadAgent};
use ports::{AgentTurn, Clock, Common, CopiedFile, LARGE, MOST_COPIED, WorkingCopies, WorkingCopy};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use step::{Step, step};
use tools::file_updated;
use workspace::{Access, Expect, FileKind, Info, Workspace, Workspaces, Writer};

/// The most bytes that a working copy gets of its workspace.
const MOST_BYTES: u64 = 2 << 30;
/// How often a path is compared again because others wrote it meanwhile.
const ROUNDS: u32 = 5;
/// The most refusals that are told one by one.
const MOST_TOLD: usize = 20;

/// The working copy of a turn.
pub(super) struct Copy {
    copies: Arc<dyn WorkingCopies>,
    workspaces: Workspaces,
    clock: Arc<dyn Clock>,
    turn: AgentTurn,
    author: Principal,
    may_run: bool,
    has_home: bool,
    folder: FilePath,
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// The changes that are versions now, as events.
    pub changed: Vec<ChatEvent>,
    /// Those that the workspace did not take.
    pub refused: Vec<RefusedChange>,
}

/// A change of the agent that the workspace did not take.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RefusedChange {
    pub path: FilePath,
    /// Why, and how the file is now.
    pub why: String,
}

/// A file of the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WorkspaceFile {
    common: Common,
    size: u64,
}

impl WorkspaceFile {
    fn of(info: &Info) -> Option<Self> {
        let digest = info.sha256.filter(|_| info.kind == FileKind::File)?;
        Some(Self { common: Common { file: info.file_id, v: info.v, digest }, size: info.size })
    }
}

/// The paths that are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComparedPaths {
    /// Those that the agent has changed.
    Changed,
    /// All: others may have changed the workspace.
    All,
}

impl ChatEffects {
    /// The working copy of a piece of work; none where its agent works in a folder of the machine.
    pub(super) fn copy_of(&self, work: &AgentWork) -> Option<Copy> {
        let (copies, folder) = (self.agents.copies()?, work.folder.clone()?);
        let (workspaces, clock) = (self.workspaces.clone(), self.clock.clone());
        let (author, may_run, has_home) = (work.author.clone(), work.may_run, work.has_home);
        Some(Copy { copies, workspaces, clock, turn: work.turn, author, may_run, has_home, folder })
    }
}

impl Copy {
    /// Brings workspace and copy in line before a turn; the words that the agent reads first: the refusals that it has not heard of.
    pub async fn bring(&self) -> ports::Result<(Vec<Value>, Comparison)> {
        let (settled, untold) = self.compare(ComparedPaths::All, None).await?;
        let words = (!untold.is_empty()).then(|| {
            let text = format!("The workspace did not take these changes of yours:\n\n{}", untold.join("\n"));
            json!({ "type": "text", "text": text })
        });
        Ok((words.into_iter().collect(), settled))
    }

    /// Makes versions of the changes of the agent. It hears of a refusal of `told` at once, and of the others with the next turn.
    pub async fn settle(&self, told: Option<&FilePath>) -> ports::Result<Comparison> {
        Ok(self.compare(ComparedPaths::Changed, told).await?.0)
    }

    async fn compare(&self, which: ComparedPaths, told: Option<&FilePath>) -> ports::Result<(Comparison, Vec<String>)> {
        let access = Access::of(&self.author, None);
        let access = if self.has_home { access } else { access.without_home() };
        let files = self.workspaces.open(self.turn.workspace, access).await.map_err(unavailable)?;
        let mut copy = self.copies.hold(self.turn.workspace, self.turn.chat).await?;
        let before = copy.record().clone();
        let mut settled = Comparison::default();
        let compared = self.compare_in(&files, &mut *copy, which, &mut settled).await;
        let record = copy.record();
        let news = settled.refused.iter().filter(|refused| told != Some(&refused.path)).map(RefusedChange::line);
        record.untold.extend(news);
        record.untold.truncate(MOST_TOLD);
        let untold = if which == ComparedPaths::All && compared.is_ok() {
            std::mem::take(&mut record.untold)
        } else {
            Vec::new()
        };
        if *record != before {
            copy.keep().await?;
        }
        compared.map(|()| (settled, untold))
    }

    async fn compare_in(
        &self,
        files: &Workspace,
        copy: &mut dyn WorkingCopy,
        which: ComparedPaths,
        settled: &mut Comparison,
    ) -> ports::Result<()> {
        let on_disk = copy.scan(&self.folder).await?;
        let there = match which {
            ComparedPaths::All => self.all(files).await?,
            ComparedPaths::Changed => BTreeMap::new(),
        };
        let record = copy.record();
        record.stays.retain(|path, digest| on_disk.get(path).is_some_and(|found| found.digest == *digest));
        let all: BTreeSet<FilePath> = on_disk.keys().chain(record.common.keys()).chain(there.keys()).cloned().collect();
        for path in all {
            let (found, common) = (on_disk.get(&path).copied(), copy.record().common.get(&path).copied());
            let is_changed = found.map(|found| found.digest) != common.map(|common| common.digest);
            if is_changed && is_of_git(&path) {
                // It is the agent's own.
                copy.record().common.remove(&path);
                continue;
            }
            if copy.record().stays.contains_key(&path) || (which == ComparedPaths::Changed && !is_changed) {
                continue;
            }
            let now = match which {
                ComparedPaths::All => there.get(&path).copied(),
                ComparedPaths::Changed => at(files, &path).await?,
            };
            self.compare_one(files, copy, (&path, found, now), settled).await?;
        }
        Ok(())
    }

    /// The files of the folder that the copy can have.
    async fn all(&self, files: &Workspace) -> ports::Result<BTreeMap<FilePath, WorkspaceFile>> {
        let (found, is_all) = match files.list_tree(&self.folder, 2 * MOST_COPIED).await {
            Ok(found) => found,
            Err(error) if error.code == Code::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(unavailable(error)),
        };
        let there = found.iter().filter(|info| !is_of_git(&info.path));
        let there = there.filter_map(|info| Some((info.path.clone(), WorkspaceFile::of(info)?)));
        let there: BTreeMap<_, _> = there.filter(|(_, there)| there.size <= LARGE).collect();
        let bytes: u64 = there.values().map(|there| there.size).sum();
        if !is_all || there.len() > MOST_COPIED || bytes > MOST_BYTES {
            let folder = ThreadAgent::cwd_of(&self.folder);
            return Err(ports::Error::Invalid(format!(
                "{folder} has more than {MOST_COPIED} files or {} GiB: choose a folder with less in it",
                MOST_BYTES >> 30
            )));
        }
        Ok(there)
    }

    async fn compare_one(
        &self,
        files: &Workspace,
        copy: &mut dyn WorkingCopy,
        (path, found, mut now): (&FilePath, Option<CopiedFile>, Option<WorkspaceFile>),
        settled: &mut Comparison,
    ) -> ports::Result<()> {
        for _ in 0..ROUNDS {
            let common = copy.record().common.get(path).copied();
            let in_common = match step(common, found.map(|found| found.digest), now.map(|now| now.common)) {
                Step::Nothing => return Ok(()),
                Step::Agree(common) => Ok(Some(common)),
                Step::Forget => Ok(None),
                Step::Take | Step::Drop => return take(files, copy, path, found, now).await,
                Step::Write(expect) => {
                    let Some(found) = found else { return Ok(()) };
                    match self.write(files, copy, (path, path), found, expect, settled).await? {
                        // It is another one by now, and compared again with the next call.
                        None => return Ok(()),
                        Some(written) => written.map(Some),
                    }
                }
                Step::Remove(expect) => self.remove(files, path, expect, settled).await.map(|()| None),
                Step::Aside => {
                    let (Some(found), aside) = (found, aside(path, self.turn)) else { return Ok(()) };
                    match self.write(files, copy, (path, &aside), found, Expect::Any, settled).await? {
                        None => return Ok(()),
                        Some(Ok(_)) => {
                            let why = format!("others have changed it, too: theirs stays, and yours is {aside}");
                            settled.refused.push(RefusedChange { path: path.clone(), why });
                            return take(files, copy, path, Some(found), now).await;
                        }
                        Some(Err(error)) => Err(error),
                    }
                }
            };
            let error = match in_common {
                Ok(Some(common)) => {
                    copy.record().common.insert(path.clone(), common);
                    return Ok(());
                }
                Ok(None) => {
                    copy.record().common.remove(path);
                    return Ok(());
                }
                Err(error) => error,
            };
            match error.code {
                Code::StaleVersion | Code::Conflict => now = at(files, path).await?,
                Code::Forbidden | Code::NotFound => {
                    let why = format!("{}; the file is as it was before", error.message);
                    settled.refused.push(RefusedChange { path: path.clone(), why });
                    return take(files, copy, path, found, now).await;
                }
                Code::InvalidArgument | Code::PayloadTooLarge | Code::Unprocessable | Code::LimitReached => {
                    stays(copy, path, found, error.message, settled);
                    return Ok(());
                }
                _ => return Err(unavailable(error)),
            }
        }
        let why = "something else is at this path in the workspace".to_owned();
        stays(copy, path, found, why, settled);
        Ok(())
    }

    /// Removes a file of the workspace, as the agent has removed that of the copy.
    async fn remove(
        &self,
        files: &Workspace,
        path: &FilePath,
        expect: Expect,
        settled: &mut Comparison,
    ) -> Result<(), Error> {
        let (call, writer) = self.writer();
        match files.rm_expecting(path, expect, &writer).await {
            Err(error) if error.code == Code::NotFound => {}
            removed => settled.changed.extend(file_updated(&removed?, Some(call))),
        }
        Ok(())
    }

    /// Writes a content of the copy to the workspace, at `to`. None when the agent has changed it meanwhile.
    async fn write(
        &self,
        files: &Workspace,
        copy: &mut dyn WorkingCopy,
        (from, to): (&FilePath, &FilePath),
        found: CopiedFile,
        expect: Expect,
        settled: &mut Comparison,
    ) -> ports::Result<Option<Result<Common, Error>>> {
        if found.size > LARGE {
            let message = format!("it has {} bytes, and a version from a working copy at most {LARGE}", found.size);
            return Ok(Some(Err(Error::new(Code::PayloadTooLarge, message))));
        }
        let Some(content) = copy.read(from, found).await? else { return Ok(None) };
        let (call, writer) = self.writer();
        let written = files.write(to, content, expect, &writer).await;
        Ok(Some(written.map(|change| {
            settled.changed.extend(file_updated(&change, Some(call)));
            Common { file: change.file_id, v: change.v, digest: found.digest }
        })))
    }

    /// Each change is a call of its own. After a process that died the comparison finds what was written: no change is made twice.
    fn writer(&self) -> (CallId, Writer) {
        let call = CallId(self.clock.id());
        (call, Writer { may_run: self.may_run, ..Writer::in_call(self.author.clone(), call) })
    }
}

/// Whether a file is one of git's own. Git runs programs that such files name, and anybody who writes in the workspace could name one: so none comes into
/// a copy. Some disks take names in any letters for the same.
fn is_of_git(path: &FilePath) -> bool {
    path.names().any(|name| name.eq_ignore_ascii_case(".git"))
}

/// The file of the workspace at a path, as the agent may see it.
async fn at(files: &Workspace, path: &FilePath) -> ports::Result<Option<WorkspaceFile>> {
    match files.stat(path).await {
        Ok(info) => Ok(WorkspaceFile::of(&info)),
        Err(error) if matches!(error.code, Code::NotFound | Code::Forbidden) => Ok(None),
        Err(error) => Err(unavailable(error)),
    }
}

/// The copy gets the file of the workspace, or loses it.
async fn take(
    files: &Workspace,
    copy: &mut dyn WorkingCopy,
    path: &FilePath,
    found: Option<CopiedFile>,
    now: Option<WorkspaceFile>,
) -> ports::Result<()> {
    // A large one is read through the API: the copy is without it.
    let content = match now {
        Some(now) if now.size > LARGE => None,
        Some(_) => match files.read(path, None).await {
            Ok(content) => Some(content),
            Err(error) if matches!(error.code, Code::NotFound | Code::Forbidden) => None,
            Err(error) => return Err(unavailable(error)),
        },
        None => None,
    };
    let Some(content) = content else {
        let is_gone = match found {
            Some(found) => copy.take_away(path, found).await?,
            None => true,
        };
        if is_gone {
            copy.record().common.remove(path);
        }
        return Ok(());
    };
    if let Some(WorkspaceFile { common, .. }) = WorkspaceFile::of(&content.info)
        && copy.put(path, content.bytes, found).await?
    {
        copy.record().common.insert(path.clone(), common);
    }
    Ok(())
}

/// The workspace cannot have the file: it stays in the copy alone, until it is another one.
fn stays(
    copy: &mut dyn WorkingCopy,
    path: &FilePath,
    found: Option<CopiedFile>,
    why: String,
    settled: &mut Comparison,
) {
    if let Some(found) = found {
        copy.record().stays.insert(path.clone(), found.digest);
    }
    settled.refused.push(RefusedChange { path: path.clone(), why: format!("{why}; it is in the working copy alone") });
}

/// The path of the agent's file beside the one that others have changed, too: the same again for the same turn.
fn aside(path: &FilePath, turn: AgentTurn) -> FilePath {
    let id = turn.turn.0.simple().to_string();
    let mark = format!("conflict-{}", &id[id.len() - 8..]);
    let (stem, ending) = match path.name().rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, format!(".{ending}")),
        _ => (path.name(), String::new()),
    };
    // A name has at most 255 bytes.
    let room = 255_usize.saturating_sub(mark.len() + ending.len() + 1);
    let stem = &stem[..stem.floor_char_boundary(room.min(stem.len()))];
    let folder = path.parent().unwrap_or_else(FilePath::root);
    // A path that is too long by it stays in the copy: the write is refused.
    folder.join(&format!("{stem}.{mark}{ending}")).unwrap_or_else(|_| path.clone())
}

impl RefusedChange {
    fn line(&self) -> String {
        format!("- {}: {}", ThreadAgent::cwd_of(&self.path), self.why)
    }

    /// Refusals as updates of ACP: a call of editing that failed, which every protocol can show.
    pub fn as_updates(all: &[Self], turn: AgentTurn) -> Vec<Value> {
        let Some(first) = all.first() else { return Vec::new() };
        let mut lines: Vec<String> = all.iter().take(MOST_TOLD).map(Self::line).collect();
        if all.len() > MOST_TOLD {
            lines.push(format!("and {} more", all.len() - MOST_TOLD));
        }
        let text = lines.join("\n");
        let id = CallId::from_key(&turn.turn.to_string(), &format!("{}@{text}", first.path));
        let locations = all.iter().take(MOST_TOLD).map(|one| json!({ "path": ThreadAgent::cwd_of(&one.path) }));
        vec![
            json!({
                "sessionUpdate": "tool_call", "toolCallId": id.to_string(), "kind": "edit", "status": "pending",
                "title": "Changes that the workspace did not take", "locations": locations.collect::<Vec<_>>(),
            }),
            json!({
                "sessionUpdate": "tool_call_update", "toolCallId": id.to_string(), "kind": "edit", "status": "failed",
                "content": [{ "type": "content", "content": { "type": "text", "text": text } }],
            }),
        ]
    }
}

fn unavailable(error: Error) -> ports::Error {
    ports::Error::unavailable("the workspace", error)
}
