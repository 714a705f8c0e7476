//! What `check` found.

use super::advice;
use outlast_image::degradation::Degradation;
use serde::Serialize;

/// How it bears on protection.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bearing {
    /// Preserved.
    Kept,
    /// Preserved at a higher cost, or worth knowing.
    Note,
    /// Not preserved.
    Lost,
}

/// One thing that was looked at.
#[derive(Serialize)]
pub struct Finding {
    pub bearing: Bearing,
    /// Stable name; that of a degradation as in `ps --json`.
    pub what: &'static str,
    /// One sentence for a person.
    pub text: String,
    /// What would change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<&'static str>,
}

impl Finding {
    pub fn kept(what: &'static str, text: impl Into<String>) -> Finding {
        Finding { bearing: Bearing::Kept, what, text: text.into(), help: None }
    }

    pub fn note(what: &'static str, text: impl Into<String>, help: Option<&'static str>) -> Finding {
        Finding { bearing: Bearing::Note, what, text: text.into(), help }
    }

    pub fn lost(what: &'static str, text: impl Into<String>, help: Option<&'static str>) -> Finding {
        Finding { bearing: Bearing::Lost, what, text: text.into(), help }
    }

    pub fn degradation(degradation: Degradation) -> Finding {
        // The program itself sees no difference.
        let bearing = if degradation == Degradation::PidChanged { Bearing::Note } else { Bearing::Lost };
        Finding {
            bearing,
            what: degradation.key(),
            text: degradation.text().trim().into(),
            help: advice::on(degradation),
        }
    }
}

/// All of it.
#[derive(Serialize)]
pub struct Report {
    /// Is nothing lost?
    pub whole: bool,
    pub findings: Vec<Finding>,
}

impl Report {
    /// Said twice counts once.
    pub fn of(all: Vec<Finding>) -> Report {
        let mut findings: Vec<Finding> = Vec::new();
        for finding in all {
            if !findings.iter().any(|known| known.what == finding.what) {
                findings.push(finding);
            }
        }
        Report { whole: findings.iter().all(|finding| finding.bearing != Bearing::Lost), findings }
    }

    /// For a person: what is lost comes last, where it is read first.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (bearing, word) in [(Bearing::Kept, "kept"), (Bearing::Note, "note"), (Bearing::Lost, "lost")] {
            for finding in self.findings.iter().filter(|finding| finding.bearing == bearing) {
                text += &format!("{word}  {}: {}\n", finding.what, finding.text);
                text += &finding.help.map(|help| format!("      {help}\n")).unwrap_or_default();
            }
        }
        text + if self.whole { "Protection is whole.\n" } else { "Protection is not whole.\n" }
    }
}
