//! Secrets of flows come from Secrets Manager and SSM, below one prefix and from nowhere else.
#![expect(clippy::unwrap_used, reason = "tests")]

use aws::AwsSecrets;
use aws_sdk_ssm::types::ParameterType;
use emulators::{Emulator, Fate, FaultProxy, account};
use ports::{Address, Error, Recipient, SecretRef, Secrets};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

const TO: Recipient<'static> =
    Recipient { workspace: domain::WorkspaceId(uuid::Uuid::nil()), address: Address::Url("https://a.example") };

#[tokio::test]
async fn a_flow_gets_the_secrets_made_for_flows_and_no_others() {
    let emulator = Emulator::localstack().await.unwrap();
    let direct = account::sdk(&emulator.endpoint());
    let manager = aws_sdk_secretsmanager::Client::new(&direct);
    for (name, value) in [("flows/openai", " sk-flow\n"), ("tickets", "the deployment's own"), ("flows/empty", " ")] {
        manager.create_secret().name(name).secret_string(value).send().await.unwrap();
    }
    let parameters = aws_sdk_ssm::Client::new(&direct);
    for (name, value) in [("/flows/db/key", "p-flow"), ("/momento", "the bus's own")] {
        let put = parameters.put_parameter().name(name).value(value).r#type(ParameterType::SecureString);
        put.send().await.unwrap();
    }

    let requests = Arc::new(AtomicU32::new(0));
    let is_down = Arc::new(AtomicBool::new(false));
    let (count, down) = (requests.clone(), is_down.clone());
    let proxy = FaultProxy::start(&emulator.endpoint(), move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        if down.load(Ordering::Relaxed) { Fate::Lost } else { Fate::Pass }
    })
    .await
    .unwrap();
    let secrets = AwsSecrets::new(account::sdk(proxy.endpoint()), "flows");
    let named = |name: &str| SecretRef::Named(name.into());
    for _ in 0..3 {
        for (name, expected) in [
            ("openai", Some("sk-flow")),
            ("/db/key", Some("p-flow")),
            ("empty", None),
            ("absent", None),
            ("/absent", None),
            ("tickets", None),
            ("/momento", None),
        ] {
            let found = secrets.get(&named(name), TO).await.unwrap();
            assert_eq!(found.as_ref().map(|secret| secret.expose()), expected, "{name}");
        }
    }
    assert_eq!(requests.load(Ordering::Relaxed), 7, "each was asked for once");
    for wrong in [
        named(".."),
        named("../tickets"),
        named("a//b"),
        named("//a"),
        named(""),
        named("a b"),
        named("arn:aws:x"),
        SecretRef::Env("HOME".into()),
        SecretRef::File("/etc/passwd".into()),
    ] {
        assert!(matches!(secrets.get(&wrong, TO).await, Err(Error::Invalid(_))), "{wrong}");
    }
    assert_eq!(secrets.parameter("/momento").await.unwrap().unwrap().expose(), "the bus's own");
    assert!(secrets.parameter("/absent").await.unwrap().is_none());
    is_down.store(true, Ordering::Relaxed);
    assert!(matches!(secrets.get(&named("later"), TO).await, Err(Error::Unavailable { .. })));
}
