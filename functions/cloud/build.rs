//! How the binaries are linked, whoever links them: cargo, cargo-lambda, or a container's build.
#![expect(clippy::disallowed_macros, reason = "cargo reads what is printed")]

fn main() {
    // At fixed addresses: the tables that would move a binary elsewhere are a tenth of it, and are worked through at each start. Not
    // so what the internet connects to, and what runs beside commands of strangers: there chance is worth more.
    for lambda in ["buildscale-api", "buildscale-worker", "buildscale-timer"] {
        println!("cargo::rustc-link-arg-bin={lambda}=-no-pie");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
