//! What a flow can refer to that is not in its folder.

use crate::op::{self, function::Functions};
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks the syntax of an expression or a template, and says what is wrong with it.
pub type Syntax = fn(&str) -> Result<(), String>;

/// What there is outside of a flow's folder.
#[derive(Clone, Debug)]
pub struct Known {
    /// Built-in tools, by name.
    pub tools: BTreeSet<String>,
    /// Registered Rust functions, `module:function`.
    pub functions: BTreeSet<String>,
    /// Those of the functions that agents can call, because a schema of their arguments is registered with them.
    pub callable: BTreeSet<String>,
    /// Tools and functions that can reach the network, which takes `allow_network`. No built-in one can.
    pub networked: BTreeSet<String>,
    /// Whether a sandbox is configured, without which no command runs.
    pub sandbox: bool,
    /// Personas of `/system/agents`; none when they are not known here (then none is missed).
    pub personas: Option<BTreeSet<String>>,
    /// Models, `provider/model`, with `provider/*` for all of a provider; none when they are not known here.
    pub models: Option<BTreeSet<String>>,
    /// Whether a CEL expression is one.
    pub expression: Syntax,
    /// Whether a text with `{{expressions}}` is one.
    pub template: Syntax,
}

impl Default for Known {
    /// What BuildScale comes with: its tools, its functions, its expressions and templates. Personas and models are not known.
    fn default() -> Self {
        Self {
            tools: tools::Registry::builtin().specs().iter().map(|spec| spec.name.clone()).collect(),
            functions: BTreeSet::new(),
            callable: BTreeSet::new(),
            networked: BTreeSet::new(),
            sandbox: false,
            personas: None,
            models: None,
            expression: op::expr::check,
            template: |text| op::template::check(&Value::String(text.into())),
        }
        .with_functions(&Functions::builtin())
    }
}

impl Known {
    /// Nothing, where no flow is loaded: then nothing is linked that flows are made of.
    pub fn nothing() -> Self {
        let none: Syntax = |_| Err("no flow is loaded here".into());
        Self {
            tools: BTreeSet::new(),
            functions: BTreeSet::new(),
            callable: BTreeSet::new(),
            networked: BTreeSet::new(),
            sandbox: false,
            personas: None,
            models: None,
            expression: none,
            template: none,
        }
    }

    /// The same, with these functions and no others.
    #[must_use]
    pub fn with_functions(self, functions: &Functions) -> Self {
        let callable = functions.known().filter(|name| functions.signature(name).is_some()).map(Into::into).collect();
        Self { functions: functions.known().map(Into::into).collect(), callable, ..self }
    }

    /// The built-in tool that an entry point means, by its own or a usual name.
    pub(super) fn builtin(&self, entrypoint: &str) -> Option<&str> {
        let name = op::alias::alias(entrypoint).unwrap_or(entrypoint);
        self.tools.get(name).map(String::as_str)
    }

    /// Whether a model is known here, by `provider/model`.
    pub(super) fn has_model(&self, model: &str) -> bool {
        let Some(models) = &self.models else { return true };
        let any_of = model.split_once('/').map(|(provider, _)| format!("{provider}/*"));
        models.contains(model) || any_of.is_some_and(|any| models.contains(&any))
    }
}
