//! All tools, by name.

mod optional;
pub(crate) mod served_tools;
mod server_files;

use crate::{
    args,
    ask::{self, AskUser},
    call::{Answer, Call, CallOutcome, Done},
    command::{self, Command, Commands, SandboxWait},
    edit,
    effects::{Declaration, Declare, Effects},
    exec, find, glob, grep,
    kind::ToolKind,
    list,
    organizer::CalendarSync,
    plan, read, recall, relate, write,
};
use domain::{CallId, Code, Error, FilePath, ToolSpec, json_length};
use futures::future::BoxFuture;
use jsonschema::Validator;
use ports::{Listener, ToolServers};
use schema::Schema;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::{Arc, LazyLock, OnceLock};
use workspace::{Action, Workspace};

type Run = Box<dyn for<'a> Fn(&'a Call<'a>, Value) -> BoxFuture<'a, Answer> + Send + Sync>;

/// Declares the effects of a call with these arguments.
type DeclareEffects = fn(Value, &mut Declaration<'_>) -> Result<(), Error>;

struct Tool {
    kind: ToolKind,
    declares: DeclareEffects,
    /// Of its specification.
    bytes: usize,
    validator: OnceLock<Validator>,
    run: Run,
}

impl Tool {
    /// Made from its `parameters` with the first call: most processes call few tools, and a function must not wait for all of them.
    fn validator(&self, parameters: &Value) -> &Validator {
        #[expect(clippy::expect_used, reason = "a schema of ours, which a test compiles")]
        self.validator.get_or_init(|| jsonschema::validator_for(parameters).expect("a valid schema"))
    }
}

/// The bytes of a specification as a request of a model has it.
fn bytes(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + json_length(&spec.parameters)
}

struct Tools {
    /// Those that every chat has.
    specs: Arc<[Arc<ToolSpec>]>,
    /// Those that a chat has where its context, its persona or its flow lists them.
    optional: Arc<[Arc<ToolSpec>]>,
    /// At the positions of `specs`, then of `optional`.
    tools: Vec<Tool>,
}

/// Registered functions, which agents of flows have as tools beside the built-in ones. The host that registers them implements it.
pub trait Functions: Send + Sync {
    /// Calls the function of this name. It is pure: the same arguments give the same value.
    ///
    /// # Errors
    /// `NOT_FOUND` for a function that there is not, `INTERNAL` when it panics; those of the function itself.
    fn call(&self, name: &str, args: &Value) -> Result<Value, Error>;

    /// The words of a command of a flow, which are templates over its arguments.
    ///
    /// # Errors
    /// `UNPROCESSABLE` for a template that cannot be filled from these arguments.
    fn words(&self, templates: &[String], args: &Value) -> Result<Vec<String>, Error>;
}

/// A command that a flow gives its agents as a tool.
#[derive(Clone, Copy, Debug)]
pub struct CommandTool<'a> {
    /// The name that agents call it by.
    pub name: &'a str,
    /// Its words, each a template over `input`, the arguments.
    pub words: &'a [String],
    /// Whether the flow lets it open sockets.
    pub network: bool,
    /// The JSON Schema of its arguments.
    pub parameters: &'a Value,
}

/// The tools that there are. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    tools: Arc<Tools>,
    functions: Option<Arc<dyn Functions>>,
    commands: Option<Commands>,
    search: Option<::search::Search>,
    calendars: Option<Arc<dyn CalendarSync>>,
    servers: Option<Arc<dyn ToolServers>>,
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
            ToolKind::$kind,
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
    specs: Vec<Arc<ToolSpec>>,
    tools: Vec<Tool>,
}

impl Builder {
    fn add<Args>(&mut self, kind: ToolKind, name: &str, description: &str, run: Run)
    where
        Args: JsonSchema + DeserializeOwned + Declare,
    {
        let spec = ToolSpec { name: name.into(), description: description.into(), parameters: args::schema::<Args>() };
        let declares: DeclareEffects = |args, into| args::read::<Args>(args)?.declare(into);
        self.tools.push(Tool { kind, declares, bytes: bytes(&spec), validator: OnceLock::new(), run });
        self.specs.push(Arc::new(spec));
    }
}

impl Registry {
    /// The tools that BuildScale comes with.
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<Registry> = LazyLock::new(|| Registry::of(Registry::make(), None, None));
        BUILTIN.clone()
    }

    /// The same tools, and `exec`, which runs commands in the workspace's sandbox.
    #[must_use]
    pub fn with_commands(self, commands: Commands) -> Self {
        Self { commands: Some(commands), ..self }.anew()
    }

    /// The same tools, and `search`, which asks an index.
    #[must_use]
    pub fn with_search(self, search: ::search::Search) -> Self {
        Self { search: Some(search), ..self }.anew()
    }

    /// The same tools, and `sync_calendar`, which keeps calendars elsewhere the same.
    #[must_use]
    pub fn with_calendars(self, calendars: Arc<dyn CalendarSync>) -> Self {
        Self { calendars: Some(calendars), ..self }.anew()
    }

    /// The same tools, and those of servers, which are on no list: they are asked for by [`Registry::served`].
    #[must_use]
    pub fn with_servers(self, servers: Arc<dyn ToolServers>) -> Self {
        Self { servers: Some(servers), ..self }
    }

    /// The servers of tools; none where there are none.
    pub(crate) fn servers(&self) -> Option<&Arc<dyn ToolServers>> {
        self.servers.as_ref()
    }

    /// With the tools that its parts make possible.
    fn anew(self) -> Self {
        let mut all = Self::make();
        if let Some(commands) = self.commands {
            let run: Run = Box::new(move |call, args| {
                Box::pin(async move { exec::exec(call, args::read(args)?, commands).await })
            });
            all.add::<exec::ExecArgs>(ToolKind::Exec, "exec", &exec::description(commands), run);
        }
        if let Some(search) = self.search.clone() {
            let run: Run = Box::new(move |call, args| {
                let search = search.clone();
                Box::pin(async move { recall::search(call, args::read(args)?, &search).await })
            });
            all.add::<recall::SearchArgs>(ToolKind::Read, recall::NAME, recall::SEARCH, run);
        }
        let tools = Self::of(all, self.search.as_ref(), self.calendars.as_ref()).tools;
        Self { tools, ..self }
    }

    /// The settings of commands; none if commands are not configured.
    pub fn commands(&self) -> Option<&Commands> {
        self.commands.as_ref()
    }

    fn of(all: Builder, search: Option<&::search::Search>, calendars: Option<&Arc<dyn CalendarSync>>) -> Self {
        let optional = optional::make(search.cloned(), calendars.cloned());
        let tools = all.tools.into_iter().chain(optional.tools).collect();
        let tools = Arc::new(Tools { specs: all.specs.into(), optional: optional.specs.into(), tools });
        Self { tools, functions: None, commands: None, search: None, calendars: None, servers: None }
    }

    /// Providers cache the order: add new tools at the end.
    fn make() -> Builder {
        let mut all = Builder::default();
        tool!(all, Read, "ls", list::Ls, list::ls, list::LS);
        tool!(all, Read, "glob", glob::Glob, glob::glob, glob::GLOB);
        tool!(all, Read, "read", read::Read, read::read, read::READ);
        tool!(all, Read, "grep", grep::Grep, grep::grep, grep::GREP);
        tool!(all, Write, "edit", edit::Edit, edit::edit, edit::EDIT);
        tool!(all, Write, "write", write::WriteFile, write::write, write::WRITE);
        tool!(all, Arrange, "mkdir", write::Mkdir, write::mkdir, write::MKDIR);
        tool!(all, Arrange, "mv", write::Mv, write::mv, write::MV);
        tool!(all, Arrange, "rm", write::Rm, write::rm, write::RM);
        tool!(all, Read, "cat", read::Cat, read::cat, read::CAT);
        tool!(all, Read, "find", find::Find, find::find, find::FIND);
        tool!(all, Read, "file_info", list::FileInfo, list::file_info, list::FILE_INFO);
        tool!(all, Read, "read_many", read::ReadMany, read::read_many, read::READ_MANY);
        tool!(all, Ask, "ask_user", AskUser, ask::ask_user, ask::ASK_USER);
        tool!(all, Write, "plan_write", plan::PlanWrite, plan::plan_write, plan::PLAN_WRITE);
        tool!(all, Write, "plan_update_step", plan::PlanUpdateStep, plan::plan_update_step, plan::PLAN_UPDATE_STEP);
        tool!(all, Arrange, "tag", relate::TagFile, relate::tag, relate::TAG);
        tool!(all, Arrange, "link", relate::LinkFiles, relate::link, relate::LINK);
        tool!(all, Read, "related", relate::Related, relate::related, relate::RELATED);
        all
    }

    /// The same tools, and functions that [`Registry::call_function`] finds. They are on no list: a flow says who has them.
    #[must_use]
    pub fn with_functions(self, functions: Arc<dyn Functions>) -> Self {
        Self { functions: Some(functions), ..self }
    }

    /// The tools for models that every chat has, always in the same order.
    pub fn specs(&self) -> Arc<[Arc<ToolSpec>]> {
        Arc::clone(&self.tools.specs)
    }

    /// The bytes of these specifications as a request of a model has them. Those of the registry itself, which nearly all are, are counted once.
    pub fn bytes(&self, specs: &[Arc<ToolSpec>]) -> usize {
        let of = |spec: &Arc<ToolSpec>| {
            let own = self.all().find(|own| Arc::ptr_eq(own.0, spec));
            own.map_or_else(|| bytes(spec), |(_, tool)| tool.bytes)
        };
        specs.iter().map(of).sum()
    }

    /// The tools for models that a chat has where its context, its persona or its flow lists them, always in the same order.
    pub fn optional(&self) -> Arc<[Arc<ToolSpec>]> {
        Arc::clone(&self.tools.optional)
    }

    /// The tool for models with this name; none when there is no such tool.
    pub fn spec(&self, name: &str) -> Option<&Arc<ToolSpec>> {
        self.find(name).map(|(spec, _)| spec)
    }

    /// The kind of this tool; none when there is no such tool.
    pub fn kind(&self, name: &str) -> Option<ToolKind> {
        self.find(name)
            .map(|(_, tool)| tool.kind)
            .or_else(|| self.servers.as_ref().and_then(|_| served_tools::kind(name)))
    }

    /// The effects of a call of a tool, from its arguments as JSON text. `plan` is the plan file of a call that names none.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such tool, `INVALID_ARGUMENT` for arguments that it does not take. A call that this refuses does
    /// nothing.
    pub fn effects(&self, name: &str, text: &str, plan: &FilePath) -> Result<Effects, Error> {
        if let Some(kind) = self.kind_of_served(name) {
            return served_tools::args(text).map(|_| Effects::none(kind));
        }
        let (tool, args) = self.checked(name, text)?;
        let mut declaration = Declaration::new(plan);
        (tool.declares)(args, &mut declaration)?;
        let asks_a_server = self.servers.is_some() && server_files::read_of(name, text).is_some();
        Ok(declaration.of(if asks_a_server { ToolKind::Served } else { tool.kind }))
    }

    fn checked(&self, name: &str, text: &str) -> Result<(&Tool, Value), Error> {
        let (spec, tool) =
            self.find(name).ok_or_else(|| unknown(name, self.tools.specs.iter().map(|spec| spec.name.as_str())))?;
        let args = args::check(tool.validator(&spec.parameters), &spec.parameters, text)?;
        Ok((tool, args))
    }

    /// Runs a tool with arguments as JSON text. A failure is an outcome, too: a model reads it and tries otherwise.
    pub async fn call(&self, call: &Call<'_>, tool: &str, args: &str) -> CallOutcome {
        self.answer(call, tool, args).await.into()
    }

    /// Runs a registered function with arguments as JSON text, which have to fit its schema.
    pub fn call_function(&self, name: &str, parameters: &Value, args: &str) -> CallOutcome {
        self.answer_of_function(name, parameters, args).into()
    }

    fn answer_of_function(&self, name: &str, parameters: &Value, text: &str) -> Answer {
        let functions = self.functions.as_ref().ok_or_else(|| Error::not_found("function", name))?;
        let result = functions.call(name, &checked(name, parameters, text)?)?;
        let output = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
        Ok(Done { output, result, ..Done::default() })
    }

    /// Runs a command of a flow with arguments as JSON text, which have to fit its schema. `told` hears its output while it runs.
    pub async fn call_command(
        &self,
        workspace: &Workspace,
        call: CallId,
        (tool, root): (&CommandTool<'_>, Option<&FilePath>),
        args: &str,
        waits: SandboxWait,
        told: Option<&Listener>,
    ) -> CallOutcome {
        self.answer_of_command(workspace, call, (tool, root), args, waits, told).await.into()
    }

    async fn answer_of_command(
        &self,
        workspace: &Workspace,
        call: CallId,
        (tool, root): (&CommandTool<'_>, Option<&FilePath>),
        text: &str,
        waits: SandboxWait,
        told: Option<&Listener>,
    ) -> Answer {
        let commands = self.commands.ok_or_else(command::none_configured)?;
        let functions = self.functions.as_ref().ok_or_else(command::none_configured)?;
        let args = checked(tool.name, tool.parameters, text)?;
        let words = functions.words(tool.words, &args)?;
        let root = root.cloned().unwrap_or_else(FilePath::root);
        workspace.demand(Action::Execute, &root)?;
        let Commands { timeout, start_timeout, .. } = commands;
        let (folder, network) = (root.clone(), commands.network && tool.network);
        let (stdin, keep) = (None, Vec::new());
        let command = Command { call, words, folder, root, stdin, timeout, network, start_timeout, waits, keep };
        Ok(exec::report(&command::run_told(workspace, &command, told).await?))
    }

    /// The kind of a tool that servers have, or that searches theirs.
    fn kind_of_served(&self, name: &str) -> Option<ToolKind> {
        self.kind(name).filter(|_| served_tools::kind(name).is_some())
    }

    async fn answer(&self, call: &Call<'_>, name: &str, text: &str) -> Answer {
        if let (Some(_), Some(servers)) = (self.kind_of_served(name), &self.servers) {
            return served_tools::call(&**servers, call, name, text).await;
        }
        let (tool, args) = self.checked(name, text)?;
        if let (Some(servers), Some(path)) = (&self.servers, server_files::file_of(name, text)) {
            return server_files::call(&**servers, &call.workspace, name, &path, &args).await;
        }
        match (tool.run)(call, args.clone()).await {
            // An attempt whose process died may have written after this one had looked for its change: then that is what this one met.
            Err(error) => match call.applied().await {
                Ok(Some(_)) => (tool.run)(call, args).await,
                Ok(None) | Err(_) => Err(error),
            },
            done => done,
        }
    }

    fn find(&self, name: &str) -> Option<(&Arc<ToolSpec>, &Tool)> {
        self.all().find(|(spec, _)| spec.name == name)
    }

    fn all(&self) -> impl Iterator<Item = (&Arc<ToolSpec>, &Tool)> {
        let specs = self.tools.specs.iter().chain(self.tools.optional.iter());
        specs.zip(&self.tools.tools)
    }
}

/// Arguments that have to fit a schema that a flow brings.
fn checked(name: &str, parameters: &Value, text: &str) -> Result<Value, Error> {
    let schema = Schema::compile_any_draft(parameters)
        .map_err(|error| Error::new(Code::Internal, format!("the schema of {name} cannot be used: {error}")))?;
    args::arguments(&schema, parameters, text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_every_tool_is_one() {
        let registry = Registry::builtin();
        for (spec, tool) in registry.tools.specs.iter().zip(&registry.tools.tools) {
            assert!(!tool.validator(&spec.parameters).is_valid(&Value::Null), "{}", spec.name);
        }
    }

    #[test]
    fn the_bytes_of_a_list_are_those_of_its_specifications_wherever_they_are_from() {
        let registry = Registry::builtin().with_commands(Commands::default());
        for list in [registry.specs(), registry.optional()] {
            let counted: usize = list.iter().map(|spec| bytes(spec)).sum();
            let copied: Vec<_> = list.iter().map(|spec| Arc::new((**spec).clone())).collect();
            assert_eq!((registry.bytes(&list), registry.bytes(&copied)), (counted, counted));
        }
        let (all, optional) = (registry.specs(), registry.optional());
        let mut longer = (*all[0]).clone();
        longer.description.push_str(" Here.");
        let mixed = [Arc::clone(&all[3]), Arc::clone(&optional[1]), Arc::new(longer)];
        assert_eq!(registry.bytes(&mixed), bytes(&all[3]) + bytes(&optional[1]) + bytes(&all[0]) + " Here.".len());
    }
}
