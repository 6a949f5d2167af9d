//! The folders that a call means, and the time zone of its person.

use crate::call::Call;
use domain::{Code, Error, FilePath};
use organizer::{
    EntityKind, Scope,
    clock::{self, Tz},
    front_matter,
};
use serde_json::Value;
use workspace::Workspace;

/// The word for the home of the person.
pub(crate) const HOME: &str = "home";
/// The most projects that are looked through.
const PROJECTS: usize = 1_000;

/// The scope of an argument: a project, or the home.
///
/// # Errors
/// `INVALID_ARGUMENT` for a text that is no project.
pub(crate) fn scope(call: &Call<'_>, project: Option<&str>) -> Result<Scope, Error> {
    match project {
        None | Some(HOME) => Ok(Scope::Home(call.by.user())),
        Some(project) => Scope::project(project),
    }
}

/// The folders of entities of a kind: of one project, or of all projects and the home.
///
/// # Errors
/// `NOT_FOUND` for a project that there is not; those of reading the workspace's files.
pub(crate) async fn folders(call: &Call<'_>, kind: EntityKind, project: Option<&str>) -> Result<Vec<FilePath>, Error> {
    let Some(project) = project else {
        let home = Scope::Home(call.by.user()).folder_of(kind)?;
        let mut all = all_projects(&call.workspace, kind).await?;
        if kind != EntityKind::Project {
            all.push(home);
        }
        return Ok(all);
    };
    let scope = scope(call, Some(project))?;
    if let Scope::Project(folder) = &scope {
        expect_project(&call.workspace, folder).await?;
    }
    Ok(vec![scope.folder_of(kind)?])
}

/// The folders of entities of a kind in all projects.
pub(super) async fn all_projects(workspace: &Workspace, kind: EntityKind) -> Result<Vec<FilePath>, Error> {
    let root = FilePath::parse("/projects")?;
    let names = workspace.folders_in(&root).await?;
    let folder = |name: &String| Scope::Project(root.join(name)?).folder_of(kind);
    names.iter().take(PROJECTS).map(folder).collect()
}

/// That a project is there.
///
/// # Errors
/// `NOT_FOUND` when it is not.
pub(crate) async fn expect_project(workspace: &Workspace, folder: &FilePath) -> Result<(), Error> {
    match workspace.stat(folder).await {
        Err(error) if error.code == Code::NotFound => {
            let error = Error::not_found("project", folder.name()).detail("field", "project");
            Err(error.hint("search_projects lists those that there are; create_project makes one"))
        }
        found => found.map(drop),
    }
}

/// The time zone of a call: that of the argument, else that of the person's profile, else UTC.
///
/// # Errors
/// `INVALID_ARGUMENT` for a zone that there is not.
pub(crate) async fn zone(call: &Call<'_>, argument: Option<&str>) -> Result<Tz, Error> {
    match argument {
        Some(name) => clock::zone("time_zone", name),
        None => Ok(zone_of(&call.workspace, &call.by).await),
    }
}

/// The time zone of a person's profile; UTC when it has none.
pub async fn zone_of(workspace: &Workspace, by: &domain::Principal) -> Tz {
    let profile = Scope::Home(by.user()).folder().and_then(|home| Ok(home.join(workspace::PROFILE)?));
    let Ok(path) = profile else { return Tz::UTC };
    let Ok(content) = workspace.read(&path, Some(0..8 * 1024)).await else { return Tz::UTC };
    let text = String::from_utf8_lossy(&content.bytes).into_owned();
    let keys = front_matter::read(&text).keys;
    keys.get("time_zone").and_then(Value::as_str).and_then(|name| name.parse().ok()).unwrap_or(Tz::UTC)
}
