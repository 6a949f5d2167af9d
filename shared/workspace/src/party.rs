//! The party for whom a workspace is opened, and the policies that it is opened under (`access_checks.rs` decides with both).

use access::{Policies, Role, Subject};
use domain::Principal;
use std::sync::Arc;

/// The party for whom a workspace is opened. There is no default: each caller chooses.
#[derive(Clone, Debug)]
pub struct Access(pub(crate) Party);

#[derive(Clone, Debug)]
pub(crate) enum Party {
    /// BuildScale itself, with the reason.
    Platform(&'static str),
    /// Somebody, as policies see them.
    Subject(Subject, Settled),
}

/// The questions that have been answered with a yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    None,
    /// Those of the built-in policies, by the gate of a chat.
    BuiltIn,
    /// All.
    All,
}

impl Access {
    /// BuildScale's own work, which sees everything: repair, projections, copies for backups. `tests/guards` lists every caller with its reason.
    pub fn platform(reason: &'static str) -> Self {
        Self(Party::Platform(reason))
    }

    /// A principal; of a person the role, if the caller knows it. Without one they may look at what is shared.
    pub fn of(principal: &Principal, role: Option<Role>) -> Self {
        Self(Party::Subject(Subject::of(principal, role), Settled::None))
    }

    /// Why nothing is decided, where nothing is.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        match self.0 {
            Party::Platform(reason) => Some(reason),
            Party::Subject(..) => None,
        }
    }

    /// As policies see them.
    pub fn subject(subject: Subject) -> Self {
        Self(Party::Subject(subject, Settled::None))
    }

    /// The same without the home of the person for whom it is.
    #[must_use]
    pub fn without_home(self) -> Self {
        match self.0 {
            Party::Platform(_) => self,
            Party::Subject(subject, settled) => Self(Party::Subject(subject.without_home(), settled)),
        }
    }

    /// The same after the gate of a chat, which has asked people what the built-in policies ask; `all`: a person has said yes to this very call.
    #[must_use]
    pub fn gated(self, all: bool) -> Self {
        match self.0 {
            Party::Platform(_) => self,
            Party::Subject(subject, _) => {
                Self(Party::Subject(subject, if all { Settled::All } else { Settled::BuiltIn }))
            }
        }
    }
}

/// The party of a handle and its policies: they decide on what the handle sees and does.
#[derive(Clone)]
pub(crate) struct HandleAccess {
    pub access: Access,
    pub policies: Arc<Policies>,
}

impl HandleAccess {
    pub fn new(access: Access, policies: Arc<Policies>) -> Self {
        Self { access, policies }
    }

    /// Of this crate itself.
    pub fn own(reason: &'static str) -> Self {
        Self::new(Access::platform(reason), Policies::builtin())
    }
}
