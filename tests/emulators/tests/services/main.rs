//! The adapters of AWS and Redis against emulators and a real server.

mod dynamodb;
mod ecs;
mod processes;
mod redis;
mod s3;
mod secrets;
mod sqs;
