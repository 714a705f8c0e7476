//! Real containers: made by runc, with the namespaces, capabilities, filters of system calls and the read-only root that Docker gives one.

mod support;

use serde_json::{json, Value};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use support::{finish, said, until, Home};

/// Where it lies in a container: a folder there hides the one that it was built in, if that is below /tmp.
const OUTLAST: &str = "/mnt/outlast";
const KILLS: usize = 6;
/// Counts, and ends well when it is told to.
const COUNTER: &str = "import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print('bye', flush=True), sys.exit(7)))
i = 0
while True:
    print(i, flush=True)
    i += 1
    time.sleep(0.005)";

/// A container. It is gone with the value.
struct Container<'h> {
    home: &'h Home,
    name: String,
    child: Option<Child>,
}

impl<'h> Container<'h> {
    /// Begins one whose first process is this command.
    fn begin(home: &'h Home, command: &[&str]) -> Self {
        let name =
            format!("outlast-test-{}-{}", std::process::id(), home.path().file_name().unwrap().to_str().unwrap());
        let root = home.file("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(home.file("config.json"), configuration(&root, command).to_string()).unwrap();
        // What is mounted for it, nobody else sees.
        let script = "mount --rbind / root && exec runc --root runc run \"$1\"";
        let mut run = Command::new("unshare");
        run.args(["-m", "--propagation", "private", "sh", "-c", script, "sh", &name]).current_dir(home.path());
        let child = run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { home, name, child: Some(child) }
    }

    fn runc(&self, words: &[&str]) -> Output {
        Command::new("runc").args(["--root", "runc"]).args(words).current_dir(self.home.path()).output().unwrap()
    }

    /// Executes a command in it.
    fn execute(&self, command: &[&str]) -> Output {
        self.runc(&[&["exec", &self.name], command].concat())
    }

    /// Its first process, by the number that it has outside.
    fn first(&self) -> i64 {
        let mut first = 0;
        until("the container's first process", || {
            let states: Value = serde_json::from_slice(&self.runc(&["list", "-f", "json"]).stdout).unwrap_or_default();
            let state = states.as_array().and_then(|states| states.iter().find(|state| state["status"] == "running"));
            first = state.and_then(|state| state["pid"].as_i64()).unwrap_or(0);
            first != 0
        });
        first
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        self.runc(&["delete", "--force", &self.name]);
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }
}

/// As Docker's default is for a container without a network of its own.
fn configuration(root: &Path, command: &[&str]) -> Value {
    let capabilities = json!([
        "CAP_CHOWN",
        "CAP_DAC_OVERRIDE",
        "CAP_FSETID",
        "CAP_FOWNER",
        "CAP_MKNOD",
        "CAP_NET_RAW",
        "CAP_SETGID",
        "CAP_SETUID",
        "CAP_SETFCAP",
        "CAP_SETPCAP",
        "CAP_NET_BIND_SERVICE",
        "CAP_SYS_CHROOT",
        "CAP_KILL",
        "CAP_AUDIT_WRITE"
    ]);
    let refused = json!([
        "acct",
        "add_key",
        "bpf",
        "clock_adjtime",
        "clock_settime",
        "delete_module",
        "fanotify_init",
        "finit_module",
        "fsconfig",
        "fsmount",
        "fsopen",
        "fspick",
        "get_mempolicy",
        "init_module",
        "io_uring_enter",
        "io_uring_register",
        "io_uring_setup",
        "kcmp",
        "kexec_file_load",
        "kexec_load",
        "keyctl",
        "lookup_dcookie",
        "mbind",
        "mount",
        "mount_setattr",
        "move_mount",
        "move_pages",
        "open_by_handle_at",
        "open_tree",
        "perf_event_open",
        "pidfd_getfd",
        "pivot_root",
        "process_madvise",
        "quotactl",
        "reboot",
        "request_key",
        "set_mempolicy",
        "setdomainname",
        "sethostname",
        "setns",
        "settimeofday",
        "swapoff",
        "swapon",
        "umount2",
        "unshare",
        "userfaultfd",
        "vhangup"
    ]);
    let tmpfs = |at: &str, size: &str| {
        json!({"destination": at, "type": "tmpfs", "source": "tmpfs",
               "options": ["nosuid", "nodev", "mode=1777", format!("size={size}")]})
    };
    let built = Path::new(env!("CARGO_BIN_EXE_outlast")).parent().unwrap();
    json!({
        "ociVersion": "1.0.0",
        "root": {"path": root, "readonly": true},
        "process": {
            "args": command,
            "cwd": "/",
            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"],
            "user": {"uid": 0, "gid": 0},
            "capabilities": {"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
            {"destination": "/mnt", "type": "bind", "source": built, "options": ["bind", "ro"]},
            tmpfs("/dev/shm", "65536k"),
            tmpfs("/tmp", "65536k"),
        ],
        "linux": {
            "namespaces": [{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}],
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
            "seccomp": {
                "defaultAction": "SCMP_ACT_ALLOW",
                "architectures": ["SCMP_ARCH_X86_64"],
                "syscalls": [
                    {"names": refused, "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
                    {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
                ],
            },
        },
    })
}

fn python() -> String {
    PathBuf::from("/usr/bin/python3").display().to_string()
}

#[test]
fn the_first_process_of_a_container_protects_its_program() {
    let home = Home::new();
    let mut container = Container::begin(&home, &[OUTLAST, "run", "--name", "counts", "--", &python(), "-c", COUNTER]);
    let mut child = container.child.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut next = 0;
    for _ in 0..KILLS {
        for _ in 0..20 {
            assert_eq!(lines.next(), Some(next.to_string()));
            next += 1;
        }
        let ps = container.execute(&[OUTLAST, "ps", "--json"]);
        let programs: Value = serde_json::from_slice(&ps.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&ps)));
        let killed = container.execute(&["kill", "-KILL", &programs[0]["pid"].to_string()]);
        assert!(killed.status.success(), "{}", said(&killed));
    }
    let log = String::from_utf8(container.execute(&[OUTLAST, "log", "counts"]).stdout).unwrap();
    container.runc(&["kill", &container.name, "TERM"]);
    let rest: Vec<_> = lines.collect();
    let counted =
        rest.iter().take_while(|line| *line != "bye").enumerate().all(|(i, line)| *line == (next + i).to_string());
    assert!(counted && rest.last().is_some_and(|line| line == "bye"), "{rest:?}");
    let output = finish(child);
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    assert!(log.matches("recovered").count() >= KILLS - 1, "{log}");
}

#[test]
fn a_check_says_where_a_containers_processes_can_be_protected() {
    let home = Home::new();
    let container = Container::begin(&home, &["sh", "-c", "sleep 600 & wait"]);
    let first = container.first();
    for words in [["check", &first.to_string()], ["attach", &first.to_string()]] {
        let outside = home.outlast(words).output().unwrap();
        assert_eq!(outside.status.code(), Some(1), "{}", said(&outside));
        assert!(said(&outside).contains("(a container); run `outlast attach` there"), "{}", said(&outside));
    }
    let inside = container.execute(&[OUTLAST, "check", "--", &python(), "-c", "pass"]);
    // A filter without io_uring leaves a window.
    assert_eq!(inside.status.code(), Some(1), "{}", said(&inside));
    let lost: Vec<_> = said(&inside).lines().filter(|line| line.starts_with("lost")).map(String::from).collect();
    assert!(lost.len() == 1 && lost[0].contains("no-io-uring"), "{}", said(&inside));
    assert!(
        said(&inside).contains("without userfaultfd written pages are found by write protection"),
        "{}",
        said(&inside)
    );
    let refused = container.execute(&[OUTLAST, "attach", "1"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("first process of this machine or container"), "{}", said(&refused));
    let sleeper = container.execute(&["pidof", "sleep"]);
    let pid = String::from_utf8(sleeper.stdout).unwrap();
    let attached = container.execute(&[OUTLAST, "attach", pid.trim(), "--name", "sleeper"]);
    assert!(attached.status.success(), "{}", said(&attached));
    let ps = container.execute(&[OUTLAST, "ps"]);
    assert!(said(&ps).contains("protected"), "{}", said(&ps));
}
