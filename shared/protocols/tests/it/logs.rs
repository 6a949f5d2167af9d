//! The recorded logs of chats, and their transcripts.

use domain::{ChatEvent, Timestamp};
use std::path::PathBuf;

/// Text, tools, failures and stops; parallel calls, a question, files and a pause; reasoning, a crash, a plan, a permission and limits. Then one thing
/// each, as a hub recorded it.
pub const LOGS: [(&str, &str); 17] = [
    ("simple", "planner/simple.json"),
    ("tool", "planner/tool.json"),
    ("failed", "planner/failed.json"),
    ("stopped", "planner/stopped.json"),
    ("complex", "planner/complex.json"),
    ("thread", "golden/hub/thread.log.json"),
    ("asks", "clients/asks.log.json"),
    ("text", "clients/text.log.json"),
    ("reasoning", "clients/reasoning.log.json"),
    ("parallel", "clients/parallel.log.json"),
    ("failed-call", "clients/failed-call.log.json"),
    ("files", "clients/files.log.json"),
    ("question", "clients/question.log.json"),
    ("permission", "clients/permission.log.json"),
    ("stop", "clients/stop.log.json"),
    ("crash", "clients/crash.log.json"),
    ("functions", "clients/functions.log.json"),
];

pub fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

pub fn log(path: &str) -> Vec<ChatEvent> {
    serde_json::from_str(&std::fs::read_to_string(file(path)).unwrap()).unwrap()
}

/// The events with the numbers 1, 2, …, a second apart.
pub fn numbered(log: &[ChatEvent]) -> impl Iterator<Item = (u64, Timestamp, &ChatEvent)> {
    let at = |number: u64| Timestamp::from_millis(1_767_225_600_000 + i64::try_from(number).unwrap() * 1000);
    (1..).zip(log).map(move |(number, event)| (number, at(number), event))
}

/// Compares a transcript with the one that is kept.
pub fn golden(name: &str, text: &str) {
    let path = file(&format!("clients/{name}"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(wanted, text, "{name}: BLESS=1 renders it anew");
}
