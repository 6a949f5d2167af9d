//! The adapters of AWS, Redis and Momento against emulators and real servers and clients.

mod dynamodb;
mod ecs;
mod momento;
mod processes;
mod redis;
mod s3;
mod secrets;
mod sqs;
