//! The arguments of `buildscale flow` and `buildscale task`.

use super::{
    Connection, EXIT_CODES,
    label::{Label, label},
};
use crate::output::Output;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// A chat or a task: its id, as much of its beginning as no other one has, or `-` for the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference(String);

impl Reference {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the last one is meant.
    pub(crate) fn is_last(&self) -> bool {
        self.0 == "-"
    }
}

impl std::str::FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A table on a narrow terminal cuts ids, and says so.
        let text = text.trim_end_matches('…');
        if text == "-" {
            return Ok(Self(text.to_owned()));
        }
        let is_begin = text.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-');
        match text.len() {
            4..=36 if is_begin => Ok(Self(text.to_ascii_lowercase())),
            0..4 if is_begin => Err("give at least the first four characters of the id".into()),
            _ => Err("write the id, its beginning such as 019bf537-f228, or - for the last one".into()),
        }
    }
}

#[derive(Debug, Args)]
pub struct FlowArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) place: WorkspaceChoice,
    #[command(subcommand)]
    pub(crate) command: Option<FlowCommand>,
}

/// `buildscale repl`, the short form of `buildscale flow repl`.
#[derive(Debug, Args)]
pub struct ReplArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) place: WorkspaceChoice,
    /// A folder here, or the name of a flow in the workspace
    #[arg(value_name = "DIR|NAME")]
    flow: String,
    /// The profile [default: the first one]
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
}

impl From<ReplArgs> for FlowArgs {
    fn from(ReplArgs { connection, place, flow, profile }: ReplArgs) -> Self {
        Self { connection, place, command: Some(FlowCommand::Repl { flow, profile }) }
    }
}

/// The workspace, for commands that find everything else in it.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkspaceChoice {
    /// The workspace, by name or id [default: the first one]
    #[arg(long, short, global = true, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FlowCommand {
    /// List the flows of a workspace (as `flow` alone does)
    List,
    /// Show a flow of a workspace: the files that start it, the keys of its input, its nodes and their ways
    Show {
        /// The name of a flow in the workspace
        #[arg(value_name = "NAME")]
        flow: String,
    },
    /// Make a folder with a flow to begin with; needs no hub
    New {
        /// The folder: a new or an empty one
        dir: PathBuf,
        /// The flow's name [default: the folder's]
        #[arg(long)]
        name: Option<String>,
    },
    /// Report every fault of a flow; exit code 1 when there is one. A folder needs no hub
    Check {
        /// A folder here, or the name of a flow in the workspace
        #[arg(value_name = "DIR|NAME")]
        flow: String,
    },
    /// Draw a flow; a folder needs no hub
    #[command(group(ArgGroup::new("drawn").required(true).multiple(true).args(["flow", "task"])))]
    Graph {
        /// A folder here, or the name of a flow in the workspace
        #[arg(value_name = "DIR|NAME")]
        flow: Option<String>,
        /// The format of the drawing [default: text on a terminal, else svg]
        #[arg(long, short)]
        format: Option<Picture>,
        /// Paint this run on it; the flow is then the task's
        #[arg(long, value_name = "TASK")]
        task: Option<Reference>,
        /// The file to write it to [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Run a flow, follow it, and print its output
    ///
    /// A folder is put into the workspace first, as /system/flows/<name>. Ctrl-C stops the task; a second one leaves at once.
    #[command(after_help = EXIT_CODES)]
    Run(RunArgs),
    /// Run the evaluation suites of a flow; exit code 1 when a case fails
    ///
    /// Ctrl-C stops the evaluation; a second one leaves at once.
    #[command(after_help = EXIT_CODES)]
    Eval(EvalArgs),
    /// Run a flow once per line, with profiles of its cli_profiles.yaml; /help lists the other commands
    Repl {
        /// A folder here, or the name of a flow in the workspace
        #[arg(value_name = "DIR|NAME")]
        flow: String,
        /// The profile [default: the first one]
        #[arg(long, value_name = "PROFILE")]
        profile: Option<String>,
    },
    /// Write the files of a flow, each with its hash, into its deployment.yaml. Needs no hub
    Package {
        /// The folder
        dir: PathBuf,
        /// Only say which files are not as deployment.yaml says; exit code 1 when some are
        #[arg(long)]
        verify: bool,
    },
    /// List the entry points that tools.yaml can name: the built-in tools with their usual names, and the registered functions. Needs no hub
    Entrypoints,
    /// Print the JSON Schema of a manifest, for editors; without a name, list the manifests. Needs no hub
    Schema {
        /// The name of a manifest, such as workflow.yaml
        name: Option<String>,
    },
}

/// How a flow is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Picture {
    /// A picture
    Svg,
    /// For Graphviz
    Dot,
    /// For Markdown
    Mermaid,
    /// For terminals
    Text,
}

impl Picture {
    /// The format that is asked for; else text for a person at a terminal, and a picture for a file or a program.
    pub(crate) fn chosen(asked: Option<Self>, to_file: bool, out: &Output) -> Self {
        let is_read = out.width().is_some() && !to_file;
        asked.unwrap_or(if is_read { Self::Text } else { Self::Svg })
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Dot => "dot",
            Self::Mermaid => "mermaid",
            Self::Text => "text",
        }
    }
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// A folder here, or the name of a flow in the workspace
    #[arg(value_name = "DIR|NAME")]
    pub(crate) flow: String,
    /// The input: JSON, @FILE, or - for standard input. Other words are taken as a text
    #[arg(long, short, value_name = "JSON", default_value = "null", allow_negative_numbers = true)]
    pub(crate) input: String,
    /// The start node [default: the flow's]
    #[arg(long, value_name = "NODE")]
    pub(crate) start: Option<String>,
    /// Attach a file of the workspace; can be repeated (`files put` uploads)
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// The priority: when not all tasks can run, those with higher values go first
    #[arg(long, value_name = "-100..100", allow_negative_numbers = true,
          value_parser = clap::value_parser!(i8).range(-100..=100))]
    pub(crate) priority: Option<i8>,
    /// Give the task a label, to find it by; can be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<Label>,
    #[command(flatten)]
    pub(crate) pauses: PauseArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// Print the task's id and exit; the task goes on
    #[arg(long)]
    pub(crate) detach: bool,
}

/// The nodes before which a task pauses, with its clones and subtasks.
#[derive(Clone, Debug, Args)]
pub struct PauseArgs {
    /// Pause before every node
    #[arg(long)]
    stepping: bool,
    /// Pause before this node; can be repeated
    #[arg(long = "break", value_name = "NODE")]
    breakpoints: Vec<String>,
}

impl PauseArgs {
    /// Adds them to the body of a request; nothing where nothing is said.
    pub(crate) fn add_to(self, body: &mut Map<String, Value>) {
        if self.stepping {
            body.insert("stepping".into(), true.into());
        }
        if !self.breakpoints.is_empty() {
            body.insert("breakpoints".into(), self.breakpoints.into());
        }
    }

    /// The body of a request to run a task again, from this node on if one is named.
    pub(crate) fn of_rerun(self, from: Option<String>, budget: BudgetArgs) -> Value {
        let mut body = Map::new();
        body.extend(from.map(|node| ("from".to_owned(), Value::from(node))));
        body.extend(budget.body().map(|budget| ("budget".to_owned(), budget)));
        self.add_to(&mut body);
        Value::Object(body)
    }
}

/// The budget of a task and all clones and subtasks below it.
#[derive(Clone, Copy, Debug, Args)]
pub struct BudgetArgs {
    /// The most tokens for the agents of the task and of all below it [default: that of the flow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// The most US dollars for them
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_cost: Option<f64>,
    /// No agent is asked after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub(crate) max_seconds: Option<u64>,
}

impl BudgetArgs {
    /// As the API takes it; none where nothing is said.
    pub(crate) fn body(self) -> Option<Value> {
        let parts = [
            ("max_tokens", self.max_tokens.map(Value::from)),
            ("max_cost_usd", self.max_cost.map(Value::from)),
            ("max_wall_ms", self.max_seconds.map(|seconds| Value::from(seconds * 1000))),
        ];
        let said: Map<String, Value> =
            parts.into_iter().filter_map(|(name, part)| Some((name.to_owned(), part?))).collect();
        (!said.is_empty()).then_some(Value::Object(said))
    }
}

/// An amount of US dollars. What is no number would be no limit in JSON.
fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount > 0.0);
    amount.ok_or_else(|| format!("{text:?} is no amount: write a number above 0, such as 0.5"))
}

#[derive(Debug, Args)]
pub struct EvalArgs {
    /// A folder here, or the name of a flow in the workspace
    #[arg(value_name = "DIR|NAME")]
    pub(crate) flow: String,
    /// Only this suite; can be repeated
    #[arg(long = "suite", value_name = "SUITE")]
    pub(crate) suites: Vec<String>,
    /// Only cases with one of these tags; can be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Only this case, as ID or as SUITE/ID; can be repeated
    #[arg(long = "case", value_name = "CASE")]
    pub(crate) cases: Vec<String>,
    /// Keep the results as the golden files
    #[arg(long)]
    pub(crate) bless: bool,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TaskArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) place: WorkspaceChoice,
    #[command(subcommand)]
    pub(crate) command: Option<TaskCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// List tasks, the newest first (as `task` alone does)
    List {
        /// Only of this flow
        #[arg(long, value_name = "NAME")]
        flow: Option<String>,
        /// Only with this status
        #[arg(long, value_parser = ["success", "failure", "partial"])]
        status: Option<String>,
        /// Only in this phase
        #[arg(long, value_parser = ["queued", "running", "suspended", "paused", "parked", "finished"])]
        phase: Option<String>,
        /// Only those made at this time or later, such as 2026-01-31T12:00:00Z
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Only those made before this time
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        /// The clones and subtasks of this task [default: tasks without a parent]
        #[arg(long, value_name = "TASK")]
        parent: Option<Reference>,
        /// Only with this label; can be repeated
        #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
        labels: Vec<Label>,
        /// How many at most
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Show a task: its progress and results, stage by stage, and its clones and subtasks on a scale of time
    Show {
        /// The task
        task: Reference,
        /// Also the inputs, outputs and contexts of its stages, and the conversations with agents and tools
        #[arg(long)]
        full: bool,
        /// Its clones and subtasks as a tree instead, each with its id, and those below them; those that failed or wait one by one
        #[arg(long, conflicts_with = "trace")]
        tree: bool,
        /// Also its memory
        #[arg(long)]
        memory: bool,
        /// Also its artifacts
        #[arg(long)]
        artifacts: bool,
        /// Its deterministic trace instead
        #[arg(long, conflicts_with_all = ["full", "memory", "artifacts"])]
        trace: bool,
    },
    /// Follow a task's events from its beginning to its end, or until it waits for a person: exit code 8
    Tail {
        /// The task
        task: Reference,
        /// Follow it also while it waits for a person
        #[arg(long)]
        follow: bool,
        /// Begin after the event with this number
        #[arg(long, value_name = "N")]
        after: Option<u64>,
    },
    /// Pause a task and its clones and subtasks before their next nodes, or before these
    Pause {
        /// The task
        task: Reference,
        /// Before this node; can be repeated [default: the next one, whichever it is]
        #[arg(long, value_name = "NODE")]
        before: Vec<String>,
    },
    /// Let a paused task execute one node, and each paused one of its clones and subtasks
    Step {
        /// The task
        task: Reference,
    },
    /// Let a paused task go on, and its clones and subtasks
    Resume {
        /// The task
        task: Reference,
        /// Give up the part that failed again and again instead of trying it once more
        #[arg(long)]
        drop: bool,
    },
    /// Stop a task and its clones and subtasks
    #[command(visible_alias = "cancel")]
    Stop {
        /// The task
        task: Reference,
    },
    /// Let a task, its clones and its subtasks go before others that wait, or after them
    Priority {
        /// The task
        task: Reference,
        /// Higher ones go first
        #[arg(value_name = "-100..100", allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-100..=100))]
        priority: i8,
    },
    /// Delete a task with its clones, subtasks, artifacts and the chats of its agents; one that runs is stopped first
    Delete {
        /// The task
        task: Reference,
    },
    /// Run a finished task again as a new one: with its recorded answers, or for real from a node on
    Replay {
        /// The task
        task: Reference,
        /// Nodes that do not come after this one keep their recorded output; it and the nodes after it run for real
        #[arg(long, value_name = "NODE")]
        from: Option<String>,
        #[command(flatten)]
        pauses: PauseArgs,
        #[command(flatten)]
        budget: BudgetArgs,
        /// Follow the new task to its end
        #[arg(long)]
        follow: bool,
    },
    /// Run the nodes of a task again that failed or were stopped, as a new one; all others keep their recorded output
    Retry {
        /// The task
        task: Reference,
        #[command(flatten)]
        pauses: PauseArgs,
        #[command(flatten)]
        budget: BudgetArgs,
        /// Follow the new task to its end
        #[arg(long)]
        follow: bool,
    },
    /// Answer a task that waits for a person, or will
    Answer {
        /// The task
        task: Reference,
        /// The node that asks [default: the one that asks now]
        #[arg(long, value_name = "NODE")]
        node: Option<String>,
        /// Approve the request
        #[arg(long, conflicts_with_all = ["decline", "answers"])]
        approve: bool,
        /// Decline the request
        #[arg(long, conflicts_with = "answers")]
        decline: bool,
        /// A remark on the approval
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
        /// NAME=VALUE, one per question; a value that is no JSON is taken as a text. Without any, they are asked for
        #[arg(value_name = "NAME=VALUE")]
        answers: Vec<String>,
    },
    /// Show where two runs part; exit code 1 when they do
    Diff {
        /// The earlier of two tasks to compare
        task: Reference,
        /// The task to compare it with
        with: Reference,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn s10_7_a_re_run_asks_for_the_pauses_that_were_typed() {
        let budget = BudgetArgs { max_tokens: Some(9), max_cost: None, max_seconds: None };
        let pauses = PauseArgs { stepping: true, breakpoints: vec!["a".to_owned(), "b".to_owned()] };
        let expected =
            json!({ "from": "n", "budget": { "max_tokens": 9 }, "stepping": true, "breakpoints": ["a", "b"] });
        assert_eq!(pauses.of_rerun(Some("n".to_owned()), budget), expected);
        let nothing = PauseArgs { stepping: false, breakpoints: Vec::new() };
        assert_eq!(nothing.of_rerun(None, BudgetArgs { max_tokens: None, ..budget }), json!({}));
    }
}
