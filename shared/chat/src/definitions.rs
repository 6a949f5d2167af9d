//! The personas and the skills of a workspace, as lists of people show them: each by the front matter of its file, with the faults in it.
//!
//! A person has others of their own, in their home: `/users/<id>/personas` and `/users/<id>/skills`. They are there for handles of this person alone, and
//! go before those of the workspace with the same name.

use crate::{
    built_in,
    front_matter::{FrontMatterFault, front_matter},
    home::if_there,
    tool_allowlist,
};
use domain::{Code, Error, FileId, FilePath, ModelSettings, chat::OWN_PERSONA};
use std::{collections::BTreeMap, ops::Range};
use workspace::{Content, Workspace};

/// The most characters of a description, in a system text and in lists.
const DESCRIPTION: usize = 300;

/// The two kinds of files with front matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionKind {
    /// The personas, `/system/agents/<name>/AGENT.md` and `/users/<id>/personas/<name>/AGENT.md`.
    Agents,
    /// The skills, `/system/skills/<name>/SKILL.md` and `/users/<id>/skills/<name>/SKILL.md`.
    Skills,
}

/// A persona or a skill, by its front matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
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
    /// The line of that model in the file.
    pub model_line: Option<u32>,
    /// Of a persona the settings of the model.
    pub model_settings: ModelSettings,
    /// Of a skill its licence.
    pub license: Option<String>,
    /// Of a skill its requirements.
    pub compatibility: Option<String>,
    /// Of a skill what its author adds.
    pub metadata: BTreeMap<String, String>,
    /// Of a skill the tools that it declares as approved in advance. They give it no right.
    pub allowed_tools: Vec<String>,
    /// The faults in its front matter, by line.
    pub faults: Vec<FrontMatterFault>,
}

/// The personas or the skills of a workspace and of the person of the handle, by name. A folder without the file is none.
///
/// # Errors
/// Those of reading the workspace's files. A file that is gone or is no text is left out.
pub async fn definitions(workspace: &Workspace, kind: DefinitionKind) -> Result<Vec<Definition>, Error> {
    let mut names = folders(workspace, kind).await?;
    if kind == DefinitionKind::Agents {
        for name in built_in::names() {
            names.entry(name.to_owned()).or_default();
        }
    }
    let mut all = Vec::new();
    for (name, has_own) in names {
        all.extend(describe(workspace, kind, &name, has_own).await?);
    }
    Ok(all)
}

/// The personas in the box, by name.
pub fn built_in_personas() -> Vec<Definition> {
    let described = |name: &str| {
        let path = DefinitionKind::Agents.path(name).ok()?;
        Some(of_text(DefinitionKind::Agents, name, path, None, built_in::persona(name)?))
    };
    built_in::names().filter_map(described).collect()
}

/// A persona, and the whole text of its file.
///
/// # Errors
/// `NOT_FOUND` when there is none of this name; `INVALID_ARGUMENT` for a text that is no name; those of reading the workspace's files.
pub async fn persona_file(workspace: &Workspace, name: &str) -> Result<(Definition, String), Error> {
    let path = DefinitionKind::Agents.path(name)?;
    let own = own_file(workspace, DefinitionKind::Agents, name, None).await?;
    let read = match own {
        Some(own) => Ok(own),
        None => workspace.read(&path, None).await,
    };
    let (path, file_id, text) = match read {
        Ok(Content { info, bytes }) => (info.path, Some(info.file_id), String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.code == Code::NotFound => match built_in::persona(name) {
            Some(text) => (path, None, text.to_owned()),
            None => return Err(Error::not_found("persona", name).hint("GET …/agents lists those that there are")),
        },
        Err(error) => return Err(error),
    };
    Ok((of_text(DefinitionKind::Agents, name, path, file_id, &text), text))
}

/// The text of a persona that is the own one of the person of the handle; none when there is none of this name.
///
/// # Errors
/// Those of reading the workspace's files.
pub(crate) async fn own_persona(workspace: &Workspace, name: &str) -> Result<Option<String>, Error> {
    let content = own_file(workspace, DefinitionKind::Agents, name, None).await?;
    Ok(content.map(|content| String::from_utf8_lossy(&content.bytes).into_owned()))
}

/// The file of a person's own persona or skill, or a part of it; none where there is none.
async fn own_file(
    workspace: &Workspace,
    kind: DefinitionKind,
    name: &str,
    part: Option<Range<u64>>,
) -> Result<Option<Content>, Error> {
    let path = kind.own_folder(workspace).and_then(|folder| folder.join(name).ok()?.join(kind.file()).ok());
    match path {
        Some(path) => if_there(workspace.read(&path, part).await),
        None => Ok(None),
    }
}

impl DefinitionKind {
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

    /// The folder of the person of the handle; none for a handle without a home.
    fn own_folder(self, workspace: &Workspace) -> Option<FilePath> {
        let name = match self {
            Self::Agents => workspace::PERSONAS,
            Self::Skills => workspace::SKILLS,
        };
        workspace.home()?.join(name).ok()
    }
}

/// The names of the folders of a kind, in order, each with whether the person of the handle has one.
pub(crate) async fn folders(workspace: &Workspace, kind: DefinitionKind) -> Result<BTreeMap<String, bool>, Error> {
    let shared = workspace.folders_in(&FilePath::parse(kind.folder())?).await?;
    let mut names: BTreeMap<String, bool> = shared.into_iter().map(|name| (name, false)).collect();
    if let Some(own) = kind.own_folder(workspace) {
        let own = if_there(workspace.folders_in(&own).await)?.unwrap_or_default();
        names.extend(own.into_iter().map(|name| (name, true)));
    }
    // A role that begins so is that of a person's own persona.
    names.retain(|name, _| kind == DefinitionKind::Skills || !name.starts_with(OWN_PERSONA));
    Ok(names)
}

/// Reads the front matter of a folder's file, the person's own before the workspace's, or of a persona in the box; none when there is none of them.
pub(crate) async fn describe(
    workspace: &Workspace,
    kind: DefinitionKind,
    name: &str,
    has_own: bool,
) -> Result<Option<Definition>, Error> {
    /// How much of a file is looked at for its front matter, in bytes.
    const HEAD: u64 = 8 * 1024;
    let path = kind.path(name)?;
    let own = if has_own { own_file(workspace, kind, name, Some(0..HEAD)).await? } else { None };
    let read = match own {
        Some(own) => Ok(own),
        None => workspace.read(&path, Some(0..HEAD)).await,
    };
    match read {
        Ok(content) => {
            let text = String::from_utf8_lossy(&content.bytes);
            Ok(Some(of_text(kind, name, content.info.path, Some(content.info.file_id), &text)))
        }
        Err(error) if error.code == Code::NotFound && kind == DefinitionKind::Agents => {
            Ok(built_in::persona(name).map(|text| of_text(kind, name, path, None, text)))
        }
        Err(error) if matches!(error.code, Code::NotFound | Code::Unprocessable) => Ok(None),
        Err(error) => Err(error),
    }
}

fn of_text(kind: DefinitionKind, name: &str, path: FilePath, file_id: Option<FileId>, text: &str) -> Definition {
    let head = front_matter(text);
    let line = |text: &str| shortened(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut described = Definition {
        title: head.text("name").map_or_else(|| name.to_owned(), line),
        name: name.to_owned(),
        description: head.text("description").map(line).unwrap_or_default(),
        path,
        file_id,
        tools: None,
        model: None,
        model_line: None,
        model_settings: ModelSettings::default(),
        license: None,
        compatibility: None,
        metadata: BTreeMap::new(),
        allowed_tools: Vec::new(),
        faults: Vec::new(),
    };
    match kind {
        DefinitionKind::Agents => {
            described.model = head.text("model").map(str::to_owned);
            described.model_line = described.model.as_ref().map(|_| head.line("model"));
            match tool_allowlist::listed(&head) {
                Ok(tools) => described.tools = tools,
                Err(error) => {
                    let line = head.fault.as_ref().map_or_else(|| head.line("tools"), |fault| fault.line);
                    described.faults.push(FrontMatterFault { line, message: error.message });
                }
            }
            match head.model_settings() {
                Ok(settings) => described.model_settings = settings,
                Err(fault) => described.faults.push(fault),
            }
            described.faults.sort_by_key(|fault| fault.line);
        }
        DefinitionKind::Skills => {
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
