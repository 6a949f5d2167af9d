//! The changes of files that a chat made, as its events tell them: for `/files`, `/diff`, `/undo` and `/redo` of every view of a chat. It asks no hub.

use crate::{
    files::ComparedFile,
    follow::Event,
    locate,
    output::one_line,
    turns,
    value::{number, text},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A file that the chat changed.
#[derive(Debug)]
struct ChangedFile {
    path: String,
    /// The version before the first change: 0 of a new file, none while only the removal of the file is known.
    before: Option<u64>,
    /// The version after the last change: 0 of a file that is gone.
    v: u64,
}

/// A rewind that `/undo` or `/redo` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TurnRewind {
    /// Takes back what a turn of a chat changed in files. Files that others changed since stay.
    Undo { chat: String, turn: String },
    /// Restores what the rewind with this id took back.
    Redo { rewind: String },
}

impl TurnRewind {
    /// The body of the request; `id` is that of the new rewind.
    pub(crate) fn body(&self, id: &str) -> Value {
        let scope = match self {
            Self::Undo { chat, turn } => json!({ "kind": "turn", "chat_id": chat, "turn_id": turn }),
            Self::Redo { rewind } => json!({ "kind": "rewind", "rewind_id": rewind }),
        };
        json!({ "scope": scope, "rewind_id": id })
    }

    /// A remark for the person, when it is done.
    pub(crate) fn remark(&self) -> Option<&'static str> {
        matches!(self, Self::Undo { .. }).then_some("the agent is not told; /redo restores it")
    }
}

/// The changes of files that a chat made, and the turn whose changes can be taken back.
#[derive(Debug, Default)]
pub(crate) struct FileChanges {
    /// By the id of the file, which stays the same when the file moves.
    files: BTreeMap<String, ChangedFile>,
    /// The last turn that ended; empty where the hub does not say which one it was.
    ended_turn: Option<String>,
    /// The rewind that took its changes back, if one did.
    undone: Option<String>,
}

impl FileChanges {
    /// Keeps up with the chat.
    pub(crate) fn note(&mut self, event: &Event) {
        if event.name == "file_updated" {
            let (path, v) = (text(&event.data, "path"), number(&event.data, "v"));
            let id = Some(text(&event.data, "file_id")).filter(|id| !id.is_empty()).unwrap_or(path);
            let before = v.checked_sub(1);
            let file =
                self.files.entry(id.to_owned()).or_insert_with(|| ChangedFile { path: String::new(), before, v });
            (file.path, file.v) = (path.to_owned(), v);
            // A move tells of the old place first, and has no version there.
            file.before = file.before.or(Some(v).filter(|v| *v > 0));
        }
        if let Some(ending) = turns::ending(event) {
            (self.ended_turn, self.undone) = (Some(ending.turn_id), None);
        }
    }

    /// The files, by their paths. Of a removed file and a new one in its place, the new one.
    fn files(&self) -> Vec<&ChangedFile> {
        let mut files: Vec<&ChangedFile> = self.files.values().collect();
        files.sort_by(|a, b| (&a.path, a.v == 0).cmp(&(&b.path, b.v == 0)));
        files.dedup_by(|later, kept| later.path == kept.path);
        files
    }

    /// The files in lines, each with its version; empty when none was changed.
    pub(crate) fn listed(&self) -> Vec<String> {
        let version = |file: &ChangedFile| if file.v == 0 { "gone".to_owned() } else { format!("v{}", file.v) };
        self.files().into_iter().map(|file| format!("{}  {}", one_line(&file.path, 400), version(file))).collect()
    }

    /// The comparisons for `/diff`: of the file at `path`, which need not be one of the chat's, else of all files; empty when none was changed.
    pub(crate) fn compared(&self, path: Option<&str>) -> Vec<ComparedFile> {
        let compared = |file: &ChangedFile| ComparedFile {
            path: file.path.clone(),
            versions: Some((file.before.unwrap_or_default(), file.v)),
        };
        let files = self.files();
        let Some(path) = path.map(locate::absolute) else { return files.into_iter().map(compared).collect() };
        match files.into_iter().find(|file| file.path == path) {
            Some(file) => vec![compared(file)],
            None => vec![ComparedFile { path, versions: None }],
        }
    }

    /// The rewind of `/undo`.
    ///
    /// # Errors
    /// The reason why there is none now, for a person.
    pub(crate) fn undo(&self, chat: &str, is_busy: bool) -> Result<TurnRewind, String> {
        let turn = self.ended_turn.as_deref().filter(|turn| !turn.is_empty());
        match (turn, &self.undone) {
            _ if is_busy => Err("a turn runs: stop it first with /stop".into()),
            (_, Some(_)) => Err("what the last turn changed is taken back already; /redo restores it".into()),
            (None, None) => Err(format!(
                "no turn has ended since you came; `buildscale rewind --chat {chat}` shows what can be taken back"
            )),
            (Some(turn), None) => Ok(TurnRewind::Undo { chat: chat.to_owned(), turn: turn.to_owned() }),
        }
    }

    /// The rewind of `/redo`.
    ///
    /// # Errors
    /// The reason why there is none now, for a person.
    pub(crate) fn redo(&self, is_busy: bool) -> Result<TurnRewind, String> {
        match &self.undone {
            None => Err("nothing was taken back with /undo".into()),
            Some(_) if is_busy => Err("a turn runs: stop it first with /stop".into()),
            Some(rewind) => Ok(TurnRewind::Redo { rewind: rewind.clone() }),
        }
    }

    /// Notes that a rewind was done with this id. When a later turn has ended meanwhile, it is not of the last turn, and nothing changes.
    pub(crate) fn rewound(&mut self, rewind: &TurnRewind, id: String) {
        match rewind {
            TurnRewind::Undo { turn, .. } if self.ended_turn.as_ref() == Some(turn) => self.undone = Some(id),
            TurnRewind::Redo { rewind } if self.undone.as_ref() == Some(rewind) => self.undone = None,
            TurnRewind::Undo { .. } | TurnRewind::Redo { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(changes: &mut FileChanges, name: &str, data: Value) {
        changes.note(&Event { number: Some(1), name: name.into(), data });
    }

    fn updated(changes: &mut FileChanges, path: &str, v: u64, id: &str) {
        told(changes, "file_updated", json!({ "path": path, "v": v, "file_id": id, "author": "agent:assistant" }));
    }

    #[test]
    fn a_file_is_compared_from_before_its_first_change_also_where_it_moved() {
        let mut changes = FileChanges::default();
        updated(&mut changes, "/b.md", 1, "f1");
        updated(&mut changes, "/b.md", 2, "f1");
        updated(&mut changes, "/c.md", 7, "f2");
        // Edited and then moved; moved alone; removed, with another file in its place.
        updated(&mut changes, "/c.md", 0, "f2");
        updated(&mut changes, "/moved.md", 7, "f2");
        updated(&mut changes, "/old.md", 0, "f3");
        updated(&mut changes, "/new.md", 4, "f3");
        updated(&mut changes, "/d.md", 0, "f4");
        updated(&mut changes, "/d.md", 1, "f5");
        updated(&mut changes, "/gone.md", 0, "f6");
        assert_eq!(changes.listed(), ["/b.md  v2", "/d.md  v1", "/gone.md  gone", "/moved.md  v7", "/new.md  v4"]);
        let versions = |path: Option<&str>| {
            changes.compared(path).into_iter().map(|file| (file.path, file.versions)).collect::<Vec<_>>()
        };
        let of = |path: &str, from: u64, to: u64| (path.to_owned(), Some((from, to)));
        assert_eq!(
            versions(None),
            [of("/b.md", 0, 2), of("/d.md", 0, 1), of("/gone.md", 0, 0), of("/moved.md", 6, 7), of("/new.md", 4, 4)]
        );
        assert_eq!(versions(Some("moved.md")), [of("/moved.md", 6, 7)]);
        assert_eq!(versions(Some("/other.md")), [("/other.md".to_owned(), None)]);
    }

    #[test]
    fn the_last_turn_is_taken_back_once_and_restored_once() {
        let mut changes = FileChanges::default();
        assert!(changes.undo("c", false).is_err_and(|why| why.contains("buildscale rewind --chat c")));
        told(&mut changes, "done", json!({ "turn_id": "t1", "stop_reason": "end_turn" }));
        assert!(changes.undo("c", true).is_err_and(|why| why.contains("a turn runs")));
        assert_eq!(changes.redo(false), Err("nothing was taken back with /undo".to_owned()));
        let undo = TurnRewind::Undo { chat: "c".into(), turn: "t1".into() };
        assert_eq!(changes.undo("c", false), Ok(undo.clone()));
        changes.rewound(&undo, "r1".into());
        assert!(changes.undo("c", false).is_err_and(|why| why.contains("already")));
        let redo = TurnRewind::Redo { rewind: "r1".into() };
        assert_eq!(changes.redo(false), Ok(redo.clone()));
        assert!(changes.redo(true).is_err_and(|why| why.contains("a turn runs")));
        assert_eq!(redo.body("r2"), json!({ "scope": { "kind": "rewind", "rewind_id": "r1" }, "rewind_id": "r2" }));
        changes.rewound(&redo, "r2".into());
        assert_eq!(changes.undo("c", false), Ok(undo.clone()));
        // A rewind that is done after the next turn has ended is not of that turn.
        told(&mut changes, "stopped", json!({ "turn_id": "t2", "reason": "user_cancelled" }));
        changes.rewound(&undo, "r3".into());
        assert!(changes.redo(false).is_err());
        assert_eq!(changes.undo("c", false), Ok(TurnRewind::Undo { chat: "c".into(), turn: "t2".into() }));
    }
}
