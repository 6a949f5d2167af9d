//! A program that begins worlds and does nothing else: for tests of this crate, and figures. The hub's own begins those of the hub.

fn main() {
    buildscale_sandbox::enter();
}
