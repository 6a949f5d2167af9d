//! Sandboxes: the container's binary in tasks of an ECS that runs processes: asked for by people, by tools, and left idle.

use crate::world::{Event, Options, Result, World};
use aws::{Cloud, Connect, EcsSandboxes};
use domain::WorkspaceId;
use emulators::{
    Calls, Fate, account,
    ecs::{Deployed, Ecs},
};
use http::Method;
use parking_lot::Mutex;
use ports::{Clock, Sandbox, SandboxState, Sandboxes, SystemClock};
use sandbox::{Remote, wire::Health};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    os::unix::fs::MetadataExt as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use testkit::{
    conformance::{self, Bench},
    fakes::{FakeTable, Faults},
};

const SCRIPT: &str = "rules:
- when: {user: '^search'}
  steps:
  - {text: 'I look.', calls: [{tool: grep, args: {pattern: 'needle', path: /projects}}]}
  - {text: 'Looked.'}
- when: {user: '^run'}
  steps:
  - {text: 'I run.', calls: [{tool: exec, args: {command: 'cat projects/a.md; cd $TMPDIR && echo more > b.md && wc -c < b.md'}}]}
  - {text: 'Ran.'}
- when: {user: '^wait'}
  steps:
  - {text: 'I run.', calls: [{tool: exec, args: {words: [sleep, '1000']}}]}
  - {text: 'Gave up.'}
";

/// A cluster whose tasks run the container's binary.
async fn cluster() -> Result<Ecs> {
    Ok(Ecs::start(Deployed::sandboxes(env!("CARGO_BIN_EXE_buildscale-sandbox"))).await?)
}

fn connect() -> Connect {
    Arc::new(|url, token, workspace| Ok(Arc::new(Remote::new(url, token.expose(), workspace)?) as Arc<dyn Sandbox>))
}

fn worker(ecs: &Ecs) -> Result<EcsSandboxes> {
    worker_at(ecs, ecs.endpoint())
}

/// One whose requests go to this endpoint.
fn worker_at(ecs: &Ecs, endpoint: &str) -> Result<EcsSandboxes> {
    let variables = ecs.variables();
    let find = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
    let cloud = Cloud::new(aws::Config::from_variables(find)?, account::sdk(endpoint), clock);
    Ok(cloud.sandboxes(table, connect()).ok_or("no sandboxes are deployed")?)
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_sandboxes_as_the_port_promises() -> Result {
    let ecs = cluster().await?;
    let worker = worker(&ecs)?;
    conformance::sandboxes(&worker, WorkspaceId(SystemClock.id())).await;
    assert_eq!(ecs.living(), []);
    conformance::sandbox(|| async {
        let workspace = WorkspaceId(SystemClock.id());
        worker.warm(workspace).await.unwrap();
        let sandbox = loop {
            drop(worker.look(workspace).await.unwrap());
            if let Some(sandbox) = worker.ready(workspace).await.unwrap() {
                break sandbox;
            }
            // poll: a machine that starts tells no other process
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        };
        let task = ecs.living().into_iter().find(|task| task.started_by.starts_with(&workspace.to_string())).unwrap();
        let latest = ecs.log(&task.task).with_file_name("workspace").join("latest");
        let put = Box::new(|_: &domain::FilePath, _: &[u8]| unreachable!("it has a mirror"));
        Bench { sandbox, put, latest: latest.to_string_lossy().into_owned() }
    })
    .await;
    Ok(())
}

/// A refusal is no failure of the request that asked, so nothing else tells an operator of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_ecs_refuses_is_counted_once() -> Result {
    let ecs = cluster().await?;
    let calls = Calls::of(ecs.endpoint()).await?;
    let failures = Arc::<AtomicU64>::default();
    let worker = worker_at(&ecs, calls.endpoint())?.counting_failures(failures.clone());
    let workspace = WorkspaceId(SystemClock.id());
    calls.plan(|_| Fate::json(400, "AccessDeniedException"));
    assert_eq!(worker.warm(workspace).await?.state, SandboxState::Failed);
    for _ in 0..2 {
        assert_eq!(worker.look(workspace).await?.state, SandboxState::Failed);
    }
    worker.sweep().await.err().ok_or("ECS refuses the list of its tasks, too")?;
    assert_eq!(failures.load(Relaxed), 1);
    calls.plan(|_| Fate::Pass);
    assert_eq!(worker.warm(workspace).await?.state, SandboxState::Starting);
    worker.release(workspace).await?;
    assert_eq!(failures.load(Relaxed), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sandbox_is_the_user_of_its_workspace() -> Result {
    let ecs = cluster().await?;
    let worker = worker(&ecs)?;
    let mut users = BTreeSet::new();
    for _ in 0..2 {
        let workspace = WorkspaceId(SystemClock.id());
        worker.warm(workspace).await?;
        while worker.ready(workspace).await?.is_none() {
            drop(worker.look(workspace).await?);
            // poll: a machine that starts tells no other process
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let task = ecs.living().into_iter().find(|task| task.started_by.starts_with(&workspace.to_string()));
        let log = ecs.log(&task.ok_or("there is no task")?.task);
        // Its files are its own, and whatever it writes as it starts.
        let user = std::fs::metadata(log.with_file_name("workspace"))?.uid();
        let mirror = std::fs::metadata(log.with_file_name("workspace").join("latest"))?;
        assert_eq!(mirror.uid(), user);
        let lines = std::fs::read_to_string(&log)?;
        let serving = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let told = serving
            .filter(|line| line["fields"]["message"] == "serving")
            .find_map(|line| line["fields"]["user"].as_u64());
        assert_eq!(told.unwrap_or_else(|| u64::from(user)), u64::from(user), "{lines}");
        users.insert(user);
    }
    // Only root can become somebody else.
    let is_root = std::fs::metadata("/proc/self")?.uid() == 0;
    assert_eq!(users.len(), if is_root { 2 } else { 1 }, "{users:?}");
    assert!(!is_root || users.iter().all(|user| *user >= 0x7000_0000), "{users:?}");
    Ok(())
}

/// The result of the first call of a chat, once the agent is done.
async fn done(world: &World, chat: &str) -> Result<Event> {
    let watch = world.client.watch(chat);
    watch.until_event("done").await?;
    let events = watch.events();
    Ok(events.into_iter().find(|event| event.name == "observation").ok_or("nothing was observed")?)
}

/// Lets the agent run its command.
async fn approve(world: &World, chat: &str) -> Result {
    let asked = world.client.watch(chat).until_event("permission_required").await?;
    let id = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
    world.client.post(&format!("{chat}/permissions/{id}"), json!({ "outcome": "approved" })).await?;
    Ok(())
}

/// How the sandbox is, which it tells anybody.
async fn health(ecs: &Ecs) -> Result<Health> {
    let task = ecs.living().pop().ok_or("there is no task")?;
    let url = ecs.url(&task.task).ok_or("it has no address")?;
    Ok(Remote::new(url, "no-token-of-it", WorkspaceId(SystemClock.id()))
        .map_err(|error| error.to_string())?
        .health()
        .await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_searches_without_a_sandbox_then_in_one_and_without_again_when_it_dies() -> Result {
    let ecs = cluster().await?;
    let calls = Calls::of(ecs.endpoint()).await?;
    let mut settings = ecs.variables();
    settings.push(("AWS_ENDPOINT_URL_ECS".into(), calls.endpoint().into()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let world = World::deploy(Options { script: SCRIPT.into(), settings: &settings, ..Options::default() }).await?;
    let (client, place) = (&world.client, world.client.place().await?);
    client.file(&place, "/projects/a.md", "a needle in a haystack\n").await?;
    let found = |observed: &Event| observed.data.to_string().contains("a needle in a haystack");

    // Cold: out of the archive, and nothing is started for it.
    let searched = done(&world, &client.chat(&place, "search one").await?).await?;
    assert!(found(&searched), "{searched:?}");
    assert_eq!(ecs.tasks(), []);
    assert_eq!(client.get(&format!("{place}/sandbox")).await?["state"], "cold");

    // Somebody asks for one, and agents find it by themselves.
    let asked = client.ask(Method::POST, &format!("{place}/sandbox"), Value::Null).await?.is(202)?.json();
    assert_eq!(asked["state"], "starting", "{asked}");
    client.until(&format!("{place}/sandbox"), |view| view["state"] == "ready").await?;
    assert_eq!(health(&ecs).await?.mark, None, "it has been told nothing yet");
    calls.take();
    // A worker believes for some seconds that there is none.
    let begun = tokio::time::Instant::now();
    while health(&ecs).await?.mark.is_none() {
        assert!(begun.elapsed() < journeys::PATIENCE, "no search reaches it");
        let searched = done(&world, &client.chat(&place, "search two").await?).await?;
        assert!(found(&searched), "{searched:?}");
    }
    assert_eq!(calls.take().get("RunTask"), None);

    // A command reads the files, and writes nowhere but to its scratch.
    let chat = client.chat(&place, "run").await?;
    approve(&world, &chat).await?;
    let ran = done(&world, &chat).await?;
    assert!(found(&ran) && ran.data.to_string().contains("haystack\\n5\\n"), "{ran:?}");
    assert_eq!(ecs.tasks().len(), 1);

    // It dies under a command. The agent is told, and searches elsewhere.
    let chat = client.chat(&place, "wait").await?;
    approve(&world, &chat).await?;
    while health(&ecs).await?.running != 1 {
        // poll: a command that begins tells its caller alone
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    ecs.kill(&ecs.living()[0].task);
    let ended = done(&world, &chat).await?;
    assert!(ended.data.to_string().contains("went away"), "{ended:?}");
    let searched = done(&world, &client.chat(&place, "search three").await?).await?;
    assert!(found(&searched), "{searched:?}");
    let view = client.until(&format!("{place}/sandbox"), |view| view["state"] == "cold").await?;
    assert!(view["reason"].as_str().is_some_and(|why| why.contains("it was killed (SIGKILL)")), "{view}");

    // The next command brings another one; letting it go ends it.
    let chat = client.chat(&place, "run again").await?;
    approve(&world, &chat).await?;
    let ran = done(&world, &chat).await?;
    assert!(found(&ran), "{ran:?}");
    assert_eq!((ecs.tasks().len(), ecs.living().len()), (2, 1));
    for _ in 0..2 {
        client.ask(Method::DELETE, &format!("{place}/sandbox"), Value::Null).await?.is(204)?;
    }
    assert_eq!(ecs.living(), []);
    assert_eq!(client.get(&format!("{place}/sandbox")).await?["state"], "cold");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_reads_what_was_signed_for_its_workspace_and_has_no_other_way_to_the_archive() -> Result {
    let ecs = cluster().await?;
    let mut settings = ecs.variables();
    settings.push(("AWS_ENDPOINT_URL_ECS".into(), ecs.endpoint().into()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let world = World::deploy(Options { script: SCRIPT.into(), settings: &settings, ..Options::default() }).await?;
    let client = &world.client;
    let (place, other) = (client.place().await?, client.place().await?);
    // So long that it is in the archive, and the same in both workspaces.
    let content = format!("a needle in a haystack\n{}", "hay\n".repeat(5_000));
    for place in [&place, &other] {
        client.file(place, "/projects/a.md", &content).await?;
    }
    client.ask(Method::POST, &format!("{place}/sandbox"), Value::Null).await?.is(202)?;
    client.until(&format!("{place}/sandbox"), |view| view["state"] == "ready").await?;
    // Functions say in their requests who they are, and a sandbox is none.
    let read: Arc<Mutex<Vec<String>>> = Arc::default();
    world.s3.plan_calls({
        let read = read.clone();
        move |call| {
            if call.function.is_empty() {
                read.lock().push(format!("{} {}", call.operation, call.target));
            }
            Fate::Pass
        }
    });
    let begun = tokio::time::Instant::now();
    while health(&ecs).await?.mark.is_none() {
        assert!(begun.elapsed() < journeys::PATIENCE, "no search reaches it");
        done(&world, &client.chat(&place, "search").await?).await?;
    }
    world.s3.pass();
    let log = ecs.log(&ecs.living()[0].task);
    assert_eq!(std::fs::read_to_string(log.with_file_name("workspace").join("latest/projects/a.md"))?, content);
    let logged = std::fs::read_to_string(log)?;
    assert!(!logged.contains("could not be read") && !logged.contains("X-Amz-Signature"), "{logged}");

    let id = |place: &str| place.rsplit('/').next().unwrap_or_default().to_owned();
    let read = read.lock().clone();
    let own = format!("GET object /{}/{}/archive/", world.name, id(&place));
    assert!(!read.is_empty());
    assert!(read.iter().all(|read| read.starts_with(&own) && read.contains("X-Amz-Signature=")), "{read:?}");
    // A sandbox that was taken over asks for the same content of the other workspace.
    _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::new();
    let url = format!("{}{}", world.s3.endpoint(), read[0].trim_start_matches("GET object "));
    assert_eq!(http.get(&url).send().await?.status().as_u16(), 200);
    assert_eq!(http.get(url.replace(&id(&place), &id(&other))).send().await?.status().as_u16(), 403);
    Ok(())
}
