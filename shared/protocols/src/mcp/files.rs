//! Files of the workspace as resources, and its skills as prompts.

use super::{Becomes, request::Request};
use serde_json::{Value, json};

/// The scheme and authority of resources: behind them is the path in the workspace.
const FILE: &str = "file://";
/// The most resources that are listed; the template reaches all.
const LISTED: usize = 1000;

/// The request for the content of a file.
pub(super) fn content(path: String) -> Request {
    let route = ["files", "by-path", "content"].map(str::to_owned).into();
    Request { query: vec![("path", path)], is_raw: true, ..Request::get(route) }
}

/// The request behind a method of resources or prompts, and the result that its answer becomes; none for another method.
pub(super) fn request(method: &str, params: &Value) -> Option<Result<(Request, Becomes), String>> {
    Some(match method {
        "resources/list" => {
            let body = json!({ "tool": "glob", "args": { "pattern": "**", "limit": LISTED } });
            Ok((Request::post(vec!["tools".into()], body), Becomes::Resources))
        }
        "resources/read" => {
            let uri = params["uri"].as_str().unwrap_or_default();
            match path_of(uri) {
                Some(path) => Ok((content(path), Becomes::Resource(uri.to_owned()))),
                None => Err(format!("{uri:?} is no file of the workspace: its URI begins with {FILE}/")),
            }
        }
        "prompts/list" => Ok((Request::get(vec!["skills".into()]), Becomes::Prompts)),
        "prompts/get" => {
            let name = params["name"].as_str().unwrap_or_default();
            let about = &params["arguments"]["request"];
            match (name.is_empty() || name.starts_with('.') || name.contains('/'), about.is_null() || about.is_string())
            {
                (false, true) => {
                    let request = about.as_str().unwrap_or_default().to_owned();
                    Ok((Request::get(vec!["skills".into()]), Becomes::Skill { name: name.to_owned(), request }))
                }
                (true, _) => Err(format!("there is no prompt {name:?}")),
                (_, false) => Err("the argument \"request\" is no text".to_owned()),
            }
        }
        _ => return None,
    })
}

/// The one template: every file by its path.
pub(super) fn templates() -> Value {
    json!({ "resourceTemplates": [{
        "uriTemplate": format!("{FILE}{{+path}}"),
        "name": "file",
        "title": "A file of the workspace",
        "description": "Its content, by its absolute path.",
    }] })
}

/// The list of resources, from the outcome of a search for all paths.
pub(super) fn resources(outcome: &Value) -> Value {
    let paths = outcome["result"]["paths"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let resource = |path: &str| json!({ "uri": uri_of(path), "name": path, "title": path.rsplit('/').next() });
    json!({ "resources": paths.filter(|path| !path.ends_with('/')).map(resource).collect::<Vec<_>>() })
}

/// The content of a resource, from the raw answer.
pub(super) fn resource(uri: &str, raw: &Value) -> Value {
    let mut content = json!({ "uri": uri, "mimeType": raw["type"] });
    for kind in ["text", "blob"] {
        if raw[kind].is_string() {
            content[kind] = raw[kind].clone();
        }
    }
    json!({ "contents": [content] })
}

/// The list of prompts, from the answer of `GET …/skills`.
pub(super) fn prompts(body: &Value) -> Value {
    let prompt = |skill: &Value| {
        json!({
            "name": skill["name"], "title": skill["title"], "description": skill["description"],
            "arguments": [{ "name": "request", "description": "What the skill is used for, in words.", "required": false }],
        })
    };
    let skills = body["skills"].as_array().into_iter().flatten();
    json!({ "prompts": skills.map(prompt).collect::<Vec<_>>() })
}

/// The path of the skill of this name, from the answer of `GET …/skills`: the caller's own goes before that of the workspace there.
pub(super) fn path_of_skill(name: &str, body: &Value) -> Option<String> {
    let skill = body["skills"].as_array()?.iter().find(|skill| skill["name"] == name)?;
    Some(skill["path"].as_str()?.to_owned())
}

/// A prompt: the text of a skill, and the words that it is used for.
pub(super) fn prompt(request: &str, raw: &Value) -> Value {
    let text = raw["text"].as_str().unwrap_or_default().trim();
    let text = if request.trim().is_empty() { text.to_owned() } else { format!("{text}\n\n{}", request.trim()) };
    json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] })
}

/// The URI of a file: its path with all bytes escaped that have a meaning in URIs.
fn uri_of(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let escaped =
        path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    escaped.fold(FILE.to_owned(), |uri, part| uri + &part)
}

/// The path behind a URI; none for one that is no file here.
fn path_of(uri: &str) -> Option<String> {
    let escaped = uri.strip_prefix(FILE).filter(|path| path.starts_with('/'))?.as_bytes();
    let (mut path, mut at) = (Vec::with_capacity(escaped.len()), 0);
    while let Some(byte) = escaped.get(at) {
        if *byte == b'%' {
            let digits = escaped.get(at + 1..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            path.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            at += 3;
        } else {
            path.push(*byte);
            at += 1;
        }
    }
    String::from_utf8(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_its_uri_are_the_same_file() {
        for path in ["/a.md", "/projects/50% of é/b c.md", "/x#y?z", "/%41"] {
            assert_eq!(path_of(&uri_of(path)).as_deref(), Some(path));
        }
        assert_eq!(path_of("file:///A%20b").as_deref(), Some("/A b"));
        for wrong in
            ["", "file://host/a", "https:///a", "file:///%", "file:///%4", "file:///%zz", "file:///%ff", "file:///%+1"]
        {
            assert_eq!(path_of(wrong), None, "{wrong}");
        }
    }
}
