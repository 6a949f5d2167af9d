//! Marks and the gate, with a register in memory. The gate is one of the process, so these tests take turns.

use super::*;
use crate::SystemClock;
use std::{
    collections::BTreeMap,
    future::{Future, poll_fn},
    pin::pin,
    sync::mpsc::{Receiver, channel},
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

static TURNS: Mutex<()> = Mutex::new(());

#[derive(Default)]
struct Kept {
    marks: BTreeMap<usize, (String, bool)>,
    last: usize,
    known: Vec<usize>,
}

#[derive(Clone, Default)]
struct InMemory(Arc<Mutex<Kept>>);

impl InMemory {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock()
    }

    fn marks(&self) -> Vec<(String, bool)> {
        self.kept().marks.values().cloned().collect()
    }
}

impl Register for InMemory {
    fn begin(&self, mark: &Mark) -> Option<usize> {
        let mut kept = self.kept();
        kept.last += 1;
        let place = kept.last;
        kept.marks.insert(place, (format!("{} {}", mark.place, mark.id), mark.alone));
        Some(place)
    }
    fn change(&self, place: usize, mark: &Mark) {
        self.kept().marks.insert(place, (format!("{} {}", mark.place, mark.id), mark.alone));
    }
    fn beside(&self, place: usize) {
        if let Some((_, alone)) = self.kept().marks.get_mut(&place) {
            *alone = false;
        }
    }
    fn end(&self, place: usize) {
        self.kept().marks.remove(&place);
    }
    fn close(&self) {
        self.kept().marks.clear();
    }
    fn keep(&self, known: &Suspects) {
        self.kept().known.push(known.cases.len());
    }
}

fn id(name: &str) -> Id {
    Id::of(&[name.as_bytes()])
}

fn told(name: &str, alone: bool) -> Vec<(String, bool)> {
    vec![(format!("{name} {}", id(name)), alone)]
}

/// The state after the process died in these inputs: alone or beside others.
fn with(deaths: &[(&str, bool)]) -> (InMemory, Arc<Crashes>) {
    let register = InMemory::default();
    let mut known = Suspects::default().for_version("1", SystemClock.now());
    for (name, alone) in deaths {
        known.died(&[Mark { id: id(name), place: (*name).to_owned(), alone: *alone }], SystemClock.now());
    }
    let crashes = Crashes::new(Arc::new(register.clone()), Arc::new(SystemClock), known, &[], "1");
    (register, crashes)
}

struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return done;
        }
        thread::park();
    }
}

/// Computes on a thread of its own until it is told to end; it has begun when this returns.
fn computes() -> (std::sync::mpsc::Sender<()>, thread::JoinHandle<()>) {
    let (begun, begins) = channel();
    let (end, ends): (_, Receiver<()>) = channel();
    let thread = thread::spawn(move || {
        let _inside = gate::enter_waiting();
        let _ = begun.send(());
        let _ = ends.recv();
    });
    let _ = begins.recv();
    (end, thread)
}

#[test]
fn a_mark_is_there_until_an_input_came_to_its_end() -> Result<(), RefusedInput> {
    let _turn = TURNS.lock();
    let (register, crashes) = with(&[]);
    let work = crashes.work("a".into(), id("a"))?;
    let seen = register.clone();
    let mut polls = 0;
    let mut future = pin!(computing(
        work.clone(),
        poll_fn(move |_| {
            assert_eq!(seen.marks(), told("a", false));
            polls += 1;
            if polls < 2 { Poll::Pending } else { Poll::Ready(()) }
        })
    ));
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
    assert_eq!(register.marks(), told("a", false));
    assert!(future.as_mut().poll(&mut context).is_ready());
    assert_eq!(
        (register.marks(), register.kept().known.len()),
        (vec![], 0),
        "nothing was known, so nothing is written"
    );

    // A part on another thread belongs to the work, and a part that waits for a disk has a mark, too.
    let seen = register.clone();
    block_on(computing(work.clone(), async move {
        let handed = hand_on();
        let there = thread::spawn(move || handed.run(|| (seen.marks().len(), current().is_some())));
        assert_eq!(there.join().ok(), Some((1, true)));
    }));
    let seen = register.clone();
    block_on(whole(work, async move { assert_eq!(seen.marks(), told("a", false)) }));
    assert_eq!(register.marks(), []);
    Ok(())
}

#[test]
fn a_suspect_computes_alone_and_is_free_when_it_came_to_its_end() -> Result<(), RefusedInput> {
    let _turn = TURNS.lock();
    let (register, crashes) = with(&[("bad", false), ("worse", true), ("worse", true), ("worse", true)]);
    assert_eq!(crashes.work("worse".into(), id("worse")).err(), Some(RefusedInput));
    assert_eq!((crashes.refusals(), crashes.refused().len()), (1, 1));
    assert_eq!(Error::from(RefusedInput).code, Code::Quarantined);

    let work = crashes.work("bad".into(), id("bad"))?;
    let (end, other) = computes();
    let seen = register.clone();
    let mut future = pin!(computing(work.clone(), async move {
        assert_eq!(seen.marks(), told("bad", true));
        // No other computation begins meanwhile; one that asks is woken when this one is over.
        let begins = thread::spawn(|| gate::enter(Waker::noop()).is_some());
        assert_eq!(begins.join().ok(), Some(false));
        // Parts of it do, where it is handed on within this poll.
        assert!(gate::enter(Waker::noop()).is_some());
    }));
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    let mut context = Context::from_waker(&waker);
    assert!(future.as_mut().poll(&mut context).is_pending(), "somebody else computes");
    assert_eq!(register.marks(), []);
    let _ = end.send(());
    let _ = other.join();
    assert!(future.as_mut().poll(&mut context).is_ready());
    assert_eq!(crashes.standing(id("bad")), InputVerdict::Free);
    assert_eq!(register.kept().known, [] as [usize; 0], "one without evidence is forgotten without being written down");
    drop(gate::enter_waiting());
    Ok(())
}

#[test]
fn a_suspect_waits_only_so_long_for_others_to_pause() -> Result<(), RefusedInput> {
    let _turn = TURNS.lock();
    let (register, crashes) = with(&[("bad", false)]);
    let work = crashes.work("bad".into(), id("bad"))?;
    let (end, other) = computes();
    let seen = register.clone();
    block_on(computing(work, async move { assert_eq!(seen.marks(), told("bad", false), "not alone: no evidence") }));
    let _ = end.send(());
    let _ = other.join();
    Ok(())
}

#[test]
fn the_gate_stays_open_when_no_thread_can_watch_over_a_turn() {
    let _turn = TURNS.lock();
    let (end, other) = computes();
    let mut turn = gate::Turn::starting_with(|_| Err(std::io::Error::other("no more threads")));
    let asked = turn.poll(&mut Context::from_waker(Waker::noop()), || ());
    assert_eq!(asked, Poll::Ready(false), "it computes beside the others");
    assert!(gate::enter(Waker::noop()).is_some());
    let _ = end.send(());
    let _ = other.join();
}

#[test]
fn a_suspect_that_is_alone_for_too_long_gets_others_beside_it() {
    let _turn = TURNS.lock();
    let (register, crashes) = with(&[("bad", false)]);
    let seen = register.clone();
    let mut files = Files { crashes: Some(crashes.clone()), is_alone: false, place: None };
    assert_eq!(files.file(|| "good".into(), || id("good"), || seen.marks()), Ok(told("good", false)));
    assert_eq!(files.file(|| "fine".into(), || id("fine"), || seen.marks()), Ok(told("fine", false)));
    let file = files.file(
        || "bad".into(),
        || id("bad"),
        || {
            assert_eq!(seen.marks(), told("bad", true));
            // Somebody else begins when the time is up.
            let begun = thread::spawn(|| drop(gate::enter_waiting()));
            let _ = begun.join();
            assert_eq!(seen.marks(), told("bad", false));
        },
    );
    assert_eq!(file, Ok(()));
    assert_eq!(crashes.standing(id("bad")), InputVerdict::Free);
}

#[test]
fn a_request_is_the_same_one_only_with_the_same_body() -> Result<(), RefusedInput> {
    let _turn = TURNS.lock();
    let whole_id = |body: &[u8]| Id::of(&[&id("POST /a").0, body]).to_string();
    let (register, crashes) = with(&[]);
    let work = crashes.work("a".into(), id("POST /a"))?;
    let seen = register.clone();
    block_on(computing(work, async move {
        let Some(work) = current() else { panic!("it computes on something") };
        assert_eq!(work.takes_in(b"body").await, Ok(()));
        assert_eq!(seen.marks(), [(format!("a {}", whole_id(b"body")), false)]);
    }));

    let mut known = Suspects::default().for_version("1", SystemClock.now());
    let bad = Id::of(&[&id("POST /a").0, b"bad"]);
    for _ in 0..ENOUGH {
        known.died(&[Mark { id: bad, place: "a".into(), alone: true }], SystemClock.now());
    }
    let odd = Mark { id: Id::of(&[&id("POST /a").0, b"odd"]), place: "a".into(), alone: false };
    let crashes = Crashes::new(Arc::new(register.clone()), Arc::new(SystemClock), known, &[odd], "1");
    let sends = |body: &'static [u8]| {
        let (work, seen) = (crashes.work("a".into(), id("POST /a")), register.clone());
        work.map(|work| {
            block_on(computing(work.clone(), async move {
                let taken = work.takes_in(body).await;
                taken.map(|()| seen.marks().first().map(|(_, alone)| *alone))
            }))
        })
    };
    assert_eq!(sends(b"good"), Ok(Ok(Some(false))));
    assert_eq!(sends(b"bad"), Ok(Err(RefusedInput)));
    assert_eq!(sends(b"odd"), Ok(Ok(Some(true))), "alone from the moment at which it is known");
    assert_eq!(sends(b"odd"), Ok(Ok(Some(false))), "it came to its end");
    Ok(())
}
