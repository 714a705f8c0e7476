//! The pin `channel`: what other nodes ask for comes in here, and answers and events go out.

use outlast_channel::frame::{self, Answer, Ask};
use outlast_channel::{Hub, Visit};
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_interfaces::channel::{Answered, Asked, Call, Told, ANSWER, ASKED, GONE, NAME};
use std::cell::RefCell;
use std::rc::Rc;

/// Where answers go; none: there are no other nodes now.
pub struct ChannelPin(pub Rc<RefCell<Option<Hub>>>);

/// Whoever needed it has ended, and what other nodes are subscribed to with it.
impl Drop for ChannelPin {
    fn drop(&mut self) {
        if let Some(hub) = &*self.0.borrow() {
            hub.part("what serves other nodes begins anew, or has ended");
        }
    }
}

impl Pin for ChannelPin {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let hub = self.0.borrow();
        let hub = hub.as_ref().ok_or_else(|| Failure::Refused(NAME.into(), "there are no other nodes".into()))?;
        if operation == ANSWER {
            let Answered { node, id, result } = argument.read()?;
            let answer = match result {
                Ok(None) => Ok(Answer::Done),
                Ok(Some(payload)) => Ok(Answer::Result(payload)),
                Err(why) => Err(frame::legible(&why)),
            };
            hub.answer(node, id, answer);
        } else {
            let Told { node, pin, event: name, program, payload } = argument.read()?;
            hub.tell(node, frame::Told { pin, name, program, payload });
        }
        Ok(Payload::NONE)
    }
}

/// Says no to what nobody is there to do.
pub fn refuse(hub: &Hub, visit: &Visit) {
    if let Visit::Asked { visitor, id, .. } = visit {
        hub.answer(*visitor, *id, Err("nothing serves other nodes any more".into()));
    }
}

/// What a node that uses this one wants, as an event.
pub fn event(visit: Visit) -> Option<Event> {
    let (name, payload) = match visit {
        Visit::Gone { visitor } => (GONE, Payload::of(&visitor)),
        Visit::Asked { visitor, id, ask } => {
            let (pin, call) = match ask {
                // It is answered where it comes in.
                Ask::Describe => return None,
                Ask::Use { pin } => (pin, Call::Use),
                Ask::Release { pin } => (pin, Call::Release),
                Ask::Command { pin, operation, argument } => (pin, Call::Command { operation, argument }),
                Ask::Subscribe { pin, event } => (pin, Call::Subscribe { event }),
                Ask::Unsubscribe { pin, event } => (pin, Call::Unsubscribe { event }),
            };
            (ASKED, Payload::of(&Asked { node: visitor, id, pin, call }))
        }
    };
    Some(Event { pin: NAME, name, program: None, payload: payload.ok()? })
}
