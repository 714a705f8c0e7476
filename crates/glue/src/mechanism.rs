//! The recovery mechanisms of C3 and SuperGlue: each is a piece of the generated code, marked there with its name.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Mechanism {
    R0,
    T0,
    T1,
    D0,
    D1,
    G0,
    G1,
    U0,
}

impl Mechanism {
    pub const ALL: [Self; 8] = [Self::R0, Self::T0, Self::T1, Self::D0, Self::D1, Self::G0, Self::G1, Self::U0];

    /// What it does, as the comment before its block says it.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::R0 => "walk the state machine from the creation to the descriptor's last state",
            Self::T0 => "a thread that is blocked in the server when it fails is woken, and calls again",
            Self::T1 => "on demand: a descriptor of an older epoch of the server is recovered before it is used",
            Self::D0 => "whoever closes a descriptor recovers its children first, for the server closes them, too",
            Self::D1 => "a parent is recovered before its child",
            Self::G0 => "a global descriptor that the server does not know is recovered by the client that created it",
            Self::G1 => "data of the resource is kept outside the server and read back",
            Self::U0 => "the entry through which the server has this client recover a descriptor",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| format!("{mechanism:?}").eq_ignore_ascii_case(name))
    }
}
