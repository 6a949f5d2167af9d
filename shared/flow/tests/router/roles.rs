//! The effect of each role (spec 002 §3.3), each case in several orders and beside the model.

use crate::{
    differential,
    drive::{Drive, Ran},
    script::{Fixed, Script},
};
use domain::{Status, TaskEvent};
use serde_json::{Value, json};

/// Runs it in many orders; the assertions of `then` have to hold in all of them.
pub fn always(script: &Script, then: impl Fn(&Drive<'_>)) {
    for seed in 0..60 {
        let drive = Drive::run(script, seed);
        differential::check(script, &drive);
        then(&drive);
    }
}

/// The outputs of a merge's input, by who brought them.
pub fn brought(task: &Ran, merge: &str) -> Vec<String> {
    let entries = task.input_of(merge).as_array().unwrap();
    entries.iter().map(|entry| entry["child"].as_str().unwrap().to_owned()).collect()
}

fn count(task: &Ran, wanted: impl Fn(&TaskEvent) -> bool) -> usize {
    task.events.iter().filter(|event| wanted(event)).count()
}

const CHAIN: &str = "
    start s > a
    linear a > b
    linear b > done
    exit done";

#[test]
fn s3_3_start_and_linear_pass_their_output_on() {
    always(&Script::of(CHAIN), |drive| {
        let root = drive.root();
        assert_eq!(root.path(), ["s", "a", "b", "done"]);
        assert_eq!(root.input_of("s"), "in");
        assert_eq!(root.input_of("b")["node"], "a");
        assert_eq!((root.status(), root.end().unwrap().1["node"].clone()), (Status::Success, json!("done")));
    });
}

const DECISION: &str = "
    start s > which
    decision which > yes:a b c
    linear a > done
    linear b > done
    exit c
    exit done";

#[test]
fn s3_3_a_decision_goes_along_the_edge_it_selects() {
    always(&Script::of(DECISION), |drive| assert_eq!(drive.root().path(), ["s", "which", "a", "done"]));
    for (selected, next) in [("yes", "a"), ("b", "b"), ("c", "c")] {
        let script = Script::of(DECISION).with("which", Fixed::Selects(selected));
        always(&script, |drive| assert_eq!(drive.root().path()[2], next));
    }
}

#[test]
fn s3_3_a_decision_that_selects_no_edge_fails() {
    for options in ["", "continue"] {
        let script = Script::of(&DECISION.replace("which >", &format!("which {options} >")));
        let script = script.with("which", Fixed::Selects("nowhere"));
        always(&script, |drive| {
            assert_eq!(drive.root().path(), ["s", "which"]);
            assert_eq!(drive.root().status(), Status::Failure);
            let error = drive.root().error().unwrap();
            assert!(error.message.contains("which"), "{error:?}");
            assert!(error.hint.as_ref().unwrap().contains("yes, b, c"), "{error:?}");
        });
    }
}

const BRANCH: &str = "
    start s > both
    branch both > a b
    linear a > a_done
    linear b > b_done
    exit a_done
    exit b_done";

#[test]
fn s3_3_branch_is_done_with_the_first_clone_that_succeeds_and_the_others_are_stopped() {
    let script = Script::of(BRANCH);
    let (mut a_was_first, mut b_was_first) = (false, false);
    always(&script, |drive| {
        let root = drive.root();
        assert_eq!((root.path(), root.status()), (vec!["s", "both"], Status::Success));
        let (a, b) = (drive.task("both/a"), drive.task("both/b"));
        let output = root.end().unwrap().1;
        let first = [a, b].into_iter().find(|task| task.end().unwrap().1 == output).unwrap();
        assert_eq!(first.status(), Status::Success);
        // The other one had ended, or was stopped; it is not waited for.
        assert!(root.events.iter().filter(|event| matches!(event, TaskEvent::ChildFinished { .. })).count() == 1);
    });
    for seed in 0..60 {
        let drive = Drive::run(&script, seed);
        let output = drive.root().end().unwrap().1["node"].clone();
        a_was_first |= output == "a_done";
        b_was_first |= output == "b_done";
    }
    assert!(a_was_first && b_was_first, "it is the order that decides");
}

#[test]
fn s2_1_clones_fail_and_the_one_that_succeeds_is_the_parents_end() {
    always(&Script::of(BRANCH).fails("a"), |drive| {
        assert_eq!(drive.root().status(), Status::Success);
        assert_eq!(drive.root().end().unwrap().1["node"], "b_done");
        assert_eq!(drive.task("both/b").path(), ["b", "b_done"]);
    });
    always(&Script::of(BRANCH).fails("a").fails("b_done"), |drive| {
        assert_eq!((drive.root().status(), drive.root().end().unwrap().1), (Status::Failure, &Value::Null));
        assert!(drive.root().error().is_some());
    });
}

#[test]
fn s2_1_lineage_names_the_parent_the_fork_and_the_edge() {
    always(&Script::of(BRANCH), |drive| {
        let root = drive.root();
        for (index, to) in ["a", "b"].into_iter().enumerate() {
            let child = drive.task(&format!("both/{to}"));
            let origin = child.config.origin.as_ref().unwrap();
            assert_eq!((origin.parent, origin.ancestors.as_slice()), (root.config.task, [root.config.task].as_slice()));
            assert_eq!((origin.node.as_str(), origin.to.as_str(), origin.index), ("both", to, index as u32));
            assert_eq!(child.config.task, root.config.task.child(&origin.name()));
            assert_eq!(child.input_of(to), root.end().map(|_| &child.config.input).unwrap());
        }
    });
}

const JOINED: &str = "
    start s > both
    branch both > a b
    linear a > gather
    linear b > gather
    merge gather OPTIONS > done
    exit done";

pub fn joined(options: &str) -> Script {
    Script::of(&JOINED.replace("OPTIONS", options))
}

#[test]
fn s3_3_merge_waits_for_all_and_takes_their_outputs_in_order() {
    always(&joined(""), |drive| {
        let root = drive.root();
        assert_eq!((root.path(), root.status()), (vec!["s", "both", "gather", "done"], Status::Success));
        assert_eq!(brought(root, "gather"), ["both/a", "both/b"]);
        let first = &root.input_of("gather")[0];
        assert_eq!(
            (&first["from"], &first["status"], &first["output"]["node"]),
            (&json!("a"), &json!("success"), &json!("a"))
        );
        assert_eq!(drive.task("both/a").path(), ["a"]);
        assert_eq!(count(root, |event| matches!(event, TaskEvent::Merged { .. })), 1);
    });
}

const SPLIT: &str = "
    start s > each
    split each OPTIONS > a b
    linear a > done
    linear b > done
    exit done";

#[test]
fn s3_3_split_makes_a_subtask_an_edge_and_is_done_with_all_of_them() {
    always(&Script::of(&SPLIT.replace("OPTIONS", "")), |drive| {
        let root = drive.root();
        assert_eq!((root.path(), root.status()), (vec!["s", "each"], Status::Success));
        let nodes: Vec<&Value> =
            root.end().unwrap().1.as_array().unwrap().iter().map(|output| &output["node"]).collect();
        assert_eq!(nodes, ["done", "done"]);
        assert_eq!(drive.task("each/b[1]").path(), ["b", "done"]);
    });
}

#[test]
fn s3_3_split_over_a_list_makes_a_subtask_an_element_along_the_edges_in_turn() {
    let script = Script::of(&SPLIT.replace("OPTIONS", "over")).with("each", Fixed::Elements(5));
    always(&script, |drive| {
        let mut names: Vec<&str> = drive.tasks.iter().map(|task| task.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["", "each/a[0]", "each/a[2]", "each/a[4]", "each/b[1]", "each/b[3]"]);
        assert_eq!(drive.root().end().unwrap().1.as_array().unwrap().len(), 5);
    });
}

#[test]
fn s3_3_split_over_nothing_ends_with_nothing_or_merges_nothing() {
    let script = Script::of(&SPLIT.replace("OPTIONS", "over")).with("each", Fixed::Elements(0));
    always(&script, |drive| assert_eq!(drive.root().end(), Some((Status::Success, &json!([])))));
    let merged = "
        start s > each
        split each over > a
        linear a > gather
        merge gather > done
        exit done";
    always(&Script::of(merged).with("each", Fixed::Elements(0)), |drive| {
        assert_eq!(drive.root().path(), ["s", "each", "gather", "done"]);
        assert_eq!((drive.root().input_of("gather"), drive.root().status()), (&json!([]), Status::Success));
    });
}

#[test]
fn s3_3_a_merge_of_a_decisions_ways_is_passed_by_the_one_that_comes() {
    let script = Script::of(
        "start s > which
         decision which > a b
         linear a > again
         linear b > again
         merge again > done
         exit done",
    );
    always(&script.with("which", Fixed::Selects("b")), |drive| {
        assert_eq!(drive.root().path(), ["s", "which", "b", "again", "done"]);
        let entry = &drive.root().input_of("again")[0];
        assert_eq!((&entry["from"], &entry["child"]), (&json!("b"), &json!("")));
        assert_eq!(drive.tasks.len(), 1);
    });
}

#[test]
fn s3_3_exit_ends_the_task_with_the_status_that_it_has() {
    always(&Script::of(CHAIN).with("a", Fixed::IsPartial), |drive| {
        assert_eq!((drive.root().path().len(), drive.root().status()), (4, Status::Partial));
        let exit = drive.root().events.iter().find_map(|event| match event {
            TaskEvent::Finished { exit, .. } => exit.clone(),
            _ => None,
        });
        assert_eq!(exit.unwrap().as_str(), "done");
    });
}

#[test]
fn s7_3_an_exit_that_always_fails_overrides_success() {
    let script = Script::of(&CHAIN.replace("exit done", "exit done always_fail"));
    always(&script, |drive| {
        let root = drive.root();
        assert_eq!((root.path(), root.status()), (vec!["s", "a", "b", "done"], Status::Failure));
        assert_eq!(root.end().unwrap().1["node"], "done", "its output is kept");
        let error = root.error().unwrap();
        assert!(error.message.starts_with("the exit done always fails: the task came from b ("), "{error:?}");
        assert_eq!((&error.details["from"], &error.details["exit"]), (&json!("b"), &json!("done")));
    });
    // A clone that ends there does not win.
    let script = Script::of(&BRANCH.replace("exit a_done", "exit a_done always_fail"));
    always(&script, |drive| assert_eq!(drive.root().end().unwrap().1["node"], "b_done"));
}

const NESTED: &str = "
    start s > outer
    branch outer > items other
    split items over > inner
    branch inner > x y
    linear x > both
    linear y > both
    merge both > one
    linear one > gather
    linear other > gather
    merge gather of=outer > done
    exit done";

#[test]
fn s3_3_branch_in_split_in_branch_with_merges_across_levels() {
    let script = Script::of(NESTED).with("items", Fixed::Elements(3));
    always(&script, |drive| {
        let root = drive.root();
        assert_eq!((root.path(), root.status()), (vec!["s", "outer", "gather", "done"], Status::Success));
        assert_eq!(
            brought(root, "gather"),
            ["outer/items/items/inner[0]", "outer/items/items/inner[1]", "outer/items/items/inner[2]", "outer/other"]
        );
        let inner = drive.task("outer/items/items/inner[1]");
        assert_eq!(
            (inner.path(), brought(inner, "both")),
            (vec!["inner", "both", "one"], vec!["inner/x".into(), "inner/y".into()])
        );
        assert_eq!(drive.tasks.len(), 1 + 2 + 3 + 6);
    });
}

#[test]
fn s3_3_first_success_takes_the_first_and_stops_the_others() {
    always(&joined("first_success"), |drive| {
        assert_eq!(brought(drive.root(), "gather").len(), 1);
        assert_eq!(drive.root().status(), Status::Success);
    });
    always(&joined("first_success").fails("a"), |drive| {
        assert_eq!((brought(drive.root(), "gather"), drive.root().status()), (vec!["both/b".into()], Status::Success));
    });
    always(&joined("first_success").fails("a").fails("b"), |drive| {
        assert_eq!((drive.root().path(), drive.root().status()), (vec!["s", "both"], Status::Failure));
    });
}

#[test]
fn s3_3_quorum_takes_those_that_succeeded_when_they_are_enough() {
    let three = "
        start s > each
        split each over > a
        linear a > gather
        merge gather quorum=QUORUM > done
        exit done";
    let script = |quorum: &str| Script::of(&three.replace("QUORUM", quorum)).with("each", Fixed::Elements(3));
    for (quorum, wanted) in [("2", 2), ("3", 3), ("0", 2)] {
        always(&script(quorum), |drive| assert_eq!(brought(drive.root(), "gather").len(), wanted));
    }
    always(&script("2").fails("each/a[1]@a"), |drive| {
        assert_eq!(brought(drive.root(), "gather"), ["each/a[0]", "each/a[2]"]);
        // The third may fail after the other two were enough: then it was not waited for.
        let knew = drive
            .root()
            .events
            .iter()
            .any(|event| matches!(event, TaskEvent::Merged { failed, .. } if !failed.is_empty()));
        assert_eq!(drive.root().status(), if knew { Status::Partial } else { Status::Success });
    });
    always(&script("2 include").fails("each/a[1]@a"), |drive| {
        let came = brought(drive.root(), "gather");
        assert!(came == ["each/a[0]", "each/a[2]"] || came == ["each/a[0]", "each/a[1]", "each/a[2]"], "{came:?}");
        let input = drive.root().input_of("gather").as_array().unwrap();
        assert!(
            input.iter().all(|one| one["from"] == "a"),
            "those that failed come from where they would have come: {input:?}"
        );
    });
    always(&script("3 fail").fails("each/a[1]@a"), |drive| {
        assert_eq!(drive.root().status(), Status::Failure);
        assert!(drive.root().error().unwrap().message.contains("1 of those that it joins failed"));
    });
    always(&script("3").fails("each/a[1]@a"), |drive| {
        assert_eq!(drive.root().status(), Status::Failure);
        assert!(drive.root().error().unwrap().message.contains("2 succeeded, and 3 are needed"));
    });
}

#[test]
fn s3_3_best_of_is_given_all_to_choose_from() {
    always(&joined("best_of"), |drive| assert_eq!(brought(drive.root(), "gather"), ["both/a", "both/b"]));
    always(&joined("best_of include").fails("a").fails("b"), |drive| {
        assert_eq!(drive.root().status(), Status::Failure, "there is no best of none");
    });
}
