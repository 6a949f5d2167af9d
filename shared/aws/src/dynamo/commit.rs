//! Commits: one request for one write, a transaction for more.

use super::{
    DynamoTable, WHAT, item,
    lost_answers::LostAnswers,
    plan::{Action, Planned},
};
use crate::fault::{AwsFault, Class, unavailable};
use aws_sdk_dynamodb::{
    operation::transact_write_items::TransactWriteItemsError,
    types::{CancellationReason, ConditionCheck, Delete, Put, TransactWriteItem, Update},
};
use aws_smithy_runtime_api::client::{orchestrator::HttpResponse, result::SdkError};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use ports::{Error, Expect, Result, Table as _, Write};
use std::{collections::HashSet, time::Duration};

/// How often a commit is planned anew: because items expired under it, or because others write to the same ones.
const ROUNDS: u32 = 10;
/// How often a transaction is asked for that DynamoDB still works at, each time with the attempts of the SDK.
const UNDER_WAY: u32 = 3;
const CONDITION: &str = "ConditionalCheckFailedException";

/// The outcome of one round.
enum Round {
    Done,
    /// The expectation of the write at this position did not hold.
    Lost(usize),
    /// These writes, which expect nothing, met an expired item where they took it for alive, or the other way round.
    Misjudged(Vec<usize>),
    /// Others wrote to the same items at the same time; nothing was written.
    Busy(AwsFault),
}

impl DynamoTable {
    /// Writes a validated commit.
    pub(super) async fn write(&self, writes: &[Write]) -> Result<()> {
        let says_something = |write: &&Write| !matches!(write, Write::Check { expect: Expect::Any, .. });
        let asked = writes.iter().filter(says_something).count();
        let mut over_expired = HashSet::new();
        let mut last = AwsFault::unknown("no round was tried");
        for round in 0..ROUNDS {
            let now = self.clock.now();
            let plan = |(position, write): (usize, &Write)| {
                Planned::new(position, write, now, over_expired.contains(&position))
            };
            let mut planned = writes.iter().enumerate().filter(|(_, write)| says_something(write)).map(plan);
            let outcome = match asked {
                0 => return Ok(()),
                1 => match planned.next() {
                    Some(only) => self.write_one(&only, writes).await?,
                    None => return Ok(()),
                },
                _ => self.write_all(planned.collect()).await?,
            };
            match outcome {
                Round::Done => return Ok(()),
                Round::Lost(write) => return Err(Error::Conflict { write }),
                Round::Misjudged(positions) => {
                    for position in positions {
                        if !over_expired.remove(&position) {
                            over_expired.insert(position);
                        }
                    }
                }
                Round::Busy(fault) => {
                    last = fault;
                    self.pause(round).await;
                }
            }
        }
        Err(Error::unavailable(WHAT, last))
    }

    /// The SDK repeats a throttled request by itself, but not a transaction that met another one.
    async fn pause(&self, round: u32) {
        let most = 20_u64 << round.min(6);
        let drawn = u64::try_from(self.clock.id().as_u128() % u128::from(most)).unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(most / 2 + drawn / 2)).await;
    }

    async fn write_one(&self, planned: &Planned, writes: &[Write]) -> Result<Round> {
        let lost_answers = LostAnswers::default();
        let (client, table) = (&self.client, &self.name);
        let Planned { condition, values, .. } = planned;
        let (condition, values) = (condition.clone(), values.clone());
        let refused = match &planned.action {
            Action::Put(item) => {
                let put = client.put_item().table_name(table).set_item(Some(item.clone()));
                let put = put.set_condition_expression(condition).set_expression_attribute_values(values);
                put.customize().interceptor(lost_answers.clone()).send().await.err().map(|error| judge(&error))
            }
            Action::Update(expression) => {
                let update = client.update_item().table_name(table).set_key(Some(item::key(&planned.key)));
                let update = update.update_expression(expression).set_expression_attribute_names(planned.names());
                let update = update.set_condition_expression(condition).set_expression_attribute_values(values);
                update.customize().interceptor(lost_answers.clone()).send().await.err().map(|error| judge(&error))
            }
            Action::Delete => {
                let delete = client.delete_item().table_name(table).set_key(Some(item::key(&planned.key)));
                let delete = delete.set_condition_expression(condition).set_expression_attribute_values(values);
                delete.customize().interceptor(lost_answers.clone()).send().await.err().map(|error| judge(&error))
            }
            // DynamoDB checks only in transactions; a consistent read is a quarter of the price.
            Action::Check => {
                let expect = writes.get(planned.position).map_or(Expect::Any, Write::expect);
                let found = self.get(&planned.key).await?.map(|item| item.rev);
                let holds = match expect {
                    Expect::Absent => found.is_none(),
                    Expect::Present => found.is_some(),
                    Expect::Rev(rev) => found == Some(rev),
                    Expect::Any => true,
                };
                (!holds).then_some(Refused::Condition)
            }
        };
        match refused {
            None => Ok(Round::Done),
            Some(Refused::Condition) if !planned.is_expecting => Ok(Round::Misjudged(vec![planned.position])),
            Some(Refused::Condition) if lost_answers.any() => {
                let story = "an earlier attempt was not answered, and the next found its condition false";
                Err(Error::unavailable(WHAT, AwsFault::unknown(story)))
            }
            Some(Refused::Condition) => Ok(Round::Lost(planned.position)),
            Some(Refused::Transaction(fault)) => Ok(Round::Busy(fault)),
            Some(Refused::Otherwise(error)) => Err(error),
        }
    }

    /// The token makes attempts one transaction: a lost answer changes nothing here. While DynamoDB still works at an earlier attempt it is asked
    /// again under the same token. Under another one it could say that the expectations do not hold, because of what this transaction wrote.
    async fn write_all(&self, planned: Vec<Planned>) -> Result<Round> {
        let items = planned.iter().map(|planned| self.transactional(planned)).collect::<Result<Vec<_>>>()?;
        let token = self.clock.id().to_string();
        for round in 0..UNDER_WAY {
            let request = self.client.transact_write_items().set_transact_items(Some(items.clone()));
            let Err(error) = request.client_request_token(&token).send().await else { return Ok(Round::Done) };
            match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                    return verdict(cancelled.cancellation_reasons(), &planned);
                }
                Some(TransactWriteItemsError::TransactionInProgressException(_)) => self.pause(round).await,
                _ => return Err(unavailable(WHAT, &error)),
            }
        }
        Err(Error::unavailable(WHAT, AwsFault::unknown("an earlier attempt at the transaction is still under way")))
    }

    fn transactional(&self, planned: &Planned) -> Result<TransactWriteItem> {
        let Planned { condition, values, .. } = planned;
        let (condition, values) = (condition.clone(), values.clone());
        let (table, key, item) = (&self.name, Some(item::key(&planned.key)), TransactWriteItem::builder());
        let built = match &planned.action {
            Action::Put(attributes) => Put::builder()
                .table_name(table)
                .set_item(Some(attributes.clone()))
                .set_condition_expression(condition)
                .set_expression_attribute_values(values)
                .build()
                .map(|put| item.put(put)),
            Action::Update(expression) => Update::builder()
                .table_name(table)
                .set_key(key)
                .update_expression(expression)
                .set_expression_attribute_names(planned.names())
                .set_condition_expression(condition)
                .set_expression_attribute_values(values)
                .build()
                .map(|update| item.update(update)),
            Action::Delete => Delete::builder()
                .table_name(table)
                .set_key(key)
                .set_condition_expression(condition)
                .set_expression_attribute_values(values)
                .build()
                .map(|delete| item.delete(delete)),
            Action::Check => ConditionCheck::builder()
                .table_name(table)
                .set_key(key)
                .set_condition_expression(condition)
                .set_expression_attribute_values(values)
                .build()
                .map(|check| item.condition_check(check)),
        };
        built.map(|item| item.build()).map_err(|error| Error::Invalid(error.to_string()))
    }
}

/// Why one write was not done.
enum Refused {
    Condition,
    /// A transaction is writing to the item; nothing was written.
    Transaction(AwsFault),
    Otherwise(Error),
}

fn judge<E>(error: &SdkError<E, HttpResponse>) -> Refused
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    match error.as_service_error().and_then(|error| error.meta().code()) {
        Some(CONDITION) => Refused::Condition,
        Some("TransactionConflictException") => Refused::Transaction(AwsFault::of(error)),
        _ => Refused::Otherwise(unavailable(WHAT, error)),
    }
}

/// The verdict over the reasons of a cancelled transaction; there is one for each write.
fn verdict(reasons: &[CancellationReason], planned: &[Planned]) -> Result<Round> {
    let failed = |reason: &CancellationReason| reason.code() == Some("ConditionalCheckFailed");
    let conditions: Vec<&Planned> =
        reasons.iter().zip(planned).filter(|(reason, _)| failed(reason)).map(|(_, planned)| planned).collect();
    if let Some(lost) = conditions.iter().find(|planned| planned.is_expecting) {
        return Ok(Round::Lost(lost.position));
    }
    if !conditions.is_empty() {
        return Ok(Round::Misjudged(conditions.iter().map(|planned| planned.position).collect()));
    }
    let mut faults = reasons.iter().filter_map(|reason| {
        let code = reason.code().filter(|code| *code != "None")?;
        Some(AwsFault::coded(code, reason.message().unwrap_or("in a transaction"), true))
    });
    match faults.next() {
        Some(fault) if fault.class == Class::Throttled || fault.code.as_deref() == Some("TransactionConflict") => {
            Ok(Round::Busy(fault))
        }
        Some(fault) => Err(fault.into_error(WHAT)),
        None => Err(Error::unavailable(WHAT, AwsFault::unknown("a transaction was cancelled without a reason"))),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::Timestamp;
    use ports::Key;

    fn outcome(codes: &[&str], expects: &[Expect]) -> Result<Round> {
        let reasons: Vec<_> = codes.iter().map(|code| CancellationReason::builder().code(*code).build()).collect();
        let plan = |(position, expect): (usize, &Expect)| {
            let write = Write::put(Key::new("p", position.to_string()), "1", *expect);
            Planned::new(position, &write, Timestamp::default(), false)
        };
        verdict(&reasons, &expects.iter().enumerate().map(plan).collect::<Vec<_>>())
    }

    #[test]
    fn a_conflict_is_an_expectation_that_did_not_hold_and_nothing_else() {
        let (failed, conflict) = ("ConditionalCheckFailed", "TransactionConflict");
        let (absent, any) = (Expect::Absent, Expect::Any);
        assert!(matches!(outcome(&["None", failed, failed], &[absent; 3]).unwrap(), Round::Lost(1)));
        assert!(matches!(outcome(&[conflict, failed], &[absent; 2]).unwrap(), Round::Lost(1)));
        assert!(matches!(outcome(&["None", conflict], &[absent; 2]).unwrap(), Round::Busy(_)));
        assert!(matches!(outcome(&["ThrottlingError", "None"], &[absent; 2]).unwrap(), Round::Busy(_)));
        match outcome(&[failed, "None", failed], &[any, absent, any]).unwrap() {
            Round::Misjudged(positions) => assert_eq!(positions, [0, 2]),
            _ => panic!("no write had a condition"),
        }
        assert!(matches!(outcome(&["None", "ValidationError"], &[absent; 2]), Err(Error::Invalid(_))));
        assert!(matches!(outcome(&["None", "None"], &[absent; 2]), Err(Error::Unavailable { .. })));
    }
}
