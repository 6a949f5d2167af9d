//! Our Lambda is as strict as the real one about the guarantees to its functions.
#![expect(clippy::unwrap_used, reason = "tests")]

use lambda::{Failure, Function, Settings};
use serde_json::{Value, json};
use std::time::Duration;

fn probe(timeout: Duration, concurrency: usize) -> Function {
    let binary = env!("CARGO_BIN_EXE_probe").into();
    Function::new(Settings { name: "probe".into(), binary, environment: Vec::new(), timeout, concurrency, log: None })
}

async fn ask(function: &Function, event: Value) -> Result<Value, Failure> {
    let answer = function.invoke(event.to_string()).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn an_idle_instance_is_used_again_and_one_that_is_forgotten_is_not() {
    let function = probe(LONG, 4);
    let first = ask(&function, json!({ "echo": [1] })).await.unwrap();
    assert_eq!(first["echo"], json!([1]));
    assert_eq!(ask(&function, json!({})).await.unwrap()["pid"], first["pid"]);
    function.forget_idle();
    assert_ne!(ask(&function, json!({})).await.unwrap()["pid"], first["pid"]);
    assert_eq!(function.inits().len(), 2);
}

#[tokio::test]
async fn each_invocation_has_a_deadline_and_one_that_overruns_it_is_killed() {
    let left = ask(&probe(LONG, 1), json!({ "left": true })).await.unwrap().as_u64().unwrap();
    assert!(left > 0 && left <= 600_000, "{left}");
    let short = probe(Duration::from_millis(300), 1);
    assert_eq!(ask(&short, json!({ "hang": true })).await, Err(Failure::TimedOut));
    let other = ask(&probe(LONG, 1), json!({ "echo": "another instance" })).await.unwrap();
    assert_eq!(other["echo"], "another instance");
}

#[tokio::test]
async fn the_error_of_a_function_is_passed_on_and_it_goes_on() {
    let function = probe(LONG, 1);
    let Err(Failure::Function(said)) = ask(&function, json!({ "fail": "no such thing" })).await else {
        panic!("it failed")
    };
    assert!(said.contains("no such thing"), "{said}");
    assert!(ask(&function, json!({})).await.is_ok());
    assert_eq!(function.inits().len(), 1, "the instance is kept");
}

#[tokio::test]
async fn a_process_that_ends_or_is_killed_fails_its_invocation_and_is_replaced() {
    let function = probe(LONG, 1);
    assert_eq!(ask(&function, json!({ "die": true })).await, Err(Failure::Exited));
    let hanging = tokio::spawn({
        let function = function.clone();
        async move { ask(&function, json!({ "hang": true })).await }
    });
    while function.kill_busy() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(hanging.await.unwrap(), Err(Failure::Exited));
    assert!(ask(&function, json!({})).await.is_ok());
}

#[tokio::test]
async fn no_more_instances_run_than_may() {
    let function = probe(LONG, 2);
    let asked = (0..12).map(|n| {
        let function = function.clone();
        tokio::spawn(async move { ask(&function, json!({ "echo": n })).await.unwrap()["echo"].clone() })
    });
    for (n, answer) in asked.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(answer.await.unwrap(), json!(n));
    }
    assert!(function.inits().len() <= 2, "{:?}", function.inits());
}

#[tokio::test]
async fn a_binary_that_never_asks_for_work_is_said_to() {
    let mut settings = probe(LONG, 1).settings().clone();
    settings.binary = "/bin/false".into();
    let function = Function::new(settings);
    assert!(matches!(function.invoke("{}").await, Err(Failure::Init(_))));
}

#[tokio::test]
async fn a_start_is_measured_up_to_the_first_poll() {
    let start = lambda::start(env!("CARGO_BIN_EXE_probe").as_ref()).await.unwrap();
    assert!(!start.took.is_zero() && start.held > 1 << 20, "{start:?}");
    assert!(matches!(lambda::start("/bin/true".as_ref()).await, Err(Failure::Init(_))), "it never asks for work");
}

/// The input of `scripts/sizes` and of the bench.
#[tokio::test]
async fn starts_are_told_beside_those_of_a_function_that_does_nothing() {
    let mut starts = tokio::process::Command::new(env!("CARGO_BIN_EXE_starts"));
    let output = starts.args(["--json", "2", env!("CARGO_BIN_EXE_probe")]).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = lines.iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["nothing", "probe"]);
    for line in &lines {
        assert!(line["best_ms"].as_f64().unwrap() <= line["median_ms"].as_f64().unwrap(), "{line}");
        assert!(line["bytes"].as_u64().unwrap() > 0 && line["held_bytes"].as_u64().unwrap() > 0, "{line}");
    }
}
