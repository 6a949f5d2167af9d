//! The linking of the binaries, the same for every builder: cargo, cargo-lambda, or a container's build.
#![expect(clippy::disallowed_macros, reason = "cargo reads the printed lines")]

fn main() {
    // At fixed addresses: the tables that would move a binary elsewhere are a tenth of it, and are worked through at each start. Not so the
    // binaries that the internet connects to, and those beside commands of strangers: there chance is worth more.
    for lambda in ["buildscale-api", "buildscale-worker", "buildscale-timer"] {
        println!("cargo::rustc-link-arg-bin={lambda}=-no-pie");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
