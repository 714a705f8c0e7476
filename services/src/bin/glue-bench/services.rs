//! What tracking costs a call, and recovery a descriptor, for each service: by stubs that glue writes and by such that are written by
//! hand, beside stubs that do neither.

use outlast_glue_rt::{Channel, Handle, Spec, System};
use outlast_services::by_hand;
use outlast_services::fs::CREATE;
use outlast_services::stubs::{self, untracked};

use crate::clock::{beside, each, quartiles};
use crate::harm::kill;

const CALLS: u32 = 1_000;
const DESCRIPTORS: u32 = 200;

/// What is done by a client, whatever its stubs.
struct Client {
    create: Box<dyn Fn(u32) -> u64>,
    /// Calls about a descriptor, and how many these are.
    turn: Box<dyn Fn(u64)>,
    calls: f64,
    close: Box<dyn Fn(u64)>,
}

struct Service {
    name: &'static str,
    untracked: fn(Channel) -> Client,
    glue: fn(Channel) -> Client,
    by_hand: Option<fn(Channel) -> Client>,
}

/// A client that makes descriptors, makes some calls about one, and closes it.
macro_rules! client {
    ($client:ty, $channel:ident, $calls:literal, |$c:ident, $new:ident| $create:expr, |$id:ident| $turn:expr, $close:expr) => {{
        let $c = <$client>::new($channel);
        let create = {
            let $c = $c.clone();
            move |$new: u32| $create
        };
        let turn = {
            let $c = $c.clone();
            move |$id: u64| {
                let _ = $turn;
            }
        };
        let close = move |$id: u64| {
            let _ = $close.expect("open");
        };
        Client { create: Box::new(create), turn: Box::new(turn), calls: $calls, close: Box::new(close) }
    }};
}

macro_rules! event {
    ($client:ty) => {
        |channel| {
            client!(
                $client,
                channel,
                2.0,
                |c, _new| c.event_split(0, 0).expect("an event"),
                |id| (c.event_trigger(id).expect("open"), c.event_wait(id).expect("open")),
                c.event_free(id)
            )
        }
    };
}

macro_rules! fs {
    ($client:ty) => {
        |channel| {
            client!(
                $client,
                channel,
                2.0,
                |c, new| c.fs_split(0, new.to_string().as_bytes(), CREATE).expect("a file").0,
                |id| (c.fs_seek(id, 0, 0).expect("open"), c.fs_read(id, 1).expect("open")),
                c.fs_release(id)
            )
        }
    };
}

macro_rules! lock {
    ($client:ty) => {
        |channel| {
            client!(
                $client,
                channel,
                2.0,
                |c, _new| c.lock_alloc().expect("a lock"),
                |id| (c.lock_take(id, 1).expect("free"), c.lock_release(id, 1).expect("ours")),
                c.lock_free(id)
            )
        }
    };
}

macro_rules! memory {
    ($client:ty) => {
        |channel| {
            client!(
                $client,
                channel,
                1.0,
                |c, _new| c.mem_get(1).expect("memory").0,
                |id| c.mem_map(id).expect("open"),
                c.mem_revoke(id)
            )
        }
    };
}

macro_rules! scheduler {
    ($client:ty) => {
        |channel| {
            client!(
                $client,
                channel,
                2.0,
                |c, _new| c.sched_create(1).expect("a thread"),
                |id| (c.sched_wakeup(id).expect("open"), c.sched_block(id, 0).expect("woken")),
                c.sched_free(id)
            )
        }
    };
}

// A period has always passed since the last.
macro_rules! timer {
    ($client:ty) => {
        |channel| {
            client!(
                $client,
                channel,
                1.0,
                |c, _new| c.timer_create(1, 1).expect("a timer"),
                |id| c.timer_wait(id).expect("open"),
                c.timer_remove(id)
            )
        }
    };
}

macro_rules! services {
    ($($name:ident $by_hand:expr),*) => {
        /// Of the services, in the order of the table.
        pub const NAMES: [&str; 6] = [$(stringify!($name)),*];
        const SERVICES: [Service; 6] = [$(Service {
            name: stringify!($name),
            untracked: $name!(untracked::$name::Client),
            glue: $name!(stubs::$name::Client),
            by_hand: $by_hand,
        }),*];
    };
}

services! {
    event Some(event!(by_hand::event::Client)),
    fs Some(fs!(by_hand::fs::Client)),
    lock Some(lock!(by_hand::lock::Client)),
    memory None,
    scheduler None,
    timer None
}

/// A component alone in its system.
pub fn component(service: &str) -> (System, Handle) {
    let program = std::env::current_exe().expect("this program").with_file_name("outlast-service");
    let mut system = System::new();
    let spec = Spec { name: service.into(), program, arguments: vec![service.into()] };
    let handle = system.start(spec).unwrap_or_else(|error| panic!("{error}"));
    (system, handle)
}

fn client(of: fn(Channel) -> Client, handle: &Handle) -> Client {
    let channel = handle.grant().expect("a channel").open().expect("a channel");
    channel.spin(0);
    of(channel)
}

const COLUMNS: [&str; 7] = [
    "a call",
    "tracking of it",
    "the same by hand",
    "recovery of a descriptor",
    "the same by hand",
    "micro-reboot",
    "kill until the first answer",
];

/// Of these services; of all where none is named.
pub fn measure(rounds: u32, names: &[String]) -> String {
    let mut text =
        format!("Microseconds: medians of {rounds} rounds, and quartiles.\n\n| service | {} |\n", COLUMNS.join(" | "));
    text.push_str(&format!("|---|{}\n", "---|".repeat(COLUMNS.len())));
    let named = |service: &&Service| names.is_empty() || names.iter().any(|name| name == service.name);
    for service in SERVICES.iter().filter(named) {
        let mut seen: [Vec<f64>; COLUMNS.len()] = Default::default();
        of(service, rounds, &mut seen);
        text.push_str(&format!("| {} |", service.name));
        for values in &mut seen {
            let [low, middle, high] = quartiles(values);
            text.push_str(&match values.is_empty() {
                true => " – |".to_string(),
                false => format!(" {middle:.2} ({low:.2} to {high:.2}) |"),
            });
        }
        text.push('\n');
    }
    text
}

fn of(service: &Service, rounds: u32, seen: &mut [Vec<f64>; COLUMNS.len()]) {
    let (_plain, plain) = component(&format!("{}-untracked", service.name));
    let (_system, handle) = component(service.name);
    let base = client(service.untracked, &plain);
    let tracked = [(Some(service.glue), 1, 3), (service.by_hand, 2, 4)];
    let tracked = tracked.map(|(of, cost, recovery)| Some((client(of?, &handle), cost, recovery)));
    let one = (base.create)(DESCRIPTORS);
    for _ in 0..rounds {
        for (client, cost, recovery) in tracked.iter().flatten() {
            let own = (client.create)(DESCRIPTORS);
            let turn = || (client.turn)(own);
            let (call, beyond) = beside(CALLS, || (base.turn)(one), turn);
            if *cost == 1 {
                seen[0].push(call / client.calls);
            }
            seen[*cost].push(beyond / client.calls);
            let many: Vec<u64> = (0..DESCRIPTORS).map(|new| (client.create)(new)).collect();
            let killed = kill(&handle);
            turn();
            seen[6].push(killed.elapsed().as_secs_f64() * 1e6);
            seen[5].push(handle.last_reboot().as_secs_f64() * 1e6);
            let mut left = many.iter();
            let recovered = each(DESCRIPTORS, || (client.turn)(*left.next().expect("one left")));
            seen[*recovery].push(recovered - each(CALLS, turn));
            many.iter().chain([&own]).for_each(|id| (client.close)(*id));
        }
    }
}
