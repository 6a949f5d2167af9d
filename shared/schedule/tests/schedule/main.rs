//! The machine of schedules, and the shapes that it persists.

mod golden;
mod machine;
