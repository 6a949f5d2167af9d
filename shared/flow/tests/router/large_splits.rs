//! Large splits.

use crate::{
    drive::Drive,
    script::{Fixed, Script},
};
use domain::Status;
use std::time::Duration;
use tokio::time::Instant;

const WIDE: &str = "
    start s > items
    split items over > work
    linear work > gather
    merge gather OPTIONS > done
    exit done";

fn ten_thousand(options: &str) -> Script {
    Script::of(&WIDE.replace("OPTIONS", options)).with("items", Fixed::Elements(10_000))
}

fn run(script: &Script) -> Drive<'_> {
    let begun = Instant::now();
    let drive = Drive::run_with(script, 1, 100, 50);
    // Each message costs the same however many came before: ten thousand take seconds even when nothing is optimised.
    // bound: a cost that grows with their square takes far longer, and a busy machine does not
    assert!(begun.elapsed() < Duration::from_secs(180), "it took {:?}", begun.elapsed());
    drive
}

#[test]
fn s3_3_split_of_ten_thousand_and_a_merge() {
    let script = ten_thousand("");
    let drive = run(&script);
    assert_eq!(drive.tasks.len(), 10_001);
    assert_eq!(drive.root().status(), Status::Success);
    assert_eq!(drive.root().path(), ["s", "items", "gather", "done"]);
    let list = drive.root().input_of("gather").as_array().unwrap();
    assert_eq!(list.len(), 10_000);
    assert!(list.iter().enumerate().all(|(index, entry)| entry["child"] == format!("items/work[{index}]")));
}

#[test]
fn s3_5_one_of_ten_thousand_fails_and_the_others_do_not() {
    let script = ten_thousand("ignore").fails("items/work[77]@work");
    let drive = run(&script);
    assert_eq!(drive.root().status(), Status::Partial);
    assert_eq!(drive.root().input_of("gather").as_array().unwrap().len(), 9_999);
}

#[test]
fn s3_3_a_quorum_of_ten_thousand() {
    let script = ten_thousand("quorum=9000");
    let drive = run(&script);
    assert_eq!(drive.root().status(), Status::Success);
    assert_eq!(drive.root().input_of("gather").as_array().unwrap().len(), 9_000);
}
