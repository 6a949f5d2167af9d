//! The semaphore of slots, and the shapes that it persists.

mod golden;
mod semaphore;
