//! Services of systemd that a policy designates, as their packages have them: a real systemd starts, asks, and stops them.

mod support;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Home;

/// How long a system may take for all that it is to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until a command succeeds; what follows shows whether it did.
const AWAIT: &str =
    "await() { i=0; until eval \"$1\" >/dev/null 2>&1 || [ $i = 300 ]; do sleep 0.1; i=$((i+1)); done; }\n";

/// Ended, with all its processes, when dropped.
struct System {
    home: Home,
    first: Child,
}

impl System {
    /// Boots one in which `script` is a service that runs once, with these policies and files.
    fn boot(policy: &str, script: &str, files: &[(&str, &str)]) -> Option<Self> {
        // SAFETY: plain system call.
        if unsafe { libc::geteuid() } != 0 {
            println!("skipped: only root can start a system");
            return None;
        }
        let home = Home::new();
        for folder in ["system", "policy.d", "outcome"] {
            std::fs::create_dir(home.file(folder)).unwrap();
        }
        for (name, content) in files.iter().chain(&[("policy.d/test.toml", policy)]) {
            std::fs::write(home.file(name), content).unwrap();
        }
        let unit = "[Unit]\nRequires=outlast.service\nAfter=outlast.service\n[Service]\nType=oneshot\nExecStart=/bin/sh /run/outcome/script\n";
        std::fs::write(home.file("system/script.service"), unit).unwrap();
        std::fs::write(
            home.file("system/test.target"),
            "[Unit]\nWants=systemd-journald.service dbus.service script.service\n",
        )
        .unwrap();
        let script = format!("exec >/run/outcome/said 2>&1\n{AWAIT}{script}\ntouch /run/outcome/done\n");
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

/// What is said of a unit, in one line.
const SHOW: &str = "show() { systemctl show $1 -p NotifyAccess,OOMPolicy | sort | tr '\\n' ' '; echo; }\n";

#[test]
fn what_systemd_is_to_do_otherwise_it_is_told_while_a_policy_wants_it() {
    // With folders of its own (PrivateTmp), as most services have.
    let service = "[Service]\nType=notify\nPrivateTmp=yes\nTimeoutStartSec=20\nExecStart=/usr/local/bin/tells\n";
    let program = "#!/usr/bin/python3
import os, socket, time
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as said:
    said.sendto(b'READY=1', os.environ['NOTIFY_SOCKET'].replace('@', '\\0'))
time.sleep(1000)
";
    let script = "printf %s \"$PROGRAM\" >/usr/local/bin/tells; chmod 755 /usr/local/bin/tells
show tells.service
systemctl start tells; echo started $?
outlast ps | grep -c protected
show nginx.service
systemctl start nginx
await 'show nginx.service | grep continue'
show nginx.service
echo '# mine' >/run/systemd/system/tells.service.d/own.conf
rm /etc/outlast/policy.d/test.toml; systemctl reload outlast
await 'show nginx.service | grep stop'
show tells.service
show nginx.service
ls /run/systemd/system/*.d";
    let script = format!("PROGRAM=$(cat /run/outcome/program)\n{SHOW}{script}");
    let policy = "[[protect]]\nunit = \"tells.service\"\n[[protect]]\nexecutable = \"/usr/sbin/nginx\"\n";
    let files = [("system/tells.service", service), ("outcome/program", program)];
    let wanted = "NotifyAccess=all OOMPolicy=continue \nstarted 0\n1\nNotifyAccess=none OOMPolicy=stop \n\
        NotifyAccess=none OOMPolicy=continue \nNotifyAccess=main OOMPolicy=stop \nNotifyAccess=none OOMPolicy=stop \nown.conf\n";
    if let Some(system) = System::boot(policy, &script, &files) {
        assert_eq!(system.outcome(), wanted);
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
recovered() { outlast log nginx | grep -c recovered; }
for k in 1 2 3; do kill -9 $(pgrep -f 'nginx: worker' | head -n 1); await '[ $(recovered) = $k ]'; ask; done
for k in 4 5 6; do kill -9 $(cat /run/nginx.pid); await '[ $(recovered) = $k ]'; ask; done
systemctl reload nginx; echo reloaded $?
ask
kill -9 $(cat /run/nginx.pid)
await '[ $(recovered) = 7 ]'
ask
recovered
outlast log nginx | grep -c 'engine failed'
systemctl stop nginx; echo stopped $?
systemctl is-active nginx
ps -eo args | grep -c '[n]ginx'",
        &[],
    );
    let wanted = "started 0\n200 active\n200 active\n200 active\n200 active\n200 active\n200 active\n200 active\nreloaded 0\n200 active\n200 active\n7\n0\nstopped 0\ninactive\n0\n";
    if let Some(system) = system {
        assert_eq!(system.outcome(), wanted);
    }
}
