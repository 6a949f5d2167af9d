//! Tags, links and networks over HTTP.

use crate::support::Door;
use serde_json::json;

#[tokio::test]
async fn files_are_tagged_linked_and_listed() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let files = format!("{workspace}/files");
    let spec = door.file(&workspace, "/projects/spec.md", "the spec").await;
    let plan = door.file(&workspace, "/projects/plan.md", "see [[spec]] and [x](later.md)").await;
    let id = spec.rsplit('/').next().unwrap().to_owned();

    let tagged = door.json("POST", &format!("{spec}/tags"), json!({ "tags": ["Open"] })).await.is(200);
    assert_eq!((&tagged.json["tags"], &tagged.json["changed"]), (&json!(["open"]), &json!(true)));
    let wrong = door.json("POST", &format!("{spec}/tags"), json!({ "tags": ["a b"] })).await;
    assert_eq!(wrong.refuses(400, "INVALID_ARGUMENT").json["error"]["details"]["field"], "tags");
    let counts = door.get(&format!("{files}/tags")).await.is(200);
    assert_eq!(counts.json, json!({ "tags": [{ "tag": "open", "files": 1 }], "truncated": false }));
    let with = door.get(&format!("{files}/tags/open")).await.is(200);
    assert_eq!(with.json["files"][0]["path"], "/projects/spec.md");
    let listed = door.get(&format!("{files}?path=/projects&tag=open")).await.is(200);
    assert_eq!(listed.json["entries"].as_array().unwrap().len(), 1);

    door.json("POST", &format!("{plan}/links"), json!({ "to": id, "kind": "answers" })).await.is(200);
    let links = door.get(&format!("{plan}/links")).await.is(200);
    let kinds: Vec<&str> =
        links.json["links"].as_array().unwrap().iter().filter_map(|link| link["kind"].as_str()).collect();
    assert_eq!(kinds, ["answers", "wiki", "markdown"]);
    assert_eq!(links.json["links"][2]["target"], "later.md");
    let back = door.get(&format!("{spec}/links")).await.is(200);
    assert_eq!((&back.json["tags"], back.json["backlinks"].as_array().unwrap().len()), (&json!(["open"]), 2));
    let network = door.get(&format!("{spec}/network?depth=2")).await.is(200);
    assert_eq!(
        (network.json["nodes"].as_array().unwrap().len(), network.json["edges"].as_array().unwrap().len()),
        (2, 2)
    );
    let deep = door.get(&format!("{spec}/network?depth=6")).await.refuses(400, "INVALID_ARGUMENT");
    assert_eq!(deep.json["error"]["details"]["field"], "depth");

    door.ask("DELETE", &format!("{plan}/links?to={id}&kind=answers"), &[], "").await.is(200);
    door.ask("DELETE", &format!("{spec}/tags?tag=OPEN"), &[], "").await.is(200);
    let back = door.get(&format!("{spec}/links")).await.is(200);
    assert_eq!((&back.json["tags"], back.json["backlinks"].as_array().unwrap().len()), (&json!([]), 1));
}
