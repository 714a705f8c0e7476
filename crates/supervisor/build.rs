//! Builds the engine, a freestanding program with its own link step, so that the supervisor can embed it.
//!
//! `OUTLAST_ENGINE_ELF=PATH` embeds the file at PATH in place of it.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo:rerun-if-env-changed=OUTLAST_ENGINE_ELF");
    let elf = match std::env::var_os("OUTLAST_ENGINE_ELF") {
        Some(path) => {
            println!("cargo:rerun-if-changed={}", Path::new(&path).display());
            PathBuf::from(path)
        }
        None => build(&here, &out),
    };
    let target = out.join("engine.elf");
    std::fs::copy(&elf, &target).unwrap_or_else(|e| panic!("copy {} to {}: {e}", elf.display(), target.display()));
}

/// Runs cargo for the engine and returns the path of what it linked.
fn build(here: &Path, out: &Path) -> PathBuf {
    let crates = here.parent().expect("crates/supervisor has a parent");
    for source in ["engine", "store", "image", "calls", "filter", "rewrite"] {
        for part in ["src", "Cargo.toml", "Cargo.lock", "build.rs", "engine.ld"] {
            let path = crates.join(source).join(part);
            if path.exists() {
                println!("cargo:rerun-if-changed={}", path.display());
            }
        }
    }
    let target = out.join("engine");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--manifest-path"]).arg(crates.join("engine/Cargo.toml"));
    cargo.arg("--target-dir").arg(&target);
    if std::env::var_os("CARGO_FEATURE_MUTANTS").is_some() {
        cargo.args(["--features", "mutants"]);
    }
    // What cargo says about this build (flags, wrappers such as clippy's, features) is not about the engine's.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let kept = ["CARGO_HOME", "CARGO_MAKEFLAGS", "CARGO_NET_OFFLINE", "CARGO_TERM_COLOR"].contains(&name.as_str());
        if !kept && (name.starts_with("CARGO") || name.starts_with("RUSTC") || name.contains("RUSTFLAGS")) {
            cargo.env_remove(&name);
        }
    }
    let status = cargo.status().unwrap_or_else(|e| panic!("start cargo for the engine: {e}"));
    assert!(status.success(), "the engine does not build; OUTLAST_ENGINE_ELF=PATH embeds another one");
    target.join("release/outlast-engine")
}
