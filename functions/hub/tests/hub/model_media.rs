//! Files that a model sees: those of a message and those that its tools read, each in the version that it was about, and none in the log.

use crate::support::{Result, start};
use journeys::Stub;
use reqwest::Method;
use serde_json::{Value, json};

/// Contents that begin as pictures do; what comes then is nobody's business here.
const FIRST: &[u8] = b"\x89PNG\r\n\x1a\nthe first picture";
const SECOND: &[u8] = b"\x89PNG\r\n\x1a\nthe second picture";
/// The beginning of both in base64.
const ENCODED: &str = "iVBORw0KGgp0aGUg";

/// The pictures of a request, each as text.
fn pictures(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().into_iter().flatten();
    let parts = messages.flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
    parts.filter_map(|part| Some(part["image_url"]["url"].as_str()?.to_owned())).collect()
}

#[tokio::test]
async fn a_model_sees_the_version_that_a_message_was_about_and_what_its_tools_read() -> Result {
    let stub = Stub::start(|asked| {
        let last = asked.body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        if last["content"].to_string().contains("read the other") && last["role"] == "user" {
            let function = json!({ "name": "read", "arguments": r#"{"path": "/data/other.png"}"# });
            let call =
                json!({ "tool_calls": [{ "index": 0, "id": "call_1", "type": "function", "function": function }] });
            return vec![Stub::piece(call, json!("tool_calls")), Stub::usage(10, 5)];
        }
        vec![Stub::piece(json!({ "content": "I see it." }), json!("stop")), Stub::usage(10, 5)]
    })
    .await?;
    let data = tempfile::tempdir()?;
    let settings = [
        ("BUILDSCALE__AI__MODEL", "openai/small"),
        ("BUILDSCALE__AI__OPENAI__BASE_URL", stub.base.as_str()),
        ("BUILDSCALE__AI__OPENAI__MEDIA", "true"),
    ];
    let hub = start(data.path(), &settings).await?;
    let client = hub.client();
    let place = client.place().await?;
    let put = async |path: &str, content: &'static [u8]| {
        let target = format!("{place}/files/by-path/content?path={path}");
        client.send(client.request(Method::PUT, &target).body(content)).await?.good()
    };
    let file = put("/data/a.png", FIRST).await?["file_id"].clone();
    put("/data/other.png", SECOND).await?;
    let made = client.post(&format!("{place}/chats"), json!({ "goal": "look", "files": [file] })).await?;
    let chat = format!("{place}/chats/{}", made["chat_id"].as_str().ok_or("no chat")?);
    client.until(&chat, |chat| chat["status"] == "idle").await?;
    put("/data/a.png", SECOND).await?;
    client.post(&chat, json!({ "content": "read the other" })).await?;
    client.until(&chat, |chat| chat["status"] == "idle" && chat["turns"] == 2).await?;

    let asked = stub.asked();
    let seen: Vec<_> = asked.iter().map(|asked| pictures(&asked.body).len()).collect();
    assert_eq!(seen, [1, 1, 2]);
    let (first, last) = (pictures(&asked[0].body), pictures(&asked[2].body));
    assert_eq!((&last[0], last[0] == last[1]), (&first[0], false), "the message is still about its version");
    let log = client.get(&chat).await?.to_string();
    assert!(log.contains("a.png") && !log.contains(ENCODED), "{log}");
    Ok(())
}
