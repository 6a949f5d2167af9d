//! The use of BuildScale by people, from end to end, written once and made in every world that it runs in.
//!
//! * [`World`] is the place: `hub` is the one binary, `aws` the binaries of the functions on emulators of the real protocols, `account` a
//!   deployment that is there already. `BUILDSCALE_WORLD` chooses; without it, `hub` and `aws` in turn.
//! * [`suite`] has the journeys, which know of no world, but for the abilities that they need of one (an [`Ability`]).
//! * [`Client`] is the means: the crate `client`, assertions about its answers, and waiting on conditions. [`Stub`] is a model behind
//!   OpenAI's protocol.
//!
//! Tests for one world alone (the hub's terminal and its death under a command; deadlines, faults and costs of the functions) are with that
//! world, in `functions/hub/tests` and `functions/cloud/tests`, and start it by this crate.
#![expect(clippy::missing_errors_doc, reason = "helpers of tests: any error ends the test")]

mod answer;
mod client;
mod events;
mod stub;

pub mod harness;
pub mod suite;
pub mod world;

pub use self::client::Client;
pub use ::client::Event;
pub use answer::Answer;
pub use events::{OneStream, Watch, answered, count};
pub use lambda::{Binaries, RecursiveLoop};
pub use stub::{Asked, Stub};
pub use world::{Ability, Aws, Deployment, Emulators, Hub, Options, Other, Settings, World};

use std::{error::Error, time::Duration};

/// Any error; the runner of the test shows it.
pub type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// How long anything may take before a test fails: far more than it ever does.
pub const PATIENCE: Duration = Duration::from_secs(180);
