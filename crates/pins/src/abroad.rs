//! The microkernel of modules that use pins of other nodes. It is not the machine's own: an operation elsewhere takes as long as that node
//! takes to answer, and the modules that look after this machine are not to wait for that.

use crate::remote::{interfaces, NodePin, RemotePin};
use crate::schl::{Desk, Schl};
use outlast_channel::frame::Told as FrameTold;
use outlast_channel::{Channel, News, Out};
use outlast_core::{Event, Failure, Interface, Manifest, Microkernel, Payload};
use outlast_interfaces::node::{self, Returned, Vanished};
use outlast_interfaces::oshang::{self, Settings};
use outlast_interfaces::schl::{self, Flagged};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// What is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Flagged(Flagged),
    Vanished(Vanished),
    Returned(Returned),
    /// Something that somebody who looks for a fault may want to know.
    Said(String),
}

/// The modules that look after other nodes. It belongs to the thread that makes it.
pub struct Abroad {
    kernel: Microkernel,
    desk: Rc<RefCell<Desk>>,
    channel: Arc<Channel>,
    /// Of each node, by the number that news has: its pins by their names there.
    pins: Vec<BTreeMap<&'static str, &'static Interface>>,
    news: Out,
}

impl Abroad {
    /// Loads `modules`, and has `oshang` watch these nodes.
    ///
    /// # Errors
    /// It is not among them, or one cannot be loaded.
    pub fn new(
        channel: Arc<Channel>,
        news: Out,
        settings: &Settings,
        modules: &[Manifest],
        watched: &[String],
    ) -> Result<Self, Failure> {
        let desk = Rc::new(RefCell::new(Desk::default()));
        let mut kernel = Microkernel::new();
        let of_pin = Rc::clone(&desk);
        kernel.install_pin(&schl::INTERFACE, Box::new(move || Ok(Box::new(Schl(Rc::clone(&of_pin))))));
        let of_pin = Arc::clone(&channel);
        kernel.install_pin(&node::INTERFACE, Box::new(move || Ok(Box::new(NodePin(Arc::clone(&of_pin))))));
        let mut pins = Vec::new();
        for (number, name) in channel.names().iter().enumerate() {
            let mut of_node = BTreeMap::new();
            for (interface, pin) in interfaces(name) {
                let remote = channel.remote(number);
                let make = move || {
                    let remote = remote.clone().ok_or("there is no such node")?;
                    Ok(Box::new(RemotePin::new(remote, interface, pin)) as Box<dyn outlast_core::Pin>)
                };
                kernel.install_pin(interface, Box::new(make));
                of_node.insert(pin, interface);
            }
            pins.push(of_node);
        }
        for manifest in modules {
            kernel.load(*manifest)?;
        }
        for node in watched {
            kernel.protect(oshang::NAME, node, Payload::of(settings)?)?;
        }
        Ok(Self { kernel, desk, channel, pins, news })
    }

    /// Waits for what happens next on other nodes, and has modules told; what is to be told further. None: nothing will happen any more.
    pub fn wait(&mut self) -> Option<Vec<Heard>> {
        let news = self.news.next()?;
        Some(self.hear(news))
    }

    fn hear(&mut self, news: News) -> Vec<Heard> {
        let name = |node: usize| self.channel.names().get(node).cloned().unwrap_or_default();
        let mut heard = Vec::new();
        match news {
            News::Told { node, told } => heard.extend(self.told(node, &name(node), told)),
            News::Vanished { node, why } => {
                let vanished = Vanished { node: name(node), why };
                self.raise(node::NAME, node::VANISHED, None, Payload::of(&vanished));
                heard.push(Heard::Vanished(vanished));
            }
            News::Returned { node, after } => {
                let returned = Returned { node: name(node), after };
                self.raise(node::NAME, node::RETURNED, None, Payload::of(&returned));
                heard.push(Heard::Returned(returned));
            }
            News::Refused { node, what, why } => {
                heard.push(Heard::Said(format!("node {} refuses {what}: {why}", name(node))))
            }
            News::Lost { node, count } => {
                heard.push(Heard::Said(format!("{count} events of node {} were lost", name(node))))
            }
        }
        heard.extend(std::mem::take(&mut self.desk.borrow_mut().flags).into_iter().map(Heard::Flagged));
        let notices = self.kernel.take_notices();
        heard.extend(notices.iter().map(|notice| Heard::Said(notice.to_string())));
        heard
    }

    /// What it tells is what its interface says, or is not passed on.
    fn told(&mut self, node: usize, name: &str, told: FrameTold) -> Option<Heard> {
        let interface = self.pins.get(node).and_then(|pins| pins.get(told.pin.as_str()).copied());
        let known =
            interface.and_then(|pin| Some((pin.name, pin.events.iter().find(|event| event.name == told.name)?.name)));
        let Some((pin, event)) = known else {
            return Some(Heard::Said(format!("node {name} tells of something unknown, {}/{}", told.pin, told.name)));
        };
        let program = told.program.map(|program| node::pin_of(name, &program));
        self.raise(pin, event, program, Ok(told.payload));
        None
    }

    fn raise(
        &mut self,
        pin: &'static str,
        name: &'static str,
        program: Option<String>,
        payload: Result<Payload, Failure>,
    ) {
        let Ok(payload) = payload else { return };
        self.desk.borrow_mut().is_looking = true;
        self.kernel.raise(Event { pin, name, program, payload });
        self.desk.borrow_mut().is_looking = false;
    }
}
