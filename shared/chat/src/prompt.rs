//! The system text of a chat: the persona, how a workspace is laid out, and the index of skills.
//!
//! It is written once, when the chat is made, and kept: the bytes that a provider has cached do not change. Skills are
//! named with one line each; an agent reads the whole of a skill when it needs it (spec 001 §4).

use crate::{
    front_matter::front_matter,
    in_the_box, reach,
    shelf::{self, Shelf},
};
use domain::{Code, Error, FilePath};
use workspace::Workspace;

/// The persona of a chat that names none.
pub(crate) const DEFAULT_ROLE: &str = "assistant";

const LAYOUT: &str = "\
# Your workspace
Everything is a file, under absolute paths: /system/skills (what you can learn to do), /system/agents (personas), \
/chats (conversation logs; grep them for what was decided), /data (documents), /users/<id> (personal drafts), \
/projects/<name> (the work). Every write is kept as a new version. Read a file before you change it. \
For work of several steps write a plan with plan_write and tick its steps with plan_update_step.";

/// The most bytes that skills take of a system text: about 4,000 tokens, which every request pays for.
const SKILLS_BYTES: usize = 16 * 1024;

/// A persona as its `AGENT.md` says it.
pub(crate) struct Persona {
    /// The instructions for the model.
    pub text: String,
    /// The tools that it may use, as `reach` has them; all when none.
    pub tools: Option<Vec<String>>,
    /// The model that it is made for.
    pub model: Option<String>,
}

/// The system text of a chat with this persona.
///
/// # Errors
/// `NOT_FOUND` when there is no such persona; `UNPROCESSABLE` when it names tools that there are not; those of reading the workspace's
/// files.
pub async fn system_text(workspace: &Workspace, role: &str) -> Result<String, Error> {
    system(workspace, &persona(workspace, role).await?).await
}

/// The system text of a chat with this persona.
pub(crate) async fn system(workspace: &Workspace, persona: &Persona) -> Result<String, Error> {
    let skills = skills(workspace).await?;
    let mut text = format!("{}\n\n{LAYOUT}", persona.text);
    if !skills.is_empty() {
        text.push_str("\n\n# Skills\nRead the whole file before you use one.\n");
        text.push_str(&skills.join("\n"));
    }
    Ok(text)
}

/// Reads a persona: the workspace's own, else that in the box. `NOT_FOUND` when there is none of this name; `UNPROCESSABLE` when it names
/// tools that there are not, as a constraint that is not understood must not be left out.
pub(crate) async fn persona(workspace: &Workspace, role: &str) -> Result<Persona, Error> {
    let path = FilePath::parse(&format!("/system/agents/{role}/AGENT.md"))?;
    let own = match workspace.read(&path, None).await {
        Ok(content) => Some(String::from_utf8_lossy(&content.bytes).into_owned()),
        Err(error) if error.code == Code::NotFound => None,
        Err(error) => return Err(error),
    };
    let text = own.as_deref().or_else(|| in_the_box::persona(role)).ok_or_else(|| {
        let names = in_the_box::names().collect::<Vec<_>>().join(", ");
        Error::not_found("persona", role)
            .detail("field", "role")
            .hint(format!("write {path} to make it, or take one in the box: {names}"))
    })?;
    let head = front_matter(text);
    let tools = reach::listed(&head).map_err(|error| {
        let told = Error::new(Code::Unprocessable, format!("{path}: {}", error.message)).detail("field", "role");
        error.hint.into_iter().fold(told, Error::hint)
    })?;
    let model = head.text("model").map(str::to_owned);
    Ok(Persona { text: head.body.trim().to_owned(), tools, model })
}

/// A line for each skill, as many as the budget allows; the last line says how many more there are.
async fn skills(workspace: &Workspace) -> Result<Vec<String>, Error> {
    let names = shelf::folders(workspace, Shelf::Skills).await?;
    let (mut lines, mut used, mut faulty) = (Vec::new(), 0, 0_usize);
    for (position, name) in names.iter().enumerate() {
        let Some(skill) = shelf::describe(workspace, Shelf::Skills, name).await? else { continue };
        faulty += usize::from(!skill.faults.is_empty());
        let line = format!("- {}: {} ({})", skill.title, skill.description, skill.path);
        used += line.len() + 1;
        if used > SKILLS_BYTES {
            let more = names.len() - position;
            lines.push(format!("- and {more} more: ls /system/skills names them, grep finds one by what it is for"));
            break;
        }
        lines.push(line);
    }
    if faulty > 0 {
        tracing::info!(skills = faulty, "skills have faults in their front matter, which the list of skills tells");
    }
    Ok(lines)
}
