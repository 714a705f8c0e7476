//! Programs that run already when policies come to designate them.

use super::*;
use std::path::PathBuf;

const NOBODY: u32 = 65534;

/// A daemon whose file other users may execute as well; it lies in the home that comes with it.
fn daemon(policy: &str) -> Option<(Home, Daemon)> {
    let home = Home::new();
    let copied = Command::new("/usr/bin/cp").arg(env!("CARGO_BIN_EXE_outlast")).arg(home.file("outlast")).status();
    assert!(copied.unwrap().success());
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let daemon = Daemon::begin_by(policy, &[home.file("outlast").to_str().unwrap().to_string()])?;
    Some((home, daemon))
}

/// What a process is, by the kernel's word.
fn field(pid: &serde_json::Value, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().into()
}

/// What outlast says, asked by whom the state folder belongs to.
fn asked(state: &Path, words: &[&str]) -> serde_json::Value {
    let owner = fs::metadata(state).map_or(0, |folder| folder.uid());
    let mut command = Command::new("/usr/bin/setpriv");
    let user = owner.to_string();
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", env!("CARGO_BIN_EXE_outlast")]).args(words);
    let output = command.env("OUTLAST_STATE_DIR", state).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// What `ps` shows of a program that was begun unprotected, when it is protected.
fn attached(daemon: &Daemon, state: &Path, name: &str) -> serde_json::Value {
    let mut last = serde_json::Value::Null;
    until(&format!("{name} is protected: {}", daemon.log()), || {
        let programs = asked(state, &["ps", "--json"]);
        last = programs.as_array().into_iter().flatten().find(|row| row["name"] == name).cloned().unwrap_or_default();
        last["protected"] == true
    });
    last
}

/// How modules protect a program.
fn settings(state: &Path, name: &str) -> String {
    let rows = asked(state, &["module", "list", name, "--json"]);
    let settings = rows.as_array().into_iter().flatten().map(|row| row["settings"].as_str().unwrap().to_string());
    settings.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_program_that_runs_already_is_attached_to_as_its_user() {
    let Some((_home, daemon)) = daemon("[[protect]]\nexecutable = \"$BIN/none\"\n") else { return };
    let (server, other) = (daemon.program(SHELL, "server"), daemon.program(SHELL, "other"));
    let state = daemon.home.file("of-user");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&state, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut of_user = daemon.command(&server);
    of_user.env("OUTLAST_STATE_DIR", &state).args(["-c", COUNTS]).uid(NOBODY).gid(NOBODY);
    let script = daemon.script("script", &format!("#!{SHELL}\n{COUNTS}"));
    let mut talks = [
        Conversation::with(daemon.command(&server).args(["-c", COUNTS])),
        Conversation::with(&mut of_user),
        Conversation::with(&mut daemon.command(&script)),
        Conversation::with(daemon.command(&other).args(["-c", COUNTS])),
    ];
    for talk in &mut talks {
        assert_eq!(talk.ask("a"), "1 a");
    }
    daemon.write("a.toml", "[[protect]]\nexecutable = \"$BIN/s*\"\nretries = 7\n");
    daemon.signal(libc::SIGHUP);
    for (n, (state, name)) in
        [(daemon.home.state(), "server"), (state.clone(), "server"), (daemon.home.state(), "script")].iter().enumerate()
    {
        let status = attached(&daemon, state, name);
        assert_eq!(status["pid"], talks[n].child.id());
        assert!(settings(state, name).starts_with("--retries 7"), "{}", settings(state, name));
        for what in ["Uid:", "Gid:", "Groups:", "CapBnd:"] {
            let [watches, runs] = ["supervisor", "pid"].map(|who| field(&status[who], what));
            assert_eq!(watches, runs, "{what}");
        }
        kill(&status["pid"], libc::SIGKILL);
        assert_eq!(talks[n].ask("b"), "2 b");
    }
    let user = attached(&daemon, &state, "server");
    assert_eq!(field(&user["supervisor"], "CapPrm:").trim_start_matches('0'), "");
    assert_eq!(runs(talks[3].child.id()), "other");
    assert!(!daemon.log().contains("/other:"), "{}", daemon.log());
    // Read once more, nothing is done to what is protected.
    let told = || daemon.log().matches("which ran already").count();
    until("all of them told of", || told() == 3);
    daemon.signal(libc::SIGHUP);
    until("the policies once more", || daemon.log().matches("1 policies").count() == 3);
    assert_eq!(talks[0].ask("c"), "3 c");
    assert_eq!(told(), 3, "{}", daemon.log());
    asked(&state, &["stop", "server", "--timeout", "1ms"]);
}

#[test]
fn a_program_that_was_left_alone_by_hand_stays_so_and_who_has_given_up_rights_is_told_of() {
    let Some((_home, daemon)) = daemon("[[protect]]\nexecutable = \"$BIN/none\"\n") else { return };
    let server = daemon.program(SHELL, "server");
    // Root, but without what root may do: its supervisor would have that.
    let mut weak = Command::new("/usr/bin/setpriv");
    weak.args(["--securebits", "+noroot", "--inh-caps", "-all"]).arg(&server).args(["-c", COUNTS]);
    weak.env("OUTLAST_STATE_DIR", daemon.home.state());
    let mut weak = Conversation::with(&mut weak);
    let mut by_hand = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!((weak.ask("a"), by_hand.ask("a")), ("1 a".into(), "1 a".into()));
    let pid = by_hand.child.id().to_string();
    let attach = daemon.home.outlast(["attach", &pid, "--name", "it"]).output().unwrap();
    assert!(attach.status.success(), "{}", said(&attach));
    let detach = daemon.home.outlast(["detach", "it"]).output().unwrap();
    assert!(detach.status.success(), "{}", said(&detach));
    daemon.write("a.toml", SERVER);
    daemon.signal(libc::SIGHUP);
    daemon.said(&format!("process {} runs unprotected, although", weak.child.id()));
    daemon.said("would have rights that it has not");
    assert!(!daemon.log().contains(&format!("process {pid}")), "{}", daemon.log());
    assert_eq!((weak.ask("b"), by_hand.ask("b")), ("2 b".into(), "2 b".into()));
}

#[test]
fn two_daemons_do_not_fight_over_a_program() {
    let of = |retries: u32| format!("[[protect]]\nexecutable = \"$BIN/server\"\nretries = {retries}\n");
    let Some((_home, first)) = daemon("[[protect]]\nexecutable = \"$BIN/none\"\n") else { return };
    let Some((_other, second)) = daemon("[[protect]]\nexecutable = \"$BIN/none\"\n") else { return };
    let (server, witness) = (first.program(SHELL, "server"), first.program(SHELL, "witness"));
    let mut talks = [&server, &witness].map(|program| Conversation::with(first.command(program).args(["-c", COUNTS])));
    for talk in &mut talks {
        assert_eq!(talk.ask("a"), "1 a");
    }
    first.write("a.toml", &of(4));
    first.signal(libc::SIGHUP);
    let state = first.home.state();
    attached(&first, &state, "server");
    // The other one has a program of its own there, which shows when it is through with both.
    let both = |retries: u32| {
        let path = first.home.file("bin");
        let of = |name: &str| format!("[[protect]]\nexecutable = \"{}/{name}\"\nretries = {retries}\n", path.display());
        of("server") + &of("witness")
    };
    for retries in [5, 6, 7] {
        second.write("a.toml", &both(retries));
        second.signal(libc::SIGHUP);
        attached(&second, &state, "witness");
        let expected = format!("--retries {retries}");
        until(&expected, || settings(&state, "witness").starts_with(&expected));
    }
    // The last but one reading is over by now, whatever it did first.
    assert!(settings(&state, "server").starts_with("--retries 4"), "{}", settings(&state, "server"));
    assert!(!second.log().contains("/server:"), "{}", second.log());
    first.write("a.toml", &of(9));
    first.signal(libc::SIGHUP);
    until("its own daemon's word", || settings(&state, "server").starts_with("--retries 9"));
    for talk in &mut talks {
        assert_eq!(talk.ask("b"), "2 b");
    }
}

/// A control group of a test's own, in the hierarchy by which units are known; gone with the value.
struct Group(PathBuf, String);

impl Group {
    /// None: there is none to be had here, as the test then says.
    fn make(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let place = |kind: &str, option: &str| {
            mounts.lines().find_map(|line| {
                let fields: Vec<_> = line.split(' ').collect();
                let is_it = fields[2] == kind && fields[3].split(',').any(|word| option.is_empty() || word == option);
                is_it.then(|| PathBuf::from(fields[1]))
            })
        };
        let top = place("cgroup2", "").or_else(|| place("cgroup", "name=systemd"));
        // One of the first version may have all of the processes, and the second then has none.
        let base = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").trim_end_matches('/');
        let name = format!("{base}/outlast-test-{}-{name}", std::process::id());
        let made = top.map(|top| top.join(&name[1..])).filter(|path| fs::create_dir(path).is_ok());
        if made.is_none() {
            println!("skipped: no control group can be made here");
        }
        made.map(|path| Self(path, name))
    }

    /// A program that begins there.
    fn command(&self, daemon: &Daemon, program: &Path) -> Command {
        let procs = std::ffi::CString::new(self.0.join("cgroup.procs").to_str().unwrap()).unwrap();
        let mut command = daemon.command(program);
        command.args(["-c", COUNTS]);
        // SAFETY: system calls only.
        unsafe {
            command.pre_exec(move || {
                let file = libc::open(procs.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                match libc::write(file, c"0".as_ptr().cast(), 1) {
                    1 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            })
        };
        command
    }

    fn members(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.join("cgroup.procs")).unwrap();
        text.lines().map(String::from).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for pid in self.members() {
            kill(&pid.parse::<i64>().unwrap().into(), libc::SIGKILL);
        }
        let began = std::time::Instant::now();
        while fs::remove_dir(&self.0).is_err() && began.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

#[test]
fn a_unit_or_a_control_group_alone_designates_what_begins_and_what_runs_there() {
    let Some((_home, daemon)) = daemon("[[protect]]\nexecutable = \"$BIN/none\"\n") else { return };
    let Some(unit) = Group::make("a.service") else { return };
    let Some(group) = Group::make("b") else { return };
    // Not where policies' executables lie: anywhere.
    let server = daemon.home.file("server");
    assert!(Command::new("/usr/bin/cp").arg(SHELL).arg(&server).status().unwrap().success());
    let mut before: Vec<_> =
        [&unit, &group].map(|group| Conversation::with(&mut group.command(&daemon, &server))).into_iter().collect();
    let mut outside = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    for talk in before.iter_mut().chain([&mut outside]) {
        assert_eq!(talk.ask("a"), "1 a");
    }
    let name = unit.1.rsplit('/').next().unwrap();
    let policy = format!("[[protect]]\nunit = \"{name}\"\n[[protect]]\ncgroup = \"{}\"\n", group.1);
    daemon.write("a.toml", &policy);
    daemon.signal(libc::SIGHUP);
    for talk in &before {
        daemon.said(&format!("process {}, which ran already, is protected", talk.child.id()));
    }
    for (n, group) in [&unit, &group].into_iter().enumerate() {
        let mut after = Conversation::with(&mut group.command(&daemon, &server));
        assert_eq!((after.ask("a"), runs(after.child.id())), ("1 a".into(), "outlast".into()));
        let all = daemon.home.outlast(["ps", "--json"]).output().unwrap();
        let all: serde_json::Value = serde_json::from_slice(&all.stdout).unwrap();
        let of = |pid: u32, who: &str| all.as_array().unwrap().iter().find(|row| row[who] == pid).cloned();
        let ran = of(before[n].child.id(), "pid").unwrap_or_else(|| panic!("{all}"));
        let begun = of(after.child.id(), "supervisor").unwrap_or_else(|| panic!("{all}"));
        for (status, talk) in [(&ran, &mut before[n]), (&begun, &mut after)] {
            let members = group.members();
            for who in ["pid", "supervisor", "anchor"] {
                assert!(members.contains(&status[who].to_string()), "{who} of {status} is elsewhere: {members:?}");
            }
            kill(&status["pid"], libc::SIGKILL);
            assert_eq!(talk.ask("b"), "2 b");
        }
    }
    let mut later = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!((later.ask("a"), runs(later.child.id())), ("1 a".into(), "server".into()));
    assert_eq!((outside.ask("b"), runs(outside.child.id())), ("2 b".into(), "server".into()));
    assert!(!daemon.log().contains("unprotected"), "{}", daemon.log());
}
