//! How the binaries are linked, whoever links them: cargo, cargo-lambda, or a container's build.
#![expect(clippy::disallowed_macros, reason = "cargo reads what is printed")]

fn main() {
    // At fixed addresses: the tables that would move a binary elsewhere are a tenth of it, and are worked through at each start.
    println!("cargo::rustc-link-arg-bins=-no-pie");
    println!("cargo::rerun-if-changed=build.rs");
}
