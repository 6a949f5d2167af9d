//! The two sides of a request that are no path: the subject and the action.

use domain::{Principal, UserId};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The actions on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// See that it is there, with its metadata. A path that may not be listed does not exist for the subject.
    List,
    /// Read its content and its versions.
    Read,
    /// Make it, or give it a new content.
    Write,
    /// Put it into the trash.
    Delete,
    /// Take it away to another path; the other path is written.
    Move,
    /// Bring it back from the trash.
    Restore,
    /// Remove it for good.
    Purge,
    /// Run a command in this folder.
    Execute,
    /// Give it to somebody outside of the workspace.
    Share,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::List,
        Self::Read,
        Self::Write,
        Self::Delete,
        Self::Move,
        Self::Restore,
        Self::Purge,
        Self::Execute,
        Self::Share,
    ];

    /// As policies and the wire name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Restore => "restore",
            Self::Purge => "purge",
            Self::Execute => "execute",
            Self::Share => "share",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Action {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|action| action.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no action: they are {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

/// The role of a person in the workspace, as policies know it: a `Role` of Cedar, each in the one before it, so that an owner is an admin, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Looks.
    Viewer,
    /// Works through agents and flows.
    Member,
    /// Changes files.
    Editor,
    /// Changes the members.
    Admin,
    /// Has the workspace.
    Owner,
}

impl Role {
    /// From the one that may do least to the one that may do most.
    pub const ALL: [Self; 5] = [Self::Viewer, Self::Member, Self::Editor, Self::Admin, Self::Owner];

    /// As policies name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Editor => "editor",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

impl FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is no role: they are {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

/// The party that acts, as policies see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A person. Without a role they may look at the shared folders, and have their home.
    Person {
        /// The person.
        id: UserId,
        /// Their role in the workspace.
        role: Option<Role>,
    },
    /// An agent that works for a person.
    Agent {
        /// The persona.
        persona: String,
        /// The person.
        person: UserId,
        /// Whether it may use the home of the person.
        has_home: bool,
    },
    /// A deterministic node of a flow that works for a person.
    Task {
        /// The person.
        person: UserId,
        /// Whether it may use the home of the person.
        has_home: bool,
    },
    /// A part of BuildScale that serves several people at once, and so sees no home: `sandbox` fills the mirrors of sandboxes.
    Service {
        /// Its name.
        name: &'static str,
    },
}

impl Subject {
    /// Of a principal, with the role of a person if it is known. The one person of a machine without accounts is the owner of its workspaces.
    pub fn of(principal: &Principal, role: Option<Role>) -> Self {
        match principal {
            Principal::User { id } if *principal == Principal::local() => {
                Self::Person { id: *id, role: Some(Role::Owner) }
            }
            Principal::User { id } => Self::Person { id: *id, role },
            Principal::Agent { role, user, .. } => Self::Agent { persona: role.clone(), person: *user, has_home: true },
            Principal::Task { user, .. } => Self::Task { person: *user, has_home: true },
            Principal::System => Self::Service { name: "buildscale" },
        }
    }

    /// The same without the home of the person that it works for: it does what somebody else wrote, and the person did not start it.
    #[must_use]
    pub fn without_home(self) -> Self {
        match self {
            Self::Agent { persona, person, .. } => Self::Agent { persona, person, has_home: false },
            Self::Task { person, .. } => Self::Task { person, has_home: false },
            Self::Person { .. } | Self::Service { .. } => self,
        }
    }

    /// Whether the home of its person exists for it.
    pub fn has_home(&self) -> bool {
        match self {
            Self::Person { .. } => true,
            Self::Agent { has_home, .. } | Self::Task { has_home, .. } => *has_home,
            Self::Service { .. } => false,
        }
    }

    /// The person behind it; none for a service.
    pub fn person(&self) -> Option<UserId> {
        match self {
            Self::Person { id, .. } => Some(*id),
            Self::Agent { person, .. } | Self::Task { person, .. } => Some(*person),
            Self::Service { .. } => None,
        }
    }

    /// Whether it is the one person of a machine without accounts, and nobody who works for them.
    pub(crate) fn is_machine(&self) -> bool {
        matches!(self, Self::Person { id, .. } if *id == Principal::local().user())
    }
}

/// `person:<id>`, `agent:<persona>`, `task`, `service:<name>`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person { id, .. } => write!(f, "user:{id}"),
            Self::Agent { persona, person, .. } => write!(f, "agent:{persona} for user:{person}"),
            Self::Task { person, .. } => write!(f, "task for user:{person}"),
            Self::Service { name } => write!(f, "service:{name}"),
        }
    }
}
