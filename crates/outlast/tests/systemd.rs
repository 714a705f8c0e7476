//! Services of systemd that a policy designates, as their packages have them: a real systemd starts, asks, and stops them.

mod support;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Home;

/// How long a system may take for all that it is to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// Ended, with all its processes, when dropped.
struct System {
    home: Home,
    first: Child,
}

impl System {
    /// Boots one in which `script` is a service that runs once, with these policies.
    fn boot(policy: &str, script: &str) -> Option<Self> {
        // SAFETY: plain system call.
        if unsafe { libc::geteuid() } != 0 {
            println!("skipped: only root can start a system");
            return None;
        }
        let home = Home::new();
        for folder in ["system", "policy.d", "outcome"] {
            std::fs::create_dir(home.file(folder)).unwrap();
        }
        std::fs::write(home.file("policy.d/test.toml"), policy).unwrap();
        let unit = "[Unit]\nRequires=outlast.service\nAfter=outlast.service\n[Service]\nType=oneshot\nExecStart=/bin/sh /run/outcome/script\n";
        std::fs::write(home.file("system/script.service"), unit).unwrap();
        std::fs::write(
            home.file("system/test.target"),
            "[Unit]\nWants=systemd-journald.service dbus.service script.service\n",
        )
        .unwrap();
        let script = format!("exec >/run/outcome/said 2>&1\n{script}\ntouch /run/outcome/done\n");
        std::fs::write(home.file("outcome/script"), script).unwrap();
        let boot = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/systemd/boot");
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--mount", "--ipc", "--uts", "--net"])
            .arg(boot)
            .arg(home.path())
            .arg(env!("CARGO_BIN_EXE_outlast"));
        let said = std::fs::File::create(home.file("booting")).unwrap();
        unshare.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said);
        let first = unshare.process_group(0).spawn().unwrap();
        Some(Self { home, first })
    }

    /// What the script has said.
    fn outcome(mut self) -> String {
        let begun = Instant::now();
        let said = |name: &str| std::fs::read_to_string(self.home.file(name)).unwrap_or_default();
        while !self.home.file("outcome/done").exists() {
            let ended = self.first.try_wait().unwrap();
            let what = || format!("{}\n{}", said("booting"), said("outcome/said"));
            assert!(ended.is_none() && begun.elapsed() < PATIENCE, "{ended:?}: {}", what());
            std::thread::sleep(Duration::from_millis(20));
        }
        said("outcome/said")
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // With it the first process of its pid namespace ends, and so do all others.
        let _ = self.first.kill();
        let _ = self.first.wait();
        let remove = "mount -t cgroup2 cgroup2 /mnt && while ! find \"/mnt/$0\" -depth -type d -exec rmdir {} + ; do sleep 0.1; done";
        let name = self.home.path().file_name().unwrap();
        let removed = Command::new("timeout").args(["20", "unshare", "--mount", "sh", "-c", remove]).arg(name).output();
        drop(removed);
    }
}

/// A daemon of the old kind: its first process ends, and systemd watches the one whose number a file has.
#[test]
fn a_stock_nginx_service_is_protected_by_a_policy_alone() {
    let system = System::boot(
        "[[protect]]\nunit = \"nginx.service\"\nexecutable = \"/usr/sbin/nginx\"\ntree = true\n",
        "ask() { curl -s -o /dev/null -w '%{http_code} ' http://127.0.0.1/; systemctl is-active nginx; }
systemctl start nginx; echo started $?
ask
for i in 1 2 3; do kill -9 $(pgrep -f 'nginx: worker' | head -n 1); sleep 0.2; ask; done
systemctl reload nginx; echo reloaded $?
sleep 0.5
ask
kill -9 $(cat /run/nginx.pid)
sleep 0.5
ask
outlast log nginx | grep -c recovered
outlast log nginx | grep -c 'engine failed'
systemctl stop nginx; echo stopped $?
systemctl is-active nginx
ps -eo args | grep -c '[n]ginx'",
    );
    let wanted = "started 0\n200 active\n200 active\n200 active\n200 active\nreloaded 0\n200 active\n200 active\n4\n0\nstopped 0\ninactive\n0\n";
    if let Some(system) = system {
        assert_eq!(system.outcome(), wanted);
    }
}
