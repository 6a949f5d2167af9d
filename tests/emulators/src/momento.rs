//! Momento Topics, made from the server stubs of Momento's own protocol crate. Momento's own client takes it for the real one.
//!
//! Behind a feature: the crate brings a second provider of TLS, which nothing else may be built with.

use futures::channel::mpsc;
use momento_protos::{
    cache_client::pubsub::{
        Heartbeat, PublishRequest, SubscriptionItem, SubscriptionRequest, TopicItem, TopicValue,
        pubsub_server::{Pubsub, PubsubServer},
        subscription_item::Kind,
        topic_value,
    },
    common::Empty,
};
use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::net::TcpListener;
use tonic::{
    Request, Response, Status,
    transport::{Server, server::TcpIncoming},
};

/// The one cache.
pub const CACHE: &str = "events";
/// The key that is good at first.
pub const FIRST_KEY: &str = "first";

/// A running server. Clones are the same one; it ends with the runtime.
#[derive(Clone)]
pub struct Topics {
    /// Its address.
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

/// Its data and its behaviour.
#[derive(Default)]
pub struct State {
    /// The only key that is good.
    pub key: String,
    /// The subscribers, by topic.
    pub subscribers: HashMap<String, Vec<Subscriber>>,
    /// The number of the last item of each topic.
    pub numbers: HashMap<String, u64>,
    /// How often anybody subscribed.
    pub subscriptions: usize,
    /// It takes messages and delivers none.
    pub is_mute: bool,
    /// The topic of the last message.
    pub last_topic: String,
    /// Words that it delivers in place of others. A client that hears them has heard them here and nowhere else.
    pub replaces: Option<(&'static str, &'static str)>,
}

/// Takes the messages of a subscription.
pub type Subscriber = mpsc::UnboundedSender<Result<SubscriptionItem, Status>>;

impl Topics {
    /// Starts one.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let state = State { key: FIRST_KEY.into(), ..State::default() };
        let topics = Self { address: listener.local_addr()?, state: Arc::new(Mutex::new(state)) };
        let service = PubsubServer::new(topics.clone());
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(TcpIncoming::from(listener)));
        Ok(topics)
    }

    /// A key as its console gives it: with the endpoint.
    pub fn key(&self, key: &str) -> String {
        format!(r#"{{"api_key": "{key}", "endpoint": "http://{}"}}"#, self.address)
    }

    /// Looks at its state, or changes it.
    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Refuses every other key than this one from now on, and ends the subscriptions that were made with another.
    pub fn take_only(&self, key: &str) {
        self.change(|state| {
            state.key = key.into();
            state.subscribers.clear();
        });
    }

    fn admit<T>(&self, request: Request<T>) -> Result<T, Status> {
        let header = |name| request.metadata().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if header("cache") != CACHE {
            return Err(Status::not_found("there is no such cache"));
        }
        match self.change(|state| state.key == header("authorization")) {
            true => Ok(request.into_inner()),
            false => Err(Status::unauthenticated("this key is not good")),
        }
    }
}

/// A message for a subscriber.
pub fn item(kind: Kind) -> Result<SubscriptionItem, Status> {
    Ok(SubscriptionItem { kind: Some(kind) })
}

fn replaced(value: TopicValue, (this, that): (&str, &str)) -> TopicValue {
    let kind = value.kind.map(|kind| match kind {
        topic_value::Kind::Binary(bytes) => match String::from_utf8(bytes) {
            Ok(text) => topic_value::Kind::Binary(text.replace(this, that).into_bytes()),
            Err(not_text) => topic_value::Kind::Binary(not_text.into_bytes()),
        },
        text => text,
    });
    TopicValue { kind }
}

#[tonic::async_trait]
impl Pubsub for Topics {
    type SubscribeStream = mpsc::UnboundedReceiver<Result<SubscriptionItem, Status>>;

    async fn publish(&self, request: Request<PublishRequest>) -> Result<Response<Empty>, Status> {
        let PublishRequest { cache_name, topic, value } = self.admit(request)?;
        if cache_name != CACHE {
            return Err(Status::not_found("there is no such cache"));
        }
        self.change(|state| {
            let number = state.numbers.entry(topic.clone()).or_default();
            *number += 1;
            let value = match state.replaces {
                Some(replaces) => value.map(|value| replaced(value, replaces)),
                None => value,
            };
            let sent = TopicItem { topic_sequence_number: *number, value, ..TopicItem::default() };
            if !state.is_mute {
                let subscribers = state.subscribers.entry(topic.clone()).or_default();
                subscribers.retain(|subscriber| subscriber.unbounded_send(item(Kind::Item(sent.clone()))).is_ok());
            }
            state.last_topic = topic;
        });
        Ok(Response::new(Empty {}))
    }

    async fn subscribe(
        &self,
        request: Request<SubscriptionRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let SubscriptionRequest { cache_name, topic, .. } = self.admit(request)?;
        if cache_name != CACHE {
            return Err(Status::not_found("there is no such cache"));
        }
        let (to, from) = mpsc::unbounded();
        drop(to.unbounded_send(item(Kind::Heartbeat(Heartbeat {}))));
        self.change(|state| {
            state.subscriptions += 1;
            state.subscribers.entry(topic).or_default().push(to);
        });
        Ok(Response::new(from))
    }
}
