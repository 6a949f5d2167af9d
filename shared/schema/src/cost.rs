//! How often a JSON Schema applies itself to a value, counted before it does.
//!
//! The keywords that apply subschemas are those of JSON Schema 2020-12, Core §10 and §11, and those of draft 7 beside them.

use super::SchemaError;
use domain::text::percent_decoded;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// The most subschemas.
const MOST_NODES: usize = 20_000;
/// The most subschemas that are entered, one inside of the other, while a value is checked.
const DEEPEST: usize = 256;
/// The most subschemas that an `unevaluated…` keyword looks at.
const MOST_SEEN: u64 = 2_000;
/// The most subschemas with an `$id`.
const MOST_RESOURCES: usize = 256;
/// The most subschemas with one anchor.
const MOST_OF_AN_ANCHOR: usize = 16;
/// Applications to each part of a value that a schema which is no part of this one takes: only meta-schemas are known.
const OF_A_META_SCHEMA: u64 = 200;

/// The subschemas that a schema applies, by number; the first is the schema itself.
#[derive(Debug, Default)]
pub(super) struct CostModel {
    nodes: Vec<Node>,
    /// Whether some subschema can be applied to the same part of a value more than once.
    multiplies: bool,
}

#[derive(Debug, Default)]
struct Node {
    pointer: String,
    /// Applied to the same value.
    in_place: Vec<Target>,
    /// Applied to the field of a name.
    fields: Vec<(String, Target)>,
    /// Applied to each field.
    each_field: Vec<Target>,
    /// Applied to the item at a position.
    at: Vec<Target>,
    /// Applied to each item.
    each_item: Vec<Target>,
    /// Whether subschemas are applied again to find unevaluated parts.
    unevaluated: bool,
    /// How many subschemas apply this one.
    appliers: usize,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Node(usize),
    MetaSchema,
}

/// Why a value is not checked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OverBudget {
    #[error("the schema would be applied more than {0} times to parts of this value, so it is not checked")]
    Applications(u64),
    #[error("the schema and this value are nested deeper than {DEEPEST} levels, so it is not checked")]
    Depth,
}

impl CostModel {
    /// Reads the subschemas of a schema.
    ///
    /// # Errors
    /// The place of the fault: a circle of references, or more subschemas, names or levels than the limits above.
    pub fn of(source: &Value) -> Result<Self, SchemaError> {
        let mut reader =
            Reader { source, names: Names::of(source)?, known: HashMap::new(), nodes: Vec::new(), multiplies: false };
        reader.node(String::new())?;
        let mut next = 0;
        while next < reader.nodes.len() {
            reader.read(next)?;
            next += 1;
        }
        let model = Self { nodes: reader.nodes, multiplies: reader.multiplies };
        model.refuse_circles()?;
        model.refuse_wide_looks()?;
        Ok(model)
    }

    /// That `unevaluatedProperties` and `unevaluatedItems` look at few subschemas. The library compiles a copy of each one that they
    /// see, as often as references lead to it.
    fn refuse_wide_looks(&self) -> Result<(), SchemaError> {
        let mut known = vec![None; self.nodes.len()];
        let wide = (0..self.nodes.len())
            .find(|number| self.nodes[*number].unevaluated && self.seen_from(*number, &mut known) > MOST_SEEN);
        wide.map_or(Ok(()), |number| {
            let message =
                format!("`unevaluatedProperties` or `unevaluatedItems` looks at more than {MOST_SEEN} subschemas");
            Err(SchemaError { pointer: self.nodes[number].pointer.clone(), message })
        })
    }

    /// How many subschemas are applied to a value in the place of this one, counted as often as they are. There are no circles.
    fn seen_from(&self, number: usize, known: &mut [Option<u64>]) -> u64 {
        if let Some(known) = known[number] {
            return known;
        }
        let mut sum = 1_u64;
        for target in &self.nodes[number].in_place {
            sum = sum.saturating_add(match target {
                Target::Node(next) => self.seen_from(*next, known),
                Target::MetaSchema => OF_A_META_SCHEMA,
            });
        }
        known[number] = Some(sum);
        sum
    }

    /// That no subschema is applied to a value because it is applied to that value: such a check would have no end.
    fn refuse_circles(&self) -> Result<(), SchemaError> {
        let mut entered = vec![Entered::Never; self.nodes.len()];
        (0..self.nodes.len()).try_for_each(|node| self.enter(node, &mut entered, 0))
    }

    fn enter(&self, node: usize, entered: &mut [Entered], depth: usize) -> Result<(), SchemaError> {
        let fault = |message: String| Err(SchemaError { pointer: self.nodes[node].pointer.clone(), message });
        match entered[node] {
            Entered::Done => return Ok(()),
            Entered::Inside => return fault("the schema refers to itself without going into the value".into()),
            Entered::Never if depth > DEEPEST => {
                return fault(format!(
                    "more than {DEEPEST} references and subschemas follow one another for one value"
                ));
            }
            Entered::Never => {}
        }
        entered[node] = Entered::Inside;
        for target in &self.nodes[node].in_place {
            if let Target::Node(next) = target {
                self.enter(*next, entered, depth + 1)?;
            }
        }
        entered[node] = Entered::Done;
        Ok(())
    }

    /// Whether checking a value takes at most `most` applications. A schema without references applies each subschema once to each
    /// part of a value at most, so it is not counted.
    ///
    /// # Errors
    /// [`OverBudget::Applications`] when it takes more, [`OverBudget::Depth`] when the schema and the value nest too deep.
    pub fn fits_budget(&self, value: &Value, most: u64) -> Result<(), OverBudget> {
        if !self.multiplies {
            return Ok(());
        }
        let mut count = Count { model: self, most, entered: 0, known: HashMap::new() };
        count.of(Target::Node(0), value, 0).map(drop)
    }
}

#[derive(Clone, Copy)]
enum Entered {
    Never,
    Inside,
    Done,
}

struct Count<'a> {
    model: &'a CostModel,
    most: u64,
    entered: u64,
    /// The counts of subschemas that several apply, by subschema and part of the value. A part stays at its address while it
    /// is borrowed.
    known: HashMap<(usize, *const Value), u64>,
}

impl Count<'_> {
    fn of(&mut self, target: Target, value: &Value, depth: usize) -> Result<u64, OverBudget> {
        let Target::Node(number) = target else {
            return self.bounded(OF_A_META_SCHEMA.saturating_mul(parts(value)));
        };
        let key = (number, std::ptr::from_ref(value));
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        if depth > 2 * DEEPEST {
            return Err(OverBudget::Depth);
        }
        self.entered += 1;
        self.bounded(self.entered)?;
        let model = self.model;
        let node = &model.nodes[number];
        let members = match value {
            Value::Object(fields) => fields.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        };
        let mut sum = 0_u64;
        for target in &node.in_place {
            sum = sum.saturating_add(self.of(*target, value, depth + 1)?);
        }
        if node.unevaluated {
            sum = sum.saturating_mul(1 + members as u64);
        }
        match value {
            Value::Object(fields) => {
                for (name, target) in &node.fields {
                    if let Some(field) = fields.get(name) {
                        sum = sum.saturating_add(self.of(*target, field, depth + 1)?);
                    }
                }
                for target in &node.each_field {
                    for field in fields.values() {
                        sum = sum.saturating_add(self.of(*target, field, depth + 1)?);
                    }
                }
            }
            Value::Array(items) => {
                for (target, item) in node.at.iter().zip(items) {
                    sum = sum.saturating_add(self.of(*target, item, depth + 1)?);
                }
                for target in &node.each_item {
                    for item in items {
                        sum = sum.saturating_add(self.of(*target, item, depth + 1)?);
                    }
                }
            }
            _ => {}
        }
        let sum = self.bounded(sum.saturating_add(1))?;
        if node.appliers > 1 {
            self.known.insert(key, sum);
        }
        Ok(sum)
    }

    fn bounded(&self, sum: u64) -> Result<u64, OverBudget> {
        if sum > self.most { Err(OverBudget::Applications(self.most)) } else { Ok(sum) }
    }
}

fn parts(value: &Value) -> u64 {
    1 + match value {
        Value::Object(fields) => fields.values().map(parts).sum(),
        Value::Array(items) => items.iter().map(parts).sum(),
        _ => 0,
    }
}

/// The names that references can lead to.
#[derive(Default)]
struct Names {
    /// The pointers of subschemas with an `$id`, and the schema itself first.
    resources: Vec<(String, String)>,
    /// Pointers by `$anchor` and `$dynamicAnchor`.
    anchors: BTreeMap<String, Vec<String>>,
}

impl Names {
    fn of(source: &Value) -> Result<Self, SchemaError> {
        let id = source.get("$id").and_then(Value::as_str).unwrap_or_default();
        let mut names = Self { resources: vec![(String::new(), id.into())], anchors: BTreeMap::new() };
        names.look(source, String::new())?;
        Ok(names)
    }

    fn look(&mut self, value: &Value, pointer: String) -> Result<(), SchemaError> {
        let Value::Object(fields) = value else {
            let items = value.as_array().map_or(&[][..], Vec::as_slice);
            return items.iter().enumerate().try_for_each(|(at, item)| self.look(item, format!("{pointer}/{at}")));
        };
        if let Some(Value::String(id)) = fields.get("$id")
            && !pointer.is_empty()
        {
            self.resources.push((pointer.clone(), id.clone()));
        }
        for anchor in ["$anchor", "$dynamicAnchor"].iter().filter_map(|key| fields.get(*key)?.as_str()) {
            let places = self.anchors.entry(anchor.into()).or_default();
            places.push(pointer.clone());
            if places.len() > MOST_OF_AN_ANCHOR {
                let message = format!("more than {MOST_OF_AN_ANCHOR} subschemas have the anchor {anchor:?}");
                return Err(SchemaError { pointer, message });
            }
        }
        if self.resources.len() > MOST_RESOURCES {
            let message = format!("more than {MOST_RESOURCES} subschemas have an `$id`");
            return Err(SchemaError { pointer, message });
        }
        fields.iter().try_for_each(|(name, field)| self.look(field, under(&pointer, name)))
    }

    /// The pointer of the innermost resource around a place.
    fn around(&self, pointer: &str) -> &str {
        let holds = |resource: &&str| {
            pointer.strip_prefix(resource).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.resources.iter().map(|(at, _)| at.as_str()).filter(holds).max_by_key(|at| at.len()).unwrap_or_default()
    }

    /// The pointers that a reference at a place may lead to; none for a schema that is no part of this one.
    fn lead(&self, reference: &str, from: &str) -> Vec<String> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let last = |id: &str| id.trim_end_matches('#').rsplit(['/', ':']).next().unwrap_or_default().to_owned();
        let resources: Vec<&str> = match address {
            "" => vec![self.around(from)],
            _ => {
                let named = self.resources.iter().filter(|(_, id)| last(id) == last(address));
                named.map(|(at, _)| at.as_str()).collect()
            }
        };
        let fragment = percent_decoded(fragment);
        let fragment = String::from_utf8_lossy(&fragment);
        match &*fragment {
            _ if resources.is_empty() => Vec::new(),
            "" => resources.into_iter().map(str::to_owned).collect(),
            path if path.starts_with('/') => resources.into_iter().map(|at| format!("{at}{path}")).collect(),
            anchor => self.anchors.get(anchor).cloned().unwrap_or_default(),
        }
    }
}

/// A name below a place, as a JSON pointer (RFC 6901).
fn under(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

struct Reader<'a> {
    source: &'a Value,
    names: Names,
    known: HashMap<String, usize>,
    nodes: Vec<Node>,
    multiplies: bool,
}

impl Reader<'_> {
    /// The number of the subschema at a place, which is read later.
    fn node(&mut self, pointer: String) -> Result<Target, SchemaError> {
        if let Some(known) = self.known.get(&pointer) {
            self.nodes[*known].appliers += 1;
            return Ok(Target::Node(*known));
        }
        let number = self.nodes.len();
        if number >= MOST_NODES {
            return Err(SchemaError { pointer, message: format!("the schema has more than {MOST_NODES} subschemas") });
        }
        self.nodes.push(Node { pointer: pointer.clone(), appliers: 1, ..Node::default() });
        self.known.insert(pointer, number);
        Ok(Target::Node(number))
    }

    fn read(&mut self, number: usize) -> Result<(), SchemaError> {
        let pointer = self.nodes[number].pointer.clone();
        let Some(Value::Object(fields)) = self.source.pointer(&pointer) else { return Ok(()) };
        let mut node = Node { pointer: pointer.clone(), ..Node::default() };
        for (keyword, value) in fields {
            let here = under(&pointer, keyword);
            match keyword.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    self.multiplies = true;
                    node.in_place.extend(self.referred(value, &pointer)?);
                }
                "allOf" | "anyOf" | "oneOf" => node.in_place.extend(self.items(value, &here)?),
                "not" | "if" | "then" | "else" => node.in_place.push(self.node(here)?),
                "dependentSchemas" | "dependencies" => {
                    node.in_place.extend(self.fields(value, &here)?.into_iter().map(|(_, target)| target));
                }
                "properties" => node.fields.extend(self.fields(value, &here)?),
                "patternProperties" => {
                    node.each_field.extend(self.fields(value, &here)?.into_iter().map(|(_, target)| target));
                }
                "additionalProperties" | "propertyNames" => node.each_field.push(self.node(here)?),
                "unevaluatedProperties" => {
                    (self.multiplies, node.unevaluated) = (true, true);
                    node.each_field.push(self.node(here)?);
                }
                "prefixItems" => node.at.extend(self.items(value, &here)?),
                "items" if value.is_array() => node.at.extend(self.items(value, &here)?),
                "items" | "additionalItems" | "contains" => node.each_item.push(self.node(here)?),
                "unevaluatedItems" => {
                    (self.multiplies, node.unevaluated) = (true, true);
                    node.each_item.push(self.node(here)?);
                }
                _ => {}
            }
        }
        node.appliers = self.nodes[number].appliers;
        self.nodes[number] = node;
        Ok(())
    }

    fn referred(&mut self, reference: &Value, from: &str) -> Result<Vec<Target>, SchemaError> {
        let Some(reference) = reference.as_str() else { return Ok(Vec::new()) };
        let leads = self.names.lead(reference, from);
        let leads: Vec<String> = leads.into_iter().filter(|at| self.source.pointer(at).is_some()).collect();
        if leads.is_empty() {
            return Ok(vec![Target::MetaSchema]);
        }
        leads.into_iter().map(|at| self.node(at)).collect()
    }

    fn items(&mut self, value: &Value, here: &str) -> Result<Vec<Target>, SchemaError> {
        (0..value.as_array().map_or(0, Vec::len)).map(|at| self.node(format!("{here}/{at}"))).collect()
    }

    fn fields(&mut self, value: &Value, here: &str) -> Result<Vec<(String, Target)>, SchemaError> {
        let none = Map::new();
        let fields = value.as_object().unwrap_or(&none);
        fields.keys().map(|name| Ok((name.clone(), self.node(under(here, name))?))).collect()
    }
}
