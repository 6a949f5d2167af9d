//! The suite of the embedders.

use ports::{EmbedAs, Embedded, Embedder, ModelError};
use std::{future::Future, sync::Arc};

/// Holds an embedder to its documentation. Each embedder that `fresh` gives is of the same space.
pub async fn embedder<F: Future<Output = Arc<dyn Embedder>>>(fresh: impl Fn() -> F) {
    its_space_has_a_name_that_stays(&*fresh().await, &*fresh().await);
    each_text_has_its_vector_in_the_order_of_the_texts(&*fresh().await).await;
    vectors_are_of_one_length_finite_and_not_zero(&*fresh().await).await;
    as_many_texts_as_it_says_are_taken_and_no_more(&*fresh().await).await;
    a_blank_text_is_rejected_with_those_around_it(&*fresh().await).await;
    tokens_are_counted(&*fresh().await).await;
}

fn its_space_has_a_name_that_stays(one: &dyn Embedder, other: &dyn Embedder) {
    assert!(!one.space().is_empty(), "vectors under no name cannot be told from others");
    assert_eq!(one.space(), other.space(), "vectors of one model cannot be compared after a restart");
}

async fn each_text_has_its_vector_in_the_order_of_the_texts(embedder: &dyn Embedder) {
    let both = ["rain", "a car in the harbour"];
    let together = embed(embedder, &both, EmbedAs::Passage).await;
    assert_eq!(together.vectors.len(), both.len());
    for (text, vector) in both.iter().zip(&together.vectors) {
        let alone = embed(embedder, &[*text], EmbedAs::Passage).await;
        let near: Vec<f64> = together.vectors.iter().map(|each| cosine(each, &alone.vectors[0])).collect();
        let own = cosine(vector, &alone.vectors[0]);
        assert!(near.iter().all(|each| *each <= own), "{text:?}: another text has its vector: {near:?}");
        assert!(own > 0.99, "{text:?}: its vector depends on the texts beside it: {own}");
    }
}

async fn vectors_are_of_one_length_finite_and_not_zero(embedder: &dyn Embedder) {
    let passages = embed(embedder, &["rain", "a car in the harbour"], EmbedAs::Passage).await.vectors;
    let queries = embed(embedder, &["where is the car?"], EmbedAs::Query).await.vectors;
    for vector in passages.iter().chain(&queries) {
        assert_eq!(vector.len(), passages[0].len(), "vectors of queries and passages are compared");
        assert!(vector.iter().all(|number| number.is_finite()), "{vector:?}");
        assert!(vector.iter().any(|number| *number != 0.0), "a vector without a direction");
    }
}

async fn as_many_texts_as_it_says_are_taken_and_no_more(embedder: &dyn Embedder) {
    let most = embedder.most_texts();
    assert!(most > 0, "no request can be made");
    let texts: Vec<String> = (0..=most).map(|number| format!("text {number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    assert_eq!(embed(embedder, &texts[..most], EmbedAs::Passage).await.vectors.len(), most);
    is_rejected(embedder, &texts).await;
}

async fn a_blank_text_is_rejected_with_those_around_it(embedder: &dyn Embedder) {
    is_rejected(embedder, &[" \n"]).await;
    is_rejected(embedder, &["rain", ""]).await;
    // The next request is not affected.
    embed(embedder, &["rain"], EmbedAs::Passage).await;
}

async fn tokens_are_counted(embedder: &dyn Embedder) {
    let usage = embed(embedder, &["a car in the harbour"], EmbedAs::Query).await.usage;
    assert!(usage.input_tokens > 0, "{usage:?}");
}

async fn embed(embedder: &dyn Embedder, texts: &[&str], purpose: EmbedAs) -> Embedded {
    match embedder.embed(&owned(texts), purpose).await {
        Ok(embedded) if embedded.failed.is_none() => embedded,
        Ok(embedded) => panic!("{}: {texts:?}: {:?}", embedder.space(), embedded.failed),
        Err(error) => panic!("{}: {texts:?}: {error:?}", embedder.space()),
    }
}

async fn is_rejected(embedder: &dyn Embedder, texts: &[&str]) {
    let answer = embedder.embed(&owned(texts), EmbedAs::Passage).await;
    assert!(matches!(answer, Err(ModelError::Rejected(_))), "{}: {answer:?}", embedder.space());
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// The cosine of the angle between two vectors.
fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    product(one, other) / (product(one, one) * product(other, other)).sqrt()
}
