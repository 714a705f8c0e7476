//! `outlast check` says beforehand what a program would meet.

mod support;

use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use support::{finish, said, Home};

/// The report, and the exit status.
fn check(home: &Home, args: &[&str]) -> (Value, i32) {
    let output = home.outlast(["check", "--json"]).args(args).output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)));
    (report, output.status.code().unwrap())
}

/// How it bears on protection: `kept`, `note`, `lost`, or null.
fn bearing<'r>(report: &'r Value, what: &str) -> &'r Value {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["what"] == what).map_or(&Value::Null, |finding| &finding["bearing"])
}

#[test]
fn a_program_is_killed_in_a_trial_and_nothing_is_left_of_it() {
    let home = Home::new();
    let (report, status) = check(&home, &["--", "sh", "-c", "exit 3"]);
    assert_eq!((bearing(&report, "trial"), bearing(&report, "program")), (&"kept".into(), &"kept".into()), "{report}");
    assert_eq!(report["whole"] == true, status == 0, "{report}");
    let left = home.outlast(["ps", "--all", "--json"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout).trim(), "[]");
}

#[test]
fn what_cannot_be_protected_is_said_beforehand() {
    let home = Home::new();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("privileged");
    fs::copy("/bin/true", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let (report, status) = check(&home, &["--", program.to_str().unwrap()]);
    assert_eq!((bearing(&report, "privileged-program"), status), (&"lost".into(), 1), "{report}");
    assert_eq!(home.outlast(["check", "--", "/no/such/program"]).output().unwrap().status.code(), Some(127));
    assert_eq!(home.outlast(["check", "0"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn a_loader_that_is_not_there_is_named() {
    let home = Home::new();
    let (source, program) = (home.file("source.c"), home.file("elsewhere"));
    fs::write(&source, "int main(void) { return 0; }").unwrap();
    let linker = "-Wl,--dynamic-linker=/no/such/loader.so";
    let built = Command::new("gcc").args([linker, "-o"]).arg(&program).arg(&source).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    let (report, status) = check(&home, &["--", program.to_str().unwrap()]);
    assert_eq!((bearing(&report, "loader"), status), (&"lost".into(), 1), "{report}");
    assert_eq!(bearing(&report, "program"), &Value::Null, "{report}");
    assert!(report.to_string().contains("/no/such/loader.so"), "{report}");
    let script = home.file("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let (report, _) = check(&home, &["--", script.to_str().unwrap()]);
    assert_eq!(bearing(&report, "loader"), "lost", "{report}");
}

#[test]
fn a_process_that_cannot_be_attached_to_is_told_why() {
    let home = Home::new();
    let (report, status) = check(&home, &[&std::process::id().to_string()]);
    assert_eq!((bearing(&report, "attach"), status), (&"lost".into(), 1), "{report}");
    assert!(report.to_string().contains("one of its parents"), "{report}");
}

#[test]
fn a_process_that_runs_is_looked_at() {
    let home = Home::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared");
    File::create(&path).unwrap().set_len(4096).unwrap();
    let script = "import mmap, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 4096); print(1, flush=True); input()";
    let mut child = Command::new("/usr/bin/python3")
        .args(["-c", script, path.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 2]).unwrap();
    let (report, status) = check(&home, &[&child.id().to_string()]);
    assert_eq!(bearing(&report, "shared-mapping"), "lost", "{report}");
    // Whoever looks has been asked whether it could be attached to, and by the same means.
    let allowed = home.outlast(["attach", &child.id().to_string(), "--name", "it"]).output().unwrap().status.success();
    assert_eq!(bearing(&report, "attach"), if allowed { "kept" } else { "lost" }, "{report}");
    assert_eq!((bearing(&report, "children"), status), (&Value::Null, 1), "{report}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_protected_program_tells_how_it_fares() {
    let home = Home::new();
    let door = home.door();
    let child = home.start_script("waiting", &door.wait());
    let pid = home.await_protected("waiting")["pid"].clone();
    let (report, status) = check(&home, &[&pid.to_string()]);
    assert_eq!((bearing(&report, "protected"), status), (&"kept".into(), 0), "{report}");
    assert_eq!(bearing(&report, "trial"), &Value::Null, "nobody else is killed for it");
    door.open();
    finish(child);
}
