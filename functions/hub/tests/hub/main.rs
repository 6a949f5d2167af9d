//! The real binary, over HTTP: a person's journey, death by SIGKILL, a model behind an OpenAI-compatible server.

mod journey;
mod observed;
mod openai;
mod providers;
mod support;
mod survives;
mod terminal;
