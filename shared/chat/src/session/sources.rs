//! Whether the location in the system text of a session is still that of its files. The records of changes tell, so a message of a session whose files
//! are as they were costs one query and reads no file.

use super::contexts::names_a_project;
use crate::{Chats, locations::LocationCounts};
use domain::{Error, FilePath, Session, SessionContext, Timestamp, WorkspaceEvent};
use workspace::{LATE, Workspace};

impl Chats {
    /// The uses of the locations of sessions in this process so far.
    pub fn location_counts(&self) -> LocationCounts {
        self.locations.counts()
    }
}

/// Whether a file that the location of a session may be made of has changed since it was read.
///
/// # Errors
/// `UPSTREAM_UNAVAILABLE` when the table does not answer.
pub(super) async fn have_changed(files: &Workspace, session: &Session, read: Timestamp) -> Result<bool, Error> {
    let page = files.changes_from(read - LATE, None).await?;
    let home = files.home();
    let concerns = |path: &FilePath| concerns(session, home.as_ref(), path);
    let is_of_it = |event: &WorkspaceEvent| match event {
        WorkspaceEvent::FileUpdated { path, from, .. } => concerns(path) || from.as_ref().is_some_and(concerns),
        _ => false,
    };
    // A page that is not the last one has hundreds of changes: reading the location again costs less than reading them all.
    Ok(page.next.is_some() || page.changes.iter().any(|(_, event)| is_of_it(event)))
}

/// Whether the location of a session may be made of this file: of its project or of all, of the home with the profile, or of anything that may be
/// in focus or the task, with the files that these are linked to.
fn concerns(session: &Session, home: Option<&FilePath>, path: &FilePath) -> bool {
    let projects = match &session.entity {
        Some(name) if names_a_project(session.context) => format!("/projects/{name}"),
        _ => "/projects".to_owned(),
    };
    let of_task = matches!(session.context, SessionContext::Task | SessionContext::TaskUpdate);
    let names_a_file = session.focus.is_some() || of_task && session.entity.is_some();
    let is_below =
        |folder: &str| path.as_str().strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    home.is_some_and(|home| path.is_within(home)) || is_below(&projects) || names_a_file && !is_below("/chats")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_change_concerns_the_sessions_whose_location_may_have_it() {
        let session = |context, entity: Option<&str>, focus: Option<&str>| Session {
            context,
            entity: entity.map(str::to_owned),
            focus: focus.map(Into::into),
            ..Session::default()
        };
        let home = FilePath::parse("/users/ada").unwrap();
        let atlas = session(SessionContext::Project, Some("atlas"), None);
        let all = session(SessionContext::Global, None, None);
        let focused = session(SessionContext::Global, None, Some("/data/a.md"));
        let task = session(SessionContext::TaskUpdate, Some("/data/tasks/draw.md"), None);
        for (path, expected) in [
            ("/projects/atlas", [true, true, true, true]),
            ("/projects/atlas/tasks/draw.md", [true, true, true, true]),
            ("/projects/atlas-2/tasks/draw.md", [false, true, true, true]),
            ("/users/ada/profile.md", [true, true, true, true]),
            ("/users/bob/profile.md", [false, false, true, true]),
            ("/data/a.md", [false, false, true, true]),
            ("/data/tasks/draw.md", [false, false, true, true]),
            ("/chats/1.md", [false, false, false, false]),
        ] {
            let path = FilePath::parse(path).unwrap();
            let told = [&atlas, &all, &focused, &task].map(|session| concerns(session, Some(&home), &path));
            assert_eq!(told, expected, "{path}");
        }
    }
}
