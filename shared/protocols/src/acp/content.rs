//! The content of a prompt as the words of a turn, and the files that come along.

use crate::incoming_file::{IncomingFile, Message, Source};
use domain::text::percent_decoded;
use serde_json::Value;

/// How many linked files are read, and how long one may be, in bytes; a message has 200 KiB.
const FILES: usize = 20;
const FILE: usize = 64 * 1024;
const MESSAGE: usize = 180 * 1024;

/// The files that content blocks link to, each once: absolute paths.
pub(super) fn links(prompt: &Value) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let links = prompt.as_array().into_iter().flatten().filter(|block| block["type"] == "resource_link");
    for path in links.filter_map(|block| path_of(block["uri"].as_str()?)) {
        if !paths.contains(&path) && paths.len() < FILES {
            paths.push(path);
        }
    }
    paths
}

/// The absolute path of a `file:` URI on this machine (RFC 8089), without its query and its fragment, such as a range of lines.
fn path_of(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    path.starts_with('/').then(|| decoded(path))
}

/// A part of a URI as people read it; as it is where its bytes are no text.
fn decoded(part: &str) -> String {
    String::from_utf8(percent_decoded(part)).unwrap_or_else(|_| part.to_owned())
}

/// Words with a linked file as the editor has it, which may not be saved; as they are where it is too long.
pub fn with_file(words: String, path: &str, content: &str) -> String {
    if content.len() > FILE || words.len() + content.len() > MESSAGE {
        return words;
    }
    words + &format!("\n\n<file uri=\"file://{path}\">\n{}\n</file>", content.trim_end_matches('\n'))
}

/// The words and the files of content blocks. The words are texts, links and names of files in their order, then the texts of files that the editor has
/// put in. The files are pictures, sounds, and what else is no text.
///
/// # Errors
/// That a block is of a kind that was not offered, or its content no base64; that there are too many files.
pub(super) fn input(prompt: &Value) -> Result<(String, Vec<IncomingFile>), String> {
    let blocks = prompt.as_array().ok_or("\"prompt\" is no list")?;
    let (mut words, mut files, mut brought) = (String::new(), String::new(), Message::default());
    for block in blocks {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(file) = file(block) {
            brought.bring("prompt", file).map_err(|error| error.message)?;
            if let Some(file) = brought.files.last_mut() {
                file.name = decoded(&file.name);
                words.push_str(&format!("[@{}]", file.name));
            }
            continue;
        }
        match block["type"].as_str() {
            Some("text") => words.push_str(&text(&block["text"])),
            Some("resource_link") => words.push_str(&format!("[@{}]({})", text(&block["name"]), text(&block["uri"]))),
            Some("resource") => {
                let resource = &block["resource"];
                let content = resource["text"].as_str().ok_or("a resource that is no text is not taken")?;
                let uri = text(&resource["uri"]);
                words.push_str(&format!("[@{}]({uri})", decoded(uri.rsplit('/').next().unwrap_or_default())));
                files.push_str(&format!("\n\n<file uri=\"{uri}\">\n{}\n</file>", content.trim_end_matches('\n')));
            }
            kind => return Err(format!("content of the type {:?} is not taken", kind.unwrap_or("none"))),
        }
    }
    Ok((words + &files, brought.files))
}

/// The file that a block has in base64; none for one of another kind.
fn file(block: &Value) -> Option<Source<'_>> {
    let (content, data) = match block["type"].as_str()? {
        "image" | "audio" => (block, &block["data"]),
        "resource" if block["resource"]["blob"].is_string() => (&block["resource"], &block["resource"]["blob"]),
        _ => return None,
    };
    let name = content["uri"].as_str().and_then(|uri| uri.rsplit('/').next()).filter(|name| !name.contains(':'));
    let media_type = content["mimeType"].as_str().unwrap_or_default().into();
    Some(Source::Base64 { media_type, data: data.as_str().unwrap_or("-"), name })
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
        assert_eq!(input(&prompt), Ok((expected.to_owned(), Vec::new())));
        assert_eq!(links(&prompt), ["/src/a.rs"]);
        assert_eq!(with_file("Look".into(), "/a", "x\n"), "Look\n\n<file uri=\"file:///a\">\nx\n</file>");
        assert_eq!(with_file("Look".into(), "/a", &"x".repeat(FILE + 1)), "Look", "the link stays");
        assert!(input(&json!("text")).is_err());
    }

    #[test]
    fn links_are_read_as_the_addresses_that_they_are() {
        let link = |uri: &str| json!({ "type": "resource_link", "name": "a", "uri": uri });
        let linked = |uri: &str| links(&json!([link(uri)]));
        for (uri, path) in [
            ("file:///src/my%20notes/%C3%A4.md", "/src/my notes/ä.md"),
            ("file:///src/a.rs#L5-10", "/src/a.rs"),
            ("file:///src/a.rs?symbol=main#L5", "/src/a.rs"),
            ("file://localhost/src/a.rs", "/src/a.rs"),
            ("file:///src/100%.md", "/src/100%.md"),
            ("file:///src/a%23b.md", "/src/a#b.md"),
            ("file:///src/%FF.md", "/src/%FF.md"),
        ] {
            assert_eq!(linked(uri), [path], "{uri}");
        }
        for elsewhere in ["file://server/src/a.rs", "https://example.org/a.rs", "file:a.rs", "zed:///agent/thread/1"] {
            assert_eq!(linked(elsewhere), [""; 0], "{elsewhere}");
        }
        let twice = json!([link("file:///a%20b"), link("file:///a%20b#L1")]);
        assert_eq!(links(&twice), ["/a b"], "each once");
        let file = json!({ "uri": "file:///my%20notes.md", "text": "x" });
        let blob = json!({ "uri": "file:///my%20plan.pdf", "blob": "aGk=" });
        let prompt = json!([{ "type": "resource", "resource": file }, { "type": "resource", "resource": blob }]);
        let (words, files) = input(&prompt).unwrap_or_default();
        assert!(words.starts_with("[@my notes.md](file:///my%20notes.md)[@my plan.pdf]"), "{words}");
        assert_eq!(files.first().map(|file| file.name.as_str()), Some("my plan.pdf"));
    }

    #[test]
    fn pictures_sounds_and_other_files_come_along_with_the_words() {
        let blob = json!({ "uri": "file:///src/a.pdf", "mimeType": "application/pdf", "blob": "aGk=" });
        let prompt = json!([
            { "type": "text", "text": "Compare " },
            { "type": "image", "mimeType": "image/png", "data": "aGk=" },
            { "type": "text", "text": " with " },
            { "type": "resource", "resource": blob },
            { "type": "audio", "mimeType": "audio/wav", "data": "" },
        ]);
        let (words, files) = input(&prompt).unwrap_or_default();
        assert_eq!(words, "Compare [@file.png] with [@a.pdf][@file.wav]");
        let told: Vec<_> = files.iter().map(|file| (file.name.as_str(), file.content.as_slice())).collect();
        assert_eq!(told, [("file.png", b"hi".as_slice()), ("a.pdf", b"hi".as_slice()), ("file.wav", b"".as_slice())]);
        for broken in [json!({ "type": "image", "mimeType": "image/png" }), json!({ "type": "audio", "data": "h!" })] {
            assert!(input(&json!([broken])).is_err(), "{broken}");
        }
    }
}
