//! Faults of a configuration, with their places.

use super::*;

impl Sources {
    /// A file `buildscale.toml` of this text, and these variables.
    pub(crate) fn of_text(text: &str, environment: &[(&str, &str)]) -> Self {
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let environment = set_variables(&environment).cloned().collect();
        Self { path: "buildscale.toml".into(), text: Some(text.to_owned()), environment }
    }
}

#[test]
fn a_grant_of_what_is_the_hubs_own_is_refused_with_its_place() {
    let refused = |sources: Sources| sources.read().err().map(|error| error.to_string()).unwrap_or_default();
    let text = "[[grants]]\nnames = [\"HOUSE_KEY\"]\nworkspaces = []\nhosts = []\n\n\
        [[grants]]\nnames = [\n  \"*\",\n  \"BUILDSCALE_TOKEN\",\n]\nworkspaces = [\"*\"]\nhosts = [\"*\"]\n";
    let why =
        "BUILDSCALE_TOKEN belongs to the hub itself and is granted to no workspace: use a variable of another name";
    let words = refused(Sources::of_text(text, &[]));
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
    for (text, told) in [
        ("[auth]\ntokens_per_minute = -3\n", "integer `-3`, expected a whole number that is not below 0"),
        ("[files]\ntrash_days = 99999999999\n", "integer `99999999999`, expected a whole number from 0 to 4294967295"),
    ] {
        let words = Sources::of_text(text, &[]).read().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(words.ends_with(told), "{words}");
    }
    let file = Sources::of_text("[ai]\nmodel = \"opnai/gpt-5\"\n", &[]);
    let SetupError::Config(words) = file.refused("ai.model", "no such model") else { panic!("no words") };
    assert_eq!(words, "buildscale.toml, line 2: ai.model: no such model");
}

#[test]
fn every_fault_is_told_in_one_run_with_its_place_and_an_empty_variable_is_none() {
    let text = "[server]\nlisten = 5\ndrain_seconds = \"x\"\n\n[ai]\nmodle = \"x\"\nopenai = 3\n\n[nowhere]\nx = 1\n";
    let told = |environment: &[(&str, &str)]| {
        let (_, faults) = Sources::of_text(text, environment).examine();
        let mut told: Vec<String> = faults.iter().map(ToString::to_string).collect();
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
    let broken = Sources::of_text("[server", &[]);
    assert_eq!(broken.examine().1.len(), 1, "the rest of a file that is none has no faults of its own");
}

/// The configuration of these variables.
fn of(environment: &[(&str, &str)]) -> Result<Config, String> {
    let environment: Vec<_> =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Sources::of_environment(&environment, |_| false).read().map_err(|error| error.to_string())
}

/// The ids of projects at an issuer are numbers, and a template cannot quote them.
#[test]
fn a_value_that_looks_like_a_number_is_a_text_where_a_text_is_wanted() {
    let config = of(&[
        ("BUILDSCALE__AUTH__AUDIENCE", "285945347652345234"),
        ("BUILDSCALE__AUTH__CLI_CLIENT_ID", "true"),
        ("BUILDSCALE__TELEMETRY__SERVICE_NAME", "1.50"),
        ("BUILDSCALE__AI__MODEL", "4"),
        ("BUILDSCALE__MCP__FAR__URL", "\"5\""),
    ])
    .expect("texts");
    let auth = &config.auth;
    assert_eq!((auth.audience.as_deref(), auth.cli_client_id.as_deref()), (Some("285945347652345234"), Some("true")));
    assert_eq!(config.telemetry.service_name.as_deref(), Some("1.50"), "as it is written");
    assert_eq!(config.ai.models.get("model").and_then(Value::as_str), Some("4"));
    assert_eq!(config.mcp["far"].url.as_deref(), Some("5"));
    let wrong = of(&[("BUILDSCALE__SERVER__CORS_ORIGINS", "[1]")]).expect_err("a list of texts");
    assert!(wrong.ends_with("server.cors_origins.0: invalid type: integer `1`, expected a string"), "{wrong}");
}

#[test]
fn a_list_of_models_needs_no_brackets_either() {
    let config = of(&[("BUILDSCALE__AI__OLLAMA__MODELS", "llama3, qwen3:8b")]).expect("a list");
    let models = config.ai.models(&[]).expect("models");
    assert_eq!(models.ollama.models, ["llama3", "qwen3:8b"]);
}

#[test]
fn a_variable_of_a_program_keeps_its_name() {
    let config = of(&[
        ("BUILDSCALE__MCP__LIBRARY__COMMAND", "library"),
        ("BUILDSCALE__MCP__LIBRARY__ENV__API_KEY", "12"),
        ("BUILDSCALE__MCP__LIBRARY__ENV__a__B", "true"),
        ("BUILDSCALE__AGENTS__GEMINI__ENV__GEMINI_API_KEY", "k"),
        ("BUILDSCALE__AGENTS__GEMINI__AUTH", "gemini-api-key"),
    ])
    .expect("programs");
    let library = &config.mcp["library"].env;
    assert_eq!((library["API_KEY"].as_str(), library["a__B"].as_str(), library.len()), ("12", "true", 2));
    let gemini = &config.agents["gemini"];
    assert_eq!((gemini.env["GEMINI_API_KEY"].as_str(), gemini.auth.as_deref()), ("k", Some("gemini-api-key")));
}

#[test]
fn a_format_of_the_log_that_is_none_is_refused_with_those_that_there_are() {
    for format in ["json", "text", " text ", ""] {
        assert!(of(&[("BUILDSCALE_LOG_FORMAT", format)]).is_ok(), "{format:?}");
    }
    for format in ["JSON", "xml", "pretty"] {
        let words = of(&[("BUILDSCALE_LOG_FORMAT", format)]).err().unwrap_or_default();
        assert!(words.contains("BUILDSCALE_LOG_FORMAT: ") && words.ends_with("it is json or text"), "{words}");
    }
}
