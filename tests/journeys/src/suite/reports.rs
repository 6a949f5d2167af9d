//! The operator's view.

use super::Stage;
use crate::Result;

const COUNT: &str = "buildscale_http_request_duration_seconds_count";

pub(super) async fn the_operator_alone_sees_the_metrics(stage: Stage) -> Result {
    let operator = stage.shared.operator().ok_or("it has no operator")?;
    stage.client().look("/metrics").await?.refuses(403, "FORBIDDEN")?;
    operator.with_token(None).look("/metrics").await?.refuses(401, "UNAUTHORIZED")?;
    // Whichever process answers has counted that it did so before.
    let answered = format!("{COUNT}{{method=\"GET\",route=\"/metrics\",status=\"200\"}} ");
    let lines = ["buildscale_build_info{version=", "process_start_time_seconds ", &answered];
    operator.until_counted(|text| lines.iter().all(|line| text.contains(line))).await
}

pub(super) async fn work_is_counted(stage: Stage) -> Result {
    let operator = stage.shared.operator().ok_or("it has no operator")?;
    let client = stage.client();
    let chat = client.chat(&client.place().await?, "say something").await?;
    client.watch(&chat).until_event("done").await?;
    let posted =
        format!("{COUNT}{{method=\"POST\",route=\"/api/v1/workspaces/{{workspace_id}}/chats\",status=\"202\"}}");
    let lines = [posted.as_str(), "# TYPE buildscale_tasks gauge\n"];
    operator.until_counted(|text| lines.iter().all(|line| text.contains(line))).await
}
