//! `step`: a turn of 100 tool calls, each of them durable before the next one begins.

use crate::http::Connection;
use crate::{Bench, Result, client, floor::Append, hub::Hub, report::Figure, samples::Samples, script, turns::Talk};
use serde_json::json;

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    client(async {
        let folder = bench.folder("steps")?;
        let mut append = Append::new(&folder)?;
        let hub = Hub::start(bench, &folder.join("data"), &[])?;
        let workspace = hub.workspace().await?;
        let call = json!({ "tool": "write", "args": { "path": script::READ, "content": "Read me.\n" } }).to_string();
        Connection::open(&hub.address).await?.json("POST", &format!("{workspace}/tools"), &call).await?;

        let (mut floor, mut one_by_one, mut at_once, mut writes) = <(Samples, Samples, Samples, Samples)>::default();
        let mut commits = 0.0;
        const TURNS: usize = 12;
        for _ in 0..TURNS {
            for (content, samples) in
                [(script::ONE_BY_ONE, &mut one_by_one), (script::AT_ONCE, &mut at_once), (script::WRITES, &mut writes)]
            {
                for _ in 0..25 {
                    floor.add(append.once()?);
                }
                // A new chat each time: the cost of a step in a long chat is the figure `history`.
                let mut talk = Talk::begin(&hub, &workspace).await?;
                let before = hub.store().await?.0;
                samples.add(talk.turn(content).await?.done / script::CALLS as u32);
                if content == script::ONE_BY_ONE {
                    commits += hub.store().await?.0 - before;
                }
            }
        }
        let f = floor.median();
        let held = |name: &str, samples: &Samples, is: &str| {
            Figure::new(name, samples.median(), "ms a step")
                .beside("F", f)
                .at_most(2.0 * f + 1.0, "2F + 1 ms")
                .more("slowest_turn", samples.at(1.0))
                .more("is", is)
        };
        let commits = commits / (TURNS * script::CALLS) as f64;
        let is = "the model asks for one call per answer: each step is an answer, a call and its result";
        bench.report.add(held("step.one_by_one", &one_by_one, is).more("commits_a_step", commits))?;
        bench.report.add(held("step.at_once", &at_once, "the model asks for 100 calls in one answer"))?;
        bench.report.add(
            Figure::new("step.writes", writes.median(), "ms a step")
                .beside("F", f)
                .more("is", "one call per answer, each writes a file: one more commit"),
        )
    })
}
