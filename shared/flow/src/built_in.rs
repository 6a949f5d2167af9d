//! The flows in the box: folders of files under `flows/`, which every workspace has as `/system/flows/<name>/`.
//!
//! They are not copied into workspaces: a workspace without a folder of that name has the one here, and gets the newer one
//! with the program. To change one, copy its folder; to read how flows are written, read theirs.

use std::collections::BTreeMap;

/// A folder: its name, and its files by path.
type Folder = (&'static str, &'static [(&'static str, &'static str)]);

/// The files of the folder of this name under `flows/`.
macro_rules! folder {
    ($name:literal: $($path:literal)*) => {
        ($name, &[$(($path, include_str!(concat!("../flows/", $name, "/", $path)))),*])
    };
}

/// By name.
const FLOWS: &[Folder] = &[
    folder!("content_campaign":
        "README.md" "agents.yaml" "evaluations.yaml" "golden/basics/pieces.json" "golden/basics/published.json"
        "memory.yaml" "policy.yaml" "schemas/findings.json" "schemas/message.json" "schemas/piece.json"
        "schemas/published.json" "schemas/request.json" "schemas/words.json" "tools.yaml" "workflow.yaml"
    ),
    folder!("handoff_code":
        "README.md" "agents.yaml" "evaluations.yaml" "memory.yaml" "policy.yaml" "schemas/change.json"
        "schemas/request.json" "schemas/written.json" "tools.yaml" "workflow.yaml"
    ),
    folder!("handoff_plan":
        "README.md" "agents.yaml" "evaluations.yaml" "memory.yaml" "policy.yaml" "schemas/plan.json"
        "schemas/request.json" "schemas/written.json" "tools.yaml" "workflow.yaml"
    ),
    folder!("handoff_review":
        "README.md" "agents.yaml" "evaluations.yaml" "memory.yaml" "policy.yaml" "schemas/request.json"
        "schemas/verdict.json" "schemas/written.json" "tools.yaml" "workflow.yaml"
    ),
    folder!("parallel_agents":
        "README.md" "agents.yaml" "evaluations.yaml" "execution.yaml" "golden/basics/together.json" "memory.yaml"
        "policy.yaml" "schemas/part.json" "schemas/request.json" "schemas/text.json" "tools.yaml" "workflow.yaml"
    ),
    folder!("plan_and_execute":
        "README.md" "agents.yaml" "evaluations.yaml" "golden/basics/straight.json" "memory.yaml" "policy.yaml"
        "schemas/plan.json" "schemas/report.json" "schemas/request.json" "schemas/result.json" "tools.yaml"
        "workflow.yaml"
    ),
    folder!("planner_executors":
        "README.md" "agents.yaml" "evaluations.yaml" "golden/basics/complex.json" "golden/basics/results.json"
        "memory.yaml" "policy.yaml" "schemas/analysis.json" "schemas/answer.json" "schemas/plan.json"
        "schemas/request.json" "schemas/result.json" "tools.yaml" "workflow.yaml"
    ),
    folder!("review":
        "README.md" "agents.yaml" "evaluations.yaml" "golden/basics/second_try.json" "memory.yaml" "policy.yaml"
        "schemas/accepted.json" "schemas/change.json" "schemas/last_verdict.json" "schemas/plan.json"
        "schemas/request.json" "schemas/verdict.json" "tools.yaml" "workflow.yaml"
    ),
];

/// The names of the flows in the box, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    FLOWS.iter().map(|(name, _)| *name)
}

/// The files of a flow in the box, by their paths in its folder; none when there is no such flow.
pub fn files(name: &str) -> Option<BTreeMap<String, String>> {
    let (_, files) = FLOWS.iter().find(|(known, _)| *known == name)?;
    Some(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        graph::Role,
        load::{KnownNames, load},
    };

    #[test]
    fn every_flow_in_the_box_loads_and_is_evaluated() {
        for name in names() {
            let files = files(name).unwrap_or_default();
            assert!(files.contains_key("README.md"), "{name}");
            let flow = load(name, files, &KnownNames::default()).unwrap_or_else(|report| panic!("{name}:\n{report}"));
            assert!(flow.description.is_some(), "{name}");
            // A model that reasons thinks within the limit of its agent, too.
            let is_short = |agent: &&crate::flow::Agent| agent.max_tokens.is_some_and(|tokens| tokens < 1_000);
            let short: Vec<_> = flow.agents.values().filter(is_short).map(|agent| &agent.id).collect();
            assert!(short.is_empty(), "{name}: {short:?}");
            let cases: Vec<_> = flow.settings.evaluations.iter().flat_map(|suite| &suite.cases).collect();
            assert!(cases.len() >= 3, "{name}");
            assert!(cases.iter().any(|case| case.tags.iter().any(|tag| tag == "failure")), "{name}");
            let agents = flow.graph.nodes().iter().filter(|node| node.role != Role::Exit);
            assert!(agents.count() > 3 && !flow.policy.is_empty() && !flow.memory.profiles.is_empty(), "{name}");
        }
    }
}
