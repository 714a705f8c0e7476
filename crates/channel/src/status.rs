//! What is known of other nodes, for whoever asks here.

use crate::frame::Offer;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It is spoken to.
    Here,
    /// It is being connected to.
    Sought,
    /// It has been silent for longer than a patience.
    Vanished,
    /// It has no address here, and has not connected.
    Awaited,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub node: String,
    pub address: Option<String>,
    pub key: String,
    pub standing: Standing,
    pub since: SystemTime,
    pub round_trip: Option<Duration>,
    /// Why it is not here.
    pub why: Option<String>,
    /// What it lets this node use, as it said last.
    pub offers: Vec<Offer>,
    /// What it may use here.
    pub may: Vec<String>,
    /// Whether it is connected to this node.
    pub uses_us: bool,
}
