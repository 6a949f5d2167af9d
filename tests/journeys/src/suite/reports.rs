//! What whoever runs it can see.

use super::Stage;
use crate::Result;

pub(super) async fn what_is_done_is_counted(stage: Stage) -> Result {
    let operator = stage.shared.operator().ok_or("nobody runs it")?;
    let client = stage.client();
    client.look("/metrics").await?.refuses(403, "FORBIDDEN")?;
    let place = client.place().await?;
    let chat = client.chat(&place, "say something").await?;
    client.watch(&chat).until_event("done").await?;
    let lines = [
        "buildscale_http_request_duration_seconds_count{method=\"POST\",route=\"/api/v1/workspaces/{workspace_id}/chats\",status=\"202\"}",
        "# TYPE buildscale_tasks gauge\n",
        "buildscale_build_info{version=",
        "process_start_time_seconds ",
    ];
    operator.until_counted(|text| lines.iter().all(|line| text.contains(line))).await?;
    Ok(())
}
