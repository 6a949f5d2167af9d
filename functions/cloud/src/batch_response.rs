//! The answer of a function to a batch of SQS: the messages that have to come again. Lambda deletes the others.

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse};

/// The answer that names these messages. One without an id, which SQS never sends, cannot be named.
pub(crate) fn response(again: impl IntoIterator<Item = Option<String>>) -> SqsBatchResponse {
    let failure = |id: String| {
        let mut failure = BatchItemFailure::default();
        failure.item_identifier = id;
        failure
    };
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = again.into_iter().flatten().map(failure).collect();
    response
}
