#![expect(clippy::unwrap_used, reason = "tests")]
mod names;

use super::*;
use domain::{FilePath, Principal, UserId};
use proptest::prelude::*;
use std::sync::Arc;

const ANN: &str = "11111111-1111-4111-8111-111111111111";
const BOB: &str = "22222222-2222-4222-8222-222222222222";

fn id(text: &str) -> UserId {
    text.parse().unwrap()
}

fn person(who: &str, role: Role) -> Subject {
    Subject::Person { id: id(who), role: Some(role) }
}

fn agent(of: &str) -> Subject {
    Subject::Agent { persona: "assistant".into(), person: id(of), has_home: true }
}

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

fn own(text: &str) -> Arc<Policies> {
    Arc::new(Policies::with(&[Source { name: "/system/policies/team.cedar", text }]).unwrap())
}

/// The decision in one line: effect and policy.
fn told(set: &Policies, subject: &Subject, action: Action, at: &str) -> String {
    let Decision { effect, policy, .. } = set.decide(subject, action, &path(at));
    format!("{effect:?} {policy}")
}

fn check(set: &Policies, subject: &Subject, expected: &[(Action, &str, &str)]) {
    for (action, at, decision) in expected {
        assert_eq!(told(set, subject, *action, at), *decision, "{subject} {action} {at}");
    }
}

#[test]
fn the_built_in_policies_and_actions_fit_the_schema() {
    let text = include_str!("builtin.cedar");
    crate::text::policies(Source { name: "builtin.cedar", text }, false).unwrap();
    let declared = crate::text::SCHEMA.action_entities().unwrap();
    let actions: Vec<_> = Action::ALL.into_iter().map(crate::entities::action_entity).collect();
    for action in &actions {
        assert!(declared.get(&action.uid()).is_some(), "{action}");
        for group in ["look", "change"] {
            let group = format!("Action::\"{group}\"").parse().unwrap();
            let is_in = |all: &cedar_policy::Entities| all.is_ancestor_of(&group, &action.uid());
            let own = cedar_policy::Entities::from_entities(actions.clone(), None).unwrap();
            assert_eq!(is_in(&own), is_in(&declared), "{action} in {group}");
        }
    }
    assert_eq!(declared.len(), actions.len() + 2);
}

#[test]
fn agents_write_the_shared_folders_and_ask_for_system() {
    let home = format!("/users/{ANN}/draft.md");
    check(
        &Policies::builtin(),
        &agent(ANN),
        &[
            (Action::Write, "/projects/app/main.rs", "Permit agent-works-in-projects"),
            (Action::Delete, "/projects/app", "Permit agent-works-in-projects"),
            (Action::Write, "/chats/x/plan.md", "Permit agent-writes-in-chats"),
            (Action::Write, "/data/a.csv", "Permit agent-writes-data"),
            (Action::Write, &home, "Permit agent-has-home-of-person"),
            (Action::Write, "/notes.md", "Permit agent-writes-shared"),
            (Action::Write, "/flows/x/workflow.yaml", "Permit agent-writes-shared"),
            (Action::Write, "/system/agents/a/AGENT.md", "Ask agent-asks-for-system"),
            (Action::Move, "/system/skills/s", "Ask agent-asks-for-system"),
            (Action::Write, "/system/policies/p.cedar", "Deny policies-are-kept-by-admins"),
            (Action::Read, "/system/agents/a/AGENT.md", "Permit agent-looks"),
            (Action::Purge, "/projects/app", "Deny nothing-permits"),
            (Action::Share, "/projects/app", "Deny nothing-permits"),
            (Action::Write, "/systemic.md", "Permit agent-writes-shared"),
        ],
    );
}

#[test]
fn a_home_exists_for_its_person_and_their_agents_alone() {
    let set = Policies::builtin();
    let (home, file) = (format!("/users/{ANN}"), format!("/users/{ANN}/drafts/a.md"));
    let others = [
        person(BOB, Role::Owner),
        person(BOB, Role::Viewer),
        agent(BOB),
        Subject::Task { person: id(BOB), has_home: true },
    ];
    for other in others.iter().chain(&[Subject::Service { name: "sandbox" }]) {
        for action in Action::ALL {
            for at in [&home, &file] {
                assert_eq!(told(&set, other, action, at), "Deny home-is-private", "{other} {action}");
                assert!(!set.shows(other, &path(at)));
            }
        }
        assert!(set.shows(other, &path("/users")));
    }
    for own in [person(ANN, Role::Viewer), agent(ANN), Subject::Task { person: id(ANN), has_home: true }] {
        assert!(set.shows(&own, &path(&file)));
        assert!(set.decide(&own, Action::Write, &path(&file)).is_permit());
    }
}

#[test]
fn setups_of_a_persons_agents_are_changed_by_the_person_or_with_a_question() {
    let set = Policies::builtin();
    let home = |below: &str| format!("/users/{ANN}{below}");
    let setups = ["/personas", "/personas/poet/AGENT.md", "/skills/rhyme/SKILL.md", "/profile.md"];
    let setups = setups.into_iter().chain(["/daily-brief.md", "/calendars/work.yaml"]).map(home).collect::<Vec<_>>();
    let task = Subject::Task { person: id(ANN), has_home: true };
    for at in &setups {
        let at = at.as_str();
        check(
            &set,
            &agent(ANN),
            &[
                (Action::Read, at, "Permit agent-looks"),
                (Action::Write, at, "Ask agent-asks-for-setup"),
                (Action::Delete, at, "Ask agent-asks-for-setup"),
            ],
        );
        check(&set, &task, &[(Action::Read, at, "Permit task-looks"), (Action::Write, at, "Deny nothing-permits")]);
        check(&set, &person(ANN, Role::Viewer), &[(Action::Write, at, "Permit person-has-home")]);
        check(&set, &agent(BOB), &[(Action::Write, at, "Deny home-is-private")]);
    }
    let beside = ["/personas.md", "/drafts/personas/poet/AGENT.md", "/drafts/profile.md", "/brief.md"];
    for beside in beside.into_iter().chain(["/calendars/work.sync.json", "/drafts/calendars/work.yaml"]).map(home) {
        check(&set, &agent(ANN), &[(Action::Write, &beside, "Permit agent-has-home-of-person")]);
    }
    let all = |at: &str| set.decide_tree(&agent(ANN), Action::Move, &path(at)).map(|decision| decision.effect);
    assert_eq!(all(&home("/drafts")), Some(Effect::Permit));
    for folder in ["", "/calendars"] {
        assert_eq!(all(&home(folder)), Some(Effect::Ask), "a folder goes with its setups");
        assert_eq!(set.decide_in(&agent(ANN), Action::Write, &path(&home(folder))), None, "they differ in it");
    }
}

#[test]
fn a_home_in_other_letters_belongs_to_nobody() {
    const HEX: &str = "abcdefab-1111-4111-8111-111111111111";
    let set = Policies::builtin();
    let forms = [HEX.to_uppercase(), HEX.replace('-', ""), format!("{{{HEX}}}"), format!("urn:uuid:{HEX}")];
    for form in forms {
        for who in [person(HEX, Role::Owner), person(ANN, Role::Owner), agent(HEX)] {
            let at = format!("/users/{form}/a.md");
            assert_eq!(told(&set, &who, Action::Write, &at), "Deny home-is-private", "{who} {at}");
        }
    }
    assert!(set.shows(&person(HEX, Role::Viewer), &path(&format!("/users/{HEX}/a.md"))));
}

#[test]
fn people_may_do_what_their_role_allows() {
    let set = Policies::builtin();
    check(
        &set,
        &person(ANN, Role::Viewer),
        &[
            (Action::Read, "/projects/a.md", "Permit person-looks"),
            (Action::Write, "/projects/a.md", "Deny nothing-permits"),
        ],
    );
    check(
        &set,
        &person(ANN, Role::Editor),
        &[
            (Action::Write, "/system/agents/a/AGENT.md", "Permit editor-changes"),
            (Action::Write, "/system/policies/p.cedar", "Deny policies-are-kept-by-admins"),
            (Action::Move, "/system/policies", "Deny policies-are-kept-by-admins"),
            (Action::Purge, "/projects/a.md", "Deny nothing-permits"),
        ],
    );
    check(
        &set,
        &person(ANN, Role::Admin),
        &[
            (Action::Write, "/system/policies/p.cedar", "Permit editor-changes"),
            (Action::Purge, "/projects/a.md", "Permit admin-purges"),
        ],
    );
    let local = Subject::of(&Principal::local(), None);
    for at in ["/system/policies/p.cedar", "/projects/a.md", &format!("/users/{ANN}/a.md")] {
        assert!(set.decide(&local, Action::Write, &path(at)).is_permit(), "{at}");
    }
    let agent = Subject::Agent { persona: "a".into(), person: Principal::local().user(), has_home: true };
    assert!(!set.shows(&agent, &path(&format!("/users/{ANN}/a.md"))), "an agent has the home of its person alone");
}

#[test]
fn a_workspace_takes_away_adds_and_asks() {
    let set = own(r#"
        @id("legal-is-by-hand") @why("lawyers write it")
        forbid (principal is Agent, action in Action::"change", resource in Path::"/projects/legal");
        @id("ask-for-data") @decision("ask")
        forbid (principal is Agent, action == Action::"write", resource in Path::"/data");
        @id("tasks-set-up-agents")
        permit (principal is Task, action == Action::"write", resource in Path::"/system/agents");
        @id("hidden")
        forbid (principal, action == Action::"list", resource == Path::"/vault") unless { principal in Role::"owner" };
        @id("no-homes")
        permit (principal, action, resource);
    "#);
    let at = |id: &str| format!("/system/policies/team.cedar#{id}");
    check(
        &set,
        &agent(ANN),
        &[
            (Action::Write, "/projects/legal/a.md", &format!("Deny {}", at("legal-is-by-hand"))),
            (Action::Write, "/projects/other/a.md", "Permit agent-works-in-projects"),
            (Action::Write, "/data/a.csv", &format!("Ask {}", at("ask-for-data"))),
            (Action::Delete, "/data/a.csv", "Permit agent-writes-data"),
            (Action::Read, "/vault/deep/a.md", &format!("Deny {}", at("hidden"))),
        ],
    );
    check(
        &set,
        &Subject::Task { person: id(ANN), has_home: true },
        &[(Action::Write, "/system/agents/a/AGENT.md", &format!("Permit {}", at("tasks-set-up-agents")))],
    );
    assert!(!set.shows(&person(ANN, Role::Admin), &path("/vault/deep")), "what is in a hidden folder is hidden");
    assert!(set.shows(&person(ANN, Role::Owner), &path("/vault/deep")));
    assert!(!set.shows(&person(BOB, Role::Owner), &path(&format!("/users/{ANN}"))), "no permit gives away a home");
}

#[test]
fn a_party_without_a_home_finds_none_and_keeps_the_rest() {
    let set = Policies::builtin();
    let home = path(&format!("/users/{ANN}/draft.md"));
    for with in [agent(ANN), Subject::Task { person: id(ANN), has_home: true }] {
        let without = with.clone().without_home();
        assert!(set.shows(&with, &home) && !set.shows(&without, &home), "{without}");
        for action in Action::ALL {
            assert!(!set.decide(&without, action, &home).is_permit(), "{without} {action}");
            let at = path("/projects/a.md");
            assert_eq!(set.decide(&with, action, &at), set.decide(&without, action, &at), "{without} {action}");
        }
    }
    // A policy about the person binds it as before.
    let set = own(&format!(
        r#"forbid (principal is Task, action == Action::"write", resource) when {{ principal.person == Person::"{ANN}" }};"#
    ));
    let task = Subject::Task { person: id(ANN), has_home: true }.without_home();
    assert!(!set.decide(&task, Action::Write, &path("/projects/a.md")).is_permit());
}

#[test]
fn a_policy_can_be_about_one_persona() {
    let set =
        own(r#"forbid (principal == Agent::"reviewer", action == Action::"write", resource in Path::"/projects");"#);
    let of = |persona: &str| Subject::Agent { persona: persona.into(), person: id(ANN), has_home: true };
    let at = path("/projects/a/b.rs");
    assert!(!set.decide(&of("reviewer"), Action::Write, &at).is_permit());
    assert!(set.decide(&of("reviewer"), Action::Read, &at).is_permit());
    assert!(set.decide(&of("builder"), Action::Write, &at).is_permit());
}

#[test]
fn a_tree_is_decided_on_with_all_that_is_in_it() {
    let set = own(r#"forbid (principal is Agent, action, resource in Path::"/projects/legal/signed") when { true };"#);
    let (ann, tree) = (agent(ANN), |at: &str| own_tree(&set, &agent(ANN), at));
    assert_eq!(tree("/projects/legal"), Some(Effect::Deny), "a part of it may not be moved");
    assert_eq!(tree("/projects/other"), Some(Effect::Permit));
    let only =
        own(r#"forbid (principal, action == Action::"move", resource) unless { resource == Path::"/projects/a" };"#);
    assert_eq!(own_tree(&only, &ann, "/projects/a"), Some(Effect::Deny));
    let by_name = own(r#"forbid (principal is Agent, action, resource) when { resource.name like "*.env" };"#);
    assert_eq!(own_tree(&by_name, &ann, "/projects/a"), None, "each file has to be looked at");
    assert_eq!(told(&by_name, &ann, Action::Read, "/projects/a/.env").split(' ').next(), Some("Deny"));
    assert!(by_name.decide(&ann, Action::Read, &path("/projects/a/b.rs")).is_permit());
}

fn own_tree(set: &Policies, subject: &Subject, at: &str) -> Option<Effect> {
    set.decide_tree(subject, Action::Move, &path(at)).map(|decision| decision.effect)
}

#[test]
fn a_fault_has_its_line_and_column() {
    let fault = |text: &str| {
        let fault = Policies::with(&[Source { name: "p.cedar", text }]).unwrap_err();
        (fault.line, fault.column, fault.message)
    };
    let (line, column, message) =
        fault("permit (principal, action, resource);\n\nforbid (principal, acton, resource);");
    assert_eq!((line, column), (3, 20), "{message}");
    let (line, _, message) = fault("permit (principal, action, resource)\n  when { principal.age > 3 };");
    assert!(line >= 1 && message.contains("age"), "{line}: {message}");
    let (.., message) = fault("permit (principal == ?principal, action, resource);");
    assert!(message.contains("template"), "{message}");
    let (.., message) = fault("@decision(\"maybe\") permit (principal, action, resource);");
    assert!(message.contains("maybe"), "{message}");
    let (.., message) =
        fault("@id(\"a\") permit (principal, action, resource); @id(\"a\") permit (principal, action, resource);");
    assert!(message.contains("two policies"), "{message}");
    let (.., message) = fault(&format!(
        "permit (principal, action, resource) when {{ {}true{} }};",
        "(".repeat(5000),
        ")".repeat(5000)
    ));
    assert!(message.contains("deeper"), "{message}");
    let (.., message) = fault("permit (principal, action, resource in Path::\"projects\");");
    assert!(message.contains("projects"), "{message}");
    let (.., message) = fault("forbid (principal, action, resource) when { Path::\"/a\" in resource };");
    assert!(message.contains("left of"), "{message}");
    let (.., message) = fault(&" ".repeat(MAX_TEXT + 1));
    assert!(message.contains("bytes"), "{message}");
}

#[test]
fn a_policy_that_cannot_be_evaluated_denies() {
    // `+` overflows: Cedar would pass over the policy, and so over what it forbids.
    let set = own(
        r#"forbid (principal is Agent, action == Action::"write", resource) when { 9223372036854775807 + 1 > 0 };"#,
    );
    assert_eq!(told(&set, &agent(ANN), Action::Write, "/projects/a.md"), "Deny no-decision");
}

#[test]
fn the_cache_gives_what_an_evaluation_gives() {
    let text = r#"
        forbid (principal is Agent, action == Action::"write", resource == Path::"/projects/a");
        forbid (principal is Agent, action == Action::"write", resource in Path::"/projects/a/b/c");
        forbid (principal, action == Action::"delete", resource) when { resource in [Path::"/projects/a/b", Path::"/z"] };
    "#;
    let (warm, homes) = (own(text), [format!("/users/{ANN}"), format!("/users/{BOB}"), format!("/users/{ANN}/a/b")]);
    let setups = ["personas", "personas/poet/AGENT.md", "profile.md", "calendars/a.yaml", "calendars/a.json"];
    let setups = setups.map(|part| format!("/users/{ANN}/{part}"));
    let homes = homes.into_iter().chain(setups);
    let parts = ["", "/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/x", "/z", "/z/a"];
    let paths = parts.iter().map(|part| format!("/projects{part}")).chain(homes).chain(["/".into(), "/users".into()]);
    for at in paths {
        for subject in [agent(ANN), agent(BOB), person(ANN, Role::Editor)] {
            for action in Action::ALL {
                let fresh = own(text).decide(&subject, action, &path(&at));
                assert_eq!(warm.decide(&subject, action, &path(&at)), fresh, "{subject} {action} {at}");
            }
        }
    }
}

#[test]
fn a_folder_decides_for_what_is_in_it_where_nothing_in_it_is_named() {
    let set = own(r#"
        forbid (principal is Agent, action == Action::"read", resource == Path::"/projects/a");
        forbid (principal is Agent, action == Action::"read", resource in Path::"/projects/b/c");
        forbid (principal, action == Action::"list", resource == Path::"/vault");
    "#);
    let folders = ["/", "/projects", "/projects/a", "/projects/b", "/projects/b/c", "/projects/x", "/vault", "/users"];
    let homes = [format!("/users/{ANN}"), format!("/users/{BOB}"), format!("/users/{ANN}/a")];
    let names = ["-", "a", "b", "c", "x.md", ANN, BOB, "vault", "users", "projects"];
    let mut decided = Vec::new();
    for folder in folders.into_iter().map(str::to_owned).chain(homes) {
        for subject in [agent(ANN), agent(BOB), person(ANN, Role::Editor)] {
            for action in Action::ALL {
                let Some(decision) = set.decide_in(&subject, action, &path(&folder)) else { continue };
                decided.push(folder.clone());
                for name in names {
                    let inside = path(&folder).join(name).unwrap();
                    assert_eq!(set.decide(&subject, action, &inside), decision, "{subject} {action} {inside}");
                }
            }
        }
    }
    decided.dedup();
    let expected = ["/projects/a", "/projects/b/c", "/projects/x", "/vault"].map(str::to_owned);
    assert_eq!(decided[..4], expected, "others have something that is named");
    assert!(decided.contains(&format!("/users/{ANN}/a")) && !decided.contains(&format!("/users/{ANN}")));
    let by_name = own(r#"forbid (principal is Agent, action, resource) when { resource.name like "*.env" };"#);
    assert_eq!(by_name.decide_in(&agent(ANN), Action::Read, &path("/projects/x")), None);
}

#[test]
fn a_condition_may_ask_for_the_group_of_an_action_that_is_not_asked_for() {
    let named = |group: &str| {
        let condition = format!(
            "when {{ (if action == Action::\"read\" then Action::\"move\" else action) in Action::\"{group}\" }}"
        );
        own(&format!("@id(\"no\") forbid (principal is Agent, action == Action::\"read\", resource) {condition};"))
    };
    let read = |set: &Policies| told(set, &agent(ANN), Action::Read, "/projects/app/main.rs");
    assert_eq!(read(&named("change")), "Deny /system/policies/team.cedar#no");
    assert!(read(&named("look")).starts_with("Permit "), "{}", read(&named("look")));
}

#[test]
fn a_policy_about_names_leaves_the_other_actions_to_folders() {
    let set = own(
        r#"forbid (principal is Agent, action in Action::"change", resource) when { resource.name like "*.env" };"#,
    );
    let tree = |action| set.decide_tree(&agent(ANN), action, &path("/projects/x")).map(|decision| decision.effect);
    assert_eq!(tree(Action::Read), Some(Effect::Permit));
    assert_eq!(tree(Action::Write), None, "each file has to be looked at");
    for (at, may) in [("/projects/x/a.rs", true), ("/projects/x/.env", false), ("/projects/x/b.rs", true)] {
        assert_eq!(set.decide(&agent(ANN), Action::Write, &path(at)).is_permit(), may, "{at}");
        assert!(set.decide(&agent(ANN), Action::Read, &path(at)).is_permit(), "{at}");
    }
}

/// Heads of policies, and what may follow them: also conditions that fail.
fn policy() -> impl Strategy<Value = String> {
    let principals = [
        "principal",
        "principal is Agent",
        "principal is Person",
        "principal is Task",
        "principal == Agent::\"reviewer\"",
        "principal in Role::\"editor\"",
        "principal is Person in Role::\"admin\"",
    ];
    let actions = [
        "action",
        "action == Action::\"write\"",
        "action == Action::\"share\"",
        "action in Action::\"look\"",
        "action in [Action::\"change\", Action::\"purge\"]",
    ];
    let resources = [
        "resource",
        "resource is Path",
        "resource == Path::\"/projects/a\"",
        "resource in Path::\"/\"",
        "resource in Path::\"/projects/a\"",
        "resource is Path in Path::\"/projects/a/b\"",
        "resource in Path::\"/data\"",
        "resource in Area::\"homes\"",
        "resource in Area::\"setups\"",
    ];
    let conditions = [
        "",
        "when { resource in Path::\"/projects\" }",
        "unless { resource == Path::\"/projects/a\" }",
        "when { resource.name like \"*.md\" }",
        "when { 9223372036854775807 + 1 > 0 }",
    ];
    let effects = ["permit", "forbid", "@decision(\"ask\") permit", "@decision(\"ask\") forbid"];
    let one = |values: &[&'static str]| prop::sample::select(values.to_vec());
    (one(&effects), one(&principals), one(&actions), one(&resources), one(&conditions)).prop_map(
        |(effect, principal, action, resource, condition)| {
            format!("{effect} ({principal}, {action}, {resource}) {condition};\n")
        },
    )
}

fn subject() -> impl Strategy<Value = Subject> {
    let mut all = vec![
        Subject::Person { id: id(ANN), role: None },
        Subject::of(&Principal::local(), None),
        Subject::Agent { persona: "reviewer".into(), person: id(ANN), has_home: true },
        agent(BOB),
        agent(ANN).without_home(),
        Subject::Task { person: id(ANN), has_home: true },
        Subject::Service { name: "sandbox" },
    ];
    all.extend(Role::ALL.map(|role| person(ANN, role)));
    prop::sample::select(all)
}

/// A subject, an action and a path.
fn asked() -> impl Strategy<Value = (Subject, Action, FilePath)> {
    let homes = ["", "/profile.md", "/a/b.md"].map(|below| format!("/users/{ANN}{below}"));
    let shared = [
        "/",
        "/projects",
        "/projects/a",
        "/projects/a/b",
        "/projects/a/b/c.md",
        "/projects/ab",
        "/data/x.csv",
        "/system/policies/p.cedar",
        "/users",
    ];
    let paths: Vec<FilePath> = shared.map(str::to_owned).iter().chain(&homes).map(|text| path(text)).collect();
    (subject(), prop::sample::select(Action::ALL.to_vec()), prop::sample::select(paths))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The policies out of whose scope a request is change nothing: not the decision, not the policies that decide, and not the errors.
    #[test]
    fn a_slice_answers_as_the_whole_set(
        texts in prop::collection::vec(policy(), 0..8),
        requests in prop::collection::vec(asked(), 16),
    ) {
        let text = texts.concat();
        let set = Policies::with(&[Source { name: "p.cedar", text: &text }]);
        let set = set.map_err(|error| TestCaseError::reject(error.to_string()))?;
        for (subject, action, at) in requests {
            let [slice, whole] = set.by_slice_and_whole(&subject, action, &at).unwrap();
            prop_assert_eq!(slice, whole, "{} {} {}\n{}", subject, action, at, text);
        }
    }
}
