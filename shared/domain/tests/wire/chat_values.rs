//! Values that commands and views of chats share.

use buildscale_domain::{AnswerFormat, FilePath, LabelChanges, Labels, ModelSettings, PermissionRule};
use serde_json::json;
use std::sync::Arc;

pub fn rules() -> Vec<PermissionRule> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let path = FilePath::parse("/projects/demo/a.md").unwrap();
    vec![
        PermissionRule::CommandPrefix { words: words(&["cargo", "test"]), folder: FilePath::root() },
        PermissionRule::Command { words: words(&["make"]), folder: path.clone() },
        PermissionRule::File { path },
        PermissionRule::Tool { tool: "mcp__mail__send".into() }.denied(),
    ]
}

pub fn labels() -> Labels {
    Labels::checked("labels", [("customer".to_owned(), "c-17".to_owned())]).unwrap()
}

pub fn label_changes() -> LabelChanges {
    [("customer".to_owned(), Some("c-18".to_owned())), ("environment".to_owned(), None)].into()
}

pub fn model_settings() -> ModelSettings {
    ModelSettings { temperature: Some(0.5), top_p: Some(0.25), max_output_tokens: Some(1_000) }
}

pub fn answer_format() -> AnswerFormat {
    AnswerFormat { name: Some("answer".into()), schema: Arc::new(json!({ "type": "object" })), strict: true }
}
