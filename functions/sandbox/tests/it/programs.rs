//! Programs that are spoken to by their pipes, as a worker has them: over HTTP.

use crate::{
    agents::One,
    server::{Served, WORKSPACE},
};
use bytes::Bytes;
use domain::{FilePath, WorkspaceId};
use ports::{Error, Exec, Pipes, RunningProgram, Sandbox, SandboxState};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(60);

fn program(words: &[&str]) -> Exec {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    let env = BTreeMap::from([("GIVEN".to_owned(), "a variable".to_owned())]);
    sandbox::program(words, env, FilePath::root(), Vec::new(), false)
}

/// A program in the sandbox, which has a file by then.
async fn start(served: &Served, states: &[SandboxState], words: &[&str]) -> ports::Result<RunningProgram> {
    let one = One::new(served.remote(), states);
    let latest = served.latest();
    let prepare = |_: Arc<dyn Sandbox>| {
        let file = latest.join("notes.md");
        async move { std::fs::write(file, "the words of the notes\n").map_err(|error| Error::unavailable("a disk", error)) }
    };
    timeout(PATIENCE, sandbox::start_program_in(&one, WorkspaceId::from(WORKSPACE), program(words), prepare))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_program_is_spoken_to_in_a_sandbox_that_is_started_for_it() {
    let served = Served::new().await;
    let states = [SandboxState::Cold, SandboxState::Starting];
    let script = "cat notes.md; echo \"$GIVEN\" >&2; exec cat";
    let running = start(&served, &states, &["/bin/sh", "-c", script]).await.unwrap();
    let RunningProgram { mut input, output, errors, is_outdated, is_there, end } = running;
    let (mut lines, mut complaints) = (BufReader::new(output).lines(), BufReader::new(errors).lines());
    let said = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
    assert_eq!(said.as_deref(), Some("the words of the notes"));
    let said = timeout(PATIENCE, complaints.next_line()).await.unwrap().unwrap();
    assert_eq!(said.as_deref(), Some("a variable"));
    // More than any buffer on its way has room for, in both directions at once.
    let long = "a long message ".repeat(200_000);
    let (sent, expected) = (format!("{long}\n"), long);
    let sending = tokio::spawn(async move {
        input.write_all(sent.as_bytes()).await.unwrap();
        input
    });
    let echoed = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
    assert!(echoed.as_deref() == Some(&*expected), "{} of {} bytes", echoed.map_or(0, |it| it.len()), expected.len());
    let _input = sending.await.unwrap();
    assert!(!is_outdated(), "nothing is hidden from it");
    let is_there = is_there.unwrap();
    assert!(timeout(PATIENCE, is_there()).await.unwrap());

    // It ends with its caller, and its pipes with it.
    drop(end);
    assert_eq!(timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap(), None);
    assert_eq!(timeout(PATIENCE, complaints.next_line()).await.unwrap().unwrap(), None);
    while timeout(PATIENCE, is_there()).await.unwrap() {}
}

#[tokio::test]
async fn a_program_that_ends_and_one_whose_sandbox_goes_end_their_pipes() {
    let mut served = Served::new().await;
    let mut running = start(&served, &[], &["/bin/sh", "-c", "echo last; echo words >&2"]).await.unwrap();
    let (mut output, mut errors) = (String::new(), String::new());
    timeout(PATIENCE, running.output.read_to_string(&mut output)).await.unwrap().unwrap();
    timeout(PATIENCE, running.errors.read_to_string(&mut errors)).await.unwrap().unwrap();
    assert_eq!((output.as_str(), errors.as_str()), ("last\n", "words\n"));

    let mut running = start(&served, &[], &["/bin/cat"]).await.unwrap();
    served.shutdown.cancel();
    timeout(PATIENCE, running.output.read_to_string(&mut output)).await.unwrap().unwrap();
    assert_eq!(output, "last\n", "it has said nothing");
    timeout(PATIENCE, &mut served.serving).await.unwrap().unwrap().unwrap();
    assert!(start(&served, &[], &["/bin/cat"]).await.is_err_and(|error| matches!(error, Error::Unavailable { .. })));
}

#[tokio::test]
async fn a_call_that_is_made_again_starts_nothing_twice_and_ended_programs_are_not_there() {
    let served = Served::new().await;
    let pipes: Arc<dyn Pipes> = served.remote().pipes().unwrap();
    let cat = program(&["/bin/cat"]);
    pipes.start(cat.clone()).await.unwrap();
    assert_eq!(pipes.write(cat.call, 0, Bytes::from_static(b"once\n")).await.unwrap(), 5);
    pipes.start(cat.clone()).await.unwrap();
    assert_eq!(pipes.write(cat.call, 0, Bytes::from_static(b"once\n")).await.unwrap(), 5);
    let piece = pipes.read(cat.call, 0).await.unwrap();
    assert_eq!((piece.number, &*piece.output, piece.is_over), (1, &b"once\n"[..], false));
    assert_eq!(pipes.read(cat.call, 0).await.unwrap(), piece);
    pipes.end(cat.call).await.unwrap();
    pipes.end(cat.call).await.unwrap();
    assert!(matches!(pipes.read(cat.call, 1).await, Err(Error::Conflict { .. })));
    assert!(matches!(pipes.write(cat.call, 5, Bytes::from_static(b"x")).await, Err(Error::Conflict { .. })));
    let refused = pipes.start(program(&["no-such-program"])).await;
    assert!(matches!(&refused, Err(Error::Invalid(why)) if why.contains("there is no program")), "{refused:?}");
}
