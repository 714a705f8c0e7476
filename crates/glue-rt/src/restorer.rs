//! How often a call is made again.

use crate::channel::Interrupted;
use crate::error::CallError;
use crate::policy;

/// Counts the deaths that one call has seen, and ends its repetition.
#[derive(Default)]
pub struct Restorer {
    torn: u32,
    /// For a component that asked for it in this epoch: not made again in another.
    asked: Option<u32>,
}

impl Restorer {
    /// On the component's behalf where it `asked`, in that epoch.
    pub fn new(asked: Option<u32>) -> Self {
        Self { torn: 0, asked }
    }

    /// Goes on where another one was, for those who keep a number.
    pub fn seen(torn: u32) -> Self {
        Self { torn, asked: None }
    }

    /// Deaths that were seen at the call itself.
    pub fn torn(&self) -> u32 {
        self.torn
    }

    /// Returns if the call is to be made again.
    pub fn again(&mut self, interrupted: Interrupted) -> Result<(), CallError> {
        match interrupted {
            Interrupted::Fault { torn } => {
                if self.asked.is_some() {
                    return Err(CallError::Outdated);
                }
                self.torn += u32::from(torn);
                if self.torn >= policy::TORN {
                    return Err(CallError::Poisonous(self.torn));
                }
                Ok(())
            }
            Interrupted::Failed(error) => Err(error),
        }
    }
}
