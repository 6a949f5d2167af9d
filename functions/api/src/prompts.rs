//! Messages that are prompts of MCP servers: a message that begins with `/mcp__SERVER__PROMPT` becomes the words of the prompt (spec 004 §11).

use crate::Context;
use domain::{Error, WorkspaceId};

/// The words of a message, with those of the prompt that it names, if it names one.
///
/// # Errors
/// Those of [`tools::Registry::prompted`].
pub(crate) async fn spoken(
    context: &Context,
    workspace: WorkspaceId,
    files: &workspace::Access,
    message: String,
) -> Result<String, Error> {
    // Nearly no message is one: nothing is opened for the others.
    if !message.trim_start().starts_with("/mcp__") || !context.tools.has_servers() {
        return Ok(message);
    }
    let workspace = context.base.workspaces.open(workspace, files.clone()).await?;
    Ok(context.tools.prompted(&workspace, &message).await?.unwrap_or(message))
}
