//! A deployment of the binaries that Cargo has just built, on emulators of its own.

pub use journeys::{Client, Event, Options, Result, count};

use journeys::{Aws, Binaries, Emulators};
use std::{ops::Deref, sync::Arc};

/// A running deployment, and a person there.
pub struct World {
    aws: Aws,
    pub client: Client,
}

impl World {
    pub async fn deploy(options: Options<'_>) -> Result<Self> {
        let binaries = Binaries::beside(env!("CARGO_BIN_EXE_buildscale-worker"));
        let aws = Aws::deploy(&binaries, Arc::new(Emulators::start().await?), options).await?;
        Ok(Self { client: aws.client(), aws })
    }
}

impl Deref for World {
    type Target = Aws;

    fn deref(&self) -> &Aws {
        &self.aws
    }
}

/// Prints the ends of the functions' logs, which the runner shows when the test fails. A test that fails by its result does not panic.
impl Drop for World {
    fn drop(&mut self) {
        drop(std::io::Write::write_all(&mut std::io::stderr(), self.log().as_bytes()));
    }
}
