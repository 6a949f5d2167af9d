//! Tests of models from outside, in one binary.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bedrock;
mod corpus;
mod describing;
mod embeddings;
mod providers;
mod routing;
mod scripted;
mod support;
