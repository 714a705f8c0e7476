//! An interactive shell on a terminal, protected with its jobs (`--tree`): the screen is the one that it would be without outlast.

mod support;

use std::process::Command;
use support::terminal::Terminal;
use support::{until, Home};

/// What is typed, once the shell asks for it or its job is in the foreground; and what the screen shows then.
enum Step {
    Line(&'static str, &'static str),
    /// A command that stays in the foreground, as its own process group, in which these programs run.
    Job(&'static str, &'static [&'static str]),
    /// A key for such a job, after which the shell asks again.
    Key(&'static str, &'static str),
}
use Step::*;

const SESSION: &[Step] = &[
    Line("echo a | cat | wc -c", "2\r\n"),
    Line("sleep 100 &", "[1] "),
    Line("jobs", "Running"),
    Job("fg", &["sleep"]),
    Key("\x1a", "Stopped"),
    Line("bg", "[1]"),
    Line("kill %1; wait %1; echo $?", "143\r\n"),
    Job("sleep 50", &["sleep"]),
    Key("\x03", "^C"),
    Line("echo $?", "130\r\n"),
    Job("(sleep 30 | cat)", &["sleep", "cat"]),
    Key("\x1a", "Stopped"),
    Line("jobs", "Stopped"),
    Job("fg", &["sleep", "cat"]),
    Key("\x03", "^C"),
    Line("(exit 4); echo $?", "4\r\n"),
];
const PROMPT: &str = "ready> ";

/// Does a program of this name run in the process group, not stopped? Before it does, a signal may meet what the shell has made to become it.
fn runs(group: i32, name: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    let wanted = format!("({name}) ");
    stats.into_iter().any(|stat| {
        let Some((_, rest)) = stat.split_once(&wanted) else { return false };
        // State, parent, group.
        let mut fields = rest.split(' ');
        fields.next() != Some("T") && fields.nth(1) == Some(&group.to_string())
    })
}

/// Goes through the session; the screen and how the shell ended.
fn go_through(mut shell: Command) -> (String, Option<i32>) {
    shell.env("PS1", PROMPT).env("TERM", "dumb");
    let mut terminal = Terminal::start(shell);
    terminal.await_text(PROMPT);
    let shell = terminal.foreground();
    for step in SESSION {
        match step {
            Line(line, shows) => {
                terminal.type_in(&format!("{line}\n"));
                terminal.await_text(&format!("{line}\r\n"));
                terminal.await_text(shows);
                terminal.await_text(PROMPT);
            }
            Job(line, programs) => {
                terminal.type_in(&format!("{line}\n"));
                until(&format!("{line} in the foreground"), || {
                    let group = terminal.foreground();
                    group != shell && programs.iter().all(|name| runs(group, name))
                });
            }
            Key(key, shows) => {
                terminal.type_in(key);
                terminal.await_text(shows);
                terminal.await_text(PROMPT);
            }
        }
    }
    terminal.type_in("exit 3\n");
    let status = terminal.end();
    terminal.await_text("exit 3\r\n");
    (terminal.shown(), status.code())
}

/// The screen without the process ids that the shell names.
fn without_ids(screen: &str) -> String {
    let is_id = |line: &&str| line.strip_prefix("[1] ").is_some_and(|rest| rest.trim().parse::<u32>().is_ok());
    screen.split('\n').map(|line| if is_id(&line) { "[1] ID\r" } else { line }).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_interactive_shell_controls_its_jobs() {
    let home = Home::new();
    let shell = ["bash", "--norc", "--noprofile", "-i"];
    let mut native = Command::new(shell[0]);
    native.args(&shell[1..]);
    let mut protected = home.outlast(["run", "--tree", "--name", "shell", "--"]);
    protected.args(shell);
    let native = go_through(native);
    let protected = go_through(protected);
    assert_eq!(without_ids(&protected.0), without_ids(&native.0));
    assert_eq!((protected.1, native.1), (Some(3), Some(3)));
    assert!(!home.log("shell").iter().any(|entry| entry["event"] == "degradation"), "{:#?}", home.log("shell"));
}
