//! The latency, price and refusals of models, by provider and model. It wraps all models, so that a call is measured as the
//! chat sees it: with the tries that an adapter makes by itself.

use crate::histogram::{Histogram, MetricFamily, head};
use async_trait::async_trait;
use bytes::Bytes;
use domain::Usage;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{
    Delta, Describer, Description, EmbedAs, Embedded, Embedder, Model, ModelError, ModelInfo, ModelRequest,
    ModelStream, UnsupportedContent,
};
use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};
use tokio::time::Instant;

/// The most pairs of a provider and a model that are told apart: names of models come from people and flows.
const MOST: usize = 100;
/// The label for the others.
const OTHERS: &str = "other";
const TOOK: MetricFamily = (
    "buildscale_model_duration_seconds",
    "histogram",
    "provider, model",
    "How long calls of models took, whatever came of them.",
);
const FIRST: MetricFamily = (
    "buildscale_model_first_token_seconds",
    "histogram",
    "provider, model",
    "How long models took until their first token.",
);
const TOKENS: MetricFamily = (
    "buildscale_model_used_tokens_total",
    "counter",
    "provider, model, direction",
    "Tokens that each model read and wrote.",
);
const COST: MetricFamily = (
    "buildscale_model_cost_usd_total",
    "counter",
    "provider, model",
    "US dollars that each model cost, where its price is known.",
);
const ERRORS: MetricFamily = (
    "buildscale_model_errors_total",
    "counter",
    "provider, model, code",
    "Calls of models that failed, by what was wrong.",
);

/// A provider and a model.
type ModelKey = (String, String);

#[derive(Debug, Default)]
struct Counts {
    took: Histogram,
    first: Histogram,
    input: u64,
    output: u64,
    cached: u64,
    cost_usd: f64,
    errors: BTreeMap<&'static str, u64>,
}

/// The counters, since this process began.
#[derive(Debug, Default)]
pub struct ModelMetrics(Mutex<BTreeMap<ModelKey, Counts>>);

impl ModelMetrics {
    fn note(&self, which: &ModelKey, change: impl FnOnce(&mut Counts)) {
        let mut all = self.0.lock();
        let is_known = all.contains_key(which) || all.len() < MOST;
        let which = if is_known { which.clone() } else { (OTHERS.to_owned(), OTHERS.to_owned()) };
        change(all.entry(which).or_default());
    }

    /// Appends them in Prometheus' text format.
    pub fn render(&self, out: &mut String) {
        let all = self.0.lock();
        let all: Vec<(String, &Counts)> = all
            .iter()
            .map(|((provider, model), counts)| {
                (format!("provider=\"{}\",model=\"{}\"", escaped(provider), escaped(model)), counts)
            })
            .collect();
        let name = head(out, TOOK);
        all.iter().for_each(|(labels, counts)| counts.took.write(out, name, labels));
        let name = head(out, FIRST);
        all.iter().for_each(|(labels, counts)| counts.first.write(out, name, labels));
        // Writing to a string cannot fail.
        let name = head(out, TOKENS);
        for (labels, Counts { input, output, cached, .. }) in &all {
            for (direction, tokens) in [("input", input), ("output", output), ("cached", cached)] {
                let _ = writeln!(out, "{name}{{{labels},direction=\"{direction}\"}} {tokens}");
            }
        }
        let name = head(out, COST);
        for (labels, counts) in &all {
            let _ = writeln!(out, "{name}{{{labels}}} {}", counts.cost_usd);
        }
        let name = head(out, ERRORS);
        for (labels, counts) in &all {
            for code in CODES {
                let count = counts.errors.get(code).unwrap_or(&0);
                let _ = writeln!(out, "{name}{{{labels},code=\"{code}\"}} {count}");
            }
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// All codes of failures. Each is shown from a model's first call on: Prometheus sees no increase of a series that begins with 1.
const CODES: [&str; 4] = ["RATE_LIMITED", "UNPROCESSABLE", "UPSTREAM_REFUSED", "UPSTREAM_UNAVAILABLE"];

/// The stable code of a failure, one of [`CODES`]: that of the `error` event, or of the `waiting` one.
fn code(error: &ModelError) -> &'static str {
    match error {
        ModelError::RateLimited { .. } => "RATE_LIMITED",
        ModelError::Unavailable(_) | ModelError::Broken(_) => "UPSTREAM_UNAVAILABLE",
        ModelError::Unauthorized(_) => "UPSTREAM_REFUSED",
        ModelError::Rejected(_) | ModelError::TooLong(_) => "UNPROCESSABLE",
        ModelError::Postponed { why, .. } => code(why),
    }
}

/// A model whose calls are measured.
pub(crate) struct MeteredModel {
    pub model: Arc<dyn Model>,
    pub metrics: Arc<ModelMetrics>,
}

impl MeteredModel {
    /// The provider and the model that a request is for.
    fn which(&self, request: &ModelRequest) -> ModelKey {
        let asked = request.model.clone().or_else(|| self.model.default_model());
        which(asked.as_deref().unwrap_or(OTHERS))
    }
}

/// The provider and the model that a name says.
fn which(name: &str) -> ModelKey {
    let (provider, model) = name.split_once('/').unwrap_or((OTHERS, name));
    let short = |text: &str| text.chars().take(100).collect();
    (short(provider), short(model))
}

/// An embedder whose calls are measured, as those of models are.
pub fn metered(embedder: Arc<dyn Embedder>, metrics: Arc<ModelMetrics>) -> Arc<dyn Embedder> {
    Arc::new(MeasuredEmbedder { embedder, metrics })
}

struct MeasuredEmbedder {
    embedder: Arc<dyn Embedder>,
    metrics: Arc<ModelMetrics>,
}

#[async_trait]
impl Embedder for MeasuredEmbedder {
    fn space(&self) -> &str {
        self.embedder.space()
    }

    fn most_texts(&self) -> usize {
        self.embedder.most_texts()
    }

    async fn embed(&self, texts: &[String], purpose: EmbedAs) -> Result<Embedded, ModelError> {
        // The chosen length of its vectors is no other model.
        let which = which(self.space().split('#').next().unwrap_or_default());
        let running = Running { metrics: self.metrics.clone(), which, begun: Instant::now(), is_first: false };
        let embedded = self.embedder.embed(texts, purpose).await.inspect_err(|error| running.failed(error))?;
        running.used(&embedded.usage);
        embedded.failed.iter().for_each(|error| running.failed(error));
        Ok(embedded)
    }
}

/// A describer whose calls are measured, as those of models are.
pub(crate) fn metered_describer(describer: Arc<dyn Describer>, metrics: Arc<ModelMetrics>) -> Arc<dyn Describer> {
    Arc::new(MeasuredDescriber { describer, metrics })
}

struct MeasuredDescriber {
    describer: Arc<dyn Describer>,
    metrics: Arc<ModelMetrics>,
}

#[async_trait]
impl Describer for MeasuredDescriber {
    fn model(&self) -> &str {
        self.describer.model()
    }

    fn takes(&self, media_type: &str, length: usize) -> Result<(), UnsupportedContent> {
        self.describer.takes(media_type, length)
    }

    async fn describe(&self, media_type: &str, content: Bytes) -> Result<Description, ModelError> {
        let which = which(self.model());
        let running = Running { metrics: self.metrics.clone(), which, begun: Instant::now(), is_first: false };
        let described = self.describer.describe(media_type, content).await;
        let described = described.inspect_err(|error| running.failed(error))?;
        running.used(&described.usage);
        Ok(described)
    }
}

/// A call while it goes on; one whose answer is not read to its end is counted, too.
struct Running {
    metrics: Arc<ModelMetrics>,
    which: ModelKey,
    begun: Instant,
    is_first: bool,
}

impl Running {
    fn see(&mut self, delta: &Result<Delta, ModelError>) {
        let is_first = std::mem::replace(&mut self.is_first, false);
        match delta {
            // A sign of life is no token.
            Ok(Delta::Reasoning(piece) | Delta::Text(piece)) if piece.is_empty() => self.is_first = is_first,
            Ok(Delta::End { usage, .. }) => self.used(usage),
            Ok(_) if is_first => {
                let took = self.begun.elapsed();
                self.metrics.note(&self.which, |counts| counts.first.add(took));
            }
            Ok(_) => {}
            Err(error) => self.failed(error),
        }
    }

    fn used(&self, usage: &Usage) {
        self.metrics.note(&self.which, |counts| {
            counts.input += usage.input_tokens;
            counts.output += usage.output_tokens;
            counts.cached += usage.cached_tokens;
            counts.cost_usd += usage.cost_usd;
        });
    }

    fn failed(&self, error: &ModelError) {
        self.metrics.note(&self.which, |counts| *counts.errors.entry(code(error)).or_default() += 1);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let took = self.begun.elapsed();
        self.metrics.note(&self.which, |counts| counts.took.add(took));
    }
}

#[async_trait]
impl Model for MeteredModel {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let which = self.which(&request);
        let running = Running { metrics: self.metrics.clone(), which, begun: Instant::now(), is_first: true };
        let answer = self.model.stream(request).await.inspect_err(|error| running.failed(error))?;
        let measured = stream::unfold((answer, running), |(mut answer, mut running)| async move {
            let delta = answer.next().await?;
            running.see(&delta);
            Some((delta, (answer, running)))
        });
        Ok(measured.boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        self.model.catalog()
    }

    fn cost(&self, model: Option<&str>, usage: &Usage) -> f64 {
        self.model.cost(model, usage)
    }

    fn default_model(&self) -> Option<String> {
        self.model.default_model()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::event::StopReason;
    use serde_json::Value;
    use std::time::Duration;

    /// Gives the scripted answers, after a second each.
    struct Says(Vec<Result<Delta, ModelError>>);

    #[async_trait]
    impl Model for Says {
        async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
            if request.failures > 0 {
                return Err(ModelError::Unauthorized("no".into()));
            }
            let each = stream::iter(self.0.clone()).then(|delta| async {
                // poll: time is paused in these tests, and passes by itself
                tokio::time::sleep(Duration::from_secs(1)).await;
                delta
            });
            Ok(each.boxed())
        }

        fn catalog(&self) -> Vec<ModelInfo> {
            let (id, provider) = ("openai/usual".to_owned(), "openai".to_owned());
            vec![ModelInfo { id, provider, available: true, note: None, default: true, context_tokens: None }]
        }
    }

    fn says(deltas: Vec<Result<Delta, ModelError>>) -> (MeteredModel, Arc<ModelMetrics>) {
        let metrics = Arc::<ModelMetrics>::default();
        (MeteredModel { model: Arc::new(Says(deltas)), metrics: metrics.clone() }, metrics)
    }

    fn shown(metrics: &ModelMetrics) -> String {
        let mut out = String::new();
        metrics.render(&mut out);
        out
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_measured_by_provider_and_model_until_its_first_token_and_its_end() {
        let usage = Usage { input_tokens: 10, output_tokens: 5, cached_tokens: 2, cost_usd: 0.25 };
        let (reason, provider) = (StopReason::EndTurn, Value::Null);
        let (model, metrics) = says(vec![
            Ok(Delta::Reasoning(String::new())),
            Ok(Delta::Text("a".into())),
            Ok(Delta::Text("b".into())),
            Ok(Delta::End { reason, usage, provider, model: None }),
        ]);
        let answer = model.stream(ModelRequest::default()).await.expect("it answers");
        assert_eq!(answer.count().await, 4);
        let labels = "provider=\"openai\",model=\"usual\"";
        let shown = shown(&metrics);
        for line in [
            format!("buildscale_model_duration_seconds_sum{{{labels}}} 4.000"),
            format!("buildscale_model_duration_seconds_bucket{{{labels},le=\"2\"}} 0"),
            format!("buildscale_model_duration_seconds_bucket{{{labels},le=\"4\"}} 1"),
            format!("buildscale_model_first_token_seconds_sum{{{labels}}} 2.000"),
            format!("buildscale_model_used_tokens_total{{{labels},direction=\"input\"}} 10"),
            format!("buildscale_model_used_tokens_total{{{labels},direction=\"cached\"}} 2"),
            format!("buildscale_model_cost_usd_total{{{labels}}} 0.25"),
        ] {
            assert!(shown.contains(&format!("{line}\n")), "{line} is not in\n{shown}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_counted_by_their_code_and_what_nobody_reads_on_counts_as_a_call() {
        let (model, metrics) = says(vec![Ok(Delta::Text("a".into())), Err(ModelError::Broken("cut".into()))]);
        let of = |name: &str, failures| ModelRequest { model: Some(name.into()), failures, ..ModelRequest::default() };
        let answer = model.stream(of("anthropic/claude", 0)).await.expect("it answers");
        assert_eq!(answer.count().await, 2);
        assert!(model.stream(of("anthropic/claude", 1)).await.is_err());
        let mut left = model.stream(of("anthropic/claude", 0)).await.expect("it answers");
        assert!(left.next().await.is_some());
        drop(left);
        let labels = "provider=\"anthropic\",model=\"claude\"";
        let shown = shown(&metrics);
        for line in [
            format!("buildscale_model_errors_total{{{labels},code=\"UPSTREAM_UNAVAILABLE\"}} 1"),
            format!("buildscale_model_errors_total{{{labels},code=\"UPSTREAM_REFUSED\"}} 1"),
            format!("buildscale_model_errors_total{{{labels},code=\"RATE_LIMITED\"}} 0"),
            format!("buildscale_model_duration_seconds_count{{{labels}}} 3"),
            format!("buildscale_model_first_token_seconds_count{{{labels}}} 2"),
        ] {
            assert!(shown.contains(&format!("{line}\n")), "{line} is not in\n{shown}");
        }
    }

    #[tokio::test]
    async fn embedded_texts_count_as_texts_that_a_model_reads() {
        let metrics = Arc::<ModelMetrics>::default();
        let embedder = metered(Arc::new(testkit::fakes::FakeEmbedder::new("openai/small#8")), metrics.clone());
        assert!(embedder.embed(&["two words".to_owned()], EmbedAs::Query).await.is_ok());
        assert!(embedder.embed(&[" ".to_owned()], EmbedAs::Query).await.is_err());
        let shown = shown(&metrics);
        let labels = "provider=\"openai\",model=\"small\"";
        for line in [
            format!("buildscale_model_used_tokens_total{{{labels},direction=\"input\"}} 2"),
            format!("buildscale_model_errors_total{{{labels},code=\"UNPROCESSABLE\"}} 1"),
            format!("buildscale_model_duration_seconds_count{{{labels}}} 2"),
        ] {
            assert!(shown.contains(&format!("{line}\n")), "{line} is not in\n{shown}");
        }
    }

    /// Describes everything with a word.
    struct Eyes;

    #[async_trait]
    impl Describer for Eyes {
        fn model(&self) -> &str {
            "openai/eyes"
        }

        fn takes(&self, _: &str, _: usize) -> Result<(), UnsupportedContent> {
            Ok(())
        }

        async fn describe(&self, _: &str, content: Bytes) -> Result<Description, ModelError> {
            let usage = Usage { input_tokens: 9, output_tokens: 1, cached_tokens: 0, cost_usd: 0.5 };
            match content.is_empty() {
                true => Err(ModelError::Rejected("nothing to see".into())),
                false => Ok(Description { text: "cat".into(), usage }),
            }
        }
    }

    #[tokio::test]
    async fn descriptions_of_contents_count_as_answers_of_a_model() {
        let metrics = Arc::<ModelMetrics>::default();
        let describer = metered_describer(Arc::new(Eyes), metrics.clone());
        assert!(describer.describe("image/png", Bytes::from_static(b"x")).await.is_ok());
        assert!(describer.describe("image/png", Bytes::new()).await.is_err());
        let shown = shown(&metrics);
        let labels = "provider=\"openai\",model=\"eyes\"";
        for line in [
            format!("buildscale_model_used_tokens_total{{{labels},direction=\"input\"}} 9"),
            format!("buildscale_model_cost_usd_total{{{labels}}} 0.5"),
            format!("buildscale_model_errors_total{{{labels},code=\"UNPROCESSABLE\"}} 1"),
        ] {
            assert!(shown.contains(&format!("{line}\n")), "{line} is not in\n{shown}");
        }
    }

    #[tokio::test]
    async fn names_that_are_made_up_make_no_more_series_than_there_is_room_for() {
        let (model, metrics) = says(Vec::new());
        for number in 0..1_000 {
            let name = format!("openai/\"{number}\n");
            let request = ModelRequest { model: Some(name), failures: 1, ..ModelRequest::default() };
            assert!(model.stream(request).await.is_err());
        }
        let shown = shown(&metrics);
        let series = shown.lines().filter(|line| line.starts_with("buildscale_model_errors_total{")).count();
        assert_eq!(series, CODES.len() * (MOST + 1));
        let others =
            "buildscale_model_errors_total{provider=\"other\",model=\"other\",code=\"UPSTREAM_REFUSED\"} 900\n";
        assert!(shown.contains(others), "{shown}");
    }
}
