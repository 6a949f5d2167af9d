//! The two kinds of agents of the hub.

/// An agent that a thread can have.
pub(super) enum AgentKind {
    /// A persona of the workspace, by its name.
    Persona(String),
    /// A coding agent that is a program of its own.
    Coding,
}
