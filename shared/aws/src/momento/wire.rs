//! The messages to Momento: of its `cachepubsub.proto`, package `cache_client.pubsub` (momentohq/client_protos), the two methods and the
//! fields that a bus needs.
//!
//! Written by hand, because Momento publishes one crate for all of its services, which brings a protocol of its own and a second
//! provider of TLS with it. Fields that are not here, such as the identity of a publisher, are skipped when they are read.
//! `tests/emulators/tests/services/momento/wire.rs` holds every message against the types of Momento's client for Node.js.

use bytes::Bytes;
use http::uri::PathAndQuery;
use prost::{Message, Oneof};
use tonic::{Request, Status, Streaming, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;

/// A value for all listeners of a topic.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PublishRequest {
    /// The cache that has the topic.
    #[prost(string, tag = "1")]
    pub cache_name: String,
    /// The topic.
    #[prost(string, tag = "2")]
    pub topic: String,
    /// The value.
    #[prost(message, optional, tag = "3")]
    pub value: Option<TopicValue>,
}

/// The value of a message of a topic.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TopicValue {
    /// None of a kind that was added to the protocol later.
    #[prost(oneof = "Content", tags = "1, 2")]
    pub content: Option<Content>,
}

/// The kinds of values.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum Content {
    /// A text of another publisher: this bus publishes none. Its bytes stay unchecked, so that one that is not UTF-8 ends no subscription.
    #[prost(bytes = "bytes", tag = "1")]
    Text(Bytes),
    /// Bytes.
    #[prost(bytes = "bytes", tag = "2")]
    Binary(Bytes),
}

/// Asks for the messages of a topic from now on. Without the fields that say where to go on: missed messages are in the log.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SubscriptionRequest {
    /// The cache that has the topic.
    #[prost(string, tag = "1")]
    pub cache_name: String,
    /// The topic.
    #[prost(string, tag = "2")]
    pub topic: String,
}

/// A message of a subscription.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SubscriptionItem {
    /// None of a kind that was added to the protocol later.
    #[prost(oneof = "Kind", tags = "1, 2, 3")]
    pub kind: Option<Kind>,
}

/// The kinds of messages of a subscription. The fields of the second and the third are not needed.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum Kind {
    /// Somebody published.
    #[prost(message, tag = "1")]
    Item(TopicItem),
    /// Something was, or may have been, left out here.
    #[prost(message, tag = "2")]
    Discontinuity(()),
    /// The subscription stands.
    #[prost(message, tag = "3")]
    Heartbeat(()),
}

/// A published value, with its place.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TopicItem {
    /// One more than that of the item before, on the same page.
    #[prost(uint64, tag = "1")]
    pub topic_sequence_number: u64,
    /// The value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<TopicValue>,
    /// Another one when the topic has lost its count.
    #[prost(uint64, tag = "4")]
    pub sequence_page: u64,
}

/// The service `Pubsub`. Clones share a connection.
#[derive(Clone)]
pub(super) struct Pubsub(Grpc<Channel>);

impl Pubsub {
    pub(super) fn new(channel: Channel) -> Self {
        Self(Grpc::new(channel))
    }

    pub(super) async fn publish(mut self, request: Request<PublishRequest>) -> Result<(), Status> {
        self.ready().await?;
        let path = PathAndQuery::from_static("/cache_client.pubsub.Pubsub/Publish");
        self.0.unary(request, path, ProstCodec::<_, ()>::default()).await.map(drop)
    }

    pub(super) async fn subscribe(
        mut self,
        request: Request<SubscriptionRequest>,
    ) -> Result<Streaming<SubscriptionItem>, Status> {
        self.ready().await?;
        let path = PathAndQuery::from_static("/cache_client.pubsub.Pubsub/Subscribe");
        let begun = self.0.server_streaming(request, path, ProstCodec::default()).await?;
        Ok(begun.into_inner())
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.0.ready().await.map_err(|error| Status::unavailable(error.to_string()))
    }
}
