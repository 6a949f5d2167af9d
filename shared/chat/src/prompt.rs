//! The system text of a chat: the persona, how a workspace is laid out, and the index of skills.
//!
//! It is written once, when the chat is made, and kept: the bytes that a provider has cached do not change. Skills are
//! named with one line each; an agent reads the whole of a skill when it needs it (seed 001 §4).

use domain::{Code, Error, FileId, FilePath};
use serde::Deserialize;
use workspace::{Kind, Workspace};

/// The persona of a chat that names none.
pub(crate) const DEFAULT_ROLE: &str = "assistant";

const LAYOUT: &str = "\
# Your workspace
Everything is a file, under absolute paths: /system/skills (what you can learn to do), /system/agents (personas), \
/chats (conversation logs; grep them for what was decided), /data (documents), /users/<id> (personal drafts), \
/projects/<name> (the work). Every write is kept as a new version. Read a file before you change it. \
For work of several steps write a plan with plan_write and tick its steps with plan_update_step.";

#[derive(Deserialize, Default)]
#[serde(default)]
struct FrontMatter {
    name: Option<String>,
    description: Option<String>,
}

/// The system text of a chat with this persona. `NOT_FOUND` when there is no such persona.
pub async fn system_text(workspace: &Workspace, role: &str) -> Result<String, Error> {
    let persona = persona(workspace, role).await?;
    let skills = skills(workspace).await?;
    let mut text = format!("{}\n\n{LAYOUT}", persona.trim());
    if !skills.is_empty() {
        text.push_str("\n\n# Skills\nRead the whole file before you use one.\n");
        text.push_str(&skills.join("\n"));
    }
    Ok(text)
}

async fn persona(workspace: &Workspace, role: &str) -> Result<String, Error> {
    let path = FilePath::parse(&format!("/system/agents/{role}/AGENT.md"))?;
    match workspace.read(&path, None).await {
        Ok(content) => Ok(body(&String::from_utf8_lossy(&content.bytes)).to_owned()),
        Err(error) if error.code == Code::NotFound && role == DEFAULT_ROLE => {
            Ok("You are a careful, helpful assistant who works on files.".into())
        }
        Err(error) if error.code == Code::NotFound => {
            Err(Error::not_found("persona", role).detail("field", "role").hint(format!("write {path} to make it")))
        }
        Err(error) => Err(error),
    }
}

async fn skills(workspace: &Workspace) -> Result<Vec<String>, Error> {
    let skills = described(workspace, Shelf::Skills).await?;
    Ok(skills.iter().map(|skill| format!("- {}: {} ({})", skill.title, skill.description, skill.path)).collect())
}

/// What of a workspace is described by the front matter of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// The personas, `/system/agents/<name>/AGENT.md`.
    Agents,
    /// The skills, `/system/skills/<name>/SKILL.md`.
    Skills,
}

/// A persona or a skill, by its front matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The name of its folder: what a chat's `role` names.
    pub name: String,
    /// What it calls itself; else the name of its folder.
    pub title: String,
    /// What it is good for, in one line.
    pub description: String,
    /// Its file.
    pub path: FilePath,
    /// The identity of its file.
    pub file_id: FileId,
}

/// The personas or the skills of a workspace, by name. A folder without the file is none.
pub async fn described(workspace: &Workspace, shelf: Shelf) -> Result<Vec<Described>, Error> {
    /// More would not fit into a system text.
    const MOST: usize = 200;
    /// How much of a file is looked at for its front matter, in bytes.
    const HEAD: u64 = 8 * 1024;
    let (folder, file) = match shelf {
        Shelf::Agents => ("/system/agents", "AGENT.md"),
        Shelf::Skills => ("/system/skills", "SKILL.md"),
    };
    let listing = match workspace.ls(&FilePath::parse(folder)?, MOST, None).await {
        Ok(listing) => listing,
        Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut all = Vec::new();
    for entry in listing.entries.into_iter().filter(|entry| entry.kind == Kind::Folder) {
        let path = entry.path.join(file)?;
        let content = match workspace.read(&path, Some(0..HEAD)).await {
            Ok(content) => content,
            Err(error) if matches!(error.code, Code::NotFound | Code::Unprocessable) => continue,
            Err(error) => return Err(error),
        };
        let about = front_matter(&String::from_utf8_lossy(&content.bytes));
        all.push(Described {
            title: about.name.unwrap_or_else(|| entry.name.clone()),
            name: entry.name,
            description: about.description.unwrap_or_default().replace('\n', " "),
            path,
            file_id: content.info.file_id,
        });
    }
    Ok(all)
}

/// What is between the `---` lines at the beginning; nothing when that is not YAML.
fn front_matter(text: &str) -> FrontMatter {
    split(text).and_then(|(yaml, _)| serde_saphyr::from_str(yaml).ok()).unwrap_or_default()
}

/// What is after the front matter.
fn body(text: &str) -> &str {
    split(text).map_or(text, |(_, body)| body)
}

fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---\n")?;
    let end = rest.find("\n---")?;
    Some((&rest[..end], rest[end + 4..].trim_start_matches('-').trim_start_matches('\n')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_taken_off_and_read() {
        let text = "---\nname: github\ndescription: Opens pull requests\n---\n# GitHub\nbody";
        assert_eq!(body(text), "# GitHub\nbody");
        let about = front_matter(text);
        assert_eq!(
            (about.name.as_deref(), about.description.as_deref()),
            (Some("github"), Some("Opens pull requests"))
        );
        assert_eq!(body("# no front matter"), "# no front matter");
        assert_eq!(front_matter("---\n: : :\n---\nx").name, None);
    }
}
