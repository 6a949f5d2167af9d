//! Every parser that input reaches, as a function of bytes: `scripts/fuzz` runs them, and the test beside this feeds them with a corpus and with
//! changed inputs. A parser may refuse any input; it may not panic, overflow the stack, or take for ever.

mod archives;
mod clients;
mod entities;
mod wire;

use access::{Action, Policies, Role, Source, Subject};
use actor::{Entry, Envelope};
use domain::{
    ChatCommand, ChatEvent, FilePath, Sha256, TaskCommand, TaskEvent, TaskId, Timestamp, UserId, WorkspaceId,
};
use flow::{
    load::{KnownNames, load},
    op::{Scope, expr, template},
};
use http::{HeaderMap, HeaderValue};
use identity::{ApiKeys, Stream, Tickets};
use ingest::DocumentKind;
use organizer::{
    Entity, FieldGroup, Item, Span,
    ics::{self, Change, ExportedEntity, Patch},
};
use recurrence::rule::{self, TakenRules};
use schema::Schema;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path},
    sync::LazyLock,
    time::Duration,
};
use tools::Registry;

/// A parser.
pub struct Target {
    /// Its name; its corpus is the folder of this name in `corpus/`.
    pub name: &'static str,
    /// Feeds it.
    pub feed: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "archives", feed: archives::archives },
    Target { name: "arguments", feed: arguments },
    Target { name: "calendars", feed: calendars },
    Target { name: "clients", feed: clients::requests },
    Target { name: "crons", feed: crons },
    Target { name: "cursors", feed: cursors },
    Target { name: "dav", feed: wire::dav },
    Target { name: "documents", feed: documents },
    Target { name: "entities", feed: entities::entities },
    Target { name: "event_streams", feed: wire::event_streams },
    Target { name: "expressions", feed: expressions },
    Target { name: "forms", feed: wire::forms },
    Target { name: "front_matter", feed: front_matter },
    Target { name: "git", feed: archives::git },
    Target { name: "ids", feed: ids },
    Target { name: "links", feed: links },
    Target { name: "logs", feed: logs },
    Target { name: "manifests", feed: manifests },
    Target { name: "paths", feed: paths },
    Target { name: "patterns", feed: patterns },
    Target { name: "plans", feed: plans },
    Target { name: "policies", feed: policies },
    Target { name: "providers", feed: providers },
    Target { name: "proxy_requests", feed: wire::proxy_requests },
    Target { name: "questions", feed: questions },
    Target { name: "robots", feed: robots },
    Target { name: "rules", feed: rules },
    Target { name: "schemas", feed: schemas },
    Target { name: "scripts", feed: scripts },
    Target { name: "shell_lines", feed: shell_lines },
    Target { name: "templates", feed: templates },
    Target { name: "tickets", feed: tickets },
    Target { name: "tokens", feed: wire::tokens },
    Target { name: "tool_servers", feed: tool_servers },
    Target { name: "triggers", feed: triggers },
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The first line, and the rest.
fn parts(bytes: &[u8]) -> (String, String) {
    let text = text(bytes);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    (first.to_owned(), rest.to_owned())
}

/// The first line is a tool, the rest its arguments: the effect of a call is known, or the call is refused.
fn arguments(bytes: &[u8]) {
    let (tool, args) = parts(bytes);
    let _ = Registry::builtin().effects(&tool, &args, &FilePath::root());
    if let (Ok(args), Ok(root)) = (serde_json::from_str(&args), FilePath::parse("/projects/app"))
        && let Ok(kept) = tools::confined(&tool, args, &root)
        && let Ok(effects) = Registry::builtin().effects(&tool, &kept.to_string(), &FilePath::root())
    {
        assert!(effects.touches.iter().all(|touch| touch.path.is_within(&root)), "{tool} {kept} leaves {root}");
    }
}

/// Cron expressions of clients of LangGraph, which become rules.
fn crons(bytes: &[u8]) {
    if let Ok(rule) = protocols::langgraph::rule(&text(bytes)) {
        assert!(rule.starts_with("FREQ="), "{rule}");
    }
}

/// iCalendar files: what is read goes out, and comes back the same; and a change of any event in them leaves a calendar.
fn calendars(bytes: &[u8]) {
    let text = text(bytes);
    let Ok(imported) = ics::read(&text) else { return };
    let usual = organizer::clock::Tz::UTC;
    let at = Timestamp::from_millis(1_800_000_000_000);
    let groups: BTreeSet<FieldGroup> = FieldGroup::ALL.into();
    for fields in imported.events.into_iter().take(4) {
        let entity = Entity { kind: organizer::EntityKind::Event, fields, faults: Vec::new() };
        let Ok(Some(item)) = Item::of(&entity, usual) else { continue };
        let start = item.start.instant(item.zone);
        let window = Span { start, end: start + Duration::from_secs(60 * 86_400) };
        let (found, _) = item.occurrences(window, 50);
        assert!(found.len() <= 50);
        let out = ics::write("", &[ExportedEntity { entity: &entity, item: &item, id: "id", updated_at: at }]);
        assert!(out.split("\r\n").all(|line| line.len() <= 75), "{out}");
        if let Ok(back) = ics::read(&out) {
            assert_eq!(back.events.len(), 1, "{out}");
        }
        let occurrence = organizer::field_group::occurrence(&entity, &item);
        let change = Change::Put { entity: &entity, item: &item, groups: &groups };
        if let Ok(changed) = ics::patch(&text, "id", &[Patch { occurrence: &occurrence, change }], usual, at) {
            assert!(changed.trim_start().to_uppercase().starts_with("BEGIN"), "{changed}");
        }
    }
}

fn cursors(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(bytes) {
        headers.insert("last-event-id", value);
    }
    let text = text(bytes);
    let _ = stream::Cursor::from_request(&headers, Some(&text));
    let _ = stream::Cursor::from_request(&HeaderMap::new(), Some(&text));
}

/// The first line is the name, the rest the document. Parsers of binary formats panic on what they do not expect, which is why a process of its own has
/// them; these are the others.
fn documents(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (name, content) = (text(bytes.get(..end).unwrap_or_default()), bytes.get(end + 1..).unwrap_or_default());
    match DocumentKind::of(&name, content) {
        DocumentKind::Csv
        | DocumentKind::Notebook
        | DocumentKind::Text
        | DocumentKind::Docx
        | DocumentKind::Pptx
        | DocumentKind::Unknown
        | DocumentKind::Encrypted => {
            let _ = ingest::convert(&name, content, ingest::Budget::default());
        }
        DocumentKind::Pdf
        | DocumentKind::Spreadsheet
        | DocumentKind::Epub
        | DocumentKind::Html
        | DocumentKind::Email => {}
        DocumentKind::Image | DocumentKind::Audio | DocumentKind::Video => {}
    }
}

/// The first line is JSON to compute with, the rest an expression.
fn expressions(bytes: &[u8]) {
    let (input, source) = parts(bytes);
    let input: Value = serde_json::from_str(&input).unwrap_or(Value::Null);
    let _ = expr::check(&source);
    let _ = expr::outputs_read(&source);
    let _ = expr::eval(&source, &Scope::of(&input));
    let _ = expr::eval_list(&source, &Scope::of(&input));
}

fn front_matter(bytes: &[u8]) {
    let _ = chat::front_matter(&text(bytes));
}

fn ids(bytes: &[u8]) {
    let text = text(bytes);
    if let Ok(id) = text.parse::<WorkspaceId>() {
        assert_eq!(id.to_string().parse::<WorkspaceId>().ok(), Some(id));
    }
    if let Ok(digest) = text.parse::<Sha256>() {
        assert_eq!(digest.to_string().parse::<Sha256>().ok(), Some(digest));
    }
    let _ = text.parse::<Timestamp>();
    let _ = ApiKeys::looks_like_one(&text);
    let _ = domain::name_for_providers(&text);
    let _ = domain::check_new_name(&text);
}

/// Links in Markdown, and the paths that they may mean.
fn links(bytes: &[u8]) {
    let folder = FilePath::parse("/projects/demo").unwrap_or_else(|_| FilePath::root());
    let paths = workspace::linked_paths(&folder, &text(bytes));
    // Of a wiki link: two names in each of three folders.
    assert!(paths.len() <= 600);
}

/// Data that one process writes and another one reads: messages of the queue, and entries of logs.
fn logs(bytes: &[u8]) {
    let text = text(bytes);
    let _ = Envelope::<ChatCommand>::parse(&text);
    let _ = Envelope::<TaskCommand>::parse(&text);
    let _ = serde_json::from_str::<Entry<ChatEvent>>(&text);
    let _ = serde_json::from_str::<Entry<TaskEvent>>(&text);
}

/// Files of a flow, each behind a line with `=== ` and its name; without such a line all is `workflow.yaml`.
fn manifests(bytes: &[u8]) {
    let text = text(bytes);
    let mut files = BTreeMap::new();
    for part in text.split("=== ") {
        match part.split_once('\n') {
            Some((name, rest)) if name.contains('.') => files.insert(name.to_owned(), rest.to_owned()),
            _ => files.insert("workflow.yaml".to_owned(), part.to_owned()),
        };
    }
    if let Ok(flow) = load("fuzzed", files, &KnownNames::default()) {
        let run_visits = flow::draw::RunVisits::new();
        let _ = (flow::draw::svg(&flow, &run_visits), flow::draw::dot(&flow, &run_visits));
        let _ = (flow::draw::mermaid(&flow, &run_visits), flow::draw::outline(&flow, &run_visits));
    }
}

/// Every text that is a path stays inside the folder that it is joined under, and parses to itself.
fn paths(bytes: &[u8]) {
    let Ok(path) = FilePath::parse(&text(bytes)) else { return };
    assert_eq!(FilePath::parse(path.as_str()).as_ref(), Ok(&path));
    assert!(path.as_str().starts_with('/') && path.as_str().len() <= 4096);
    assert!(path.names().all(|name| !name.is_empty() && name != "." && name != ".." && name.len() <= 255));
    assert!(!path.as_str().chars().any(char::is_control));
    let relative = Path::new(path.relative());
    assert!(relative.components().all(|part| matches!(part, Component::Normal(_))));
    assert!(Path::new("/volume").join(relative).starts_with("/volume"));
    if let Some(parent) = path.parent() {
        assert!(path.is_within(&parent));
        assert_eq!(parent.join(path.name()).as_ref(), Ok(&path));
    }
}

/// Globs and regular expressions of searches, and globs of what the tools of a persona reach.
fn patterns(bytes: &[u8]) {
    let text = text(bytes);
    if tools::check_glob("tools", &text).is_ok() {
        let _ = tools::is_at(&text, &FilePath::root());
    }
    for (tool, args) in [
        ("glob", json!({ "pattern": text })),
        ("grep", json!({ "pattern": text, "glob": text })),
        ("grep", json!({ "pattern": text, "ignore_case": true })),
    ] {
        let _ = tools::check_search(tool, args);
    }
}

fn plans(bytes: &[u8]) {
    let _ = tools::plan_digest(&text(bytes));
}

/// Policies of a workspace, and a decision by those that are taken.
fn policies(bytes: &[u8]) {
    let text = text(bytes);
    let Ok(policies) = Policies::with(&[Source { name: "/system/policies/fuzz.cedar", text: &text }]) else { return };
    let subject = Subject::Person { id: UserId::from_key("fuzz", "person"), role: Some(Role::Member) };
    let _ = policies.decide(&subject, Action::Write, &FilePath::root());
}

/// Answers of models in each format, whole and in two pieces.
fn providers(bytes: &[u8]) {
    for format in models::FORMATS {
        let whole = models::decode(format, &[bytes]);
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        assert_eq!(whole, models::decode(format, &[first, rest]), "{format}");
    }
}

fn questions(bytes: &[u8]) {
    if let Ok(questions) = tools::parse_questions(&text(bytes)) {
        let answers = questions.iter().map(|question| (question.name.clone(), question.schema.clone())).collect();
        let _ = tools::check_answers(&questions, &answers);
    }
}

/// The first line is a path, the rest the `robots.txt` of a site.
fn robots(bytes: &[u8]) {
    let (path, rules) = parts(bytes);
    let _ = web::Robots::parse(&rules).allow(&path);
}

/// Rules of calendars and of schedules: a rule that is taken has its first times soon.
fn rules(bytes: &[u8]) {
    let text = text(bytes);
    for taken in [TakenRules::ByCalendars, TakenRules::BySchedules] {
        let Ok(rule) = rule::check(&text, taken) else { continue };
        assert_eq!(rule::check(&rule, taken).as_ref(), Ok(&rule));
        let times = first_times(&rule);
        assert!(times.windows(2).all(|two| two[0] <= two[1]), "{rule}: {times:?}");
    }
    if let Some(moment) = recurrence::Moment::parse(&text) {
        assert!(recurrence::Moment::parse(&moment.to_string()).is_some(), "{moment}");
    }
}

/// From a time that the clock leaves out in spring, and a day that few months have.
fn first_times(rule: &str) -> Vec<Timestamp> {
    let Some(recurrence::Moment::Local(first)) = recurrence::Moment::parse("2026-01-31T02:30:00") else {
        return Vec::new();
    };
    let times = rule::Times::new(rule, organizer::clock::Tz::Europe__Berlin, first, &[]);
    times.map(|times| times.iter().take(20).collect()).unwrap_or_default()
}

/// The first line is a value, the rest a schema.
fn schemas(bytes: &[u8]) {
    let (value, source) = parts(bytes);
    let (Ok(value), Ok(source)) = (serde_json::from_str::<Value>(&value), serde_json::from_str(&source)) else {
        return;
    };
    for schema in [Schema::compile(&source), Schema::compile_any_draft(&source)].into_iter().flatten() {
        let _ = schema.errors(&value, 3);
    }
}

/// Scripts of models, which evaluations of flows bring.
fn scripts(bytes: &[u8]) {
    let _ = models::Scripted::from_yaml(&text(bytes));
}

/// Lines for a shell, in which rules that deny look for commands.
fn shell_lines(bytes: &[u8]) {
    assert!(chat::commands_in(&text(bytes)).iter().all(|words| !words.is_empty()));
}

/// The first line is JSON to render with, the rest a template.
fn templates(bytes: &[u8]) {
    let (input, source) = parts(bytes);
    let input: Value = serde_json::from_str(&input).unwrap_or(Value::Null);
    let template = Value::String(source);
    let _ = template::check(&template);
    let _ = template::render(&template, &Scope::of(&input));
}

fn tickets(bytes: &[u8]) {
    static TICKETS: LazyLock<Tickets> = LazyLock::new(Tickets::of_this_process);
    let (workspace, task) = (WorkspaceId::from_key("fuzz", "workspace"), TaskId::from_key("fuzz", "task"));
    let opened = TICKETS.verify(&text(bytes), workspace, Stream::Task(task), Timestamp::from_millis(0));
    assert!(opened.is_err(), "no such ticket was given");
}

/// Servers of tools as a file declares them: those of the Model Context Protocol, and HTTP tools in YAML and JSON.
fn tool_servers(bytes: &[u8]) {
    let text = text(bytes);
    let _ = (mcp::check(&text), web::check("tool.yaml", &text), web::check("tool.json", &text));
}

/// Triggers of a flow, and the front matter that they look at.
fn triggers(bytes: &[u8]) {
    let text = text(bytes);
    let front_matter = flow::trigger::front_matter(&text);
    let path = FilePath::parse("/projects/demo/a.md").unwrap_or_else(|_| FilePath::root());
    for trigger in flow::load::triggers_of_workflow("workflow.yaml", &text) {
        let _ = (trigger.concerns(&path, true), trigger.matches(&path, false, &front_matter));
    }
}
