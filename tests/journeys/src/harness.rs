//! Runs the suite in the worlds that are chosen, and says how each journey ended.
//!
//! A hub costs nothing to start, so each of its journeys is a test with a hub of its own, `hub::<journey>`. The other worlds are one
//! test each, in one deployment, where journeys are made at the same time: emulators take longer to start than most journeys.
//!
//! | variable | says |
//! |---|---|
//! | `BUILDSCALE_WORLD` | `hub`, `aws` or `account`; the first two when it is not set |
//! | `BUILDSCALE_JOURNEY` | a part of the names of the journeys to make, all when it is not set |
//! | `BUILDSCALE_BIN_DIR` | where the binaries are, if not beside this test ([`crate::Binaries`]) |

use crate::{
    Result, World,
    suite::{JOURNEYS, Journey, Stage},
};
use std::{
    env,
    io::{Write, stdout},
    process::ExitCode,
    sync::Arc,
};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Duration, Instant, timeout},
};

/// How many journeys are made at once in one deployment.
const AT_ONCE: usize = 4;

/// How long one may take: each of its waits has an end of its own, and comes before.
const LONGEST: Duration = Duration::from_secs(420);

/// The main function of the test binary: it understands as much of libtest's command line as cargo and nextest use.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted =
        |name: &str| wanted.iter().any(|wanted| if has("--exact") { name == *wanted } else { name.contains(*wanted) });
    if has("--list") {
        // None of them is ignored.
        let names = if has("--ignored") { Vec::new() } else { tests() };
        names.iter().for_each(|name| say(&format!("{name}: test")));
        return ExitCode::SUCCESS;
    }
    // `--format terse` of the listing has a word without a dash, and is no run.
    let chosen: Vec<String> = tests().into_iter().filter(|name| wanted.is_empty() || is_wanted(name)).collect();
    let ran = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Into::into);
    match ran.and_then(|runtime| runtime.block_on(run(&chosen))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("\n{error}"));
            ExitCode::FAILURE
        }
    }
}

fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn tests() -> Vec<String> {
    let chosen = set("BUILDSCALE_WORLD");
    let worlds = chosen.as_deref().map_or_else(|| World::HERE.to_vec(), |chosen| vec![chosen]);
    let of_hub = || JOURNEYS.iter().map(|journey| format!("hub::{}", journey.name)).collect();
    worlds.into_iter().flat_map(|world| if world == "hub" { of_hub() } else { vec![world.to_owned()] }).collect()
}

async fn run(tests: &[String]) -> Result {
    let part = set("BUILDSCALE_JOURNEY").unwrap_or_default();
    let mut failed = Vec::new();
    for test in tests {
        let (world, journey) = test.split_once("::").unwrap_or((test, ""));
        let is_meant = |known: &&Journey| (journey.is_empty() || known.name == journey) && known.name.contains(&part);
        let journeys: Vec<Journey> = JOURNEYS.iter().filter(is_meant).copied().collect();
        if journeys.is_empty() {
            continue;
        }
        if let Err(error) = make(World::of(world).await?, journeys).await {
            failed.push(format!("{test}: {error}"));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}

/// Makes journeys in one deployment, several at once, and says how each ended.
async fn make(world: World, journeys: Vec<Journey>) -> Result {
    let began = Instant::now();
    let shared = Arc::new(world.deploy(&[]).await?);
    say(&format!("deployed in {}", seconds(began.elapsed())));
    let stage = Stage { world: world.clone(), shared: shared.clone() };
    let (journeys, others): (Vec<Journey>, Vec<Journey>) =
        journeys.into_iter().partition(|journey| journey.fits(&world));
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut under_way = JoinSet::new();
    for journey in journeys {
        let (stage, places) = (stage.clone(), places.clone());
        under_way.spawn(async move {
            let place = places.acquire_owned().await;
            let began = Instant::now();
            // On a task of its own: one that panics is told like one that fails.
            let made = timeout(LONGEST, tokio::spawn(journey.make(stage))).await;
            drop(place);
            let ended = match made {
                Ok(Ok(made)) => made.map_err(|error| error.to_string()),
                Ok(Err(panicked)) => Err(panicked.to_string()),
                Err(_) => Err("it never ended".into()),
            };
            (journey.name, began.elapsed(), ended)
        });
    }
    let mut failed = Vec::new();
    let mut passed = 0;
    while let Some(ended) = under_way.join_next().await {
        let (name, took, ended) = ended?;
        match ended {
            Ok(()) => {
                passed += 1;
                say(&format!("  {:>7}  {name}", seconds(took)));
            }
            Err(error) => {
                say(&format!("  {:>7}  {name} FAILED: {error}", seconds(took)));
                failed.push(name);
            }
        }
    }
    for journey in &others {
        say(&format!("     left  {}: it needs {:?}", journey.name, journey.needs));
    }
    shared.end().await;
    if !failed.is_empty() {
        return Err(format!(
            "{}\n{} of {} failed: {}",
            shared.log(),
            failed.len(),
            failed.len() + passed,
            failed.join(", ")
        )
        .into());
    }
    say(&format!(
        "{passed} journeys in {}, {} need an ability that this world lacks",
        seconds(began.elapsed()),
        others.len()
    ));
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Prints for the person who runs a test; a closed output is no reason to fail.
fn say(line: &str) {
    drop(writeln!(stdout(), "{line}"));
}
