//! What a call changes of descriptors: collected while it is served, done together with its reply.

use crate::registry::{Noted, Registry};

use super::call::{Known, Knowns};
use super::kin::Kin;

/// Makes the service's changes to descriptors known together with the reply.
pub enum Change {
    /// It ends with its parent, if that is not 0.
    Created {
        id: u64,
        state: u32,
        parent: u64,
    },
    Moved {
        id: u64,
        state: u32,
    },
    /// And, if so, all that is below it.
    Closed {
        id: u64,
        subtree: bool,
    },
}

impl Change {
    /// Into the record that outlives this instance. False: it is full.
    pub(super) fn record(&self, registry: &Registry, client: u32, recreated: bool, sequence: u64, place: u64) -> bool {
        match *self {
            // Created again: the state on record is the one to be walked to.
            Self::Created { .. } | Self::Moved { .. } if recreated => true,
            Self::Created { id, state, parent } => {
                registry.note(id, Some(Noted { client, state, parent }), sequence, place)
            }
            Self::Moved { id, state } => {
                let Some(noted) = registry.find(id) else { return true };
                registry.note(id, Some(Noted { state, ..noted }), sequence, place)
            }
            Self::Closed { id, .. } => registry.find(id).is_none() || registry.note(id, None, sequence, place),
        }
    }

    /// Once it is on record.
    pub(super) fn kin(&self, kin: &mut Kin) {
        match *self {
            Self::Created { id, parent, .. } => kin.created(id, parent),
            Self::Moved { .. } => (),
            Self::Closed { id, .. } => kin.closed(id),
        }
    }

    pub(super) fn apply(&self, knowns: &mut Knowns, client: u32, recovering: bool) {
        match *self {
            Self::Created { id, state, .. } => {
                knowns.insert(id, Known { client, state, recovering });
            }
            Self::Moved { id, state } => {
                if let Some(known) = knowns.get_mut(&id) {
                    known.state = state;
                }
            }
            Self::Closed { id, .. } => {
                knowns.remove(&id);
            }
        }
    }
}
