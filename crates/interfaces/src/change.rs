//! What a person wishes of the modules of a program that runs.

use crate::sysc::Visible;
use crate::{generations, leaks, storm};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// A module protects it, from now on or otherwise than before. What is not mentioned stays as it is, and is as with `outlast run`
    /// if the module was not there.
    Add(Added),
    /// The module of this name protects it no longer.
    Remove(String),
    /// The pin of this name is there no longer: who asks for it is told so.
    Uninstall(String),
    /// It is there again.
    Install(String),
}

/// A module, and what is mentioned of its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Added {
    Crash {
        retries: Option<u32>,
    },
    Visible {
        outputs: Option<Visible>,
    },
    Server,
    Checkpoint {
        every: Option<Every>,
    },
    Hang {
        limit: Option<Limit>,
        /// Functions that are code sections.
        sections: Option<Vec<String>>,
    },
    Generations {
        settings: Option<generations::Settings>,
    },
    Storm {
        measure: Option<storm::Settings>,
        /// The command's words.
        alert: Option<Vec<String>>,
    },
    Leaks {
        settings: Option<leaks::Settings>,
    },
    /// One that is loaded from a file.
    Plugin {
        name: String,
        /// From where, absolute.
        file: PathBuf,
        settings: Option<String>,
    },
}

/// How often to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Every {
    /// Every second, or less often where that would take more than a hundredth of the time.
    Auto,
    At(Duration),
}

/// From what on a section hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// What it has taken before.
    Learnt,
    /// That, or so much.
    At(Duration),
}
