//! Traces and differences of real runs.

use crate::{
    flows::{ASKS, NESTED, POLICY, REFUSED, SPLIT, TOOLS},
    rig::Rig,
};
use domain::{Status, TaskView};
use flow::diff::DivergenceKind;
use futures::TryStreamExt;
use serde_json::{Value, json};

/// Lines of a trace as JSON.
fn lines(trace: &str) -> Vec<Value> {
    trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn asked(rig: &Rig, colour: &str) -> TaskView {
    let task = rig.begin("asks", json!({ "path": "/projects/note.md" })).await;
    rig.work().await;
    rig.answer(task, "people", json!({ "colour": colour })).await;
    rig.finished(task).await
}

#[tokio::test(start_paused = true)]
async fn s6_the_trace_of_nested_children_is_the_same_in_every_order_of_events() {
    let mut traces = Vec::new();
    for seed in 0..6 {
        let rig = Rig::new(seed).await;
        rig.flow("nested", &[("workflow.yaml", NESTED)]).await;
        let view = rig.run("nested", json!({ "items": [1, 2, 3] })).await;
        assert_eq!(view.status, Status::Success, "{view:?}");
        traces.push((view.task_id, rig.trace(view.task_id).await));
    }
    let (_, first) = &traces[0];
    for (task, trace) in &traces {
        assert_eq!(trace, first);
        assert!(!trace.contains(&task.to_string()), "an id is in it");
    }
    let lines = lines(first);
    let nodes: Vec<(&str, &str)> =
        lines.iter().filter_map(|line| Some((line["task"].as_str()?, line.get("node")?.as_str()?))).collect();
    let expected = [
        ("", "begin"),
        ("", "both"),
        ("both/count", "count"),
        ("both/each", "each"),
        ("both/each/each/work[0]", "work"),
        ("both/each/each/work[1]", "work"),
        ("both/each/each/work[2]", "work"),
        ("both/each", "gather"),
        ("", "either"),
        ("", "done"),
    ];
    assert_eq!(nodes, expected, "{first}");
    let gathered = lines.iter().find(|line| line.get("node") == Some(&json!("gather"))).unwrap();
    let outputs: Vec<&Value> =
        gathered["input"]["value"].as_array().unwrap().iter().map(|one| &one["output"]).collect();
    assert_eq!(outputs, [10, 20, 30]);
    let arrived: Vec<&Value> = lines.iter().filter(|line| line.get("arrived") == Some(&json!("gather"))).collect();
    assert_eq!(
        arrived.iter().map(|line| &line["child"]).collect::<Vec<_>>(),
        ["each/work[0]", "each/work[1]", "each/work[2]"]
    );
}

#[tokio::test(start_paused = true)]
async fn s6_a_trace_rebuilt_from_the_log_has_the_same_bytes() {
    let rig = Rig::new(3).await;
    rig.flow("numbers", &[("workflow.yaml", SPLIT)]).await;
    let view = rig.run("numbers", json!({ "items": [5, 6] })).await;
    let once = rig.trace(view.task_id).await;
    // Nothing but the log is read: without the views it is the same.
    let views: Vec<_> = rig.table.items().into_iter().filter(|item| item.key.sk.contains("snapshot")).collect();
    for item in views {
        let delete = ports::Write::delete(item.key, ports::Expect::Any);
        ports::Table::commit(&*rig.table, vec![delete]).await.unwrap();
    }
    assert_eq!(rig.trace(view.task_id).await, once);
    let ended = lines(&once).pop().unwrap();
    assert_eq!((ended["ended"].as_str(), ended["exit"].as_str()), (Some("success"), Some("done")));
}

#[tokio::test(start_paused = true)]
async fn s10_7_a_re_run_with_recorded_answers_has_the_same_trace_although_the_world_has_changed() {
    let rig = Rig::new(1).await;
    rig.flow("asks", &[("workflow.yaml", ASKS), ("tools.yaml", TOOLS)]).await;
    rig.write("/projects/note.md", "as it was").await;
    let first = asked(&rig, "red").await;
    assert_eq!(first.output, Some(json!("it is red")));
    rig.write("/projects/note.md", "changed since").await;
    let again = rig.replay(first.task_id, None).await;
    assert_eq!(again.output, first.output);
    let (one, two) = (rig.trace(first.task_id).await, rig.trace(again.task_id).await);
    assert_eq!(one, two);
    assert!(one.contains("as it was"), "{one}");
    let diff = buildscale_telemetry::diff(&rig.tasks, rig.workspace, first.task_id, again.task_id).await.unwrap();
    assert_eq!(diff.parts, None);
    assert!(diff.nodes.values().all(|node| node.same), "{diff}");
    assert!(diff.to_string().starts_with("both did the same\n"), "{diff}");
}

#[tokio::test(start_paused = true)]
async fn s10_7_a_diff_names_the_first_node_where_two_runs_part_and_the_place_in_its_output() {
    let rig = Rig::new(2).await;
    rig.flow("asks", &[("workflow.yaml", ASKS), ("tools.yaml", TOOLS)]).await;
    rig.write("/projects/note.md", "a note").await;
    let (red, blue) = (asked(&rig, "red").await, asked(&rig, "blue").await);
    let diff = buildscale_telemetry::diff(&rig.tasks, rig.workspace, red.task_id, blue.task_id).await.unwrap();
    let parts = diff.parts.clone().unwrap();
    assert_eq!((parts.what, parts.node.as_ref().map(|node| node.as_str())), (DivergenceKind::Output, Some("people")));
    assert_eq!(parts.differences.len(), 1);
    assert_eq!((parts.differences[0].path.as_str(), &parts.differences[0].a), ("/colour", &Some(json!("red"))));
    let ran = |node: &str| diff.nodes.get(&node.into()).map(|node| (node.a.runs, node.b.runs, node.same));
    assert_eq!((ran("look"), ran("red"), ran("blue")), (Some((1, 1, true)), Some((1, 0, false)), Some((0, 1, false))));
    let text = diff.to_string();
    assert!(text.contains("they part in the output of people") && text.contains("\"red\" | \"blue\""), "{text}");
    let whole = serde_json::to_value(&diff).unwrap();
    assert_eq!(serde_json::from_value::<flow::diff::TaskDiff>(whole).unwrap().parts, diff.parts);
}

#[tokio::test(start_paused = true)]
async fn s10_7_a_diff_finds_the_child_that_did_something_else() {
    let rig = Rig::new(4).await;
    rig.flow("nested", &[("workflow.yaml", NESTED)]).await;
    let one = rig.run("nested", json!({ "items": [1, 2, 3] })).await;
    let changed = NESTED.replace("input * 10", "input == 2 ? 0 : input * 10");
    rig.flow("nested", &[("workflow.yaml", &changed)]).await;
    let two = rig.run("nested", json!({ "items": [1, 2, 3] })).await;
    let diff = buildscale_telemetry::diff(&rig.tasks, rig.workspace, one.task_id, two.task_id).await.unwrap();
    let parts = diff.parts.clone().unwrap();
    assert_eq!((parts.task.as_str(), parts.what), ("both/each/each/work[1]", DivergenceKind::Output));
    assert_ne!(diff.a.flow, diff.b.flow);
    assert!(diff.to_string().starts_with("the manifests differ"), "{diff}");
    // A longer list parts at the very beginning: in what was given.
    let three = rig.run("nested", json!({ "items": [1, 2, 3, 4] })).await;
    let diff = buildscale_telemetry::diff(&rig.tasks, rig.workspace, two.task_id, three.task_id).await.unwrap();
    let parts = diff.parts.unwrap();
    assert_eq!((parts.what, parts.differences[0].path.as_str()), (DivergenceKind::Input, "/items/3"));
}

#[tokio::test(start_paused = true)]
async fn s6_a_trace_of_many_children_comes_in_pieces() {
    let rig = Rig::new(0).await;
    rig.flow("numbers", &[("workflow.yaml", SPLIT)]).await;
    let view = rig.run("numbers", json!({ "items": (0..300).collect::<Vec<_>>() })).await;
    let stream = buildscale_telemetry::trace_stream(&rig.tasks, rig.workspace, view.task_id).await.unwrap();
    let pieces: Vec<String> = stream.try_collect().await.unwrap();
    // Each is a chunk and at most one line more; the input of the merge is told by its hash.
    assert!(pieces.len() > 2, "{}", pieces.len());
    assert!(pieces.iter().all(|piece| piece.len() < 80 * 1024), "{:?}", pieces.iter().map(String::len).max());
    let lines = lines(&pieces.concat());
    assert_eq!(lines.iter().filter(|line| line.get("node") == Some(&json!("work"))).count(), 300);
    let tasks: Vec<&str> = lines
        .iter()
        .filter(|line| line.get("kind") == Some(&json!("subtask")) && line.get("began").is_some())
        .map(|line| line["task"].as_str().unwrap())
        .collect();
    assert_eq!((tasks.len(), tasks[2], tasks[10]), (300, "each/work[2]", "each/work[10]"));
}

#[tokio::test(start_paused = true)]
async fn s6_a_running_task_has_the_trace_of_what_it_has_done() {
    let rig = Rig::new(0).await;
    rig.flow("asks", &[("workflow.yaml", ASKS), ("tools.yaml", TOOLS)]).await;
    rig.write("/projects/note.md", "a note").await;
    let task = rig.begin("asks", json!({ "path": "/projects/note.md" })).await;
    rig.work().await;
    let so_far = rig.trace(task).await;
    rig.answer(task, "people", json!({ "colour": "blue" })).await;
    let whole = rig.trace(task).await;
    assert!(whole.starts_with(&so_far) && whole.len() > so_far.len(), "{so_far}\n{whole}");
}

#[tokio::test(start_paused = true)]
async fn s10_7_a_re_run_is_refused_what_its_record_was_refused() {
    let rig = Rig::new(1).await;
    let files = [("workflow.yaml", REFUSED), ("tools.yaml", TOOLS), ("policy.yaml", POLICY)];
    rig.flow("refused", &files).await;
    let first = rig.begin("refused", json!("in")).await;
    rig.work().await;
    rig.answer(first, "allow", json!({ "approved": false, "comment": "not today" })).await;
    assert_eq!(rig.finished(first).await.status, Status::Partial);
    let again = rig.replay(first, None).await;
    let trace = rig.trace(first).await;
    assert_eq!(rig.trace(again.task_id).await, trace);
    let lines = lines(&trace);
    let look = lines.iter().find(|line| line.get("node") == Some(&json!("look"))).unwrap();
    assert_eq!(look["denied"][0]["rule"], json!("no_read"));
    let allow = lines.iter().find(|line| line.get("node") == Some(&json!("allow"))).unwrap();
    assert_eq!((&allow["status"], &allow["error"]), (&json!("failure"), &json!("FORBIDDEN")));
}
