//! The decisions of a schedule, without anything around it.

#![expect(clippy::unwrap_used, reason = "tests")]

use actor::{Decision, Input, Machine, OutboxMessage, Step};
use buildscale_schedule::{
    Action, MissedPolicy, OverlapPolicy, ScheduleCommand, ScheduleConfig, ScheduleMachine, ScheduleReport,
    ScheduleState, ScheduleStatus, ScheduleView, StartedWork, Times,
};
use domain::{ChatId, Code, CommandId, Error, Mode, Principal, Stamp, Timestamp, UserId, WorkspaceId};
use uuid::Uuid;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A schedule of 8 o'clock every day in UTC, made on 24 November 2026 at noon.
struct Play {
    state: ScheduleState,
    next: u64,
    stamps: u128,
    /// Runs that were asked for.
    runs: Vec<Uuid>,
    /// The work that has to be done before the last of them.
    after: Option<StartedWork>,
    /// Ticks that the queue holds back.
    ticks: Vec<(Timestamp, ScheduleCommand)>,
    /// Commands that the queue brings behind the present one.
    behind: Vec<ScheduleCommand>,
}

impl Play {
    fn new(missed: MissedPolicy) -> Self {
        let now = at("2026-11-24T12:00:00Z");
        let (state, runs, ticks, behind) = (ScheduleState::default(), Vec::new(), Vec::new(), Vec::new());
        let mut play = Self { state, next: 1, stamps: 0, runs, after: None, ticks, behind };
        let (goal, mode) = ("Write the brief".into(), Mode::Chat);
        let action = Action::Chat { goal, role: None, model: None, mode, scenario: None, limits: None };
        let config = Box::new(ScheduleConfig {
            workspace: WorkspaceId::from_key("t", "w"),
            schedule: Uuid::from_u128(7),
            user: UserId::from_key("t", "u"),
            name: "Daily brief".into(),
            times: Times::rule("FREQ=DAILY", "UTC", Some("2026-11-24T08:00:00"), now).unwrap(),
            missed,
            overlap: OverlapPolicy::Begin,
            action,
            may_not_run: false,
            created_at: now,
        });
        play.command("2026-11-24T12:00:00Z", ScheduleCommand::Create { config });
        play
    }

    fn input(&mut self, now: &str, input: Input<ScheduleMachine>) {
        self.stamps += 1;
        let stamp = Stamp { at: at(now), id: Uuid::from_u128(self.stamps << 40) };
        let mut step = Step::new(std::mem::take(&mut self.state), self.next);
        ScheduleMachine.handle(&mut step, input, &stamp);
        let (state, decision): (_, Decision<ScheduleMachine>) = step.end();
        // The memory has what the log has.
        self.next += decision.events.len() as u64;
        self.state = state;
        for (_, effect) in decision.effects {
            self.runs.push(effect.run);
            self.after = effect.after;
        }
        for OutboxMessage { command, deliver_at, .. } in decision.send {
            let command = serde_json::from_value(command).unwrap();
            match deliver_at {
                Some(at) => self.ticks.push((at, command)),
                None => self.behind.push(command),
            }
        }
    }

    fn command(&mut self, now: &str, command: ScheduleCommand) {
        let id = CommandId(Uuid::from_u128(self.stamps));
        self.input(now, Input::Command { id, by: Principal::System, at: at(now), command });
    }

    /// The queue delivers the last tick that it holds back.
    fn tick(&mut self, now: &str) {
        let (due, tick) = self.ticks.last().cloned().unwrap();
        assert!(due <= at(now), "not before it is due");
        self.command(now, tick);
    }

    fn report(&mut self, now: &str, outcome: Result<StartedWork, Error>) {
        let run = *self.runs.last().unwrap();
        self.input(now, Input::Report(ScheduleReport { run, outcome }));
    }

    fn began(&mut self, now: &str) {
        let chat = ChatId(*self.runs.last().unwrap());
        self.report(now, Ok(StartedWork::ChatId(chat)));
    }

    fn view(&self) -> ScheduleView {
        ScheduleView::of(&self.state).unwrap()
    }
}

#[test]
fn a_schedule_starts_no_flows_for_work_that_was_set_up_without_that_right() {
    let mut play = Play::new(MissedPolicy::RunOnce);
    let mut config = play.state.config.clone().unwrap();
    let mut change = |play: &mut Play, change: &dyn Fn(&mut ScheduleConfig)| {
        change(&mut config);
        play.command("2026-11-24T12:01:00Z", ScheduleCommand::Change { config: Box::new(config.clone()) });
        play.state.config.as_ref().unwrap().may_not_run
    };
    assert!(change(&mut play, &|config| config.may_not_run = true));
    let renamed = |config: &mut ScheduleConfig| (config.name, config.may_not_run) = ("Another".into(), false);
    assert!(change(&mut play, &renamed), "the work is the same");
    assert!(!change(&mut play, &|config| config.action = Action::DailyBrief { model: None }));
}

#[test]
fn a_schedule_runs_at_its_time_and_waits_for_the_next_one() {
    let mut play = Play::new(MissedPolicy::RunOnce);
    assert_eq!(play.view().next_at, Some(at("2026-11-25T08:00:00Z")));
    assert!(play.runs.is_empty(), "nothing runs before it is due");
    play.tick("2026-11-25T08:00:01Z");
    assert!(ScheduleMachine::in_flight(&play.state));
    play.began("2026-11-25T08:00:02Z");
    let view = play.view();
    assert_eq!((view.runs, view.skipped, view.next_at), (1, 0, Some(at("2026-11-26T08:00:00Z"))));
    assert_eq!(view.last_run.unwrap().began, Some(StartedWork::ChatId(ChatId(play.runs[0]))));
    // The same tick again, as a queue may deliver it.
    let first = play.ticks[0].1.clone();
    play.command("2026-11-25T08:00:03Z", first);
    assert_eq!(play.runs.len(), 1);
}

#[test]
fn after_the_clock_was_set_back_a_schedule_runs_at_its_next_time_by_the_new_one() {
    let mut play = Play::new(MissedPolicy::RunOnce);
    play.tick("2026-12-24T08:00:00Z");
    play.began("2026-12-24T08:00:01Z");
    let (due, tick) = play.ticks.last().cloned().unwrap();
    assert_eq!(due, at("2026-12-25T08:00:00Z"));
    // The queue does not keep it back for a month.
    play.command("2026-11-27T12:00:00Z", tick);
    assert_eq!((play.runs.len(), play.view().next_at), (1, Some(at("2026-11-28T08:00:00Z"))));
    play.tick("2026-11-28T08:00:00Z");
    assert_eq!(play.runs.len(), 2);
}

#[test]
fn times_that_passed_while_the_hub_was_off_run_once_or_not_at_all() {
    let mut play = Play::new(MissedPolicy::RunOnce);
    play.tick("2026-11-28T12:00:00Z");
    play.began("2026-11-28T12:00:00Z");
    let view = play.view();
    assert_eq!((view.runs, view.skipped, view.next_at), (1, 3, Some(at("2026-11-29T08:00:00Z"))));

    let mut play = Play::new(MissedPolicy::Skip);
    play.tick("2026-11-28T12:00:00Z");
    let view = play.view();
    assert_eq!((view.runs, view.skipped, view.next_at), (0, 4, Some(at("2026-11-29T08:00:00Z"))));
    play.tick("2026-11-29T08:04:00Z");
    play.began("2026-11-29T08:04:00Z");
    assert_eq!(play.view().runs, 1, "a few minutes are not missed");
}

#[test]
fn a_schedule_that_skips_overlaps_waits_for_the_last_work_that_began_and_a_person_does_not() {
    let mut play = Play::new(MissedPolicy::RunOnce);
    play.tick("2026-11-25T08:00:00Z");
    play.began("2026-11-25T08:00:01Z");
    let first = Some(StartedWork::ChatId(ChatId(play.runs[0])));
    play.tick("2026-11-26T08:00:00Z");
    assert_eq!(play.after, None, "runs begin beside each other where nothing else is said");
    play.report("2026-11-26T08:00:01Z", Err(Error::new(Code::Internal, "the store is away")));

    let mut config = play.state.config.clone().unwrap();
    config.overlap = OverlapPolicy::Skip;
    play.command("2026-11-26T09:00:00Z", ScheduleCommand::Change { config: Box::new(config) });
    // The first work may take days: no run that began nothing takes its place.
    for day in ["2026-11-27", "2026-11-28"] {
        play.tick(&format!("{day}T08:00:00Z"));
        assert_eq!(play.after, first, "{day}");
        play.report(&format!("{day}T08:00:01Z"), Err(Error::new(Code::Conflict, "it is not done")));
    }
    play.command("2026-11-28T09:00:00Z", ScheduleCommand::RunNow { run: Uuid::from_u128(99) });
    assert_eq!(play.after, None);
    assert_eq!((play.runs.len(), play.view().runs, play.view().status), (5, 1, ScheduleStatus::Active));
}

#[test]
fn a_paused_schedule_runs_nothing_and_goes_on_with_its_next_time() {
    let mut play = Play::new(MissedPolicy::RunOnce);
    play.command("2026-11-24T13:00:00Z", ScheduleCommand::Pause);
    assert_eq!((play.view().status, play.view().next_at), (ScheduleStatus::Paused, None));
    play.tick("2026-11-25T08:00:00Z");
    assert!(play.runs.is_empty());
    play.command("2026-11-27T09:00:00Z", ScheduleCommand::Resume);
    assert_eq!(play.view().next_at, Some(at("2026-11-28T08:00:00Z")));
    play.tick("2026-11-28T08:00:00Z");
    assert_eq!(play.runs.len(), 1);
}

#[test]
fn a_change_of_times_makes_old_ticks_void() {
    let mut play = Play::new(MissedPolicy::RunOnce);
    let old = play.ticks[0].1.clone();
    let mut config = play.state.config.clone().unwrap();
    config.times = Times::rule("FREQ=DAILY", "UTC", Some("2026-11-24T20:00:00"), at("2026-11-24T12:00:00Z")).unwrap();
    play.command("2026-11-24T12:30:00Z", ScheduleCommand::Change { config: Box::new(config) });
    assert_eq!(play.view().next_at, Some(at("2026-11-24T20:00:00Z")));
    play.command("2026-11-25T08:00:00Z", old);
    assert!(play.runs.is_empty());
}

#[test]
fn a_time_that_comes_before_a_busy_worker_takes_the_schedule_in_is_not_lost() {
    let mut play = Play::new(MissedPolicy::Skip);
    let (accepted, late) = ("2026-11-24T12:00:02Z", "2026-11-24T12:00:09Z");
    let mut config = play.state.config.clone().unwrap();
    config.times = Times::once(at("2026-11-24T12:00:05Z"), at(accepted)).unwrap();
    let command = ScheduleCommand::Change { config: Box::new(config) };
    let id = CommandId(Uuid::from_u128(5));
    play.input(late, Input::Command { id, by: Principal::System, at: at(accepted), command });
    play.tick(late);
    assert_eq!(play.runs.len(), 1);
}

#[test]
fn a_run_that_a_person_asks_for_changes_no_time() {
    let mut play = Play::new(MissedPolicy::RunOnce);
    let run = Uuid::from_u128(99);
    play.command("2026-11-24T13:00:00Z", ScheduleCommand::RunNow { run });
    play.began("2026-11-24T13:00:00Z");
    play.command("2026-11-24T13:00:01Z", ScheduleCommand::RunNow { run });
    assert_eq!((play.runs.as_slice(), play.view().next_at), ([run].as_slice(), Some(at("2026-11-25T08:00:00Z"))));
}

#[test]
fn a_person_without_the_right_pauses_their_schedule_and_other_failures_do_not() {
    let mut play = Play::new(MissedPolicy::RunOnce);
    play.tick("2026-11-25T08:00:00Z");
    play.report("2026-11-25T08:00:01Z", Err(Error::not_found("flow", "brief")));
    let view = play.view();
    assert_eq!((view.status, view.last_run.unwrap().error.unwrap().code), (ScheduleStatus::Active, Code::NotFound));
    play.tick("2026-11-26T08:00:00Z");
    play.report("2026-11-26T08:00:01Z", Err(Error::new(Code::Forbidden, "they are no member")));
    let view = play.view();
    assert_eq!((view.status, view.paused_because.unwrap().code), (ScheduleStatus::Paused, Code::Forbidden));
}

#[test]
fn a_run_goes_on_under_its_id_after_a_crash() {
    let mut play = Play::new(MissedPolicy::RunOnce);
    play.tick("2026-11-25T08:00:00Z");
    play.input("2026-11-25T08:00:09Z", Input::Resume);
    play.input("2026-11-25T08:00:10Z", Input::Resume);
    assert_eq!(play.runs.iter().collect::<std::collections::BTreeSet<_>>().len(), 1);
    assert_eq!((play.runs.len(), play.state.attempt), (3, 3));
    play.began("2026-11-25T08:00:11Z");
    assert_eq!((play.view().runs, play.state.beginning), (1, None));
}

/// A worker that was lost with the beginning of a run begins it again, and then takes the next message in, before the run has reported.
#[test]
fn a_run_that_is_asked_for_while_another_one_begins_takes_nothing_from_it() {
    let asked = Uuid::from_u128(99);
    let mut play = Play::new(MissedPolicy::RunOnce);
    play.tick("2026-11-25T08:00:00Z");
    play.input("2026-11-25T08:00:09Z", Input::Resume);
    play.command("2026-11-25T08:00:09Z", ScheduleCommand::RunNow { run: asked });
    assert_eq!(play.runs, [play.runs[0]; 2], "the second run begins behind the first one");
    play.began("2026-11-25T08:00:10Z");
    let view = play.view();
    assert_eq!((view.runs, view.last_run.unwrap().began), (1, Some(StartedWork::ChatId(ChatId(play.runs[0])))));
    let again = play.behind.pop().unwrap();
    play.command("2026-11-25T08:00:11Z", again);
    play.began("2026-11-25T08:00:12Z");
    assert_eq!((play.view().runs, play.view().last_run.unwrap().run), (2, asked));

    // The same of a time that is due while a person's run begins.
    let mut play = Play::new(MissedPolicy::RunOnce);
    play.command("2026-11-25T07:59:59Z", ScheduleCommand::RunNow { run: asked });
    play.input("2026-11-25T08:00:00Z", Input::Resume);
    play.tick("2026-11-25T08:00:00Z");
    assert_eq!(play.runs, [asked; 2]);
    play.began("2026-11-25T08:00:01Z");
    let again = play.behind.pop().unwrap();
    play.command("2026-11-25T08:00:02Z", again.clone());
    play.began("2026-11-25T08:00:03Z");
    let view = play.view();
    assert_eq!((view.runs, view.next_at), (2, Some(at("2026-11-26T08:00:00Z"))));
    assert!(play.behind.is_empty());
    play.command("2026-11-25T08:00:04Z", again);
    assert_eq!(play.runs.len(), 3, "a time runs once");
}

#[test]
fn a_removed_schedule_is_on_no_list_and_runs_nothing() {
    let mut play = Play::new(MissedPolicy::RunOnce);
    play.command("2026-11-24T13:00:00Z", ScheduleCommand::Delete);
    assert_eq!(ScheduleView::of(&play.state), None);
    assert_eq!(ScheduleMachine::view(&play.state).unwrap().body, None);
    play.tick("2026-11-25T08:00:00Z");
    play.command("2026-11-25T08:00:00Z", ScheduleCommand::RunNow { run: Uuid::from_u128(1) });
    assert!(play.runs.is_empty());
}
