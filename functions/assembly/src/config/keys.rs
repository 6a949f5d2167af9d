//! Each key reaches the setting that a part is made with. The tests of the parts prove the effect of a setting.

use super::*;
use domain::{ExecutorLimits, session::SessionBudget};
use models::{Api, Effort, Price, RetryPolicy};

fn of(text: &str) -> Config {
    Sources::of_text(text, &[]).read().unwrap_or_else(|fault| panic!("{text}\n{fault}"))
}

#[test]
fn each_key_of_chats_tasks_and_files_reaches_its_setting() {
    let config = of("[ai]\n\
        actor_inactivity_timeout_seconds = 11\ncontext_cache_seconds = 12\ncontext_tokens = 13\n\
        question_timeout_seconds = 14\npermission_timeout_seconds = 15\n\
        [ai.limits]\nmax_steps = 16\nmax_tokens = 17\nmax_wall_ms = 18\nmax_cost_usd = 1.9\n\
        [tasks]\nmax_waiting = 20\nhandoff_depth = 21\nhandoffs_per_minute = 22\n\
        [files]\nconvert = false\ntrash_days = 23\nscrub_days = 24\n");
    let settings = config.agents();
    let times = [settings.inactivity, settings.context_cache, settings.question_timeout, settings.permission_timeout];
    assert_eq!(times, [11, 12, 14, 15].map(Duration::from_secs));
    assert_eq!(settings.context_tokens, 13);
    assert_eq!(settings.limits, Limits { max_steps: 16, max_tokens: 17, max_wall_ms: 18, max_cost_usd: 1.9 });
    assert_eq!(settings.most_waiting, 20);
    assert_eq!(settings.handoffs, HandoffLimits { depth: 21, per_minute: 22 });
    assert!(!settings.converts && Config::default().agents().converts);
    let days = |days: u64| Duration::from_secs(days * 24 * 3600);
    assert_eq!((config.files.trash_kept(), config.files.scrub_every()), (days(23), Some(days(24))));
    assert_eq!(of("[files]\nscrub_days = 0\n").files.scrub_every(), None, "never");
}

#[test]
fn each_key_of_the_planner_reaches_its_sessions() {
    let sessions = of("[planner]\n\
        context_tokens = 9001\nconversation_tokens = 101\nlocation_tokens = 102\nprofile_tokens = 103\ntask_tokens = 104\n\
        data_tokens = 105\nresult_tokens = 106\ntools_tokens = 107\nexecutor_tools_tokens = 108\nexecutors_at_once = 9\n\
        executor_calls = 11\nexecutor_retries = 12\nexecutor_seconds = 13\nexecutor_tokens = 1400\n")
    .agents()
    .sessions;
    let budgets = SessionBudget {
        conversation: 101,
        location: 102,
        profile: 103,
        task: 104,
        data: 105,
        results: 106,
        tools: 107,
        executor_tools: 108,
    };
    let executors =
        ExecutorLimits { at_once: 9, max_calls: 11, max_retries: 12, max_wall_ms: 13_000, max_tokens: 1_400 };
    assert_eq!((sessions.context_tokens, sessions.budgets, sessions.executors), (9_001, budgets, executors));
}

#[test]
fn each_key_of_models_reaches_their_providers() {
    let config = of("[ai]\n\
        model = \"openai/gpt-5\"\nreasoning = \"high\"\nmax_output_tokens = 11\nscript = \"play.yaml\"\n\
        [ai.ollama]\napi_key = \"k\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi = \"responses\"\nmodels = [\"llama3\"]\nmedia = true\n\
        [ai.bedrock]\nregion = \"eu-west-1\"\n\
        [ai.prices.\"llama3\"]\ninput = 1\noutput = 2\ncached = 3\ncache_write = 4\n\
        [ai.retry]\nattempts = 21\nbase_ms = 22\ncap_ms = 23\nretry_after_cap_ms = 24\nfirst_ms = 25\nstall_ms = 26\n");
    let models = config.ai.models(&[]).expect("models");
    assert_eq!((models.model.as_deref(), models.reasoning), (Some("openai/gpt-5"), Some(Effort::High)));
    assert_eq!((models.max_output_tokens, models.script), (Some(11), Some(PathBuf::from("play.yaml"))));
    let ollama = &models.ollama;
    assert_eq!(ollama.api_key.as_ref().map(|key| key.expose().to_owned()).as_deref(), Some("k"));
    assert_eq!((ollama.base_url.as_deref(), ollama.api), (Some("http://127.0.0.1:1/v1"), Some(Api::Responses)));
    assert_eq!((ollama.models.as_slice(), ollama.media), (["llama3".to_owned()].as_slice(), Some(true)));
    assert_eq!(models.bedrock.region.as_deref(), Some("eu-west-1"));
    let price = Price { input: 1.0, output: 2.0, cached: Some(3.0), cache_write: Some(4.0) };
    assert_eq!(models.prices.get("llama3"), Some(&price));
    let (attempts, base_ms, cap_ms, retry_after_cap_ms, first_ms, stall_ms) = (21, 22, 23, 24, 25, 26);
    assert_eq!(models.retry, RetryPolicy { attempts, base_ms, cap_ms, retry_after_cap_ms, first_ms, stall_ms });
}

#[test]
fn each_key_of_traces_webhooks_and_searches_reaches_its_adapter() {
    let config = of("[telemetry]\n\
        otlp_endpoint = \"http://127.0.0.1:4318\"\notlp_headers_secret = \"a=b\"\nservice_name = \"house\"\ncontent = true\n\
        [webhooks]\nsecret = \"a key of at least thirty-two bytes in all\"\nretry_seconds = 7\n\
        [search]\nembedding_model = \"openai/text-embedding-3-small\"\nembedding_dimensions = 8\n");
    let collector = config.telemetry.collector();
    assert_eq!(collector.endpoint.as_deref(), Some("http://127.0.0.1:4318"));
    assert_eq!(collector.headers.map(|headers| headers.expose().to_owned()).as_deref(), Some("a=b"));
    assert_eq!((collector.service_name.as_deref(), collector.content), (Some("house"), true));
    let first = config.webhooks(None).ok().flatten().map(|setup| setup.pace.first);
    assert_eq!(first, Some(Duration::from_secs(7)));
    let space = config.embedder(&[]).ok().flatten().map(|embedder| embedder.space().to_owned());
    assert_eq!(space.as_deref(), Some("openai/text-embedding-3-small#8"));
}
