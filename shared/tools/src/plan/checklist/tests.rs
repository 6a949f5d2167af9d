//! The claims of agents that share a plan, as a property: whatever the agents do, and in whatever order.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use proptest::prelude::*;
use uuid::Uuid;

const PLAN: &str =
    "# Plan\n\n- [ ] one\n  * [ ] two é <!-- a note -->\n```\n- [ ] code\n```\n+ [ ] three\n- [ ] four\r\n";

fn chat(number: u8) -> ChatId {
    ChatId(Uuid::from_u128(u128::from(number) + 1))
}

fn hand(number: u8, now: i64) -> StepEditor<'static> {
    let lease = Some(Duration::from_secs(60));
    StepEditor { role: "builder", chat: Some(chat(number)), lease, now: Timestamp::from_millis(now * 1000) }
}

fn statuses(text: &str) -> Vec<Status> {
    steps(text).iter().map(|step| step.status).collect()
}

#[test]
fn a_tick_or_a_claim_changes_no_plan_and_everything_else_does() {
    let digest = |text: &str| plan_digest(text);
    let approved = digest("# Plan\n\n- [ ] one\n- [ ] two\n");
    assert!(approved.is_some());
    assert_eq!(digest("# Plan\n\n- [x] one\n- [~] two\n"), approved);
    let (claimed, _) = change("# Plan\n\n- [ ] one\n- [ ] two\n", Some(2), Status::InProgress, &hand(0, 0)).unwrap();
    assert_ne!(claimed, "# Plan\n\n- [ ] one\n- [~] two\n");
    assert_eq!(digest(&claimed), approved);
    for other in
        ["# Plan\n\n- [ ] one\n- [ ] rm -rf\n", "# Plan\n\n- [ ] one\n", "# Plan\n\nfirst\n- [ ] one\n- [ ] two\n"]
    {
        assert_ne!(digest(other), approved, "{other}");
    }
    assert_eq!(digest("# Notes\n"), None);
}

#[test]
fn steps_are_the_tasks_of_the_list_outside_of_code() {
    let text = "# Plan\n\n- [ ] one\n  * [X] two é\n```\n- [ ] code\n```\n- [?] not\n+ [~] three\n- [x]none\n";
    let found = steps(text);
    let told: Vec<_> = found.iter().map(|step| (step.status, step.title)).collect();
    assert_eq!(told, [(Status::Pending, "one"), (Status::Done, "two é"), (Status::InProgress, "three")]);
    assert!(found.iter().all(|step| text[step.mark_at..].chars().nth(1) == Some(']')));
}

#[test]
fn a_claim_is_a_comment_of_the_line_that_lasts_for_its_lease() {
    let (text, number) = change(PLAN, None, Status::InProgress, &hand(0, 0)).unwrap();
    assert_eq!(number, 1);
    let line = text.lines().nth(2).unwrap();
    assert_eq!(line, "- [~] one <!-- builder 00000000-0000-0000-0000-000000000001 until 1970-01-01T00:01:00.000Z -->");
    let titles: Vec<_> = steps(&text).iter().map(|step| step.title.to_owned()).collect();
    assert_eq!(titles, ["one", "two é <!-- a note -->", "three", "four"]);
    // Another agent gets the next one; the first is refused to it until the lease is over.
    assert_eq!(change(&text, None, Status::InProgress, &hand(1, 59)).unwrap().1, 2);
    assert!(matches!(change(&text, Some(1), Status::Done, &hand(1, 59)), Err(PlanRefusal::Claimed(1, _))));
    assert_eq!(change(&text, Some(1), Status::InProgress, &hand(1, 60)).unwrap().1, 1);
    let (done, _) = change(&text, None, Status::Done, &hand(0, 30)).unwrap();
    assert_eq!(done.lines().nth(2).unwrap(), "- [x] one <!-- builder 00000000-0000-0000-0000-000000000001 -->");
    assert_eq!(change(&done, Some(1), Status::InProgress, &hand(0, 30)), Err(PlanRefusal::Ended(1, Status::Done)));
    assert_eq!(change(&done, Some(3), Status::Done, &hand(0, 30)), Err(PlanRefusal::Unclaimed(3)));
    assert_eq!(change(&done, None, Status::Done, &hand(0, 30)), Err(PlanRefusal::NothingHeld));
    assert_eq!(change(&done, Some(5), Status::Done, &hand(0, 30)), Err(PlanRefusal::NoStep));
    // An agent with a plan of its own, and a person, leave no comment.
    let alone = StepEditor { lease: None, ..hand(0, 0) };
    assert_eq!(change("- [ ] one\n", Some(1), Status::Done, &alone), Ok(("- [x] one\n".into(), 1)));
    let (begun, _) = change("- [x] one\n- [ ] two\n", None, Status::InProgress, &alone).unwrap();
    assert_eq!(change(&begun, None, Status::Done, &alone), Ok(("- [x] one\n- [x] two\n".into(), 2)));
}

#[test]
fn a_step_is_free_when_those_that_it_needs_are_done() {
    let text = "- [ ] one\n- [ ] two (after 1)\n- [ ] three (after 1, 9)\n- [ ] four (after 2, 3) <!-- note -->\n- [ ] five (after noon)\n";
    let told: Vec<_> = steps(text).into_iter().map(|step| (step.title.to_owned(), step.needs)).collect();
    let words = ["one", "two", "three", "four (after 2, 3) <!-- note -->", "five (after noon)"].map(str::to_owned);
    assert_eq!(told.iter().map(|(title, _)| title.clone()).collect::<Vec<_>>(), words);
    assert_eq!(told[2].1, [1, 9]);
    assert_eq!(change(text, Some(2), Status::InProgress, &hand(0, 0)), Err(PlanRefusal::Waits(2, 1)));
    let (text, first) = change(text, None, Status::InProgress, &hand(0, 0)).unwrap();
    let (text, other) = change(&text, None, Status::InProgress, &hand(1, 0)).unwrap();
    assert_eq!((first, other), (1, 4), "the others wait for the first; a comment behind the words is no part of them");
    assert_eq!(change(&text, Some(3), Status::InProgress, &hand(2, 0)), Err(PlanRefusal::Waits(3, 1)));
    let (text, _) = change(&text, None, Status::Done, &hand(0, 0)).unwrap();
    let (text, next) = change(&text, None, Status::InProgress, &hand(0, 0)).unwrap();
    assert_eq!(next, 2);
    assert!(text.contains("- [~] two (after 1) <!-- builder "), "{text}");
    // A step that failed frees nobody, and one that does not exist keeps nobody.
    let failed =
        change("- [!] one\n- [ ] two (after 1)\n- [ ] three (after 7)\n", None, Status::InProgress, &hand(0, 0));
    assert_eq!(failed.unwrap().1, 3);
    // An agent with a plan of its own keeps its order by itself.
    let alone = StepEditor { lease: None, ..hand(0, 0) };
    assert_eq!(change("- [ ] one\n- [ ] two (after 1)\n", Some(2), Status::InProgress, &alone).unwrap().1, 2);
}

/// The next act of an agent.
#[derive(Clone, Debug)]
enum Act {
    Claim,
    ClaimThis(u32),
    Finish,
    Fail,
    Die,
    Wait,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Claim),
        2 => (1..=5_u32).prop_map(Act::ClaimThis),
        3 => Just(Act::Finish),
        1 => Just(Act::Fail),
        1 => Just(Act::Die),
        1 => Just(Act::Wait),
    ]
}

proptest! {
    #[test]
    fn each_step_is_claimed_by_one_live_agent_at_most_and_ends_once(
        acts in proptest::collection::vec((0..4_u8, act()), 0..120),
        stale in proptest::collection::vec(any::<bool>(), 120),
    ) {
        let (mut text, mut now, mut dead) = (PLAN.to_owned(), 0, [false; 4]);
        // The version that each agent read last: a write that builds on it happens only if nobody wrote since.
        let mut read = vec![text.clone(); 4];
        let mut ended: Vec<(u32, u8)> = Vec::new();
        let mut working: [Option<(u32, i64)>; 4] = [None; 4];
        for ((agent, act), stale) in acts.into_iter().zip(stale) {
            let at = usize::from(agent);
            if dead[at] {
                continue;
            }
            if !stale {
                read[at].clone_from(&text);
            }
            let (number, status) = match act {
                Act::Claim => (None, Status::InProgress),
                Act::ClaimThis(number) => (Some(number), Status::InProgress),
                Act::Finish => (None, Status::Done),
                Act::Fail => (None, Status::Failed),
                Act::Wait => {
                    now += 20;
                    continue;
                }
                Act::Die => {
                    dead[at] = true;
                    text = freed(&text, chat(agent)).0;
                    working[at] = None;
                    prop_assert!(!text.contains(&format!("{} until", chat(agent))), "its claims are free");
                    continue;
                }
            };
            let Ok((next, step)) = change(&read[at], number, status, &hand(agent, now)) else { continue };
            if read[at] != text {
                // The conditional write fails: the agent reads again.
                continue;
            }
            text = next;
            read[at].clone_from(&text);
            if status == Status::InProgress {
                let others = working.iter().enumerate().filter(|(other, held)| {
                    *other != at && held.is_some_and(|(held, until)| held == step && until > now)
                });
                prop_assert_eq!(others.count(), 0, "step {} is with another live agent", step);
                // An agent whose claim ran out has lost it.
                for held in &mut working {
                    *held = held.filter(|(held, _)| *held != step);
                }
                if working[at].is_none_or(|(held, _)| held == step) {
                    working[at] = Some((step, now + 60));
                }
            } else {
                ended.push((step, agent));
                working[at] = working[at].filter(|(held, _)| *held != step);
            }
        }
        let mut once: Vec<u32> = ended.iter().map(|(step, _)| *step).collect();
        once.sort_unstable();
        let count = once.len();
        once.dedup();
        prop_assert_eq!(once.len(), count, "a step ended twice: {:?}", ended);
        // Everything that did not end is named as left: pending, or with an agent that holds it.
        for (step, number) in steps(&text).iter().zip(1..) {
            prop_assert_eq!(step.status.is_end(), once.contains(&number));
            prop_assert!(step.status != Status::InProgress || step.holder.as_ref().is_some_and(|held| held.until.is_some()));
        }
        prop_assert_eq!(plan_digest(&text), plan_digest(PLAN), "no claim and no tick changes the plan");
        prop_assert_eq!(statuses(&text).len(), 4);
    }
}
