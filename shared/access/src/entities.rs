//! The sides of a request as entities of Cedar: the subject and its person, the actions in their groups, the path in the folders above it.
//!
//! The entities of a subject are made once per set and action, so a decision makes those of its path alone.

use crate::{
    Action, Role, Subject, place,
    place::{home_of, setup_of},
};
use cedar_policy::{Entities, Entity, EntityId, EntityTypeName, EntityUid, RestrictedExpression};
use domain::{FilePath, UserId};
use std::{
    collections::{HashMap, HashSet},
    str::FromStr,
    sync::{Arc, LazyLock},
};

/// The home of a subject that has none: the path of nobody's home.
const NO_HOME: &str = "/users/nobody";

/// The types of the schema.
pub(crate) struct Types {
    pub person: EntityTypeName,
    pub agent: EntityTypeName,
    pub task: EntityTypeName,
    pub service: EntityTypeName,
    pub path: EntityTypeName,
    pub area: EntityTypeName,
    pub role: EntityTypeName,
    pub action: EntityTypeName,
}

pub(crate) static TYPES: LazyLock<Types> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "names of ours")]
    let named = |name: &str| EntityTypeName::from_str(name).expect("a type");
    Types {
        person: named("Person"),
        agent: named("Agent"),
        task: named("Task"),
        service: named("Service"),
        path: named("Path"),
        area: named("Area"),
        role: named("Role"),
        action: named("Action"),
    }
});

pub(crate) fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

pub(crate) fn path_uid(path: &str) -> EntityUid {
    uid(&TYPES.path, path)
}

pub(crate) fn action_uid(action: Action) -> EntityUid {
    uid(&TYPES.action, action.as_str())
}

pub(crate) fn uid_of(subject: &Subject) -> EntityUid {
    match subject {
        Subject::Person { id, .. } => person_uid(*id),
        Subject::Agent { persona, .. } => uid(&TYPES.agent, persona),
        Subject::Task { .. } => uid(&TYPES.task, "task"),
        Subject::Service { name } => uid(&TYPES.service, name),
    }
}

fn person_uid(id: UserId) -> EntityUid {
    uid(&TYPES.person, &id.to_string())
}

/// The group of an action, as the schema has it.
pub(crate) fn group_of(action: Action) -> Option<EntityUid> {
    let group = match action {
        Action::List | Action::Read => "look",
        Action::Write | Action::Delete | Action::Move | Action::Restore => "change",
        Action::Purge | Action::Execute | Action::Share => return None,
    };
    Some(uid(&TYPES.action, group))
}

/// An action in its group.
pub(crate) fn action_entity(action: Action) -> Entity {
    Entity::new_no_attrs(action_uid(action), group_of(action).into_iter().collect())
}

/// The entities of all requests of a subject to do something: itself, its person, and the actions that the policies can look at. Each evaluation copies
/// them, so others are left out.
pub(crate) fn of_subject(subject: &Subject, actions: Vec<Action>) -> Result<Arc<Entities>, String> {
    let mut all: Vec<Entity> = actions.into_iter().map(action_entity).collect();
    let role = match subject {
        Subject::Person { role, .. } => *role,
        Subject::Agent { .. } | Subject::Task { .. } | Subject::Service { .. } => None,
    };
    if let Some(id) = subject.person() {
        all.push(person(id, role, subject.is_machine())?);
        if !matches!(subject, Subject::Person { .. }) {
            let home =
                if subject.has_home() { home(id) } else { RestrictedExpression::new_entity_uid(path_uid(NO_HOME)) };
            let person = RestrictedExpression::new_entity_uid(person_uid(id));
            let attributes = HashMap::from([("person".to_owned(), person), ("home".to_owned(), home)]);
            all.push(Entity::new(uid_of(subject), attributes, HashSet::new()).map_err(|error| error.to_string())?);
        }
    } else {
        all.push(Entity::new_no_attrs(uid_of(subject), HashSet::new()));
    }
    Entities::from_entities(all, None).map(Arc::new).map_err(|error| error.to_string())
}

/// The entities of a request: those of the subject, and the path in the folders above it.
pub(crate) fn with_path(of_subject: &Entities, path: &FilePath) -> Result<Entities, String> {
    // The path names all that are above it, so nothing is left to compute.
    let mut above: HashSet<EntityUid> =
        std::iter::successors(path.parent(), FilePath::parent).map(|folder| path_uid(folder.as_str())).collect();
    if home_of(path.as_str()).is_some() {
        above.insert(uid(&TYPES.area, place::HOMES_AREA));
    }
    if setup_of(path.as_str()).is_some() {
        above.insert(uid(&TYPES.area, place::SETUPS_AREA));
    }
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let attributes = HashMap::from([("name".to_owned(), text(path.name())), ("path".to_owned(), text(path.as_str()))]);
    let entity = Entity::new(path_uid(path.as_str()), attributes, above).map_err(|error| error.to_string())?;
    of_subject.clone().add_entities([entity], None).map_err(|error| error.to_string())
}

fn home(person: UserId) -> RestrictedExpression {
    RestrictedExpression::new_entity_uid(path_uid(&place::home(person)))
}

fn person(id: UserId, role: Option<Role>, machine: bool) -> Result<Entity, String> {
    let attributes = HashMap::from([
        ("id".to_owned(), RestrictedExpression::new_string(id.to_string())),
        ("home".to_owned(), home(id)),
        ("machine".to_owned(), RestrictedExpression::new_bool(machine)),
    ]);
    let roles = Role::ALL.into_iter().filter(|of| role.is_some_and(|role| role >= *of));
    let roles = roles.map(|role| uid(&TYPES.role, role.as_str())).collect();
    Entity::new(person_uid(id), attributes, roles).map_err(|error| error.to_string())
}
