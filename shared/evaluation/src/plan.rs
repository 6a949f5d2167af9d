//! The cases that an evaluation runs.

use super::Selection;
use domain::{Code, Error};
use flow::{
    Flow,
    manifest::{Case, Suite},
};
use serde_json::Value;
use std::fmt;

/// The most cases that a refusal names.
const NAMED: usize = 50;

/// One case that was chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedCase<'a> {
    pub suite: &'a Suite,
    pub case: &'a Case,
    /// Whether it runs, or is only told of.
    pub is_enabled: bool,
}

impl PlannedCase<'_> {
    /// Whether this is its id, alone or behind the name of its suite and a slash.
    fn is_called(&self, name: &str) -> bool {
        let in_suite = || name.strip_prefix(self.suite.name.as_str())?.strip_prefix('/');
        name == self.case.id || in_suite() == Some(self.case.id.as_str())
    }

    /// The script for its model; none when the real model is asked.
    pub fn script(&self) -> Option<&Value> {
        self.case.script.as_ref().or(self.suite.script.as_ref())
    }

    /// A text that no other case of the flow has. The one that people read is not enough: names may have slashes.
    pub fn key(&self) -> String {
        let Suite { name, .. } = self.suite;
        if name.contains('/') { format!("/{}/{self}", name.len()) } else { self.to_string() }
    }
}

impl fmt::Display for PlannedCase<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.suite.name, self.case.id)
    }
}

/// The cases of a selection, in the order of the manifest. A suite that is disabled runs only when it is chosen by its name;
/// a case that is disabled never does. A choice by suite, tag or case that no case would run of is an error: it would pass by running
/// nothing. So is the name of a case that the suites and tags leave out.
pub(super) fn plan<'a>(flow: &'a Flow, selection: &Selection) -> Result<Vec<PlannedCase<'a>>, Error> {
    let suites = &flow.settings.evaluations;
    if suites.is_empty() {
        let text = format!("the flow {} has no evaluations", flow.reference.name);
        return Err(Error::new(Code::Unprocessable, text).hint("write them into its evaluations.yaml"));
    }
    if let Some(missing) = selection.suites.iter().find(|name| !suites.iter().any(|suite| suite.name == **name)) {
        let shown: String = missing.chars().take(64).collect();
        let names: Vec<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
        return Err(Error::invalid("suites", format!("the flow has no suite {shown:?}"))
            .hint(format!("its suites: {}", names.join(", "))));
    }
    let is_named = |suite: &Suite| selection.suites.contains(&suite.name);
    let mut planned = Vec::new();
    for suite in suites {
        if !(selection.suites.is_empty() || is_named(suite)) {
            continue;
        }
        let is_enabled = suite.enabled || is_named(suite);
        let has_tag = |case: &Case| {
            let mut tags = suite.tags.iter().chain(&case.tags);
            selection.tags.is_empty() || tags.any(|tag| selection.tags.contains(tag))
        };
        let cases = suite.cases.iter().filter(|case| has_tag(case));
        planned.extend(cases.map(|case| PlannedCase { suite, case, is_enabled: is_enabled && case.enabled }));
    }
    if planned.is_empty() {
        let tags =
            suites.iter().flat_map(|suite| suite.tags.iter().chain(suite.cases.iter().flat_map(|case| &case.tags)));
        let mut tags: Vec<&str> = tags.map(String::as_str).collect();
        tags.sort_unstable();
        tags.dedup();
        return Err(Error::invalid("tags", "no case has these tags").hint(format!("the tags are: {}", tags.join(", "))));
    }
    if let Some(missing) = selection.cases.iter().find(|name| !planned.iter().any(|one| one.is_called(name))) {
        let shown: String = missing.chars().take(64).collect();
        let names: Vec<String> = planned.iter().take(NAMED).map(ToString::to_string).collect();
        let and_more = if planned.len() > NAMED { ", …" } else { "" };
        return Err(Error::invalid("cases", format!("there is no case {shown:?} to choose"))
            .hint(format!("its cases, in these suites and with these tags: {}{and_more}", names.join(", "))));
    }
    if !selection.cases.is_empty() {
        planned.retain(|one| selection.cases.iter().any(|name| one.is_called(name)));
    }
    let is_chosen = !(selection.suites.is_empty() && selection.tags.is_empty() && selection.cases.is_empty());
    if is_chosen && !planned.iter().any(|one| one.is_enabled) {
        let mut off: Vec<&str> =
            planned.iter().filter(|one| !one.suite.enabled).map(|one| one.suite.name.as_str()).collect();
        off.dedup();
        let hint = match off.is_empty() {
            true => "a case that is disabled never runs: remove its `enabled: false`".to_owned(),
            false => format!("choose a disabled suite by its name: {}", off.join(", ")),
        };
        return Err(Error::invalid("tags", "every case of this choice is disabled").hint(hint));
    }
    Ok(planned)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use flow::{
        load::{KnownNames, load},
        template,
    };
    use std::collections::BTreeSet;

    const SUITES: &str = "
suites:
  - name: fast
    tags: [smoke]
    cases:
      - {id: a, assertions: []}
      - {id: b, enabled: false, assertions: []}
      - {id: c, tags: [slow], assertions: []}
  - name: off
    enabled: false
    cases:
      - {id: d, tags: [slow, off], assertions: []}
";

    fn planned(suites: &[&str], tags: &[&str]) -> Result<Vec<String>, Error> {
        planned_of(suites, tags, &[])
    }

    fn planned_of(suites: &[&str], tags: &[&str], cases: &[&str]) -> Result<Vec<String>, Error> {
        let mut files = template::new_flow("it");
        files.insert("evaluations.yaml".into(), SUITES.into());
        let flow = load("it", files, &KnownNames::default()).unwrap();
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let selection = Selection { suites: owned(suites), tags: owned(tags), cases: owned(cases), bless: false };
        let planned = plan(&flow, &selection)?;
        Ok(planned.iter().map(|one| format!("{one}{}", if one.is_enabled { "" } else { " (off)" })).collect())
    }

    #[test]
    fn s10_3_cases_are_chosen_by_suite_and_tag() {
        let all = planned(&[], &[]).unwrap();
        assert_eq!(all, ["fast/a", "fast/b (off)", "fast/c", "off/d (off)"]);
        assert_eq!(planned(&["off"], &[]).unwrap(), ["off/d"]);
        assert_eq!(planned(&[], &["slow"]).unwrap(), ["fast/c", "off/d (off)"]);
        assert_eq!(planned(&["fast"], &["smoke", "slow"]).unwrap(), ["fast/a", "fast/b (off)", "fast/c"]);
    }

    #[test]
    fn s10_3_cases_are_chosen_by_their_names() {
        assert_eq!(planned_of(&[], &[], &["c"]).unwrap(), ["fast/c"]);
        assert_eq!(
            planned_of(&[], &[], &["fast/c", "a"]).unwrap(),
            ["fast/a", "fast/c"],
            "in the order of the manifest"
        );
        assert_eq!(planned_of(&["off"], &[], &["d"]).unwrap(), ["off/d"]);
        let wrong: [(&[&str], &[&str], &str); 5] =
            [(&[], &[], "e"), (&["off"], &[], "a"), (&[], &["slow"], "a"), (&[], &[], "fast/d"), (&[], &[], "fast")];
        for (suites, tags, missing) in wrong {
            let error = planned_of(suites, tags, &[missing]).unwrap_err();
            assert_eq!(error.details["field"], "cases", "{error:?}");
        }
        let error = planned_of(&[], &[], &["z"]).unwrap_err();
        assert!(error.hint.unwrap_or_default().contains("fast/a, fast/b, fast/c, off/d"));
        for disabled in ["b", "off/d"] {
            let error = planned_of(&[], &[], &[disabled]).unwrap_err();
            assert!(error.message.contains("disabled"), "{disabled}: {error:?}");
        }
    }

    #[test]
    fn s10_3_each_case_has_a_key_of_its_own() {
        let case = |id: &str| format!("    cases: [{{id: {id}, assertions: []}}]\n");
        let suites = [("a/b", "c"), ("a", "b/c"), ("1/a", "b"), ("fast", "a")];
        let suites = suites.map(|(name, id)| format!("  - name: {name}\n{}", case(id))).concat();
        let mut files = template::new_flow("it");
        files.insert("evaluations.yaml".into(), format!("suites:\n{suites}"));
        let flow = load("it", files, &KnownNames::default()).unwrap();
        let planned = plan(&flow, &Selection::default()).unwrap();
        let keys: BTreeSet<String> = planned.iter().map(PlannedCase::key).collect();
        assert_eq!(keys.len(), 4, "{keys:?}");
        assert!(keys.contains("fast/a"), "evaluations that run go on in the workspaces that they have");
    }

    #[test]
    fn s10_3_a_choice_of_nothing_is_an_error_that_says_what_there_is() {
        let error = planned(&["fats"], &[]).unwrap_err();
        assert!(error.hint.unwrap_or_default().contains("fast, off"));
        let error = planned(&[], &["quick"]).unwrap_err();
        assert!(error.hint.unwrap_or_default().contains("off, slow, smoke"));
    }

    #[test]
    fn s10_3_a_choice_of_disabled_cases_alone_is_an_error_and_does_not_pass() {
        let error = planned(&[], &["off"]).unwrap_err();
        assert!(error.message.contains("disabled") && error.hint.unwrap_or_default().contains("by its name: off"));
        assert_eq!(planned(&["off"], &["off"]).unwrap(), ["off/d"]);
    }
}
