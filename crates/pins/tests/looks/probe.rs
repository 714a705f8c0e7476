//! A module that has pins do what a file says, and writes down what they answer and tell.

use outlast_core::{Calls, Event, Failure, Module, Payload, PinId};
use outlast_interfaces::{dbr, file, ipc, mem, net, sig, watch::Watch};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// The folder where its files are.
pub const FOLDER: &str = "PROBE";
const EVERY: Duration = Duration::from_millis(20);
const EVENTS: [(&str, &str); 6] = [
    (file::NAME, file::COUNTED),
    (mem::NAME, mem::MEASURED),
    (net::NAME, net::MEASURED),
    (ipc::NAME, ipc::MEASURED),
    (sig::NAME, sig::DELIVERED),
    (sig::NAME, sig::FATAL),
];

#[derive(Default)]
pub struct Probe {
    pins: BTreeMap<&'static str, PinId>,
    program: String,
}

fn place(name: &str) -> PathBuf {
    PathBuf::from(std::env::var_os(FOLDER).expect("a folder")).join(name)
}

impl Module for Probe {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        for name in [file::NAME, mem::NAME, net::NAME, ipc::NAME, sig::NAME, dbr::NAME] {
            self.pins.insert(name, calls.use_pin(name)?);
        }
        calls.subscr_event(self.pins[dbr::NAME], dbr::HIT)?;
        EVENTS.iter().try_for_each(|(pin, event)| calls.subscr_event(self.pins[pin], event))
    }

    fn protect(&mut self, calls: &mut Calls, program: &str, _: &Payload) -> Result<(), Failure> {
        self.program = program.into();
        let watch = Payload::of(&Watch { program: program.into(), by: "probe".into(), every: EVERY })?;
        for pin in [file::NAME, mem::NAME, net::NAME, ipc::NAME] {
            calls.issue_cmd(self.pins[pin], "watch", &watch)?;
        }
        Ok(())
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        let told = match (event.pin, event.name) {
            (file::NAME, _) => json!(event.payload.read::<file::Counted>()?),
            (mem::NAME, _) => json!(event.payload.read::<mem::Measured>()?),
            (net::NAME, _) => json!(event.payload.read::<net::Measured>()?),
            (ipc::NAME, _) => json!(event.payload.read::<ipc::Measured>()?),
            (sig::NAME, _) => json!(event.payload.read::<sig::Told>()?),
            _ => json!(event.payload.read::<dbr::Hit>()?),
        };
        // The last of each, and all that are no looks.
        let text = json!({ "event": event.name, "told": told }).to_string();
        let all = std::fs::OpenOptions::new().append(true).create(true).open(place("events"));
        let kept = [sig::NAME, dbr::NAME].contains(&event.pin);
        let written = match kept {
            true => all.and_then(|mut all| writeln!(all, "{text}")),
            false => put(event.pin, &text),
        };
        written.expect("room");
        if let Ok(asked) = std::fs::read(place("ask")) {
            std::fs::remove_file(place("ask")).expect("it was there");
            let asked = serde_json::from_slice(&asked).expect("a question");
            let answer = self.answer(calls, &asked).unwrap_or_else(|failure| json!({ "failure": failure.to_string() }));
            put("answer", &answer.to_string()).expect("room");
        }
        Ok(())
    }
}

/// Whole or not at all.
fn put(name: &str, text: &str) -> std::io::Result<()> {
    std::fs::write(place("new"), text)?;
    std::fs::rename(place("new"), place(name))
}

impl Probe {
    fn answer(&self, calls: &mut Calls, asked: &Value) -> Result<Value, Failure> {
        let program = self.program.clone();
        let number = |name: &str| asked[name].as_u64().unwrap_or_default();
        let mut issue = |pin: &str, operation, argument| calls.issue_cmd(self.pins[pin], operation, &argument);
        let range = || mem::Range { program: program.clone(), address: number("address"), length: number("length") };
        Ok(match asked["what"].as_str().unwrap_or_default() {
            "files" => {
                let list = file::List { program, from: 0, most: number("most") as u32 };
                json!(issue(file::NAME, file::LIST, Payload::of(&list)?)?.read::<Vec<file::Descriptor>>()?)
            }
            "copy" => json!(issue(mem::NAME, mem::COPY, Payload::of(&range())?)?.read::<Vec<u8>>()?),
            "pages" => json!(issue(mem::NAME, mem::PAGES, Payload::of(&range())?)?.read::<Vec<mem::Page>>()?),
            "account" => json!(issue(mem::NAME, mem::ACCOUNT, Payload::of(&program)?)?.read::<mem::Account>()?),
            "connections" => {
                json!(issue(net::NAME, net::LIST, Payload::of(&program)?)?.read::<Vec<net::Connection>>()?)
            }
            "pipes" => json!(issue(ipc::NAME, ipc::LIST, Payload::of(&program)?)?.read::<Vec<ipc::Pipe>>()?),
            "masks" => json!(issue(sig::NAME, sig::MASKS, Payload::of(&program)?)?.read::<Vec<sig::Masks>>()?),
            "send" => {
                let thread = asked["thread"].as_i64().map(|thread| thread as i32);
                let send = sig::Send { program, thread, signal: number("signal") as i32 };
                issue(sig::NAME, sig::SEND, Payload::of(&send)?)?;
                json!("sent")
            }
            "watch" => {
                let (address, length) = (number("address"), number("length") as u32);
                let access = if asked["execute"] == true { dbr::Access::Execute } else { dbr::Access::Write };
                let watch = dbr::Watch { program, address, length, access, every: EVERY };
                json!(issue(dbr::NAME, dbr::WATCH, Payload::of(&watch)?)?.read::<u32>()?)
            }
            _ => {
                let unwatch = dbr::Unwatch { program, watch: number("watch") as u32 };
                issue(dbr::NAME, dbr::UNWATCH, Payload::of(&unwatch)?)?;
                json!("unwatched")
            }
        })
    }
}
