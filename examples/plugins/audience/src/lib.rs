//! `audience`: tells of a server to which more clients are connected than should be, and who they are.
//!
//! Its settings are a number: as many connections a program may have.

wit_bindgen::generate!({ path: "../../../crates/plugins/wit", world: "module" });

use exports::outlast::module::policy::Guest;
use outlast::module::calls;
use outlast::module::looks::{Connection, IpAddress, State};
use outlast::module::types::{Answer, Command, Event, Happening, Subject, Watch};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

struct Audience;

/// A program's connections are looked at so often: four times a second.
const EVERY: u64 = 250_000_000;

struct Program {
    most: u32,
    /// Whether there were too many at the last look: each time is told of once.
    is_full: bool,
}

#[derive(Default)]
struct Watched {
    /// The pin, by the handle that the core gave us.
    net: u32,
    programs: BTreeMap<String, Program>,
}

thread_local! {
    /// A component has one thread.
    static WATCHED: RefCell<Watched> = RefCell::default();
}

impl Guest for Audience {
    fn start() -> Result<(), String> {
        let net = calls::use_pin("net")?;
        calls::subscr_event(net, Subject::NetMeasured)?;
        WATCHED.with_borrow_mut(|watched| watched.net = net);
        Ok(())
    }

    fn protect(program: String, settings: String) -> Result<(), String> {
        let most = settings.trim().parse().map_err(|_| format!("settings: a number of clients, not {settings:?}"))?;
        WATCHED.with_borrow_mut(|watched| {
            calls::issue_cmd(watched.net, &Command::NetWatch(Watch { program: program.clone(), every: EVERY }))?;
            watched.programs.insert(program, Program { most, is_full: false });
            Ok(())
        })
    }

    fn release(program: String) {
        WATCHED.with_borrow_mut(|watched| watched.programs.remove(&program));
    }

    fn on_event(event: Event) -> Result<(), String> {
        let (Some(name), Happening::NetMeasured(measured)) = (event.program, event.what) else { return Ok(()) };
        WATCHED.with_borrow_mut(|watched| {
            let Some(program) = watched.programs.get_mut(&name) else { return Ok(()) };
            let open = |(state, _): &&(State, u32)| *state == State::Established;
            let clients = measured.states.iter().find(open).map_or(0, |(_, clients)| *clients);
            let was_full = std::mem::replace(&mut program.is_full, clients > program.most);
            if was_full || !program.is_full {
                return Ok(());
            }
            let Answer::Connections(all) = calls::issue_cmd(watched.net, &Command::NetList(name))? else {
                return Ok(());
            };
            calls::log(&format!("{clients} clients, and {} are the most: {}", program.most, who(&all)));
            Ok(())
        })
    }
}

/// How many connections come from where.
fn who(all: &[Connection]) -> String {
    let mut clients = BTreeMap::<String, u32>::new();
    for connection in all.iter().filter(|connection| connection.state == State::Established) {
        let from = match connection.remote.ip {
            IpAddress::V4((a, b, c, d)) => Ipv4Addr::new(a, b, c, d).to_string(),
            IpAddress::V6((a, b, c, d, e, f, g, h)) => Ipv6Addr::new(a, b, c, d, e, f, g, h).to_string(),
        };
        *clients.entry(from).or_default() += 1;
    }
    let clients: Vec<_> = clients.iter().map(|(from, n)| format!("{n} from {from}")).collect();
    clients.join(", ")
}

export!(Audience);
