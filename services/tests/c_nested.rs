//! A component in C that calls another one, started by a manager in C that kills both.

#[path = "support/c.rs"]
mod c;

use std::path::Path;
use std::process::Command;

#[test]
fn locks_of_a_component_in_c_that_keeps_them_at_another_are_held_by_one_while_both_are_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The component below has the same interface by another name, so that a program can have stubs of both.
    let lock = own.join("interfaces/lock.glue");
    let text = std::fs::read_to_string(&lock).expect("an interface");
    let below = folder.path().join("below.glue");
    std::fs::write(&below, text.replace("lock_", "below_").replace("= lock,", "= below,")).expect("a file");
    for interface in [&lock, &below] {
        c::stubs(interface, &[], folder.path());
    }
    let built = |name: &str, stubs: &[&str]| {
        let output = folder.path().join(name);
        let stubs: Vec<_> = stubs.iter().map(|stub| folder.path().join(stub)).collect();
        let source = own.join("c").join(format!("{name}.c"));
        let sources: Vec<&Path> = [&source].into_iter().chain(&stubs).map(AsRef::as_ref).collect();
        c::compile("gcc", &[], folder.path(), &sources, &output);
        output
    };
    let above = built("above", &["lock_server.c", "below_client.c"]);
    let (manager, contenders) = (built("above_manager", &[]), c::client("contenders", "lock", None));
    let mut deaths = [0; 2];
    while deaths.iter().any(|deaths| *deaths < 15) {
        let mut command = Command::new(&manager);
        command.arg(env!("CARGO_BIN_EXE_outlast-service")).arg(&above).arg(&contenders.program).args(["6", "150"]);
        let said = command.output().expect("the manager");
        let errors = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{errors}");
        let text = String::from_utf8(said.stdout).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6 * 150 * 2);
        for turn in lines.chunks(2) {
            assert_eq!((&turn[0][..1], &turn[1][..1], &turn[0][1..]), ("+", "-", &turn[1][1..]), "two held it");
        }
        let counts = errors.lines().last().expect("how often they died").split(' ');
        for (all, count) in deaths.iter_mut().zip(counts) {
            *all += count.parse::<u32>().expect("a number");
        }
    }
    println!("{deaths:?} deaths");
}
