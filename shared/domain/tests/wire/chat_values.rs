//! Values that commands and views of chats share.

use buildscale_domain::{FilePath, ModelSettings, PermissionRule};

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

pub fn model_settings() -> ModelSettings {
    ModelSettings { temperature: Some(0.5), top_p: Some(0.25), max_output_tokens: Some(1_000) }
}
