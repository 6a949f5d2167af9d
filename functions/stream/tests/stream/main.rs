//! The streams: from the log and the bus to the connections.

mod changes;
mod feeds;
mod http;
mod projected;
mod support;
