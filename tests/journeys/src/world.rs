//! The places in which the system runs. A world tells its abilities besides talking to it; journeys know no more of it than that.

mod account;
mod aws;
mod hub;
mod process;

pub use account::Account;
pub use aws::{Aws, Emulators, Options};
pub use hub::{Hub, LOG};

use crate::{Binaries, Client, Result};
use identity::{TrustedIssuer, mint};
use ports::{Clock, Secret, SystemClock};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// The secret that signs the tokens of the people of these tests.
pub const SIGNS_TOKENS: &str = "a secret that signs the tokens of these tests";
/// The secret that signs the tickets of these tests.
const SIGNS_TICKETS: &str = "a secret that signs the tickets of these tests";
/// The token of the operator.
const OPERATOR: &str = "the-token-of-the-operator-of-the-worlds-of-these-tests";
/// The script of the models.
pub const SCRIPT: &str = include_str!("script.yaml");

/// The variables of a deployment beyond its own, with their values. The last of two with the same name counts.
pub type Settings<'a> = &'a [(&'a str, &'a str)];

/// An ability of a world that a journey may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    /// Its models play [`SCRIPT`], and not only the offline demo, which has fewer scenes.
    Script,
    /// There is somebody else, with a token of their own.
    Others,
    /// There can be further deployments, with other settings.
    Settings,
    /// Secrets can be put where flows may refer to them.
    Secrets,
    /// The worker can be killed in the middle of its work.
    Deaths,
    /// Its operator sees its counters over HTTP.
    Counters,
    /// One process does all of it, and has counted all that was done. Elsewhere each function counts its own, for the log.
    OneProcess,
    /// Agents run commands in a sandbox.
    Commands,
}

/// A world.
#[derive(Clone)]
pub enum World {
    /// The one binary `buildscale`, with a data folder of its own.
    Hub(Binaries),
    /// The binaries of the functions, on emulators that all deployments share.
    Aws(Binaries, Arc<Emulators>),
    /// An existing deployment.
    Account(Account),
}

impl World {
    /// The worlds that need nothing but this machine.
    pub const HERE: [&str; 2] = ["hub", "aws"];

    /// A world by its name; its emulators are started.
    ///
    /// # Errors
    /// When there is none of this name, or it cannot be had.
    pub async fn of(name: &str) -> Result<Self> {
        match name {
            "hub" => Ok(Self::Hub(Binaries::find()?)),
            "aws" => {
                let binaries = Binaries::find()?;
                // A missing binary is reported before half a minute is gone.
                for name in aws::BINARIES {
                    binaries.get(name)?;
                }
                Ok(Self::Aws(binaries, Arc::new(Emulators::start().await?)))
            }
            "account" => Ok(Self::Account(Account::of_environment()?)),
            _ => Err(format!("BUILDSCALE_WORLD={name}: there are hub, aws and account").into()),
        }
    }

    /// One of the binaries of this build.
    ///
    /// # Errors
    /// When it is not there.
    pub fn binary(&self, name: &str) -> Result<PathBuf> {
        match self {
            Self::Hub(binaries) | Self::Aws(binaries, _) => binaries.get(name),
            Self::Account(_) => Binaries::find()?.get(name),
        }
    }

    /// Whether it can do this.
    pub fn can(&self, ability: Ability) -> bool {
        match (self, ability) {
            (Self::Hub(_), _) => true,
            (Self::Aws(..), ability) => !matches!(ability, Ability::OneProcess | Ability::Commands),
            (Self::Account(account), Ability::Others) => account.other().is_some(),
            (Self::Account(_), _) => false,
        }
    }

    /// A deployment with these settings.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn deploy(&self, settings: Settings<'_>) -> Result<Deployment> {
        Ok(match self {
            Self::Hub(binaries) => Deployment::Hub(hub::deploy(binaries, settings).await?),
            Self::Aws(binaries, emulators) => {
                let options = Options { settings, ..Options::default() };
                Deployment::Aws(Box::new(Aws::deploy(binaries, emulators.clone(), options).await?))
            }
            Self::Account(account) => Deployment::Account(account.clone()),
        })
    }
}

/// A system that runs. It ends when it is dropped, but for one of an account.
pub enum Deployment {
    /// A hub, with its data.
    Hub(hub::Deployed),
    /// Functions.
    Aws(Box<Aws>),
    /// The deployment that was there before.
    Account(Account),
}

/// Another person than the one of a deployment's client.
pub struct Other {
    /// Theirs.
    pub client: Client,
    /// Their name in their tokens.
    pub subject: String,
}

impl Deployment {
    /// The client of the person that most of it is about.
    pub fn client(&self) -> Client {
        match self {
            Self::Hub(deployed) => deployed.hub.client().with_token(Some(&token("ann"))),
            Self::Aws(aws) => aws.client(),
            Self::Account(account) => account.client(),
        }
    }

    /// Another person.
    ///
    /// # Errors
    /// When there is none.
    pub fn other(&self) -> Result<Other> {
        let bob = |client: Client| Other { client: client.with_token(Some(&token("bob"))), subject: "bob".into() };
        match self {
            Self::Hub(deployed) => Ok(bob(deployed.hub.client())),
            Self::Aws(aws) => Ok(bob(aws.client())),
            Self::Account(account) => account.other().ok_or_else(|| "no other person is known".into()),
        }
    }

    /// The client of the operator, who sees its counters.
    pub fn operator(&self) -> Option<Client> {
        match self {
            Self::Hub(deployed) => Some(deployed.hub.client().with_token(Some(OPERATOR))),
            Self::Aws(aws) => Some(aws.client().with_token(Some(OPERATOR))),
            Self::Account(_) => None,
        }
    }

    /// Waits until nothing waits for a worker and nothing is driven, where somebody can tell.
    ///
    /// # Errors
    /// When it never comes to that.
    pub async fn until_settled(&self) -> Result {
        match (self, self.operator()) {
            (Self::Aws(aws), _) => aws.until_settled().await,
            (_, Some(operator)) => operator.until_settled().await,
            (_, None) => Ok(()),
        }
    }

    /// Puts a secret where flows may refer to it by this name.
    ///
    /// # Errors
    /// When it cannot be put.
    pub async fn put_secret(&self, name: &str, secret: &str) -> Result {
        match self {
            Self::Hub(deployed) => deployed.put_secret(name, secret),
            Self::Aws(aws) => aws.put_secret(name, secret).await,
            Self::Account(_) => Err("secrets of others are left alone".into()),
        }
    }

    /// Kills the worker, with SIGKILL, and sees to it that another one drives. Returns whether it was there to be killed.
    ///
    /// # Errors
    /// When none comes after it.
    pub async fn kill(&mut self) -> Result<bool> {
        match self {
            Self::Hub(deployed) => {
                deployed.hub.kill().await?;
                deployed.hub.restart().await?;
                Ok(true)
            }
            Self::Aws(aws) => {
                // That a lease of a minute is over in the end is tried elsewhere, once.
                aws.worker.end_leases();
                Ok(aws.worker.kill_busy() > 0)
            }
            Self::Account(_) => Err("a deployment of others is not killed".into()),
        }
    }

    /// The end of its logs, if they can be read.
    pub fn log(&self) -> String {
        match self {
            Self::Aws(aws) => aws.log(),
            Self::Hub(_) | Self::Account(_) => String::new(),
        }
    }

    /// Leaves nothing behind where others are.
    pub async fn end(&self) {
        if let Self::Account(account) = self {
            account.tidy().await;
        }
    }
}

/// A token for somebody, as the hub's own issuer would make one.
pub fn token(subject: &str) -> String {
    let trust = TrustedIssuer { issuer: "buildscale".into(), audience: "buildscale".into() };
    let hour = Duration::from_secs(3600);
    mint(&Secret::new(SIGNS_TOKENS), &trust, subject, SystemClock.now(), hour).unwrap_or_default()
}
