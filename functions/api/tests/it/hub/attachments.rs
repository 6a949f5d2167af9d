//! Files that come along with a turn.

use super::{CLIENT, chat, hub, thread};

#[tokio::test]
async fn attachments_become_files_and_are_fetched_again() {
    let (door, cwd, _place) = hub();
    let thread = thread(&door, &cwd).await;
    let body = "--b\r\nContent-Disposition: form-data; name=\"input\"\r\n\r\nLook at it\r\n\
        --b\r\nContent-Disposition: form-data; name=\"attachments\"; filename=\"../note.md\"\r\nContent-Type: text/markdown\r\n\r\n# Note\r\n--b--";
    let headers = [CLIENT, ("content-type", "multipart/form-data; boundary=b")];
    door.ask("POST", &format!("{thread}/turns"), &headers, body).await.is(202);
    let sent = door.take_messages().await.concat();
    assert!(sent.contains("Look at it") && sent.contains("# Note"), "{sent}");
    let chat = chat(&door, &thread).await;
    let workspace = chat.split("/chats").next().unwrap();
    let path =
        sent.split('"').find(|text| text.starts_with("/data/attachments/") && text.ends_with("/note.md")).unwrap();
    let file = door.get(&format!("{workspace}/files/by-path?path={path}")).await.is(200).text("file_id");
    let fetched = door.get(&format!("/attachments/{file}")).await.is(200);
    assert_eq!(&*fetched.bytes, b"# Note");
    let broken = door.ask("POST", &format!("{thread}/turns"), &headers, "--b\r\n").await;
    broken.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_turn_that_is_refused_leaves_no_attachment() {
    let (door, cwd, _place) = hub();
    let thread = thread(&door, &cwd).await;
    let form = |input: &str| {
        format!(
            "--b\r\nContent-Disposition: form-data; name=\"input\"\r\n\r\n{input}\r\n--b\r\n\
            Content-Disposition: form-data; name=\"attachments\"; filename=\"a.md\"\r\n\r\n# A\r\n--b--"
        )
    };
    let path = format!("{thread}/turns");
    let post = async |key: &str, input: &str| {
        let headers = [CLIENT, ("content-type", "multipart/form-data; boundary=b"), ("idempotency-key", key)];
        door.ask("POST", &path, &headers, form(input)).await
    };
    let chat = chat(&door, &thread).await;
    let (workspace, id) = (chat.split("/chats/").next().unwrap(), thread.rsplit('/').next().unwrap());
    let kept = async || {
        let folder = door.get(&format!("{workspace}/files?path=/data/attachments/{id}")).await;
        folder.json["entries"].as_array().map_or(0, Vec::len)
    };
    post("long", &"x".repeat(1 << 20)).await.refuses(413, "PAYLOAD_TOO_LARGE");
    assert_eq!(kept().await, 0, "words that are too long");
    let begun = post("first", "look at it").await.is(202).text("turnId");
    assert_eq!(kept().await, 1);
    post("second", "look at it, too").await.refuses(409, "CONFLICT");
    assert_eq!(kept().await, 1, "another turn is active");
    assert_eq!(post("first", "look at it").await.is(202).text("turnId"), begun, "the same request again");
    assert_eq!(kept().await, 1);
}
