//! Triggers of different flows that one version of a file can fulfil.

use super::Triggers;
use domain::Error;
use flow::{Flow, load::ManifestFault, trigger::overlap};
use workspace::Workspace;

impl Triggers {
    /// A note for each trigger of `flow` that shares versions with one of another flow of the workspace: such a version starts both.
    ///
    /// # Errors
    /// Those of [`Triggers::of`].
    pub async fn shared_with_others(&self, workspace: &Workspace, flow: &Flow) -> Result<Vec<ManifestFault>, Error> {
        let mut notes = Vec::new();
        if flow.triggers.is_empty() {
            return Ok(notes);
        }
        let others = self.of(workspace).await?;
        for (name, theirs) in others.iter().filter(|(name, _)| **name != flow.reference.name) {
            for own in &flow.triggers {
                let Some(their) = theirs.iter().find(|their| overlap(own, their)) else { continue };
                notes.push(ManifestFault {
                    file: "workflow.yaml".into(),
                    line: 1,
                    column: 1,
                    code: "overlaps",
                    message: format!("`{own}` overlaps `{their}` of the flow {name}"),
                    hint: "a version that fulfils both starts both flows; give them different paths or statuses if one is meant".into(),
                });
            }
        }
        Ok(notes)
    }
}
