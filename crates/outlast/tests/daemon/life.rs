//! The daemon itself: policies that are read again, what becomes of programs when it ends, is replaced or switched off, and whom it tells.

use super::*;

#[test]
fn policies_are_read_again_and_a_refused_file_changes_nothing() {
    let Some(daemon) = Daemon::begin("[[protect]]\nexecutable = \"$BIN/first\"\n") else { return };
    daemon.write("a.toml", "[[protect]]\nexecutable = \"$BIN/second\"\ncommit = \"visible\"\nretries = \"many\"\n");
    daemon.signal(libc::SIGHUP);
    daemon.said("a.toml:4: invalid value 'many' for 'retries");
    let protects = |name: &str| {
        let program = daemon.program(SHELL, name);
        let mut talk = Conversation::with(daemon.command(&program).args(["-c", COUNTS]));
        assert_eq!(talk.ask("a"), "1 a");
        runs(talk.child.id()) == "outlast"
    };
    assert!(protects("first") && !protects("second"));
    daemon.write("a.toml", "[[protect]]\nexecutable = \"$BIN/second\"\nretries = 5\n");
    daemon.signal(libc::SIGHUP);
    until("the new policy", || daemon.log().matches("1 policies").count() == 3);
    assert!(!protects("first") && protects("second"));
}

#[test]
fn programs_that_run_already_follow_policies_that_are_read_again() {
    let policy = |settings: &str| format!("[[protect]]\nexecutable = \"$BIN/server\"\n{settings}");
    let Some(daemon) = Daemon::begin(&policy("retries = 4\nhang = true")) else { return };
    let server = daemon.program(SHELL, "server");
    let mut of_user = daemon.command(&server);
    let user_state = daemon.home.file("of-user");
    fs::create_dir(&user_state).unwrap();
    fs::set_permissions(&user_state, fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&user_state, Some(65534), Some(65534)).unwrap();
    of_user.env("OUTLAST_STATE_DIR", &user_state).uid(65534).gid(65534);
    let mut talks = [
        Conversation::with(daemon.command(&server).args(["-c", COUNTS])),
        Conversation::with(of_user.args(["-c", COUNTS])),
    ];
    let by_hand =
        daemon.home.outlast(["run", "--name", "by-hand", "--", SHELL, "-c", COUNTS]).stdin(Stdio::piped()).spawn();
    daemon.home.await_protected("by-hand");
    let list = |state: &Path, name: &str| {
        let asks = ["module", "list", name, "--json"];
        let mut command = match state == user_state {
            true => daemon.home.outlast_by(65534, asks),
            false => daemon.home.outlast(asks),
        };
        command.env("OUTLAST_STATE_DIR", state);
        let rows: serde_json::Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap_or_default();
        let settings = rows.as_array().into_iter().flatten().map(|row| row["settings"].as_str().unwrap().to_string());
        settings.collect::<Vec<_>>().join(" ")
    };
    for (n, (settings, expected)) in [
        ("retries = 4\nhang = true", "--retries 4 --commit visible --hang --storm 5:1m"),
        ("retries = 6\nevery = \"30ms\"", "--retries 6 --commit visible --every 30ms --storm 5:1m"),
        ("server = true", "--retries 3 --commit visible --server --every auto --storm 5:1m"),
        ("modules = [\"crash\", \"visible\"]\ncommit = \"each\"", "--retries 3 --commit each"),
        ("modules = \"visible\"", "--commit visible"),
        ("", "--retries 3 --commit visible --every auto --storm 5:1m"),
    ]
    .into_iter()
    .enumerate()
    {
        daemon.write("a.toml", &policy(settings));
        daemon.signal(libc::SIGHUP);
        for state in [&daemon.home.state(), &user_state] {
            until(&format!("{expected} in {}", state.display()), || list(state, "server") == expected);
        }
        for talk in &mut talks {
            assert_eq!(talk.ask("a"), format!("{} a", n + 1));
        }
    }
    assert_eq!(list(&daemon.home.state(), "by-hand"), "--retries 3 --commit visible --every auto --storm 5:1m");
    kill(&daemon.home.await_protected("server")["pid"], libc::SIGKILL);
    assert_eq!(talks[0].ask("b"), "7 b");
    for talk in talks {
        assert_eq!(talk.end().code(), Some(3));
    }
    drop(by_hand);
}

#[test]
fn without_the_daemon_everything_runs_on_and_begins_as_ever() {
    let Some(mut daemon) = Daemon::begin(SERVER) else { return };
    let server = daemon.program(SHELL, "server");
    let mut talk = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!(talk.ask("a"), "1 a");
    daemon.kill();
    kill(&daemon.home.await_protected("server")["pid"], libc::SIGKILL);
    assert_eq!(talk.ask("b"), "2 b");
    let mut later = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!((later.ask("a"), runs(later.child.id())), ("1 a".into(), "server".into()));
}

#[test]
fn what_the_unit_leaves_the_daemon_is_enough() {
    let unit = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/outlast.service")).unwrap();
    let left = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).unwrap();
    let set: String =
        left.split(' ').map(|name| format!(",+{}", name.trim_start_matches("CAP_").to_lowercase())).collect();
    let words =
        ["/usr/bin/setpriv", "--no-new-privs", "--bounding-set", &format!("-all{set}"), env!("CARGO_BIN_EXE_outlast")]
            .map(String::from);
    let Some(daemon) = Daemon::begin_by("[[protect]]\nexecutable = \"$BIN/*\"\n", &words) else { return };
    daemon.said("oshang: watches");
    // Another kernel may show too little, but this user may see it.
    assert!(!daemon.log().contains("BPF is not allowed"), "{}", daemon.log());
    let server = daemon.program(SHELL, "server");
    let mut talk = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!(talk.ask("a"), "1 a");
    kill(&daemon.home.await_protected("server")["pid"], libc::SIGKILL);
    assert_eq!((talk.ask("b"), runs(talk.child.id())), ("2 b".into(), "outlast".into()));
    // A program of a user, who gains nothing and loses nothing.
    let privileged = daemon.program("/usr/bin/id", "privileged");
    fs::set_permissions(&privileged, fs::Permissions::from_mode(0o4755)).unwrap();
    let output = daemon.command(&privileged).arg("-u").uid(65534).gid(65534).output().unwrap();
    assert_eq!(output.stdout, b"0\n", "{}", said(&output));
}

#[test]
fn another_outlast_that_was_installed_takes_over_from_the_daemon() {
    let home = Home::new();
    let install = || {
        let (new, place) = (home.file("outlast.new"), home.file("outlast"));
        let copied = Command::new("/usr/bin/cp").arg(env!("CARGO_BIN_EXE_outlast")).arg(&new).status().unwrap();
        assert!(copied.success());
        fs::rename(&new, &place).unwrap();
        place
    };
    let place = install();
    let words = [place.to_str().unwrap().to_string()];
    let Some(daemon) = Daemon::begin_by(SERVER, &words) else { return };
    let server = daemon.program(SHELL, "server");
    let mut before = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!((before.ask("a"), runs(before.child.id())), ("1 a".into(), "outlast".into()));
    install();
    let mut talk = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!((talk.ask("a"), runs(talk.child.id())), ("1 a".into(), "server".into()));
    daemon.said("another outlast was installed");
    daemon.signal(libc::SIGHUP);
    let file = fs::metadata(&place).unwrap();
    until("the other daemon", || daemon.executable() == (file.dev(), file.ino()));
    until("its policies", || daemon.log().matches("1 policies").count() == 2);
    let mut talk = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!((talk.ask("a"), runs(talk.child.id())), ("1 a".into(), "outlast".into()));
    kill(&daemon.home.await_protected("server")["pid"], libc::SIGKILL);
    assert_eq!(before.ask("b"), "2 b");
}

#[test]
fn a_daemon_that_is_told_to_end_takes_nothing_with_it_that_begins_just_then() {
    for moment in [0, 3, 7, 13, 29] {
        let Some(mut daemon) = Daemon::begin(SERVER) else { return };
        let server = daemon.program(SHELL, "server");
        let start =
            |n: usize| daemon.command(&server).args(["-c", &format!("echo {n}")]).stdout(Stdio::piped()).spawn();
        let mut children = Vec::new();
        for n in 0..30 {
            children.push(start(n).unwrap());
            if n == moment {
                daemon.signal(libc::SIGTERM);
            }
        }
        for (n, child) in children.into_iter().enumerate() {
            let output = support::finish(child);
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{n}\n"), "{}", said(&output));
        }
        assert_eq!(daemon.ended().code(), Some(0));
    }
}

#[test]
fn switched_off_it_lets_all_be() {
    let Some(daemon) = Daemon::begin(SERVER) else { return };
    let server = daemon.program(SHELL, "server");
    let mut before = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!(before.ask("a"), "1 a");
    fs::write(daemon.home.file("off"), "").unwrap();
    let mut talk = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!((talk.ask("a"), runs(talk.child.id())), ("1 a".into(), "server".into()));
    fs::remove_file(daemon.home.file("off")).unwrap();
    let mut talk = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!((talk.ask("a"), runs(talk.child.id())), ("1 a".into(), "outlast".into()));
    kill(&daemon.home.await_protected("server")["pid"], libc::SIGKILL);
    assert_eq!(before.ask("b"), "2 b");
}

#[test]
fn a_manager_of_services_is_told() {
    let Some(daemon) = Daemon::begin(SERVER) else { return };
    let home = Home::new();
    fs::create_dir(home.file("policies")).unwrap();
    let path = home.file("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let mut process = spawn(&home, &[("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "300000")]);
    let told = |what: &str| loop {
        let mut text = [0; 256];
        let len = match socket.recv(&mut text) {
            // By the end of another test's child.
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            other => other.unwrap_or_else(|e| panic!("not told {what}: {e}")),
        };
        if String::from_utf8_lossy(&text[..len]).lines().any(|line| line.starts_with(what)) {
            return;
        }
    };
    told("READY=1");
    told("WATCHDOG=1");
    told("WATCHDOG=1");
    process.signal(libc::SIGHUP);
    told("RELOADING=1");
    told("READY=1");
    process.signal(libc::SIGTERM);
    told("STOPPING=1");
    assert_eq!(process.0.wait().unwrap().code(), Some(0));
    drop(daemon);
}

#[test]
fn who_cannot_watch_is_told_what_to_do_instead() {
    let Some(daemon) = Daemon::begin(SERVER) else { return };
    let lock = daemon.home.file("lock");
    let mut command = daemon.home.outlast(["daemon"]);
    let output = command.arg("--policies").arg(daemon.home.file("policies")).arg("--lock").arg(&lock).output().unwrap();
    assert!(output.status.code() == Some(1) && said(&output).contains("another outlast daemon"), "{}", said(&output));
    let copy = daemon.program(env!("CARGO_BIN_EXE_outlast"), "outlast");
    let output = Command::new(&copy).args(["daemon", "--lock", "/dev/null"]).uid(65534).gid(65534).output().unwrap();
    assert!(output.status.code() == Some(1) && said(&output).contains("needs root"), "{}", said(&output));
}

#[test]
fn the_journal_is_told_of_designated_programs_unless_the_policy_says_otherwise() {
    const TOLD: &str =
        "[[protect]]\nexecutable = \"$BIN/told\"\nstorm = \"1:10m\"\nalert = [\"/usr/bin/touch\", \"$BIN/alerted\"]\n
[[protect]]\nexecutable = \"$BIN/quiet\"\njournal = false\n";
    if Daemon::begin(SERVER).is_none() {
        return;
    }
    let home = Home::new();
    fs::create_dir_all(home.file("policies")).unwrap();
    fs::create_dir_all(home.file("bin")).unwrap();
    let bin = home.file("bin");
    fs::write(home.file("policies/a.toml"), TOLD.replace("$BIN", bin.to_str().unwrap())).unwrap();
    let path = home.file("journal");
    let journal = UnixDatagram::bind(&path).unwrap();
    journal.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let variable = ("OUTLAST_JOURNAL_SOCKET", path.to_str().unwrap());
    let process = spawn(&home, &[variable]);
    until("policies that are read", || {
        fs::read_to_string(home.file("daemon.log")).is_ok_and(|said| said.contains("policies"))
    });
    let next = |event: &str| loop {
        let mut bytes = [0; 65_536];
        let read = journal.recv(&mut bytes).unwrap_or_else(|e| panic!("no {event}: {e}"));
        let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
        assert!(!text.contains("OUTLAST_NAME=quiet"), "{text}");
        if text.lines().any(|line| line == format!("OUTLAST_EVENT={event}")) {
            return text;
        }
    };
    let mut talks = Vec::new();
    for name in ["quiet", "told"] {
        let program = bin.join(name);
        // By another process: what this one has open for writing its children would have open, too.
        assert!(Command::new("/usr/bin/cp").arg(SHELL).arg(&program).status().unwrap().success());
        let mut command = Command::new(&program);
        command.args(["-c", COUNTS]).env("OUTLAST_STATE_DIR", home.state()).env(variable.0, variable.1);
        let mut talk = Conversation::with(&mut command);
        assert_eq!(talk.ask("one"), "1 one");
        let told = next("protected");
        assert!(
            told.contains("OUTLAST_POLICY=") && told.contains(&format!("OUTLAST_PID={}", talk.child.id())),
            "{told}"
        );
        for n in 2..4 {
            kill(&home.await_protected(name)["pid"], libc::SIGKILL);
            assert_eq!(talk.ask("on"), format!("{n} on"));
        }
        talks.push(talk);
    }
    assert!(next("recovered").contains("OUTLAST_NAME=told"));
    assert!(next("storm").contains("PRIORITY=2"));
    until("the alert", || bin.join("alerted").exists());
    for talk in talks {
        assert_eq!(talk.end().code(), Some(3));
    }
    fs::write(home.file("policies/b.toml"), "[[protect]]\nexecutable = 7\n").unwrap();
    process.signal(libc::SIGHUP);
    let refused = next("policy-refused");
    assert!(refused.contains("b.toml:2") && refused.contains("PRIORITY=3"), "{refused}");
}
