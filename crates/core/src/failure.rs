//! What can be wrong with a call of a module.

/// Why a call failed. Nothing has happened then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, displaydoc::Display)]
pub enum Failure {
    /// there is no pin called {0}
    NoSuchPin(String),
    /// the pin {0} cannot be had: {1}
    Unavailable(String, String),
    /// the pin {0} is used by {1}
    PinUsed(String, String),
    /// the pin {0} was not asked for with use_pin
    NotInUse(String),
    /// the pin {0} has no operation {1}
    NoSuchOperation(String, String),
    /// the pin {0} raises no event {1}
    NoSuchEvent(String, String),
    /// there is no module called {0}
    NoSuchModule(String),
    /// the module {0} is loaded already
    Loaded(String),
    /// the module {0} failed
    Failed(String),
    /// an argument is not of the type that the interface names
    Argument,
    /// the pin {0} refused: {1}
    Refused(String, String),
    /// {0}
    Told(String),
}
