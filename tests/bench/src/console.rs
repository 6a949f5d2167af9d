//! `console`: how soon a person can write in a chat of 2,000 messages in Chromium, and the frames of the page while 200 tokens a second stream into it, beside
//! the same page at rest.
//!
//! `frames.mjs` of the console drives the browser and takes the times between frames. The hub under test has the page embedded.

use crate::{Bench, Result, client, history::grown, hub::Hub, report::Figure};
use serde_json::Value;
use std::{path::Path, process::Command};

const MESSAGES: usize = 2_000;
const TOKENS_A_SECOND: usize = 200;
/// How long the answer streams; the page is measured for a part of it.
const SECONDS: usize = 45;

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let folder = bench.folder("console")?;
    let script = folder.join("script.yaml");
    let tokens = TOKENS_A_SECOND * SECONDS;
    // A wait takes up to two milliseconds more than it is told.
    let (text, delay_ms) = ("word ".repeat(tokens), 1_000 / TOKENS_A_SECOND - 2);
    let streams = format!("{{text: '{text}', chunks: {tokens}, delay_ms: {delay_ms}}}");
    let rules = format!("rules:\n- when: {{user: '^stream'}}\n  steps: [{streams}]\n- steps: [{{text: 'Yes.'}}]\n");
    std::fs::write(&script, rules)?;
    let script = script.display().to_string();
    client(async {
        let hub = Hub::start(bench, &folder.join("data"), &[("BUILDSCALE__AI__SCRIPT", &script)])?;
        let workspace = hub.workspace().await?;
        let chat = grown(&hub, &workspace, MESSAGES).await?.path().to_owned();
        let told = frames(&hub.address, &chat)?;
        let ready = told["ready_ms"].as_f64().ok_or(format!("no ready_ms in {told}"))?;
        let figure = Figure::new("console.ready", ready, "ms").at_most(1_000.0, "interactive within 1 s");
        bench.report.add(
            figure.more("is", "from the beginning of the navigation to a field that takes words, in a new browser"),
        )?;
        let number = |part: &str, name: &str| told[part][name].as_f64().ok_or(format!("no {part}.{name} in {told}"));
        for (name, unit) in [("p50", "ms"), ("p99", "ms"), ("dropped", "frames")] {
            let figure = Figure::new(format!("console.frame_{name}"), number("streaming", name)?, unit)
                .beside("the page at rest", number("idle", name)?)
                .more("tokens_per_s", number("streaming", "tokens_per_s")?)
                .more("frames", number("streaming", "frames")?)
                .more("is", "times between frames in Chromium, by requestAnimationFrame");
            let held = match name {
                // A display of 60 Hz shows one each 16.7 ms.
                "p50" | "p99" => figure.at_most(17.0, "60 frames a second"),
                _ => figure,
            };
            bench.report.add(held)?;
        }
        Ok(())
    })
}

/// The times that the browser tells of this chat.
fn frames(hub: &str, chat: &str) -> Result<Value> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../functions/console/web/tests/frames.mjs");
    let output = Command::new("node").arg(program).env("HUB", format!("http://{hub}")).env("CHAT", chat).output()?;
    if !output.status.success() {
        return Err(format!("frames.mjs: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
