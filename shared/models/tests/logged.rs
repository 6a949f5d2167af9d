//! The logs about providers have no key. In a binary of its own, because the subscribers of all threads of a process decide together which
//! lines of a thread are logged.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the other binary uses the rest")]
mod support;

use parking_lot::Mutex;
use std::{io, sync::Arc};
use support::{KEY, Server, answers, request, sse, user};
use wiremock::ResponseTemplate;

/// Everything that is logged, in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_key_that_a_provider_repeats_is_not_logged() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    for model in [
        "openai/test-model",
        "openai-responses/gpt-5-mini",
        "anthropic/claude-sonnet-4-5",
        "gemini/gemini-2.5-flash",
        "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
    ] {
        let refusal = ResponseTemplate::new(500).set_body_string(format!("the key {KEY} is wrong"));
        let odd = sse(format!("event: odd\ndata: {{\"error\": \"{KEY}\"}}\n\n").into());
        let server = Server::with(vec![refusal, odd]).await;
        answers(&server.router(), request(model, vec![user("Hi")])).await;
    }
    let log = String::from_utf8(log.0.lock().clone()).unwrap();
    assert!(log.contains("trying again"), "{log}");
    assert!(!log.contains(KEY), "{log}");
}
