//! A request, as a script sees it.

use domain::Message;
use ports::ModelRequest;

/// The view of a request for a script.
pub(crate) struct RequestView<'a> {
    /// The system text.
    pub(crate) system: &'a str,
    /// The last words of a person.
    pub(crate) user: &'a str,
    /// The number of the turn, from 1.
    pub(crate) turn: usize,
    /// How many answers the model has given in this turn.
    pub(crate) position: usize,
    /// The results of this turn, in order.
    pub(crate) results: Vec<ResultView<'a>>,
    /// How many messages there are.
    pub(crate) messages: usize,
}

/// The result of one call.
pub(crate) struct ResultView<'a> {
    pub(crate) output: &'a str,
    pub(crate) success: bool,
}

impl<'a> RequestView<'a> {
    /// That of a request.
    pub(crate) fn of(request: &'a ModelRequest) -> Self {
        let (system, messages) = (&*request.system, request.messages.len());
        let mut scene = Self { system, user: "", turn: 0, position: 0, results: Vec::new(), messages };
        for message in request.messages.iter() {
            match message.as_ref() {
                Message::User { content, .. } => {
                    scene = Self { user: content, turn: scene.turn + 1, position: 0, results: Vec::new(), ..scene };
                }
                Message::Assistant { .. } => scene.position += 1,
                Message::Tool { output, success, .. } => scene.results.push(ResultView { output, success: *success }),
                Message::System { .. } => {}
            }
        }
        scene
    }
}
