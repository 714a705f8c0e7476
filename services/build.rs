//! Has glue write the stubs of every interface, and once more without each mechanism, for the tests that show what it is for, and
//! without any tracking, for comparison.

use std::path::Path;

use outlast_glue::{diagnostic, rust, understand, Interface, Mechanism};

fn main() {
    println!("cargo::rerun-if-changed=interfaces");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    for entry in std::fs::read_dir("interfaces").expect("interfaces is a folder") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("an interface");
        let (interface, diagnostics) = understand(&text);
        eprint!("{}", diagnostic::render(&path.to_string_lossy(), &text, &diagnostics, false));
        let interface: Interface = interface.expect("an interface without errors");
        let source = path.file_name().expect("a name").to_string_lossy().into_owned();
        let write = |suffix: &str, without: &[Mechanism]| {
            let stubs = rust::generate(&interface, &source, without);
            let name = format!("{}{suffix}.rs", interface.service);
            std::fs::write(Path::new(&out).join(name), stubs).expect("OUT_DIR can be written");
        };
        write("", &[]);
        let untracked = rust::generate_untracked(&interface, &source);
        let name = format!("{}_untracked.rs", interface.service);
        std::fs::write(Path::new(&out).join(name), untracked).expect("OUT_DIR can be written");
        for mechanism in interface.mechanisms() {
            write(&format!("_without_{mechanism:?}").to_lowercase(), &[mechanism]);
        }
    }
}
