//! Momento Topics, made from our own messages ([`aws::momento_wire`]). Momento's own client takes it for the real one.

use aws::momento_wire::{Content, Kind, PublishRequest, SubscriptionItem, SubscriptionRequest, TopicItem, TopicValue};
use futures::channel::mpsc;
use parking_lot::Mutex;
use std::{collections::HashMap, convert::Infallible, future::ready, io, net::SocketAddr, sync::Arc};
use tokio::net::TcpListener;
use tonic::{
    Request, Response, Status,
    body::Body,
    server::Grpc,
    transport::{Server, server::TcpIncoming},
};
use tonic_prost::ProstCodec;
use tower::service_fn;

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
type Subscribed = mpsc::UnboundedReceiver<Result<SubscriptionItem, Status>>;

impl Topics {
    /// Starts one.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let state = State { key: FIRST_KEY.into(), ..State::default() };
        let topics = Self { address: listener.local_addr()?, state: Arc::new(Mutex::new(state)) };
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let served = topics.clone();
        let service = service_fn(move |request: http::Request<Body>| served.clone().answer(request));
        tokio::spawn(Server::builder().serve_with_incoming(service, incoming));
        Ok(topics)
    }

    /// A key as its console gives it: with the endpoint.
    pub fn key(&self, key: &str) -> String {
        format!(r#"{{"api_key": "{key}", "endpoint": "http://{}"}}"#, self.address)
    }

    /// Looks at its state, or changes it.
    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock())
    }

    /// Refuses every other key than this one from now on, and ends the subscriptions that were made with another.
    pub fn take_only(&self, key: &str) {
        self.change(|state| {
            state.key = key.into();
            state.subscribers.clear();
        });
    }

    async fn answer(self, request: http::Request<Body>) -> Result<http::Response<Body>, Infallible> {
        Ok(match request.uri().path() {
            "/cache_client.pubsub.Pubsub/Publish" => {
                let mut grpc = Grpc::new(ProstCodec::<(), PublishRequest>::default());
                grpc.unary(service_fn(move |request| ready(self.publish(request))), request).await
            }
            "/cache_client.pubsub.Pubsub/Subscribe" => {
                let mut grpc = Grpc::new(ProstCodec::<SubscriptionItem, SubscriptionRequest>::default());
                grpc.server_streaming(service_fn(move |request| ready(self.subscribe(request))), request).await
            }
            _ => Status::unimplemented("there is no such method").into_http(),
        })
    }

    fn publish(&self, request: Request<PublishRequest>) -> Result<Response<()>, Status> {
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
        Ok(Response::new(()))
    }

    fn subscribe(&self, request: Request<SubscriptionRequest>) -> Result<Response<Subscribed>, Status> {
        let SubscriptionRequest { cache_name, topic } = self.admit(request)?;
        if cache_name != CACHE {
            return Err(Status::not_found("there is no such cache"));
        }
        let (to, from) = mpsc::unbounded();
        drop(to.unbounded_send(item(Kind::Heartbeat(()))));
        self.change(|state| {
            state.subscriptions += 1;
            state.subscribers.entry(topic).or_default().push(to);
        });
        Ok(Response::new(from))
    }

    fn admit<T>(&self, request: Request<T>) -> Result<T, Status> {
        let header = |name| request.metadata().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        // Momento's client for Rust names the cache here, too, as ours does; the one for Node.js does not.
        let is_named = !header("cache").is_empty() || header("agent").starts_with("rust:");
        if is_named && header("cache") != CACHE {
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
    let content = value.content.map(|content| match content {
        Content::Binary(bytes) => match std::str::from_utf8(&bytes) {
            Ok(text) => Content::Binary(text.replace(this, that).into()),
            Err(_) => Content::Binary(bytes),
        },
        text => text,
    });
    TopicValue { content }
}
