//! A flow to begin with, and the deployment manifest of a flow (spec 002 §10.13).
//!
//! Both are reproducible: the same name is the same folder, and the same files have the same fingerprints everywhere.

use crate::{
    bundle,
    manifest::{self, Deployment, Fingerprint},
};
use domain::Sha256;
use std::collections::BTreeMap;

/// The folder of the manifests' schemas, for editors. It is no part of the flow.
const SCHEMAS: &str = ".schema";
/// The manifest that lists the files of a flow; it is not in its own list.
const DEPLOYMENT: &str = "deployment.yaml";

/// The files of the folder; the name is filled in.
const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("template/files/README.md")),
    ("agents.yaml", include_str!("template/files/agents.yaml")),
    ("deployment.yaml", include_str!("template/files/deployment.yaml")),
    ("evaluations.yaml", include_str!("template/files/evaluations.yaml")),
    ("memory.yaml", include_str!("template/files/memory.yaml")),
    ("schemas/answer.json", include_str!("template/files/schemas/answer.json")),
    ("schemas/choice.json", include_str!("template/files/schemas/choice.json")),
    ("schemas/request.json", include_str!("template/files/schemas/request.json")),
    ("tools.yaml", include_str!("template/files/tools.yaml")),
    ("workflow.yaml", include_str!("template/files/workflow.yaml")),
];

/// A small flow that works: the files of its folder, by path. Each manifest names its JSON Schema, which is put beside it, so
/// that editors complete it.
pub fn new_flow(name: &str) -> BTreeMap<String, String> {
    // A JSON string is a YAML string, with any characters in the name.
    let quoted = serde_json::Value::from(name).to_string();
    let mut files: BTreeMap<String, String> = FILES
        .iter()
        .map(|(path, text)| {
            let schema = path
                .strip_suffix(".yaml")
                .map(|stem| format!("# yaml-language-server: $schema={SCHEMAS}/{stem}.json\n"));
            ((*path).to_string(), format!("{}{}", schema.unwrap_or_default(), text.replace("__NAME__", &quoted)))
        })
        .collect();
    for (manifest, schema) in manifest::schemas() {
        files.insert(format!("{SCHEMAS}/{manifest}.json"), format!("{schema:#}\n"));
    }
    files
}

/// The deployment manifest of a flow: the fingerprint of each file, but of the manifest itself, and the hash of all of them.
/// Other keys of the manifest are kept.
pub fn package(files: &BTreeMap<String, String>) -> Deployment {
    let said = said(files).unwrap_or_default();
    let mut rest = files.clone();
    rest.remove(DEPLOYMENT);
    let parts = rest.iter().filter(|(path, _)| bundle::is_part(path));
    let fingerprints = parts.map(|(path, text)| Fingerprint {
        path: path.clone(),
        sha256: Sha256::of(text.as_bytes()).to_string(),
        bytes: text.len() as u64,
    });
    Deployment { fingerprints: fingerprints.collect(), hash: Some(bundle::hash(&rest).to_string()), ..said }
}

/// The deployment manifest of a folder; none when there is none that can be read.
pub fn said(files: &BTreeMap<String, String>) -> Option<Deployment> {
    files.get(DEPLOYMENT).and_then(|text| serde_saphyr::from_str(text).ok())
}

/// The text of a deployment manifest, as `deployment.yaml` has it: JSON, which is YAML, since it is made and read by machines.
pub fn deployment_text(deployment: &Deployment) -> String {
    let mut value = serde_json::json!(deployment);
    if let Some(object) = value.as_object_mut() {
        object.retain(|_, value| !value.is_null());
    }
    format!("{value:#}\n")
}

/// The paths where files are not what a deployment manifest says: changed, missing, or not named by it.
pub fn drift(deployment: &Deployment, files: &BTreeMap<String, String>) -> Vec<String> {
    let by_path = |deployment: &Deployment| -> BTreeMap<String, Fingerprint> {
        deployment.fingerprints.iter().map(|print| (print.path.clone(), print.clone())).collect()
    };
    let (said, found) = (by_path(deployment), by_path(&package(files)));
    let mut paths: Vec<String> = said.keys().chain(found.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| said.get(path) != found.get(path));
    paths
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::load::{self, KnownNames, load};

    #[test]
    fn s10_13_a_new_flow_loads_whatever_its_name_is() {
        for name in ["first", "a \"b\": {c} #d", "Über\nuns"] {
            let files = new_flow(name);
            assert_eq!(files, new_flow(name));
            let flow = load(name, files, &KnownNames::default()).unwrap_or_else(|report| panic!("{report}"));
            assert!(!flow.settings.evaluations.is_empty() && flow.settings.deployment.is_some());
        }
    }

    #[test]
    fn s10_13_a_package_says_what_changed() {
        let mut files = new_flow("first");
        let package = package(&files);
        let for_people = |deployment: &Deployment| {
            let Deployment { name, flow_version, layout, environment, bootstrap, .. } = deployment.clone();
            (name, flow_version, layout, environment, bootstrap)
        };
        let written = for_people(&said(&files).unwrap());
        assert_eq!(for_people(&package), written, "keys for people are kept");
        assert!(!written.2.is_empty() && !written.3.is_empty() && !written.4.is_empty());
        assert!(package.fingerprints.iter().any(|print| print.path == "workflow.yaml"));
        assert!(!package.fingerprints.iter().any(|print| print.path == DEPLOYMENT || print.path.starts_with(SCHEMAS)));
        files.insert(DEPLOYMENT.into(), deployment_text(&package));
        assert_eq!(super::package(&files), package, "packed twice is packed once");
        assert_eq!(drift(&package, &files), [""; 0]);
        load("first", files.clone(), &KnownNames::default()).unwrap();

        files.insert("tools.yaml".into(), "tools: []\n".into());
        files.remove("memory.yaml");
        files.insert("policy.yaml".into(), "rules: []\n".into());
        assert_eq!(drift(&package, &files), ["memory.yaml", "policy.yaml", "tools.yaml"]);
        let report = load("first", files, &KnownNames::default()).unwrap_err();
        let tampered: Vec<&str> = report
            .faults
            .iter()
            .filter(|fault| fault.code == load::TAMPERED && fault.hint.contains("flow package"))
            .map(|fault| fault.message.as_str())
            .collect();
        assert_eq!(
            tampered,
            [
                "`policy.yaml` was not packed",
                "`memory.yaml` was packed and is not there",
                "`tools.yaml` is not as it was when the flow was packed",
            ]
        );
    }
}
