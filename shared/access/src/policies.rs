//! The set of policies, and the one function that decides.

use crate::{
    Action, Source, Subject, SyntaxError,
    entities::{TYPES, action_uid, of_subject, path_uid, uid_of, with_path},
    place::{NamedPaths, documents_of, home_of, made_of, setups_in},
    slice::{Scopes, actions_of},
    text,
};
use cedar_policy::{Authorizer, Context, Effect as CedarEffect, Entities, Policy, PolicyId, Request};
use domain::FilePath;
use parking_lot::RwLock;
use serde::Serialize;
use serde_json::Value;
use std::{
    cell::OnceCell,
    collections::HashMap,
    sync::{Arc, LazyLock},
};

/// How many decisions are remembered per set.
const REMEMBERED: usize = 10_000;
/// Of how many subjects at most: the entities of one take a few KiB.
const SUBJECTS: usize = 1_000;
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
struct NamedPolicy {
    name: Arc<str>,
    why: Arc<str>,
    asks: bool,
}

/// The entities and decisions of a subject, as they are remembered.
struct Remembered {
    /// The entities of all its requests to do this, or why there are none.
    entities: HashMap<Action, Result<Arc<Entities>, String>>,
    decisions: HashMap<(Action, bool, Box<str>), Decision>,
}

/// A subject at a path, where it wants to do this; that the path may be listed is asked first.
struct At<'a> {
    subject: &'a Subject,
    path: &'a FilePath,
    action: Action,
    /// The entities of its requests: one evaluation makes them for those that follow.
    entities: OnceCell<Result<Entities, String>>,
}

impl<'a> At<'a> {
    fn new(subject: &'a Subject, path: &'a FilePath, action: Action) -> Self {
        Self { subject, path, action, entities: OnceCell::new() }
    }
}

/// A set of policies. A set never changes: other texts are another set, so decisions are cached in it.
pub struct Policies {
    scopes: Scopes,
    /// By the names that Cedar knows them by, which sort in the order of the texts.
    known: HashMap<PolicyId, NamedPolicy>,
    /// The paths that the set names.
    named: NamedPaths,
    /// The actions on which a policy looks at the name of a path, so that each path has a decision of its own.
    by_name: Vec<Action>,
    /// Whether a condition looks at the group of an action that it names, which may be another one than is asked for.
    asks_for_groups: bool,
    /// Whether there are policies beside the built-in ones.
    has_own: bool,
    remembered: RwLock<HashMap<Subject, Remembered>>,
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
            scopes: Scopes::default(),
            known: HashMap::new(),
            named: NamedPaths::default(),
            by_name: Vec::new(),
            asks_for_groups: false,
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
            if *literal.type_name() == TYPES.path {
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
        self.asks_for_groups |= asks_for_group(&json["conditions"]);
        if looks_at_name(&json["conditions"]) {
            self.by_name.extend(actions_of(policy));
        }
        let asks = policy.annotation("decision") == Some("ask");
        let why = policy.annotation("why").unwrap_or_default().into();
        self.known.insert(id.clone(), NamedPolicy { name: name.clone(), why, asks });
        if asks && policy.effect() == CedarEffect::Forbid {
            let mut turned = json;
            turned["effect"] = "permit".into();
            let turned = Policy::from_json(Some(id), turned).map_err(|error| fault(error.to_string()))?;
            self.scopes.add(turned, true);
        } else {
            self.scopes.add(policy.new_id(id), false);
        }
        Ok(())
    }

    /// Decides whether a subject may do this at a path. This is the one function that decides.
    ///
    /// A path is hidden, and nothing may be done there, where it or a folder above it may not be listed. A file that is made of a document is hidden where
    /// the document is, and read by those who read the document: a policy that names a document names its text.
    pub fn decide(&self, subject: &Subject, action: Action, path: &FilePath) -> Decision {
        let own = self.decide_by_path(subject, action, path);
        if !self.has_own || !own.is_permit() {
            return own;
        }
        let looks = if action == Action::Read { Action::Read } else { Action::List };
        let documents = documents_of(path).filter(|document| self.named.has(document) || self.is_by_name(looks));
        let refused =
            documents.map(|document| self.decide_by_path(subject, looks, &document)).find(|of| !of.is_permit());
        match refused {
            None => own,
            Some(refused) if looks == action => refused,
            Some(hidden) => Decision { effect: Effect::Deny, ..hidden },
        }
    }

    fn decide_by_path(&self, subject: &Subject, action: Action, path: &FilePath) -> Decision {
        let mut above = path.parent();
        while let Some(folder) = above {
            let listed = self.judged(&At::new(subject, &folder, Action::List), Action::List);
            if !listed.is_permit() {
                return Decision { effect: Effect::Deny, ..listed };
            }
            above = folder.parent();
        }
        let at = At::new(subject, path, action);
        if action != Action::List {
            let listed = self.judged(&at, Action::List);
            if !listed.is_permit() {
                return Decision { effect: Effect::Deny, ..listed };
            }
        }
        self.judged(&at, action)
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
        if self.is_by_name(action) {
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
        if self.is_by_name(action) || self.named.is_in(folder) {
            return None;
        }
        Some(self.decide(subject, action, &folder.join("-").ok()?))
    }

    /// Whether all that a subject may list may be read by it, too: policies of a workspace's own alone tell the two apart.
    pub fn reads_what_it_lists(&self) -> bool {
        !self.has_own
    }

    /// Whether nothing is out of sight for this subject: the one person of a machine, in a workspace without policies of its own.
    pub fn shows_all(&self, subject: &Subject) -> bool {
        !self.has_own && subject.is_machine()
    }

    /// Whether a policy looks at the name of a path, so that each path has a decision of its own.
    pub fn looks_at_names(&self) -> bool {
        !self.by_name.is_empty()
    }

    /// Whether a policy looks at names where this action is decided on: all that is done at a path has to be listed there.
    fn is_by_name(&self, action: Action) -> bool {
        self.by_name.contains(&Action::List) || self.by_name.contains(&action)
    }

    /// The paths below a folder that policies name, and those of what is made of documents among them.
    pub fn named_below(&self, folder: &FilePath) -> Vec<FilePath> {
        self.named.below(folder).flat_map(|path| made_of(&path).into_iter().chain([path])).collect()
    }

    /// Whether two subjects may read the same at and below a folder, homes aside. Where policies look at names it is not known, and false.
    pub fn read_alike(&self, one: &Subject, other: &Subject, folder: &FilePath) -> bool {
        let at = std::iter::once(folder.clone()).chain(self.named.below(folder));
        let mut at = at.flat_map(|path| path.join("-").ok().into_iter().chain([path]));
        let may = |subject: &Subject, path: &FilePath| self.decide(subject, Action::Read, path).is_permit();
        !self.is_by_name(Action::Read)
            && at.all(|path| home_of(path.as_str()).is_some() || may(one, &path) == may(other, &path))
    }

    fn judged(&self, at: &At<'_>, action: Action) -> Decision {
        let path = at.path;
        let (anchor, is_itself) =
            if self.by_name.contains(&action) { (path.as_str(), true) } else { self.named.anchor(path) };
        let key = (action, is_itself, Box::from(anchor));
        let entities = {
            let remembered = self.remembered.read();
            let of = remembered.get(at.subject);
            if let Some(decision) = of.and_then(|of| of.decisions.get(&key)) {
                return decision.clone();
            }
            of.and_then(|of| of.entities.get(&at.action).cloned())
        };
        let entities = entities.unwrap_or_else(|| of_subject(at.subject, self.actions_for(at.action)));
        let decision = self.evaluate(&entities, at, action);
        let mut remembered = self.remembered.write();
        let is_full = remembered.values().map(|of| of.decisions.len()).sum::<usize>() >= REMEMBERED;
        if is_full || (remembered.len() >= SUBJECTS && !remembered.contains_key(at.subject)) {
            remembered.clear();
        }
        let of = remembered
            .entry(at.subject.clone())
            .or_insert_with(|| Remembered { entities: HashMap::new(), decisions: HashMap::new() });
        of.entities.entry(at.action).or_insert(entities);
        of.decisions.insert(key, decision.clone());
        decision
    }

    /// The actions that the policies can look at where this one is asked for: listing is asked for first.
    fn actions_for(&self, action: Action) -> Vec<Action> {
        let is_seen = |of: &Action| self.asks_for_groups || [action, Action::List].contains(of);
        Action::ALL.into_iter().filter(is_seen).collect()
    }

    fn evaluate(&self, of_subject: &Result<Arc<Entities>, String>, at: &At<'_>, action: Action) -> Decision {
        let fault = |error: String| {
            tracing::error!(subject = %at.subject, %action, path = %at.path, error, "a decision could not be made");
            deny("no-decision", "the policies could not be evaluated")
        };
        let make = || with_path(of_subject.as_deref().map_err(Clone::clone)?, at.path);
        let entities = match at.entities.get_or_init(make) {
            Ok(entities) => entities,
            Err(error) => return fault(error.clone()),
        };
        let slice = match self.scopes.slice(at.subject, action, at.path) {
            Ok(slice) => slice,
            Err(error) => return fault(error),
        };
        let request = match request(at, action) {
            Ok(request) => request,
            Err(error) => return fault(error),
        };
        let answer = Authorizer::new().is_authorized(&request, &slice.plain, entities);
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
        let by = |effect: Effect, known: &NamedPolicy| Decision {
            effect,
            policy: known.name.clone(),
            why: known.why.clone(),
        };
        if answer.decision() == cedar_policy::Decision::Deny {
            return first(None)
                .map_or_else(|| deny("nothing-permits", "no policy permits it"), |forbids| by(Effect::Deny, forbids));
        }
        if !slice.asking.is_empty() {
            let asked = Authorizer::new().is_authorized(&request, &slice.asking, entities);
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

    /// The answers of Cedar to a request by its slice of the set, and by the whole set: each with its policies and its errors.
    #[cfg(test)]
    pub(crate) fn by_slice_and_whole(
        &self,
        subject: &Subject,
        action: Action,
        path: &FilePath,
    ) -> Result<[String; 2], String> {
        let (at, of_subject) = (At::new(subject, path, action), of_subject(subject, self.actions_for(action))?);
        let (request, entities) = (request(&at, action)?, with_path(&of_subject, path)?);
        let told = |set: &cedar_policy::PolicySet| {
            let answer = Authorizer::new().is_authorized(&request, set, &entities);
            let mut reasons: Vec<String> = answer.diagnostics().reason().map(ToString::to_string).collect();
            let mut errors: Vec<String> = answer.diagnostics().errors().map(ToString::to_string).collect();
            reasons.sort();
            errors.sort();
            format!("{:?} {reasons:?} {errors:?}", answer.decision())
        };
        let slices = [self.scopes.slice(subject, action, path)?, Arc::new(self.scopes.whole()?)];
        Ok(slices.map(|slice| format!("{}; asking: {}", told(&slice.plain), told(&slice.asking))))
    }
}

fn request(at: &At<'_>, action: Action) -> Result<Request, String> {
    let (principal, resource) = (uid_of(at.subject), path_uid(at.path.as_str()));
    Request::new(principal, action_uid(action), resource, Context::empty(), None).map_err(|error| error.to_string())
}

impl Source<'_> {
    fn at_start(&self, message: String) -> SyntaxError {
        SyntaxError { name: self.name.to_owned(), line: 1, column: 1, message }
    }
}

fn deny(policy: &str, why: &str) -> Decision {
    Decision { effect: Effect::Deny, policy: policy.into(), why: why.into() }
}

/// Whether a condition may look at an attribute of the path: it uses the path for more than a comparison of this path with others.
fn looks_at_name(condition: &Value) -> bool {
    let is_resource = |side: &Value| side.get("Var").is_some_and(|var| var == "resource");
    let compares = |sides: &Value| {
        let sides = ["left", "right", "in"].into_iter().filter_map(|side| sides.get(side));
        sides.filter(|side| !is_resource(side)).any(looks_at_name)
    };
    match condition {
        Value::Object(fields) => fields.iter().any(|(operator, sides)| match operator.as_str() {
            "Var" => sides == "resource",
            "in" | "==" | "!=" | "is" => compares(sides),
            // Its keys are the author's, and none of them is an operator.
            "Record" => sides.as_object().is_some_and(|values| values.values().any(looks_at_name)),
            _ => looks_at_name(sides),
        }),
        Value::Array(parts) => parts.iter().any(looks_at_name),
        _ => false,
    }
}

/// Whether a condition asks for the group of an action that it names.
fn asks_for_group(condition: &Value) -> bool {
    match condition {
        Value::Object(fields) => fields.iter().any(|(operator, sides)| {
            let is_named = sides.get("left").is_some_and(|side| side.to_string().contains(r#""type":"Action""#));
            (operator == "in" && is_named) || asks_for_group(sides)
        }),
        Value::Array(parts) => parts.iter().any(asks_for_group),
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
