//! Status and failure (spec 002 §2.1, §3.4, §3.5, §7.2, §7.3), and the rules that it leaves open.

use crate::{
    roles::{always, brought, joined},
    script::{Fixed, Script},
};
use domain::Status;
use serde_json::{Value, json};

const CHAIN: &str = "
    start s > a
    linear a OPTIONS > b
    linear b > done
    exit done";

#[test]
fn s3_5_fail_on_failure_is_the_default() {
    always(&Script::of(&CHAIN.replace("OPTIONS", "")).fails("a"), |drive| {
        assert_eq!((drive.root().path(), drive.root().status()), (vec!["s", "a"], Status::Failure));
        assert_eq!(drive.root().error().unwrap().message, "a failed");
    });
}

#[test]
fn s3_5_continue_on_failure_passes_the_input_on_and_makes_the_task_partial() {
    always(&Script::of(&CHAIN.replace("OPTIONS", "continue")).fails("a"), |drive| {
        let root = drive.root();
        assert_eq!((root.path(), root.status()), (vec!["s", "a", "b", "done"], Status::Partial));
        assert_eq!(root.input_of("b"), root.input_of("a"));
    });
}

#[test]
fn s3_4_a_partial_node_makes_the_task_partial_to_its_end() {
    always(&Script::of(&CHAIN.replace("OPTIONS", "")).with("a", Fixed::IsPartial), |drive| {
        assert_eq!((drive.root().path().len(), drive.root().status()), (4, Status::Partial));
    });
}

#[test]
fn s3_4_a_merge_ignores_includes_or_fails_by_its_configuration() {
    always(&joined("").fails("a"), |drive| {
        assert_eq!((drive.root().path(), drive.root().status()), (vec!["s", "both"], Status::Failure));
        assert!(drive.root().error().unwrap().message.contains("both/a"));
        assert_eq!(drive.task("both/b").path(), ["b"], "one that fails does not kill its siblings");
    });
    always(&joined("ignore").fails("a"), |drive| {
        assert_eq!(brought(drive.root(), "gather"), ["both/b"]);
        assert_eq!(drive.root().status(), Status::Partial);
    });
    always(&joined("include").fails("a"), |drive| {
        let list = drive.root().input_of("gather");
        assert_eq!(brought(drive.root(), "gather"), ["both/a", "both/b"]);
        assert_eq!((&list[0]["status"], &list[0]["output"]), (&json!("failure"), &Value::Null));
        assert_eq!(drive.root().status(), Status::Partial);
    });
}

#[test]
fn s3_4_a_merge_of_nothing_but_failures_fails_unless_it_includes_them() {
    for (options, status, nodes) in [
        ("", Status::Failure, 2),
        ("ignore", Status::Failure, 2),
        ("include", Status::Partial, 4),
        ("ignore continue", Status::Partial, 3),
    ] {
        always(&joined(options).fails("a").fails("b"), |drive| {
            assert_eq!((drive.root().status(), drive.root().path().len()), (status, nodes), "{options}");
        });
    }
}

#[test]
fn s3_5_a_merge_that_fails_and_is_gone_past_gives_on_what_came() {
    always(&joined("continue").fails("a"), |drive| {
        let root = drive.root();
        assert_eq!((root.path(), root.status()), (vec!["s", "both", "done"], Status::Partial));
        let list = root.input_of("done").as_array().unwrap();
        assert_eq!((list.len(), &list[0]["child"]), (1, &json!("both/b")));
    });
}

#[test]
fn s7_2_a_partial_arrival_at_a_merge_makes_its_task_partial() {
    always(&joined("").with("a", Fixed::IsPartial), |drive| {
        assert_eq!(drive.root().input_of("gather")[0]["status"], "partial");
        assert_eq!((drive.root().path().len(), drive.root().status()), (4, Status::Partial));
    });
    // One that wants only some takes those that succeeded.
    always(&joined("first_success").with("a", Fixed::IsPartial), |drive| {
        assert_eq!((brought(drive.root(), "gather"), drive.root().status()), (vec!["both/b".into()], Status::Success));
    });
}

const SPLIT: &str = "
    start s > each
    split each over OPTIONS > a
    linear a > done
    exit done";

#[test]
fn s7_2_a_split_with_failures_is_a_failure_unless_it_may_be_partial() {
    let script = |options: &str| Script::of(&SPLIT.replace("OPTIONS", options)).with("each", Fixed::Elements(3));
    always(&script("").fails("each/a[1]@a"), |drive| {
        assert_eq!(drive.root().status(), Status::Failure);
        assert_eq!(drive.task("each/a[2]").path(), ["a", "done"], "one that fails does not kill its siblings");
    });
    always(&script("continue").fails("each/a[1]@a"), |drive| {
        let output = drive.root().end().unwrap().1;
        assert_eq!((drive.root().status(), output[0]["node"].as_str()), (Status::Partial, Some("done")));
        assert_eq!(output[1], Value::Null);
    });
    always(&script("continue").fails("a"), |drive| assert_eq!(drive.root().status(), Status::Failure));
    always(&script("").with("each/a[1]@a", Fixed::IsPartial), |drive| {
        assert_eq!(drive.root().status(), Status::Partial);
    });
}

#[test]
fn s7_2_a_partial_task_is_not_made_whole_by_a_clone_that_succeeds() {
    let script = Script::of(
        "start s > shaky
         linear shaky continue > both
         branch both > a b
         exit a
         exit b",
    );
    always(&script.fails("shaky"), |drive| assert_eq!(drive.root().status(), Status::Partial));
}

#[test]
fn s2_1_a_clone_that_goes_elsewhere_does_not_end_a_branch_that_is_joined() {
    let script = Script::of(
        "start s > both
         branch both > which b
         decision which > early a
         linear a > gather
         linear b > gather
         merge gather > done
         exit early
         exit done",
    );
    always(&script.with("which", Fixed::Selects("early")), |drive| {
        assert_eq!((brought(drive.root(), "gather"), drive.root().status()), (vec!["both/b".into()], Status::Success));
        assert_eq!(drive.task("both/which").path(), ["which", "early"]);
    });
}

/// The failed clone of the first merge is not counted a second time by the one after it.
#[test]
fn s3_4_a_failure_counts_for_the_first_merge_that_it_could_have_reached() {
    let flow = |options: &str| {
        Script::of(&format!(
            "start s > three
             branch three > a b c
             linear a > one
             linear b > one
             merge one {options} > between
             linear between > two
             linear c > two
             merge two > done
             exit done"
        ))
    };
    for options in ["ignore", "first_success", "quorum=1"] {
        always(&flow(options).fails("a"), |drive| {
            assert_eq!(drive.root().path(), ["s", "three", "one", "between", "two", "done"], "{options}");
            assert_eq!(brought(drive.root(), "one"), ["three/b"]);
            assert_eq!(brought(drive.root(), "two"), ["", "three/c"]);
        });
    }
    always(&flow("").fails("a"), |drive| assert_eq!(drive.root().path(), ["s", "three"]));
    // One that only the second can take fails that one.
    always(&flow("").fails("c"), |drive| {
        assert_eq!(drive.root().path(), ["s", "three", "one", "between"]);
        assert_eq!(drive.root().status(), Status::Failure);
    });
}

#[test]
fn s3_3_a_merge_that_goes_on_stops_what_it_waits_for_no_more_and_sends_nothing_off() {
    let script = Script::of(
        "start s > each
         split each over > a
         linear a > gather
         merge gather first_success > done
         exit done",
    );
    let mut fewest = usize::MAX;
    let script = script.with("each", Fixed::Elements(40));
    always(&script, |drive| {
        assert_eq!(
            (drive.root().path(), drive.root().status()),
            (vec!["s", "each", "gather", "done"], Status::Success)
        );
    });
    for seed in 0..60 {
        fewest = fewest.min(crate::drive::Drive::run(&script, seed).tasks.len());
    }
    assert!(fewest < 20, "{fewest} tasks were made to take one");
}

/// A child whose own children all went up has not failed by itself, and is known to bring nothing more.
#[test]
fn s3_3_a_child_whose_children_went_up_is_over_and_its_failures_are_known() {
    let flow = |options: &str| {
        Script::of(&format!(
            "start s > outer
             branch outer > inner other
             branch inner > x y
             linear x > gather
             linear y > gather
             linear other > gather
             merge gather {options} > done
             exit done"
        ))
    };
    always(&flow(""), |drive| {
        assert_eq!(brought(drive.root(), "gather"), ["outer/inner/inner/x", "outer/inner/inner/y", "outer/other"]);
        assert_eq!(drive.task("outer/inner").end(), Some((Status::Success, &Value::Null)));
    });
    always(&flow("").fails("x"), |drive| assert_eq!(drive.root().status(), Status::Failure));
    always(&flow("ignore").fails("x"), |drive| {
        assert_eq!(brought(drive.root(), "gather"), ["outer/inner/inner/y", "outer/other"]);
        assert_eq!(drive.root().status(), Status::Partial);
    });
    always(&flow("quorum=3"), |drive| assert_eq!(brought(drive.root(), "gather").len(), 3));
}

#[test]
fn s3_3_a_task_waits_for_those_that_go_past_it_before_it_goes_there_itself() {
    let script = Script::of(
        "start s > b
         branch b > x y
         linear y > top
         branch x > p q past
         linear p > own
         linear q > own
         linear past > top
         merge own > top
         merge top > e
         exit e",
    );
    always(&script, |drive| {
        assert!(!drive.tasks.iter().any(|task| task.is_stopped()));
        let came: Vec<&Value> =
            drive.root().input_of("top").as_array().unwrap().iter().map(|one| &one["from"]).collect();
        assert_eq!(came, [&json!("own"), &json!("past"), &json!("y")]);
    });
}

/// Nothing is waited for at `late` once `early` has stopped the clone that leads there: its child comes in time or too late.
#[test]
fn s3_3_a_merge_begins_no_more_once_one_after_it_has_begun() {
    let script = Script::of(
        "start s > both
         branch both > early inner
         branch inner > early late
         merge early first_success > which
         decision which > last late
         merge late > last
         merge last > each
         split each > work
         linear work > done
         exit done",
    );
    let in_time = ["s", "both", "early", "which", "late", "last", "each"];
    let too_late = ["s", "both", "early", "which", "last", "each"];
    always(&script, |drive| {
        let path = drive.root().path();
        assert!(path == in_time || path == too_late, "{path:?}");
        assert_eq!(drive.root().status(), Status::Success);
    });
}

/// More than half is of all that come to the merge: a child that splits comes as many, and is waited for until it is known as
/// how many.
#[test]
fn s3_3_more_than_half_counts_what_children_became_on_their_way() {
    let script = Script::of(
        "start s > outer
         branch outer > each one two
         split each over > work
         linear work > gather
         linear one > gather
         linear two > gather
         merge gather quorum=0 > done
         exit done",
    );
    let script = script.with("each", Fixed::Elements(9));
    // Eleven come, and six are more than half: the two that do not split are never enough, whichever comes first.
    always(&script, |drive| {
        assert!(brought(drive.root(), "gather").len() >= 6, "{:?}", brought(drive.root(), "gather"))
    });
    // Six of eleven fail: five are not enough. They count one by one, although they are one child's.
    let mut some = script;
    for index in 0..6 {
        some = some.fails(&format!("outer/each/each/work[{index}]@work"));
    }
    always(&some, |drive| {
        assert_eq!(drive.root().path(), ["s", "outer"]);
        let error = drive.root().error().unwrap();
        assert!(error.message.contains("5 succeeded, and 6 are needed"), "{error:?}");
    });
}

/// A merge further down is as deep as the task, and belongs to one that another branch makes.
#[test]
fn s3_3_a_task_waits_at_no_merge_of_a_branch_that_it_is_not_in() {
    let script = Script::of(
        "
        start s > both
        branch both > inner other
        branch inner > p q
        linear p > gather
        linear q > gather
        linear other > gather
        merge gather ignore > again
        branch again > wrap side
        branch wrap > r t
        linear r > late
        linear t > late
        merge late continue > up
        linear up > last
        linear side > last
        merge last > done
        exit done",
    );
    always(&script.fails("p"), |drive| {
        assert_eq!(drive.task("both/inner").path(), ["inner"]);
        assert_eq!(brought(drive.root(), "gather"), ["both/inner/inner/q", "both/other"]);
        assert_eq!(drive.task("again/wrap").path(), ["wrap", "late", "up"]);
        assert_eq!(drive.root().path(), ["s", "both", "gather", "again", "last", "done"]);
        assert_eq!(drive.root().status(), Status::Partial);
    });
}
