//! Search: by words at once, and by meaning with any server that makes vectors.

use super::Stage;
use crate::{Result, Stub};
use reqwest::Method;
use serde_json::{Value, json};

pub(super) async fn a_file_is_found_by_its_words_and_by_its_meaning(stage: Stage) -> Result {
    let stub = Stub::start(|_| Vec::new()).await?;
    let settings = [
        ("OPENAI_BASE_URL", stub.base.as_str()),
        ("OPENAI_API_KEY", "sk-not-to-be-seen"),
        ("BUILDSCALE__SEARCH__EMBEDDING_MODEL", "openai/small"),
    ];
    let deployment = stage.another(&settings).await?;
    let client = deployment.client();
    let place = client.place().await?;
    let search = format!("{place}/search");
    let found = async |query: &str, mode: &str| {
        client.post(&search, json!({ "query": query, "mode": mode, "path": "/projects" })).await
    };
    let paths = |found: &Value| -> Vec<String> {
        let results = found["results"].as_array().cloned().unwrap_or_default();
        results.iter().filter_map(|result| result["path"].as_str().map(str::to_owned)).collect()
    };
    client.file(&place, "/projects/garage.md", "# Repairs\n\nThe automobile stands outside.\n").await?;
    client.file(&place, "/projects/kitchen.md", "# Soup\n\nIt boils.\n").await?;
    assert_eq!(paths(&found("automobile", "text").await?), ["/projects/garage.md"]);
    assert_eq!(found("cars", "text").await?["total"], 0);

    // Vectors follow: the answer says what waits.
    let near = loop {
        let near = found("cars", "semantic").await?;
        assert_eq!((&near["mode"], &near["usage"]["input_tokens"]), (&json!("semantic"), &json!(1)), "{near}");
        if near["pending"] == 0 {
            break near;
        }
    };
    assert_eq!(paths(&near), ["/projects/garage.md"]);
    let first = &near["results"][0];
    assert_eq!((&first["v"], &first["lines"]["first"], &first["heading"]), (&json!(1), &json!(1), &json!("Repairs")));
    assert!(first["score"]["meaning"].as_f64().is_some_and(|near| near > 0.1), "{first}");
    let both = found("boils car", "hybrid").await?;
    assert_eq!((&both["mode"], paths(&both).len()), (&json!("hybrid"), 2));

    // A server that fails keeps nobody from finding words.
    stub.take_only("another key");
    let refused = client.ask(Method::POST, &search, json!({ "query": "cars", "mode": "semantic" })).await?;
    refused.refuses(502, "UPSTREAM_REFUSED")?;
    let words = found("boils", "hybrid").await?;
    assert_eq!((&words["mode"], paths(&words)), (&json!("text"), vec!["/projects/kitchen.md".to_owned()]));
    assert!(words["note"].as_str().is_some_and(|note| !note.contains("not-to-be-seen")), "{words}");

    // Where no model is configured, nothing is called semantic.
    let client = stage.client();
    let search = format!("{}/search", client.place().await?);
    let refused = client.ask(Method::POST, &search, json!({ "query": "cars", "mode": "semantic" })).await?;
    assert_eq!(refused.refuses(422, "UNPROCESSABLE")?["details"]["reason"], "NO_EMBEDDING_MODEL");
    Ok(())
}
