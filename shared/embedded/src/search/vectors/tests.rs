#![expect(clippy::unwrap_used, reason = "tests")]
use crate::LocalIndexes;
use domain::{FileId, FilePath, Timestamp, WorkspaceId};
use ports::{
    FileFilter, IndexEdit, IndexNearest, IndexVector, IndexedFile, Passage, SearchIndex, SearchIndexes, Visible,
};
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use uuid::Uuid;

struct World {
    index: Arc<dyn SearchIndex>,
    _folder: TempDir,
}

fn file(id: u128, path: &str, seal: &str) -> IndexEdit {
    let file = IndexedFile {
        file_id: FileId(Uuid::from_u128(id)),
        path: path.parse().unwrap(),
        v: 1,
        author: "user:x".into(),
        updated_at: Timestamp::from_millis(1),
        size: 3,
        derived_from: None,
        seal: Some(seal.into()),
    };
    IndexEdit::File(file, "name".into())
}

fn content(id: u128, seal: &str, texts: &[&str]) -> IndexEdit {
    let passage = |(line, text): (u64, &&str)| Passage {
        first_line: line,
        last_line: line,
        text: (*text).to_owned(),
        words: (*text).to_owned(),
        ..Passage::default()
    };
    let passages = (1..).zip(texts).map(passage).collect();
    IndexEdit::Content { file_id: FileId(Uuid::from_u128(id)), seal: seal.into(), passages }
}

impl World {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let index = LocalIndexes::new(folder.path()).open(WorkspaceId(Uuid::from_u128(1))).await.unwrap();
        Self { index, _folder: folder }
    }

    async fn apply(&self, edits: Vec<IndexEdit>) {
        self.index.apply(edits, None).await.unwrap();
    }

    /// Embeds each text that waits.
    async fn embed(&self, vector: impl Fn(&str) -> Vec<f32>) {
        let waiting = self.index.unembedded("m", 100_000).await.unwrap();
        let vectors = waiting.into_iter().map(|each| IndexVector { passage: each.passage, vector: vector(&each.text) });
        self.index.embed("m", vectors.collect()).await.unwrap();
    }

    async fn nearest(&self, query: &[f32]) -> IndexNearest {
        let visible: Visible = Arc::new(|_: &FilePath| true);
        let looked: FileFilter = Arc::new(|_| true);
        self.index.nearest("m", query.to_vec(), 10, visible, looked).await.unwrap()
    }
}

/// Numbers that look like chance, and are the same every time.
fn noise(seed: &mut u64) -> f32 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed % 20_001) as f32 / 10_000.0 - 1.0
}

/// Vectors in groups around centres, as texts of some topics are.
struct Clouds {
    centres: Vec<Vec<f32>>,
}

impl Clouds {
    fn new(count: usize, dimensions: usize) -> Self {
        let mut seed = 0x2545_f491_4f6c_dd1d;
        let centre = |_| (0..dimensions).map(|_| noise(&mut seed)).collect();
        Self { centres: (0..count).map(centre).collect() }
    }

    fn at(&self, number: usize) -> Vec<f32> {
        let mut seed = 0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1).wrapping_mul(0xff51_afd7_ed55_8ccd);
        self.centres[number % self.centres.len()].iter().map(|centre| centre + 0.7 * noise(&mut seed)).collect()
    }
}

async fn filled(world: &World, clouds: &Clouds, count: usize) {
    let texts: Vec<String> = (0..count).map(|at| at.to_string()).collect();
    for (id, part) in (1..).zip(texts.chunks(1_000)) {
        let part: Vec<&str> = part.iter().map(String::as_str).collect();
        world.apply(vec![file(id, &format!("/{id}"), "1"), content(id, "1", &part)]).await;
        world.embed(|text| clouds.at(text.parse().unwrap())).await;
    }
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let product = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f32>();
    product(one, other) / (product(one, one) * product(other, other)).sqrt()
}

#[tokio::test]
async fn of_many_vectors_nearly_all_of_the_nearest_are_found() {
    let world = World::new().await;
    let clouds = Clouds::new(120, 256);
    filled(&world, &clouds, 6_000).await;
    let vectors: Vec<Vec<f32>> = (0..6_000).map(|number| clouds.at(number)).collect();
    let (mut found, rounds) = (0, 20);
    for query in vectors.iter().step_by(vectors.len() / rounds).take(rounds) {
        let mut exact: Vec<f32> = vectors.iter().map(|vector| cosine(query, vector)).collect();
        exact.sort_by(|one, other| other.total_cmp(one));
        let near = world.nearest(query).await.near;
        assert!((near[0].similarity - 1.0).abs() < 0.01, "itself is the nearest");
        // A byte per number is not exact to the last digit.
        found += near.iter().filter(|near| near.similarity > exact[9] - 0.01).count();
    }
    assert!(found >= rounds * 10 * 95 / 100, "{found} of {}", rounds * 10);
}

/// With `cargo test --release -p buildscale-embedded -- --ignored two_hundred_thousand`; `scripts/bench search` tells the figures.
#[tokio::test]
#[ignore = "a measurement"]
async fn two_hundred_thousand_vectors_answer_soon() {
    for dimensions in [384, 1536] {
        let world = World::new().await;
        let clouds = Clouds::new(4_000, dimensions);
        filled(&world, &clouds, 200_000).await;
        let began = tokio::time::Instant::now();
        world.nearest(&clouds.at(1)).await;
        let first = began.elapsed();
        let mut took = Vec::new();
        for number in (0..200_000).step_by(4_001) {
            let query = clouds.at(number);
            let began = tokio::time::Instant::now();
            assert_eq!(world.nearest(&query).await.near.len(), 10);
            took.push(began.elapsed());
        }
        took.sort();
        let (p50, p95) = (took[took.len() / 2], took[took.len() * 95 / 100]);
        assert!(p50 < Duration::from_millis(50), "{dimensions}: first {first:?}, p50 {p50:?}, p95 {p95:?}");
    }
}
