//! The AI SDK by its own provider for OpenAI.

use super::{Result, json, told};

#[tokio::test]
async fn the_provider_of_the_ai_sdk_for_openai_reads_objects_and_goes_on_by_the_items_that_it_names() -> Result {
    let told = told("ai-sdk-openai.mjs").await?;
    let fits = json!([6, 6, 6, 6, 6, 6, 6, 6]);
    assert_eq!((&told["responses"], &told["completions"]), (&fits, &fits));
    let fault = json!(["AI_APICallError", true]);
    let faults = json!([fault, fault, fault, fault]);
    assert_eq!(told["faults"], json!({ "responses": faults, "completions": faults }));
    assert_eq!(told["turns"], json!(["Said.", "Said.", true]));
    assert_eq!(told["functions"], json!([["Rome", "Oslo"], "It is warm, and warm."]));
    Ok(())
}
