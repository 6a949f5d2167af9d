//! An embedder that counts words: so tests see what they put in, and nothing like understanding.

use async_trait::async_trait;
use domain::Usage;
use parking_lot::{Mutex, MutexGuard};
use ports::{EmbedAs, Embedded, Embedder, ModelError};

/// The length of its vectors.
const DIMENSIONS: usize = 1024;
/// The most texts of one request: few, so that tests have several.
const MOST: usize = 8;
/// Words that it takes for the same one: the whole of its understanding.
const SAME: [&[&str]; 3] = [&["car", "automobile", "vehicle"], &["doctor", "physician"], &["flower", "blossom"]];

/// Embeds a text as the counts of its words, by their hashes. Texts without a common word are at a right angle, but for a few words that share a
/// place. It is stricter than models: it refuses blank texts, and more of them than it says.
pub struct FakeEmbedder {
    space: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: Vec<String>,
    failure: Option<ModelError>,
    refused: Option<String>,
}

impl FakeEmbedder {
    /// Of a space with this name. Other names have other vectors.
    pub fn new(space: &str) -> Self {
        Self { space: space.to_owned(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The texts that it was asked to embed since the last time that this was asked.
    pub fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state().asked)
    }

    /// Fails so from now on; succeeds again with none.
    pub fn fail(&self, failure: Option<ModelError>) {
        self.state().failure = failure;
    }

    /// Refuses texts with this word in them.
    pub fn refuse(&self, word: &str) {
        self.state().refused = Some(word.to_owned());
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; DIMENSIONS];
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        for word in words.map(str::to_lowercase).chain(text.trim().is_empty().then(String::new)) {
            let word = if word.len() > 3 { word.trim_end_matches('s') } else { &word };
            let word = SAME.iter().find(|same| same.contains(&word)).map_or(word, |same| same[0]);
            let place = hash(&format!("{}/{word}", self.space)) as usize % DIMENSIONS;
            vector[place] += 1.0;
        }
        if vector.iter().all(|number| *number == 0.0) {
            vector[0] = 1.0;
        }
        vector
    }
}

/// FNV-1a: the same in every process.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[async_trait]
impl Embedder for FakeEmbedder {
    fn space(&self) -> &str {
        &self.space
    }

    fn most_texts(&self) -> usize {
        MOST
    }

    async fn embed(&self, texts: &[String], _: EmbedAs) -> Result<Embedded, ModelError> {
        // So that callers race.
        tokio::task::yield_now().await;
        let mut state = self.state();
        state.asked.extend(texts.iter().cloned());
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        let is_refused = |text: &String| state.refused.as_ref().is_some_and(|word| text.contains(word));
        if texts.is_empty() || texts.len() > MOST || texts.iter().any(|text| text.trim().is_empty() || is_refused(text))
        {
            return Err(ModelError::Rejected("400 these texts are not taken".into()));
        }
        drop(state);
        let vectors: Vec<Vec<f32>> = texts.iter().map(|text| self.vector(text)).collect();
        let tokens = texts.iter().map(|text| text.split_whitespace().count() as u64).sum();
        Ok(Embedded { vectors, usage: Usage { input_tokens: tokens, ..Usage::default() }, failed: None })
    }
}
