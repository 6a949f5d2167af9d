//! `tag`, `link` and `related`.

use crate::common::{Hands, has};
use domain::Code;

#[tokio::test]
async fn files_are_tagged_found_by_tag_and_untagged() {
    let mut hands = Hands::agent().await;
    hands.put("/projects/a.md", "a").await;
    hands.put("/projects/b.md", "b").await;
    let output = hands.ok("tag", r##"{"path": "/projects/a.md", "tags": ["Open", "#draft"]}"##).await;
    assert_eq!(output, "tags of /projects/a.md: draft, open");
    has(&hands.ok("file_info", r#"{"path": "/projects/a.md"}"#).await, &["tags: draft, open"]);
    assert!(!hands.ok("file_info", r#"{"path": "/projects/b.md"}"#).await.contains("tags"));
    let found = hands.ok("find", r#"{"path": "/projects", "tag": "open"}"#).await;
    assert!(found.contains("a.md") && !found.contains("b.md"), "{found}");
    hands.ok("tag", r#"{"path": "/projects/a.md", "tags": ["open"], "remove": true}"#).await;
    assert_eq!(hands.ok("find", r#"{"tag": "open"}"#).await, "nothing matches");
    assert_eq!(hands.refused("tag", r#"{"path": "/projects/a.md", "tags": ["a b"]}"#).await.0, Code::InvalidArgument);
    assert_eq!(hands.refused("tag", r#"{"path": "/nope", "tags": ["a"]}"#).await.0, Code::NotFound);
}

#[tokio::test]
async fn links_of_both_sorts_are_shown_in_both_directions_and_further_out() {
    let mut hands = Hands::agent().await;
    hands.put("/projects/spec.md", "the spec").await;
    hands.put("/projects/plan.md", "see [[spec]] and [later](later.md)").await;
    hands.put("/code.rs", "fn main() {}").await;
    hands.ok("link", r#"{"from": "/code.rs", "to": "/projects/plan.md", "kind": "implements"}"#).await;
    let output = hands.ok("related", r#"{"path": "/projects/plan.md"}"#).await;
    has(&output, &["wiki  /projects/spec.md", "markdown  later.md (nothing is there)", "implements  /code.rs"]);
    let inside = hands.ok("related", r#"{"path": "/projects/plan.md", "within": "/projects"}"#).await;
    assert!(inside.contains("spec.md") && !inside.contains("code.rs"), "{inside}");
    let further = hands.ok("related", r#"{"path": "/code.rs", "depth": 2}"#).await;
    has(
        &further,
        &["2  /projects/spec.md", "/code.rs implements /projects/plan.md", "/projects/plan.md wiki /projects/spec.md"],
    );
    let confined = hands.ok("related", r#"{"path": "/projects/plan.md", "depth": 2, "within": "/projects"}"#).await;
    assert!(!confined.contains("code.rs"), "{confined}");
    hands.ok("link", r#"{"from": "/code.rs", "to": "/projects/plan.md", "kind": "implements", "remove": true}"#).await;
    assert!(!hands.ok("related", r#"{"path": "/projects/plan.md"}"#).await.contains("code.rs"));
    let wiki = r#"{"from": "/code.rs", "to": "/projects/plan.md", "kind": "wiki"}"#;
    assert_eq!(hands.refused("link", wiki).await.0, Code::InvalidArgument);
}
