//! Messages for later: a FIFO queue cannot delay a single message, so they wait elsewhere and come by the timer.

use super::{QueueNames, WHAT, message};
use crate::fault::unavailable;
use aws_config::SdkConfig;
use aws_sdk_scheduler::{
    Client,
    types::{ActionAfterCompletion, FlexibleTimeWindow, FlexibleTimeWindowMode, Target},
};
use domain::Timestamp;
use ports::{Error, QueueMessage, Result};
use std::sync::OnceLock;

/// One-time schedules that send to the delay queue.
pub(super) struct Schedules {
    sdk: SdkConfig,
    client: OnceLock<Client>,
}

impl Schedules {
    pub(super) fn new(sdk: SdkConfig) -> Self {
        Self { sdk, client: OnceLock::new() }
    }

    /// Has `message` sent to the delay queue at `at`, as [`to_the_second`] writes it. A schedule that is there already is the same one: its
    /// name is the message's identity.
    pub(super) async fn make(&self, names: &QueueNames, message: &QueueMessage, at: &str) -> Result<()> {
        let client = self.client.get_or_init(|| Client::new(&self.sdk));
        let invalid = |error: aws_smithy_types::error::operation::BuildError| Error::Invalid(error.to_string());
        let target = Target::builder()
            .arn(&names.delay_queue_arn)
            .role_arn(&names.scheduler_role_arn)
            .input(message::write(message))
            .build()
            .map_err(invalid)?;
        let exactly = FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off).build().map_err(invalid)?;
        let name = message::identity(message, None);
        let outcome = client
            .create_schedule()
            .name(&name)
            .client_token(&name)
            .group_name(&names.scheduler_group)
            .schedule_expression(format!("at({at})"))
            .flexible_time_window(exactly)
            .action_after_completion(ActionAfterCompletion::Delete)
            .target(target)
            .send()
            .await;
        match outcome {
            Err(error) if error.as_service_error().is_some_and(|error| error.is_conflict_exception()) => Ok(()),
            Err(error) => Err(unavailable(WHAT, &error)),
            Ok(_) => Ok(()),
        }
    }
}

/// `yyyy-mm-ddThh:mm:ss` in UTC, cut to whole seconds.
pub(super) fn to_the_second(at: Timestamp) -> Result<String> {
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(at.strftime("%Y-%m-%dT%H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_schedule_is_for_a_whole_second_in_utc() {
        assert_eq!(to_the_second(Timestamp::from_millis(1_795_336_496_999)).unwrap(), "2026-11-22T08:34:56");
        assert!(to_the_second(Timestamp::from_millis(i64::MAX)).is_err());
    }
}
