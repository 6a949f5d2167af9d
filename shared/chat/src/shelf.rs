//! The personas and the skills of a workspace, as lists of people show them: each by the front matter of its file, with the faults in it.

use crate::{
    front_matter::{Fault, front_matter},
    in_the_box, reach,
};
use domain::{Code, Error, FileId, FilePath};
use std::collections::{BTreeMap, BTreeSet};
use workspace::Workspace;

/// The most characters of a description, in a system text and in lists.
const DESCRIPTION: usize = 300;

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
    /// Its file; of a persona in the box the file that would replace it.
    pub path: FilePath,
    /// The identity of its file; none for a persona in the box.
    pub file_id: Option<FileId>,
    /// Of a persona its tools, with their globs; all when none.
    pub tools: Option<Vec<String>>,
    /// Of a persona the model that it is made for.
    pub model: Option<String>,
    /// Of a skill its licence.
    pub license: Option<String>,
    /// Of a skill its requirements.
    pub compatibility: Option<String>,
    /// Of a skill what its author adds.
    pub metadata: BTreeMap<String, String>,
    /// Of a skill the tools that it declares as approved in advance. They give it no right.
    pub allowed_tools: Vec<String>,
    /// The faults in its front matter, by line.
    pub faults: Vec<Fault>,
}

/// The personas or the skills of a workspace, by name. A folder without the file is none.
///
/// # Errors
/// Those of reading the workspace's files. A file that is gone or is no text is left out.
pub async fn described(workspace: &Workspace, shelf: Shelf) -> Result<Vec<Described>, Error> {
    let mut names: BTreeSet<String> = folders(workspace, shelf).await?.into_iter().collect();
    if shelf == Shelf::Agents {
        names.extend(in_the_box::names().map(str::to_owned));
    }
    let mut all = Vec::new();
    for name in names {
        all.extend(describe(workspace, shelf, &name).await?);
    }
    Ok(all)
}

/// The personas in the box, by name.
pub fn described_in_the_box() -> Vec<Described> {
    let described = |name: &str| {
        let path = Shelf::Agents.path(name).ok()?;
        Some(of_text(Shelf::Agents, name, path, None, in_the_box::persona(name)?))
    };
    in_the_box::names().filter_map(described).collect()
}

/// A persona, and the whole text of its file.
///
/// # Errors
/// `NOT_FOUND` when there is none of this name; `INVALID_ARGUMENT` for a text that is no name; those of reading the workspace's files.
pub async fn persona_file(workspace: &Workspace, name: &str) -> Result<(Described, String), Error> {
    let path = Shelf::Agents.path(name)?;
    let (file_id, text) = match workspace.read(&path, None).await {
        Ok(content) => (Some(content.info.file_id), String::from_utf8_lossy(&content.bytes).into_owned()),
        Err(error) if error.code == Code::NotFound => match in_the_box::persona(name) {
            Some(text) => (None, text.to_owned()),
            None => return Err(Error::not_found("persona", name).hint("GET …/agents lists those that there are")),
        },
        Err(error) => return Err(error),
    };
    Ok((of_text(Shelf::Agents, name, path, file_id, &text), text))
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

    fn path(self, name: &str) -> Result<FilePath, Error> {
        Ok(FilePath::parse(self.folder())?.join(name)?.join(self.file())?)
    }
}

/// The names of the folders on a shelf.
pub(crate) async fn folders(workspace: &Workspace, shelf: Shelf) -> Result<Vec<String>, Error> {
    workspace.folders_in(&FilePath::parse(shelf.folder())?).await
}

/// Reads the front matter of a folder's file, or of a persona in the box; none when there is neither.
pub(crate) async fn describe(workspace: &Workspace, shelf: Shelf, name: &str) -> Result<Option<Described>, Error> {
    /// How much of a file is looked at for its front matter, in bytes.
    const HEAD: u64 = 8 * 1024;
    let path = shelf.path(name)?;
    match workspace.read(&path, Some(0..HEAD)).await {
        Ok(content) => {
            let text = String::from_utf8_lossy(&content.bytes);
            Ok(Some(of_text(shelf, name, path, Some(content.info.file_id), &text)))
        }
        Err(error) if error.code == Code::NotFound && shelf == Shelf::Agents => {
            Ok(in_the_box::persona(name).map(|text| of_text(shelf, name, path, None, text)))
        }
        Err(error) if matches!(error.code, Code::NotFound | Code::Unprocessable) => Ok(None),
        Err(error) => Err(error),
    }
}

fn of_text(shelf: Shelf, name: &str, path: FilePath, file_id: Option<FileId>, text: &str) -> Described {
    let head = front_matter(text);
    let line = |text: &str| shortened(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut described = Described {
        title: head.text("name").map_or_else(|| name.to_owned(), line),
        name: name.to_owned(),
        description: head.text("description").map(line).unwrap_or_default(),
        path,
        file_id,
        tools: None,
        model: None,
        license: None,
        compatibility: None,
        metadata: BTreeMap::new(),
        allowed_tools: Vec::new(),
        faults: Vec::new(),
    };
    match shelf {
        Shelf::Agents => {
            described.model = head.text("model").map(str::to_owned);
            match reach::listed(&head) {
                Ok(tools) => described.tools = tools,
                Err(error) => {
                    let line = head.fault.as_ref().map_or_else(|| head.line("tools"), |fault| fault.line);
                    described.faults.push(Fault { line, message: error.message });
                }
            }
        }
        Shelf::Skills => {
            (described.license, described.compatibility) =
                (head.text("license").map(line), head.text("compatibility").map(line));
            described.metadata = metadata(head.keys.get("metadata"));
            described.allowed_tools = head.allowed_tools();
            described.faults = head.faults_of_skill(name);
        }
    }
    described
}

fn metadata(value: Option<&serde_json::Value>) -> BTreeMap<String, String> {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    value
        .and_then(serde_json::Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, one)| (key.clone(), text(one)))
        .collect()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(DESCRIPTION) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
        None => text.to_owned(),
    }
}
