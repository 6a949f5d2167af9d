#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::flow::{ContextUse, Op, Permissions};
use proptest::prelude::*;

fn node(id: &str, role: Role, tools: &[&str]) -> Node {
    Node {
        id: id.into(),
        name: None,
        role,
        op: Op::Identity,
        schema_in: None,
        schema_out: None,
        context: ContextUse::None,
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        split: None,
        score: None,
        remember: None,
        timeout: None,
        failures: Default::default(),
        max_concurrency: None,
    }
}

fn rule(id: &str, target: PolicyTarget, names: &[&str], nodes: &[&str], allow: bool) -> PolicyRule {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    PolicyRule { id: id.into(), target, names: texts(names), nodes: texts(nodes), allow, reason: None }
}

fn tool(id: &str, target: ToolTarget, allow_shell: bool) -> ToolBinding {
    let permissions = Permissions { root: None, allow_network: false, allow_shell };
    ToolBinding { id: id.into(), description: None, target, permissions, reaches_network: false }
}

fn builtin(id: &str) -> ToolBinding {
    tool(id, ToolTarget::Builtin("write".into()), false)
}

fn denied_by(decision: Decision) -> Option<String> {
    match decision {
        Decision::Permit => None,
        Decision::Deny { rule, .. } => Some(rule),
    }
}

#[test]
fn s5_a_node_calls_only_the_tools_that_it_lists() {
    let node = node("worker", Role::Linear, &["notes"]);
    assert!(decide(&[], &node, &Use::Tool(&builtin("notes"))).permits());
    let allowed = [rule("all", PolicyTarget::Tool, &["*"], &[], true)];
    let Decision::Deny { rule, what, reason } = decide(&allowed, &node, &Use::Tool(&builtin("deploy"))) else {
        panic!("not even a rule that allows everything lets it")
    };
    assert_eq!((rule.as_str(), what.as_str()), ("node.tools", "tool deploy"));
    assert!(reason.unwrap().contains("lists"));
}

#[test]
fn s5_commands_need_their_permission() {
    let node = node("worker", Role::Linear, &["sh"]);
    let command = |allow_shell| tool("sh", ToolTarget::Command(vec!["ls".into()]), allow_shell);
    assert_eq!(denied_by(decide(&[], &node, &Use::Tool(&command(false)))).unwrap(), "permissions.allow_shell");
    assert!(decide(&[], &node, &Use::Tool(&command(true))).permits());
    let none = [rule("no-commands", PolicyTarget::Tool, &["command"], &[], false)];
    assert_eq!(denied_by(decide(&none, &node, &Use::Command)).unwrap(), "no-commands");
}

#[test]
fn s5_a_tool_that_reaches_the_network_needs_its_permission() {
    let node = node("worker", Role::Linear, &["fetch"]);
    let mut fetch = ToolBinding { reaches_network: true, ..builtin("fetch") };
    let allowed = [rule("all", PolicyTarget::Tool, &["*"], &[], true)];
    assert_eq!(denied_by(decide(&allowed, &node, &Use::Tool(&fetch))).unwrap(), "permissions.allow_network");
    fetch.permissions.allow_network = true;
    assert!(decide(&allowed, &node, &Use::Tool(&fetch)).permits());
}

#[test]
fn s3_3_no_rule_stops_an_exit() {
    let rules = [rule("none", PolicyTarget::Node, &["*"], &[], false)];
    assert!(decide(&rules, &node("end", Role::Exit, &[]), &Use::Node).permits());
    assert_eq!(denied_by(decide(&rules, &node("work", Role::Linear, &[]), &Use::Node)).unwrap(), "none");
}

#[test]
fn s3_3_an_exit_calls_no_agent_and_no_tool() {
    let exit = node("end", Role::Exit, &["notes"]);
    for what in [Use::Tool(&builtin("notes")), Use::Model("openai/x"), Use::DefaultModel(None), Use::Command] {
        assert_eq!(denied_by(decide(&[], &exit, &what)).unwrap(), "node.role");
    }
    assert!(decide(&[], &exit, &Use::Node).permits());
}

#[test]
fn s10_5_the_first_rule_that_matches_decides_and_none_permits() {
    let (worker, other) = (node("worker", Role::Linear, &[]), node("other", Role::Linear, &[]));
    let rules = [
        rule("small-models", PolicyTarget::Model, &["openai/*-mini"], &[], true),
        rule("worker-models", PolicyTarget::Model, &["openai/*"], &["work*"], false),
        rule("no-global", PolicyTarget::Context, &["global"], &[], false),
        rule("never", PolicyTarget::Node, &["other"], &[], false),
    ];
    let decided = |node: &Node, what: Use<'_>| denied_by(decide(&rules, node, &what));
    assert_eq!(decided(&worker, Use::Model("openai/gpt-mini")), None);
    assert_eq!(decided(&worker, Use::Model("openai/gpt")).unwrap(), "worker-models");
    assert_eq!(decided(&other, Use::Model("openai/gpt")), None);
    assert_eq!(decided(&worker, Use::Context(StoreKind::Global)).unwrap(), "no-global");
    assert_eq!(decided(&worker, Use::Context(StoreKind::Task)), None);
    assert_eq!(decided(&other, Use::Node).unwrap(), "never");
    assert_eq!(decided(&worker, Use::Node), None);
}

#[test]
fn s10_5_a_rule_of_a_model_holds_for_agents_that_name_none_too() {
    let node = node("worker", Role::Linear, &[]);
    let denied = |names: &[&str], what: Use<'_>| {
        denied_by(decide(&[rule("r", PolicyTarget::Model, names, &[], false)], &node, &what)).is_some()
    };
    let default = Use::DefaultModel(Some("openai/gpt"));
    assert!(denied(&["openai/*"], default) && denied(&["default"], default) && denied(&["*"], default));
    assert!(!denied(&["anthropic/*"], default) && !denied(&["default"], Use::Model("openai/gpt")));
    assert!(denied(&["default"], Use::DefaultModel(None)) && !denied(&["openai/*"], Use::DefaultModel(None)));
}

#[test]
fn s10_5_a_rule_without_names_or_nodes_is_about_all_of_its_kind() {
    let node = node("worker", Role::Linear, &["notes"]);
    let rules = [rule("none", PolicyTarget::Tool, &[], &[], false)];
    assert_eq!(denied_by(decide(&rules, &node, &Use::Tool(&builtin("notes")))).unwrap(), "none");
    assert!(decide(&rules, &node, &Use::Model("m")).permits());
}

#[test]
fn patterns() {
    for (pattern, name, expected) in [
        ("*", "", true),
        ("a*", "abc", true),
        ("*c", "abc", true),
        ("a*c", "abcbc", true),
        ("a*b*c", "a-b-c", true),
        ("a*b*c", "a-c-b", false),
        ("ab*ba", "aba", false),
        ("a", "ab", false),
        ("", "", true),
        ("**", "x", true),
    ] {
        assert_eq!(is_like(pattern, name), expected, "{pattern} {name}");
    }
}

proptest! {
    /// The same as the plain definition: a star is any split of the rest.
    #[test]
    fn patterns_are_what_they_say(pattern in "[ab*]{0,7}", name in "[ab]{0,8}") {
        fn naive(pattern: &str, name: &str) -> bool {
            match pattern.chars().next() {
                None => name.is_empty(),
                Some('*') => (0..=name.len()).any(|cut| naive(&pattern[1..], &name[cut..])),
                Some(each) => name.starts_with(each) && naive(&pattern[1..], &name[1..]),
            }
        }
        prop_assert_eq!(is_like(&pattern, &name), naive(&pattern, &name));
    }

    /// With any rules, a tool that a node does not list is never permitted.
    #[test]
    fn s5_no_policy_lets_a_node_call_what_it_does_not_list(
        names in prop::collection::vec("[a-c*]{1,3}", 0..3), allow in any::<bool>(), id in "[a-c]{1,2}",
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let rules = [rule("r", PolicyTarget::Tool, &names, &[], allow)];
        let node = node("n", Role::Linear, &["listed"]);
        prop_assert!(!decide(&rules, &node, &Use::Tool(&builtin(&id))).permits());
    }
}
