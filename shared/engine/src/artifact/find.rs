//! Finding artifacts by their fields.

use super::{Artifact, ArtifactSelector, Artifacts, Page};
use domain::{Error, TaskId, Timestamp, WorkspaceId};

/// The most rows that are looked at for one page.
const LOOKED_AT: usize = 2_000;

/// A filter of artifacts; an artifact matches when each field that is set matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactFilter {
    /// Of this task.
    pub task: Option<TaskId>,
    /// Of tasks of this flow, by name.
    pub flow: Option<String>,
    /// Of this node. Without a task, the flow has to be said.
    pub node: Option<String>,
    /// That fit this schema, by name. Without a task, the flow has to be said.
    pub schema: Option<String>,
    /// That came about then or later.
    pub since: Option<Timestamp>,
    /// That came about before.
    pub until: Option<Timestamp>,
}

impl ArtifactFilter {
    /// The narrowest of the lists that have all of it.
    fn by(&self) -> Result<ArtifactSelector<'_>, Error> {
        match (self.task, self.flow.as_deref(), self.node.as_deref(), self.schema.as_deref()) {
            (Some(task), ..) => Ok(ArtifactSelector::Task(task)),
            (None, Some(flow), Some(node), _) => Ok(ArtifactSelector::Node { flow, node }),
            (None, Some(flow), None, Some(schema)) => Ok(ArtifactSelector::Schema { flow, schema }),
            (None, _, None, None) => Ok(ArtifactSelector::Time),
            (None, None, ..) => Err(Error::invalid("flow", "a node or a schema is that of a flow or a task")
                .hint("add flow=NAME, or task=ID")),
        }
    }

    fn fits(&self, artifact: &Artifact) -> bool {
        self.flow.as_ref().is_none_or(|flow| artifact.flow.name == *flow)
            && self.node.as_ref().is_none_or(|node| artifact.node.as_ref().is_some_and(|of| of.as_str() == node))
            && self.schema.as_ref().is_none_or(|schema| artifact.schema.as_ref() == Some(schema))
    }
}

impl Artifacts {
    /// Those that are wanted, at most `limit` of them (1 to 200), oldest first. A page may have fewer although more follow.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a node or a schema of no flow, or a cursor of another list; the table's.
    pub async fn find(
        &self,
        workspace: WorkspaceId,
        wanted: &ArtifactFilter,
        limit: usize,
        mut cursor: Option<String>,
    ) -> Result<Page, Error> {
        let (by, when) = (wanted.by()?, (wanted.since, wanted.until));
        let (mut found, mut looked_at) = (Vec::new(), 0);
        loop {
            // No more than fits, so that the cursor is where the page ends.
            let page = self.list(workspace, by, when, limit.max(1) - found.len(), cursor).await?;
            looked_at += page.artifacts.len().max(1);
            found.extend(page.artifacts.into_iter().filter(|artifact| wanted.fits(artifact)));
            cursor = page.next_cursor;
            if cursor.is_none() || found.len() >= limit.max(1) || looked_at >= LOOKED_AT {
                return Ok(Page { artifacts: found, next_cursor: cursor });
            }
        }
    }
}
