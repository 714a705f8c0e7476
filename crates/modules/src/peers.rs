//! `peers`: does here what modules of other nodes ask for, and tells them what they have subscribed to. It is to the core what any module is, on behalf of
//! those that are elsewhere.

use outlast_core::{Budget, Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::channel::{self, Answered, Asked, Call, Told};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub const MANIFEST: Manifest = Manifest {
    name: "peers",
    what: "lets modules of other nodes use pins of this one",
    make: &|| Box::new(Peers { channel: None, nodes: BTreeMap::new() }),
    budget: Budget { time: Duration::from_secs(2), memory: 16 << 20 },
    reloads: 3,
};

struct Peers {
    channel: Option<PinId>,
    nodes: BTreeMap<u64, Wants>,
}

/// What one node has asked for.
#[derive(Default)]
struct Wants {
    pins: BTreeMap<String, PinId>,
    events: BTreeSet<(String, String)>,
}

impl Peers {
    /// Is there another one who needs it?
    fn is_wanted(&self, pin: &str, event: Option<&str>) -> bool {
        self.nodes.values().any(|wants| match event {
            None => wants.pins.contains_key(pin),
            Some(event) => wants.events.contains(&(pin.into(), event.into())),
        })
    }

    fn call(&mut self, calls: &mut Calls, node: u64, pin: &str, call: Call) -> Result<Option<Payload>, Failure> {
        let wants = self.nodes.entry(node).or_default();
        let used = wants.pins.get(pin).copied();
        let in_use = || used.ok_or_else(|| Failure::NotInUse(pin.into()));
        match call {
            Call::Use => drop(wants.pins.insert(pin.into(), calls.use_pin(pin)?)),
            Call::Release => self.release(calls, node, pin),
            Call::Command { operation, argument } => {
                return calls.issue_cmd(in_use()?, &operation, &argument).map(Some)
            }
            Call::Subscribe { event } => {
                calls.subscr_event(in_use()?, &event)?;
                wants.events.insert((pin.into(), event));
            }
            Call::Unsubscribe { event } => self.unsubscribe(calls, node, pin, &event)?,
        }
        Ok(None)
    }

    fn unsubscribe(&mut self, calls: &mut Calls, node: u64, pin: &str, event: &str) -> Result<(), Failure> {
        let Some(wants) = self.nodes.get_mut(&node) else { return Ok(()) };
        let was_there = wants.events.remove(&(pin.into(), event.into()));
        let id = wants.pins.get(pin).copied();
        match id {
            Some(id) if was_there && !self.is_wanted(pin, Some(event)) => calls.unsubscr_event(id, event),
            _ => Ok(()),
        }
    }

    fn release(&mut self, calls: &mut Calls, node: u64, pin: &str) {
        let Some(wants) = self.nodes.get(&node) else { return };
        let events: Vec<_> = wants.events.iter().filter(|(of, _)| of == pin).map(|(_, event)| event.clone()).collect();
        for event in events {
            // It was subscribed to, so it can be undone.
            let _ = self.unsubscribe(calls, node, pin, &event);
        }
        let id = self.nodes.get_mut(&node).and_then(|wants| wants.pins.remove(pin));
        if let Some(id) = id.filter(|_| !self.is_wanted(pin, None)) {
            calls.release_pin(id);
        }
    }

    fn gone(&mut self, calls: &mut Calls, node: u64) {
        let pins: Vec<_> = self.nodes.get(&node).map(|wants| wants.pins.keys().cloned().collect()).unwrap_or_default();
        pins.iter().for_each(|pin| self.release(calls, node, pin));
        self.nodes.remove(&node);
    }
}

impl Module for Peers {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let pin = calls.use_pin(channel::NAME)?;
        calls.subscr_event(pin, channel::ASKED)?;
        calls.subscr_event(pin, channel::GONE)?;
        self.channel = Some(pin);
        Ok(())
    }

    fn protect(&mut self, _: &mut Calls, _: &str, _: &Payload) -> Result<(), Failure> {
        Err(Failure::Told("peers protects nothing of its own accord".into()))
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        let Some(pin) = self.channel else { return Ok(()) };
        match (event.pin, event.name) {
            (channel::NAME, channel::ASKED) => {
                let Asked { node, id, pin: of, call } = event.payload.read()?;
                let result = self.call(calls, node, &of, call).map_err(|failure| failure.to_string());
                calls.issue_cmd(pin, channel::ANSWER, &Payload::of(&Answered { node, id, result })?).map(drop)
            }
            (channel::NAME, _) => {
                self.gone(calls, event.payload.read()?);
                Ok(())
            }
            _ => {
                let wanted = (event.pin.to_string(), event.name.to_string());
                for (node, _) in self.nodes.iter().filter(|(_, wants)| wants.events.contains(&wanted)) {
                    let told = Told {
                        node: *node,
                        pin: wanted.0.clone(),
                        event: wanted.1.clone(),
                        program: event.program.clone(),
                        payload: event.payload.clone(),
                    };
                    calls.issue_cmd(pin, channel::TELL, &Payload::of(&told)?)?;
                }
                Ok(())
            }
        }
    }
}
