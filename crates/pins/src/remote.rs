//! Pins of other nodes, and the pin `node`, which tells what becomes of these.

use outlast_channel::{Channel, Remote, Standing};
use outlast_core::{Event, Failure, Interface, Payload, Pin};
use outlast_interfaces::node::{pin_of, Node, NAME};
use outlast_interfaces::FOR_OTHER_NODES;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One that answers late may be waited for in this part of the time, and for a patience beyond that: whoever waits has other nodes to look at.
const PART: u32 = 8;

/// A pin that is elsewhere; needed no more when this is dropped.
pub struct RemotePin {
    node: Remote,
    interface: &'static Interface,
    pin: &'static str,
    /// How long it was waited for, beyond its part of the time until then.
    waited: Duration,
    until: Instant,
}

impl RemotePin {
    pub fn new(node: Remote, interface: &'static Interface, pin: &'static str) -> Self {
        node.use_pin(pin);
        Self { node, interface, pin, waited: Duration::ZERO, until: Instant::now() }
    }
}

impl Pin for RemotePin {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let refused = |why| Failure::Refused(self.interface.name.into(), why);
        let began = Instant::now();
        self.waited = self.waited.saturating_sub(began.duration_since(self.until) / PART);
        self.until = began;
        if self.waited > self.node.patience() {
            return Err(refused(format!("the node {} answers too slowly to be asked so much", self.node.name())));
        }
        let result = self.node.issue_cmd(self.pin, operation, argument).map_err(refused);
        self.waited += began.elapsed();
        result
    }

    fn wanted(&mut self, event: &'static str, is_wanted: bool) {
        self.node.want_event(self.pin, event, is_wanted);
    }
}

impl Drop for RemotePin {
    fn drop(&mut self) {
        self.node.release_pin(self.pin);
    }
}

/// The interfaces that a node may offer under the names that they have here, each with the name that it has there.
pub fn interfaces(node: &str) -> Vec<(&'static Interface, &'static str)> {
    FOR_OTHER_NODES.iter().map(|interface| (named(&pin_of(node, interface.name), interface), interface.name)).collect()
}

/// An interface under another name. Names live as long as the process, and there are as many as files have ever named nodes.
fn named(name: &str, interface: &'static Interface) -> &'static Interface {
    static NAMED: Mutex<BTreeMap<String, &'static Interface>> = Mutex::new(BTreeMap::new());
    let mut all = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(name) {
        return known;
    }
    let own: &'static str = Box::leak(name.to_string().into_boxed_str());
    let new: &'static Interface = Box::leak(Box::new(Interface { name: own, ..*interface }));
    all.insert(name.into(), new);
    new
}

pub struct NodePin(pub Arc<Channel>);

impl Pin for NodePin {
    fn operate(&mut self, _: &'static str, _: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let nodes = self.0.statuses().into_iter().filter(|status| status.address.is_some());
        let nodes = nodes.map(|status| Node { name: status.node, is_here: status.standing == Standing::Here });
        Payload::of(&nodes.collect::<Vec<_>>()).map_err(|_| Failure::Refused(NAME.into(), "too many nodes".into()))
    }
}
