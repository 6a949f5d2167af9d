//! The modes: for each the text for the agent, its tools, and the files that it may write (spec 000 §4).

use domain::{ChatConfig, FilePath, Mode};
use tools::ToolKind;

/// The text about its mode for the model, at the end of the system text. The same bytes at every request in this mode, so
/// that the provider's cache holds. Agents of flows are told by their flow.
pub(crate) fn instructions(mode: Mode) -> &'static str {
    match mode {
        Mode::Chat => {
            "# Your mode: chat\nYour tools run at once. A person is asked before each command, and before files under /system change."
        }
        Mode::Plan => {
            "# Your mode: plan\nYou plan, and change nothing else. Read what you need, ask what is open, then write the plan with \
             plan_write. You may write plan files only: files in this chat's own folder, and elsewhere files named plan.md or \
             something-plan.md. No command runs. A person reads the plan and approves it; you carry it out when you are told that \
             it is approved, and not before."
        }
        Mode::Build => {
            "# Your mode: build\nA person has approved the plan. Carry it out step by step: set a step to in_progress when you begin \
             it and to done when it is done, with plan_update_step. Commands run at once while the plan is the one that was approved; \
             when its text changes in more than the marks of its steps, a person is asked before each command again."
        }
    }
}

/// Told where nobody answers.
pub(crate) const UNATTENDED: &str = "\n\n# You work alone\nNobody answers questions or gives permissions in this chat. Decide by yourself, note what you \
    assumed, and go on until the goal is met. Where something needs a person, leave it and say so at the end.";

/// Whether a tool does anything in this mode. One that does nothing is not offered to the model.
pub(crate) fn offers(mode: Mode, kind: ToolKind) -> bool {
    match (mode, kind) {
        (Mode::Plan, ToolKind::Exec | ToolKind::Arrange | ToolKind::Served) => false,
        (Mode::Plan, ToolKind::Read | ToolKind::Ask | ToolKind::Write) | (Mode::Chat | Mode::Build, _) => true,
    }
}

/// The default path of a chat's plan.
pub(crate) fn default_plan(config: &ChatConfig) -> FilePath {
    let given = config.plan.as_ref().map(|plan| plan.path.clone());
    let chosen = config.scenario.as_ref().and_then(|setup| setup.plan_path.clone());
    given.or(chosen).unwrap_or_else(|| {
        FilePath::parse(&format!("/chats/{}/plan.md", config.chat)).unwrap_or_else(|_| FilePath::root())
    })
}

/// Whether a file may be written in `plan` mode: files in the chat's own folder, the plan that it was given, and files that are
/// named as plans, but for those of other chats and of `/system`.
pub(crate) fn is_plan(config: &ChatConfig, path: &FilePath) -> bool {
    let own = format!("/chats/{}/", config.chat);
    let given = config.plan.as_ref().is_some_and(|plan| plan.path == *path);
    let is_named = path.name() == "plan.md" || path.name().ends_with("-plan.md");
    let is_elsewhere = !matches!(path.names().next(), Some("chats" | "system"));
    path.as_str().starts_with(&own) || given || (is_named && is_elsewhere)
}
