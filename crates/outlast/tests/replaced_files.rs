//! Files that a program maps are replaced and removed by others, as an upgrade does with its libraries, and then it dies.

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{finish, kill, kill_everything, said, until, Home};

struct Setting {
    home: Home,
    child: Child,
    /// What `ps` said when all was well.
    first: Value,
}

impl Setting {
    fn library(&self) -> PathBuf {
        self.home.file("library.so")
    }

    fn data(&self) -> PathBuf {
        self.home.file("data")
    }

    fn open_door(&self, number: u32) {
        std::fs::write(self.home.file(&format!("door{number}")), "").unwrap();
    }

    /// Another version of the library takes the place of the one in use, and the file is removed.
    fn upgrade(&self) {
        std::fs::rename(self.home.file("newer.so"), self.library()).unwrap();
        std::fs::remove_file(self.data()).unwrap();
    }

    /// Waits until the anchor keeps both files: maps them, or has them open as one that the program has alone.
    fn await_kept(&self) {
        let anchor = format!("/proc/{}", self.first["anchor"]);
        until("files kept by the anchor", || {
            let maps = std::fs::read_to_string(format!("{anchor}/maps")).unwrap_or_default();
            let open = std::fs::read_dir(format!("{anchor}/fd")).into_iter().flatten().flatten();
            let open: Vec<_> = open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect();
            [self.library(), self.data()]
                .iter()
                .all(|path| maps.contains(path.to_str().unwrap()) || open.contains(path))
        });
    }

    /// The program has gone on with its own library and its own file.
    fn finish(self) -> Home {
        self.open_door(1);
        self.open_door(2);
        let output = finish(self.child);
        let log = self.home.log("user");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "101 7\n102 8\n103 9\n", "{} {log:#?}", said(&output));
        assert!(output.status.success(), "{}", said(&output));
        assert!(!log.iter().any(|entry| entry["cause"] == "mapping-lost"), "{log:#?}");
        self.home
    }
}

fn build(output: &Path, source: &str, options: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replaced_files").join(source);
    let built =
        Command::new("gcc").args(["-O1", "-Wall", "-o"]).arg(output).arg(source).args(options).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
}

fn start() -> Setting {
    let home = Home::new();
    build(&home.file("library.so"), "library.c", &["-shared", "-fPIC", "-DVERSION=1"]);
    build(&home.file("newer.so"), "library.c", &["-shared", "-fPIC", "-DVERSION=2"]);
    build(&home.file("user"), "user.c", &["-ldl"]);
    let mut data = [0u8; 8192];
    data[4096] = 7;
    std::fs::write(home.file("data"), data).unwrap();
    let mut command = home.outlast(["run", "--name", "user", "--"]);
    command.args(["user", "library.so", "data", "door"].map(|name| home.file(name)));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let first = home.await_status("user", |status| status["protected"] == true && status["anchor"].is_i64());
    Setting { home, child, first }
}

#[test]
fn a_killed_program_has_its_files_back() {
    let setting = start();
    setting.await_kept();
    setting.upgrade();
    kill(&setting.first["pid"], libc::SIGKILL);
    setting.home.await_event("user", "recovered", 1);
    setting.open_door(1);
    // And once more, from the same anchor, which lets go of what two looks, a second apart, have not found in the program.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let second = setting.home.await_protected("user");
    kill(&second["pid"], libc::SIGKILL);
    setting.home.await_event("user", "recovered", 2);
    setting.finish();
}

#[test]
fn a_program_that_is_rolled_back_has_its_files_back() {
    let setting = start();
    setting.await_kept();
    setting.upgrade();
    kill(&setting.first["pid"], libc::SIGSEGV);
    setting.home.await_event("user", "rollback", 1);
    setting.finish();
}

#[test]
fn another_anchor_keeps_them_too() {
    let setting = start();
    setting.await_kept();
    setting.upgrade();
    kill(&setting.first["anchor"], libc::SIGKILL);
    let renewed = setting.home.await_status("user", |status| {
        status["anchor"].is_i64() && status["anchor"] != setting.first["anchor"] && status["protected"] == true
    });
    kill(&renewed["pid"], libc::SIGKILL);
    setting.home.await_event("user", "recovered", 1);
    setting.finish();
}

#[test]
fn without_a_file_nothing_is_resumed_and_nothing_lost() {
    let mut setting = start();
    let (library, aside) = (setting.library(), setting.home.file("aside.so"));
    kill_everything(&setting.first);
    std::fs::rename(&library, &aside).unwrap();
    std::fs::rename(setting.home.file("newer.so"), &library).unwrap();
    setting.child.wait().unwrap();
    let refused = setting.home.outlast(["resume", "user"]).output().unwrap();
    let text = said(&refused);
    assert!(!refused.status.success() && text.contains(library.to_str().unwrap()), "{text}");
    std::fs::rename(&aside, &library).unwrap();
    setting.open_door(1);
    setting.open_door(2);
    let resumed = setting.home.outlast(["resume", "user"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&resumed.stdout), "102 8\n103 9\n", "{}", said(&resumed));
}
