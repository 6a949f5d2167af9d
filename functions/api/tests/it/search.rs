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
        json!({ "query": "x", "tag": "a b" }),
    ] {
        door.json("POST", &at, body).await.refuses(400, "INVALID_ARGUMENT");
    }
    let odd = door.json("POST", &at, json!({ "query": "(", "mode": "regex" })).await.refuses(400, "INVALID_ARGUMENT");
    let error = &odd.json["error"];
    assert_eq!(error["details"]["field"], "query", "the field of this request: {error}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("mode text")), "{error}");
    door.json("POST", &at, json!({ "query": "x", "path": "/nothing" })).await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn filters_that_nothing_can_meet_are_refused_and_an_author_without_files_is_not() {
    let door = Door::open();
    let at = door.workspace().await;
    let file = json!({ "path": "/projects/plan.md", "content": "plant a heliotrope" });
    let made = door.json("POST", &format!("{at}/files"), file).await.is(201);
    let search = async |mode: &str, filter: Value| {
        let mut body = json!({ "query": "heliotrope", "mode": mode });
        body.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
        door.json("POST", &format!("{at}/search"), body).await
    };
    let (early, late) = ("2020-01-31T00:00:00Z", "2020-02-01T00:00:00Z");
    for mode in ["text", "regex"] {
        for author in ["", "nobody", "user:ada", "agent:", "task:7", "service:sandbox"] {
            let refused = search(mode, json!({ "author": author })).await.refuses(400, "INVALID_ARGUMENT");
            let error = &refused.json["error"];
            assert_eq!(error["details"]["field"], "author", "{author:?}: {error}");
            assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("user:<id>")), "{error}");
        }
        for (after, before) in [(late, early), (late, late)] {
            let range = json!({ "modified_after": after, "modified_before": before });
            let refused = search(mode, range).await.refuses(400, "INVALID_ARGUMENT");
            assert_eq!(refused.json["error"]["details"]["field"], "modified_before", "{}", refused.json);
        }
        let own = search(mode, json!({ "author": made.text("author") })).await.is(200);
        assert_eq!(own.json["total"], 1, "{}", own.json);
        for other in ["agent:nobody", "system", "user:019bf537-f228-7cd3-aa1c-3da8af302e12", "Ada <ada@example.org>"] {
            let found = search(mode, json!({ "author": other })).await.is(200);
            assert_eq!(found.json["total"], 0, "{other}: {}", found.json);
        }
        let found = search(mode, json!({ "modified_before": late, "modified_after": early })).await.is(200);
        assert_eq!(found.json["total"], 0, "{}", found.json);
    }
    let call = json!({ "tool": "search", "args": { "query": "heliotrope", "author": "user:ada" } });
    let done = door.json("POST", &format!("{at}/tools"), call).await.is(200);
    assert_eq!((&done.json["success"], &done.json["error"]["details"]["field"]), (&json!(false), &json!("author")));
}
