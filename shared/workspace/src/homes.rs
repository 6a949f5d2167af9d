//! The homes of members: `/users/<id>` with a profile, which is theirs from then on (spec 001 §1).

use crate::{Access, Expect, Result, Workspace, Workspaces, Writer, party::Party};
use access::PROFILE;
use domain::{Code, Error, FileId, FilePath, Principal, UserId, WorkspaceId};

/// How many entries are read at once while a home is erased.
const ERASED_AT_ONCE: usize = 200;

/// The facts of a new profile.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// The person.
    pub user: UserId,
    /// The name under which the issuer of tokens knows them, if it is known.
    pub name: Option<&'a str>,
    /// Their role in the workspace, in a word.
    pub role: &'a str,
}

impl Profile<'_> {
    /// The place of a person's profile.
    ///
    /// # Errors
    /// None in practice: the path of an id is valid.
    pub fn path_of(user: UserId) -> Result<FilePath> {
        Ok(FilePath::parse(&format!("{}/{PROFILE}", access::home(user)))?)
    }

    /// The file. A JSON string is a YAML string, so no name can add a key.
    fn text(&self) -> String {
        let id = self.user.to_string();
        let name = serde_json::Value::from(self.name.unwrap_or(&id)).to_string();
        format!(
            "---\nname: {name}\nrole: {}\ntime_zone: UTC\n---\n\nThis is your own file: change it as you like. \
             Your chats with agents begin with it. The list of members says which role you have now.\n",
            self.role
        )
    }
}

impl Workspaces {
    /// Makes the home of a member with their profile, unless something is at its path. So a repetition changes nothing, and a person who comes back
    /// finds the home that they left.
    ///
    /// # Errors
    /// `NOT_FOUND` for a workspace that is gone; `CONFLICT` when a file is where the home should be; else those of a write.
    pub async fn welcome(&self, id: WorkspaceId, profile: &Profile<'_>) -> Result<()> {
        let workspace = self.open(id, Access::platform("the home of a new member")).await?;
        let path = Profile::path_of(profile.user)?;
        let is_there = async || match workspace.stat(&path).await {
            Ok(_) => Ok(true),
            Err(error) if error.code == Code::NotFound => Ok(false),
            Err(error) => Err(error),
        };
        if is_there().await? {
            return Ok(());
        }
        let writer = Writer::new(Principal::System);
        match workspace.write(&path, profile.text(), Expect::Absent, &writer).await {
            Err(error) if error.code == Code::Conflict && is_there().await? => Ok(()),
            result => result.map(drop),
        }
    }

    /// Removes all that is in the home of a person for good, with all versions, and what was removed from it before. The empty folder stays, whose name
    /// is an id. Contents stay in the archive until the workspace is deleted, as other files may have the same ones. Returns whether there was
    /// anything. It shows nothing of the home, so the caller may be somebody who does not see it.
    ///
    /// # Errors
    /// `NOT_FOUND` for a workspace that is gone; `INTERNAL` for an entry that cannot be read, since it would stay unseen; else those of [`Workspace::rm`] and
    /// [`Workspace::purge`]. Some of the home may be gone then, and a repetition goes on.
    pub async fn erase_home(&self, id: WorkspaceId, user: UserId, by: &Principal) -> Result<bool> {
        let workspace = self.open(id, Access::platform("the erasure of a home")).await?;
        let (home, writer) = (FilePath::parse(&access::home(user))?, Writer::new(by.clone()));
        // Another request, or a person, may be faster with a part of it.
        let gone = |error: Error| if error.code == Code::NotFound { Ok(()) } else { Err(error) };
        let (mut found, mut cursor) = (false, None);
        loop {
            let page = match workspace.ls_whole(&home, ERASED_AT_ONCE, cursor).await {
                Err(error) if error.code == Code::NotFound => break,
                page => page?,
            };
            for entry in page.entries {
                found = true;
                workspace.rm(&entry.path, &writer).await.map(drop).or_else(gone)?;
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        let mut cursor = None;
        loop {
            let page = workspace.trash(ERASED_AT_ONCE, cursor).await?;
            for trashed in page.files.iter().filter(|trashed| trashed.info.path.is_within(&home)) {
                found = true;
                workspace.purge(trashed.info.file_id, &writer).await.map(drop).or_else(gone)?;
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(found);
            }
        }
    }
}

impl Workspace {
    /// The home of the person for whom this handle is; none for BuildScale itself, for a party without that home, and where policies hide it.
    pub fn home(&self) -> Option<FilePath> {
        let Party::Subject(subject, _) = self.party() else { return None };
        let person = subject.person().filter(|_| subject.has_home())?;
        FilePath::parse(&access::home(person)).ok().filter(|home| self.shows(home))
    }

    /// Whether a home has nothing but the profile as it was made: name and role, which the list of members tells to all. So a home that nobody uses
    /// keeps no search of others from the folders above it.
    pub(crate) async fn is_untouched_home(&self, home: FileId) -> Result<bool> {
        let entries = self.entries(home, 2, None).await?.entries;
        let system = Principal::System.to_string();
        Ok(entries.iter().all(|(name, entry)| name == PROFILE && entry.v == 1 && entry.author == system))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_adds_a_key_to_a_profile() {
        let user = Principal::local().user();
        let text = Profile { user, name: Some("a\"\nrole: owner\n---"), role: "viewer" }.text();
        assert!(
            text.starts_with("---\nname: \"a\\\"\\nrole: owner\\n---\"\nrole: viewer\ntime_zone: UTC\n---\n"),
            "{text}"
        );
    }
}
