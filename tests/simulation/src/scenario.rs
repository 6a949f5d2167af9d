//! The acts of people, as data.

use domain::{Limits, OnBusy};

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// The acts of people, in order.
    pub acts: &'static [Act],
    /// Whether every port call takes some time, so that people can come in between.
    pub slow: bool,
}

/// Something that a person does. Chats are numbered from 0.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Makes a chat with this goal.
    Create(usize, &'static str),
    /// The same with limits of this many model calls and milliseconds.
    CreateLimited(usize, &'static str, u32, u64),
    /// The same with a team that carries the plan of the chat out.
    CreateTeam(usize, &'static str),
    /// Makes a session of the planner chat with this message.
    CreateSession(usize, &'static str),
    /// Makes a chat whose turns a coding agent performs, with this goal.
    CreateThread(usize, &'static str),
    /// Posts a message.
    Post(usize, &'static str),
    /// Posts a message, with the behaviour for a running turn.
    PostOnBusy(usize, &'static str, OnBusy),
    /// Has the chat compacted.
    Compact(usize),
    /// Takes the last compaction back.
    Undo(usize),
    /// Stops the running turn.
    Stop(usize),
    /// Answers the question that is open.
    Answer(usize),
    /// Approves or declines the permission that is asked for.
    Decide(usize, bool),
    /// Deletes the chat.
    Delete(usize),
    /// Mends the cause of the model's panic.
    Heal,
    /// Resumes a paused chat; with true, the failed turn is dropped.
    Resume(usize, bool),
    /// Waits until something is so; not for ever.
    Wait(usize, Until),
    /// Lets this many milliseconds pass.
    Pass(u64),
    /// Ends the process in good order and begins another one.
    Restart,
}

/// The condition to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Nothing runs, waits or is paused, and at least this many turns have ended.
    Ended(u64),
    /// The model says something.
    Streaming,
    /// A tool runs.
    Tool,
    /// A team is at work.
    Team,
    /// Executors of a plan are at work.
    Executors,
    /// A person is asked.
    Suspended,
    /// The chat is paused.
    Paused,
}

impl Scenario {
    /// How many chats there are.
    pub fn chats(&self) -> usize {
        let made = |act: &&Act| {
            matches!(
                act,
                Act::Create(..)
                    | Act::CreateLimited(..)
                    | Act::CreateTeam(..)
                    | Act::CreateSession(..)
                    | Act::CreateThread(..)
            )
        };
        self.acts.iter().filter(made).count()
    }
}

impl Act {
    pub(crate) fn limits(steps: u32, wall_ms: u64) -> Limits {
        Limits { max_steps: steps, max_wall_ms: wall_ms, ..Limits::default() }
    }
}

use Act::{
    Answer, Compact, Create, CreateLimited, CreateSession, CreateTeam, CreateThread, Decide, Delete, Heal, Pass, Post,
    PostOnBusy, Restart, Resume, Stop, Undo, Wait,
};
use Until::{Ended, Executors, Paused, Streaming, Suspended, Team, Tool};

const fn scenario(name: &'static str, acts: &'static [Act]) -> Scenario {
    Scenario { name, acts, slow: false }
}

const fn slow(name: &'static str, acts: &'static [Act]) -> Scenario {
    Scenario { name, acts, slow: true }
}

/// Every scenario.
pub const ALL: &[Scenario] = &[
    scenario("words", &[Create(0, "hello"), Wait(0, Ended(1)), Post(0, "thanks"), Wait(0, Ended(2))]),
    scenario("files", &[Create(0, "work on files"), Wait(0, Ended(1))]),
    scenario(
        "queued",
        &[
            Create(0, "say it slowly"),
            Post(0, "one file"),
            Post(0, "and thanks"),
            Post(0, "thanks again"),
            Wait(0, Ended(4)),
        ],
    ),
    scenario(
        "compacted",
        &[
            Create(0, "work on files"),
            Post(0, "thanks"),
            Post(0, "thanks for all of the work on it"),
            Post(0, "thanks once more, for the rest of it"),
            Post(0, "thanks, and hello"),
            Post(0, "thanks, and good night"),
            Wait(0, Ended(6)),
            Compact(0),
            Post(0, "one file"),
            Wait(0, Ended(8)),
            Undo(0),
            Post(0, "thanks"),
            Wait(0, Ended(9)),
        ],
    ),
    scenario(
        "compaction_restarted",
        &[
            Create(0, "work on files"),
            Post(0, "thanks"),
            Post(0, "thanks for all of the work on it"),
            Post(0, "thanks once more, for the rest of it"),
            Post(0, "thanks, and hello"),
            Post(0, "thanks, and good night"),
            Wait(0, Ended(6)),
            Compact(0),
            Pass(200),
            Restart,
            Wait(0, Ended(7)),
            Post(0, "thanks"),
            Wait(0, Ended(8)),
        ],
    ),
    scenario(
        "compaction_stopped",
        &[
            Create(0, "work on files"),
            Post(0, "thanks"),
            Post(0, "thanks for all of the work on it"),
            Post(0, "thanks once more, for the rest of it"),
            Post(0, "thanks, and hello"),
            Post(0, "thanks, and good night"),
            Wait(0, Ended(6)),
            Compact(0),
            Pass(200),
            Stop(0),
            Post(0, "thanks"),
            Compact(0),
            Undo(0),
            Undo(0),
        ],
    ),
    scenario(
        "steer_streaming",
        &[
            Create(0, "say it slowly"),
            Wait(0, Streaming),
            PostOnBusy(0, "one file", OnBusy::Steer),
            Wait(0, Ended(1)),
            PostOnBusy(0, "thanks", OnBusy::Steer),
            Wait(0, Ended(2)),
        ],
    ),
    slow(
        "steer_tool",
        &[
            Create(0, "work on files"),
            Wait(0, Tool),
            PostOnBusy(0, "thanks", OnBusy::Steer),
            Restart,
            PostOnBusy(0, "thanks again", OnBusy::Steer),
            Wait(0, Ended(1)),
        ],
    ),
    scenario(
        "steer_question",
        &[Create(0, "ask me"), Wait(0, Suspended), PostOnBusy(0, "thanks", OnBusy::Steer), Stop(0), Wait(0, Ended(1))],
    ),
    scenario(
        "stop_streaming",
        &[Create(0, "say it slowly"), Wait(0, Streaming), Stop(0), Wait(0, Ended(1)), Post(0, "thanks")],
    ),
    slow("stop_tool", &[Create(0, "work on files"), Wait(0, Tool), Stop(0), Wait(0, Ended(1)), Post(0, "thanks")]),
    scenario("stop_queued", &[Create(0, "say it slowly"), Stop(0), Wait(0, Ended(1)), Post(0, "thanks")]),
    scenario(
        "stop_twice",
        &[
            Create(0, "say it slowly"),
            Wait(0, Streaming),
            Stop(0),
            Stop(0),
            Post(0, "say it slowly"),
            Wait(0, Ended(2)),
            Stop(0),
        ],
    ),
    scenario("ask_answered", &[Create(0, "ask me"), Wait(0, Suspended), Answer(0), Wait(0, Ended(1))]),
    scenario("ask_expired", &[Create(0, "ask me"), Wait(0, Ended(1))]),
    scenario("ask_stopped", &[Create(0, "ask me"), Wait(0, Suspended), Post(0, "thanks"), Stop(0), Wait(0, Ended(2))]),
    scenario("permission_approved", &[Create(0, "a persona"), Wait(0, Suspended), Decide(0, true), Wait(0, Ended(1))]),
    scenario("permission_declined", &[Create(0, "a persona"), Wait(0, Suspended), Decide(0, false), Wait(0, Ended(1))]),
    scenario("permission_expired", &[Create(0, "a persona"), Wait(0, Ended(1))]),
    scenario(
        "interrupt",
        &[
            Create(0, "say it slowly"),
            Wait(0, Streaming),
            PostOnBusy(0, "one file", OnBusy::Interrupt),
            Wait(0, Ended(2)),
        ],
    ),
    scenario(
        "interrupt_question",
        &[Create(0, "ask me"), Wait(0, Suspended), PostOnBusy(0, "thanks", OnBusy::Interrupt), Wait(0, Ended(2))],
    ),
    slow(
        "rollback_tool",
        &[
            Create(0, "one file"),
            Wait(0, Ended(1)),
            Post(0, "work on files"),
            Wait(0, Tool),
            PostOnBusy(0, "one file", OnBusy::Rollback),
            Wait(0, Ended(3)),
        ],
    ),
    scenario(
        "rollback_streaming",
        &[
            Create(0, "say it slowly"),
            Wait(0, Streaming),
            PostOnBusy(0, "one file", OnBusy::Rollback),
            Wait(0, Ended(2)),
        ],
    ),
    scenario(
        "rollback_question",
        &[Create(0, "ask me"), Wait(0, Suspended), PostOnBusy(0, "thanks", OnBusy::Rollback), Wait(0, Ended(2))],
    ),
    scenario("reject", &[Create(0, "say it slowly"), Wait(0, Streaming), PostOnBusy(0, "one file", OnBusy::Reject)]),
    scenario("step_limit", &[CreateLimited(0, "again and again", 2, 600_000), Wait(0, Ended(1)), Post(0, "thanks")]),
    scenario("time_limit", &[CreateLimited(0, "say it slowly", 9, 400), Wait(0, Ended(1)), Post(0, "thanks")]),
    scenario("model_error", &[Create(0, "it breaks off"), Wait(0, Ended(1)), Post(0, "thanks"), Wait(0, Ended(2))]),
    scenario("postponed", &[Create(0, "a busy provider"), Wait(0, Ended(1)), Post(0, "thanks"), Wait(0, Ended(2))]),
    scenario(
        "postponed_stopped",
        &[Create(0, "a busy provider"), Pass(5_000), Stop(0), Wait(0, Ended(1)), Post(0, "thanks")],
    ),
    scenario("restart_streaming", &[Create(0, "say it slowly"), Wait(0, Streaming), Restart, Wait(0, Ended(1))]),
    slow("restart_tool", &[Create(0, "work on files"), Wait(0, Tool), Restart, Wait(0, Ended(1))]),
    scenario(
        "idle",
        &[Create(0, "one file"), Wait(0, Ended(1)), Pass(100_000), Post(0, "thanks"), Wait(0, Ended(2)), Stop(0)],
    ),
    scenario(
        "poison_resumed",
        &[
            Create(0, "hello"),
            Wait(0, Ended(1)),
            Post(0, "poison"),
            Wait(0, Paused),
            Heal,
            Resume(0, false),
            Wait(0, Ended(2)),
            Post(0, "thanks"),
        ],
    ),
    scenario(
        "poison_dropped",
        &[Create(0, "poison"), Post(0, "one file"), Wait(0, Paused), Resume(0, true), Wait(0, Ended(2)), Heal],
    ),
    scenario("delete_streaming", &[Create(0, "for minutes"), Wait(0, Streaming), Delete(0), Post(0, "thanks")]),
    slow("delete_tool", &[Create(0, "work on files"), Wait(0, Tool), Delete(0)]),
    scenario(
        "delete_after_post",
        &[Create(0, "hello"), Wait(0, Ended(1)), Post(0, "for minutes"), Post(0, "for minutes"), Delete(0)],
    ),
    scenario("delete_asking", &[Create(0, "ask me"), Wait(0, Suspended), Post(0, "for minutes"), Delete(0)]),
    scenario(
        "delete_paused",
        &[Create(0, "poison"), Post(0, "for minutes"), Wait(0, Paused), Post(0, "thanks"), Delete(0), Heal],
    ),
    scenario("team", &[CreateTeam(0, "a campaign"), Wait(0, Ended(1))]),
    scenario(
        "team_stopped",
        &[CreateTeam(0, "a campaign"), Wait(0, Team), Pass(150), Stop(0), Post(0, "thanks"), Wait(0, Ended(2))],
    ),
    scenario(
        "session",
        &[
            CreateSession(0, "study the atlas"),
            Wait(0, Ended(1)),
            Post(0, "study the sea in vain"),
            Wait(0, Ended(2)),
            Post(0, "thanks"),
            Wait(0, Ended(3)),
        ],
    ),
    slow(
        "session_stopped",
        &[
            CreateSession(0, "study the atlas"),
            Wait(0, Executors),
            Stop(0),
            Post(0, "study the sea"),
            Wait(0, Executors),
            Restart,
            Wait(0, Ended(2)),
        ],
    ),
    scenario(
        "two_chats",
        &[
            Create(0, "say it slowly"),
            Create(1, "work on files"),
            Post(0, "one file"),
            Stop(0),
            Wait(1, Ended(1)),
            Wait(0, Ended(2)),
        ],
    ),
    scenario("agent_words", &[CreateThread(0, "hello"), Wait(0, Ended(1)), Post(0, "thanks"), Wait(0, Ended(2))]),
    scenario(
        "agent_edits",
        &[
            CreateThread(0, "edit two files"),
            Wait(0, Suspended),
            Decide(0, true),
            Wait(0, Suspended),
            Decide(0, false),
            Wait(0, Ended(1)),
            Post(0, "edit a file"),
            Wait(0, Suspended),
            Decide(0, true),
            Wait(0, Ended(2)),
        ],
    ),
    scenario(
        "agent_expired",
        &[CreateThread(0, "edit a file"), Wait(0, Ended(1)), Post(0, "thanks"), Wait(0, Ended(2))],
    ),
    scenario(
        "agent_restarted",
        &[
            CreateThread(0, "edit a file"),
            Wait(0, Suspended),
            Restart,
            Decide(0, true),
            Wait(0, Ended(1)),
            Post(0, "edit two files"),
            Wait(0, Suspended),
            Decide(0, false),
            Decide(0, true),
            Wait(0, Ended(2)),
        ],
    ),
    scenario(
        "agent_stopped",
        &[
            CreateThread(0, "edit a file"),
            Wait(0, Streaming),
            Stop(0),
            Post(0, "edit two files"),
            Wait(0, Suspended),
            PostOnBusy(0, "edit a file", OnBusy::Interrupt),
            Wait(0, Suspended),
            Decide(0, true),
            Wait(0, Ended(3)),
        ],
    ),
    scenario(
        "agent_limited",
        &[CreateThread(0, "for minutes"), Post(0, "thanks"), Pass(3_000), Stop(0), Wait(0, Ended(2))],
    ),
    scenario("agent_deleted", &[CreateThread(0, "edit a file"), Wait(0, Suspended), Post(0, "thanks"), Delete(0)]),
];

/// The scenario with this name.
pub fn named(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|scenario| scenario.name == name)
}
