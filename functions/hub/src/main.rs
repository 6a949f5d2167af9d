//! The binary `buildscale`: the hub and its command line.

use buildscale_hub::program;
use std::process::ExitCode;

fn main() -> ExitCode {
    // This program also makes the namespaces of commands; such a process has one thread.
    sandbox::enter();
    // It converts documents, too, each in a process with one thread at its start.
    sandbox::convert_if_asked(|name, content, output| {
        ingest::convert(name, content, ingest::Budget { output, ..ingest::Budget::default() })
    });
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    // TLS is built without a provider of its own, so that the hub needs neither a C compiler's assembler nor OpenSSL.
    // Somebody may have chosen before; then theirs is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    program::main().await
}
