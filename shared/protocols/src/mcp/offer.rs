//! The tools that hosts get: those of the workspace, and some for its chats and flows.

use super::request::Request;
use serde_json::{Map, Value, json};

/// Tools of the workspace that hosts do not get: there is no turn that could wait for an answer.
pub(super) const HIDDEN: [&str; 1] = ["ask_user"];

/// The tools of a workspace that change nothing, so that hosts need not ask before them.
pub const LOOKING: [&str; 21] = [
    "ls",
    "glob",
    "read",
    "grep",
    "cat",
    "find",
    "file_info",
    "read_many",
    "related",
    "search",
    "list_tasks",
    "get_task_details",
    "search_projects",
    "get_project_details",
    "search_notes",
    "get_note_details",
    "get_calendar_events",
    "find_available_slots",
    "search_brain_dumps",
    "get_brain_dump_details",
    "get_field_info",
];

/// A tool of ours: a request of the API.
struct Own {
    name: &'static str,
    description: &'static str,
    /// Its arguments: the name, whether it is needed, and its description. All are texts, but for `input`.
    args: &'static [(&'static str, bool, &'static str)],
    looks: bool,
}

const CHAT: (&str, bool, &str) = ("chat_id", true, "The id of the chat.");

const OWN: [Own; 7] = [
    Own {
        name: "chat_start",
        description: "Start a chat: an agent works towards the goal on its own. Answers with its chat_id at once; read it with chat_read.",
        args: &[
            ("goal", true, "The goal, in words."),
            ("role", false, "The persona, such as planner, builder, reviewer or researcher."),
            ("mode", false, "chat, or plan: the agent writes a plan and changes nothing else."),
        ],
        looks: false,
    },
    Own {
        name: "chat_send",
        description: "Send a message to a chat.",
        args: &[CHAT, ("content", true, "The words.")],
        looks: false,
    },
    Own {
        name: "chat_read",
        description: "Read a chat: its status, its last messages, and the questions and permissions that wait for a person.",
        args: &[CHAT],
        looks: true,
    },
    Own { name: "chat_stop", description: "Stop the running turn of a chat.", args: &[CHAT], looks: false },
    Own { name: "flow_list", description: "List the flows that tasks can run.", args: &[], looks: true },
    Own {
        name: "task_start",
        description: "Start a task: a durable run of a flow. Answers with its task_id at once; read it with task_read.",
        args: &[("flow", true, "The name of the flow."), ("input", false, "Its input, an object.")],
        looks: false,
    },
    Own {
        name: "task_read",
        description: "Read a task: its status, its output, and what it waits for.",
        args: &[("task_id", true, "The id of the task.")],
        looks: true,
    },
];

impl Own {
    fn described(&self) -> Value {
        let property = |(name, _, description): &(&str, bool, &str)| {
            let kind = if *name == "input" { "object" } else { "string" };
            ((*name).to_owned(), json!({ "type": kind, "description": description }))
        };
        let properties: Map<String, Value> = self.args.iter().map(property).collect();
        let required: Vec<&str> = self.args.iter().filter(|(_, needed, _)| *needed).map(|(name, ..)| *name).collect();
        let schema =
            json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
        described(self.name, self.description, &schema, self.looks)
    }

    /// Why it does not take these arguments, if so.
    fn check(&self, args: &Value) -> Result<(), String> {
        let known = |name: &String| self.args.iter().any(|(arg, ..)| arg == name);
        if let Some(unknown) = args.as_object().and_then(|args| args.keys().find(|name| !known(name))) {
            return Err(format!("{} takes no argument {unknown:?}", self.name));
        }
        for (name, needed, _) in self.args {
            let fits = match &args[*name] {
                Value::Null => !needed,
                Value::Object(_) => *name == "input",
                Value::String(text) => *name != "input" && !text.is_empty(),
                _ => false,
            };
            if !fits {
                return Err(format!("{} needs the argument {name:?} in another form", self.name));
            }
        }
        Ok(())
    }
}

fn described(name: &str, description: &str, schema: &Value, looks: bool) -> Value {
    json!({ "name": name, "description": description, "inputSchema": schema, "annotations": { "readOnlyHint": looks } })
}

/// All tools, from the answer of `GET …/tools`.
pub(super) fn tools(body: &Value) -> Vec<Value> {
    let listed = body["tools"].as_array().into_iter().flatten();
    let text = |tool: &Value, key: &str| tool[key].as_str().unwrap_or_default().to_owned();
    let of_workspace = listed.filter_map(|tool| {
        let name = text(tool, "name");
        let looks = LOOKING.contains(&name.as_str());
        let is_hidden = HIDDEN.contains(&name.as_str());
        (!is_hidden).then(|| described(&name, &text(tool, "description"), &tool["parameters"], looks))
    });
    of_workspace.chain(OWN.iter().map(Own::described)).collect()
}

/// The request that a call of one of ours is; none for a tool of the workspace.
pub(super) fn request(name: &str, args: &Value) -> Result<Option<Request>, String> {
    let Some(own) = OWN.iter().find(|own| own.name == name) else { return Ok(None) };
    own.check(args)?;
    let text = |key: &str| args[key].as_str().unwrap_or_default().to_owned();
    let chat = || vec!["chats".to_owned(), text("chat_id")];
    Ok(Some(match name {
        "chat_start" => Request::post(vec!["chats".into()], args.clone()),
        "chat_send" => Request::post(chat(), json!({ "content": args["content"] })),
        // The newest messages: a chat is read for how it stands.
        "chat_read" => {
            Request { query: vec![("before", i64::MAX.to_string()), ("limit", "20".into())], ..Request::get(chat()) }
        }
        "chat_stop" => Request::post(chat().into_iter().chain(["stop".to_owned()]).collect(), json!({})),
        "flow_list" => Request::get(vec!["flows".into()]),
        "task_start" => Request::post(
            vec!["flows".into(), text("flow"), "tasks".into()],
            args.get("input").map_or_else(|| json!({}), |input| json!({ "input": input })),
        ),
        _ => Request::get(vec!["tasks".into(), text("task_id")]),
    }))
}
