//! The requests of a turn to AWS, counted between the functions and the services. It fails when they grow.

use crate::world::{Options, Result, World};
use emulators::Calls;
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// Dollars for a million writes of 1 KB and for a million reads, on demand, in us-east-1 in November 2026.
const WRITE: f64 = 0.625;
const READ: f64 = 0.125;
/// The seconds that a turn took, among its counts: watchers look at the log, and leases are renewed, more often the longer it takes.
const SECONDS: &str = "seconds";
/// The write units that DynamoDB counts for a step of 1 KiB with its envelope.
const UNITS: f64 = 2.0;

type Counts = BTreeMap<String, usize>;

impl World {
    fn take_counts(&self) -> (Counts, Counts) {
        let of = |services: &[(&str, &Calls)]| {
            let counts = services.iter().flat_map(|(service, calls)| {
                calls.take().into_iter().map(move |(operation, count)| (format!("{service}{operation}"), count))
            });
            counts.collect()
        };
        let api = of(&[("", &self.dynamodb_of_api), ("SQS ", &self.sqs_of_api)]);
        (api, of(&[("", &self.dynamodb), ("SQS ", &self.sqs), ("S3 ", &self.s3)]))
    }

    /// The requests of one more turn of a chat: of the API, and of the worker and the watchers, with those of publishing.
    async fn counted(&self, chat: &str, after: &mut u64, say: &str) -> Result<(Counts, Counts)> {
        self.settled().await;
        self.take_counts();
        let (before, began) = (self.published().await?, Instant::now());
        self.client.post(chat, json!({ "content": say })).await?;
        *after = self.client.watch_after(chat, *after).until_event("done").await?.id;
        self.settled().await;
        let (of_api, mut of_others) = self.take_counts();
        of_others.insert("bus publish".into(), self.published().await? - before);
        of_others.insert(SECONDS.into(), usize::try_from(began.elapsed().as_secs())?);
        Ok((of_api, of_others))
    }

    async fn published(&self) -> Result<usize> {
        let commands = emulators::commands(self.emulators.redis.lock().await.port()).await?;
        Ok(commands.get("publish").copied().unwrap_or_default())
    }

    async fn settled(&self) {
        while self.worker.running() > 0 {
            // poll: a function says nothing when it is done
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A turn without tools, and one with five calls of a tool: ten more steps, of the model and of the tool.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_and_each_step_cost_a_known_number_of_requests() -> Result {
    // No ECS is there: a turn that needs no command asks ECS for nothing.
    let ecs = Calls::of("http://127.0.0.1:9").await?;
    let settings = [("AWS_ENDPOINT_URL_ECS", ecs.endpoint())];
    let world = World::deploy(Options { settings: &settings, ..Options::default() }).await?;
    let chat = world.client.chat(&world.client.place().await?, "say hello").await?;
    let mut after = world.client.watch(&chat).until_event("done").await?.id;
    world.counted(&chat, &mut after, "say it again").await?;
    let (asked, plain) = world.counted(&chat, &mut after, "say it once more").await?;
    let (_, tools) = world.counted(&chat, &mut after, "many looks").await?;
    let told = format!("the API {asked:?}\na turn {plain:?}\nwith ten more steps {tools:?}");
    drop(std::io::Write::write_all(&mut std::io::stdout(), format!("{told}\n").as_bytes()));

    let of = |counts: &Counts, name: &str| counts.get(name).copied().unwrap_or_default();
    let writes = |counts: &Counts| {
        ["PutItem", "TransactWriteItems", "DeleteItem"].iter().map(|name| of(counts, name)).sum::<usize>()
    };
    let reads = |counts: &Counts| ["GetItem", "Query"].iter().map(|name| of(counts, name)).sum::<usize>();
    let a_step = |of: &dyn Fn(&Counts) -> usize| of(&tools).saturating_sub(of(&plain)) as f64 / 10.0;
    let dollars = a_step(&writes) * UNITS * WRITE + a_step(&reads) * READ;
    let costs = format!("a million further steps of 1 KiB: ${dollars:.2}\n");
    drop(std::io::Write::write_all(&mut std::io::stdout(), costs.as_bytes()));
    for counts in [&asked, &plain, &tools] {
        assert_eq!(of(counts, "Scan"), 0, "{told}");
        assert!(counts.keys().all(|name| !name.starts_with("S3")), "{told}");
    }
    assert_eq!(of(&asked, "SQS SendMessageBatch"), 1, "one message per command: {told}");
    // A watcher comes by the API, too, and is sent on.
    assert!(writes(&asked) <= 1 && reads(&asked) <= 14, "{told}");
    let leases = of(&plain, "SQS ChangeMessageVisibilityBatch");
    let seconds = |counts: &Counts| of(counts, SECONDS);
    assert!((1..=3 + seconds(&plain) / 20).contains(&leases), "once, and again every twenty seconds: {told}");
    assert_eq!(of(&plain, "SQS SendMessageBatch"), 0, "{told}");
    assert!(writes(&plain) <= 3, "{told}");
    assert!(writes(&tools) - writes(&plain) <= 10, "at most one write per step: {told}");
    let published = |counts: &Counts| of(counts, "bus publish");
    // Those who watch the workspace hear that the chat runs, and that it is idle.
    assert!(published(&plain) <= 3 + 2, "at most one for each write, and two for the workspace: {told}");
    assert!(published(&tools) - published(&plain) <= 10, "at most one per step: {told}");
    assert!(ecs.take().is_empty(), "{told}");
    // A watcher looks at the log from time to time. Each call of a model looks for the tools that the workspace declares.
    assert!(reads(&plain) <= 16 + seconds(&plain), "{told}");
    assert!(reads(&tools).saturating_sub(reads(&plain)) <= 36 + seconds(&tools), "{told}");
    Ok(())
}
