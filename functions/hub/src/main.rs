//! The binary `buildscale`: the hub and its command line.

mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    // This program also begins the worlds of commands; such a process has one thread.
    sandbox::enter();
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    // TLS is built without a provider of its own, so that the hub needs neither a C compiler's assembler nor OpenSSL.
    // Somebody may have chosen before; then theirs is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    program::main().await
}
