//! A program that makes the namespaces of commands and does nothing else: for tests of this crate, and figures. The hub's own makes those of the hub.

fn main() {
    buildscale_sandbox::enter();
}
