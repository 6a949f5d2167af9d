//! The contexts of sessions (spec 003 §2, §3): for each kind of work its instructions and its tools, and the abbreviated location that the
//! system text has. Details are read by tools when they are needed.

use crate::{
    home::{self, own_file},
    prompt,
    session_plan::{cut, fitted},
};
use domain::{Code, Error, FilePath, Principal, Session, SessionContext, chat::SessionConfig};
use serde_json::Value;
use std::fmt::Write as _;
use tools::organizer;
use workspace::{BRIEF_SETTINGS, Workspace};

/// Characters of a project's description.
const DESCRIPTION: usize = 500;
/// The beginning of the paragraph of a system text that tells the day: messages have no date, and models cannot know it.
const TODAY: &str = "\n\nToday is ";
/// The heading of the location in a system text.
const LOCATION: &str = "\n\n# Location\n";
/// How many projects are named.
const PROJECTS: usize = 20;

/// Tools that look at files, beside those of the organizer.
const READING: [&str; 4] = ["ls", "glob", "grep", "read"];
/// Tools that look at notes and brain dumps.
const THOUGHTS: [&str; 4] = ["search_notes", "get_note_details", "search_brain_dumps", "get_brain_dump_details"];
/// Those, and the one that looks for free time.
const NO_MATTER_OF_BRIEFS: [&str; 5] =
    ["search_notes", "get_note_details", "search_brain_dumps", "get_brain_dump_details", "find_available_slots"];

const ROLE: &str = "\
You are the planner of a chat. Each message was analysed before you read it, and your tools follow from that. Without tools you answer from \
the conversation. With tools you look or change what is asked for, with few calls. With run_plan the work has several steps: make a plan, \
have it carried out, read the results, and answer from them. Plan steps that stand alone: an executor sees its step and the results of the \
steps that it depends on, and nothing of this chat. List the tools that each step needs. When steps fail, say what is left, or plan the \
rest in another way. Answer in the language of the person, shortly, with paths of the files that you name. Projects, tasks, notes, brain \
dumps and events are files with tools of their own: lists are abbreviated, details are whole, get_field_info tells the fields. Other \
documents are below /projects and /data.";

/// The instructions of a kind of work.
fn instructions(context: SessionContext) -> &'static str {
    match context {
        SessionContext::Global => {
            "# Context: everything\nThe person asks about any of their projects, tasks and notes. Find out which, then look there."
        }
        SessionContext::Project => {
            "# Context: a project\nThe person looks at one project. You read and explain; you change nothing."
        }
        SessionContext::Calendar => {
            "# Context: the calendar\nThe person looks at their time, the next 7 days first. You read and explain; you change nothing."
        }
        SessionContext::Task => {
            "# Context: a task\nThe person looks at one task. You read and explain; you change nothing."
        }
        SessionContext::ProjectCreate => {
            "# Context: a new project\nAsk for what you need by dimensions, two or three questions at a time: what for and for whom, what exists, what \
             belongs to it and what does not, who does it, until when, what can go wrong. When the person has said enough, or asks you to go on, make \
             the project with create_project, its core fields and its first tasks, and say what you assumed."
        }
        SessionContext::ProjectUpdate => {
            "# Context: changes of a project\nMake the changes that are asked for, and no others, with as few calls as it takes. Read a file before \
             you change it. Say in one line each what is different now."
        }
        SessionContext::ProjectAudit => {
            "# Context: an audit\nJudge the project critically: goals that cannot be checked, missing owners and dates, contradictions, risks without \
             an answer. Name the evidence by its path for each finding, and order findings by their weight. You change nothing."
        }
        SessionContext::ProjectForecast => {
            "# Context: a forecast\nDevelop scenarios of the project: the likely one, a better and a worse one. Say for each its assumptions, its end, and \
             the first sign by which it is noticed. Separate facts, by their paths, from assumptions. You change nothing."
        }
        SessionContext::TaskUpdate => {
            "# Context: changes of a task\nMake the change that is asked for at once, and say it in one line."
        }
        SessionContext::DailyBriefUpdate => {
            "# Context: the daily brief\nThe settings of the daily brief are one file, which its schedule reads: what it covers, how long it is, and for whom. Change \
             it as asked, keep the rest of its words, and say in one line what they are now. Change nothing else."
        }
    }
}

/// The tools of a kind of work: those that look, without some that it has no use for, and those that change what it is about. The declarations of
/// tools are a large part of each request; `tool_disclosure` holds them within their budget.
pub(crate) fn tools(context: SessionContext) -> Vec<String> {
    let (without, changing): (&[&str], &[&str]) = match context {
        SessionContext::Global | SessionContext::Project | SessionContext::Calendar | SessionContext::Task => {
            (&[], &[])
        }
        SessionContext::ProjectAudit | SessionContext::ProjectForecast => (&["find_available_slots"], &[]),
        SessionContext::ProjectCreate => (
            &["list_tasks", "get_task_details", "get_calendar_events"],
            &[
                "write",
                "create_project",
                "update_project",
                "create_task",
                "update_task",
                "schedule_task",
                "create_note",
                "create_brain_dump",
            ],
        ),
        SessionContext::ProjectUpdate => (
            &[],
            &[
                "write",
                "edit",
                "mkdir",
                "update_project",
                "create_task",
                "update_task",
                "schedule_task",
                "create_note",
                "create_brain_dump",
                "import_calendar",
                "export_calendar",
            ],
        ),
        SessionContext::TaskUpdate => {
            (&THOUGHTS, &["edit", "create_task", "update_task", "schedule_task", "create_note"])
        }
        SessionContext::DailyBriefUpdate => (&NO_MATTER_OF_BRIEFS, &["write", "edit", "create_note"]),
    };
    let looking = READING.iter().chain(&organizer::READING).filter(|tool| !without.contains(tool));
    looking.chain(changing).map(|tool| (*tool).to_owned()).collect()
}

/// The text and the tools of a context, with the location as it is now.
///
/// # Errors
/// `NOT_FOUND` for a project or a task that there is not, `INVALID_ARGUMENT` for a name that is none; those of reading the workspace's files.
pub(crate) async fn setup(files: &Workspace, mut session: Session, by: &Principal) -> Result<SessionConfig, Error> {
    session.read_at = Some(files.now());
    session.cut.clear();
    // Spec 003 §2 (4).
    let today = organizer::today(files, by).await;
    let mut system = format!("{ROLE}\n\n{}{TODAY}{today}.", instructions(session.context));
    let location = location(files, &session, by).await?;
    let location = fitted("location", &location, session.budgets.location, &mut session.cut);
    if !location.is_empty() {
        let _ = write!(system, "{LOCATION}{location}");
    }
    if let Some((path, profile)) = home::profile(files).await? {
        let profile = fitted("profile", &profile, session.budgets.profile, &mut session.cut);
        system.push_str(&prompt::of_person(&path, &profile));
    }
    Ok(SessionConfig { tools: tools(session.context), system, session, refreshes: false })
}

/// The paragraph of a session's system text that tells the day; empty where it has none.
pub(crate) fn today_in(system: &str) -> &str {
    let Some(begin) = system.find(TODAY) else { return "" };
    let told = begin + TODAY.len();
    let end = system[told..].find('\n').map_or(system.len(), |at| told + at);
    &system[begin..end]
}

/// The location in the system text of a session; none where it has none. The profile of the person may come after it.
pub(crate) fn location_in(system: &str) -> Option<&str> {
    let (_, location) = system.split_once(LOCATION)?;
    Some(location.split_once(prompt::OF_PERSON).map_or(location, |(location, _)| location))
}

/// Whether a context may name a project: its calendar, too.
pub(crate) fn names_a_project(context: SessionContext) -> bool {
    is_of_project(context) || context == SessionContext::Calendar
}

/// Whether the entity of a context is the name of a project.
fn is_of_project(context: SessionContext) -> bool {
    matches!(
        context,
        SessionContext::Project
            | SessionContext::ProjectUpdate
            | SessionContext::ProjectAudit
            | SessionContext::ProjectForecast
    )
}

async fn location(files: &Workspace, session: &Session, by: &Principal) -> Result<String, Error> {
    let mut text = match (&session.entity, session.context) {
        (Some(name), context) if is_of_project(context) => {
            organizer::project_overview(files, &project_folder(files, name).await?).await?
        }
        (Some(name), SessionContext::Calendar) => {
            let folder = project_folder(files, name).await?;
            organizer::events_ahead(files, by, Some(&folder)).await?
        }
        (Some(named), SessionContext::Task | SessionContext::TaskUpdate) => task(files, named).await?,
        (_, SessionContext::DailyBriefUpdate) => brief(files, by).await?,
        (Some(entity), _) => format!("It is about {entity:?}."),
        (None, SessionContext::Calendar) => organizer::events_ahead(files, by, None).await?,
        (None, _) => format!("{}{}", projects(files).await?, organizer::open_tasks(files, by).await?),
    };
    if let Some(focus) = &session.focus {
        let _ = write!(text, "\nThe person looks at: {}", focused(files, focus).await?);
    }
    Ok(text.trim().to_owned())
}

/// The entity that the client says is looked at: by its path or its id, or else in the client's words.
async fn focused(files: &Workspace, focus: &Value) -> Result<String, Error> {
    let named = ["path", "file_id", "id"].iter().find_map(|key| focus.get(key)?.as_str()).or(focus.as_str());
    if let Some(named) = named {
        match organizer::file_overview(files, named).await {
            Ok(text) => return Ok(text),
            Err(error) if is_elsewhere(&error) => {}
            Err(error) => return Err(error),
        }
    }
    let words = focus.as_str().map_or_else(|| focus.to_string(), str::to_owned);
    Ok(cut(&words, DESCRIPTION))
}

/// Whether a name is that of no file here, or of one that is hidden.
fn is_elsewhere(error: &Error) -> bool {
    matches!(error.code, Code::NotFound | Code::Forbidden | Code::InvalidArgument)
}

/// A task, abbreviated.
async fn task(files: &Workspace, named: &str) -> Result<String, Error> {
    match organizer::file_overview(files, named).await {
        Ok(text) => Ok(format!("The task is {text}")),
        Err(error) if is_elsewhere(&error) => {
            let error = Error::not_found("task", named).detail("field", "entity_id");
            Err(error.hint("the path of the task's file, such as /projects/NAME/tasks/NAME.md, or its id"))
        }
        Err(error) => Err(error),
    }
}

/// The settings of the person's daily brief.
async fn brief(files: &Workspace, by: &Principal) -> Result<String, Error> {
    let path = FilePath::parse(&format!("/users/{}/{BRIEF_SETTINGS}", by.user()))?;
    Ok(match own_file(files, &path).await? {
        Some(settings) => format!("The settings, {path}:\n{settings}"),
        None => format!("There are no settings yet. The file for them is {path}."),
    })
}

/// The folder of a project.
async fn project_folder(files: &Workspace, name: &str) -> Result<FilePath, Error> {
    let unnamed = |error: Error| error.detail("field", "entity_id").hint("the name of a folder below /projects");
    let folder = FilePath::parse("/projects")?.join(name).map_err(|error| unnamed(error.into()))?;
    match files.stat(&folder).await {
        Ok(_) => Ok(folder),
        Err(error) if error.code == Code::NotFound => Err(unnamed(Error::not_found("project", name))),
        Err(error) => Err(error),
    }
}

async fn projects(files: &Workspace) -> Result<String, Error> {
    let names = match files.folders_in(&FilePath::parse("/projects")?).await {
        Ok(names) => names,
        Err(error) if error.code == Code::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    if names.is_empty() {
        return Ok("There are no projects yet.".to_owned());
    }
    let shown: Vec<&str> = names.iter().take(PROJECTS).map(String::as_str).collect();
    let more = names.len().saturating_sub(PROJECTS);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    Ok(format!("The projects: {}{rest}.", shown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        session_plan,
        tool_disclosure::{self, Offer},
    };
    use domain::{ToolSpec, session::SessionBudget};
    use std::sync::Arc;
    use tools::{Registry, ToolKind};

    const ALL: [SessionContext; 10] = [
        SessionContext::Global,
        SessionContext::Project,
        SessionContext::Calendar,
        SessionContext::Task,
        SessionContext::ProjectCreate,
        SessionContext::ProjectUpdate,
        SessionContext::ProjectAudit,
        SessionContext::ProjectForecast,
        SessionContext::TaskUpdate,
        SessionContext::DailyBriefUpdate,
    ];

    #[test]
    fn every_context_has_instructions_of_its_own_within_the_budget_of_a_system_text() {
        for (position, context) in ALL.into_iter().enumerate() {
            let text = instructions(context);
            assert!(ALL.iter().take(position).all(|other| instructions(*other) != text), "{context:?}");
            assert!((ROLE.len() + text.len()) / 4 <= 500, "{context:?}: {} tokens", (ROLE.len() + text.len()) / 4);
        }
    }

    #[test]
    fn the_day_of_a_system_text_is_found() {
        assert_eq!(today_in("You plan.\n\nToday is Friday.\n\n# Location\nNothing."), "\n\nToday is Friday.");
        assert_eq!(today_in("You plan.\n\nToday is Friday."), "\n\nToday is Friday.");
        assert_eq!(today_in("You plan."), "");
    }

    #[test]
    fn an_audit_and_all_reactive_contexts_have_no_tool_that_writes() {
        const WRITING: [SessionContext; 4] = [
            SessionContext::ProjectCreate,
            SessionContext::ProjectUpdate,
            SessionContext::TaskUpdate,
            SessionContext::DailyBriefUpdate,
        ];
        let registry = Registry::builtin();
        for context in ALL {
            let kinds: Vec<_> = tools(context).iter().map(|tool| registry.kind(tool)).collect();
            assert!(kinds.iter().all(Option::is_some), "{context:?}: every tool exists");
            let reads = kinds.iter().all(|kind| *kind == Some(ToolKind::Read));
            assert_eq!(reads, !WRITING.contains(&context), "{context:?}");
        }
    }

    #[test]
    fn each_context_has_the_tools_of_the_specification() {
        let has = |context, all: &[&str]| {
            let tools = tools(context);
            all.iter().for_each(|tool| assert!(tools.iter().any(|one| one == tool), "{context:?} has no {tool}"));
        };
        for context in [SessionContext::Global, SessionContext::Project, SessionContext::Calendar, SessionContext::Task]
        {
            has(context, &organizer::READING);
        }
        // The last two are not of the specification.
        let (of_specification, _) = organizer::WRITING.split_at(7);
        has(SessionContext::ProjectCreate, of_specification);
        ALL.into_iter().for_each(|context| has(context, &["get_field_info", "read", "grep"]));
        let all: Vec<String> = ALL.into_iter().flat_map(tools).collect();
        let nowhere: Vec<_> = organizer::WRITING.iter().filter(|tool| !all.iter().any(|one| one == *tool)).collect();
        assert!(nowhere.is_empty(), "{nowhere:?}");
    }

    /// The whole context of a planner before its conversation, with its tools, leaves a fifth of 5,000 tokens for words, and the reserve.
    #[test]
    fn tools_stay_within_their_budget_in_each_context_and_those_that_change_something_are_declared() {
        let (registry, budgets) = (Registry::builtin(), SessionBudget::default());
        let changes = |tool: &str| registry.kind(tool).is_some_and(|kind| kind != ToolKind::Read);
        for context in ALL {
            let names = tools(context);
            let specs: Arc<[Arc<ToolSpec>]> = names.iter().filter_map(|tool| registry.spec(tool).cloned()).collect();
            let plan = session_plan::spec(&names);
            let of_plan = registry.bytes(&[Arc::new(plan.clone())]);
            assert!(of_plan / 4 <= 450, "{context:?}: {of_plan} bytes");
            let all = (&specs, registry.bytes(&specs));
            for plan in [None, Some(plan)] {
                let is_hard = plan.is_some();
                let Offer { specs: offered, .. } = tool_disclosure::within(all, plan, budgets.tools, "", changes);
                let tokens = registry.bytes(&offered) / 4;
                assert!(tokens <= budgets.tools as usize, "{context:?}: {tokens} tokens");
                let is_declared = |name: &String| offered.iter().any(|spec| spec.name == *name);
                let declared = names.iter().filter(|name| changes(name)).all(is_declared);
                assert!(declared || is_hard, "{context:?}: what the work is about is declared");
                let is_reading = !names.iter().any(|name| changes(name));
                assert!(!is_reading || names.iter().all(is_declared), "{context:?}: nothing is withheld");
            }
            let system = (ROLE.len() + instructions(context).len()) / 4;
            let fixed = system + (budgets.location + budgets.profile + budgets.tools) as usize;
            assert!(fixed + 1_000 + 400 <= 5_000, "{context:?}: {fixed} tokens");
        }
    }
}
