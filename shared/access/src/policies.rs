//! The set of policies, and the one function that decides.

use crate::{
    Action, Role, Source, Subject, SyntaxError, place,
    place::{Named, home_of, setup_of, setups_in},
    text,
};
use cedar_policy::{
    Authorizer, Context, Effect as CedarEffect, Entities, Entity, EntityId, EntityTypeName, EntityUid, Policy,
    PolicyId, PolicySet, Request, RestrictedExpression,
};
use domain::{FilePath, UserId};
use serde::Serialize;
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    str::FromStr,
    sync::{Arc, LazyLock, PoisonError, RwLock},
};

/// How many decisions are remembered per set.
const REMEMBERED: usize = 10_000;
/// How many policies of its own a workspace has at most.
const MOST: usize = 500;

/// The three decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It may be done.
    Permit,
    /// It may not be done.
    Deny,
    /// A person is asked; no answer in time is a no.
    Ask,
}

impl Effect {
    /// As the wire names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Permit, deny or ask.
    pub effect: Effect,
    /// The policy that decided: the id of a built-in one, `<file>#<id>` for one of the workspace's own, or `nothing-permits`.
    pub policy: Arc<str>,
    /// Why, for people.
    pub why: Arc<str>,
}

impl Decision {
    /// Whether it may be done without a question.
    pub fn is_permit(&self) -> bool {
        self.effect == Effect::Permit
    }
}

/// A policy as decisions name it.
#[derive(Debug)]
struct Known {
    name: Arc<str>,
    why: Arc<str>,
    asks: bool,
}

type Remembered = HashMap<Subject, HashMap<(Action, bool, Box<str>), Decision>>;

/// A set of policies. A set never changes: other texts are another set, so decisions are cached in it.
pub struct Policies {
    /// All but the policies that forbid with a question.
    plain: PolicySet,
    /// The policies that forbid with a question, as policies that permit: those that are satisfied ask.
    asking: PolicySet,
    /// By the names that Cedar knows them by, which sort in the order of the texts.
    known: HashMap<PolicyId, Known>,
    /// The paths that the set names.
    named: Named,
    /// Whether a policy looks at the name of a path, so that each path has a decision of its own.
    by_name: bool,
    /// Whether there are policies beside the built-in ones.
    has_own: bool,
    remembered: RwLock<Remembered>,
}

impl std::fmt::Debug for Policies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.known.values().map(|known| &known.name)).finish()
    }
}

impl Policies {
    /// The built-in set.
    pub fn builtin() -> Arc<Self> {
        #[expect(clippy::expect_used, reason = "a text of ours, which a test reads")]
        static BUILTIN: LazyLock<Arc<Policies>> =
            LazyLock::new(|| Arc::new(Policies::with(&[]).expect("the built-in policies")));
        BUILTIN.clone()
    }

    /// The built-in set and these texts.
    ///
    /// # Errors
    /// The first fault of a text, with its place: one that Cedar does not parse, that does not fit the schema, or that names two policies alike.
    pub fn with(own: &[Source<'_>]) -> Result<Self, SyntaxError> {
        let builtin = Source { name: "builtin.cedar", text: include_str!("builtin.cedar") };
        let mut set = Self {
            plain: PolicySet::new(),
            asking: PolicySet::new(),
            known: HashMap::new(),
            named: Named::default(),
            by_name: false,
            has_own: !own.is_empty(),
            remembered: RwLock::default(),
        };
        for (name, policy) in text::policies(builtin, true)? {
            set.add(builtin, name.into(), &policy)?;
        }
        let most = set.known.len() + MOST;
        for source in own {
            for (id, policy) in text::policies(*source, false)? {
                if set.known.len() >= most {
                    return Err(source.at_start(format!("a workspace has at most {MOST} policies of its own")));
                }
                set.add(*source, format!("{}#{id}", source.name).into(), &policy)?;
            }
        }
        Ok(set)
    }

    fn add(&mut self, source: Source<'_>, name: Arc<str>, policy: &Policy) -> Result<(), SyntaxError> {
        let id = PolicyId::new(format!("{:06}", self.known.len()));
        let fault = |error: String| source.at_start(format!("{name} cannot be used: {error}"));
        for literal in policy.entity_literals() {
            if literal.type_name().to_string() == "Path" {
                let path = FilePath::parse(literal.id().unescaped()).map_err(|error| fault(error.to_string()))?;
                if path.as_str() != literal.id().unescaped() {
                    return Err(fault(format!("write the path {:?} as {path}", literal.id().unescaped())));
                }
                self.named.add(&path);
            }
        }
        let json = policy.to_json().map_err(|error| fault(error.to_string()))?;
        if looks_from_above(&json["conditions"]) {
            // The folders that a path is in are known, and not what is in it.
            return Err(fault("`resource` stands on the left of `in`, and not on its right".into()));
        }
        self.by_name |= looks_at_name(&json["conditions"]);
        let asks = policy.annotation("decision") == Some("ask");
        let why = policy.annotation("why").unwrap_or_default().into();
        self.known.insert(id.clone(), Known { name: name.clone(), why, asks });
        if asks && policy.effect() == CedarEffect::Forbid {
            let mut turned = json;
            turned["effect"] = "permit".into();
            let turned = Policy::from_json(Some(id), turned).map_err(|error| fault(error.to_string()))?;
            return self.asking.add(turned).map_err(|error| fault(error.to_string()));
        }
        self.plain.add(policy.new_id(id)).map_err(|error| fault(error.to_string()))
    }

    /// Decides whether a subject may do this at a path. This is the one function that decides.
    ///
    /// A path is hidden, and nothing may be done there, where it or a folder above it may not be listed.
    pub fn decide(&self, subject: &Subject, action: Action, path: &FilePath) -> Decision {
        let mut above = path.parent();
        while let Some(folder) = above {
            let listed = self.judged(subject, Action::List, &folder);
            if !listed.is_permit() {
                return Decision { effect: Effect::Deny, ..listed };
            }
            above = folder.parent();
        }
        if action != Action::List {
            let listed = self.judged(subject, Action::List, path);
            if !listed.is_permit() {
                return Decision { effect: Effect::Deny, ..listed };
            }
        }
        self.judged(subject, action, path)
    }

    /// Whether the path exists for the subject.
    pub fn shows(&self, subject: &Subject, path: &FilePath) -> bool {
        self.decide(subject, Action::List, path).is_permit()
    }

    /// The decision on all that may lie at and below a folder, for what is done to the folder with all in it: the first one that is no permit.
    /// None when a policy looks at names, so that each path below has to be decided on.
    pub fn decide_tree(&self, subject: &Subject, action: Action, folder: &FilePath) -> Option<Decision> {
        let at = self.decide(subject, action, folder);
        if !at.is_permit() {
            return Some(at);
        }
        if self.by_name {
            return None;
        }
        // Something in a folder has another decision than the folder where a policy is about the folder alone.
        let inside = folder.join("-").ok().into_iter();
        let named = self.named.below(folder).chain(setups_in(folder));
        let named = named.flat_map(|named| named.join("-").ok().into_iter().chain([named]));
        let mut refused = inside.chain(named).map(|path| self.decide(subject, action, &path));
        Some(refused.find(|decision| !decision.is_permit()).unwrap_or(at))
    }

    /// The decision on each path in a folder, but not on those below it. None where they may differ: a policy looks at names, or names one of them.
    pub fn decide_in(&self, subject: &Subject, action: Action, folder: &FilePath) -> Option<Decision> {
        if self.by_name || self.named.is_in(folder) {
            return None;
        }
        Some(self.decide(subject, action, &folder.join("-").ok()?))
    }

    /// Whether nothing is out of sight for this subject: the one person of a machine, in a workspace without policies of its own.
    pub fn shows_all(&self, subject: &Subject) -> bool {
        !self.has_own && subject.is_machine()
    }

    /// Whether a policy looks at the name of a path, so that each path has a decision of its own.
    pub fn looks_at_names(&self) -> bool {
        self.by_name
    }

    /// The paths below a folder that policies name.
    pub fn named_below(&self, folder: &FilePath) -> Vec<FilePath> {
        self.named.below(folder).collect()
    }

    /// Whether two subjects may read the same at and below a folder, homes aside. Where policies look at names it is not known, and false.
    pub fn read_alike(&self, one: &Subject, other: &Subject, folder: &FilePath) -> bool {
        let at = std::iter::once(folder.clone()).chain(self.named.below(folder));
        let mut at = at.flat_map(|path| path.join("-").ok().into_iter().chain([path]));
        let may = |subject: &Subject, path: &FilePath| self.decide(subject, Action::Read, path).is_permit();
        !self.by_name && at.all(|path| home_of(path.as_str()).is_some() || may(one, &path) == may(other, &path))
    }

    fn judged(&self, subject: &Subject, action: Action, path: &FilePath) -> Decision {
        let (anchor, is_itself) = if self.by_name { (path.as_str(), true) } else { self.named.anchor(path) };
        let key = (action, is_itself, Box::from(anchor));
        {
            let remembered = self.remembered.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(decision) = remembered.get(subject).and_then(|of| of.get(&key)) {
                return decision.clone();
            }
        }
        let decision = self.evaluate(subject, action, path);
        let mut remembered = self.remembered.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.values().map(HashMap::len).sum::<usize>() >= REMEMBERED {
            remembered.clear();
        }
        remembered.entry(subject.clone()).or_default().insert(key, decision.clone());
        decision
    }

    fn evaluate(&self, subject: &Subject, action: Action, path: &FilePath) -> Decision {
        let fault = |error: String| {
            tracing::error!(%subject, %action, %path, error, "a decision could not be made");
            deny("no-decision", "the policies could not be evaluated")
        };
        let entities = match entities(subject, path) {
            Ok(entities) => entities,
            Err(error) => return fault(error),
        };
        let request = Request::new(
            uid_of(subject),
            uid("Action", action.as_str()),
            path_uid(path.as_str()),
            Context::empty(),
            None,
        );
        let request = match request {
            Ok(request) => request,
            Err(error) => return fault(error.to_string()),
        };
        let answer = Authorizer::new().is_authorized(&request, &self.plain, &entities);
        // A policy that fails would be passed over, also one that forbids.
        if let Some(error) = answer.diagnostics().errors().next() {
            return fault(error.to_string());
        }
        let first = |asks: Option<bool>| {
            let mut ids: Vec<&PolicyId> = answer.diagnostics().reason().collect();
            ids.sort();
            let known = ids.into_iter().filter_map(|id| self.known.get(id));
            known.into_iter().find(|known| asks.is_none_or(|asks| known.asks == asks))
        };
        let by =
            |effect: Effect, known: &Known| Decision { effect, policy: known.name.clone(), why: known.why.clone() };
        if answer.decision() == cedar_policy::Decision::Deny {
            return first(None)
                .map_or_else(|| deny("nothing-permits", "no policy permits it"), |forbids| by(Effect::Deny, forbids));
        }
        if !self.asking.is_empty() {
            let asked = Authorizer::new().is_authorized(&request, &self.asking, &entities);
            if let Some(error) = asked.diagnostics().errors().next() {
                return fault(error.to_string());
            }
            if let Some(known) = asked.diagnostics().reason().min().and_then(|id| self.known.get(id)) {
                return by(Effect::Ask, known);
            }
        }
        match (first(Some(false)), first(Some(true))) {
            (Some(permits), _) => by(Effect::Permit, permits),
            (None, Some(asks)) => by(Effect::Ask, asks),
            (None, None) => fault("a decision without a policy".into()),
        }
    }
}

impl Source<'_> {
    fn at_start(&self, message: String) -> SyntaxError {
        SyntaxError { name: self.name.to_owned(), line: 1, column: 1, message }
    }
}

fn deny(policy: &str, why: &str) -> Decision {
    Decision { effect: Effect::Deny, policy: policy.into(), why: why.into() }
}

/// Whether a condition looks at an attribute of the path.
fn looks_at_name(condition: &Value) -> bool {
    match condition {
        Value::Object(fields) => {
            let is_resource = |side: &Value| side.get("Var").is_some_and(|var| var == "resource");
            fields.iter().any(|(operator, sides)| {
                let compares = matches!(operator.as_str(), "in" | "==" | "!=" | "is");
                let left = sides.get("left").is_some_and(is_resource) || sides.get("right").is_some_and(is_resource);
                (left && !compares) || looks_at_name(sides)
            })
        }
        Value::Array(parts) => parts.iter().any(looks_at_name),
        _ => false,
    }
}

/// Whether a condition asks for what is in the path.
fn looks_from_above(condition: &Value) -> bool {
    match condition {
        Value::Object(fields) => fields.iter().any(|(operator, sides)| {
            let is_above = sides.get("right").is_some_and(|side| side.to_string().contains(r#"{"Var":"resource"}"#));
            (operator == "in" && is_above) || looks_from_above(sides)
        }),
        Value::Array(parts) => parts.iter().any(looks_from_above),
        _ => false,
    }
}

fn type_name(name: &str) -> EntityTypeName {
    #[expect(clippy::expect_used, reason = "a name of ours")]
    EntityTypeName::from_str(name).expect("a type")
}

fn uid(kind: &str, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(type_name(kind), EntityId::new(id))
}

fn path_uid(path: &str) -> EntityUid {
    static PATH: LazyLock<EntityTypeName> = LazyLock::new(|| type_name("Path"));
    EntityUid::from_type_name_and_id(PATH.clone(), EntityId::new(path))
}

/// The home of a subject that has none: the path of nobody's home.
const NO_HOME: &str = "/users/nobody";

fn uid_of(subject: &Subject) -> EntityUid {
    match subject {
        Subject::Person { id, .. } => uid("Person", &id.to_string()),
        Subject::Agent { persona, .. } => uid("Agent", persona),
        Subject::Task { .. } => uid("Task", "task"),
        Subject::Service { name } => uid("Service", name),
    }
}

/// The entities of a request: the subject and its person, the path and the folders above it, the actions and their groups.
fn entities(subject: &Subject, path: &FilePath) -> Result<Entities, String> {
    let mut all = actions();
    let role = match subject {
        Subject::Person { role, .. } => *role,
        Subject::Agent { .. } | Subject::Task { .. } | Subject::Service { .. } => None,
    };
    if let Some(id) = subject.person() {
        all.push(person(id, role, subject.is_machine())?);
        if !matches!(subject, Subject::Person { .. }) {
            let entity = |id: UserId| RestrictedExpression::new_entity_uid(uid("Person", &id.to_string()));
            let home =
                if subject.has_home() { home(id) } else { RestrictedExpression::new_entity_uid(path_uid(NO_HOME)) };
            let attributes = HashMap::from([("person".to_owned(), entity(id)), ("home".to_owned(), home)]);
            all.push(Entity::new(uid_of(subject), attributes, HashSet::new()).map_err(|error| error.to_string())?);
        }
    } else {
        all.push(Entity::new_no_attrs(uid_of(subject), HashSet::new()));
    }
    // Each entity names all that are above it, so nothing is left to compute.
    let mut above: HashSet<EntityUid> =
        std::iter::successors(path.parent(), FilePath::parent).map(|folder| path_uid(folder.as_str())).collect();
    if home_of(path.as_str()).is_some() {
        above.insert(uid("Area", "homes"));
    }
    if setup_of(path.as_str()).is_some() {
        above.insert(uid("Area", "setups"));
    }
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let attributes = HashMap::from([("name".to_owned(), text(path.name())), ("path".to_owned(), text(path.as_str()))]);
    all.push(Entity::new(path_uid(path.as_str()), attributes, above).map_err(|error| error.to_string())?);
    Entities::from_entities(all, None).map_err(|error| error.to_string())
}

/// The actions in their groups, as the schema has them.
pub(crate) fn actions() -> Vec<Entity> {
    let of = |action: Action| {
        let group = match action {
            Action::List | Action::Read => Some("look"),
            Action::Write | Action::Delete | Action::Move | Action::Restore => Some("change"),
            Action::Purge | Action::Execute | Action::Share => None,
        };
        let groups = group.into_iter().map(|group| uid("Action", group)).collect();
        Entity::new_no_attrs(uid("Action", action.as_str()), groups)
    };
    Action::ALL.into_iter().map(of).collect()
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
    let roles = roles.map(|role| uid("Role", role.as_str())).collect();
    Entity::new(uid("Person", &id.to_string()), attributes, roles).map_err(|error| error.to_string())
}
