//! The system text of a chat: the persona, how a workspace is laid out, and the index of skills.
//!
//! It is written once, when the chat is made, and kept: the bytes that a provider has cached do not change. Skills are
//! named with one line each; an agent reads the whole of a skill when it needs it (spec 001 §4).

use domain::{Code, Error, FileId, FilePath};
use serde::Deserialize;
use tools::{Commands, Registry};
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
/// The most characters of a description, in a system text and in lists.
const DESCRIPTION: usize = 300;

/// The front matter of a persona or a skill, at the beginning of its file.
#[derive(Debug, Deserialize, Default)]
#[serde(default)]
pub struct FrontMatter {
    /// Its name for people.
    pub name: Option<String>,
    /// Its purpose, in a sentence.
    pub description: Option<String>,
    /// The tools that it has and no others.
    pub tools: Option<ToolNames>,
    /// The model that it asks.
    pub model: Option<String>,
}

/// Names of tools as people write them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum ToolNames {
    /// A list.
    List(Vec<String>),
    /// One text with commas.
    Text(String),
}

/// A persona as its `AGENT.md` says it.
pub(crate) struct Persona {
    /// The instructions for the model.
    pub text: String,
    /// The tools that it may use, by name; all when none.
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

/// Reads a persona. `NOT_FOUND` when there is none of this name; `UNPROCESSABLE` when it names tools that there are not, as a
/// constraint that is not understood must not be left out.
pub(crate) async fn persona(workspace: &Workspace, role: &str) -> Result<Persona, Error> {
    let path = FilePath::parse(&format!("/system/agents/{role}/AGENT.md"))?;
    let text = match workspace.read(&path, None).await {
        Ok(content) => String::from_utf8_lossy(&content.bytes).into_owned(),
        Err(error) if error.code == Code::NotFound && role == DEFAULT_ROLE => {
            "You are a careful, helpful assistant who works on files.".into()
        }
        Err(error) if error.code == Code::NotFound => {
            return Err(Error::not_found("persona", role)
                .detail("field", "role")
                .hint(format!("write {path} to make it")));
        }
        Err(error) => return Err(error),
    };
    let (yaml, body) = split(&text).unwrap_or(("", &text));
    let wrong = |what: String| Error::new(Code::Unprocessable, format!("{path}: {what}")).detail("field", "role");
    let about = match serde_saphyr::from_str::<FrontMatter>(yaml) {
        Ok(about) => about,
        Err(error) if yaml.lines().any(|line| line.starts_with("tools:")) => {
            return Err(wrong(format!("its front matter cannot be read, and it says which tools there are: {error}")));
        }
        Err(_) => FrontMatter::default(),
    };
    let tools = match about.tools {
        None => None,
        Some(ToolNames::List(names)) => Some(names),
        Some(ToolNames::Text(names)) => Some(names.split(',').map(str::to_owned).collect()),
    };
    let tools = tools.map(|names| names.iter().map(|name| name.trim().to_lowercase()).collect::<Vec<_>>());
    let known = Registry::builtin().with_commands(Commands::default()).specs();
    let unknown = tools.iter().flatten().find(|name| known.iter().all(|spec| spec.name != **name));
    if let Some(name) = unknown {
        let names = known.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(wrong(format!("there is no tool {name:?}")).hint(format!("tools: lists some of {names}")));
    }
    Ok(Persona { text: body.trim().to_owned(), tools, model: about.model.filter(|model| !model.trim().is_empty()) })
}

/// A line for each skill, as many as the budget allows; the last line says how many more there are.
async fn skills(workspace: &Workspace) -> Result<Vec<String>, Error> {
    let names = folders(workspace, Shelf::Skills).await?;
    let (mut lines, mut used) = (Vec::new(), 0);
    for (position, name) in names.iter().enumerate() {
        let Some(skill) = describe(workspace, Shelf::Skills, name).await? else { continue };
        let line = format!("- {}: {} ({})", skill.title, skill.description, skill.path);
        used += line.len() + 1;
        if used > SKILLS_BYTES {
            let more = names.len() - position;
            lines.push(format!("- and {more} more: ls /system/skills names them, grep finds one by what it is for"));
            break;
        }
        lines.push(line);
    }
    Ok(lines)
}

/// The two kinds of files with front matter.
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
    /// The name of its folder, as a chat's `role` names it.
    pub name: String,
    /// The name in its front matter; else the name of its folder.
    pub title: String,
    /// Its purpose, in one line.
    pub description: String,
    /// Its file.
    pub path: FilePath,
    /// The identity of its file.
    pub file_id: FileId,
}

/// The personas or the skills of a workspace, by name. A folder without the file is none.
///
/// # Errors
/// Those of reading the workspace's files. A file that is gone or is no text is left out.
pub async fn described(workspace: &Workspace, shelf: Shelf) -> Result<Vec<Described>, Error> {
    let mut all = Vec::new();
    for name in folders(workspace, shelf).await? {
        all.extend(describe(workspace, shelf, &name).await?);
    }
    Ok(all)
}

impl Shelf {
    fn folder(self) -> &'static str {
        match self {
            Self::Agents => "/system/agents",
            Self::Skills => "/system/skills",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Agents => "AGENT.md",
            Self::Skills => "SKILL.md",
        }
    }
}

/// The names of the folders on a shelf.
async fn folders(workspace: &Workspace, shelf: Shelf) -> Result<Vec<String>, Error> {
    workspace.folders_in(&FilePath::parse(shelf.folder())?).await
}

/// Reads the front matter of a folder's file; none when the folder has not got the file.
async fn describe(workspace: &Workspace, shelf: Shelf, name: &str) -> Result<Option<Described>, Error> {
    /// How much of a file is looked at for its front matter, in bytes.
    const HEAD: u64 = 8 * 1024;
    let path = FilePath::parse(shelf.folder())?.join(name)?.join(shelf.file())?;
    let content = match workspace.read(&path, Some(0..HEAD)).await {
        Ok(content) => content,
        Err(error) if matches!(error.code, Code::NotFound | Code::Unprocessable) => return Ok(None),
        Err(error) => return Err(error),
    };
    let about = front_matter(&String::from_utf8_lossy(&content.bytes));
    let line = |text: String| shortened(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    Ok(Some(Described {
        title: about.name.map_or_else(|| name.to_owned(), line),
        name: name.to_owned(),
        description: about.description.map(line).unwrap_or_default(),
        path,
        file_id: content.info.file_id,
    }))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(DESCRIPTION) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
        None => text.to_owned(),
    }
}

/// The front matter between the `---` lines at the beginning; empty when that is not YAML.
pub fn front_matter(text: &str) -> FrontMatter {
    split(text).and_then(|(yaml, _)| serde_saphyr::from_str(yaml).ok()).unwrap_or_default()
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
        assert_eq!(split(text).map(|(_, body)| body), Some("# GitHub\nbody"));
        let about = front_matter(text);
        assert_eq!(
            (about.name.as_deref(), about.description.as_deref()),
            (Some("github"), Some("Opens pull requests"))
        );
        assert_eq!(split("# no front matter"), None);
        assert_eq!(front_matter("---\n: : :\n---\nx").name, None);
    }
}
