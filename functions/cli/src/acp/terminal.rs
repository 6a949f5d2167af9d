//! A terminal that the editor has opened for a command.

use super::Editor;
use protocols::acp;
use serde_json::Value;

/// A terminal of the editor. It is released when nobody waits for its command any more, which also ends a command that runs; the editor goes on
/// showing the output.
pub(super) struct EditorTerminal<'a> {
    pub(super) editor: &'a Editor,
    pub(super) session: &'a str,
    pub(super) of_terminal: &'a Value,
}

impl Drop for EditorTerminal<'_> {
    fn drop(&mut self) {
        let request = ("terminal/release", self.of_terminal.clone());
        let message = acp::of_editor(self.editor.next_number(), self.session, request);
        // An editor that reads nothing any more has ended, and its terminals with it. The response is of no interest.
        let _ = self.editor.out.try_send(message);
    }
}
