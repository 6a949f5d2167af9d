//! Our ECS says nothing in a form in which moto, which has its shapes from AWS's own models, does not say it.

use crate::ecs::world::{World, workspace};
use emulators::{Emulator, account::REGION, ecs::Ecs};
use parking_lot::Mutex;
use ports::Sandboxes;
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};

/// The fields that AWS's reference has for these answers and moto leaves out, as it runs nothing.
const NOT_IN_MOTO: [&str; 4] =
    [".containerInstanceArn: string", ".stopCode: string", ".failures[].arn: string", ".failures[].reason: string"];

/// A service, asked as the SDK asks it.
struct Service {
    endpoint: String,
    http: reqwest::Client,
}

impl Service {
    fn at(endpoint: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { endpoint: endpoint.into(), http: reqwest::Client::new() }
    }

    async fn ask(&self, operation: &str, body: &Value) -> Value {
        let target = format!("AmazonEC2ContainerServiceV20141113.{operation}");
        let request = self.http.post(&self.endpoint).header("x-amz-target", target);
        let request = request.header("authorization", signed_for("ecs"));
        let request = request.header("content-type", "application/x-amz-json-1.1");
        let answer = request.body(body.to_string()).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{operation}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// A subnet of the network that every account of moto has.
    async fn subnet(&self) -> String {
        let request = self.http.post(&self.endpoint).header("authorization", signed_for("ec2"));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let text =
            request.body("Action=DescribeSubnets&Version=2016-11-15").send().await.unwrap().text().await.unwrap();
        let id = text.split("<subnetId>").nth(1).and_then(|rest| rest.split('<').next());
        id.unwrap_or_else(|| panic!("no subnet in {text}")).to_owned()
    }
}

/// By this moto knows which service is meant; it checks no signature.
fn signed_for(service: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=0"
    )
}

/// Every path of an answer, with the type of its value.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| paths(value, &format!("{path}.{key}"), found)),
        Value::Array(list) => list.iter().for_each(|value| paths(value, &format!("{path}[]"), found)),
        Value::String(_) => _ = found.insert(format!("{path}: string")),
        Value::Number(_) => _ = found.insert(format!("{path}: number")),
        Value::Bool(_) => _ = found.insert(format!("{path}: boolean")),
        Value::Null => {}
    }
}

/// Runs a task, looks at it, stops it, and looks again.
async fn said(service: &Service, run: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let started = service.ask("RunTask", run).await;
    paths(&started, "RunTask", &mut found);
    let cluster = &run["cluster"];
    let task = started["tasks"][0]["taskArn"].clone();
    let describe = json!({ "cluster": cluster, "tasks": [task], "include": ["TAGS"] });
    for _ in 0..4 {
        paths(&service.ask("DescribeTasks", &describe).await, "DescribeTasks", &mut found);
    }
    paths(&service.ask("ListTasks", &json!({ "cluster": cluster })).await, "ListTasks", &mut found);
    let stop = json!({ "cluster": cluster, "task": task, "reason": "enough" });
    paths(&service.ask("StopTask", &stop).await, "StopTask", &mut found);
    paths(&service.ask("DescribeTasks", &describe).await, "DescribeTasks", &mut found);
    found
}

/// The body of the request with which the adapter asks for a task.
async fn asked_for(ecs: &Ecs, world: &World) -> Value {
    let seen: Arc<Mutex<Value>> = Arc::default();
    let noted = seen.clone();
    let proxy = emulators::FaultProxy::start(ecs.endpoint(), move |_, body| {
        *noted.lock() = serde_json::from_slice(body).unwrap();
        emulators::Fate::Pass
    })
    .await
    .unwrap();
    world.worker_at(proxy.endpoint(), world.table.clone()).warm(workspace()).await.unwrap();
    seen.lock().clone()
}

#[tokio::test]
async fn our_ecs_answers_in_the_shapes_of_motos() {
    let world = World::new().await;
    let run = asked_for(&world.ecs, &world).await;
    let mut again = run.clone();
    again["clientToken"] = json!("another");
    let ours = said(&Service::at(world.ecs.endpoint()), &again).await;

    let emulator = Emulator::moto().await.unwrap();
    let moto = Service::at(&emulator.endpoint());
    moto.ask("CreateCluster", &json!({ "clusterName": "buildscale" })).await;
    let container = json!({ "name": "sandbox", "image": "sandbox", "cpu": 256, "memory": 512, "essential": true });
    let definition = json!({
        "family": "buildscale-sandbox", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"],
        "cpu": "256", "memory": "512", "containerDefinitions": [container],
    });
    moto.ask("RegisterTaskDefinition", &definition).await;
    // Moto has no machines and no capacity, and wants its own subnet.
    let mut run = run;
    run["taskDefinition"] = json!("buildscale-sandbox");
    run["launchType"] = json!("FARGATE");
    run["networkConfiguration"]["awsvpcConfiguration"]["subnets"] = json!([moto.subnet().await]);
    let motos = said(&moto, &run).await;

    let strange: Vec<&String> = ours
        .difference(&motos)
        .filter(|path| !NOT_IN_MOTO.iter().any(|known| path.ends_with(known)))
        // The overrides come from the adapter.
        .filter(|path| !path.contains(".overrides."))
        .collect();
    assert_eq!(strange, Vec::<&String>::new(), "moto says: {motos:#?}");
}
