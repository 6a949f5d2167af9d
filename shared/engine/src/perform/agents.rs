//! Requests of agent nodes and human steps: prompts and questions, rendered from the manifest.

use crate::{
    machine::{AgentReady, Run, TaskReport, chat_of, slots},
    perform::{EffectError, ExecutionFacts, NO_SANDBOX, TaskEffects},
    personas,
};
use chat::Persona;
use domain::{
    AgentOf, AgentTool, AgentToolRuns, ChatConfig, Code, Error, FilePath, Labels, Mode, ModelSettings, event::Question,
    json_length, task::AssembledContext,
};
use flow::{
    Flow,
    flow::{Agent, AskRule, HttpTool, Node, ToolTarget},
    op::{self, Scope, Signature},
    policy::{self, Use},
};
use ports::validate::MAX_MESSAGE;
use serde_json::{Value, json};
use std::{fmt::Write as _, sync::Arc};

/// The longest prompt of an agent with its system text and its tools as JSON, in bytes: one message of the queue brings them to its chat.
const MAX_ASKED: usize = MAX_MESSAGE - 16 * 1024;

impl TaskEffects {
    #[expect(clippy::too_many_arguments, reason = "the parts of one execution, each used once")]
    pub(super) async fn agent(
        &self,
        run: &Run,
        flow: &Arc<Flow>,
        node: &Node,
        agent: &str,
        prompt: Option<&str>,
        scope: &Scope<'_>,
        facts: &mut ExecutionFacts,
    ) -> Result<TaskReport, EffectError> {
        let Some(agent) = flow.agents.get(agent) else {
            return Err(Error::new(Code::NotFound, format!("the flow has no agent {agent}")).into());
        };
        // A flow is of everybody: its personas are those of the workspace, whoever starts it.
        let files = self.workspaces.open(run.config.workspace, run.access().without_home()).await?;
        let persona = match &agent.persona {
            Some(name) => Some(chat::persona(&files, name).await?),
            None => None,
        };
        let model = agent.model.as_deref().or(persona.as_ref().and_then(|persona| persona.model.as_deref()));
        // Rules and limits of a provider hold whether its model is named or not.
        let asked = model.or(self.flows.known().default_model.as_deref());
        self.permit(flow, node, &model.map_or(Use::DefaultModel(asked), Use::Model), facts)?;
        // An unreachable provider is known before anything is sent, and before tools have been at work for it.
        let own_provider = match model.filter(|model| flow.declares_provider_of(model)) {
            Some(model) => {
                self.flows.providers().open(run.config.workspace, flow, model).await?;
                Some(run.config.flow.clone())
            }
            None => None,
        };
        let tools = node.tools.iter().filter_map(|id| self.agent_tool(flow, node, id, persona.as_ref(), facts));
        let tools = tools.collect();
        let prompt = match prompt {
            Some(template) => op::template::render_text(template, scope)?,
            None => match scope.input {
                Value::String(text) => text.clone(),
                other => serde_json::to_string_pretty(other).unwrap_or_default(),
            },
        };
        let config = &run.config;
        let chat = chat_of(config.task, &node.id, run.retry);
        let of_persona = match &persona {
            Some(persona) => chat::system_text(&files, persona).await?.text,
            None => String::new(),
        };
        let system = system_text(flow, node, agent, of_persona);
        let content = with_memory(facts.context.as_deref(), &prompt);
        let settings = ChatConfig {
            workspace: config.workspace,
            chat,
            user: config.user,
            title: format!("{}/{}", config.flow.name, node.id),
            role: agent.persona.clone().unwrap_or_else(|| agent.id.clone()),
            model: model.map(str::to_owned),
            model_settings: ModelSettings::default(),
            mode: Mode::Chat,
            limits: agent.limits_in(node),
            system: system.trim().to_owned(),
            cut: Vec::new(),
            tools: persona.as_ref().and_then(|persona| persona.tools.clone()),
            plan: None,
            context_tokens: self.context_tokens,
            created_at: self.clock.now(),
            agent: Some(Box::new(AgentOf {
                task: config.task,
                above: config.above().to_vec(),
                node: node.id.clone(),
                tools,
                temperature: agent.temperature,
                top_p: agent.top_p,
                max_tokens: agent.max_tokens,
                priority: config.priority,
                turns: slots::of_model(flow, node, asked),
                flow: own_provider,
                no_home: config.handoff.is_some(),
                executor: None,
            })),
            thread: None,
            forked_from: None,
            session: None,
            scenario: None,
            member: None,
            functions: Vec::new(),
            labels: Labels::default(),
        };
        let bytes = json_length(&settings) + json_length(&content);
        if bytes > MAX_ASKED {
            let text = format!(
                "the prompt of {} is {bytes} bytes long with its system text, memory and tools; {MAX_ASKED} fit",
                node.id
            );
            return Err(Error::new(Code::PayloadTooLarge, text)
                .hint("write long inputs to files, which the agent reads, or let a node before it shorten them")
                .into());
        }
        Ok(TaskReport::AgentReady(Box::new(AgentReady {
            node: node.id.clone(),
            config: Box::new(settings),
            prompt: content,
            context: facts.context.take(),
            denied: std::mem::take(&mut facts.denied),
        })))
    }

    /// A tool of `tools.yaml` as the node's agent has it. One that is denied is noted, and the agent goes on with the others.
    fn agent_tool(
        &self,
        flow: &Flow,
        node: &Node,
        id: &str,
        persona: Option<&Persona>,
        facts: &mut ExecutionFacts,
    ) -> Option<AgentTool> {
        let binding = flow.tools.get(id)?;
        let mut denied = |what: String, rule: String, reason: Option<String>| {
            tracing::info!(node = %node.id, what, rule, "denied");
            facts.denied.push((what, rule.clone()));
            AgentToolRuns::Denied { rule, reason }
        };
        let forbidden = persona.and_then(|persona| personas::forbids(persona, &binding.target));
        let runs = match (policy::permit(flow, node, &Use::Tool(binding)), &binding.target) {
            (policy::Decision::Deny { rule, what, reason }, _) => denied(what, rule, reason),
            (policy::Decision::Permit, _) if forbidden.is_some() => {
                denied(format!("tool {id}"), "persona".into(), forbidden)
            }
            (policy::Decision::Permit, ToolTarget::Builtin(name)) => match flow.http_tools.get(name) {
                Some(HttpTool { name, declaration, .. }) => {
                    AgentToolRuns::Http { name: name.clone(), declaration: declaration.clone() }
                }
                None => AgentToolRuns::Builtin(name.clone()),
            },
            (policy::Decision::Permit, ToolTarget::Function(name)) => match self.functions.signature(name) {
                Some(Signature { description, parameters }) => AgentToolRuns::Function {
                    entrypoint: name.clone(),
                    description: description.clone(),
                    parameters: parameters.clone(),
                },
                // The loader refuses it; this process may be of another version than the one that did.
                None => denied(format!("tool {id}"), "registry".into(), Some(format!("{name} is not registered here"))),
            },
            // The loader refuses it where there is no sandbox; this process may be set up otherwise than the one that did.
            (policy::Decision::Permit, ToolTarget::Command(_)) if self.tools.commands().is_none() => {
                denied(format!("tool {id}"), "sandbox".into(), Some(NO_SANDBOX.into()))
            }
            (policy::Decision::Permit, ToolTarget::Command(words)) => AgentToolRuns::Command {
                words: words.clone(),
                network: binding.permissions.allow_network,
                parameters: parameters_of(words),
            },
        };
        let root = binding.permissions.root.as_deref().map(FilePath::parse);
        let (runs, root) = match root.transpose() {
            Ok(root) => (runs, root),
            Err(error) => (denied(format!("tool {id}"), "permissions.root".into(), Some(error.to_string())), None),
        };
        Some(AgentTool { name: id.to_owned(), description: binding.description.clone(), runs, root })
    }

    pub(super) fn questions(&self, run: &Run, rule: &AskRule, scope: &Scope<'_>) -> Result<TaskReport, EffectError> {
        let mut questions = Vec::new();
        for question in rule.all_questions() {
            let text = op::template::render_text(&question.question, scope)?;
            questions.push(Question { question: text, ..question });
        }
        let expires_at = rule.timeout.map(|timeout| self.clock.now() + timeout);
        Ok(TaskReport::Questions { node: run.node.clone(), questions, expires_at })
    }
}

/// The arguments of a command for a model: the names that its words read of their input.
fn parameters_of(words: &[String]) -> Value {
    let names = op::template::inputs_read(&json!(words)).unwrap_or_default();
    let properties: serde_json::Map<_, _> =
        names.iter().map(|name| (name.clone(), json!({ "type": "string" }))).collect();
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
}

/// The system text of an agent: that of its persona, its own, the schema of its answer, and the ways on.
fn system_text(flow: &Flow, node: &Node, agent: &Agent, of_persona: String) -> String {
    let mut system = of_persona;
    if let Some(own) = &agent.system {
        let _ = write!(system, "{}{own}", if system.is_empty() { "" } else { "\n\n" });
    }
    if let Some(schema) = node.schema_out.as_ref().or(agent.schema_out.as_ref()).and_then(|name| flow.schemas.get(name))
    {
        let _ = write!(system, "\n\nAnswer with nothing but JSON that fits this schema:\n{}", schema.source);
    }
    if let Some(choice) = choices(flow, node) {
        let _ = write!(system, "\n\nYou decide which way the work goes on. {choice}");
    }
    system
}

/// A prompt below the items of memory.
fn with_memory(context: Option<&AssembledContext>, prompt: &str) -> String {
    let mut content = String::new();
    for item in context.into_iter().flat_map(|context| &context.items) {
        let text = match &item.content {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let _ = writeln!(content, "<memory store=\"{}\" key=\"{}\">\n{text}\n</memory>", item.store, item.key);
    }
    content.push_str(prompt);
    content
}

/// How an agent at a decision is told of the ways on.
fn choices(flow: &Flow, node: &Node) -> Option<String> {
    let node = flow.graph.node(&node.id).filter(|node| node.role == flow::graph::Role::Decision)?;
    Some(format!("Answer with nothing but {{\"selected_edge\": name}}, the name being one of: {}.", node.choices()))
}
