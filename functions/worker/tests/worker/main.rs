//! A worker under any order of deliveries, faults and deaths.

mod kinds;
mod letters;
mod schedules;
mod webhooks;
