//! Tells tests whether plug-ins in Rust can be built here.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(wasm_target)");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked = Command::new(rustc).args(["--print", "target-libdir", "--target", "wasm32-unknown-unknown"]).output();
    let folder = asked.ok().and_then(|said| String::from_utf8(said.stdout).ok()).unwrap_or_default();
    let folder = Path::new(folder.trim());
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-changed=build.rs");
    if !folder.as_os_str().is_empty() && folder.exists() {
        println!("cargo::rustc-cfg=wasm_target");
    }
}
