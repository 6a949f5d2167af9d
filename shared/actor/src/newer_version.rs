//! Data of a newer version: its delivery is given back for a worker of that version, and counts as no failure of the actor.
//!
//! During a deploy, workers of two versions take deliveries of the same actors. Data of the newer one may have parts that the older one
//! does not know: a kind of event, a kind of command, a field of an envelope. The older one then does nothing at all. It gives the delivery
//! back to rest, and counts beside the log how often that happened ([`crate::delivery_attempt`]).

use std::time::Duration;

/// How long an unreadable delivery rests before it comes again.
pub(crate) const REDELIVERY_DELAY: Duration = Duration::from_secs(40);
/// How often an envelope that cannot be read may come before its actor is paused with it: a quarter of an hour of rests, longer than a
/// deploy takes. It is kept then; a person resumes the actor when there is a worker that can read it.
pub(crate) const MAX_DELIVERIES: u32 = 25;
