//! A deployment on this machine: what `template.yaml` makes, of emulators and of our own Lambda.

use crate::client::Client;
use emulators::{Calls, Emulator, account};
use identity::{Trust, mint};
use lambda::{Function, Gateway, Mapping, MappingSettings, Settings};
use ports::{Clock, Secret, SystemClock};
use std::{path::PathBuf, process::Stdio, time::Duration};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

const SIGNS_TOKENS: &str = "a secret that signs the tokens of these tests";
const SIGNS_TICKETS: &str = "a secret that signs the tickets of these tests";
/// Longer than anything takes; a test that needs a shorter one says so.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Where somebody may change how the deployment is.
pub struct Deployment {
    /// What the models play.
    pub script: String,
    /// How long the worker may take for a batch.
    pub timeout: Duration,
}

impl Default for Deployment {
    fn default() -> Self {
        Self { script: include_str!("script.yaml").to_owned(), timeout: TIMEOUT }
    }
}

/// A running deployment.
pub struct World {
    /// What the worker, the timer and the container ask for.
    pub dynamodb: Calls,
    pub sqs: Calls,
    pub s3: Calls,
    /// What the API asks for.
    pub dynamodb_of_api: Calls,
    pub sqs_of_api: Calls,
    pub worker: Function,
    pub client: Client,
    /// Ended in this order.
    _commands: Mapping,
    _delays: Mapping,
    _gateway: Gateway,
    _stream: Child,
    pub redis: Emulator,
    _emulators: [Emulator; 2],
    folder: TempDir,
}

impl World {
    pub async fn deploy(deployment: Deployment) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script.yaml");
        std::fs::write(&script, &deployment.script).unwrap();
        let (dynamo, local, redis) =
            tokio::try_join!(Emulator::dynamodb(), Emulator::localstack(), Emulator::redis()).unwrap();
        account::table(&account::sdk(&dynamo.endpoint()), "buildscale").await.unwrap();
        let sdk = account::sdk(&local.endpoint());
        let queues = account::queues(&sdk, "commands", 12).await.unwrap();
        account::bucket(&sdk, "buildscale").await.unwrap();
        let dynamodb = Calls::of(&dynamo.endpoint()).await.unwrap();
        let sqs = Calls::of(&local.endpoint()).await.unwrap();
        let s3 = Calls::of(&local.endpoint()).await.unwrap();
        let dynamodb_of_api = Calls::of(&dynamo.endpoint()).await.unwrap();
        let sqs_of_api = Calls::of(&local.endpoint()).await.unwrap();

        let environment: Vec<(String, String)> = [
            ("AWS_REGION", account::REGION),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_ENDPOINT_URL", &local.endpoint()),
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.endpoint()),
            ("AWS_ENDPOINT_URL_SQS", sqs.endpoint()),
            ("AWS_ENDPOINT_URL_S3", s3.endpoint()),
            ("BUILDSCALE__AWS__TABLE", "buildscale"),
            ("BUILDSCALE__AWS__QUEUE_URL", &queues.queue_url),
            ("BUILDSCALE__AWS__DELAY_QUEUE_URL", &queues.delay_queue_url),
            ("BUILDSCALE__AWS__DELAY_QUEUE_ARN", &queues.delay_queue_arn),
            ("BUILDSCALE__AWS__SCHEDULER_GROUP", &queues.scheduler_group),
            ("BUILDSCALE__AWS__SCHEDULER_ROLE_ARN", &queues.scheduler_role_arn),
            ("BUILDSCALE__AWS__BUCKET", "buildscale"),
            ("BUILDSCALE__AWS__BUS", &format!("redis://127.0.0.1:{}", redis.port())),
            ("BUILDSCALE__AUTH__SECRET", SIGNS_TOKENS),
            ("BUILDSCALE__AUTH__TICKET_SECRET", SIGNS_TICKETS),
            ("BUILDSCALE__AUTH__REQUESTS_PER_MINUTE", "100000"),
            ("BUILDSCALE__AUTH__TOKENS_PER_MINUTE", "100000000"),
            ("BUILDSCALE__AI__SCRIPT", &script.display().to_string()),
            ("BUILDSCALE__AI__MODEL", "scripted/script"),
            ("BUILDSCALE_LOG", "info"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let (stream, address) = launch_stream(&environment).await;
        // The last of two with the same name counts.
        let own = [
            ("BUILDSCALE__AWS__STREAM_URL", address.as_str()),
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_of_api.endpoint()),
            ("AWS_ENDPOINT_URL_SQS", sqs_of_api.endpoint()),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let environment_of_api = [environment.clone(), own.into()].concat();
        let function = |name: &str, binary: &str, environment: &[(String, String)], timeout| {
            Function::new(Settings {
                name: name.into(),
                binary: PathBuf::from(binary),
                environment: environment.to_vec(),
                timeout,
                concurrency: 4,
                log: Some(folder.path().join(format!("{name}.log"))),
            })
        };
        let api = function("api", env!("CARGO_BIN_EXE_buildscale-api"), &environment_of_api, TIMEOUT);
        let worker = function("worker", env!("CARGO_BIN_EXE_buildscale-worker"), &environment, deployment.timeout);
        let timer = function("timer", env!("CARGO_BIN_EXE_buildscale-timer"), &environment, TIMEOUT);
        let queue_of = |queue_url: String| MappingSettings { queue_url, batch: 10, concurrency: 4 };
        let client = aws_sdk_sqs::Client::new(&sdk);
        let commands = Mapping::start(client.clone(), worker.clone(), queue_of(queues.queue_url));
        let delays = Mapping::start(client, timer, queue_of(queues.delay_queue_url));
        let gateway = Gateway::start(api).await;
        let client = Client::new(format!("http://{}", gateway.address), token("ann"));
        Self {
            dynamodb,
            sqs,
            s3,
            dynamodb_of_api,
            sqs_of_api,
            worker,
            client,
            _commands: commands,
            _delays: delays,
            _gateway: gateway,
            _stream: stream,
            redis,
            _emulators: [dynamo, local],
            folder,
        }
    }

    /// The end of what a function has logged.
    pub fn log(&self, function: &str) -> String {
        let log = std::fs::read_to_string(self.folder.path().join(format!("{function}.log"))).unwrap_or_default();
        log.lines().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

/// Says what the functions said when a test fails.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for function in ["api", "worker", "timer"] {
                tracing::error!(function, log = self.log(function));
                let _ = std::io::Write::write_all(
                    &mut std::io::stderr(),
                    format!("--- {function}\n{}\n", self.log(function)).as_bytes(),
                );
            }
        }
    }
}

/// A token for somebody, as the hub's own issuer would make one.
pub fn token(subject: &str) -> String {
    let trust = Trust { issuer: "buildscale".into(), audience: "buildscale".into() };
    mint(&Secret::new(SIGNS_TOKENS), &trust, subject, SystemClock.now(), Duration::from_secs(3600)).unwrap()
}

async fn launch_stream(environment: &[(String, String)]) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_buildscale-stream"));
    command.env_clear().envs(environment.iter().cloned()).env("BUILDSCALE__SERVER__LISTEN", "127.0.0.1:0");
    let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = loop {
        let line = lines.next_line().await.unwrap().expect("it serves");
        let line: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        if let Some(address) = line["fields"]["address"].as_str() {
            break format!("http://{address}");
        }
    };
    // It has to be able to go on saying things.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, address)
}
