//! `history`: whether a turn costs more the longer its chat is.

use crate::{Bench, Result, client, floor::Append, hub::Hub, report::Figure, samples::Samples, turns::Talk};
use domain::{Message, MessageId, Timestamp};
use futures::StreamExt;
use models::Scripted;
use ports::{Model, ModelRequest};
use serde_json::Value;
use std::{path::Path, sync::Arc};
use tokio::time::Instant;

/// Messages of a chat: half of them a person's, half the model's.
const LENGTHS: [usize; 3] = [10, 1_000, 10_000];
/// The words of a person: so many that 10,000 messages are several times the default budget.
const WORDS: &str = "talk about what was decided yesterday, what is still open, who is to be asked before the next \
    step is taken, and where the notes of all that are kept, so that whoever comes later finds them without asking";
/// A budget that cuts nothing.
const EVERYTHING: &str = "100000000";

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let folder = bench.folder("history")?;
    client(async {
        whole(bench, &folder, Some(EVERYTHING)).await?;
        whole(bench, &folder, None).await
    })
}

/// All histories under one budget; none is the hub's own default.
async fn whole(bench: &mut Bench, folder: &Path, budget: Option<&str>) -> Result<()> {
    const ROUNDS: usize = 60;
    const SHORTS: usize = 10;
    let mut append = Append::new(folder)?;
    let name = if budget.is_some() { "history" } else { "history.default_budget" };
    let data = folder.join(name);
    let settings: Vec<_> = budget.map(|budget| ("BUILDSCALE__AI__CONTEXT_TOKENS", budget)).into_iter().collect();
    let hub = Hub::start(bench, &data, &settings)?;
    let workspace = hub.workspace().await?;

    // A short chat would grow under the measurement: several take turns.
    let [short, middle, long] = LENGTHS;
    let mut shorts = Vec::new();
    for _ in 0..SHORTS {
        shorts.push(grown(&hub, &workspace, short).await?);
    }
    let mut middle = grown(&hub, &workspace, middle).await?;
    let mut long = grown(&hub, &workspace, long).await?;

    let (mut floor, mut took) = (Samples::default(), [(); 3].map(|()| Samples::default()));
    for round in 0..ROUNDS {
        let short = shorts.get_mut(round % SHORTS).ok_or("no short chat")?;
        let talks = [short, &mut middle, &mut long];
        // None of them is always the first one after the pause that a sync is.
        for turn in round..round + talks.len() {
            let which = turn % talks.len();
            floor.add(append.once()?);
            talks[which].wake().await?;
            took[which].add(talks[which].turn(WORDS).await?.done);
        }
    }
    let [short, middle, longest] = took.map(|took| took.median());
    let script = std::fs::read_to_string(bench.home().join("script.yaml"))?;
    let [model_short, model_longest] = [answered(&script, LENGTHS[0]).await?, answered(&script, LENGTHS[2]).await?];
    let path = long.path().to_owned();
    hub.end()?;
    let hub = Hub::start(bench, &data, &settings)?;
    let cold = Talk::resume(&hub, &path).await?.turn(WORDS).await?;
    bench.report.add(
        Figure::new(name, longest / short, "x a turn with 10 messages")
            .beside("with 1,000", middle / short)
            .at_most(1.3, "10,000 messages against 10")
            .more("without_the_model", (longest - model_longest) / (short - model_short))
            .more("model_ms", [model_short, model_longest].map(|took| (took * 1e3).round() / 1e3).to_vec())
            .more("turn_ms", [short, middle, longest].map(|took| (took * 1e3).round() / 1e3).to_vec())
            .more("f_ms", floor.median())
            .more("first_turn_after_a_restart_ms", cold.done.as_secs_f64() * 1e3)
            .more("context_tokens", budget.unwrap_or("100000, the default"))
            .more("is", "POST to done, p50; the histories were talked through the API"),
    )
}

/// A chat with this many messages but two, and then a turn: so that it is in memory, as it is in use.
pub(crate) async fn grown(hub: &Hub, workspace: &str, messages: usize) -> Result<Talk> {
    const AHEAD: usize = 64;
    let mut talk = Talk::begin(hub, workspace).await?;
    let mut left = messages / 2 - 2;
    while left > 0 {
        let now = left.min(AHEAD);
        for _ in 0..now {
            talk.say(WORDS).await?;
        }
        talk.ended(now).await?;
        left -= now;
    }
    talk.turn(WORDS).await?;
    Ok(talk)
}

/// The time that the scripted model itself takes for a context of this many messages, in milliseconds: it looks at each of them, as no
/// provider's adapter does before the request leaves.
async fn answered(script: &str, messages: usize) -> Result<f64> {
    const ROUNDS: usize = 60;
    let model = Scripted::from_yaml(script)?;
    let at = Timestamp::from_millis(0);
    let said = |index: usize| {
        Arc::new(match index % 2 {
            0 => Message::User {
                id: MessageId(uuid::Uuid::new_v4()),
                at,
                content: WORDS.into(),
                files: Vec::new(),
                context: String::new(),
                user_id: None,
            },
            _ => Message::Assistant {
                id: MessageId(uuid::Uuid::new_v4()),
                at,
                content: "Yes.".into(),
                calls: Vec::new(),
                reasoning: String::new(),
                provider: Value::Null,
            },
        })
    };
    // The last one is a person's.
    let request = ModelRequest { messages: (0..messages | 1).map(said).collect(), ..ModelRequest::default() };
    let mut took = Samples::default();
    for _ in 0..ROUNDS {
        let request = request.clone();
        let begin = Instant::now();
        let mut answer = model.stream(request).await?;
        while let Some(delta) = answer.next().await {
            delta?;
        }
        took.add(begin.elapsed());
    }
    Ok(took.median())
}
