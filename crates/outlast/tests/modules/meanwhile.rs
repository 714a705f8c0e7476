//! Whatever dies, stops or becomes another program while a module is added, removed or told otherwise.

use super::*;

#[test]
fn a_supervisor_that_dies_meanwhile_leaves_the_old_or_the_new() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    let mut seed = 71;
    for n in 1..=25 {
        let child = begin(&home, &format!("add crash it --retries {n}"));
        pause(&mut seed);
        let status = home.status("it");
        if status["supervisor"].as_i64().is_some() {
            kill(&status["supervisor"], libc::SIGKILL);
        }
        let output = finish(child);
        assert!(output.status.success(), "round {n}: {}", said(&output));
        until("a supervisor", || home.status("it")["supervisor"].as_i64().is_some());
        assert_eq!(settings(&home, "it")[0], format!("crash --retries {n}"));
        it.say("x += 1");
    }
    assert_eq!(it.ask("x"), "25");
    let expected: Vec<_> = (1..=25)
        .map(|n| format!("crash: --retries {n}, --retries {} before", if n == 1 { 3 } else { n - 1 }))
        .collect();
    assert_eq!(changes(&home, "it"), expected);
}

#[test]
fn a_program_that_dies_meanwhile_is_recovered_and_the_change_is_made() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    let mut seed = 73;
    for n in 1..=40 {
        let words = match n % 4 {
            0 => "add visible it --commit each".to_string(),
            1 => format!("add checkpoint it --every {}ms", n + 5),
            2 => "remove visible it".into(),
            _ => "add visible it --commit visible".into(),
        };
        it.say("x += 1");
        let pid = home.await_protected("it")["pid"].clone();
        let child = begin(&home, &words);
        pause(&mut seed);
        kill(&pid, libc::SIGKILL);
        let output = finish(child);
        assert!(output.status.success() && output.stderr.is_empty(), "round {n}, {words}: {}", said(&output));
        home.await_event("it", "recovered", n);
        assert_eq!(it.ask("x"), n.to_string(), "round {n}");
    }
}

#[test]
fn whoever_dies_meanwhile_and_whatever_else_goes_on_the_change_is_made_or_not() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    let mut seed = 79;
    for n in 1..=24 {
        it.say("x += 1");
        let status = home.await_protected("it");
        let words = format!("add crash it --retries {}", n + 10);
        let mut commands =
            vec![begin(&home, &words), begin(&home, "add visible it"), begin(&home, "remove visible it")];
        if n % 4 == 0 {
            let mut upgrade = home.outlast(["upgrade", "it"]);
            commands.push(upgrade.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        }
        pause(&mut seed);
        for process in [&["pid", "supervisor"][..], &["supervisor", "pid"], &["anchor", "pid"], &["pid"]][n % 4] {
            kill(&status[*process], libc::SIGKILL);
        }
        let outputs: Vec<Output> = commands.into_iter().map(finish).collect();
        assert!(outputs[0].status.success(), "round {n}: {}", said(&outputs[0]));
        assert_eq!(it.ask("x"), n.to_string(), "round {n}: {:#?}", home.log("it"));
        until("a supervisor", || home.status("it")["supervisor"].as_i64().is_some());
        assert_eq!(settings(&home, "it")[0], format!("crash --retries {}", n + 10), "round {n}");
        done(&home, "add visible it");
    }
}

#[test]
fn whoever_resumes_after_everything_died_meanwhile_finds_the_old_or_the_new() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &["--every", "never"]);
    let (mut seed, mut found) = (83, [0, 0]);
    // On a busy machine a command is begun later than everything has died: then further rounds wait longer.
    for n in 1..=240 {
        if n > 24 && found[0] > 0 {
            break;
        }
        it.say("x += 1");
        assert_eq!(it.ask("x"), n.to_string(), "round {n}");
        let status = home.await_protected("it");
        let had = settings(&home, "it").iter().any(|module| module.starts_with("visible"));
        let child = begin(&home, if had { "remove visible it" } else { "add visible it" });
        for _ in 0..=n / 24 {
            pause(&mut seed);
        }
        kill_everything(&status);
        // It may say either, or that nobody was there any more.
        let output = finish(child);
        let _ = it.end();
        let mut resume = home.outlast(["resume", "it"]);
        it = Obedient::begin(&home, "it", &mut resume);
        it.told = 100 * n;
        until("life", || home.status("it")["protected"] == true);
        let has = settings(&home, "it").iter().any(|module| module.starts_with("visible"));
        assert!(!output.status.success() || has != had, "round {n}: {} and has it: {has}", said(&output));
        found[usize::from(has == had)] += 1;
        // What the engine does is what it is said to do, from the first moment on that it is asked.
        let commits = || home.status("it")["commits"].as_u64().unwrap();
        it.ask("0");
        let before = commits();
        for _ in 0..5 {
            it.ask("0");
        }
        let made = commits() - before;
        assert!(if has { made >= 5 } else { made == 0 }, "round {n}: {made} commits, has it: {has}");
        // Without commits before outputs the state is the last commit's.
        let output = home.outlast(["commit", "it"]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    assert!(found[0] > 0, "the change was never made, and {} times not", found[1]);
}

#[test]
fn what_was_wished_of_a_program_that_is_over_is_none_of_the_next_one_of_its_name() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    // The supervisor stands still, and whoever wished something of it has gone before there is an answer.
    let status = home.await_protected("it");
    kill(&status["supervisor"], libc::SIGSTOP);
    let mut child = begin(&home, "add crash it --retries 9");
    until("the wish", || home.state().join("it/change").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let wish = std::fs::read(home.state().join("it/change")).unwrap();
    kill(&status["supervisor"], libc::SIGCONT);
    until("the change", || settings(&home, "it")[0] == "crash --retries 9");
    it.say("x = 1");
    assert_eq!(it.end().status.code(), Some(0));
    std::fs::write(home.state().join("it/change"), wish).unwrap();
    let mut it = Obedient::start(&home, "it", &[]);
    it.say("x = 2");
    assert_eq!((it.ask("x"), settings(&home, "it")[0].as_str()), ("2".into(), "crash --retries 3"));
    assert_eq!(changes(&home, "it"), [] as [String; 0]);
    assert_eq!(it.end().status.code(), Some(0));
}

#[test]
fn a_program_that_becomes_others_meanwhile_stays_protected_as_is_wished() {
    let home = Home::new();
    let script = "import os, sys, time
n = int(sys.argv[1])
print(n, flush=True)
time.sleep(0.02)
if n < 120: os.execv('/usr/bin/python3', ['python3', '-S', '-E', '-c', os.environ['SCRIPT'], str(n + 1)])
";
    let mut run = home.outlast(["run", "--name", "it", "--", "/usr/bin/python3", "-c", script, "0"]);
    let child = run.env("SCRIPT", script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    home.await_status("it", |status| status["pid"].as_i64().is_some());
    let mut made = 0;
    for n in 1..=40 {
        let output = module(&home, &format!("add crash it --retries {n}"));
        if output.status.success() {
            made += 1;
            let list = module(&home, "list it --json");
            assert!(said(&list).contains(&format!("--retries {n}\"")), "{}", said(&list));
        } else {
            // It has come to its end, or is just not to be had.
            assert!(
                said(&output).contains("does not run") || said(&output).contains("not protected"),
                "{}",
                said(&output)
            );
        }
    }
    assert!(made >= 10, "{made} changes were made");
    let output = finish(child);
    let expected: String = (0..=120).map(|n| format!("{n}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{:?}", home.events("it"));
}

#[test]
fn a_program_that_is_stopped_is_to_be_continued_first() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    let status = home.await_protected("it");
    kill(&status["pid"], libc::SIGSTOP);
    until("the supervisor's stop", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", status["supervisor"])).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
    });
    let output = module(&home, "add crash it --retries 1");
    assert!(output.status.code() == Some(1) && said(&output).contains("is stopped"), "{}", said(&output));
    kill(&status["pid"], libc::SIGCONT);
    done(&home, "add crash it --retries 1");
    it.say("ctypes.string_at(0)");
    home.await_event("it", "exit", 1);
    assert_eq!(count(&home, "rollback"), 1);
}
