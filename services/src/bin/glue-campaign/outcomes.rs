//! What became of the faults in a service: how many of each outcome, and those that were not recovered from by what was seen.

use std::collections::BTreeMap;

use outlast_inject::harm::Harm;
use serde_json::{json, Value};

use crate::bench::{Outcome, OUTCOMES};

pub struct Fault {
    pub harm: Harm,
    pub outcome: Outcome,
    /// What was seen, where that must not be.
    pub cause: String,
}

pub struct Outcomes(pub Vec<Fault>);

impl Outcomes {
    fn count(&self, wanted: Outcome) -> usize {
        self.0.iter().filter(|fault| fault.outcome == wanted).count()
    }

    /// By what was seen: the numbers of the faults.
    fn causes(&self) -> BTreeMap<(String, &str), Vec<usize>> {
        let mut causes: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (number, fault) in self.0.iter().enumerate() {
            if !matches!(fault.outcome, Outcome::NoEffect | Outcome::Recovered) {
                let outcome = OUTCOMES.iter().find(|(known, _)| *known == fault.outcome).map_or("", |(_, name)| name);
                causes.entry((format!("{outcome}: {}", fault.cause), fault.harm.kind)).or_default().push(number);
            }
        }
        causes
    }

    pub fn text(&self, service: &str) -> String {
        let activated = self.0.len() - self.count(Outcome::NoEffect);
        let rate = 100.0 * self.count(Outcome::Recovered) as f64 / activated.max(1) as f64;
        let all: Vec<String> =
            OUTCOMES.iter().map(|(outcome, name)| format!("{} {name}", self.count(*outcome))).collect();
        let mut text = format!(
            "{service:<10} {} injected: {}; {rate:.1} % of activated ones recovered\n",
            self.0.len(),
            all.join(", ")
        );
        for ((cause, kind), faults) in self.causes() {
            text += &format!("{:>14} {kind} × {cause}\n", faults.len());
            for number in faults {
                let Harm { what, stack, .. } = &self.0[number].harm;
                text += &format!("{:>16} fault {number}: {what}, in {}\n", "", stack.join(" < "));
            }
        }
        text
    }

    pub fn json(&self, service: &str) -> Value {
        let mut all = json!({ "service": service, "injected": self.0.len() });
        for (outcome, name) in OUTCOMES {
            all[name] = self.count(outcome).into();
        }
        let failed = self.causes().into_iter().map(|((cause, kind), faults)| {
            let faults: Vec<Value> = faults
                .into_iter()
                .map(|number| {
                    let Harm { what, stack, .. } = &self.0[number].harm;
                    json!({ "number": number, "what": what, "stack": stack })
                })
                .collect();
            json!({ "cause": cause, "kind": kind, "faults": faults })
        });
        all["failed"] = failed.collect();
        all
    }
}
