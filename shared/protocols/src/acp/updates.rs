//! The frames of a turn as session updates.

use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The meaning of a frame to an editor.
#[derive(Clone, Debug, PartialEq)]
pub enum EditorUpdate {
    /// A session update.
    Update(Value),
    /// The turn waits for a person.
    Wants(PersonAsked),
    /// The turn waits for a call that the editor carries out: the frame's data.
    Calls(Value),
    /// The turn is over: the reason, or the code and the message of its failure.
    Ended(Result<&'static str, (String, String)>),
}

/// A decision that a turn waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum PersonAsked {
    /// A permission.
    Permission {
        /// The permission.
        id: String,
        /// The request to the editor, without its session.
        params: Value,
    },
    /// The answer to a question that has ready ones.
    Answer {
        /// The set of questions, which is this one.
        id: String,
        /// The name of the answer.
        name: String,
        /// The ready answers, in the order of the options `0`, `1`, ….
        answers: Vec<Value>,
        /// The request to the editor, without its session.
        params: Value,
    },
}

/// The fold of a turn's frames.
#[derive(Clone, Debug, Default)]
pub struct Updates {
    /// Whether text was shown that a second attempt makes void.
    has_text: bool,
    /// The calls that were shown with the change that they make.
    changes: BTreeSet<String>,
    failure: Option<(String, String)>,
}

impl Updates {
    /// Takes in the next frame of a turn. One that editors have no words for means nothing.
    pub fn take_in(&mut self, event: &str, data: &Value) -> Option<EditorUpdate> {
        let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        Some(match event {
            "turn_started" if data["attempt"].is_u64() && std::mem::take(&mut self.has_text) => {
                EditorUpdate::Update(chunk("agent_message_chunk", "\n\n(The answer begins again.)\n\n"))
            }
            "message_delta" => {
                self.has_text = true;
                EditorUpdate::Update(chunk("agent_message_chunk", &text("delta")))
            }
            "reasoning_delta" => EditorUpdate::Update(chunk("agent_thought_chunk", &text("delta"))),
            "message_content" => {
                EditorUpdate::Update(json!({ "sessionUpdate": "agent_message_chunk", "content": data["content"] }))
            }
            "tool_call" => EditorUpdate::Update(self.call(data)),
            "tool_call_update" => EditorUpdate::Update(self.progress(data)),
            "plan_update" => EditorUpdate::Update(json!({ "sessionUpdate": "plan", "entries": data["entries"] })),
            "mode_update" => {
                EditorUpdate::Update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": data["modeId"] }))
            }
            "config_options_update" => EditorUpdate::Update(
                json!({ "sessionUpdate": "config_option_update", "configOptions": data["configOptions"] }),
            ),
            "session_info_update" if data["title"].is_string() => {
                EditorUpdate::Update(json!({ "sessionUpdate": "session_info_update", "title": data["title"] }))
            }
            "permission_required" => EditorUpdate::Wants(self.permission(data)),
            "question" => return question(data),
            "call_handed_out" => EditorUpdate::Calls(data.clone()),
            "error" => {
                self.failure = Some((text("code"), text("message")));
                // No other frame follows it, until a person resumes the chat.
                return (data["code"] == "PAUSED").then(|| EditorUpdate::Ended(Err((text("code"), text("message")))));
            }
            "turn_completed" => EditorUpdate::Ended(self.ended(data)),
            _ => return None,
        })
    }

    fn ended(&mut self, data: &Value) -> Result<&'static str, (String, String)> {
        match (data["stopReason"].as_str(), data["reason"].as_str()) {
            (Some("cancelled"), _) => Ok("cancelled"),
            (Some("error"), _) => {
                Err(self.failure.take().unwrap_or_else(|| ("INTERNAL".into(), "the turn failed".into())))
            }
            (_, Some("max_output_tokens" | "token_limit" | "context_limit")) => Ok("max_tokens"),
            (_, Some("step_limit" | "time_limit" | "cost_limit")) => Ok("max_turn_requests"),
            (_, Some("refusal")) => Ok("refusal"),
            _ => Ok("end_turn"),
        }
    }

    /// A call as it begins, with the change that it makes if it says so.
    fn call(&mut self, data: &Value) -> Value {
        let mut update = without_turn(data);
        update["sessionUpdate"] = json!("tool_call");
        self.show_change(&mut update);
        update
    }

    fn show_change(&mut self, call: &mut Value) {
        let changes = changes(&call["rawInput"]);
        if call["content"].is_null() && !changes.is_empty() {
            self.changes.insert(call["toolCallId"].as_str().unwrap_or_default().to_owned());
            call["content"] = json!(changes);
        }
    }

    /// News of a call. The answer of one that changed files as it said would take the place of the change.
    fn progress(&self, data: &Value) -> Value {
        let mut update = without_turn(data);
        update["sessionUpdate"] = json!("tool_call_update");
        let is_shown = data["toolCallId"].as_str().is_some_and(|id| self.changes.contains(id));
        if let Some(fields) = update.as_object_mut().filter(|_| is_shown && data["status"] == "completed") {
            fields.remove("content");
        }
        update
    }

    fn permission(&mut self, data: &Value) -> PersonAsked {
        let input = &data["rawInput"];
        // A coding agent's request has its whole call, which the editor knows by the agent's own id.
        let call = if input["toolCallId"].is_string() {
            input.clone()
        } else {
            let kind = match data["approval"].as_str() {
                Some("command") => "execute",
                Some("file") => "edit",
                Some("network") => "fetch",
                _ => "other",
            };
            let mut call = json!({
                "toolCallId": data["requestId"], "title": data["command"], "kind": kind, "status": "pending", "rawInput": input,
            });
            self.show_change(&mut call);
            call
        };
        let id = data["permissionId"].as_str().unwrap_or_default().to_owned();
        PersonAsked::Permission { id, params: json!({ "toolCall": call, "options": data["options"] }) }
    }
}

/// A question with ready answers is asked as a choice; others are told, and answered elsewhere.
fn question(data: &Value) -> Option<EditorUpdate> {
    let questions = data["questions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let words = |question: &Value| question["question"].as_str().unwrap_or_default().to_owned();
    let id = data["questionId"].as_str().unwrap_or_default();
    if let [question] = questions
        && let Some(answers) = ready(question)
    {
        let shown = |answer: &Value| answer.as_str().map_or_else(|| answer.to_string(), ToOwned::to_owned);
        let option =
            |(number, answer)| json!({ "optionId": format!("{number}"), "name": shown(answer), "kind": "allow_once" });
        let options: Vec<Value> = answers.iter().enumerate().map(option).collect();
        let call = json!({ "toolCallId": id, "title": words(question), "kind": "think", "status": "pending" });
        let name = question["name"].as_str().unwrap_or_default().to_owned();
        let params = json!({ "toolCall": call, "options": options });
        return Some(EditorUpdate::Wants(PersonAsked::Answer {
            id: id.into(),
            name,
            answers: answers.clone(),
            params,
        }));
    }
    let all: Vec<String> = questions.iter().map(|question| format!("- {}", words(question))).collect();
    let text = format!(
        "\n\nThe agent waits for answers:\n{}\n\nGive them in BuildScale (`buildscale chat --continue`), or cancel.\n\n",
        all.join("\n"),
    );
    Some(EditorUpdate::Update(chunk("agent_message_chunk", &text)))
}

/// The ready answers of a question: its buttons, else the only answers that it takes.
fn ready(question: &Value) -> Option<&Vec<Value>> {
    let offered = [&question["buttons"], &question["schema"]["enum"]].into_iter().filter_map(Value::as_array);
    offered.into_iter().find(|answers| !answers.is_empty())
}

pub(super) fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

fn without_turn(data: &Value) -> Value {
    let mut update = data.clone();
    if let Some(fields) = update.as_object_mut() {
        fields.retain(|name, _| name != "turnId" && name != "seq");
    }
    update
}

/// The changes of files that the arguments of our own tools tell of: whole contents, and replaced passages.
fn changes(input: &Value) -> Vec<Value> {
    let Some(path) = input["path"].as_str() else { return Vec::new() };
    let diff = |old: Option<&str>, new: &str| json!({ "type": "diff", "path": path, "oldText": old, "newText": new });
    if let Some(content) = input["content"].as_str() {
        return vec![diff(None, content)];
    }
    let blocks = input["edits"].as_array().into_iter().flatten();
    blocks.filter_map(|block| Some(diff(Some(block["old"].as_str()?), block["new"].as_str()?))).collect()
}
