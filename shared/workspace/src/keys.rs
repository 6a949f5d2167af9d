//! The keys of a workspace's items in the table.

use domain::{CallId, FileId, Sha256, Timestamp, WorkspaceId};
use ports::Key;
use uuid::Uuid;

/// The partition of all workspaces, by id.
pub(crate) const WORKSPACES: &str = "workspaces";

/// The partition of workspaces that are being deleted.
pub(crate) const DELETIONS: &str = "workspaces/deleted";

/// The partition of all contents that could not be repaired.
pub(crate) const DAMAGE: &str = "damage";

/// The keys of one workspace. All its partitions begin with its id, so that no query can reach another's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys(pub WorkspaceId);

impl Keys {
    pub fn workspace(self) -> Key {
        Key::new(WORKSPACES, self.0.to_string())
    }
    /// The note that the workspace is being deleted, until that is done.
    pub fn deletion(self) -> Key {
        Key::new(DELETIONS, self.0.to_string())
    }
    /// The note that the workspace was deleted, until the last of it is removed ([`crate::Dependents`]).
    pub fn tombstone(self) -> Key {
        ports::deleted_workspace(self.0)
    }
    /// The note of the workspace that it was made within.
    pub fn parent(self) -> Key {
        Key::new(format!("{}/parent", self.0), "parent")
    }
    /// The memberships, and the list of the owners. They are of the crate `identity`, and end with the workspace: before the note of the deletion does, so that no crash leaves a
    /// membership of nothing, which would give the next workspace of this id a member.
    pub fn memberships(self) -> [String; 2] {
        [format!("{}/members", self.0), format!("{}/owners", self.0)]
    }
    /// The entries of a folder, by name.
    pub fn folder(self, folder: FileId) -> String {
        format!("{}/dir/{folder}", self.0)
    }
    pub fn entry(self, folder: FileId, name: &str) -> Key {
        Key::new(self.folder(folder), name)
    }
    pub fn nodes(self) -> String {
        format!("{}/node", self.0)
    }
    pub fn node(self, file: FileId) -> Key {
        Key::new(self.nodes(), file.to_string())
    }
    pub fn versions(self, file: FileId) -> String {
        format!("{}/versions/{file}", self.0)
    }
    pub fn version(self, file: FileId, v: u64) -> Key {
        Key::new(self.versions(file), format!("{v:010}"))
    }
    /// Small contents, by digest.
    pub fn texts(self) -> String {
        format!("{}/text", self.0)
    }
    pub fn text(self, digest: Sha256) -> Key {
        Key::new(self.texts(), digest.to_string())
    }
    /// A content that could not be repaired.
    pub fn damaged(self, digest: Sha256) -> Key {
        Key::new(DAMAGE, format!("{}/{digest}", self.0))
    }
    /// Documents that a converter has still to deal with, by their identity.
    pub fn all_unconverted(self) -> String {
        format!("{}/unconverted", self.0)
    }
    pub fn unconverted(self, file: FileId) -> Key {
        Key::new(self.all_unconverted(), file.to_string())
    }
    /// Outcomes of conversions, by the digest of the content, the end of the name and the form of the outcome.
    pub fn conversions(self) -> String {
        format!("{}/conversions", self.0)
    }
    pub fn conversion(self, digest: Sha256, ending: &str, form: u8) -> Key {
        Key::new(self.conversions(), format!("{digest}.{ending}/{form}"))
    }
    pub fn trash(self) -> String {
        format!("{}/trash", self.0)
    }
    pub fn trashed(self, file: FileId) -> Key {
        Key::new(self.trash(), file.to_string())
    }
    pub fn calls(self) -> String {
        format!("{}/calls", self.0)
    }
    pub fn call(self, call: CallId) -> Key {
        Key::new(self.calls(), call.to_string())
    }
    /// Calls that began and must not be repeated.
    pub fn all_begun(self) -> String {
        format!("{}/begun", self.0)
    }
    pub fn begun(self, call: CallId) -> Key {
        Key::new(self.all_begun(), call.to_string())
    }
    /// The changes of the workspace, by version 7 UUID: in the order of time.
    pub fn changes(self) -> String {
        format!("{}/changes", self.0)
    }
    pub fn change(self, id: Uuid) -> Key {
        Key::new(self.changes(), id.hyphenated().to_string())
    }
    /// The changes of chats, tasks and rewinds: by the id of the actor, then by the id of the change's record.
    pub fn causes(self) -> String {
        format!("{}/causes", self.0)
    }
    pub fn cause(self, actor: Uuid, change: Uuid) -> Key {
        Key::new(self.causes(), format!("{}{}", Self::caused_by(actor), change.hyphenated()))
    }
    /// The beginning of the sort keys of an actor in [`Self::causes`].
    pub fn caused_by(actor: Uuid) -> String {
        format!("{}/", actor.hyphenated())
    }
    /// The partition of the usage of models outside of turns.
    pub fn all_spent(self) -> String {
        format!("{}/spent", self.0)
    }
    pub fn spent(self, day: &str, purpose: &str, model: &str) -> Key {
        Key::new(self.all_spent(), format!("{day}/{}/{model}", purpose.trim_matches('"')))
    }
    /// The place of the copy of its search index.
    pub fn search(self) -> String {
        ports::kept_index(self.0).pk
    }
    /// The plans of rewinds and how far they are.
    pub fn rewinds(self) -> String {
        format!("{}/rewinds", self.0)
    }
    pub fn rewind(self, id: Uuid) -> Key {
        Key::new(self.rewinds(), id.hyphenated().to_string())
    }
    /// New versions that may start flows and were not dealt with yet, by version 7 UUID.
    pub fn handoffs(self) -> String {
        format!("{}/handoffs", self.0)
    }
    pub fn handoff(self, id: Uuid) -> Key {
        Key::new(self.handoffs(), id.hyphenated().to_string())
    }
    /// The note that no new version of the workspace starts a flow.
    pub fn no_handoffs(self) -> Key {
        Key::new(self.handoffs(), "off")
    }
    /// The tags and explicit links of files, by file.
    pub fn all_marks(self) -> String {
        format!("{}/marks", self.0)
    }
    pub fn marks(self, file: FileId) -> Key {
        Key::new(self.all_marks(), file.to_string())
    }
    /// The links in the text of files, by file.
    pub fn all_mentions(self) -> String {
        format!("{}/mentions", self.0)
    }
    pub fn mentions(self, file: FileId) -> Key {
        Key::new(self.all_mentions(), file.to_string())
    }
    /// The files with a tag, by tag.
    pub fn tagged(self) -> String {
        format!("{}/tagged", self.0)
    }
    pub fn tagged_with(self, tag: &str, file: FileId) -> Key {
        Key::new(self.tagged(), format!("{tag}/{file}"))
    }
    /// Hints: the files that may link to a file, by that file.
    pub fn linked(self) -> String {
        format!("{}/linked", self.0)
    }
    pub fn linked_from(self, to: FileId, from: FileId) -> Key {
        Key::new(self.linked(), format!("{to}/{from}"))
    }
    /// Hints: the files whose text may link to something with a name, by that name.
    pub fn named(self) -> String {
        format!("{}/named", self.0)
    }
    pub fn named_in(self, name: &str, from: FileId) -> Key {
        Key::new(self.named(), format!("{name}/{from}"))
    }
    /// The sort key of [`Self::changes`] below every change made at `at` or later.
    pub fn changes_from(at: Timestamp) -> String {
        at.first_id().hyphenated().to_string()
    }
    /// The root folder's identity: the workspace's own.
    pub fn root(self) -> FileId {
        FileId(self.0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_found_by_time() {
        let id = Uuid::parse_str("019bf537-f228-7cd3-aa1c-3da8af302e12").unwrap_or_default();
        let at = Timestamp::from_millis(0x019b_f537_f228);
        let text = id.hyphenated().to_string();
        assert!(Keys::changes_from(at) < text);
        assert!(Keys::changes_from(at + std::time::Duration::from_millis(1)) > text);
    }
}
