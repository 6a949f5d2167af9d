//! Lists and searches: abbreviated rows, from which details are asked for by their paths.

use super::{
    heads::{FoundEntity, Heads},
    scope::folders,
};
use crate::{
    call::{Answer, Call, Done},
    effects::{Declaration, Declare},
};
use ::search::{Mode, Request, Search};
use domain::{Error, FilePath};
use organizer::{EntityKind, Scope, clock::Moment};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Rows without a limit.
const USUAL: usize = 30;
/// Files that an index is asked for.
const BY_INDEX: usize = 100;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListTasks {
    /// A project by its folder's name, or home; all by default.
    project: Option<String>,
    /// backlog, in_progress, done or blocked.
    status: Option<String>,
    /// low, medium or high.
    priority: Option<String>,
    /// A day.
    due_before: Option<String>,
    /// The name of a person.
    assignee: Option<String>,
    /// A tag.
    tag: Option<String>,
    /// 30 by default.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

/// The arguments of a search of one kind.
pub(crate) trait Searching {
    const KIND: EntityKind;
    fn parts(&self) -> Parts<'_>;
}

/// The request of a search.
pub(crate) struct Parts<'a> {
    query: Option<&'a str>,
    project: Option<&'a str>,
    /// Fields, and the value that each has to have.
    filters: Vec<(&'static str, &'a str)>,
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchProjects {
    /// Words that are in it; all by default.
    query: Option<String>,
    /// active, paused, completed or archived.
    status: Option<String>,
    /// 30 by default.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchNotes {
    /// Words that are in it; all by default.
    query: Option<String>,
    /// A project by its folder's name, or home; all by default.
    project: Option<String>,
    /// A category.
    category: Option<String>,
    /// A tag.
    tag: Option<String>,
    /// 30 by default.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchBrainDumps {
    /// Words that are in it; all by default.
    query: Option<String>,
    /// A project by its folder's name, or home; all by default.
    project: Option<String>,
    /// pending, parsed or saved.
    status: Option<String>,
    /// 30 by default.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

impl Searching for SearchProjects {
    const KIND: EntityKind = EntityKind::Project;
    fn parts(&self) -> Parts<'_> {
        let filters = self.status.as_deref().map(|status| ("status", status)).into_iter().collect();
        Parts { query: self.query.as_deref(), project: None, filters, limit: self.limit }
    }
}

impl Searching for SearchNotes {
    const KIND: EntityKind = EntityKind::Note;
    fn parts(&self) -> Parts<'_> {
        let category = self.category.as_deref().map(|category| ("category", category));
        let filters = category.into_iter().chain(self.tag.as_deref().map(|tag| ("tags", tag))).collect();
        Parts { query: self.query.as_deref(), project: self.project.as_deref(), filters, limit: self.limit }
    }
}

impl Searching for SearchBrainDumps {
    const KIND: EntityKind = EntityKind::BrainDump;
    fn parts(&self) -> Parts<'_> {
        let filters = self.status.as_deref().map(|status| ("status", status)).into_iter().collect();
        Parts { query: self.query.as_deref(), project: self.project.as_deref(), filters, limit: self.limit }
    }
}

/// Declares that a project is looked through; without one, everything is.
pub(super) fn looks(project: Option<&str>, into: &mut Declaration<'_>) -> Result<(), Error> {
    match project {
        None => into.searches("project", None),
        Some(super::scope::HOME) => into.home("project", crate::effects::Access::Read),
        Some(project) => into.reads("project", Scope::project(project)?.folder()?.as_str()),
    }
}

impl Declare for ListTasks {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        looks(self.project.as_deref(), into)
    }
}

impl Declare for SearchProjects {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.reads("project", "/projects")
    }
}

impl Declare for SearchNotes {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        looks(self.project.as_deref(), into)
    }
}

impl Declare for SearchBrainDumps {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        looks(self.project.as_deref(), into)
    }
}

pub(crate) async fn list_tasks(call: &Call<'_>, args: ListTasks, heads: &Heads) -> Answer {
    let due_before = args.due_before.as_deref().map(|text| Moment::argument("due_before", text)).transpose()?;
    let mut filters = Vec::new();
    let given =
        [("status", &args.status), ("priority", &args.priority), ("assignee", &args.assignee), ("tags", &args.tag)];
    filters.extend(given.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))));
    check(EntityKind::Task, &filters)?;
    let (mut found, all) = heads
        .find(&call.workspace, EntityKind::Task, folders(call, EntityKind::Task, args.project.as_deref()).await?)
        .await?;
    found.retain(|one| fits(one, &filters));
    if let Some(last) = due_before {
        let due = |one: &FoundEntity| one.entity.text("due_date").and_then(Moment::parse);
        let day = |at: Moment| at.local(organizer::clock::Tz::UTC).date();
        found.retain(|one| due(one).is_some_and(|due| day(due) <= day(last)));
    }
    found.sort_by_cached_key(task_order);
    Ok(rows(EntityKind::Task, &found, args.limit, all))
}

/// Tasks that are worked on first, then by the day on which they are due and by weight; what is done last.
pub(super) fn task_order(one: &FoundEntity) -> (usize, String, usize, FilePath) {
    let place = |words: &[&str], name: &str| {
        let word = one.entity.text(name).unwrap_or_default();
        words.iter().position(|known| *known == word).unwrap_or(words.len())
    };
    let status = place(&["in_progress", "blocked", "backlog", "", "done"], "status");
    let due = one.entity.text("due_date").unwrap_or("9999").to_owned();
    (status, due, place(&["high", "medium", "low"], "priority"), one.info.path.clone())
}

pub(crate) async fn search<S: Searching>(call: &Call<'_>, args: S, heads: &Heads, search: Option<&Search>) -> Answer {
    let Parts { query, project, filters, limit } = args.parts();
    check(S::KIND, &filters)?;
    let folders = folders(call, S::KIND, project).await?;
    let (mut found, all) = heads.find(&call.workspace, S::KIND, folders).await?;
    found.retain(|one| fits(one, &filters));
    match query.map(str::trim).filter(|query| !query.is_empty()) {
        // The newest first.
        None => found.sort_by_key(|one| (std::cmp::Reverse(one.info.updated_at), one.info.path.clone())),
        Some(query) => {
            let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
            let ranks = ranked(call, query, search).await;
            found.retain(|one| ranks.contains_key(&one.info.path) || one.entity.has_words(&words));
            let in_title =
                |one: &FoundEntity| words.iter().all(|word| one.entity.title().to_lowercase().contains(word.as_str()));
            found.sort_by_cached_key(|one| {
                let rank = ranks.get(&one.info.path).copied().unwrap_or(BY_INDEX);
                (!in_title(one), rank, one.info.path.clone())
            });
        }
    }
    Ok(rows(S::KIND, &found, limit, all))
}

/// The files that the index finds, by path, with their places. Without an index, and when it fails, the words of the beginning of each text decide alone.
async fn ranked(call: &Call<'_>, query: &str, search: Option<&Search>) -> HashMap<FilePath, usize> {
    let Some(search) = search else { return HashMap::new() };
    let request = Request {
        query: query.to_owned(),
        path: FilePath::root(),
        kinds: Vec::new(),
        tag: None,
        author: None,
        since: None,
        until: None,
        limit: BY_INDEX,
    };
    match search.find(&call.workspace, &request, Mode::Text).await {
        Ok(answer) => answer.results.into_iter().map(|hit| hit.path).zip(0..).collect(),
        Err(error) => {
            tracing::debug!(%error, "entities are searched without the index");
            HashMap::new()
        }
    }
}

/// That the words of filters are words of the table.
fn check(kind: EntityKind, filters: &[(&'static str, &str)]) -> Result<(), Error> {
    filters.iter().try_for_each(|(name, value)| match organizer::table::field(kind, name) {
        Some(field) if matches!(field.of, organizer::table::Type::Choice(_)) => {
            organizer::entity::check(field, &Value::from(*value))
        }
        _ => Ok(()),
    })
}

/// Whether an entity has these values; of a list one of its entries counts.
fn fits(one: &FoundEntity, filters: &[(&'static str, &str)]) -> bool {
    filters.iter().all(|(name, wanted)| match one.entity.fields.get(*name) {
        Some(Value::Array(values)) => values.iter().any(|value| value.as_str() == Some(wanted)),
        Some(Value::String(value)) => value.eq_ignore_ascii_case(wanted),
        _ => false,
    })
}

/// The answer with the first of these.
fn rows(kind: EntityKind, found: &[FoundEntity], limit: Option<usize>, all: bool) -> Done {
    let shown = limit.unwrap_or(USUAL);
    let rows: Vec<Map<String, Value>> = found.iter().take(shown).map(|one| one.entity.row(&one.info.path)).collect();
    let mut output: String = rows.iter().map(line).collect::<Vec<_>>().join("\n");
    if rows.is_empty() {
        output = format!("there is no such {}", kind.words());
    }
    let more = found.len().saturating_sub(shown);
    if more > 0 {
        output.push_str(&format!("\n[{more} more: filter, or raise the limit]"));
    }
    if !all {
        output.push_str("\n[there are too many to look through: name a project]");
    }
    let truncated = more > 0 || !all;
    let result = json!({ "total": found.len(), "complete": all, (plural(kind)): rows });
    Done { output, truncated, result, ..Done::default() }
}

/// The name of a list.
pub(super) fn plural(kind: EntityKind) -> String {
    format!("{}s", kind.name())
}

/// A row for models: `/projects/atlas/tasks/order-paper.md: Order paper; status backlog; due_date 2026-12-01`.
pub(super) fn line(row: &Map<String, Value>) -> String {
    let told = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    let path = row.get("path").and_then(Value::as_str).unwrap_or_default();
    let fields = row.iter().filter(|(name, _)| *name != "path").map(|(name, value)| match name.as_str() {
        "title" | "name" | "description" | "preview" => told(value),
        name => format!("{name} {}", told(value)),
    });
    format!("{path}: {}", fields.collect::<Vec<_>>().join("; "))
}
