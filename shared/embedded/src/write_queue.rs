//! The requests that wait for the writer, and the choice of those for the next transaction.
//!
//! Parties take turns, a request each, and a transaction has an end: so a tenant with a thousand commits delays the single commit of
//! another one by a transaction, and not by a thousand commits. Requests of one party stay in order.

use crate::request::Request;
use ports::FairQueue;

/// The most rows of one transaction, unless one request has more: a few milliseconds of work.
const ROWS: usize = 256;
/// The most bytes of their bodies.
const BYTES: usize = 256 * 1024;

#[derive(Default)]
pub(crate) struct WriteQueue(FairQueue<Request>);

impl WriteQueue {
    /// A request, behind the others of its party.
    pub fn add(&mut self, request: Request) {
        self.0.add(&party(request.place()).into(), request);
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes out the requests of the next transaction; empty when none waits.
    pub fn take(&mut self) -> Vec<Request> {
        let (mut taken, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while rows < ROWS
            && bytes < BYTES
            && let Some(request) = self.0.next()
        {
            let (more_rows, more_bytes) = request.weight();
            (rows, bytes) = (rows + more_rows, bytes + more_bytes);
            taken.push(request);
        }
        taken
    }
}

/// The party of a partition or a group: the workspace of `task/<workspace>/<task>` and of `<workspace>/tasks`.
fn party(place: &str) -> &str {
    let mut parts = place.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (_, Some(second), Some(_)) => second,
        (first, _, _) => first.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::{Expect, Key, QueueMessage, Write};
    use tokio::sync::oneshot;

    fn commit(pk: &str, bytes: usize) -> Request {
        let put = Write::put(Key::new(pk, "log/1"), "x".repeat(bytes), Expect::Absent);
        Request::Commit { writes: vec![put], messages: Vec::new(), answer: oneshot::channel().0 }
    }

    fn places(requests: &[Request]) -> Vec<&str> {
        requests.iter().map(Request::place).collect()
    }

    #[test]
    fn one_commit_of_a_tenant_goes_with_the_next_transaction_past_any_queue_of_another_tenant() {
        let mut queue = WriteQueue::default();
        (0..1_000).for_each(|number| queue.add(commit(&format!("task/many/{number}"), 10)));
        let first = queue.take();
        assert_eq!(first.len(), ROWS);
        let message = QueueMessage { group: "chat/few/1".into(), ..QueueMessage::default() };
        let answer = oneshot::channel().0;
        queue.add(Request::Commit { writes: Vec::new(), messages: vec![message], answer });
        queue.add(commit("few/chats", 10));
        let second = queue.take();
        assert_eq!(
            places(&second)[..5],
            ["task/many/256", "chat/few/1", "task/many/257", "few/chats", "task/many/258"]
        );
        let rest: usize = std::iter::from_fn(|| Some(queue.take().len()).filter(|taken| *taken > 0)).sum();
        assert_eq!((first.len() + second.len() + rest, queue.len()), (1_002, 0));
    }

    #[test]
    fn a_transaction_ends_with_its_bytes_and_a_large_request_goes_all_the_same() {
        let mut queue = WriteQueue::default();
        (0..3).for_each(|number| queue.add(commit(&format!("task/a/{number}"), BYTES)));
        assert_eq!([queue.take().len(), queue.take().len(), queue.take().len(), queue.take().len()], [1, 1, 1, 0]);
    }
}
