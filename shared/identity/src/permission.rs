//! Roles, actions, and the one matrix of their rights. Every check of a right asks it here.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The role of a person in a workspace. Each role has all rights of those below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks.
    Viewer,
    /// Works through agents and flows.
    Member,
    /// Changes files, and decides on requests of agents for permission.
    Editor,
    /// Changes the members.
    Admin,
    /// Has the workspace.
    Owner,
}

/// The actions in a workspace; also the scopes of API keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// See everything in it: files and versions, chats, tasks, their events, members, usage.
    Read,
    /// Make chats and talk in them: messages, answers, stop, set up, delete.
    Converse,
    /// Start and steer tasks and evaluations of flows; warm the sandbox.
    Run,
    /// Change files by hand: contents, moves, trash, tools; run commands; end the sandbox.
    Write,
    /// Decide on requests of agents for permission, and take granted rules back; approve plans, and modes in which agents may do more.
    Approve,
    /// Members, webhooks, and the workspace's name; remove files for good.
    Administer,
    /// Delete the workspace; make owners.
    Own,
}

/// The matrix: a row an action, a column a role, from owner to viewer.
const MATRIX: [(Action, [bool; 5], &str); 7] = {
    const X: bool = true;
    const O: bool = false;
    [
        //                 owner admin editor member viewer
        (Action::Read, [X, X, X, X, X], "see files, chats, tasks, their events, members and usage"),
        (Action::Converse, [X, X, X, X, O], "make chats and talk in them: messages, answers, stop, set up, delete"),
        (Action::Run, [X, X, X, X, O], "start and steer tasks and evaluations of flows; warm the sandbox"),
        (
            Action::Write,
            [X, X, X, O, O],
            "change files by hand: contents, moves, trash, tools; run commands; end the sandbox",
        ),
        (
            Action::Approve,
            [X, X, X, O, O],
            "decide on requests of agents for permission, and take granted rules back; approve plans, and modes in which \
             they may do more",
        ),
        (Action::Administer, [X, X, O, O, O], "members; webhooks; the workspace's name; remove files for good"),
        (Action::Own, [X, O, O, O, O], "delete the workspace; make owners"),
    ]
};

impl Role {
    /// From the one that may do most to the one that may do least: the columns of the matrix.
    pub const ALL: [Self; 5] = [Self::Owner, Self::Admin, Self::Editor, Self::Member, Self::Viewer];

    /// Whether this role may do this. Actions that the matrix lacks are forbidden.
    pub fn may(self, action: Action) -> bool {
        let column = Self::ALL.iter().position(|role| *role == self);
        let row = MATRIX.iter().find(|(of, ..)| *of == action);
        row.zip(column).and_then(|((_, may, _), column)| may.get(column).copied()).unwrap_or(false)
    }

    /// Its name with its article, for people: `a viewer`, `an editor`.
    pub fn with_article(self) -> String {
        match self {
            Self::Viewer | Self::Member => format!("a {self}"),
            Self::Editor | Self::Admin | Self::Owner => format!("an {self}"),
        }
    }
}

impl Action {
    /// All of them: the rows of the matrix.
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Converse, Self::Run, Self::Write, Self::Approve, Self::Administer, Self::Own];

    /// The least role that may do this.
    pub fn least(self) -> Role {
        Role::ALL.into_iter().rev().find(|role| role.may(self)).unwrap_or(Role::Owner)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The matrix in Markdown, for `docs/permissions.md`.
pub fn matrix() -> String {
    let roles = Role::ALL.map(|role| role.to_string()).join(" | ");
    let mut text = format!("| may | {roles} | that is |\n|---|---|---|---|---|---|---|\n");
    for (action, may, meaning) in MATRIX {
        let marks = may.map(|may| if may { "yes" } else { "" }).join(" | ");
        text.push_str(&format!("| `{action}` | {marks} | {meaning} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_row_and_a_higher_role_may_never_less() {
        assert_eq!(MATRIX.map(|(action, ..)| action), Action::ALL);
        for action in Action::ALL {
            for pair in Role::ALL.windows(2) {
                assert!(pair[0].may(action) || !pair[1].may(action), "{} may not {action}, {} may", pair[0], pair[1]);
                assert!(pair[0] > pair[1]);
            }
            assert!(Role::Owner.may(action));
            assert!(action.least().may(action));
        }
        assert_eq!(
            Role::ALL.map(|role| Action::ALL.iter().filter(|action| role.may(**action)).count()),
            [7, 6, 5, 3, 1]
        );
    }

    #[test]
    fn names_are_those_of_the_wire() {
        assert_eq!(Role::ALL.map(|role| role.to_string()).join(" "), "owner admin editor member viewer");
        assert_eq!(Action::ALL.map(|a| a.to_string()).join(" "), "read converse run write approve administer own");
    }
}
