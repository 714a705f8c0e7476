//! What goes with an operation or an event: bytes, in postcard's format.

use crate::failure::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A value of a type that both sides know from the pin's interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload(Vec<u8>);

impl Payload {
    /// Nothing goes with it.
    pub const NONE: Payload = Payload(Vec::new());

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// # Errors
    /// The type cannot be written in this format (it has no length, say).
    pub fn of<T: Serialize>(value: &T) -> Result<Payload, Failure> {
        postcard::to_allocvec(value).map(Payload).map_err(|_| Failure::Argument)
    }

    /// # Errors
    /// The bytes are none of this type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        match postcard::take_from_bytes(&self.0) {
            Ok((value, [])) => Ok(value),
            _ => Err(Failure::Argument),
        }
    }
}
