//! Whole screens, as a person sees them.

use super::{
    chat_pane::ChatPaneUpdate,
    draw::draw,
    keys::Key,
    machine::{Action, Input, Replied, Screen},
    pick::Entry,
};
use crate::{chat::changes::TurnRewind, files::ComparedFile, follow::Event};
use ratatui::{Terminal, backend::TestBackend};
use serde_json::{Map, Value, json};

const LARGE: (u16, u16) = (80, 24);
const SMALL: (u16, u16) = (40, 12);

fn screen(size: (u16, u16)) -> Screen {
    Screen::new(size, true, "demo", "gpt-5", Map::new())
}

/// The screen as text, and the place of the cursor.
fn shown(screen: &Screen) -> String {
    let mut terminal = Terminal::new(TestBackend::new(screen.size.0, screen.size.1)).expect("a screen in memory");
    terminal.draw(|frame| draw(screen, frame)).expect("it is drawn");
    let buffer = terminal.backend().buffer().clone();
    let mut text = String::new();
    for y in 0..screen.size.1 {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..screen.size.0 {
            let symbol = buffer[(x, y)].symbol();
            if skip > 0 {
                skip -= 1;
                continue;
            }
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let cursor = terminal.backend_mut().cursor_position();
    text + &format!("cursor: {},{}", cursor.x, cursor.y)
}

fn press(screen: &mut Screen, keys: &str) -> Vec<Action> {
    let mut actions = Vec::new();
    for c in keys.chars() {
        let key = match c {
            '⏎' => Key::Enter,
            '↓' => Key::Down,
            '↑' => Key::Up,
            '⇥' => Key::Tab,
            '⎋' => Key::Esc,
            '¶' => Key::NewLine,
            c => Key::Char(c),
        };
        actions.extend(screen.on(Input::Key(key)));
    }
    actions
}

fn ctrl(screen: &mut Screen, letter: char) -> Vec<Action> {
    screen.on(Input::Key(Key::Ctrl(letter)))
}

fn event(screen: &mut Screen, name: &str, data: Value) -> Vec<Action> {
    let number = screen.panes.first().and_then(|pane| pane.transcript.last).unwrap_or_default() + 1;
    let event = Event { number: Some(number), name: name.into(), data };
    screen.on(Input::PaneUpdate { key: 1, update: ChatPaneUpdate::Event(event) })
}

/// A chat whose turn has thought, edited and run something.
fn worked(size: (u16, u16)) -> Screen {
    let mut screen = screen(size);
    press(&mut screen, "Fix the parser⏎");
    screen.on(Input::Posted { key: 1, chat: "c1".into(), remarks: Vec::new() });
    screen.on(Input::PaneUpdate { key: 1, update: ChatPaneUpdate::Ready });
    for (name, data) in [
        ("message", json!({ "message_id": "m1", "role": "user", "content": "Fix the parser" })),
        ("turn_started", json!({ "turn_id": "t1", "attempt": 1 })),
        ("thought", json!({ "message_id": "m2", "text": "The test fails.\nSo the " })),
        ("thought", json!({ "message_id": "m2", "text": "lexer is wrong." })),
        ("chunk", json!({ "message_id": "m2", "text": "I look at **the le" })),
        ("chunk", json!({ "message_id": "m2", "text": "xer** first." })),
        ("message", json!({ "message_id": "m2", "role": "assistant", "content": "I look at **the lexer** first." })),
        ("plan_step", json!({ "step": 1, "status": "done", "title": "Find the cause", "done": 1, "total": 3 })),
        ("plan_step", json!({ "step": 2, "status": "in_progress", "title": "Repair it", "done": 1, "total": 3 })),
        (
            "call",
            json!({ "call_id": "k1", "tool": "edit", "path": "/projects/lexer.rs", "args": { "path": "/projects/lexer.rs" } }),
        ),
        (
            "observation",
            json!({ "call_id": "k1", "tool": "edit", "success": true,
                "output": "edited /projects/lexer.rs v2, hash 00ff\n-    skip(1);\n+    skip(2);\n" }),
        ),
        ("call", json!({ "call_id": "k2", "tool": "exec", "args": { "command": "cargo test" } })),
    ] {
        event(&mut screen, name, data);
    }
    screen
}

fn finished(size: (u16, u16)) -> Screen {
    let mut screen = worked(size);
    for (name, data) in [
        (
            "observation",
            json!({ "call_id": "k2", "tool": "exec", "success": false, "output": "error: 1 test failed\nlexer::skips\n[exit code 101]" }),
        ),
        (
            "message",
            json!({ "message_id": "m3", "role": "assistant", "content": "One test is left:\n\n- `skips` wants **two** blanks\n- the rest passes\n\n```rust\nskip(2);\n```" }),
        ),
        (
            "usage",
            json!({ "input_tokens": 1200, "output_tokens": 80, "cost_usd": 0.01, "context_used": 1280, "context_limit": 12800 }),
        ),
        ("done", json!({ "turn_id": "t1", "stop_reason": "end_turn", "message": "" })),
    ] {
        event(&mut screen, name, data);
    }
    screen.on(Input::Viewed { key: 1, view: json!({ "title": "Fix the parser", "mode": "chat", "status": "idle" }) });
    screen
}

#[test]
fn the_first_screen() {
    insta::assert_snapshot!("first_large", shown(&screen(LARGE)));
    insta::assert_snapshot!("first_small", shown(&screen(SMALL)));
}

#[test]
fn a_turn_that_works() {
    insta::assert_snapshot!("working_large", shown(&worked(LARGE)));
    insta::assert_snapshot!("working_small", shown(&worked(SMALL)));
}

#[test]
fn a_command_that_runs_shows_the_end_of_its_output() {
    let mut screen = worked(LARGE);
    let told = |text: &str| {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        json!({ "call_id": "k2", "update": { "sessionUpdate": "tool_call_update", "toolCallId": "k2", "content": content } })
    };
    event(&mut screen, "agent_update", told("Compiling lexer\n"));
    assert!(shown(&screen).contains("    Compiling lexer\n"));
    let lines: String = (1..=9).map(|number| format!("test number {number} passed\n")).collect();
    event(&mut screen, "agent_update", told(&lines));
    let after = shown(&screen);
    assert!(after.contains("    test number 5 passed\n") && after.contains("number 9 passed\n"), "{after}");
    assert!(!after.contains("number 4") && !after.contains("Compiling"), "{after}");
    event(&mut screen, "observation", json!({ "call_id": "k2", "tool": "exec", "success": true, "output": "done" }));
    let after = shown(&screen);
    assert!(after.contains("└ done") && !after.contains("number 9"), "{after}");
}

#[test]
fn a_turn_that_is_done_folded_and_unfolded() {
    let mut screen = finished(LARGE);
    insta::assert_snapshot!("done_large", shown(&screen));
    ctrl(&mut screen, 't');
    ctrl(&mut screen, 'o');
    ctrl(&mut screen, 'g');
    screen.on(Input::Key(Key::PageUp));
    insta::assert_snapshot!("unfolded_large", shown(&screen));
    insta::assert_snapshot!("done_small", shown(&finished(SMALL)));
}

fn permission() -> Value {
    json!({ "permission_id": "p1", "call_id": "k3", "category": "command", "tool": "exec",
        "args": { "command": "cargo test\nrm -rf build" }, "reason": "commands are asked about",
        "always": { "kind": "command_prefix", "words": ["cargo", "test"] } })
}

#[test]
fn a_permission_is_denied_with_a_reason() {
    for (size, name) in [(LARGE, "permission_large"), (SMALL, "permission_small")] {
        let mut screen = worked(size);
        event(&mut screen, "permission_required", permission());
        press(&mut screen, "not the build");
        insta::assert_snapshot!(name, shown(&screen));
        let actions = press(&mut screen, "⏎");
        let body = json!({ "outcome": "declined", "reason": "not the build" });
        let path = ["permissions".to_owned(), "p1".to_owned()];
        assert_eq!(actions, [Action::Reply { key: 1, chat: "c1".into(), ask: "p1".into(), path, body }]);
        // Twice is once.
        assert_eq!(press(&mut screen, "⏎"), []);
        screen.on(Input::Replied { key: 1, ask: "p1".into(), how: Replied::Taken });
        assert!(!shown(&screen).contains("Allow once"));
    }
}

#[test]
fn a_person_who_writes_answers_nothing_by_accident() {
    let mut screen = worked(LARGE);
    press(&mut screen, "a dra");
    event(&mut screen, "permission_required", permission());
    let actions = press(&mut screen, "ft⏎");
    assert!(
        matches!(actions.as_slice(), [Action::Post { content, busy: true, .. }, _] if content == "a draft"),
        "{actions:?}"
    );
    // Tab goes to the form.
    let actions = press(&mut screen, "⇥↓⏎");
    assert!(matches!(actions.as_slice(), [Action::Reply { body, .. }] if body["always"] == true), "{actions:?}");
}

#[test]
fn a_question_is_a_form() {
    for (size, name) in [(LARGE, "question_large"), (SMALL, "question_small")] {
        let mut screen = worked(size);
        event(&mut screen, "call", json!({ "call_id": "k3", "tool": "ask_user", "args": {} }));
        let questions = json!([
            { "name": "store", "question": "Which store shall the parser keep its tables in?", "schema": { "type": "string" },
                "buttons": ["SQLite", "Postgres"] },
            { "name": "parts", "question": "Which parts?", "schema": { "type": "array", "items": { "enum": ["lexer", "parser"] } } },
        ]);
        event(&mut screen, "question", json!({ "question_id": "q1", "call_id": "k3", "questions": questions }));
        press(&mut screen, "↓");
        insta::assert_snapshot!(name, shown(&screen));
        assert_eq!(press(&mut screen, "⏎"), []);
        let actions = press(&mut screen, "↓ ⏎");
        let body = json!({ "answers": { "store": "Postgres", "parts": ["parser"] } });
        assert!(matches!(actions.as_slice(), [Action::Reply { body: told, .. }] if *told == body), "{actions:?}");
        // The hub wants another answer: it is asked again, with the reason.
        screen.on(Input::Replied { key: 1, ask: "q1".into(), how: Replied::Wrong("too few parts".into()) });
        assert!(shown(&screen).contains("! too few parts") && shown(&screen).contains("2. Postgres"));
        // Answered elsewhere, it is gone.
        event(
            &mut screen,
            "observation",
            json!({ "call_id": "k3", "tool": "ask_user", "output": "{}", "success": true }),
        );
        assert!(!shown(&screen).contains("Which store"));
    }
}

#[test]
fn files_are_picked_by_a_few_letters() {
    for (size, name) in [(LARGE, "files_large"), (SMALL, "files_small")] {
        let mut screen = screen(size);
        assert_eq!(press(&mut screen, "look at @"), [Action::ListPaths]);
        let paths =
            ["/notes/plan.md", "/notes/a b.md", "/projects/lexer.rs", "/projects/parser.rs", "/projects/\u{1b}[2Jx.rs"];
        screen.on(Input::Paths(paths.map(str::to_owned).into()));
        assert_eq!(press(&mut screen, "prs↓"), []);
        insta::assert_snapshot!(name, shown(&screen));
        press(&mut screen, "↑⏎and say");
        assert_eq!(
            screen.pane().map(|pane| pane.composer.text().to_owned()).as_deref(),
            Some("look at @/projects/parser.rs and say")
        );
        // A path with blanks is quoted.
        press(&mut screen, " @\"a b⏎");
        let quoted = "look at @/projects/parser.rs and say @\"/notes/a b.md\" ";
        assert_eq!(screen.pane().map(|pane| pane.composer.text().to_owned()).as_deref(), Some(quoted));
        (0..18).for_each(|_| drop(screen.on(Input::Key(Key::Backspace))));
        // Closed, the letters stay.
        press(&mut screen, " @le⎋⏎");
        assert_eq!(
            screen.pane().map(|pane| pane.sent.clone()),
            Some(vec!["look at @/projects/parser.rs and say @le".to_owned()])
        );
    }
}

#[test]
fn every_chat_keeps_its_place_and_its_draft() {
    let mut screen = finished(LARGE);
    press(&mut screen, "half a dra");
    screen.on(Input::Key(Key::PageUp));
    let place = screen.pane().map(|pane| pane.place);
    assert_eq!(ctrl(&mut screen, 's'), [Action::ListChats]);
    let entry =
        |value: &str, label: &str| Entry { value: value.into(), label: label.into(), detail: "idle, 2 h ago".into() };
    screen.on(Input::Chats(vec![
        entry("c1", "Fix the parser"),
        entry("c2", "Write the manual"),
        entry("c3", "Deploy"),
    ]));
    press(&mut screen, "man");
    insta::assert_snapshot!("chats_large", shown(&screen));
    let actions = press(&mut screen, "⏎");
    let (key, chat) = (2, "c2".to_owned());
    assert_eq!(actions, [Action::Follow { key, chat: chat.clone(), after: 0 }, Action::Look { key, chat }]);
    press(&mut screen, "another");
    // A turn of the chat that is not shown ends.
    event(&mut screen, "turn_started", json!({ "turn_id": "t2", "attempt": 1 }));
    event(&mut screen, "done", json!({ "turn_id": "t2", "stop_reason": "end_turn" }));
    insta::assert_snapshot!("two_chats_large", shown(&screen));
    assert_eq!(ctrl(&mut screen, 'x'), [], "it is followed already");
    let pane = screen.pane().map(|pane| (pane.composer.text().to_owned(), Some(pane.place)));
    assert_eq!(pane, Some(("half a dra".to_owned(), place)));
    screen.size = SMALL;
    insta::assert_snapshot!("two_chats_small", shown(&screen));
}

#[test]
fn one_key_stops_the_turn_and_ctrl_c_twice_leaves() {
    let mut screen = worked(LARGE);
    assert_eq!(press(&mut screen, "⎋"), [Action::Stop { key: 1, chat: "c1".into() }]);
    assert_eq!(press(&mut screen, "⎋"), [], "it stops already");
    assert!(shown(&screen).contains("stopping"));
    event(&mut screen, "stopped", json!({ "turn_id": "t1", "reason": "user_cancelled" }));
    assert!(shown(&screen).contains("stopped (user_cancelled)"));
    press(&mut screen, "draft");
    assert_eq!(ctrl(&mut screen, 'c'), []);
    assert!(shown(&screen).contains("Ctrl-C again leaves"));
    press(&mut screen, "↑");
    assert_eq!(screen.pane().map(|pane| pane.composer.text()), Some("draft"), "the cleared draft comes back");
    assert_eq!(ctrl(&mut screen, 'c'), [], "another key was in between");
    assert_eq!(ctrl(&mut screen, 'c'), [Action::Leave]);
}

#[test]
fn states_are_seen() {
    let mut screen = worked(LARGE);
    let told = |screen: &mut Screen, told: ChatPaneUpdate, words: &[&str]| {
        screen.on(Input::PaneUpdate { key: 1, update: told });
        let shown = shown(screen);
        assert!(words.iter().all(|word| shown.contains(word)), "{words:?}\n{shown}");
    };
    told(
        &mut screen,
        ChatPaneUpdate::Lost("no hub at http://127.0.0.1:8686".into()),
        &["reconnecting", "no hub at", "trying again"],
    );
    told(&mut screen, ChatPaneUpdate::Back, &["working"]);
    told(&mut screen, ChatPaneUpdate::Over("this chat is gone".into()), &["offline", "this chat is gone"]);
    let event = |name: &str, data| ChatPaneUpdate::Event(Event { number: Some(99), name: name.into(), data });
    told(&mut screen, event("chunk", json!({ "message_id": "m9", "text": "So" })), &["streaming", "So"]);
    told(&mut screen, event("waiting", json!({ "reason": "slots" })), &["waiting", "others go first"]);
    told(&mut screen, event("error", json!({ "code": "PAUSED", "message": "no key" })), &["paused: no key"]);
    screen.on(Input::Size(20, 5));
    assert!(shown(&screen).contains("paused"), "it is small, and it is drawn");
    for size in [(1, 1), (3, 2), (0, 0), (200, 3)] {
        screen.on(Input::Size(size.0, size.1));
        shown(&screen);
    }
}

#[test]
fn a_message_that_did_not_arrive_comes_back_and_one_that_waits_is_seen() {
    let mut screen = worked(LARGE);
    let actions = press(&mut screen, "and¶the docs⏎");
    assert!(
        matches!(actions.first(), Some(Action::Post { content, busy: true, .. }) if content == "and\nthe docs"),
        "{actions:?}"
    );
    assert!(shown(&screen).contains("⋯ and the docs"));
    press(&mut screen, "more");
    screen.on(Input::NotPosted { key: 1, content: "and\nthe docs".into(), why: "no hub answers".into() });
    assert_eq!(screen.pane().map(|pane| pane.composer.text()), Some("and\nthe docs\nmore"));
    assert!(shown(&screen).contains("no hub answers"));
}

#[test]
fn commands_are_run_and_slips_are_told() {
    let mut screen = screen(LARGE);
    assert_eq!(press(&mut screen, "/mode plan⏎"), []);
    assert_eq!(press(&mut screen, "/plna⏎"), []);
    assert!(shown(&screen).contains("there is no /plna; did you mean /plan?"));
    press(&mut screen, "/plan⏎");
    assert!(shown(&screen).contains("there is no chat yet"));
    let actions = press(&mut screen, "//usr is full⏎");
    let Some(Action::Post { content, first, .. }) = actions.first() else { panic!("nothing is sent: {actions:?}") };
    assert_eq!((content.as_str(), first), ("/usr is full", &json!({ "mode": "plan", "goal": "/usr is full" })));
    screen.on(Input::Posted { key: 1, chat: "c1".into(), remarks: Vec::new() });
    let (key, chat) = (1, "c1".to_owned());
    assert_eq!(press(&mut screen, "/approve 2⏎"), [Action::Approve { key, chat: chat.clone(), v: 2 }]);
    assert_eq!(
        press(&mut screen, "/model o9⏎"),
        [Action::Change { key, chat: chat.clone(), name: "model", value: "o9".into() }]
    );
    assert_eq!(press(&mut screen, "/compact undo⏎"), [Action::Compact { key, chat, undo: true }]);
    press(&mut screen, "?");
    insta::assert_snapshot!("help_large", shown(&screen));
    screen.on(Input::Size(SMALL.0, SMALL.1));
    insta::assert_snapshot!("help_small", shown(&screen));
    assert_eq!(press(&mut screen, "x/quit⏎"), [Action::Leave], "the first key closes the help");
}

#[test]
fn changes_of_files_are_listed_compared_and_taken_back() {
    let (mut screen, key) = (finished(LARGE), 1);
    assert_eq!(press(&mut screen, "/files⏎/diff⏎"), []);
    assert!(shown(&screen).contains("this chat has changed no file"));
    event(&mut screen, "file_updated", json!({ "path": "/projects/lexer.rs", "v": 2, "file_id": "f1" }));
    assert_eq!(press(&mut screen, "/files⏎"), []);
    assert!(shown(&screen).contains("/projects/lexer.rs  v2"));
    let compare =
        |path: &str, versions| Action::Compare { key, files: vec![ComparedFile { path: path.into(), versions }] };
    assert_eq!(press(&mut screen, "/diff⏎"), [compare("/projects/lexer.rs", Some((1, 2)))]);
    assert_eq!(press(&mut screen, "/diff a b.md⏎"), [compare("/a b.md", None)]);
    let (heading, diff) = ("/projects/lexer.rs  v1 → v2".to_owned(), "-skip(1);\n+skip(2)\u{1b}[2J;\n".to_owned());
    screen.on(Input::Diff { key, heading, diff });
    assert!(shown(&screen).contains("v1 → v2\n     -skip(1);\n     +skip(2)[2J;\n"), "{}", shown(&screen));
    assert_eq!(press(&mut screen, "/cost⏎"), [Action::ReadCost { key, chat: "c1".into() }]);

    // One rewind at a time, and one that failed can be asked for again.
    let undo = TurnRewind::Undo { chat: "c1".into(), turn: "t1".into() };
    for result in [Err("no hub answers".to_owned()), Ok(("r1".to_owned(), "1 removed".to_owned()))] {
        assert_eq!(press(&mut screen, "/undo⏎"), [Action::Rewind { key, rewind: undo.clone() }]);
        assert_eq!(press(&mut screen, "/redo⏎/undo⏎"), []);
        assert!(shown(&screen).contains("changes of files are being rewound"));
        screen.on(Input::Rewound { key, rewind: undo.clone(), result });
    }
    assert!(shown(&screen).contains("no hub answers\n") && shown(&screen).contains("1 removed\n"));
    assert_eq!(press(&mut screen, "/undo⏎"), []);
    assert!(shown(&screen).contains("is taken back already; /redo restores it"));
    let redo = TurnRewind::Redo { rewind: "r1".into() };
    assert_eq!(press(&mut screen, "/redo⏎"), [Action::Rewind { key, rewind: redo.clone() }]);
    screen.on(Input::Rewound { key, rewind: redo, result: Ok(("r2".into(), "1 brought back".into())) });
    event(&mut screen, "turn_started", json!({ "turn_id": "t2", "attempt": 1 }));
    assert_eq!(press(&mut screen, "/undo⏎"), []);
    assert!(shown(&screen).contains("a turn runs: stop it first with /stop"));
    assert_eq!(press(&mut screen, "/undo now⏎"), []);
    assert!(shown(&screen).contains("/undo is not used like this"));
}

#[test]
fn words_beside_a_text_that_still_comes_do_not_cut_it() {
    let mut screen = worked(LARGE);
    event(&mut screen, "chunk", json!({ "message_id": "m9", "text": "the first half " }));
    screen.on(Input::Remark { key: 1, text: "1 turn".into(), bad: false });
    event(&mut screen, "chunk", json!({ "message_id": "m9", "text": "and the rest" }));
    let half = json!({ "message_id": "m9", "role": "assistant", "content": "the first half and the rest" });
    for _ in 0..2 {
        let shown = shown(&screen);
        assert_eq!(shown.matches("the first half and the rest").count(), 1, "{shown}");
        event(&mut screen, "message", half.clone());
    }
}

#[test]
fn a_restart_voids_the_unfinished_text_and_nothing_drives_the_terminal() {
    let mut screen = worked(LARGE);
    event(&mut screen, "chunk", json!({ "message_id": "m9", "text": "half an ans" }));
    event(&mut screen, "turn_started", json!({ "turn_id": "t1", "attempt": 2 }));
    event(
        &mut screen,
        "message",
        json!({ "message_id": "m9", "role": "assistant", "content": "whole\u{1b}[2J \u{202e}answer\u{9b}" }),
    );
    event(&mut screen, "call", json!({ "call_id": "k9", "tool": "\u{1b}c", "args": { "\u{1b}": "\u{7}" } }));
    event(&mut screen, "error", json!({ "code": "X", "message": "bad\u{1b}]0;t\u{7}", "hint": "\u{1b}" }));
    screen.on(Input::Viewed { key: 1, view: json!({ "title": "\u{1b}[31mred" }) });
    ctrl(&mut screen, 'o');
    let shown = shown(&screen);
    assert!(!shown.contains("half an ans") && shown.contains("whole[2J answer"), "{shown}");
    assert!(shown.contains("the turn goes on after a restart: its unfinished text was void"), "{shown}");
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{shown}");
}

#[test]
fn without_colours_no_cell_has_one() {
    let mut screen = worked(LARGE);
    event(&mut screen, "permission_required", permission());
    let coloured = |screen: &Screen| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a screen in memory");
        terminal.draw(|frame| draw(screen, frame)).expect("it is drawn");
        let cells = terminal.backend().buffer().content().iter();
        cells.filter(|cell| cell.fg != ratatui::style::Color::Reset || cell.bg != ratatui::style::Color::Reset).count()
    };
    assert!(coloured(&screen) > 0);
    screen.colour = false;
    assert_eq!(coloured(&screen), 0);
}
