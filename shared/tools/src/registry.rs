//! All tools, by name.

use crate::{
    args,
    ask::{self, AskUser},
    call::{Answer, Call, Done, Outcome},
    edit, find, glob, grep, list, plan, read, write,
};
use domain::{Code, Error, ToolSpec};
use futures::future::BoxFuture;
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::{Arc, LazyLock};

/// What a call of a tool can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It looks, and can be run again at will.
    Read,
    /// It changes files, once under one call id.
    Write,
    /// It is not run: it suspends the turn until people have answered.
    Ask,
}

type Run = Box<dyn for<'a> Fn(&'a Call<'a>, Value) -> BoxFuture<'a, Answer> + Send + Sync>;

struct Tool {
    kind: Kind,
    validator: Validator,
    run: Run,
}

struct Tools {
    specs: Arc<[ToolSpec]>,
    /// At the positions of `specs`.
    tools: Vec<Tool>,
}

/// Registered functions, which agents of flows have as tools beside the built-in ones. What registers them implements it.
pub trait Functions: Send + Sync {
    /// Calls the function of this name. It is pure: the same arguments give the same value.
    fn call(&self, name: &str, args: &Value) -> Result<Value, Error>;
}

/// The tools that there are. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    tools: Arc<Tools>,
    functions: Option<Arc<dyn Functions>>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.tools.specs.iter().map(|spec| &spec.name)).finish()
    }
}

/// Registers `function`, whose arguments are of the type `Args`.
macro_rules! tool {
    ($into:ident, $kind:ident, $name:literal, $Args:ty, $function:path, $description:expr) => {
        $into.add::<$Args>(
            Kind::$kind,
            $name,
            $description,
            Box::new(|call, args| {
                Box::pin(async move {
                    let args: $Args = args::read(args)?;
                    $function(call, args).await
                })
            }),
        )
    };
}

#[derive(Default)]
struct Builder {
    specs: Vec<ToolSpec>,
    tools: Vec<Tool>,
}

impl Builder {
    fn add<Args: JsonSchema + DeserializeOwned>(&mut self, kind: Kind, name: &str, description: &str, run: Run) {
        let parameters = args::schema::<Args>();
        #[expect(clippy::expect_used, reason = "a schema of ours, which a test compiles")]
        let validator = jsonschema::validator_for(&parameters).expect("a valid schema");
        self.specs.push(ToolSpec { name: name.into(), description: description.into(), parameters });
        self.tools.push(Tool { kind, validator, run });
    }
}

impl Registry {
    /// The tools that BuildScale comes with.
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<Registry> = LazyLock::new(Registry::make);
        BUILTIN.clone()
    }

    /// The order is part of what providers cache: add at the end.
    fn make() -> Self {
        let mut all = Builder::default();
        tool!(all, Read, "ls", list::Ls, list::ls, list::LS);
        tool!(all, Read, "glob", glob::Glob, glob::glob, glob::GLOB);
        tool!(all, Read, "read", read::Read, read::read, read::READ);
        tool!(all, Read, "grep", grep::Grep, grep::grep, grep::GREP);
        tool!(all, Write, "edit", edit::Edit, edit::edit, edit::EDIT);
        tool!(all, Write, "write", write::WriteFile, write::write, write::WRITE);
        tool!(all, Write, "mkdir", write::Mkdir, write::mkdir, write::MKDIR);
        tool!(all, Write, "mv", write::Mv, write::mv, write::MV);
        tool!(all, Write, "rm", write::Rm, write::rm, write::RM);
        tool!(all, Read, "cat", read::Cat, read::cat, read::CAT);
        tool!(all, Read, "find", find::Find, find::find, find::FIND);
        tool!(all, Read, "file_info", list::FileInfo, list::file_info, list::FILE_INFO);
        tool!(all, Read, "read_many", read::ReadMany, read::read_many, read::READ_MANY);
        tool!(all, Ask, "ask_user", AskUser, ask::ask_user, ask::ASK_USER);
        tool!(all, Write, "plan_write", plan::PlanWrite, plan::plan_write, plan::PLAN_WRITE);
        tool!(all, Write, "plan_update_step", plan::PlanUpdateStep, plan::plan_update_step, plan::PLAN_UPDATE_STEP);
        Self { tools: Arc::new(Tools { specs: all.specs.into(), tools: all.tools }), functions: None }
    }

    /// The same tools, and functions that [`Registry::call_function`] finds. They are on no list: a flow says who has them.
    #[must_use]
    pub fn with_functions(self, functions: Arc<dyn Functions>) -> Self {
        Self { functions: Some(functions), ..self }
    }

    /// What models are told, always in the same order.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.tools.specs)
    }

    /// What models are told of one tool; none when there is no such tool.
    pub fn spec(&self, name: &str) -> Option<&ToolSpec> {
        self.find(name).map(|(spec, _)| spec)
    }

    /// What a call of this tool can do; none when there is no such tool.
    pub fn kind(&self, name: &str) -> Option<Kind> {
        self.find(name).map(|(_, tool)| tool.kind)
    }

    /// Runs a tool with arguments as JSON text. A failure is an outcome, too: a model reads it and tries otherwise.
    pub async fn call(&self, call: &Call<'_>, tool: &str, args: &str) -> Outcome {
        self.answer(call, tool, args).await.into()
    }

    /// Runs a registered function with arguments as JSON text, which have to fit its schema.
    pub fn call_function(&self, name: &str, parameters: &Value, args: &str) -> Outcome {
        self.answer_of_function(name, parameters, args).into()
    }

    fn answer_of_function(&self, name: &str, parameters: &Value, text: &str) -> Answer {
        let functions = self.functions.as_ref().ok_or_else(|| Error::not_found("function", name))?;
        let validator = jsonschema::validator_for(parameters)
            .map_err(|error| Error::new(Code::Internal, format!("the schema of {name} is none: {error}")))?;
        let result = functions.call(name, &args::check(&validator, parameters, text)?)?;
        let output = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
        Ok(Done { output, result, ..Done::default() })
    }

    async fn answer(&self, call: &Call<'_>, name: &str, text: &str) -> Answer {
        let (spec, tool) =
            self.find(name).ok_or_else(|| unknown(name, self.tools.specs.iter().map(|spec| spec.name.as_str())))?;
        let args = args::check(&tool.validator, &spec.parameters, text)?;
        (tool.run)(call, args).await
    }

    fn find(&self, name: &str) -> Option<(&ToolSpec, &Tool)> {
        self.tools.specs.iter().zip(&self.tools.tools).find(|(spec, _)| spec.name == name)
    }
}

/// The refusal of a call of a tool that is not among `names`, which are all that the caller has.
pub fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Error {
    let shown: String = name.chars().take(64).collect();
    let names: Vec<&str> = names.collect();
    let error = Error::new(Code::NotFound, format!("there is no tool {shown:?}")).detail("field", "tool");
    match similar::get_close_matches(shown.as_str(), &names, 1, 0.5).first() {
        _ if names.is_empty() => error.hint("there are no tools here"),
        Some(near) => error.hint(format!("did you mean {near:?}? The tools are: {}", names.join(", "))),
        None => error.hint(format!("the tools are: {}", names.join(", "))),
    }
}
