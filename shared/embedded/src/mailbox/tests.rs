use super::*;

const TODAY: Timestamp = Timestamp::from_millis(1_000_000);
const VISIBLE: Duration = Duration::from_secs(30);

fn arrival(seq: i64, group: &str) -> Arrival {
    Arrival { seq, group: group.into(), deliver_at: None, priority: 0, attempts: 0, content: None }
}

fn take(mailbox: &mut Mailbox, now: Instant) -> TakenMessage {
    let mut taken = mailbox.take(now, VISIBLE, 1);
    assert_eq!(taken.len(), 1);
    taken.remove(0)
}

fn seqs(taken: &[TakenMessage]) -> Vec<i64> {
    taken.iter().map(|taken| taken.seq).collect()
}

#[test]
fn a_message_that_falls_due_does_not_overtake_one_that_was_delivered() {
    let (mut mailbox, now) = (Mailbox::new(5, 1_000), Instant::now());
    let later = Arrival { deliver_at: Some(TODAY + VISIBLE), ..arrival(1, "a") };
    mailbox.arrive(vec![later, arrival(2, "a")], TODAY);
    assert_eq!(take(&mut mailbox, now).seq, 2);
    mailbox.advance(now + VISIBLE, TODAY + VISIBLE);
    let again = take(&mut mailbox, now + VISIBLE);
    assert_eq!((again.seq, again.attempt), (2, 2));
    assert!(mailbox.settle("a", &[again.number]));
    assert_eq!(take(&mut mailbox, now + VISIBLE).seq, 1);
}

#[test]
fn a_message_waits_no_longer_than_its_own_delay_after_the_clock_was_set_back_and_no_other_comes_early() {
    let (mut mailbox, now) = (Mailbox::new(5, 1_000), Instant::now());
    let (seconds, day) = (Duration::from_secs, Duration::from_secs(24 * 3600));
    let at = |deliver_at, seq, group| Arrival { deliver_at: Some(deliver_at), ..arrival(seq, group) };
    mailbox.arrive(vec![at(TODAY + seconds(60), 1, "a"), at(TODAY + 3 * day, 2, "b")], TODAY);
    mailbox.advance(now + seconds(20), TODAY + seconds(20));
    let behind = TODAY + seconds(20) - day;
    mailbox.advance(now + seconds(20), behind);
    assert_eq!(mailbox.quiet_for(now + seconds(20), behind), Some(seconds(40)));
    // One of since then waits for its date.
    mailbox.arrive(vec![at(behind + seconds(10), 3, "c")], behind);
    mailbox.advance(now + seconds(29), behind + seconds(9));
    assert_eq!(mailbox.take(now, VISIBLE, 1), []);
    mailbox.advance(now + seconds(30), behind + seconds(10));
    let third = take(&mut mailbox, now);
    assert!(third.seq == 3 && mailbox.settle("c", &[third.number]));
    mailbox.advance(now + seconds(60), behind + seconds(40));
    let first = take(&mut mailbox, now);
    assert!(first.seq == 1 && mailbox.settle("a", &[first.number]));
    // The clock is right again, and a date is a date.
    mailbox.advance(now + seconds(61), TODAY + seconds(61));
    assert_eq!(mailbox.take(now, VISIBLE, 1), []);
    mailbox.advance(now + seconds(62), TODAY + 3 * day);
    assert_eq!(take(&mut mailbox, now).seq, 2);
}

#[test]
fn nothing_is_left_of_a_group_whose_messages_are_settled() {
    let (mut mailbox, now) = (Mailbox::new(5, 1_000), Instant::now());
    mailbox.arrive(vec![arrival(1, "a"), arrival(2, "a")], TODAY);
    assert_eq!(mailbox.waiting("a"), 2);
    let taken = mailbox.take(now, VISIBLE, 9);
    let numbers: Vec<u64> = taken.iter().map(|taken| taken.number).collect();
    assert_eq!((mailbox.counts(), mailbox.waiting("a")), ((0, 2), 0));
    assert!(mailbox.settle("a", &numbers));
    assert!(!mailbox.settle("a", &numbers), "a receipt settles once");
    assert!(mailbox.groups.is_empty() && mailbox.timers.is_empty() && mailbox.lanes.is_empty());
    assert_eq!(mailbox.quiet_for(now, TODAY), None);
}

#[test]
fn used_up_attempts_of_an_earlier_process_count() {
    let mut mailbox = Mailbox::new(5, 1_000);
    mailbox.arrive(vec![Arrival { attempts: 5, ..arrival(1, "a") }], TODAY);
    assert_eq!(mailbox.lazy, [(1, DeferredWrite::Dead { attempts: 5, at: TODAY })]);
    assert_eq!(mailbox.take(Instant::now(), VISIBLE, 1), []);
}

#[test]
fn a_batch_comes_apart_at_what_failed_and_only_that_is_counted() {
    let (mut mailbox, now) = (Mailbox::new(5, 1_000), Instant::now());
    mailbox.arrive((1..=5).map(|seq| arrival(seq, "a")).collect(), TODAY);
    let batch = mailbox.take(now, VISIBLE, 4);
    assert_eq!(seqs(&batch), [1, 2, 3, 4]);
    assert!(mailbox.settle("a", &[batch[0].number]));
    assert!(mailbox.reject("a", &[batch[1].number], now, Duration::ZERO, TODAY));
    assert!(!mailbox.settle("a", &[batch[3].number]), "messages behind it were given back, too");
    // The second one had not been the first of a batch before, and now is one of an attempt.
    let again = mailbox.take(now, VISIBLE, 2);
    assert_eq!(again.iter().map(|taken| (taken.seq, taken.attempt)).collect::<Vec<_>>(), [(2, 1), (3, 1)]);
    mailbox.advance(now + VISIBLE, TODAY);
    let alone = mailbox.take(now + VISIBLE, VISIBLE, 9);
    assert_eq!(alone.iter().map(|taken| (taken.seq, taken.attempt)).collect::<Vec<_>>(), [(2, 2)]);
    assert!(mailbox.settle("a", &[alone[0].number]));
    assert_eq!(seqs(&mailbox.take(now + VISIBLE, VISIBLE, 9)), [3, 4, 5]);
}

#[test]
fn a_group_in_flight_has_a_place_of_its_own_for_the_counted_message_of_its_batch() {
    let (mut mailbox, now) = (Mailbox::new(5, 1_000), Instant::now());
    mailbox.arrive(vec![arrival(1, "a"), arrival(2, "a")], TODAY);
    let places = |taken: &[TakenMessage]| taken.iter().map(|taken| taken.place).collect::<Vec<_>>();
    let batch = mailbox.take(now, VISIBLE, 9);
    assert_eq!(places(&batch), [Some(0), None]);
    mailbox.arrive(vec![arrival(3, "b")], TODAY);
    assert_eq!(take(&mut mailbox, now).place, Some(1));
    assert!(mailbox.settle("a", &[batch[0].number]));
    mailbox.arrive(vec![arrival(4, "c")], TODAY);
    let third = take(&mut mailbox, now);
    assert_eq!(third.place, Some(2), "a part of the batch is still in flight");
    assert!(mailbox.reject("c", &[third.number], now, Duration::ZERO, TODAY));
    assert!(mailbox.settle("a", &[batch[1].number]));
    mailbox.arrive(vec![arrival(5, "d")], TODAY);
    let mut again = [take(&mut mailbox, now).place, take(&mut mailbox, now).place];
    again.sort_unstable();
    assert_eq!(again, [Some(0), Some(2)]);
}

#[test]
fn a_tenant_never_takes_the_last_place() {
    let (mut mailbox, now) = (Mailbox::new(5, 9), Instant::now());
    mailbox.arrive((1..=20).map(|n| arrival(n, &format!("chat/big/{n}"))).collect(), TODAY);
    let first: Vec<TakenMessage> = std::iter::from_fn(|| mailbox.take(now, VISIBLE, 1).pop()).collect();
    assert_eq!(first.len(), 5, "as many as places are free, one tenant alone");
    mailbox.arrive((21..=40).map(|n| arrival(n, &format!("task/small/{n}"))).collect(), TODAY);
    let others: Vec<TakenMessage> = std::iter::from_fn(|| mailbox.take(now, VISIBLE, 1).pop()).collect();
    assert_eq!(others.len(), 2, "another tenant begins at once");
    assert!(others.iter().all(|taken| taken.group.starts_with("task/small/")));
    // A place that becomes free goes to the tenant with fewer in flight.
    assert!(mailbox.settle(&first[0].group, &[first[0].number]));
    assert!(take(&mut mailbox, now).group.starts_with("task/small/"));
    assert_eq!(mailbox.take(now, VISIBLE, 1), []);
    // Something urgent goes at once.
    mailbox.arrive(vec![Arrival { priority: URGENT, ..arrival(41, "chat/big/41") }], TODAY);
    assert_eq!(take(&mut mailbox, now).seq, 41);
    // A delivery that timed out leaves its place, too.
    mailbox.advance(now + VISIBLE, TODAY);
    let again = std::iter::from_fn(|| mailbox.take(now + VISIBLE, VISIBLE, 1).pop());
    let tenants = again.fold([0, 0], |[big, small], taken| match taken.group.contains("/big/") {
        true => [big + 1, small],
        false => [big, small + 1],
    });
    assert_eq!(tenants, [3, 3], "two tenants have a third each");
}

#[test]
fn something_urgent_brings_its_group_to_the_front_and_keeps_the_order_inside() {
    let (mut mailbox, now) = (Mailbox::new(5, 1_000), Instant::now());
    let mut arrivals: Vec<_> =
        (1..=5).map(|n| Arrival { priority: 100, ..arrival(n, &format!("task/w/{n}")) }).collect();
    arrivals.push(arrival(6, "task/w/stopped"));
    mailbox.arrive(arrivals, TODAY);
    mailbox.arrive(vec![Arrival { priority: URGENT, ..arrival(7, "task/w/stopped") }], TODAY);
    assert_eq!(seqs(&mailbox.take(now, VISIBLE, 9)), [6, 7]);
    assert_eq!(take(&mut mailbox, now).seq, 1);
}

#[test]
fn while_only_urgent_groups_go_the_others_wait_untried() {
    let (mut mailbox, now) = (Mailbox::new(5, 1_000), Instant::now());
    mailbox.arrive(vec![arrival(1, "chat/w/a"), arrival(2, "chat/w/b"), arrival(3, "task/w/c")], TODAY);
    mailbox.only_urgent(true);
    assert_eq!(mailbox.take(now, VISIBLE, 9), []);
    mailbox.arrive(vec![Arrival { priority: URGENT, ..arrival(4, "chat/w/b") }], TODAY);
    assert_eq!(seqs(&mailbox.take(now, VISIBLE, 9)), [2, 4], "with the messages before it in its group");
    assert_eq!(mailbox.take(now, VISIBLE, 9), []);
    mailbox.wakes = 0;
    mailbox.only_urgent(false);
    assert_eq!(mailbox.wakes, 2, "a waiting receive looks again");
    let mut rest: Vec<_> = std::iter::from_fn(|| mailbox.take(now, VISIBLE, 1).pop()).collect();
    rest.sort_by_key(|taken| taken.seq);
    assert_eq!(rest.iter().map(|taken| (taken.seq, taken.attempt)).collect::<Vec<_>>(), [(1, 1), (3, 1)]);
}

#[test]
fn a_long_wait_makes_up_for_a_low_priority() {
    let (mut mailbox, now) = (Mailbox::new(5, 1_000), Instant::now());
    mailbox.arrive(vec![Arrival { priority: -100, ..arrival(1, "task/w/old") }], TODAY);
    let later = TODAY + Duration::from_secs(1_999);
    mailbox.arrive(vec![Arrival { priority: 100, ..arrival(2, "task/w/high") }], later);
    mailbox.arrive(vec![Arrival { priority: 100, ..arrival(3, "task/w/late") }], later + Duration::from_secs(2));
    let order: Vec<i64> = std::iter::from_fn(|| mailbox.take(now, VISIBLE, 9).first().map(|taken| taken.seq)).collect();
    assert_eq!(order, [2, 1, 3]);
}

#[test]
fn a_clock_that_is_set_back_puts_no_later_group_before_one_that_waits() {
    let (mut mailbox, now) = (Mailbox::new(5, 1_000), Instant::now());
    mailbox.arrive(vec![arrival(1, "task/w/first")], TODAY);
    mailbox.arrive(vec![arrival(2, "task/w/second")], TODAY - Duration::from_secs(900));
    mailbox.advance(now, TODAY - Duration::from_secs(890));
    mailbox.arrive(vec![arrival(3, "task/w/third")], TODAY - Duration::from_secs(890));
    let order: Vec<i64> = std::iter::from_fn(|| mailbox.take(now, VISIBLE, 9).first().map(|taken| taken.seq)).collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn what_was_given_back_rests_also_when_those_before_it_are_settled_later() {
    let (mut mailbox, now) = (Mailbox::new(5, 1_000), Instant::now());
    mailbox.arrive((1..=3).map(|seq| arrival(seq, "a")).collect(), TODAY);
    let batch = mailbox.take(now, VISIBLE, 3);
    let rest = Duration::from_secs(5);
    assert!(mailbox.reject("a", &[batch[1].number], now, rest, TODAY));
    mailbox.wakes = 0;
    assert!(mailbox.settle("a", &[batch[0].number]));
    assert_eq!(
        (mailbox.wakes, mailbox.quiet_for(now, TODAY)),
        (1, Some(rest)),
        "a receiver waits for less than before"
    );
    assert_eq!(mailbox.take(now, VISIBLE, 9), []);
    mailbox.advance(now + rest, TODAY);
    assert_eq!(seqs(&mailbox.take(now + rest, VISIBLE, 9)), [2, 3]);
}

#[test]
fn lanes_take_turns_and_within_one_the_priority_decides() {
    let (mut mailbox, now) = (Mailbox::new(5, 1_000), Instant::now());
    let mut arrivals: Vec<_> = (1..=9).map(|n| arrival(n, &format!("task/big/{n}"))).collect();
    arrivals.push(Arrival { priority: 3, ..arrival(10, "task/big/urgent") });
    arrivals.push(Arrival { priority: -3, ..arrival(11, "task/small/1") });
    arrivals.push(arrival(12, "chat/big/1"));
    mailbox.arrive(arrivals, TODAY);
    let order: Vec<i64> = std::iter::from_fn(|| mailbox.take(now, VISIBLE, 9).first().map(|taken| taken.seq)).collect();
    assert_eq!(order, [10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn contents_are_kept_within_a_bound_and_leave_with_the_first_delivery() {
    const BYTES: usize = MOST_KEPT / 4;
    let (mut mailbox, now) = (Mailbox::new(5, 1_000), Instant::now());
    let content = |seq: i64| MessageContent { id: seq.to_string(), body: "x".repeat(BYTES - 1) };
    let sent = |seq| Arrival { content: Some(content(seq)), ..arrival(seq, "a") };
    mailbox.arrive((1..=6).map(sent).collect(), TODAY);
    assert_eq!(mailbox.kept, MOST_KEPT);
    let contents = |taken: &[TakenMessage]| taken.iter().map(|taken| taken.content.clone()).collect::<Vec<_>>();
    let batch = mailbox.take(now, VISIBLE, 3);
    assert_eq!(contents(&batch), [Some(content(1)), Some(content(2)), Some(content(3))]);
    assert_eq!(mailbox.kept, BYTES);
    mailbox.arrive(vec![sent(7)], TODAY);
    assert!(mailbox.reject("a", &[batch[0].number], now, Duration::ZERO, TODAY));
    let again = mailbox.take(now, VISIBLE, 1);
    assert_eq!((seqs(&again), contents(&again)), (vec![1], vec![None]), "its row is read");
    assert!(mailbox.settle("a", &[again[0].number]));
    let rest = mailbox.take(now, VISIBLE, 9);
    assert_eq!(seqs(&rest), [2, 3, 4, 5, 6, 7]);
    assert_eq!(contents(&rest), [None, None, Some(content(4)), None, None, Some(content(7))]);
    assert_eq!(mailbox.kept, 0);
}
