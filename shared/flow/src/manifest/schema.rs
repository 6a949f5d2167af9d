//! The JSON Schemas of the manifests, made from their types.

use super::{
    Agents, Artifacts, CliProfiles, Credentials, Deployment, EngineMetadata, Evaluations, Execution, Inspector,
    MemoryManifest, Metrics, PersistentMemory, Plugins, Policies, Providers, Tools, Workflow,
};
use crate::tool_declarations::Declaration;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

/// The JSON Schema (2020-12) of each manifest, by its name without extension, as editors take it.
pub fn schemas() -> BTreeMap<&'static str, Value> {
    RAW.iter()
        .map(|(name, schema)| {
            let mut schema = schema.clone();
            publish(&mut schema);
            (*name, schema)
        })
        .collect()
}

/// The schema of one manifest as the loader reads it: with `x-partial` on objects that are kept although something that they
/// require is missing.
pub(crate) fn raw(name: &str) -> &'static Value {
    RAW.get(name).unwrap_or(&Value::Bool(true))
}

static RAW: LazyLock<HashMap<&'static str, Value>> = LazyLock::new(|| {
    HashMap::from([
        ("workflow", of::<Workflow>()),
        ("agents", of::<Agents>()),
        ("tools", of::<Tools>()),
        ("memory", of::<MemoryManifest>()),
        ("policy", of::<Policies>()),
        ("providers", of::<Providers>()),
        ("provider_credentials", of::<Credentials>()),
        ("evaluations", of::<Evaluations>()),
        ("metrics", of::<Metrics>()),
        ("artifacts", of::<Artifacts>()),
        ("plugins", of::<Plugins>()),
        ("execution", of::<Execution>()),
        ("inspector", of::<Inspector>()),
        ("cli_profiles", of::<CliProfiles>()),
        ("persistent_memory", of::<PersistentMemory>()),
        ("engine_metadata", of::<EngineMetadata>()),
        ("deployment", of::<Deployment>()),
    ])
});

/// The schema of a file of `tools/`. It is no manifest: there are many of them, under names of their own.
pub(crate) static DECLARED_TOOL: LazyLock<Value> = LazyLock::new(of::<Declaration>);

fn of<T: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    bound(&mut schema);
    schema
}

/// Says of every number how far it goes: a type of Rust has bounds that its schema only names.
fn bound(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let bounds = match object.get("format").and_then(Value::as_str) {
                Some("int8") => Some((i64::from(i8::MIN), i64::from(i8::MAX))),
                Some("int16") => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
                Some("int32") => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
                Some("uint8") => Some((0, i64::from(u8::MAX))),
                Some("uint16") => Some((0, i64::from(u16::MAX))),
                Some("uint32") => Some((0, i64::from(u32::MAX))),
                _ => None,
            };
            if let Some((least, most)) = bounds {
                object.entry("minimum").or_insert_with(|| least.into());
                object.entry("maximum").or_insert_with(|| most.into());
            }
            object.values_mut().for_each(bound);
        }
        Value::Array(list) => list.iter_mut().for_each(bound),
        _ => {}
    }
}

/// Takes our marks out, and lets `x-` keys in.
fn publish(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.remove("x-partial");
            if is_closed(object) {
                object.insert("patternProperties".into(), json!({"^x-": true}));
            }
            for (key, value) in object.iter_mut() {
                // A user's default or choice is no schema.
                if key != "default" && key != "const" && key != "enum" {
                    publish(value);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(publish),
        _ => {}
    }
}

fn is_closed(schema: &Map<String, Value>) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
}
