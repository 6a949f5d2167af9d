//! A worker under any order of deliveries, faults and deaths.

mod kinds;
mod outbox_events;
mod schedules;
mod webhooks;
