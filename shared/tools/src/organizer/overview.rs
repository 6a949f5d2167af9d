//! Abbreviated overviews for the system texts of sessions (spec 003 §3): details are read by tools when they are needed.

use super::{
    heads::{FoundEntity, Heads, read},
    lists::{line, task_order},
    scope::{all_projects, zone_of},
    times::{entries, row, times},
};
use domain::{Code, Error, FileId, FilePath, Principal};
use organizer::{EntityKind, Scope, Span, clock, entity::preview};
use std::time::Duration;
use workspace::{FileKind, Link, Workspace};

/// Characters of the context of a project.
const CONTEXT: usize = 500;
/// Characters of a file's words.
const SHOWN: usize = 100;
/// Tasks that are named.
const TASKS: usize = 5;
/// Events that are named.
const EVENTS: usize = 20;

/// A project: name, status, 500 characters of what is known, and its first five open tasks.
///
/// # Errors
/// `NOT_FOUND` for a project that there is not; those of reading the workspace's files.
pub async fn project_overview(files: &Workspace, folder: &FilePath) -> Result<String, Error> {
    let path = EntityKind::Project.at(folder.as_str())?;
    let mut text = format!("The project is {folder}.");
    match files.read(&path, None).await {
        Ok(content) => {
            let entity = read(EntityKind::Project, &path, &content.bytes);
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
    let tasks = open(files, vec![Scope::Project(folder.clone()).folder_of(EntityKind::Task)?]).await?;
    text.push_str(&section("Its open tasks", &tasks));
    Ok(text)
}

/// The first open tasks of a person: of all projects and their home.
///
/// # Errors
/// Those of reading the workspace's files.
pub async fn open_tasks(files: &Workspace, by: &Principal) -> Result<String, Error> {
    let mut folders = all_projects(files, EntityKind::Task).await?;
    folders.push(Scope::Home(by.user()).folder_of(EntityKind::Task)?);
    Ok(section("Open tasks", &open(files, folders).await?))
}

async fn open(files: &Workspace, folders: Vec<FilePath>) -> Result<Vec<FoundEntity>, Error> {
    let (mut found, _) = Heads::shared().find(files, EntityKind::Task, folders).await?;
    found.retain(|one| one.entity.text("status") != Some("done"));
    found.sort_by_cached_key(task_order);
    Ok(found)
}

fn section(what: &str, found: &[FoundEntity]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = found.iter().take(TASKS).map(|one| line(&one.entity.row(&one.info.path))).collect();
    let more = found.len().saturating_sub(TASKS);
    let more = if more > 0 { format!(" ({more} more)") } else { String::new() };
    format!("\n{what}{more}:\n{}", lines.join("\n"))
}

/// The events of the next seven days in the time zone of the person's profile: of one project, or of all and the person's home.
///
/// # Errors
/// Those of reading the workspace's files.
pub async fn events_ahead(files: &Workspace, by: &Principal, project: Option<&FilePath>) -> Result<String, Error> {
    let zone = zone_of(files, by).await;
    let folders = async |kind: EntityKind| -> Result<Vec<FilePath>, Error> {
        match project {
            Some(folder) => Ok(vec![Scope::Project(folder.clone()).folder_of(kind)?]),
            None => {
                let mut folders = all_projects(files, kind).await?;
                folders.push(Scope::Home(by.user()).folder_of(kind)?);
                Ok(folders)
            }
        }
    };
    let both = (folders(EntityKind::Event).await?, folders(EntityKind::Task).await?);
    let (entries, faults, whole) = entries(files, Heads::shared(), both, zone).await?;
    let start = files.now();
    let (found, all) = times(&entries, Span { start, end: start + Duration::from_secs(7 * 24 * 3_600) });
    let lines: Vec<String> = found.iter().take(EVENTS).map(|at| line(&row(at, zone))).collect();
    let mut text = match lines.is_empty() {
        true => format!("Nothing is in the calendar for the next 7 days ({zone})."),
        false => format!("The next 7 days ({zone}):\n{}", lines.join("\n")),
    };
    let more = found.len().saturating_sub(EVENTS);
    if more > 0 {
        text.push_str(&format!("\n({more} more)"));
    }
    if !faults.is_empty() || !all || !whole {
        text.push_str("\nThis is not all: get_calendar_events names files with wrong times.");
    }
    Ok(text)
}

/// This day in the time zone of the person's profile, with the zone: `Tuesday, 2026-12-01 (Europe/Berlin)`.
pub async fn today(files: &Workspace, by: &Principal) -> String {
    let zone = zone_of(files, by).await;
    format!("{} ({zone})", clock::local(files.now(), zone).format("%A, %Y-%m-%d"))
}

/// A file that a person looks at, as lists show it: title, status, dates and 100 characters of its words; with its tags and links. `named` is its
/// path or its id.
///
/// # Errors
/// `NOT_FOUND` when there is no such file, `INVALID_ARGUMENT` for a text that is neither; those of reading the workspace's files.
pub async fn file_overview(files: &Workspace, named: &str) -> Result<String, Error> {
    const READ: u64 = 64 * 1024;
    const LINKS: usize = 10;
    let info = match named.parse::<FileId>() {
        Ok(id) => files.by_id(id).await?,
        Err(_) => files.stat(&FilePath::parse(named)?).await?,
    };
    let mut text = match info.kind {
        FileKind::Folder => format!("the folder {}", info.path),
        FileKind::File | FileKind::Projection => {
            let content = files.read(&info.path, Some(0..READ)).await?;
            match EntityKind::of(&info.path) {
                Some(kind) => line(&read(kind, &info.path, &content.bytes).row(&info.path)),
                None => format!("{}: {}", info.path, preview(&String::from_utf8_lossy(&content.bytes), SHOWN)),
            }
        }
    };
    let relations = files.relations(info.file_id).await?;
    if !relations.tags.is_empty() {
        text.push_str(&format!("\ntags: {}", relations.tags.join(", ")));
    }
    let linked = |link: &Link| Some(format!("{} ({})", link.file.as_ref()?.path, link.kind));
    for (what, links) in [("links to", &relations.links), ("linked from", &relations.backlinks)] {
        let links: Vec<String> = links.iter().filter_map(linked).take(LINKS).collect();
        if !links.is_empty() {
            text.push_str(&format!("\n{what}: {}", links.join(", ")));
        }
    }
    Ok(text)
}
