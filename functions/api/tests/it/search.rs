//! Search over HTTP.

use crate::support::Door;
use serde_json::{Value, json};

#[tokio::test]
async fn a_written_file_is_found_with_its_place_and_its_marks() {
    let door = Door::open();
    let at = door.workspace().await;
    let file = json!({ "path": "/projects/plan.md", "content": "# Plan\n\nplant a heliotrope\n" });
    door.json("POST", &format!("{at}/files"), file).await.is(201);
    let search = async |body: Value| door.json("POST", &format!("{at}/search"), body).await;
    let found =
        search(json!({ "query": "heliotropes", "path": "/projects", "kinds": ["file"], "limit": 5 })).await.is(200);
    let result = &found.json["results"][0];
    assert_eq!(
        (&found.json["mode"], &found.json["total"], &found.json["complete"]),
        (&json!("text"), &json!(1), &json!(true))
    );
    assert_eq!(
        (&result["path"], &result["v"], &result["heading"]),
        (&json!("/projects/plan.md"), &json!(1), &json!("Plan"))
    );
    assert_eq!(result["lines"], json!({ "first": 3, "last": 3 }));
    assert_eq!(
        result["snippet"],
        json!([{ "text": "plant a ", "mark": false }, { "text": "heliotrope", "mark": true }])
    );
    let exact = search(json!({ "query": "h.lio", "mode": "regex" })).await.is(200);
    assert_eq!((&exact.json["mode"], &exact.json["total"]), (&json!("regex"), &json!(1)));
    assert_eq!(search(json!({ "query": "heliotrope", "mode": "hybrid" })).await.is(200).json["mode"], json!("text"));
}

#[tokio::test]
async fn searches_that_mean_nothing_and_those_by_meaning_are_refused() {
    let door = Door::open();
    let at = format!("{}/search", door.workspace().await);
    let refused =
        door.json("POST", &at, json!({ "query": "x", "mode": "semantic" })).await.refuses(422, "UNPROCESSABLE");
    assert_eq!(refused.json["error"]["details"]["reason"], json!("NO_EMBEDDING_MODEL"));
    for body in [
        json!({ "query": "" }),
        json!({ "query": "-only" }),
        json!({ "query": "a".repeat(100_000) }),
        json!({ "query": "x", "limit": 0 }),
        json!({ "query": "x", "limit": 1000 }),
        json!({ "query": "(", "mode": "regex" }),
        json!({ "query": "x", "modified_after": "yesterday" }),
        json!({ "query": "x", "kinds": ["video"] }),
        json!({ "query": "x", "path": "a" }),
    ] {
        door.json("POST", &at, body).await.refuses(400, "INVALID_ARGUMENT");
    }
    let odd = door.json("POST", &at, json!({ "query": "(", "mode": "regex" })).await.refuses(400, "INVALID_ARGUMENT");
    let error = &odd.json["error"];
    assert_eq!(error["details"]["field"], "query", "the field of this request: {error}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("mode text")), "{error}");
    door.json("POST", &at, json!({ "query": "x", "path": "/nothing" })).await.refuses(404, "NOT_FOUND");
}
