//! The machine of schedules, the way in to them, and the shapes that they persist.

mod golden;
mod machine;
mod making;
