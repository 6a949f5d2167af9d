//! Deliveries to the outside: over HTTP, in turns, and with the order of their chats.

mod http;
mod posts;
mod turns;
