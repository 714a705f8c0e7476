//! Programs in C, built as their authors would: stubs from glue, a compiler, the library.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_glue::{c, understand, Mechanism};
use tempfile::TempDir;

/// A program, for as long as this lives.
pub struct Built {
    pub program: PathBuf,
    _folder: TempDir,
}

const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/glue-c");
pub const STRICT: [&str; 5] = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2"];

/// The library, which cargo builds before this test, beside it.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    test.with_file_name("liboutlast_glue_c.a")
}

/// Writes the stubs of a service's interface.
pub fn stubs(interface: &Path, without: &[Mechanism], folder: &Path) {
    let name = interface.file_name().expect("a file").to_string_lossy();
    let text = std::fs::read_to_string(interface).expect("an interface");
    let interface = understand(&text).0.expect("an interface without errors");
    for file in c::generate(&interface, &name, without) {
        std::fs::write(folder.join(file.name), file.text).expect("a folder that can be written");
    }
}

fn build(compiler: &str, program: &str, service: &str, side: &str, without: &[Mechanism]) -> Built {
    let folder = tempfile::tempdir().expect("a folder");
    let interfaces = Path::new(env!("CARGO_MANIFEST_DIR")).join("interfaces");
    stubs(&interfaces.join(format!("{service}.glue")), without, folder.path());
    let output = folder.path().join(program);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join(format!("{program}.c"));
    let stub = folder.path().join(format!("{service}_{side}.c"));
    compile(compiler, &[], folder.path(), &[&source, &stub], &output);
    Built { program: output, _folder: folder }
}

/// A program with the library.
pub fn compile(compiler: &str, options: &[&str], includes: &Path, sources: &[&Path], output: &Path) {
    let said = Command::new(compiler)
        .args(STRICT)
        .args(options)
        .args(["-pthread", "-I", HEADERS, "-I"])
        .arg(includes)
        .args(sources)
        .arg(library())
        .args(["-ldl", "-lm", "-o"])
        .arg(output)
        .output()
        .expect("a compiler");
    assert!(said.status.success(), "{compiler} {sources:?}: {}", String::from_utf8_lossy(&said.stderr));
}

/// A client of a service, with stubs that may lack a mechanism.
pub fn client(program: &str, service: &str, without: Option<Mechanism>) -> Built {
    build("gcc", program, service, "client", &without.into_iter().collect::<Vec<_>>())
}

/// A service as a component.
pub fn component(service: &str, without: Option<Mechanism>) -> Built {
    build("clang", service, service, "server", &without.into_iter().collect::<Vec<_>>())
}
