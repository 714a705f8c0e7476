//! Clients that call a component without end, and know what each call must give.

use std::fmt::{Display, Formatter};
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use outlast_glue_rt::{CallError, Channel, Grant, Unusable};
use outlast_services::fs::{CREATE, EXCLUSIVE};
use outlast_services::memory::{map, READ};
use outlast_services::stubs;
use outlast_services::stubs::memory::Client;
use outlast_services::timer::now;

use crate::chance::Chance;

/// Clients of a component: each has a channel of its own.
pub const CLIENTS: u32 = 2;

/// What must not be.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    Error(CallError),
    Wrong(&'static str),
}

impl From<CallError> for Trouble {
    fn from(error: CallError) -> Self {
        Self::Error(error)
    }
}

impl Display for Trouble {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error(error) => write!(f, "error: {error}"),
            Self::Wrong(what) => write!(f, "wrong: {what}"),
        }
    }
}

pub type Step = Box<dyn FnMut() -> Result<(), Trouble> + Send>;

fn must(holds: bool, what: &'static str) -> Result<(), Trouble> {
    if holds {
        Ok(())
    } else {
        Err(Trouble::Wrong(what))
    }
}

/// `load SERVICE SEED`: writes how much was done, again and again, and at the first trouble what that is.
pub fn run(service: &str, seed: u64) -> ExitCode {
    let open = |client: u32| Grant::inherited(&format!("{service}{client}")).and_then(Grant::open).expect("a channel");
    let channels: Vec<Channel> = (0..CLIENTS).map(open).collect();
    let steps = steps(service, &channels, seed).unwrap_or_else(|trouble| vec![Box::new(move || Err(trouble))]);
    let done = Arc::new(AtomicU64::new(0));
    for mut step in steps {
        let done = done.clone();
        std::thread::spawn(move || loop {
            match step() {
                Ok(()) => done.fetch_add(1, Ordering::SeqCst),
                Err(trouble) => end(trouble),
            };
        });
    }
    loop {
        if writeln!(std::io::stdout(), "{}", done.load(Ordering::SeqCst)).is_err() {
            return ExitCode::SUCCESS;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn end(trouble: Trouble) -> ! {
    println!("{trouble}");
    std::process::exit(3);
}

/// What the clients of a service do without end, each in a thread of its own.
pub fn steps(service: &str, channels: &[Channel], seed: u64) -> Result<Vec<Step>, Trouble> {
    match service {
        "event" => events(channels),
        "fs" => files(channels, seed),
        "lock" => locks(channels),
        "memory" => memory(channels),
        "scheduler" => processor(channels),
        _ => timers(channels),
    }
}

/// Two threads of each client contend for a lock.
fn locks(channels: &[Channel]) -> Result<Vec<Step>, Trouble> {
    let mut steps: Vec<Step> = Vec::new();
    for channel in channels {
        let client = stubs::lock::Client::new(channel.clone());
        let lock = client.lock_alloc()?;
        let held = Arc::new(AtomicBool::new(false));
        for thread in 1..=2 {
            let (client, held) = (client.clone(), held.clone());
            steps.push(Box::new(move || {
                client.lock_pretake(lock, thread)?;
                client.lock_take(lock, thread)?;
                must(!held.swap(true, Ordering::SeqCst), "two hold a lock")?;
                held.store(false, Ordering::SeqCst);
                client.lock_release(lock, thread)?;
                Ok(())
            }));
        }
    }
    Ok(steps)
}

/// Two clients wake each other, each with events of the other's.
fn events(channels: &[Channel]) -> Result<Vec<Step>, Trouble> {
    let here = stubs::event::Client::new(channels[0].clone());
    let there = stubs::event::Client::new(channels[1].clone());
    let (ping, pong) = (here.event_split(0, 0)?, there.event_split(0, 0)?);
    let sent = Arc::new(AtomicU32::new(0));
    let seen = sent.clone();
    let (mut round, mut expected) = (0, 0);
    Ok(vec![
        Box::new(move || {
            here.event_wait(ping)?;
            expected += 1;
            must(seen.load(Ordering::SeqCst) == expected, "woken by nobody")?;
            here.event_trigger(pong)?;
            Ok(())
        }),
        Box::new(move || {
            round += 1;
            sent.store(round, Ordering::SeqCst);
            there.event_trigger(ping)?;
            there.event_wait(pong)?;
            Ok(())
        }),
    ])
}

/// Each client gets memory, has the other read it, and takes it back.
fn memory(channels: &[Channel]) -> Result<Vec<Step>, Trouble> {
    let clients: Vec<Client> = channels.iter().map(|channel| Client::new(channel.clone())).collect();
    let mut steps: Vec<Step> = Vec::new();
    for (here, there) in [(0, 1), (1, 0)] {
        let (here, there) = (clients[here].clone(), clients[there].clone());
        let to = there.mem_who()?;
        let mut round = 0u64;
        steps.push(Box::new(move || {
            round += 1;
            let (page, _) = here.mem_get(1)?;
            let mine = map(&here, page)?;
            let alias = here.mem_alias(page, to, READ)?;
            let theirs = map(&there, alias)?;
            let mut seen = [0; 8];
            must(mine.write(8, &round.to_le_bytes()).is_ok(), "memory that cannot be written")?;
            must(theirs.read(8, &mut seen) == Ok(()) && u64::from_le_bytes(seen) == round, "not what was written")?;
            here.mem_revoke(page)?;
            must(theirs.read(8, &mut seen) == Err(Unusable::Revoked), "what was revoked can be read")
        }));
    }
    Ok(steps)
}

fn timers(channels: &[Channel]) -> Result<Vec<Step>, Trouble> {
    const PERIOD: u64 = 300_000;
    let mut steps: Vec<Step> = Vec::new();
    for channel in channels {
        let client = stubs::timer::Client::new(channel.clone());
        let begun = now();
        let timer = client.timer_create(begun, PERIOD)?;
        let mut waited = 0;
        steps.push(Box::new(move || {
            let before = (now() - begun) / PERIOD;
            waited += u64::from(client.timer_wait(timer)?.1);
            let after = (now() - begun) / PERIOD;
            must(before <= waited && waited <= after, "a period lost or counted twice")
        }));
    }
    Ok(steps)
}

/// Two threads of each client take turns on the processor.
fn processor(channels: &[Channel]) -> Result<Vec<Step>, Trouble> {
    let mut steps: Vec<Step> = Vec::new();
    let running = Arc::new(AtomicBool::new(false));
    for (number, channel) in channels.iter().chain(channels).enumerate() {
        let client = stubs::scheduler::Client::new(channel.clone());
        let thread = client.sched_create(number as u32)?;
        let running = running.clone();
        steps.push(Box::new(move || {
            client.sched_take(thread)?;
            must(!running.swap(true, Ordering::SeqCst), "two have the processor")?;
            running.store(false, Ordering::SeqCst);
            client.sched_release(thread)?;
            client.sched_wakeup(thread)?;
            must(client.sched_block(thread, 0)? == 0, "not woken")
        }));
    }
    Ok(steps)
}

/// Each thread writes and reads a file of its own, and knows what is in it.
fn files(channels: &[Channel], seed: u64) -> Result<Vec<Step>, Trouble> {
    const LENGTH: u64 = 20_000;
    let mut steps: Vec<Step> = Vec::new();
    for (number, channel) in channels.iter().chain(channels).enumerate() {
        let client = stubs::fs::Client::new(channel.clone());
        let name = number.to_string();
        let (file, _) = client.fs_split(0, name.as_bytes(), CREATE | EXCLUSIVE)?;
        let mut chance = Chance::new(seed + number as u64);
        let mut model = vec![0; LENGTH as usize];
        client.fs_truncate(file, LENGTH)?;
        steps.push(Box::new(move || {
            let at = chance.below(LENGTH);
            let length = chance.below(4_096).min(LENGTH - at) as usize;
            let part = at as usize..at as usize + length;
            must(client.fs_seek(file, 0, at as i64)?.0 == at as i64, "sought elsewhere")?;
            if chance.below(2) == 0 {
                let byte = chance.below(256) as u8;
                model[part.clone()].fill(byte);
                return must(client.fs_write(file, &model[part])?.0 == length as i32, "written less");
            }
            must(client.fs_read(file, length as u32)?.1 == model[part], "other bytes read than written")
        }));
    }
    Ok(steps)
}
