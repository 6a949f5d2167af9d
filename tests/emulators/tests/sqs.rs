//! The queue on SQS passes the suite.
#![expect(clippy::unwrap_used, reason = "tests")]

use aws::SqsQueue;
use emulators::{Emulator, account};
use ports::{Queue, SystemClock};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use testkit::conformance::{self, Env};

const ATTEMPTS: u32 = 5;

/// A queue of its own, and the timer's work for it: what the delay queue returns is sent on.
async fn queue(sdk: &aws_config::SdkConfig, name: &str) -> Arc<SqsQueue> {
    let names = account::queues(sdk, name, ATTEMPTS).await.unwrap();
    let client = aws_sdk_sqs::Client::new(sdk);
    let queue = Arc::new(SqsQueue::new(client.clone(), sdk.clone(), names.clone(), Arc::new(SystemClock)));
    let timer = queue.clone();
    tokio::spawn(async move {
        loop {
            let request = client.receive_message().queue_url(&names.delay_queue_url).wait_time_seconds(20);
            let Ok(answer) = request.max_number_of_messages(10).send().await else { continue };
            for message in answer.messages.unwrap_or_default() {
                timer.send(vec![aws::outgoing(message.body().unwrap()).unwrap()]).await.unwrap();
                let delete = client.delete_message().queue_url(&names.delay_queue_url);
                delete.receipt_handle(message.receipt_handle().unwrap()).send().await.unwrap();
            }
        }
    });
    queue
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_conforms() {
    let emulator = Emulator::localstack().await.unwrap();
    let sdk = account::sdk(&emulator.endpoint());
    let made = AtomicU32::new(0);
    let env = Env { is_lazy: true, ..Env::real(Arc::new(SystemClock)) };
    conformance::queue(&env, ATTEMPTS, || async {
        queue(&sdk, &format!("commands{}", made.fetch_add(1, Ordering::Relaxed))).await as Arc<dyn Queue>
    })
    .await;
}
