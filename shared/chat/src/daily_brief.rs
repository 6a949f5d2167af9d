//! The daily brief of a person: its settings are a file in their home, and an agent writes it beside them.

use crate::{
    chats::Chats,
    requests::{Accepted, NewChat},
    scenario::set_up,
};
use domain::{ChatId, CommandId, Error, Principal, Scenario, WorkspaceId};
use tools::organizer;
use workspace::{Access, BRIEF_SETTINGS};

/// The persona that writes it.
const WRITER: &str = "brief-writer";
/// The file of a person's home that it is. Its versions are the briefs of earlier days.
const BRIEF: &str = "brief.md";

impl Chats {
    /// Makes a chat that writes the daily brief of a person for this day, and asks nobody. `model` is the default one when none. With `may_not_run` the
    /// brief starts no flow. The same ids again have no effect.
    ///
    /// # Errors
    /// Those of [`Chats::create`].
    pub async fn create_daily_brief(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        model: Option<String>,
        may_not_run: bool,
        by: &Principal,
    ) -> Result<Accepted, Error> {
        let files = self.workspaces.open(workspace, Access::of(by, None)).await?;
        let (home, day) = (format!("/users/{}", by.user()), organizer::today(&files, by).await);
        let goal = format!(
            "Write my daily brief of {day} to {home}/{BRIEF}. Its settings are in {home}/{BRIEF_SETTINGS}, if that file is there."
        );
        let (role, title) = (Some(WRITER.to_owned()), Some("Daily brief".to_owned()));
        let mut new = NewChat { goal, role, title, model, may_not_run, ..NewChat::default() };
        set_up(&mut new, Scenario::Autonomous, None, None)?;
        self.create(workspace, chat, command, new, by).await
    }
}
