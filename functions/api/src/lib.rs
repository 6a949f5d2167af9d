//! The HTTP commands and reads of the agentic engine, `/api/v1`: requests in, domain calls, answers out.
//!
//! ```text
//!   request ─ observe (id, span, metrics, envelope) ─ auth (who, and their role here) ─ room ─ whole body ─ idempotency ─ handler ─ chats, tasks, …
//!                                                                                      Access<the action> ┘
//! ```
//!
//! A handler parses, calls and encodes; it decides nothing about chats, tasks or files. One file per resource. Every route is
//! registered together with its description, so that `/openapi.json` cannot forget one, and every refusal, of
//! any layer, becomes the one error envelope in [`observe`].
//!
//! Deliberately absent: event streams. [`Streams`] holds them, in another function in the cloud and in this process in the hub; this crate only
//! checks the permission to watch, and finds the start.

mod a2a;
mod absent_routes;
mod access;
mod agents;
mod agui;
mod ai_sdk;
mod auth;
mod changes;
mod chats;
mod compactions;
mod contents;
mod converse;
mod cors;
mod crash_marks;
mod dead_letters;
mod described_routes;
mod description;
mod error;
mod evaluations;
mod events;
mod explain;
mod export_import;
mod extract;
mod files;
mod flows;
mod followed_logs;
mod forks;
mod full_disk;
mod handed_out_calls;
mod health;
mod home;
mod hub;
mod idempotency;
mod ids;
mod jwks;
mod keys;
mod langgraph;
mod login;
mod long_answers;
mod mcp;
mod mcp_servers;
mod members;
mod membership_watch;
mod metrics;
mod models;
mod observe;
mod openai;
mod openapi;
mod pauses;
mod personas;
mod planner;
mod presence;
mod prompts;
mod rate_limits;
mod refusals;
mod relations;
mod rewinds;
mod run_inspection;
mod sandbox;
mod schedules;
pub mod schema;
mod search;
mod spoken_words;
mod standing_rules;
mod task_commands;
mod tasks;
mod tickets;
mod tools;
mod transfer_pace;
mod transfer_slots;
mod transfers;
mod trash;
mod turns;
mod usage;
mod versions;
mod waiting;
mod webhooks;
mod whole_bodies;
mod workspaces;
mod writes;

pub use access::as_policies_know;
pub use auth::Auth;
pub use cors::EXPOSED;
pub use error::{ApiError, status_of};
pub use events::Streams;
pub use followed_logs::Followed;
pub use full_disk::HasRoom;
pub use health::{Check, Probe};
pub use home::without_console;
pub use jwks::PublishedKeys;
pub use login::Login;
pub use openapi::document;

use ports::{Agents, Bus, Clock, DeadLetterQueue, Folders, ModelInfo, ServerAccounts, Table};
use std::sync::Arc;

/// The longest JSON body, in bytes. Longer contents go to `PUT …/files/:fid/content` as they are.
pub const MAX_JSON: usize = 1024 * 1024;

/// Adds lines in Prometheus' text format.
pub type Counters = Box<dyn Fn(&mut String) + Send + Sync>;

/// A part that does not work as it should while the server can work all the same, and how. Numbers alone: anybody may ask.
pub type Note = Box<dyn Fn() -> Option<(&'static str, String)> + Send + Sync>;

/// The parts that event streams and the routes for operators work with. None of them takes a command: a server that only holds streams
/// has neither a queue nor models nor tools.
pub struct StreamContext {
    /// The states of chats.
    pub chats: chat::ChatReader,
    /// The states of tasks.
    pub tasks: engine::TaskReader,
    /// The files.
    pub workspaces: workspace::Workspaces,
    /// The source of event streams.
    pub streams: Arc<dyn Streams>,
    /// The table, with the logs, and the answers under their idempotency keys.
    pub table: Arc<dyn Table>,
    /// The bus, which tells of ends of memberships.
    pub bus: Arc<dyn Bus>,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
    /// The accepted credentials.
    pub auth: Auth,
    /// Origins of web pages that may call; usually none (`http://localhost:5173`).
    pub origins: Vec<String>,
    /// The parts that have to answer before this is ready: table, queue, bus.
    pub ready: Vec<Probe>,
    /// Whether there is room for requests that add.
    pub has_room: HasRoom,
    /// The dead letters of the queue, where this server may read and send them again.
    pub dead_letters: Option<Arc<dyn DeadLetterQueue>>,
    /// Notes of others, for `degraded` of `/ready`.
    pub notes: Vec<Note>,
    /// Counters of others, for `/metrics`.
    pub metrics: Vec<Counters>,
}

impl StreamContext {
    /// The members of all workspaces, with their roles.
    pub(crate) fn members(&self) -> identity::Members {
        identity::Members::new(self.table.clone(), self.clock.clone())
    }

    /// The keys of programs.
    pub(crate) fn api_keys(&self) -> identity::ApiKeys {
        identity::ApiKeys::new(self.table.clone(), self.clock.clone())
    }
}

/// The parts that the handlers of all routes work with; put together once, at start.
pub struct Context {
    /// Those of event streams.
    pub base: Arc<StreamContext>,
    /// The way in to chats.
    pub chats: chat::Chats,
    /// The way in to tasks and their flows.
    pub tasks: engine::Tasks,
    /// The way in to evaluations of flows.
    pub evaluations: evaluation::Evaluations,
    /// The way in to schedules.
    pub schedules: schedule::Schedules,
    /// The way in to webhooks.
    pub webhooks: ::webhooks::Webhooks,
    /// The tools, for people.
    pub tools: Arc<::tools::Registry>,
    /// The models of the installation. No model is called from here.
    pub models: Vec<ModelInfo>,
    /// Whether one of them has a name, also one that the list does not have: most providers take more names than are listed.
    pub knows_model: chat::KnowsModel,
    /// The coding agents of the installation, whose threads are chats.
    pub agents: Arc<dyn Agents>,
    /// The folders of the machine that threads may work in; without any, they work in the files of their workspace.
    pub folders: Option<Arc<dyn Folders>>,
    /// The servers of tools and the accounts at them, where any are reached.
    pub accounts: Option<Arc<dyn ServerAccounts>>,
}

/// The whole of door 1, to be served as it is.
pub fn router(context: Arc<Context>) -> axum::Router {
    let base = context.base.clone();
    // Hosts of another protocol come in by one route, and go on by all others.
    let behind = mcp::RouteDispatch(served(openapi::commands().with_state(context.clone()), base.clone()));
    let commands = openapi::commands().with_state(context).extended(behind);
    served(openapi::streams().with_state(base.clone()).merge(commands), base)
}

/// The event streams alone, and the routes for operators: for a server that does nothing but hold streams. The same code checks the permission to
/// watch, and nothing is ever written.
pub fn streams(context: Arc<StreamContext>) -> axum::Router {
    served(openapi::streams().with_state(context.clone()), context)
}

fn served(routes: described_routes::Routes, context: Arc<StreamContext>) -> axum::Router {
    use axum::middleware::{from_fn, from_fn_with_state};

    let requests = Arc::new(metrics::Requests::default());
    let (routes, descriptions) = routes.into_parts();
    let login = Arc::new(context.auth.login().clone());
    let serving = observe::Observer { requests: requests.clone(), clock: context.clock.clone(), login };
    let cors = cors::layer(&context.origins);
    let router = routes
        .fallback(error::no_route)
        .method_not_allowed_fallback(error::no_method)
        .layer(from_fn_with_state(context.clone(), idempotency::once))
        .layer(from_fn(whole_bodies::demand))
        .layer(from_fn_with_state(context.clone(), full_disk::demand))
        .layer(from_fn_with_state(context, auth::authorise))
        .layer(axum::Extension(requests))
        .layer(axum::Extension(description::Text::of(descriptions)))
        .layer(from_fn_with_state(serving, observe::observe));
    match cors {
        Some(cors) => router.layer(cors),
        None => router,
    }
}
