//! A protected program of the guest, and what is seen of it.

use super::group::Group;
use super::{expect, User};
use crate::shell::Shell;
use serde_json::Value;
use std::error::Error;

/// Started with a pipe for its input, which stays open, and one for its output.
pub struct Program {
    name: String,
    user: User,
}

impl Program {
    /// `outlast run OPTIONS -- COMMAND` in a group.
    pub fn start(
        shell: &mut Shell,
        name: &str,
        user: User,
        group: &Group,
        options: &str,
        command: &str,
    ) -> Result<Program, Box<dyn Error>> {
        let program = Program { name: name.into(), user };
        let room = program.room();
        shell.ask(&format!(
            "mkdir {room} && cd {room} && mkfifo door && touch told err && chown -R {0}:{0} .",
            program.id()
        ))?;
        shell.ask(&format!("exec sleep 1000000 <>{room}/door >/dev/null 2>&1 & echo $! >{room}/holder"))?;
        program.begin(shell, group, &format!("run --name {name} {options} -- {command}"), "door")?;
        Ok(program)
    }

    /// `outlast resume` in a group; there is no more input.
    pub fn resume(&self, shell: &mut Shell, group: &Group) -> Result<(), Box<dyn Error>> {
        self.begin(shell, group, &format!("resume {}", self.name), "/dev/null")
    }

    fn begin(&self, shell: &mut Shell, group: &Group, words: &str, input: &str) -> Result<(), Box<dyn Error>> {
        let (room, outlast) = (self.room(), self.outlast());
        // The pipe's end is the end of everybody who could still say something.
        let run =
            format!("(echo 0 >{}/cgroup.procs; exec {outlast} {words} <{input} 2>>err); echo $? >part", group.path());
        shell.ask(&format!(
            "cd {room} && rm -f status && {{ ({run}) | cat >>told; mv part status; }} >/dev/null 2>&1 &"
        ))?;
        Ok(())
    }

    /// Gives the program a line to read.
    pub fn enter(&self, shell: &mut Shell) -> Result<(), Box<dyn Error>> {
        shell.ask(&format!("echo >{}/door", self.room())).map(drop)
    }

    /// Has the program's input end.
    pub fn close(&self, shell: &mut Shell) -> Result<(), Box<dyn Error>> {
        shell.ask(&format!("kill $(cat {}/holder)", self.room())).map(drop)
    }

    /// What the program has told so far.
    pub fn told(&self, shell: &mut Shell) -> Result<String, Box<dyn Error>> {
        shell.ask(&format!("cat {}/told", self.room()))
    }

    pub fn await_told(&self, shell: &mut Shell, line: &str) -> Result<(), Box<dyn Error>> {
        shell.until(&format!("{} tells {line}", self.name), |shell| {
            Ok(self.told(shell)?.lines().any(|told| told == line).then_some(()))
        })
    }

    /// Waits for the end of `outlast run` or `resume` and of everybody who had its output; its status.
    pub fn await_end(&self, shell: &mut Shell) -> Result<i32, Box<dyn Error>> {
        let look = format!("cat {}/status", self.room());
        let ended = shell.until(&format!("the end of {}", self.name), |shell| {
            let (status, said) = shell.run(&look)?;
            Ok((status == 0).then(|| said.trim().parse()).transpose()?)
        });
        ended.map_err(|what| {
            let (told, log) = (self.told(shell), self.log(shell));
            format!("{what}\nit told {told:?}\nits log: {log:#?}").into()
        })
    }

    /// What outlast itself said.
    pub fn complaints(&self, shell: &mut Shell) -> Result<String, Box<dyn Error>> {
        shell.ask(&format!("cat {}/err", self.room()))
    }

    /// What `outlast ps --all --json` says of it.
    pub fn status(&self, shell: &mut Shell) -> Result<Value, Box<dyn Error>> {
        let said = shell.ask(&format!("{} ps --all --json", self.outlast()))?;
        let all: Vec<Value> = serde_json::from_str(&said).map_err(|e| format!("{e}: {said}"))?;
        Ok(all.into_iter().find(|program| program["name"] == *self.name).unwrap_or_default())
    }

    /// Waits until the status is as wanted.
    pub fn await_status(&self, shell: &mut Shell, wanted: impl Fn(&Value) -> bool) -> Result<Value, Box<dyn Error>> {
        let mut last = Value::Null;
        let found = shell.until("a status", |shell| {
            last = self.status(shell)?;
            Ok(wanted(&last).then_some(()))
        });
        found.map_err(|what| format!("{what}: {last}"))?;
        Ok(last)
    }

    pub fn await_protected(&self, shell: &mut Shell) -> Result<Value, Box<dyn Error>> {
        self.await_status(shell, |status| status["protected"] == true && status["anchor"].is_i64())
    }

    pub fn log(&self, shell: &mut Shell) -> Result<Vec<Value>, Box<dyn Error>> {
        let said = shell.ask(&format!("{} log {} --json", self.outlast(), self.name))?;
        Ok(said.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// How often something is in the log.
    pub fn count(&self, shell: &mut Shell, event: &str) -> Result<usize, Box<dyn Error>> {
        Ok(self.log(shell)?.iter().filter(|entry| entry["event"] == event).count())
    }

    pub fn await_event(&self, shell: &mut Shell, event: &str, times: usize) -> Result<(), Box<dyn Error>> {
        shell.until(&format!("{times} times {event} in the log of {}", self.name), |shell| {
            Ok((self.count(shell, event)? >= times).then_some(()))
        })
    }

    /// Of outlast, as its user: the state of the program and nothing else is left of it.
    pub fn expect_nothing_lost(&self, shell: &mut Shell, expected: &str) -> Result<(), Box<dyn Error>> {
        let told = self.told(shell)?;
        expect(told == expected, || format!("it told {told:?}, not {expected:?}"))?;
        let degraded: Vec<_> = self.log(shell)?.into_iter().filter(|entry| entry["event"] == "degradation").collect();
        // Without root a new process has another number; an older kernel lacks what io_uring needs.
        let is_known = |entry: &Value| {
            entry["cause"] == "no-io-uring" || self.user == User::Ordinary && entry["cause"] == "pid-changed"
        };
        expect(degraded.iter().all(is_known), || format!("{degraded:?}"))
    }

    /// A command of its user's.
    pub fn outlast(&self) -> String {
        match self.user {
            User::Root => "outlast".into(),
            User::Ordinary => format!("/bin/setpriv --reuid {0} --regid {0} --clear-groups outlast", self.id()),
        }
    }

    fn id(&self) -> u32 {
        match self.user {
            User::Root => 0,
            User::Ordinary => 1000,
        }
    }

    /// Folder with its pipes and what it told.
    pub fn room(&self) -> String {
        format!("/run/{}", self.name)
    }
}

/// What `hoard MIB STEP` tells.
pub fn hoard(mib: u32, step: u32) -> String {
    let pieces = (1..=mib).filter(|n| n % step == 0).map(|n| format!("{n}\n"));
    format!("begun\n{}full\nright\n", pieces.collect::<String>())
}
