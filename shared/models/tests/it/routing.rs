//! The choice of a model, and its description in the catalogue.

use crate::support::{Anywhere, Server, deltas, error, request, user};
use buildscale_models::{Adapters, Config, Router, Scripted};
use ports::{Delta, Endpoint, Model, ModelAdapters, ModelError, Secret};
use serde_json::{Value, json};
use std::sync::Arc;

fn router(variables: &[(&str, &str)]) -> Router {
    let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Router::new(Config::from_lookup(None, find)).unwrap()
}

#[test]
fn the_default_model_is_the_configured_one_then_the_first_provider_then_the_script_then_the_demo() {
    let check = |variables: &[(&str, &str)], default: &str, none: bool| {
        let router = router(variables);
        assert_eq!((router.default_model(), router.no_model_configured()), (default, none), "{variables:?}");
        let defaults: Vec<_> = router.catalog().into_iter().filter(|info| info.default).collect();
        assert_eq!(defaults.iter().map(|info| info.id.as_str()).collect::<Vec<_>>(), [default]);
    };
    check(&[], "scripted/demo", true);
    check(&[("OPENAI_API_KEY", "sk-x")], "openai/gpt-5-mini", false);
    check(&[("GEMINI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")], "anthropic/claude-sonnet-4-5", false);
    check(&[("OLLAMA_BASE_URL", "http://127.0.0.1:11434")], "ollama/auto", false);
    check(&[("OPENROUTER_API_KEY", "k")], "openrouter/openai/gpt-5-mini", false);
    check(&[("OPENAI_API_KEY", "k"), ("BUILDSCALE_MODEL", "claude-haiku-4-5")], "anthropic/claude-haiku-4-5", false);
    check(&[("OPENAI_BASE_URL", "http://h/v1"), ("BUILDSCALE_MODEL", "qwen3:8b")], "openai/qwen3:8b", false);
    check(
        &[("OPENROUTER_API_KEY", "k"), ("BUILDSCALE_MODEL", "meta-llama/llama-3")],
        "openrouter/meta-llama/llama-3",
        false,
    );
    check(&[("BUILDSCALE__AI__MODEL", "scripted/demo")], "scripted/demo", false);
    check(&[("BUILDSCALE_MODEL", "nonsense")], "nonsense", false);
    let script = ("BUILDSCALE__AI__SCRIPT", concat!(env!("CARGO_MANIFEST_DIR"), "/src/demo.yaml"));
    check(&[script], "scripted/script", false);
    check(&[script, ("OPENAI_API_KEY", "sk-x")], "openai/gpt-5-mini", false);
    check(&[script, ("BUILDSCALE_MODEL", "scripted/demo")], "scripted/demo", false);
}

#[test]
fn the_catalogue_says_what_is_missing() {
    let catalog = router(&[]).catalog();
    let note = |id: &str| {
        catalog.iter().find(|info| info.id == id).map(|info| (info.available, info.note.clone().unwrap_or_default()))
    };
    assert_eq!(note("openai/gpt-5-mini"), Some((false, "set OPENAI_API_KEY to use it".into())));
    assert!(!note("anthropic/claude-sonnet-4-5").unwrap().0);
    assert!(note("scripted/demo").unwrap().1.starts_with("No model is configured"));
    let local = router(&[("OPENAI_BASE_URL", "http://h/v1")]).catalog();
    let available: Vec<_> = local.iter().filter(|info| info.available).map(|info| info.id.as_str()).collect();
    assert_eq!(available, ["openai/auto", "scripted/demo"], "few servers of one's own speak Responses");
    let catalog = router(&[("BUILDSCALE_MODEL", "nonsense")]).catalog();
    let default = catalog.iter().find(|info| info.default).unwrap();
    assert!(!default.available && default.note.as_ref().unwrap().contains("unknown model"), "{default:?}");
    let catalog = router(&[("BUILDSCALE_MODEL", "scripted/none")]).catalog();
    let default = catalog.iter().find(|info| info.default).unwrap();
    assert!(!default.available && default.note.as_ref().unwrap().contains("there is no script"), "{default:?}");
}

#[tokio::test]
async fn models_without_a_key_or_a_known_provider_are_refused_with_advice() {
    let router = router(&[]);
    let ask = |model: &str| error(&router, request(model, vec![user("Hi")])).then_string();
    assert_eq!(
        error(&router, request("gpt-4o-mini", vec![user("Hi")])).await,
        ModelError::Unauthorized("no key for openai: set OPENAI_API_KEY".into())
    );
    assert!(ask("nonsense").await.contains("unknown model"));
    assert!(ask("nobody/x").await.contains("unknown model"));
    assert!(ask("scripted/none").await.contains("there is no model scripted/none"));
}

#[test]
fn a_name_is_known_where_a_provider_or_a_script_takes_it() {
    let check = |variables: &[(&str, &str)], known: &[&str], unknown: &[&str]| {
        let router = router(variables);
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let by_configuration = Config::from_lookup(None, find).name_check();
        for (names, is_known) in [(known, true), (unknown, false)] {
            for name in names {
                assert_eq!((router.knows(name), by_configuration(name)), (is_known, is_known), "{name} {variables:?}");
            }
        }
    };
    let prefixed = ["openai/any-name", "openai-responses/any", "anthropic/x", "bedrock/x", "scripted/demo"];
    check(
        &[],
        &prefixed,
        &["nonsense", "nobody/x", "meta-llama/llama-3", "scripted/none", "scripted/script", "openai/"],
    );
    check(&[], &["gpt-5-mini", "claude-sonnet-4-5", "gemini-2.5-pro"], &["qwen3:8b"]);
    // A server that may serve anything takes names of its own, also those with a slash.
    for variable in [("OPENAI_BASE_URL", "http://h/v1"), ("OLLAMA_BASE_URL", "http://h"), ("OPENROUTER_API_KEY", "k")] {
        check(&[variable], &["nonsense", "qwen3:8b", "meta-llama/llama-3"], &["scripted/none"]);
    }
    let script = ("BUILDSCALE__AI__SCRIPT", concat!(env!("CARGO_MANIFEST_DIR"), "/src/demo.yaml"));
    check(&[script], &["scripted/script", "scripted/demo"], &["scripted/none"]);
}

/// The text of an error that is still coming.
trait ThenString {
    async fn then_string(self) -> String;
}
impl<F: Future<Output = ModelError>> ThenString for F {
    async fn then_string(self) -> String {
        self.await.to_string()
    }
}

#[tokio::test]
async fn scripts_can_be_added() {
    let script = Scripted::from_yaml("rules: [{steps: [{text: 'from {{user}}'}]}]").unwrap();
    let router = router(&[]).with_scripted("mine", Arc::new(script));
    let said = deltas(&router, request("scripted/mine", vec![user("here")])).await;
    assert_eq!(said[0], Delta::Text("from here".into()));
    assert!(router.catalog().iter().any(|info| info.id == "scripted/mine"));
}

#[test]
fn wrong_base_urls_stop_the_start() {
    let config = Config::from_lookup(None, |name| (name == "OPENAI_BASE_URL").then(|| "localhost:8000".into()));
    assert!(Router::new(config).err().unwrap().to_string().contains("openai"));
}

#[tokio::test]
async fn the_config_of_a_provider_of_a_flow_acts_and_its_mistakes_are_named() {
    // It answers 500 each time.
    let server = Server::with(Vec::new()).await;
    let adapters = Adapters::new(Arc::new(server.router()), Arc::new(Anywhere));
    let open = |config: Value| {
        let config = config.as_object().unwrap().clone();
        let base_url = Some(format!("{}/v1", server.0.uri()));
        adapters.open(&Endpoint { adapter: "openai".into(), base_url, key: Some(Secret::new("k")), config })
    };
    let model = open(json!({ "max_output_tokens": 7, "reasoning": "low", "retry": { "attempts": 1 } })).unwrap();
    error(&*model, request("gpt-5-mini", vec![user("Hi")])).await;
    let sent = server.requests().await;
    assert_eq!(sent.len(), 1, "one attempt, where the installation has two");
    let body: Value = serde_json::from_slice(&sent[0].body).unwrap();
    assert_eq!((&body["max_completion_tokens"], &body["reasoning_effort"]), (&json!(7), &json!("low")));
    let wrong = open(json!({ "max_output_token": 7 })).err().unwrap();
    assert!(matches!(&wrong, ModelError::Rejected(why) if why.contains("max_output_token")), "{wrong:?}");
}
