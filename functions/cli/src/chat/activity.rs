//! The work that runs in a chat, in a few words, for the status line of a person who waits.

use crate::{
    follow::Event,
    output::one_line,
    render::words::elapsed,
    value::{number, text},
};
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

/// The longest name of a tool, in characters.
const TOOL: usize = 40;
/// How long nothing is written before the status line is shown, at least; and how often it is drawn again.
const QUIET: Duration = Duration::from_millis(500);
/// The events by which a turn is known that began before this program heard of it.
const OF_A_TURN: [&str; 5] = ["turn_started", "thought", "chunk", "call", "observation"];

/// The moments at which the status line is drawn, if nothing else was written.
pub(super) fn status_ticks() -> Interval {
    let mut ticks = interval(QUIET);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// The work of a chat, as its events tell of it.
#[derive(Debug)]
pub(super) struct Activity {
    work: String,
    since: Instant,
    /// The calls that run, with their tools, in the order in which they began.
    calls: Vec<(String, String)>,
    /// When the hub ceased to answer, if it does not.
    lost_since: Option<Instant>,
}

impl Activity {
    /// Of a chat without a turn.
    pub(super) fn new() -> Self {
        Self { work: queued(), since: Instant::now(), calls: Vec::new(), lost_since: None }
    }

    /// A message is accepted: time counts from now on where no turn runs.
    pub(super) fn accepted(&mut self) {
        if self.work == queued() {
            self.since = Instant::now();
        }
    }

    /// The hub does not answer, or does again.
    pub(super) fn lost(&mut self, is_lost: bool) {
        self.lost_since = is_lost.then(|| self.lost_since.unwrap_or_else(Instant::now));
    }

    /// Keeps up with the chat.
    pub(super) fn note(&mut self, event: &Event) {
        let (name, data) = (event.name.as_str(), &event.data);
        match name {
            "call" => self.calls.push((text(data, "call_id").to_owned(), one_line(text(data, "tool"), TOOL))),
            "observation" => self.calls.retain(|(id, _)| id != text(data, "call_id")),
            // A worker that takes a turn over makes the open calls again, and no event tells of that.
            "turn_started" if number(data, "attempt") > 1 => {}
            // After a reset the end of a call may be missing.
            "turn_started" | "done" | "stopped" | "reset" => self.calls.clear(),
            _ => {}
        }
        let work = match name {
            "waiting" => waits(text(data, "reason")).to_owned(),
            "done" | "stopped" => queued(),
            "error" if text(data, "code") == "PAUSED" => "paused".to_owned(),
            "team_started" => "team".to_owned(),
            // They say nothing about what runs.
            "usage" | "file_updated" | "plan_step" | "member_ended" => return,
            // Between turns a setting may change, and nothing runs.
            _ if self.work == queued() && !OF_A_TURN.contains(&name) => return,
            _ => self.running(),
        };
        if self.work != work {
            (self.work, self.since) = (work, Instant::now());
        }
    }

    fn running(&self) -> String {
        match self.calls.as_slice() {
            [] => "model".to_owned(),
            [(_, tool)] => format!("tool: {tool}"),
            calls => {
                let tools: Vec<&str> = calls.iter().map(|(_, tool)| tool.as_str()).collect();
                format!("tools: {}", tools.join(", "))
            }
        }
    }

    /// The work in a line; with its time so far, if the line is drawn again as time goes by.
    pub(super) fn status(&self, has_time: bool) -> String {
        let (work, since) = match self.lost_since {
            Some(since) => ("waits for the hub", since),
            None => (self.work.as_str(), self.since),
        };
        let took = if has_time { elapsed(since) } else { None };
        took.map_or_else(|| format!("… {work}"), |took| format!("… {work}  {took}"))
    }
}

fn queued() -> String {
    "queued".to_owned()
}

fn waits(reason: &str) -> &'static str {
    match reason {
        "slots" => "waits for a slot",
        "place" => "waits for its turn to run a command",
        "sandbox" => "waits for the sandbox",
        "model" => "waits to ask the model again",
        _ => "waits",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn event(name: &str, data: Value) -> Event {
        Event { number: Some(1), name: name.into(), data }
    }

    #[test]
    fn the_work_of_a_turn_is_named_step_by_step() {
        let mut activity = Activity::new();
        assert_eq!(activity.status(false), "… queued");
        let call = |id: &str, tool: &str| event("call", json!({ "call_id": id, "tool": tool }));
        let answer = |id: &str| event("observation", json!({ "call_id": id, "success": true }));
        for (event, status) in [
            (event("turn_started", json!({ "attempt": 1 })), "… model"),
            (event("waiting", json!({ "reason": "slots" })), "… waits for a slot"),
            (event("usage", json!({})), "… waits for a slot"),
            (event("thought", json!({ "text": "hm" })), "… model"),
            (call("c1", "grep"), "… tool: grep"),
            (call("c2", "a\x1b[2Jb"), "… tools: grep, a[2Jb"),
            (answer("c1"), "… tool: a[2Jb"),
            (event("waiting", json!({ "reason": "sandbox", "call_id": "c2" })), "… waits for the sandbox"),
            (event("agent_update", json!({ "call_id": "c2", "update": {} })), "… tool: a[2Jb"),
            (answer("c2"), "… model"),
            (event("waiting", json!({ "reason": "model" })), "… waits to ask the model again"),
            (event("waiting", json!({ "reason": "something new" })), "… waits"),
            (call("c3", "read"), "… tool: read"),
            // Another worker makes the call again.
            (event("turn_started", json!({ "attempt": 2 })), "… tool: read"),
            (answer("c3"), "… model"),
            (event("error", json!({ "code": "PAUSED" })), "… paused"),
            (event("turn_started", json!({ "attempt": 3 })), "… model"),
            (event("team_started", json!({})), "… team"),
            (event("member_ended", json!({})), "… team"),
            (event("chunk", json!({ "text": "All is done." })), "… model"),
            (call("c4", "ls"), "… tool: ls"),
            (event("reset", json!({ "reason": "expired" })), "… model"),
            (event("done", json!({ "stop_reason": "end_turn" })), "… queued"),
            // Between turns nothing runs.
            (event("mode_changed", json!({ "mode": "plan" })), "… queued"),
            (event("message", json!({ "role": "user" })), "… queued"),
            // The next turn has no calls of the one before.
            (call("c5", "ls"), "… tool: ls"),
            (event("turn_started", json!({ "attempt": 1 })), "… model"),
        ] {
            activity.note(&event);
            assert_eq!(activity.status(false), status, "{event:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn time_counts_for_each_work_and_not_where_nothing_may_move() {
        let mut activity = Activity::new();
        let wait = async |seconds| tokio::time::advance(Duration::from_secs(seconds)).await;
        wait(30).await;
        activity.accepted();
        assert_eq!(activity.status(true), "… queued", "the wait before the message is the person's");
        wait(3).await;
        assert_eq!(activity.status(true), "… queued  3 s");
        activity.note(&event("turn_started", json!({})));
        wait(61).await;
        activity.note(&event("chunk", json!({ "text": "x" })));
        activity.accepted();
        assert_eq!((activity.status(true), activity.status(false)), ("… model  1 min 1 s".into(), "… model".into()));
        activity.lost(true);
        wait(2).await;
        activity.lost(true);
        assert_eq!(activity.status(true), "… waits for the hub  2 s");
        activity.lost(false);
        assert_eq!(activity.status(true), "… model  1 min 3 s", "the model went on meanwhile");
        activity.note(&event("done", json!({})));
        activity.note(&event("mode_changed", json!({})));
        wait(60).await;
        activity.accepted();
        assert_eq!(activity.status(true), "… queued", "a change between two turns begins no work");
    }
}
