//! The content of a prompt as the words of a turn.

use serde_json::Value;

/// The words of content blocks: texts and links in their order, then the files that the editor has put in.
///
/// # Errors
/// That a block is of a kind that was not offered.
pub(super) fn input(prompt: &Value) -> Result<String, String> {
    let blocks = prompt.as_array().ok_or("\"prompt\" is no list")?;
    let (mut words, mut files) = (String::new(), String::new());
    for block in blocks {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("text") => words.push_str(&text(&block["text"])),
            Some("resource_link") => words.push_str(&format!("[@{}]({})", text(&block["name"]), text(&block["uri"]))),
            Some("resource") => {
                let resource = &block["resource"];
                let content = resource["text"].as_str().ok_or("a resource that is no text is not taken")?;
                let uri = text(&resource["uri"]);
                words.push_str(&format!("[@{}]({uri})", uri.rsplit('/').next().unwrap_or_default()));
                files.push_str(&format!("\n\n<file uri=\"{uri}\">\n{}\n</file>", content.trim_end_matches('\n')));
            }
            kind => return Err(format!("content of the type {:?} is not taken", kind.unwrap_or("none"))),
        }
    }
    Ok(words + &files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_links_and_files_become_one_text() {
        let prompt = json!([
            { "type": "text", "text": "Look at " },
            { "type": "resource_link", "name": "a.rs", "uri": "file:///src/a.rs" },
            { "type": "text", "text": " and " },
            { "type": "resource", "resource": { "uri": "file:///src/b.rs", "text": "fn b() {}\n" } },
        ]);
        let expected = "Look at [@a.rs](file:///src/a.rs) and [@b.rs](file:///src/b.rs)\n\n\
            <file uri=\"file:///src/b.rs\">\nfn b() {}\n</file>";
        assert_eq!(input(&prompt).as_deref(), Ok(expected));
        assert!(input(&json!([{ "type": "image", "data": "", "mimeType": "image/png" }])).is_err());
        assert!(input(&json!("text")).is_err());
    }
}
