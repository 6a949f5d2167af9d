//! Persisted shapes of schedules, as every version wrote them.

use actor::Machine as _;
use buildscale_schedule::{
    Action, MissedPolicy, OverlapPolicy, ScheduleCommand, ScheduleConfig, ScheduleEvent, ScheduleMachine,
    ScheduleState, ScheduleView, StartedWork, Times,
};
use domain::{ChatId, Code, Error, Mode, TaskId, Timestamp, UserId, WorkspaceId};
use serde_json::json;
use testkit::golden;
use uuid::Uuid;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const AT: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn config(times: Times, action: Action) -> Box<ScheduleConfig> {
    Box::new(ScheduleConfig {
        workspace: WorkspaceId(id(1)),
        schedule: id(2),
        user: UserId(id(3)),
        name: "Daily brief".into(),
        times,
        missed: MissedPolicy::Skip,
        overlap: OverlapPolicy::Begin,
        action,
        may_not_run: false,
        created_at: AT,
    })
}

fn configs() -> [Box<ScheduleConfig>; 3] {
    let rule =
        Times::Rule { rrule: "FREQ=DAILY".into(), time_zone: "Europe/Berlin".into(), begins: "20270101T080000".into() };
    let (role, model) = (Some("planner".into()), Some("openai/gpt-5-mini".into()));
    let goal = "Write it".into();
    let chat = Action::Chat { goal, role, model, mode: Mode::Plan, scenario: None, limits: None };
    let message = Action::Message { chat_id: ChatId(id(4)), content: "and now?".into() };
    let task = Action::Task { flow: "review".into(), input: json!({ "path": "/projects" }) };
    [config(rule.clone(), chat), config(Times::Once { at: AT }, message), config(rule, task)]
}

fn events() -> Vec<ScheduleEvent> {
    let [chat, message, _] = configs();
    let (run, at, next) = (id(5), AT, Some(AT));
    let error = Error::new(Code::Forbidden, "the maker is no member");
    vec![
        ScheduleEvent::Created { config: chat, next, at },
        ScheduleEvent::Due { run, due: Some(AT), next, missed: 2, at },
        ScheduleEvent::Retried { run, attempt: 2 },
        ScheduleEvent::Began { run, began: StartedWork::ChatId(ChatId(run)), at },
        ScheduleEvent::Skipped { due: AT, next, missed: 1, at },
        ScheduleEvent::Due { run: id(6), due: None, next, missed: 0, at },
        ScheduleEvent::Began { run: id(6), began: StartedWork::TaskId(TaskId(id(6))), at },
        ScheduleEvent::Due { run: id(7), due: None, next, missed: 0, at },
        ScheduleEvent::Failed { run: id(7), error: error.clone(), at },
        ScheduleEvent::Paused { error: Some(error), at },
        ScheduleEvent::Resumed { next, at },
        ScheduleEvent::Changed { config: message, next: None, at },
        ScheduleEvent::Deleted { at },
    ]
}

#[test]
fn commands_are_read_for_ever() {
    let [chat, message, task] = configs();
    let commands = vec![
        ScheduleCommand::Create { config: chat },
        ScheduleCommand::Change { config: message },
        ScheduleCommand::Change { config: task },
        ScheduleCommand::Pause,
        ScheduleCommand::Resume,
        ScheduleCommand::RunNow { run: id(5) },
        ScheduleCommand::Tick { due: AT },
        ScheduleCommand::Delete,
    ];
    golden::check(ROOT, "schedule_commands", &commands);
}

#[test]
fn an_old_log_folds_to_what_it_always_did() {
    golden::check(ROOT, "schedule_events", &events());
    let (mut state, mut states, mut views) = (ScheduleState::default(), Vec::new(), Vec::new());
    for (number, event) in (1..).zip(&events()) {
        ScheduleMachine::apply(&mut state, number, event);
        states.push(state.clone());
        views.extend(ScheduleView::of(&state));
    }
    let version = golden::check(ROOT, "schedule_states", &states);
    assert_eq!(version, ScheduleMachine::VERSION, "another fold is another version of the machine");
    golden::check(ROOT, "schedule_views", &views);
}

#[test]
fn calls_of_tools_are_read_for_ever() {
    let times = Times::Rule {
        rrule: "FREQ=MINUTELY;INTERVAL=15".into(),
        time_zone: "UTC".into(),
        begins: "20270101T080000".into(),
    };
    let args = json!({ "path": "/users/me/calendars/work.yaml" });
    let args = args.as_object().cloned().unwrap_or_default();
    let config = config(times, Action::Tool { tool: "sync_calendar".into(), args });
    let (run, next) = (id(5), Some(AT));
    let events = vec![
        ScheduleEvent::Created { config, next, at: AT },
        ScheduleEvent::Due { run, due: Some(AT), next, missed: 0, at: AT },
        ScheduleEvent::Began { run, began: StartedWork::Output("here: 1 made".into()), at: AT },
    ];
    golden::check(ROOT, "schedule_tool_events", &events);
    let mut state = ScheduleState::default();
    for (number, event) in (0..).zip(&events) {
        ScheduleMachine::apply(&mut state, number, event);
    }
    golden::check(ROOT, "schedule_tool_views", &ScheduleView::of(&state));
}

#[test]
fn daily_briefs_are_read_for_ever() {
    let brief = |model: Option<&str>| {
        let action = Action::DailyBrief { model: model.map(str::to_owned) };
        ScheduleCommand::Create { config: config(Times::Once { at: AT }, action) }
    };
    golden::check(ROOT, "schedule_brief_commands", &vec![brief(None), brief(Some("openai/gpt-5-mini"))]);
}

#[test]
fn schedules_whose_runs_do_not_overlap_are_read_for_ever() {
    let action = Action::Task { flow: "review".into(), input: json!(1) };
    let mut config = config(Times::Once { at: AT }, action);
    config.overlap = OverlapPolicy::Skip;
    golden::check(ROOT, "schedule_overlap_commands", &ScheduleCommand::Create { config });
}
