//! The frames that runs of chats and of tasks have in common.

use super::{Mode, ids::RunId, state::Status};
use crate::Frame;
use domain::Error;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The form in which a run is told: as frames in some modes, or as its last values alone.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub thread: String,
    pub run: RunId,
    /// The assistant.
    pub graph: String,
    /// None for the last values alone. A set: those who ask for the same modes share a view, in whatever order and however often they name them.
    pub modes: Option<BTreeSet<Mode>>,
}

/// The frames of one event.
pub(super) struct Out<'a> {
    pub form: &'a Form,
    pub step: u32,
    pub number: u64,
    pub frames: &'a mut Vec<Frame>,
}

impl Out<'_> {
    /// Whether the client asked for this mode.
    pub(super) fn wants(&self, mode: Mode) -> bool {
        self.form.modes.as_ref().is_some_and(|modes| modes.contains(&mode))
    }

    fn push(&mut self, event: &'static str, data: Value) {
        self.frames.push(Frame { number: self.number, event: Some(event), data });
    }

    pub(super) fn begin(&mut self) {
        if self.form.modes.is_some() {
            let (run, thread) = (self.form.run.to_string(), &self.form.thread);
            self.push("metadata", json!({ "run_id": run, "thread_id": thread, "attempt": 1 }));
        }
    }

    pub(super) fn values(&mut self, values: impl FnOnce() -> Value) {
        if self.wants(Mode::Values) {
            self.push("values", values());
        }
    }

    pub(super) fn update(&mut self, node: &str, output: impl FnOnce() -> Value) {
        if self.wants(Mode::Updates) {
            self.push("updates", json!({ node: output() }));
        }
    }

    pub(super) fn custom(&mut self, data: impl FnOnce() -> Value) {
        if self.wants(Mode::Custom) {
            self.push("custom", data());
        }
    }

    pub(super) fn tool(&mut self, data: impl FnOnce() -> Value) {
        if self.wants(Mode::Tools) {
            self.push("tools", data());
        }
    }

    /// A piece of a message, or a whole one that has no pieces.
    pub(super) fn tuple(&mut self, node: &str, message: impl FnOnce() -> Value) {
        if self.wants(Mode::Tuples) {
            let metadata = self.metadata(node);
            self.push("messages", json!([message(), metadata]));
        }
    }

    /// A message in a form of the mode `messages`: with its metadata when it begins, as it grows, and complete.
    pub(super) fn message(&mut self, node: &str, message: &Value, begins: bool, is_complete: bool) {
        if !self.wants(Mode::Messages) {
            return;
        }
        if begins {
            let id = message["id"].as_str().unwrap_or_default();
            let metadata = self.metadata(node);
            self.push("messages/metadata", json!({ id: { "metadata": metadata } }));
        }
        self.push(if is_complete { "messages/complete" } else { "messages/partial" }, json!([message]));
    }

    fn metadata(&self, node: &str) -> Value {
        let Form { thread, run, graph, .. } = self.form;
        json!({
            "run_id": run.to_string(), "thread_id": thread, "graph_id": graph, "langgraph_node": node,
            "langgraph_step": self.step, "tags": [],
        })
    }

    /// The end of the run, whose values are `values`.
    pub(super) fn end(&mut self, status: Status, error: Option<&Error>, values: Value) {
        let told = error.map(|error| {
            let message = match &error.hint {
                Some(hint) => format!("{} ({hint})", error.message),
                None => error.message.clone(),
            };
            json!({ "error": error.code, "message": message })
        });
        if self.form.modes.is_none() {
            let whole = told.map_or(values, |error| json!({ "__error__": error }));
            return self.frames.push(Frame { number: self.number, event: None, data: whole });
        }
        if let Some(error) = told {
            self.push("error", error);
        }
        let end = json!({ "run_id": self.form.run.to_string(), "status": status.name() });
        self.push("end", end);
    }
}
