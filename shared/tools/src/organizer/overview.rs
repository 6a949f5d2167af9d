//! Abbreviated overviews for the system texts of sessions (spec 003 §3): details are read by tools when they are needed.

use super::{
    heads::{Found, Heads, read},
    lists::{line, task_order},
    scope::{all_projects, zone_of},
    times::{entries, row, times},
};
use domain::{Code, Error, FilePath, Principal};
use organizer::{Kind, Scope, Span, entity::preview};
use std::time::Duration;
use workspace::Workspace;

/// Characters of the context of a project.
const CONTEXT: usize = 500;
/// Tasks that are named.
const TASKS: usize = 5;
/// Events that are named.
const EVENTS: usize = 20;

/// A project: name, status, 500 characters of what is known, and its first five open tasks.
///
/// # Errors
/// `NOT_FOUND` for a project that there is not; those of reading the workspace's files.
pub async fn project_overview(files: &Workspace, folder: &FilePath) -> Result<String, Error> {
    let path = Kind::Project.at(folder.as_str())?;
    let mut text = format!("The project is {folder}.");
    match files.read(&path, None).await {
        Ok(content) => {
            let entity = read(Kind::Project, &path, &content.bytes);
            text = format!("The project is {folder}: {}", entity.title());
            for name in ["status", "end_date"] {
                if let Some(value) = entity.text(name) {
                    text.push_str(&format!("; {name} {value}"));
                }
            }
            for name in ["description", "context"] {
                if let Some(value) = entity.text(name) {
                    text.push_str(&format!("\n{}", preview(value, CONTEXT)));
                    if value.chars().count() > CONTEXT {
                        text.push_str(&format!(" (cut; {path} has the whole)"));
                    }
                }
            }
        }
        Err(error) if matches!(error.code, Code::NotFound | Code::Forbidden | Code::Unprocessable) => {}
        Err(error) => return Err(error),
    }
    let tasks = open(files, vec![Scope::Project(folder.clone()).folder_of(Kind::Task)?]).await?;
    text.push_str(&told("Its open tasks", &tasks));
    Ok(text)
}

/// The first open tasks of a person: of all projects and their home.
///
/// # Errors
/// Those of reading the workspace's files.
pub async fn open_tasks(files: &Workspace, by: &Principal) -> Result<String, Error> {
    let mut folders = all_projects(files, Kind::Task).await?;
    folders.push(Scope::Home(by.user()).folder_of(Kind::Task)?);
    Ok(told("Open tasks", &open(files, folders).await?))
}

async fn open(files: &Workspace, folders: Vec<FilePath>) -> Result<Vec<Found>, Error> {
    let (mut found, _) = Heads::shared().find(files, Kind::Task, folders).await?;
    found.retain(|one| one.entity.text("status") != Some("done"));
    found.sort_by_cached_key(task_order);
    Ok(found)
}

fn told(what: &str, found: &[Found]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = found.iter().take(TASKS).map(|one| line(&one.entity.row(&one.info.path))).collect();
    let more = found.len().saturating_sub(TASKS);
    let more = if more > 0 { format!(" ({more} more)") } else { String::new() };
    format!("\n{what}{more}:\n{}", lines.join("\n"))
}

/// The events of the next seven days in the time zone of the person's profile.
///
/// # Errors
/// Those of reading the workspace's files.
pub async fn events_ahead(files: &Workspace, by: &Principal) -> Result<String, Error> {
    let zone = zone_of(files, by).await;
    let home = Scope::Home(by.user());
    let mut both = (all_projects(files, Kind::Event).await?, all_projects(files, Kind::Task).await?);
    both.0.push(home.folder_of(Kind::Event)?);
    both.1.push(home.folder_of(Kind::Task)?);
    let (entries, _, _) = entries(files, Heads::shared(), both, zone).await?;
    let start = files.now();
    let (found, _) = times(&entries, Span { start, end: start + Duration::from_secs(7 * 24 * 3_600) });
    if found.is_empty() {
        return Ok(format!("Nothing is in the calendar for the next 7 days ({zone})."));
    }
    let lines: Vec<String> = found.iter().take(EVENTS).map(|at| line(&row(at, zone))).collect();
    Ok(format!("The next 7 days ({zone}):\n{}", lines.join("\n")))
}
