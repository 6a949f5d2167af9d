//! The binary `buildscale`: the hub and its command line.

mod program;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    // TLS is built without a provider of its own, so that the hub needs neither a C compiler's assembler nor OpenSSL.
    // Somebody may have chosen before; then theirs is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    program::main().await
}
