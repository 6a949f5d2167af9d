//! Memory, models and plugins: the parts of a flow beside its tools (steps 5 and 7).

use super::{Loader, report::nearest, secrets::is_reference};
use crate::{
    flow::{Agent, FlowLimits, Memory, Op, PolicyRule, Profile, Retrieval, Source},
    manifest::{AgentManifest, Credential, Execution, PolicyManifest, ProviderManifest, Settings, TaskBudgetManifest},
};
use domain::{Budget, Limits, chat::OWN_PERSONA};
use std::collections::BTreeMap;

impl Loader<'_> {
    /// Step 5: the context profiles of nodes. The stores themselves are rows of the table.
    pub(super) fn initialise_memory(&mut self) -> Memory {
        let profiles = self.docs.memory.value.context_profiles.iter().map(|profile| {
            let sources = profile.sources.iter();
            let sources = sources.map(|source| Source { store: source.store, tags: source.tags.clone() });
            let policy = profile.retrieval_policy.unwrap_or(Retrieval::Recency);
            let id = profile.id.clone();
            (id.clone(), Profile { id, max_tokens: profile.max_tokens, policy, sources: sources.collect() })
        });
        let profiles = profiles.collect();
        for (place, profile) in self.docs.memory.value.context_profiles.iter().enumerate() {
            if matches!(profile.id.as_str(), "none" | "global") {
                let at = self.docs.memory.at(&format!("/context_profiles/{place}/id"));
                let message = format!("`{}` has a meaning of its own in `context`", profile.id);
                self.faults.add(at, "wrong_value", message, "choose another id");
            }
            let by_meaning = profile.retrieval_policy.filter(|policy| *policy != Retrieval::Recency);
            if by_meaning.is_some() && self.known.embeds == Some(false) {
                let at = self.docs.memory.at(&format!("/context_profiles/{place}/retrieval_policy"));
                let message = format!("`{}` is ranked by words: no embedding model is configured here", profile.id);
                let hint = "nothing needs to be done; to rank by meaning, set search.embedding_model";
                self.faults.note(at, "no_embedding_model", message, hint);
            }
        }
        self.note_what_has_no_effect();
        let stores = self.store_bounds();
        Memory { profiles, stores }
    }

    /// The id of an agent is the name of the persona of its chats, where a `~` means the own persona of a person.
    pub(super) fn check_agent_ids(&mut self) {
        for (place, agent) in self.docs.agents.value.agents.iter().enumerate() {
            let wrong = |letter: char| letter == '/' || letter.is_control();
            if agent.id.contains(wrong) || agent.id.starts_with(OWN_PERSONA) || agent.id.trim() != agent.id {
                let at = self.docs.agents.at(&format!("/agents/{place}/id"));
                let message = format!("`{}` is no id of an agent", agent.id.escape_debug());
                let hint =
                    "an id has no `/`, no line breaks, no space at its ends and no `~` before it; use `_`, `-` or `.`";
                self.faults.refuse(at, "bad_id", message, hint);
            }
        }
    }

    /// How often a node with this operation is tried again when it has no `retries`: as often as its agent says.
    pub(super) fn retries_of_agent(&self, op: &Op) -> u32 {
        let Op::Agent { agent, .. } = op else { return 0 };
        let Some(agent) = self.docs.agents.value.agents.iter().find(|known| known.id == *agent) else { return 0 };
        match (agent.config.retry_on_failure, agent.config.max_retries) {
            (Some(false), _) => 0,
            (Some(true), None) => 1,
            (_, most) => most.unwrap_or_default(),
        }
    }

    /// The limits of the server go before wider ones of agents.
    pub(super) fn note_wide_limits(&mut self) {
        let Some(most) = self.known.limits else { return };
        let seconds = most.max_wall_ms as f64 / 1000.0;
        for (place, agent) in self.docs.agents.value.agents.iter().enumerate() {
            let asked = &agent.limits;
            let timeout = agent.config.timeout.filter(|_| asked.max_seconds.is_none());
            let limits = [
                ("limits/max_steps", asked.max_steps.map(f64::from), f64::from(most.max_steps)),
                ("limits/max_tokens", asked.max_tokens.map(|tokens| tokens as f64), most.max_tokens as f64),
                ("limits/max_seconds", asked.max_seconds, seconds),
                ("config/timeout", timeout, seconds),
                ("limits/max_cost_usd", asked.max_cost_usd, most.max_cost_usd),
            ];
            for (key, asked, most) in limits {
                if asked.is_none_or(|asked| asked <= most) {
                    continue;
                }
                let at = self.docs.agents.at(&format!("/agents/{place}/{key}"));
                let message = format!("`{key}` of `{}` is more than the {most} that this server allows", agent.id);
                self.faults.note(at, "narrowed", message, "the smaller one counts; the operator sets ai.limits");
            }
        }
    }

    /// Every model that an agent names must be of a provider that is there.
    pub(super) fn check_models(&mut self) {
        if !self.docs.providers.listed {
            return;
        }
        for (place, agent) in self.docs.agents.value.agents.iter().enumerate() {
            let Some(llm) = &agent.llm else { continue };
            let at = self.docs.agents.at(&format!("/agents/{place}/llm"));
            let Some((provider, model)) =
                llm.split_once('/').filter(|(provider, model)| !provider.is_empty() && !model.is_empty())
            else {
                let hint = "it is `provider/model`, such as `openai/gpt-4o-mini`";
                self.faults.add(at, "wrong_value", format!("`{llm}` names no model"), hint);
                continue;
            };
            let declared = self.docs.providers.value.providers.iter().find(|declared| declared.id == provider);
            if declared
                .is_some_and(|declared| declared.models.is_empty() || declared.models.iter().any(|name| name == model))
            {
                continue;
            }
            if let Some(declared) = declared {
                let hint =
                    nearest(model, declared.models.iter().map(String::as_str), "providers.yaml").unwrap_or_default();
                self.faults.add(
                    at,
                    "unknown_model",
                    format!("`{provider}` has no model `{model}` in providers.yaml"),
                    hint,
                );
            } else if !self.known.has_model(llm) && !self.docs.providers.ids.contains(provider) {
                let known = || self.known.models.iter().flatten();
                let of_provider = format!("{provider}/");
                let has_provider = known().any(|model| model.starts_with(&of_provider));
                let hint = if has_provider {
                    nearest(llm, known().map(String::as_str), "`buildscale models`")
                } else {
                    let all = self.providers();
                    nearest(provider, all.iter().map(String::as_str), "`buildscale models`")
                };
                let hint =
                    hint.unwrap_or_else(|| "no model is configured; declare the provider in providers.yaml".into());
                let (code, message) = if has_provider {
                    ("unknown_model", format!("`{provider}` has no model `{model}`"))
                } else {
                    ("unknown_provider", format!("there is no provider `{provider}`"))
                };
                self.faults.add(at, code, message, hint);
            }
        }
    }

    /// Step 7: observers and everything else that a flow is configured with. No value of a secret may be among it.
    pub(super) fn load_plugins(&mut self) -> Settings {
        self.check_credentials();
        self.check_adapters();
        self.check_metrics();
        self.check_plugins();
        self.check_execution();
        self.check_versions();
        self.check_schema_revisions();
        let docs = &self.docs;
        Settings {
            providers: docs.providers.value.providers.clone(),
            credentials: docs.credentials.value.provider_credentials.clone(),
            plugins: docs.plugins.value.plugins.clone(),
            evaluations: docs.evaluations.value.suites.clone(),
            metrics: docs.metrics.value.clone(),
            artifacts: docs.artifacts.value.clone(),
            inspector: docs.inspector.value.clone(),
            cli_profiles: docs.cli_profiles.value.profiles.clone(),
            persistent_memory: docs.persistent_memory.value.stores.clone(),
            engine_metadata: docs.engine_metadata.value.clone(),
            deployment: docs.deployment.value.clone(),
            queue_policy: docs.execution.value.queue_policy,
        }
    }

    fn check_credentials(&mut self) {
        for (place, credential) in self.docs.credentials.value.provider_credentials.iter().enumerate() {
            let pointer = format!("/provider_credentials/{place}");
            let id = &credential.id;
            let hint = "say where it is: `env: NAME`, `file: path` or `secret: name`";
            match credential.reference() {
                None => {
                    let message = format!("the credential `{id}` must say in exactly one way where it is");
                    self.faults.add(self.docs.credentials.at(&pointer), "missing_reference", message, hint);
                }
                Some(reference) if !is_reference(&reference) => {
                    let key = reference_key(credential);
                    let message = format!("the credential `{id}` is no reference; manifests hold no values");
                    self.faults.add(
                        self.docs.credentials.at(&format!("{pointer}/{key}")),
                        "credential_value",
                        message,
                        hint,
                    );
                }
                Some(_) => {}
            }
        }
        let providers = self.providers();
        for (place, credential) in self.docs.credentials.value.provider_credentials.iter().enumerate() {
            let pointer = format!("/provider_credentials/{place}");
            if let Some(name) = credential.provider.as_ref().filter(|name| !providers.contains(*name))
                && self.docs.providers.listed
            {
                let at = self.docs.credentials.at(&format!("{pointer}/provider"));
                let hint = nearest(name, providers.iter().map(String::as_str), "`buildscale models`");
                let message = format!("there is no provider `{name}`");
                self.faults.refuse(at, "unknown_provider", message, hint.unwrap_or_default());
            }
            if credential.config.is_some() {
                let at = self.docs.credentials.at_key(&pointer, "config");
                let hint = "a credential is where its key is; `config` of a provider says more about the provider";
                self.faults.note(at, "no_effect", "`config` of a credential has no effect here", hint);
            }
        }
        for (place, provider) in self.docs.providers.value.providers.iter().enumerate() {
            let known = &self.docs.credentials;
            let missing = provider.credentials.as_ref().filter(|id| known.listed && !known.ids.contains(*id));
            if let Some(id) = missing {
                let at = self.docs.providers.at(&format!("/providers/{place}/credentials"));
                let hint = nearest(id, known.ids.iter().map(String::as_str), "provider_credentials.yaml")
                    .unwrap_or_else(|| format!("declare `{id}` in provider_credentials.yaml"));
                self.faults.add(at, "unknown_credential", format!("there is no credential `{id}`"), hint);
            }
        }
    }
}

/// The key that says where a credential is.
fn reference_key(credential: &Credential) -> &'static str {
    let keys = [("env", &credential.env), ("file", &credential.file), ("secret", &credential.secret)];
    match (keys.into_iter().find(|(_, value)| value.is_some()), &credential.auth) {
        (Some((key, _)), _) => key,
        (None, Some(auth)) if auth.env_var.is_some() => "auth/env_var",
        (None, Some(auth)) if auth.file_path.is_some() => "auth/file_path",
        _ => "auth/secret_name",
    }
}

/// An agent as the flow has it, within the limits of the server.
pub(super) fn agent(agent: &AgentManifest, most: Limits) -> Agent {
    let seconds = agent.limits.max_seconds.or(agent.config.timeout);
    let asked = Limits {
        max_steps: agent.limits.max_steps.unwrap_or(most.max_steps),
        max_tokens: agent.limits.max_tokens.unwrap_or(most.max_tokens),
        max_wall_ms: seconds.map_or(most.max_wall_ms, |seconds| (seconds * 1000.0) as u64),
        max_cost_usd: agent.limits.max_cost_usd.unwrap_or(most.max_cost_usd),
    };
    Agent {
        id: agent.id.clone(),
        model: agent.llm.clone(),
        system: agent.system.clone().or_else(|| agent.config.system_prompt.clone()),
        persona: agent.persona.clone(),
        temperature: agent.config.temperature,
        top_p: agent.config.top_p,
        max_tokens: agent.config.max_tokens,
        schema_out: agent.schema_out.clone(),
        limits: asked.within(most),
    }
}

/// A rule as the flow has it.
pub(super) fn policy_rule(rule: &PolicyManifest) -> PolicyRule {
    let all = || vec!["*".to_string()];
    PolicyRule {
        id: rule.id.clone(),
        target: rule.target,
        names: if rule.names.is_empty() { all() } else { rule.names.clone() },
        nodes: rule.nodes.clone(),
        allow: rule.allow,
        reason: rule.reason.clone(),
    }
}

/// The limits on concurrency and of tasks. `execution.yaml` goes before the provider's own limit.
pub(super) fn limits(execution: &Execution, providers: &[ProviderManifest]) -> FlowLimits {
    let own = providers.iter().filter_map(|provider| Some((provider.id.clone(), provider.max_concurrency?)));
    let mut all: BTreeMap<String, u32> = own.collect();
    all.extend(execution.providers.clone());
    let TaskBudgetManifest { max_tokens, max_cost_usd, max_seconds } = &execution.budget;
    let max_wall_ms = max_seconds.map(|seconds| (seconds * 1000.0) as u64);
    FlowLimits {
        max_concurrency: execution.max_concurrency,
        max_queued: execution.max_queued,
        providers: all,
        budget: Budget { max_tokens: *max_tokens, max_cost_usd: *max_cost_usd, max_wall_ms },
    }
}
