//! A bus that stays away ends no step, so its failures are counted.

use assembly::{Emf, counters};
use async_trait::async_trait;
use axum::body::Bytes;
use buildscale_cloud::bus::CountedBus;
use domain::Timestamp;
use ports::{Bus, Error, Result, Subscription};
use serde_json::Value;
use std::sync::{Arc, atomic::AtomicU64};

/// Takes the messages of all channels but `away`, and no subscription.
struct Away;

#[async_trait]
impl Bus for Away {
    async fn publish(&self, channel: &str, _: Bytes) -> Result<()> {
        if channel == "away" { Err(Error::unavailable("the bus", "no answer")) } else { Ok(()) }
    }

    async fn subscribe(&self, _: &str) -> Result<Subscription> {
        Err(Error::unavailable("the bus", "no answer"))
    }
}

#[tokio::test]
async fn what_the_bus_does_not_take_is_counted_and_stays_an_error() {
    let failures = Arc::<AtomicU64>::default();
    let emf = Emf::new("dev-worker", vec![counters::count("bus_failures", failures.clone())]);
    let bus = CountedBus { bus: Arc::new(Away), failures };
    let counted = || {
        let line = emf.line(Timestamp::from_millis(1))?;
        serde_json::from_str::<Value>(&line).ok()?["BusFailures"].as_u64()
    };
    assert!(bus.publish("there", Bytes::new()).await.is_ok());
    assert_eq!(counted(), None);
    assert!(bus.publish("away", Bytes::new()).await.is_err());
    assert!(bus.subscribe("there").await.is_err());
    assert_eq!(counted(), Some(2));
    assert_eq!(counted(), None, "each once");
}
