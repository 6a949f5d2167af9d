//! The streams: from the log and the bus to the connections.

mod changes;
mod ends;
mod feeds;
mod http;
mod projection_stream;
mod support;
