//! Checks a file against the schema of its manifest, and takes wrong values out of it, so that the rest can be looked at.
//!
//! It reads the part of JSON Schema that our own types come out as. Editors are served the same schema, and a test holds
//! this reader and a real validator together.

use super::{
    report::{At, Faults, listed, meant, nearest},
    tree::{Content, SourcePosition, SourceTree},
};
use serde_json::{Map, Value};

/// Reads one file.
pub(super) struct SchemaCheck<'a> {
    pub(super) file: &'a str,
    /// The whole schema, where references lead.
    pub(super) root: &'a Value,
    /// Whether values may be keys to something, and are not shown; keys that are not known are taken for some.
    pub(super) secret: bool,
    pub(super) faults: &'a mut Faults,
}

impl<'a> SchemaCheck<'a> {
    /// The tree without its wrong parts; none when nothing is left of it.
    pub(super) fn check(&mut self, tree: SourceTree) -> Option<SourceTree> {
        let root = self.root;
        self.value(tree, root, "the file")
    }

    fn fault(&mut self, place: SourcePosition, code: &'static str, message: String, hint: impl Into<String>) {
        self.faults.add(At { file: self.file, place }, code, message, hint);
    }

    /// `name` is the value's name for people.
    fn value(&mut self, tree: SourceTree, schema: &'a Value, name: &str) -> Option<SourceTree> {
        let Some(schema) = self.resolve(schema).as_object() else { return Some(tree) };
        if let Some(choices) = choices(schema) {
            return self.choice(tree, choices, name);
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            return self.option(tree, options, name);
        }
        let types = types(schema);
        if !types.is_empty() && !fits(&tree, &types) {
            self.wrong_type(&tree, &types, name, schema);
            return None;
        }
        let SourceTree { place, content } = tree;
        let content = match content {
            Content::Scalar(value) => Content::Scalar(self.scalar(value, schema, place, name)?),
            Content::List(list) => Content::List(match schema.get("items") {
                Some(items) => {
                    let item_name = format!("an item of {name}");
                    list.into_iter().filter_map(|item| self.value(item, items, &item_name)).collect()
                }
                None => list,
            }),
            Content::Map(map) => Content::Map(self.object(map, schema, place, name)?),
        };
        Some(SourceTree { place, content })
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        let pointer = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
        pointer.and_then(|pointer| self.root.pointer(pointer)).unwrap_or(schema)
    }

    fn scalar(
        &mut self,
        value: Value,
        schema: &Map<String, Value>,
        place: SourcePosition,
        name: &str,
    ) -> Option<Value> {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let (least, most) = (bound("minimum"), bound("maximum"));
        let outside = |number: f64| least.is_some_and(|least| number < least) || most.is_some_and(|most| number > most);
        if value.as_f64().is_some_and(outside) {
            let hint = match (least, most) {
                (Some(least), Some(most)) => format!("it goes from {least} to {most}"),
                (Some(least), None) => format!("it is {least} or more"),
                (None, most) => format!("it is {} or less", most.unwrap_or_default()),
            };
            self.fault(place, "wrong_value", format!("{name} cannot be {}", self.describe(&value)), hint);
            return None;
        }
        let length = value.as_str().map(|text| text.chars().count() as f64);
        if length.is_some_and(|length| bound("minLength").is_some_and(|least| length < least)) {
            self.fault(place, "wrong_value", format!("{name} is empty"), "write something there");
            return None;
        }
        if let Some(most) = bound("maxLength").filter(|most| length.is_some_and(|length| length > *most)) {
            self.fault(place, "wrong_value", format!("{name} is too long"), format!("{most} characters at most"));
            return None;
        }
        Some(value)
    }

    /// Some of several schemas: names to choose from, or values of several types.
    fn choice(&mut self, tree: SourceTree, choices: &'a [Value], name: &str) -> Option<SourceTree> {
        let choices = self.leaves(choices);
        let names: Vec<&Value> = choices
            .iter()
            .flat_map(|choice| {
                let options = choice.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                choice.get("const").into_iter().chain(options)
            })
            .collect();
        if names.iter().any(|option| **option == tree.to_value()) {
            return Some(tree);
        }
        let of_type = choices.iter().copied().find(|choice| {
            let is_name = choice.get("const").is_some() || choice.get("enum").is_some();
            !is_name && choice.as_object().is_some_and(|choice| fits(&tree, &types(choice)))
        });
        if let Some(of_type) = of_type {
            return self.value(tree, of_type, name);
        }
        let mut types: Vec<&str> = choices.iter().filter_map(|choice| choice.as_object()).flat_map(types).collect();
        types.dedup();
        if !names.is_empty() && (types == ["string"] || tree.type_name() == "string") {
            let names: Vec<Value> = names.into_iter().cloned().collect();
            return self.option(tree, &names, name);
        }
        let described =
            choices.iter().filter_map(|choice| choice.as_object()).find(|choice| choice.contains_key("description"));
        self.wrong_type(&tree, &types, name, described.unwrap_or(&Map::new()));
        None
    }

    /// The leaves of a choice: choices may lead to more choices, as an optional enum does.
    fn leaves(&self, of: &'a [Value]) -> Vec<&'a Value> {
        of.iter()
            .map(|choice| self.resolve(choice))
            .flat_map(|choice| match choice.as_object().and_then(choices) {
                Some(more) => self.leaves(more),
                None => vec![choice],
            })
            .collect()
    }

    fn option(&mut self, tree: SourceTree, options: &[Value], name: &str) -> Option<SourceTree> {
        let value = tree.to_value();
        if options.contains(&value) {
            return Some(tree);
        }
        let names = || options.iter().filter_map(Value::as_str);
        match value.as_str() {
            Some(text) => {
                let near = meant(text, &names().collect::<Vec<_>>());
                let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                let hint = format!("{near}{}", listed(names()).unwrap_or_default());
                self.fault(tree.place, "wrong_value", format!("{name} cannot be {}", self.describe(&value)), hint);
            }
            None => {
                let message = format!("{name} is {}, and not one of its names", article(tree.type_name()));
                self.fault(tree.place, "wrong_type", message, listed(names()).unwrap_or_default());
            }
        }
        None
    }

    /// The entries of an object without the wrong ones. None when something is missing without which it means nothing.
    fn object(
        &mut self,
        map: Vec<(String, SourcePosition, SourceTree)>,
        schema: &'a Map<String, Value>,
        place: SourcePosition,
        name: &str,
    ) -> Option<Vec<(String, SourcePosition, SourceTree)>> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let more = schema.get("additionalProperties");
        let required =
            || schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let mut kept = Vec::with_capacity(map.len());
        let mut spoiled = false;
        // Required keys that are there with a mistake: these have their fault, and are not missing, too.
        let mut mistaken: Vec<&str> = Vec::new();
        for (key, key_place, value) in map {
            let is_required = required().any(|required| required == key);
            let known = properties.and_then(|properties| properties.get(&key));
            let rule = match (known, more) {
                // An empty value is one that is not there.
                (Some(known), _) if !is_required && value.type_name() == "null" && !self.takes_null(known) => continue,
                (Some(known), _) => known,
                (None, _) if properties.is_some() && key.starts_with("x-") => continue,
                (None, Some(Value::Bool(false))) => {
                    self.unknown_key(&key, key_place, properties);
                    let names: Vec<&str> = required().collect();
                    mistaken.extend(meant(&key, &names));
                    continue;
                }
                (None, Some(more)) => more,
                (None, None) => {
                    kept.push((key, key_place, value));
                    continue;
                }
            };
            let value_name = format!("`{key}`");
            match self.value(value, rule, &value_name) {
                Some(value) => kept.push((key, key_place, value)),
                None if is_required => mistaken.extend(required().find(|required| *required == key)),
                None => {}
            }
        }
        let is_there = |name: &str| kept.iter().any(|(key, ..)| key == name);
        for missing in required().filter(|name| !is_there(name)) {
            spoiled = true;
            if !mistaken.contains(&missing) {
                let about = kept_id(&kept).map(|id| format!(" (of `{id}`)")).unwrap_or_default();
                let says = properties.and_then(|properties| properties.get(missing)?.as_object()).and_then(description);
                let hint = says.unwrap_or_else(|| format!("write `{missing}: …`"));
                self.fault(place, "missing_key", format!("`{missing}` is missing in {name}{about}"), hint);
            }
        }
        let partial = schema.get("x-partial") == Some(&Value::Bool(true));
        (partial || !spoiled).then_some(kept)
    }

    fn unknown_key(&mut self, key: &str, place: SourcePosition, properties: Option<&Map<String, Value>>) {
        let names = || properties.into_iter().flatten().map(|(name, _)| name.as_str());
        if self.secret {
            let hint = "say where it is: `env: NAME`, `file: path` or `secret: name`";
            let message = format!("`{key}` is no reference to a credential; manifests hold no values");
            self.fault(place, "credential_value", message, hint);
        } else {
            let hint = nearest(key, names(), "`buildscale flow schema`").unwrap_or_else(|| "remove it".into());
            self.fault(place, "unknown_key", format!("there is no key `{key}` here"), hint);
        }
    }

    fn takes_null(&self, schema: &'a Value) -> bool {
        match self.resolve(schema).as_object() {
            Some(schema) => match choices(schema) {
                Some(choices) => choices.iter().any(|choice| self.takes_null(choice)),
                None => types(schema).is_empty() && !schema.contains_key("enum") || types(schema).contains(&"null"),
            },
            None => true,
        }
    }

    fn wrong_type(&mut self, tree: &SourceTree, types: &[&str], name: &str, schema: &Map<String, Value>) {
        let wanted: Vec<String> =
            types.iter().filter(|name| **name != "null").map(|name| article(name).to_string()).collect();
        let wanted = wanted.join(" or ");
        let message = format!("{name} is {}; it needs {wanted}", article(tree.type_name()));
        self.fault(tree.place, "wrong_type", message, description(schema).unwrap_or_else(|| format!("write {wanted}")));
    }

    fn describe(&self, value: &Value) -> String {
        if self.secret {
            "that".into()
        } else {
            format!("`{}`", value.as_str().map_or_else(|| value.to_string(), Into::into))
        }
    }
}

fn choices(schema: &Map<String, Value>) -> Option<&[Value]> {
    schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array).map(Vec::as_slice)
}

fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn fits(tree: &SourceTree, types: &[&str]) -> bool {
    let is = tree.type_name();
    types.contains(&is) || (is == "integer" && types.contains(&"number"))
}

fn kept_id(kept: &[(String, SourcePosition, SourceTree)]) -> Option<&str> {
    kept.iter().find_map(|(key, _, value)| match &value.content {
        Content::Scalar(Value::String(id)) if key == "id" || key == "name" => Some(id.as_str()),
        _ => None,
    })
}

fn description(schema: &Map<String, Value>) -> Option<String> {
    schema.get("description").and_then(Value::as_str).map(Into::into)
}

fn article(type_name: &str) -> &'static str {
    match type_name {
        "array" => "a list",
        "object" => "an object",
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        _ => "empty",
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::{manifest, template};
    use proptest::{prelude::*, sample::Index};
    use serde_json::json;

    /// The codes of the faults that the reader finds in a document.
    fn said(name: &str, document: &Value) -> Vec<&'static str> {
        let mut faults = Faults::default();
        let read = SourceTree::read("a.json", &document.to_string());
        let (tree, ..) = read.unwrap_or_else(|error| panic!("{}", error.message));
        SchemaCheck { file: "a.json", root: manifest::schema_of(name), secret: false, faults: &mut faults }.check(tree);
        faults.report().faults.iter().map(|fault| fault.code).collect()
    }

    /// Every place of a document.
    fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
        match value {
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(index, value)| pointers(value, format!("{at}/{index}"), found));
            }
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                pointers(value, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }),
            _ => {}
        }
        found.push(at);
    }

    fn documents() -> Vec<(&'static str, Value)> {
        let files = template::new_flow("first");
        manifest::schemas()
            .into_keys()
            .filter_map(|name| {
                let text = files.get(&format!("{name}.yaml"))?;
                Some((name, serde_saphyr::from_str::<Value>(text).unwrap()))
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// The reader of schemas and a real validator agree on the faults.
        #[test]
        fn the_loader_and_editors_see_the_same(
            document in any::<Index>(),
            changes in prop::collection::vec((any::<Index>(), 0..8_usize), 0..3),
        ) {
            let documents = documents();
            let (name, mut value) = document.get(&documents).clone();
            for (place, change) in changes {
                let mut all = Vec::new();
                pointers(&value, String::new(), &mut all);
                let pointer: &String = place.get(&all);
                let Some(target) = value.pointer_mut(pointer) else { continue };
                match (change, target) {
                    (0, target) => *target = json!("text"),
                    (1, target) => *target = json!(-3),
                    (2, target) => *target = json!(true),
                    (3, target) => *target = json!({}),
                    (4, target) => *target = json!([1.5]),
                    (5, Value::Object(map)) => drop(map.insert("nonsense".into(), json!(1))),
                    (6, Value::Object(map)) => drop(map.insert("x-mine".into(), json!({"any": 1}))),
                    (7, Value::Object(map)) => drop(map.keys().next().cloned().and_then(|key| map.shift_remove(&key))),
                    (_, _) => {}
                }
            }
            let validator = jsonschema::validator_for(&manifest::schemas()[name]).unwrap();
            let codes = said(name, &value);
            prop_assert_eq!(
                codes.is_empty(), validator.is_valid(&value),
                "{}: {:?}; {:?}; {:#}", name, codes,
                validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect::<Vec<_>>(), value
            );
        }
    }

    #[test]
    fn every_schema_is_one() {
        for (name, schema) in manifest::schemas() {
            jsonschema::draft202012::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
            jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!schema.to_string().contains("x-partial"), "{name}");
        }
    }
}
