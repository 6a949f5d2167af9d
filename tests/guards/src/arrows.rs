//! The allowed dependencies between crates: the arrows of docs/architecture/folders.md, and crates that a tree must not contain.

use crate::repository::{layer, metadata, name, none, readme, tree};
use cargo_metadata::{Dependency, DependencyKind, Package};

/// The dependencies that each crate in `shared/` may name. A new crate gets a line here and an arrow in docs/architecture/folders.md.
const SHARED: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("access", &["domain"]),
    ("protocols", &["domain"]),
    ("ports", &["domain"]),
    ("actor", &["domain", "ports"]),
    ("slots", &["actor", "domain", "ports"]),
    ("workspace", &["access", "domain", "ports"]),
    ("schema", &["domain"]),
    ("frontmatter", &[]),
    ("recurrence", &["domain"]),
    ("organizer", &["domain", "frontmatter", "recurrence"]),
    ("ingest", &["ports"]),
    ("documents", &["actor", "domain", "frontmatter", "ports", "workspace"]),
    ("search", &["domain", "ports", "workspace"]),
    ("tools", &["domain", "organizer", "ports", "schema", "search", "workspace"]),
    ("calendars", &["domain", "organizer", "ports", "tools", "workspace"]),
    ("chat", &["actor", "domain", "frontmatter", "ports", "slots", "tools", "workspace"]),
    ("flow", &["domain", "frontmatter", "schema"]),
    ("engine", &["actor", "chat", "domain", "flow", "ports", "slots", "tools", "workspace"]),
    ("schedule", &["actor", "chat", "domain", "engine", "ports", "recurrence", "workspace"]),
    ("telemetry", &["actor", "domain", "engine", "flow", "ports", "workspace"]),
    ("evaluation", &["actor", "domain", "engine", "flow", "ports", "workspace"]),
    ("identity", &["domain", "ports"]),
    ("sinks", &["domain", "flow", "telemetry", "ports", "webhooks"]),
    ("webhooks", &["actor", "chat", "domain", "engine", "ports", "protocols", "workspace"]),
    ("sandbox", &["domain", "ports", "processes", "workspace"]),
    ("agents", &["domain", "ports", "processes"]),
    ("aws", &["domain", "ports", "sandbox"]),
    ("embedded", &["domain", "ports"]),
    ("client", &[]),
    ("processes", &[]),
    ("mcp", &["domain", "ports", "processes"]),
    ("web", &["domain", "flow", "ports", "schema"]),
    ("models", &["domain", "ports"]),
    ("testkit", &["actor", "chat", "domain", "embedded", "flow", "models", "ports", "tools", "workspace"]),
];

/// The crates of `shared/` that a crate in `functions/` may name, for those with a limit, and the reason.
const NARROW: &[(&str, &[&str], &str)] = &[(
    "cli",
    &["client", "domain", "protocols", "flow", "mcp", "ports", "processes"],
    "the command line knows a hub by its HTTP API alone, through `client`; `protocols` has the words of editors, `mcp` reaches their tool servers, `flow` is for folders that are checked without a hub, `ports` for the clock, and `processes` runs an agent's commands",
)];

/// The crates that put deployables together.
const PUT_TOGETHER: &[&str] = &["assembly", "cloud", "hub"];

/// The crates that no build of a crate may hold, by the start of the name, and the reason.
const BANNED: &[(&str, &[&str], &str)] = &[
    ("domain", &["tokio", "futures", "async-trait"], "the vocabulary has no I/O and no async"),
    (
        "access",
        &["tokio", "futures", "async-trait", "ports", "workspace"],
        "decisions are pure: policies and a request in, a decision out",
    ),
    (
        "flow",
        &["tokio", "futures", "async-trait", "actor", "chat", "ports", "slots", "tools", "workspace"],
        "the model of a flow has no I/O, no async and no actor: the engine runs it",
    ),
    (
        "cli",
        &["engine", "telemetry", "evaluation", "actor", "chat", "slots", "tools", "workspace"],
        "the command line checks folders of flows by their model alone; a hub does all else",
    ),
    (
        "stream",
        &["flow", "engine", "telemetry", "evaluation", "chat", "tools", "models", "workspace"],
        "event streams are replayed from logs, whoever wrote them",
    ),
    ("client", &["domain", "axum", "rusqlite"], "programs of others build on it, with nothing of a hub in it"),
    ("hub", &["aws-", "lambda_", "google-cloud", "azure_"], "the hub runs where there is no cloud"),
    ("hub", &["testkit"], "fakes stay out of released binaries"),
];

/// Other providers of TLS, by the start of the name. No build may hold one, not even one of tests.
const OTHER_TLS: [&str; 3] = ["aws-lc-", "openssl-sys", "native-tls"];

#[test]
fn crates_name_only_those_below_them() {
    let metadata = metadata();
    let members = metadata.workspace_packages();
    let mut faults = Vec::new();
    for package in &members {
        for dependency in &package.dependencies {
            let Some(target) = members.iter().find(|other| other.name == dependency.name) else { continue };
            if let Some(fault) = fault(package, dependency, target) {
                faults.push(format!("{} -> {}: {fault}", name(package), name(target)));
            }
        }
    }
    for (known, _) in SHARED {
        if !members.iter().any(|package| name(package) == *known) {
            faults.push(format!("{known}: no such crate; remove its line in tests/guards/src/arrows.rs"));
        }
    }
    none(faults, "These arrows are not in docs/architecture/folders.md");
}

fn fault(package: &Package, dependency: &Dependency, target: &Package) -> Option<&'static str> {
    let development = dependency.kind == DependencyKind::Development;
    let (from, to) = (name(package), name(target));
    match (layer(package).as_str(), layer(target).as_str()) {
        ("tests", _) => None,
        ("functions", "tests") if development => None,
        (_, "tests") => Some("nothing is built on a test"),
        ("shared", "functions") => Some("no crate in shared/ names one in functions/, not even in its tests"),
        (_, "shared") if development => None,
        ("shared", "shared") => match SHARED.iter().find(|(known, _)| from == *known) {
            None => {
                Some("give the crate a line in tests/guards/src/arrows.rs and an arrow in docs/architecture/folders.md")
            }
            Some((_, below)) if below.contains(&to) => None,
            Some(_) => Some("take a port instead, or move the common part down to a crate below both"),
        },
        ("functions", "shared") if to == "testkit" => Some("fakes are for tests: make it a dev-dependency"),
        ("functions", "shared") => {
            let (_, below, why) = NARROW.iter().find(|(known, _, _)| from == *known)?;
            (!below.contains(&to)).then_some(*why)
        }
        ("functions", "functions") if PUT_TOGETHER.contains(&from) || development => None,
        ("functions", "functions") => Some("deployables are put together elsewhere: share code through shared/"),
        _ => Some("crates live in shared/, functions/ or tests/"),
    }
}

#[test]
fn trees_hold_nothing_that_is_banned() {
    let metadata = metadata();
    let mut faults = Vec::new();
    for (root, starts, reason) in BANNED {
        let tree = tree(&metadata, root);
        if tree.is_empty() && readme().is_some() {
            faults.push(format!("{root}: no such crate; correct the name in tests/guards/src/arrows.rs"));
        }
        for held in tree {
            if starts.iter().any(|start| held.starts_with(start)) {
                faults.push(format!(
                    "{root} holds {held}: {reason}; `cargo tree -p buildscale-{root} -e normal,build -i {held}` says how"
                ));
            }
        }
    }
    none(faults, "These crates are where they must not be");
}

#[test]
fn rustls_with_ring_is_the_one_provider_of_tls() {
    let metadata = metadata();
    let held = metadata.packages.iter().filter(|held| OTHER_TLS.iter().any(|start| held.name.starts_with(start)));
    none(
        held.map(|held| format!("{0}: `cargo tree --workspace -i {0}` says how it came", held.name)).collect(),
        "With a second provider rustls chooses none by itself; some crate is on its defaults",
    );
}
