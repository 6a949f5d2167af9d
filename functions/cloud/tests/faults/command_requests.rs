//! Requests to run a command: of an agent by its tool, or of a flow by a node.

use crate::{lane::Lane, machines::COMMAND};
use journeys::{Event, Watch};
use serde_json::json;

/// The one who wants to.
#[derive(Clone, Copy, Debug)]
pub enum By {
    Agent,
    Flow,
}

/// A command that somebody wants to run.
pub struct Wish {
    by: By,
    /// The chat or the task.
    path: String,
    pub watch: Watch,
}

fn flow() -> String {
    let words = json!(["/bin/sh", "-c", COMMAND]);
    format!(
        "nodes:\n  - {{id: begin, kind: deterministic, role: start, context: none}}\n  \
         - {{id: work, kind: deterministic, role: linear, context: none, op: {{command: {words}}}}}\n  \
         - {{id: end, kind: deterministic, role: exit, context: none}}\n\
         edges: [{{from: begin, to: work}}, {{from: work, to: end}}]\n"
    )
}

impl Wish {
    /// The words about the command, once the turn or task that wanted it has ended.
    pub async fn told(&self) -> String {
        let done = self.watch.until_event("done").await.unwrap();
        match self.by {
            By::Agent => self.watch.until_event("observation").await.unwrap().data.to_string(),
            By::Flow => done.data.to_string(),
        }
    }

    /// How often a worker has begun or taken up the turn or node of the command.
    pub fn attempts(&self, events: &[Event]) -> usize {
        let is_attempt = |event: &&Event| match self.by {
            By::Agent => event.name == "turn_started",
            By::Flow => event.name == "node_started" && event.data["node"] == "work",
        };
        events.iter().filter(is_attempt).count()
    }
}

impl Lane {
    /// Somebody wants to run the command, and may.
    pub async fn wants(&self, by: By) -> Wish {
        let path = match by {
            By::Agent => self.client.chat(&self.place, "run it").await.unwrap(),
            By::Flow => {
                self.client.flow(&self.place, "run", &[("workflow.yaml", &flow())]).await.unwrap();
                self.client.task(&self.place, "run", json!({})).await.unwrap()
            }
        };
        let watch = self.client.watch(&path);
        if let By::Agent = by {
            let asked = watch.until_event("permission_required").await.unwrap();
            let permission = format!("{path}/permissions/{}", asked.data["permission_id"].as_str().unwrap());
            self.client.post(&permission, json!({ "outcome": "approved" })).await.unwrap();
        }
        Wish { by, path, watch }
    }

    /// All that must hold of the chat or task that wanted it.
    pub async fn check_wish(&self, wish: &Wish, what: &str) {
        match wish.by {
            By::Agent => self.check(&wish.path, &wish.watch, what).await,
            By::Flow => self.check_tasks(what).await,
        }
    }
}
