//! What `outlast log NAME --json` says about a run.

use serde_json::Value;

use crate::failure::{Failure, Outcome, Tried};
use crate::histogram::Histogram;
use crate::launch::{Launcher, NAME};

/// One line of the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    pub event: String,
    pub cause: String,
    pub rung: u64,
    pub duration_us: f64,
    pub phase: String,
}

/// The whole log of a program.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    pub entries: Vec<Entry>,
    /// As it was printed.
    pub text: String,
}

impl EventLog {
    /// Asks `outlast`.
    pub fn ask(launcher: &Launcher) -> Outcome<EventLog> {
        let output = launcher.outlast(&["log", NAME, "--json"]).output().tried("run outlast log")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Failure::Told(format!("outlast log ended with {}: {complaint}", output.status)));
        }
        EventLog::parse(text)
    }

    fn parse(text: String) -> Outcome<EventLog> {
        let mut entries = Vec::new();
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).map_err(|e| {
                Failure::Told(format!("outlast log printed a line that is no JSON object ({e}): {line}"))
            })?;
            let word = |key: &str| value[key].as_str().unwrap_or_default().to_string();
            if value["time"].is_null() || word("event").is_empty() {
                return Err(Failure::Told(format!("a log line without time or event: {line}")));
            }
            entries.push(Entry {
                event: word("event"),
                cause: word("cause"),
                rung: value["rung"].as_u64().unwrap_or(0),
                duration_us: value["duration_us"].as_f64().unwrap_or(0.0),
                phase: word("phase"),
            });
        }
        Ok(EventLog { entries, text })
    }

    /// How often the program was recovered: in place, from its anchor, from its store.
    pub fn recoveries(&self) -> u32 {
        self.entries.iter().filter(|e| ["rollback", "recovered", "resumed"].contains(&e.event.as_str())).count() as u32
    }

    /// Whether the engine ever was in the program.
    pub fn says_protected(&self) -> bool {
        self.entries.iter().any(|e| e.event == "injected" || e.event == "recovered")
    }

    /// How often it was found dead.
    pub fn deaths(&self) -> u32 {
        self.entries.iter().filter(|e| e.event == "killed").count() as u32
    }

    /// Phases in which the program was found dead by SIGKILL; before the first commit there is none to be told.
    pub fn phases(&self) -> Histogram {
        let mut histogram = Histogram::default();
        for entry in self.entries.iter().filter(|e| e.event == "killed" && e.cause == "SIGKILL") {
            histogram.count_name(if entry.phase.is_empty() { "start" } else { &entry.phase });
        }
        histogram
    }

    /// Degradations the log names.
    pub fn degradations(&self) -> impl Iterator<Item = &str> {
        let told = self.entries.iter().filter(|e| ["degradation", "suspended"].contains(&e.event.as_str()));
        told.map(|e| e.cause.as_str())
    }

    /// What a diagnosis shows: everything but kills and recoveries, of which only the last `n` lines are kept.
    pub fn telling(&self, n: usize) -> String {
        let skipped = self.entries.len().saturating_sub(n);
        let is_routine = |e: &Entry| ["killed", "recovered", "rollback"].contains(&e.event.as_str());
        let told = self.entries.iter().zip(self.text.lines()).enumerate();
        let kept = told.filter(|(i, (entry, _))| *i >= skipped || !is_routine(entry)).map(|(_, (_, line))| line);
        kept.collect::<Vec<_>>().join("\n    ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_recoveries_and_their_phases() {
        let log = EventLog::parse(
            concat!(
                r#"{"time":1,"event":"started","cause":null,"rung":null,"duration_us":null}"#,
                "\n",
                r#"{"time":2,"event":"killed","cause":"SIGKILL","rung":null,"duration_us":null,"phase":"commit"}"#,
                "\n",
                r#"{"time":2,"event":"recovered","cause":"SIGKILL","rung":2,"duration_us":812.5}"#,
                "\n",
                r#"{"time":3,"event":"rollback","cause":"SIGSEGV","rung":1,"duration_us":90}"#,
                "\n"
            )
            .to_string(),
        )
        .unwrap();
        assert_eq!(log.recoveries(), 2);
        assert_eq!(log.phases().total(), 1);
        assert_eq!(log.entries[2].duration_us, 812.5);
    }

    #[test]
    fn a_line_that_is_no_object_is_an_error() {
        assert!(EventLog::parse("recovered!\n".to_string()).is_err());
    }
}
