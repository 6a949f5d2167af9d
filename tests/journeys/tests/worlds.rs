//! The suite, in the worlds that `BUILDSCALE_WORLD` chooses.

use std::process::ExitCode;

fn main() -> ExitCode {
    journeys::harness::main()
}
