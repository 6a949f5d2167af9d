//! The part of a set that a request is in the scope of.
//!
//! The head of a policy, its scope, says for which subjects, actions and paths it is. Cedar looks at the conditions only where the scope holds, and a scope
//! cannot fail. So a policy out of scope neither decides nor fails, and Cedar is given the others alone: the answer is that of the whole set, with
//! the same policies and errors.

use crate::{
    Action, Subject,
    entities::{TYPES, action_uid, group_of, uid_of},
    place::{HOMES_AREA, SETUPS_AREA, home_of, setup_of},
};
use cedar_policy::{ActionConstraint, EntityUid, Policy, PolicySet, PrincipalConstraint, ResourceConstraint};
use domain::FilePath;
use parking_lot::RwLock;
use std::{collections::HashMap, sync::Arc};

/// How many policies the slices that are kept per set have at most, one in two slices counted twice.
const KEPT: usize = 20_000;

/// Some policies of a set, as Cedar evaluates them.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    /// All but the policies that forbid with a question.
    pub plain: PolicySet,
    /// The policies that forbid with a question, as policies that permit: those that are satisfied ask.
    pub asking: PolicySet,
}

/// The scope of a policy.
#[derive(Debug)]
struct Scope {
    actions: Vec<Action>,
    principal: PrincipalConstraint,
    place: ScopePaths,
}

/// The paths of a scope.
#[derive(Debug)]
enum ScopePaths {
    Anywhere,
    Nowhere,
    At(FilePath),
    Within(FilePath),
    Homes,
    Setups,
}

/// A policy with its scope.
#[derive(Debug)]
struct Scoped {
    scope: Scope,
    policy: Policy,
    /// Whether it is one of [`Slice::asking`].
    asks: bool,
}

/// The policies of a set, by their scopes.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    policies: Vec<Scoped>,
    /// By the numbers of the policies in them.
    kept: RwLock<HashMap<Box<[usize]>, Arc<Slice>>>,
}

impl Scopes {
    /// Adds a policy; `asks` says that it is one of [`Slice::asking`].
    pub fn add(&mut self, policy: Policy, asks: bool) {
        self.policies.push(Scoped { scope: Scope::of(&policy), policy, asks });
    }

    /// The policies in whose scope the request is.
    pub fn slice(&self, subject: &Subject, action: Action, path: &FilePath) -> Result<Arc<Slice>, String> {
        let principal = uid_of(subject);
        let in_scope = |(number, scoped): (usize, &Scoped)| {
            scoped.scope.holds(subject, &principal, action, path).then_some(number)
        };
        let numbers: Box<[usize]> = self.policies.iter().enumerate().filter_map(in_scope).collect();
        if let Some(slice) = self.kept.read().get(&numbers) {
            return Ok(slice.clone());
        }
        let slice = Arc::new(made(numbers.iter().filter_map(|number| self.policies.get(*number)))?);
        let mut kept = self.kept.write();
        // A slice without policies takes room, too.
        let count = |numbers: &[usize]| numbers.len() + 1;
        if kept.keys().map(|one| count(one)).sum::<usize>() + count(&numbers) > KEPT {
            kept.clear();
        }
        kept.insert(numbers, slice.clone());
        Ok(slice)
    }

    /// All policies.
    #[cfg(test)]
    pub fn whole(&self) -> Result<Slice, String> {
        made(self.policies.iter())
    }
}

fn made<'a>(policies: impl Iterator<Item = &'a Scoped>) -> Result<Slice, String> {
    let mut slice = Slice::default();
    for Scoped { policy, asks, .. } in policies {
        let set = if *asks { &mut slice.asking } else { &mut slice.plain };
        set.add(policy.clone()).map_err(|error| error.to_string())?;
    }
    Ok(slice)
}

/// The actions in the scope of a policy.
pub(crate) fn actions_of(policy: &Policy) -> Vec<Action> {
    let constraint = policy.action_constraint();
    let holds = |action: &Action| {
        let own = action_uid(*action);
        match &constraint {
            ActionConstraint::Any => true,
            ActionConstraint::Eq(uid) => *uid == own,
            ActionConstraint::In(uids) => {
                let group = group_of(*action);
                uids.iter().any(|uid| *uid == own || group.as_ref() == Some(uid))
            }
        }
    };
    Action::ALL.into_iter().filter(holds).collect()
}

impl Scope {
    fn of(policy: &Policy) -> Self {
        let place = match policy.resource_constraint() {
            ResourceConstraint::Any => ScopePaths::Anywhere,
            ResourceConstraint::Eq(uid) => ScopePaths::at(&uid),
            ResourceConstraint::In(uid) => ScopePaths::within(&uid),
            ResourceConstraint::Is(kind) if kind == TYPES.path => ScopePaths::Anywhere,
            ResourceConstraint::IsIn(kind, uid) if kind == TYPES.path => ScopePaths::within(&uid),
            ResourceConstraint::Is(_) | ResourceConstraint::IsIn(..) => ScopePaths::Nowhere,
        };
        Self { actions: actions_of(policy), principal: policy.principal_constraint(), place }
    }

    fn holds(&self, subject: &Subject, principal: &EntityUid, action: Action, path: &FilePath) -> bool {
        // People alone are in something: in roles. Which ones is left to Cedar.
        let is_in = |uid: &EntityUid| {
            uid == principal || (matches!(subject, Subject::Person { .. }) && *uid.type_name() == TYPES.role)
        };
        let is_of = || match &self.principal {
            PrincipalConstraint::Any => true,
            PrincipalConstraint::Eq(uid) => uid == principal,
            PrincipalConstraint::In(uid) => is_in(uid),
            PrincipalConstraint::Is(kind) => kind == principal.type_name(),
            PrincipalConstraint::IsIn(kind, uid) => kind == principal.type_name() && is_in(uid),
        };
        self.actions.contains(&action) && is_of() && self.place.has(path)
    }
}

impl ScopePaths {
    fn at(uid: &EntityUid) -> Self {
        match FilePath::parse(uid.id().unescaped()) {
            Ok(path) if *uid.type_name() == TYPES.path => Self::At(path),
            Ok(_) | Err(_) => Self::Nowhere,
        }
    }

    fn within(uid: &EntityUid) -> Self {
        if *uid.type_name() == TYPES.area {
            return match uid.id().unescaped() {
                HOMES_AREA => Self::Homes,
                SETUPS_AREA => Self::Setups,
                _ => Self::Nowhere,
            };
        }
        match FilePath::parse(uid.id().unescaped()) {
            Ok(path) if *uid.type_name() == TYPES.path => Self::Within(path),
            Ok(_) | Err(_) => Self::Nowhere,
        }
    }

    fn has(&self, path: &FilePath) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Nowhere => false,
            Self::At(at) => path == at,
            Self::Within(folder) => path.is_within(folder),
            Self::Homes => home_of(path.as_str()).is_some(),
            Self::Setups => setup_of(path.as_str()).is_some(),
        }
    }
}
