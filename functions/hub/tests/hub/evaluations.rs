//! Evaluations of flows from the command line, on a terminal.

use crate::{
    support::{Result, start},
    terminal::{CTRL_C, Screen},
};

const ASKS: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: say, kind: agent, role: linear, agent_id: voice, context: none, prompt: 'Say it.'}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: say}, {from: say, to: end}]
";
const VOICE: &str = "agents: [{id: voice, system: You are a voice.}]";
/// The model of its second case never answers.
const SUITE: &str = "
suites:
  - name: s
    cases:
      - id: quick
        script: {rules: [{steps: [{text: said}]}]}
        assertions: [{type: equals, expected: said}]
      - id: hangs
        script: {rules: [{steps: [{hang: true}]}]}
        assertions: [{type: status, expected: success}]
";

#[tokio::test]
async fn s10_3_ctrl_c_stops_an_evaluation_with_the_tasks_of_its_cases() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let files = [("workflow.yaml", ASKS), ("agents.yaml", VOICE), ("evaluations.yaml", SUITE)];
    client.flow(&client.place().await?, "asks", &files).await?;
    let mut screen = Screen::start(&client, &data.path().join("state"), &["flow", "eval", "asks"])?;
    screen.until("s/quick").await?;
    screen.until("1 of 2 cases").await?;
    screen.keys(CTRL_C).await?;
    screen.until("stopping the evaluation").await?;
    screen.until("ended early, after 1 of 2 cases: the evaluation was stopped (CANCELLED)").await?;
    screen.until("1 passed, 0 failed, 0 skipped").await?;
    assert_eq!(screen.ended().await?, Some(6));
    Ok(())
}
