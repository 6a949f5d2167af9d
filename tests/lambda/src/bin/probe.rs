//! A function that follows its event: `{"echo": value}`, `{"hang": true}`, `{"die": true}`, `{"fail": text}`, `{"left": true}` for the
//! milliseconds to its deadline.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::run(service_fn(probe)).await
}

async fn probe(event: LambdaEvent<Value>) -> Result<Value, Error> {
    let LambdaEvent { payload, context } = event;
    if payload.get("die").is_some() {
        std::process::exit(3);
    }
    if payload.get("hang").is_some() {
        std::future::pending::<()>().await;
    }
    if let Some(text) = payload.get("fail").and_then(Value::as_str) {
        return Err(text.into());
    }
    if payload.get("left").is_some() {
        #[expect(clippy::disallowed_methods, reason = "the deadline is in wall-clock time, by protocol")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        return Ok(json!(u128::from(context.deadline).saturating_sub(now) as u64));
    }
    Ok(json!({ "echo": payload.get("echo"), "pid": std::process::id() }))
}
