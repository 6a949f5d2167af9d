//! The firing of EventBridge Scheduler, which no emulator has: at its time, a schedule sends, and is gone. It puts its own data in the place of
//! keywords in the input of its target.

use crate::account::Result;
use aws_config::SdkConfig;
use aws_sdk_scheduler::types::ActionAfterCompletion;

/// Fires every one-time schedule of `group` whose time, `yyyy-mm-ddThh:mm:ss` in UTC, is not after `now` in the same form. Its
/// target is a queue of SQS. Returns how many there were.
pub async fn fire(sdk: &SdkConfig, group: &str, now: &str) -> Result<usize> {
    let (scheduler, sqs) = (aws_sdk_scheduler::Client::new(sdk), aws_sdk_sqs::Client::new(sdk));
    let mut fired = 0;
    for summary in scheduler.list_schedules().group_name(group).send().await?.schedules() {
        let name = summary.name().unwrap_or_default();
        let schedule = scheduler.get_schedule().group_name(group).name(name).send().await?;
        let expression = schedule.schedule_expression().unwrap_or_default();
        let at = expression.strip_prefix("at(").and_then(|at| at.strip_suffix(')')).unwrap_or("9999");
        if at > now {
            continue;
        }
        let target = schedule.target().ok_or("a schedule has a target")?;
        let queue = target.arn().rsplit(':').next().unwrap_or_default();
        let url = sqs.get_queue_url().queue_name(queue).send().await?.queue_url;
        let mut input = target.input().unwrap_or_default().to_owned();
        for (keyword, value) in [
            ("<aws.scheduler.schedule-arn>", schedule.arn().unwrap_or_default()),
            ("<aws.scheduler.scheduled-time>", at),
            ("<aws.scheduler.execution-id>", "d32c5kddcf5bb8c3"),
            ("<aws.scheduler.attempt-number>", "1"),
        ] {
            input = input.replace(keyword, value);
        }
        sqs.send_message().set_queue_url(url).message_body(input).send().await?;
        if schedule.action_after_completion() == Some(&ActionAfterCompletion::Delete) {
            scheduler.delete_schedule().group_name(group).name(name).send().await?;
        }
        fired += 1;
    }
    Ok(fired)
}
