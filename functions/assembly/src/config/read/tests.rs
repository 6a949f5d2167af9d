//! Faults of a configuration, with their places.

use super::*;

#[test]
fn a_grant_of_what_is_the_hubs_own_is_refused_with_its_place() {
    let refused = |sources: Sources| sources.read().err().map(|error| error.to_string()).unwrap_or_default();
    let text = "[[grants]]\nnames = [\"HOUSE_KEY\"]\nworkspaces = []\nhosts = []\n\n\
        [[grants]]\nnames = [\n  \"*\",\n  \"BUILDSCALE_TOKEN\",\n]\nworkspaces = [\"*\"]\nhosts = [\"*\"]\n";
    let file = Sources { path: "buildscale.toml".into(), text: Some(text.into()), environment: Vec::new() };
    let why =
        "BUILDSCALE_TOKEN belongs to the hub itself and is granted to no workspace: use a variable of another name";
    let words = refused(file);
    assert!(words.ends_with(&format!("buildscale.toml, line 9: grants.1.names.1: {why}")), "{words}");
    let list = r#"[{ names = ["BUILDSCALE_TOKEN"], workspaces = ["*"], hosts = ["*"] }]"#;
    let words = refused(Sources::of_environment(&[("BUILDSCALE__GRANTS".into(), list.into())], |_| false));
    assert!(words.ends_with(&format!("BUILDSCALE__GRANTS: grants.0.names.0: {why}")), "{words}");
}

#[test]
fn a_wrong_type_is_told_in_words_of_the_file_and_a_later_fault_with_its_place() {
    for (type_of_rust, told) in [
        ("a sequence", "a list"),
        ("a map", "a table"),
        ("struct Server", "a table"),
        ("u64", "a whole number"),
        ("f64", "a number"),
        ("a boolean", "a boolean"),
    ] {
        let words = in_our_words(&[], &format!("invalid type: string \"x\", expected {type_of_rust}"));
        assert_eq!(words, format!("invalid type: string \"x\", expected {told}"));
    }
    let text = "[ai]\nmodel = \"opnai/gpt-5\"\n".to_owned();
    let file = Sources { path: "buildscale.toml".into(), text: Some(text), environment: Vec::new() };
    let SetupError::Config(words) = file.refused("ai.model", "no such model") else { panic!("no words") };
    assert_eq!(words, "buildscale.toml, line 2: ai.model: no such model");
}

#[test]
fn every_fault_is_told_in_one_run_with_its_place_and_an_empty_variable_is_none() {
    let text = "[server]\nlisten = 5\ndrain_seconds = \"x\"\n\n[ai]\nmodle = \"x\"\nopenai = 3\n\n[nowhere]\nx = 1\n";
    let sources = |environment: &[(&str, &str)]| Sources {
        path: "buildscale.toml".into(),
        text: Some(text.to_owned()),
        environment: set_variables(
            &environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>(),
        )
        .cloned()
        .collect(),
    };
    let told = |environment: &[(&str, &str)]| {
        let mut told: Vec<String> = sources(environment).examine().1.iter().map(ToString::to_string).collect();
        told.sort();
        told
    };
    let first = told(&[("BUILDSCALE__AI__CONTEXT_TOKENS", ""), ("BUILDSCALE__SERVER__LISTEN", " ")]);
    let places = [
        "line 2: server.listen",
        "line 3: server.drain_seconds",
        "line 6: ai.modle",
        "line 7: ai.openai",
        "line 9: nowhere",
    ];
    assert_eq!(first.len(), places.len(), "{first:?}");
    for (words, place) in first.iter().zip(places) {
        assert!(words.contains(&format!("buildscale.toml, {place}")), "{first:?}");
    }
    let second = told(&[("BUILDSCALE__AI__CONTEXT_TOKENS", "many"), ("BUILDSCALE__AI__LIMITS__MAX_STEPS", "0")]);
    assert_eq!(second.len(), places.len() + 2, "{second:?}");
    assert!(second.iter().any(|words| words.contains("BUILDSCALE__AI__LIMITS__MAX_STEPS: ai.limits.max_steps")));
    let broken = Sources { path: "buildscale.toml".into(), text: Some("[server".into()), environment: Vec::new() };
    assert_eq!(broken.examine().1.len(), 1, "the rest of a file that is none has no faults of its own");
}
