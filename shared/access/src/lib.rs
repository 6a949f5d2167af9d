//! Decisions on paths of a workspace (spec 001 §5, "Permissions" and "User isolation"): permit, deny, or ask a person, by policies in Cedar.
//!
//! [`Policies::decide`] is the only function that decides. It is pure: a set of policies, a [`Subject`], an [`Action`] and a path go in, and a
//! [`Decision`] with the id of the policy comes out. The caller enforces it: `shared/workspace` in front of every operation on files, and the gate
//! of `shared/chat` in front of calls of tools.
//!
//! A set is the built-in one (`builtin.cedar`), or the built-in one and the workspace's own texts from `/system/policies/*.cedar`. Two annotations of
//! Cedar mean something here: `@id` names a policy, and `@decision("ask")` turns its effect into a question to a person. `@why` is shown to people.
//!
//! This crate reads no files, knows no tools, and holds no state but caches per set: of decisions, of the entities of subjects, and of slices of the set.

mod entities;
mod place;
mod policies;
mod slice;
mod subject;
mod text;

pub use place::{BRIEF_SETTINGS, CALENDAR_ENDING, CALENDARS, PERSONAS, PROFILE, SKILLS, home};
pub use policies::{Decision, Effect, Policies};
pub use subject::{Action, Role, Subject};
pub use text::{MAX_TEXT, Source, SyntaxError};

/// The folder of a workspace's own policies: the files `*.cedar` in it, not in folders below it.
pub const FOLDER: &str = "/system/policies";

/// Whether a path is one of a workspace's own policies.
pub fn is_policy(path: &domain::FilePath) -> bool {
    path.parent().is_some_and(|parent| parent.as_str() == FOLDER) && path.name().ends_with(".cedar")
}

#[cfg(test)]
mod tests;
