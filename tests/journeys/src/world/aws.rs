//! A deployment on this machine: the resources of `template.yaml`, made of emulators and of our own Lambda.

use super::{OPERATOR, SCRIPT, SIGNS_TICKETS, SIGNS_TOKENS, Settings, process::Process, token};
use crate::{Binaries, Client, PATIENCE, Result};
use aws::DynamoTable;
use aws_sdk_sqs::types::QueueAttributeName::{
    ApproximateNumberOfMessages as Visible, ApproximateNumberOfMessagesNotVisible as Taken,
};
use emulators::{Calls, Emulator, Role, account};
use lambda::{Front, Function, Gateway, Mapping, MappingSettings, Origins, RecursiveLoop};
use ports::SystemClock;
use reqwest::Url;
use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    sync::{Mutex, watch},
};

/// The binaries of a deployment.
pub(super) const BINARIES: [&str; 4] = ["buildscale-api", "buildscale-worker", "buildscale-timer", "buildscale-stream"];
/// Longer than anything takes; a test that needs a shorter one says so.
const TIMEOUT: Duration = Duration::from_secs(600);
/// How many instances of a function there may be at once, where nothing is said.
const CONCURRENCY: usize = 6;
/// How many streams there may be at once, each of an instance of its own, until it ends by itself.
const WATCHERS: usize = 32;
/// The token in the header of the public address.
const ORIGIN: &str = "the public address of these tests";
/// The prefix of the names of secrets that flows may refer to.
const SECRETS_OF_FLOWS: &str = "buildscale/flows";

/// The services, for as many deployments as there are: each has a table, queues and a bucket of its own.
pub struct Emulators {
    dynamodb: Emulator,
    local: Emulator,
    /// The bus, which may be away for a while.
    pub redis: Mutex<Emulator>,
    bus: String,
}

impl Emulators {
    /// Starts them.
    ///
    /// # Errors
    /// When one is not installed, or does not start.
    pub async fn start() -> Result<Self> {
        let (dynamodb, local, redis) =
            tokio::try_join!(Emulator::dynamodb(), Emulator::localstack(), Emulator::redis())?;
        let bus = format!("redis://127.0.0.1:{}", redis.port());
        Ok(Self { dynamodb, local, redis: Mutex::new(redis), bus })
    }

    /// The parameters that all deployments share.
    pub fn parameters(&self) -> aws_sdk_ssm::Client {
        aws_sdk_ssm::Client::new(&account::sdk(&self.local.endpoint()))
    }

    fn secrets(&self) -> aws_sdk_secretsmanager::Client {
        aws_sdk_secretsmanager::Client::new(&account::sdk(&self.local.endpoint()))
    }
}

/// How a deployment is made.
pub struct Options<'a> {
    /// The script of the models.
    pub script: String,
    /// How long the worker may take for a batch.
    pub timeout: Duration,
    /// How many instances of a function there may be at once.
    pub concurrency: usize,
    /// Whether workers may call themselves, as `infra/functions.yaml` says that they may.
    pub recursive_loop: RecursiveLoop,
    /// Whether a function holds the event streams, as in the smallest stack; else a container does.
    pub streams_by_function: bool,
    /// Variables of all functions.
    pub settings: Settings<'a>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            script: SCRIPT.to_owned(),
            timeout: TIMEOUT,
            concurrency: CONCURRENCY,
            recursive_loop: RecursiveLoop::Allow,
            streams_by_function: false,
            settings: &[],
        }
    }
}

/// A running deployment.
pub struct Aws {
    /// The name of the table and the bucket, and the prefix of the names of the queues.
    pub name: String,
    /// The calls of the worker, the timer and the container to DynamoDB.
    pub dynamodb: Calls,
    /// The same.
    pub sqs: Calls,
    /// The same.
    pub s3: Calls,
    /// The calls of the API to DynamoDB.
    pub dynamodb_of_api: Calls,
    /// The same.
    pub sqs_of_api: Calls,
    /// The function that answers people.
    pub api: Function,
    /// The function that drives.
    pub worker: Function,
    /// The function of due messages and of sweeps.
    pub timer: Function,
    /// The mapping that feeds the worker.
    pub commands: Mapping,
    url: watch::Receiver<Url>,
    /// Ended in this order.
    _delays: Mapping,
    /// In front of the API, of the protocols, and of the streams where a function holds them.
    pub gateways: Vec<Gateway>,
    _front: Front,
    _stream: Option<Process>,
    _role: Role,
    /// The emulators of all of it.
    pub emulators: Arc<Emulators>,
    folder: TempDir,
}

impl Aws {
    /// Makes a table, queues and a bucket, and deploys the functions on them.
    ///
    /// # Errors
    /// When something cannot be made or started.
    pub async fn deploy(binaries: &Binaries, emulators: Arc<Emulators>, options: Options<'_>) -> Result<Self> {
        static DEPLOYMENTS: AtomicUsize = AtomicUsize::new(1);
        // Clients of AWS insist on a TLS provider. Another test may have installed it.
        drop(rustls::crypto::ring::default_provider().install_default());
        // The bucket has this name, too, and the names of buckets are of all processes that share an emulator.
        let name = format!("buildscale-{}-{}", account::id(), DEPLOYMENTS.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir()?;
        let script = folder.path().join("script.yaml");
        std::fs::write(&script, &options.script)?;
        let (dynamo, local) = (emulators.dynamodb.endpoint(), emulators.local.endpoint());
        account::table(&account::sdk(&dynamo), &name).await?;
        let sdk = account::sdk(&local);
        let queues = account::queues(&sdk, &format!("{name}-commands"), 12).await?;
        account::bucket(&sdk, &name).await?;
        let (dynamodb, dynamodb_of_api) = (Calls::of(&dynamo).await?, Calls::of(&dynamo).await?);
        let (sqs, sqs_of_api, s3) = (Calls::of(&local).await?, Calls::of(&local).await?, Calls::of(&local).await?);

        let of_all = [
            ("AWS_REGION", account::REGION),
            ("AWS_ACCESS_KEY_ID", account::id()),
            ("AWS_SECRET_ACCESS_KEY", account::SECRET),
            ("AWS_ENDPOINT_URL", &local),
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.endpoint()),
            ("AWS_ENDPOINT_URL_SQS", sqs.endpoint()),
            ("AWS_ENDPOINT_URL_S3", s3.endpoint()),
            ("BUILDSCALE__AWS__TABLE", &name),
            ("BUILDSCALE__AWS__QUEUE_URL", &queues.queue_url),
            ("BUILDSCALE__AWS__DELAY_QUEUE_URL", &queues.delay_queue_url),
            ("BUILDSCALE__AWS__DELAY_QUEUE_ARN", &queues.delay_queue_arn),
            ("BUILDSCALE__AWS__SCHEDULER_GROUP", &queues.scheduler_group),
            ("BUILDSCALE__AWS__SCHEDULER_ROLE_ARN", &queues.scheduler_role_arn),
            ("BUILDSCALE__AWS__BUCKET", &name),
            ("BUILDSCALE__AWS__BUS", &emulators.bus),
            ("BUILDSCALE__AUTH__SECRET", SIGNS_TOKENS),
            ("BUILDSCALE__AUTH__TICKET_SECRET", SIGNS_TICKETS),
            ("BUILDSCALE__AUTH__METRICS_TOKEN", OPERATOR),
            ("BUILDSCALE__AUTH__REQUESTS_PER_MINUTE", "100000"),
            ("BUILDSCALE__AUTH__TOKENS_PER_MINUTE", "100000000"),
            ("BUILDSCALE__AI__SCRIPT", &script.display().to_string()),
            ("BUILDSCALE__AI__MODEL", "scripted/script"),
            ("BUILDSCALE_LOG", "info"),
        ];
        let environment = owned(&[&of_all, options.settings].concat());
        // A task of ECS has no credentials in its environment.
        let role = Role::serve().await?;
        let of_task = environment.iter().filter(|(name, _)| !name.starts_with("AWS_") || !name.contains("_ACCESS_KEY"));
        let of_task: Vec<_> = of_task.cloned().chain([role.variable()]).collect();
        let behind = owned(&[("BUILDSCALE__AWS__ORIGIN_TOKEN", ORIGIN)]);
        let own = owned(&[
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_of_api.endpoint()),
            ("AWS_ENDPOINT_URL_SQS", sqs_of_api.endpoint()),
        ]);
        let environment_of_api = [environment.clone(), behind.clone(), own].concat();
        let built_of =
            |name: &str, binary: &str, environment: &[(String, String)], timeout, concurrency| -> Result<_> {
                Ok(Function::new(lambda::Settings {
                    name: name.into(),
                    binary: binaries.get(&format!("buildscale-{binary}"))?,
                    environment: environment.to_vec(),
                    timeout,
                    concurrency,
                    log: Some(log_of(folder.path(), name)),
                }))
            };
        let function = |name: &str, environment: &[(String, String)], timeout, concurrency| {
            built_of(name, name, environment, timeout, concurrency)
        };
        let api = function("api", &environment_of_api, TIMEOUT, options.concurrency)?;
        let worker = function("worker", &environment, options.timeout, options.concurrency)?;
        let timer = function("timer", &environment, TIMEOUT, options.concurrency)?;
        let (concurrency, recursive_loop) = (options.concurrency, options.recursive_loop);
        let queue_of = |queue_url: String| MappingSettings { queue_url, batch: 10, concurrency, recursive_loop };
        let client = aws_sdk_sqs::Client::new(&sdk);
        let commands = Mapping::start(client.clone(), worker.clone(), queue_of(queues.queue_url));
        let delays = Mapping::start(client, timer.clone(), queue_of(queues.delay_queue_url));
        let streamed = owned(&[("BUILDSCALE__AWS__ANSWERS_STREAM", "true")]);
        let protocols = built_of("protocols", "api", &[environment_of_api, streamed].concat(), TIMEOUT, WATCHERS)?;
        let mut gateways = vec![Gateway::start(api.clone()).await, Gateway::start(protocols).await];
        let (stream, streams) = if options.streams_by_function {
            let streams = function("stream", &[environment.clone(), behind].concat(), TIMEOUT, WATCHERS)?;
            gateways.push(Gateway::start(streams).await);
            (None, gateways[2].address.to_string())
        } else {
            let (stream, address) = launch_stream(&binaries.get("buildscale-stream")?, &of_task).await?;
            (Some(stream), address)
        };
        let [api_at, protocols] = [&gateways[0], &gateways[1]].map(|gateway| gateway.address.to_string());
        let origins = Origins { api: api_at, protocols, streams, token: ORIGIN.into() };
        let front = Front::start(origins).await;
        let (_, url) = watch::channel(format!("http://{}", front.address).parse()?);
        Ok(Self {
            name,
            dynamodb,
            sqs,
            s3,
            dynamodb_of_api,
            sqs_of_api,
            api,
            worker,
            timer,
            commands,
            url,
            _delays: delays,
            gateways,
            _front: front,
            _stream: stream,
            _role: role,
            emulators,
            folder,
        })
    }

    /// The client of the person that most of it is about.
    pub fn client(&self) -> Client {
        Client::new(self.url.clone(), Some(&token("ann")))
    }

    /// The table that the functions have written, read apart from all processes; without bodies that are so long that they lie in the
    /// bucket.
    pub fn table(&self) -> DynamoTable {
        let client = aws_sdk_dynamodb::Client::new(&account::sdk(self.dynamodb.endpoint()));
        DynamoTable::new(client, &self.name, Arc::new(SystemClock))
    }

    /// The address of one of its queues, such as `commands` or `commands-dead`, from where functions ask.
    pub fn queue_url(&self, queue: &str) -> String {
        format!("{}/{}/{}-{queue}.fifo", self.sqs.endpoint(), account::id(), self.name)
    }

    /// How many messages a queue has, in flight or not.
    ///
    /// # Errors
    /// When it does not say.
    pub async fn waiting(&self, queue: &str) -> Result<u32> {
        let ask = self.sqs_client().get_queue_attributes().queue_url(self.queue_url(queue));
        let answer = ask.attribute_names(Visible).attribute_names(Taken).send().await?;
        let counts = answer.attributes.unwrap_or_default();
        let count = |name| -> Result<u32> { Ok(counts.get(&name).ok_or("the queue does not say")?.parse()?) };
        Ok(count(Visible)? + count(Taken)?)
    }

    /// Takes every message out of a queue, those in flight among them, as a purge does.
    ///
    /// # Errors
    /// When it does not let go of them.
    pub async fn purge(&self, queue: &str) -> Result {
        self.sqs_client().purge_queue().queue_url(self.queue_url(queue)).send().await?;
        Ok(())
    }

    /// Waits until no worker is at work and no command waits.
    ///
    /// # Errors
    /// When it never comes to that.
    pub async fn until_settled(&self) -> Result {
        let settled = async {
            while self.worker.running() > 0 || self.waiting("commands").await? > 0 {
                // poll: neither a function nor a queue says when it is done
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, settled).await?
    }

    fn sqs_client(&self) -> aws_sdk_sqs::Client {
        aws_sdk_sqs::Client::new(&account::sdk(self.sqs.endpoint()))
    }

    pub(super) async fn put_secret(&self, name: &str, secret: &str) -> Result {
        let name = format!("{SECRETS_OF_FLOWS}/{name}");
        self.emulators.secrets().create_secret().name(name).secret_string(secret).send().await?;
        Ok(())
    }

    /// The end of each function's log.
    pub fn log(&self) -> String {
        ["api", "worker", "timer"].map(|name| format!("--- {name}\n{}\n", self.log_of(name))).concat()
    }

    /// Whether the api or the worker, which both have run, has logged these words at any time.
    ///
    /// # Errors
    /// When a log cannot be read.
    pub fn has_logged(&self, words: &str) -> Result<bool> {
        let has = |function: &str| -> Result<bool> {
            Ok(std::fs::read_to_string(log_of(self.folder.path(), function))?.contains(words))
        };
        Ok(has("api")? || has("worker")?)
    }

    /// The end of a function's log.
    pub fn log_of(&self, function: &str) -> String {
        let log = std::fs::read_to_string(log_of(self.folder.path(), function)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines.get(lines.len().saturating_sub(40)..).unwrap_or_default().join("\n")
    }
}

fn log_of(folder: &Path, function: &str) -> PathBuf {
    folder.join(format!("{function}.log"))
}

fn owned(settings: Settings<'_>) -> Vec<(String, String)> {
    settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

async fn launch_stream(binary: &Path, environment: &[(String, String)]) -> Result<(Process, String)> {
    let mut command = Command::new(binary);
    command.env_clear().envs(environment.iter().cloned()).env("BUILDSCALE__SERVER__LISTEN", "127.0.0.1:0");
    let mut child = Process::spawn(command.stdout(Stdio::piped()).stdin(Stdio::null()))?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    let address = loop {
        let line = lines.next_line().await?.ok_or("the stream server ended before it served")?;
        let line: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        if let Some(address) = line["fields"]["address"].as_str() {
            break address.to_owned();
        }
    };
    // It has to be able to go on saying things.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok((child, address))
}
