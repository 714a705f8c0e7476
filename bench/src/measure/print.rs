//! A python program that prints in a loop and flushes every time.

use crate::failure::Outcome;
use crate::measurement::{Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::trial::{Trial, EACH};
use crate::user::User;
use crate::workshop::Workshop;

pub struct Print;

const ID: &str = "python-print";
const TOGETHER: &str = "python-print-together";

/// Prints in short batches and leaves the median batch's nanoseconds a print. Batches in which another program ran in
/// between count only if there are no others.
const SCRIPT: &str = "\
import os, resource, sys, time
clock, clean, disturbed, size = time.perf_counter_ns, [], [], 100
def preemptions():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
for b in range(100):
    before, began = preemptions(), clock()
    for i in range(size):
        print(i, flush=True)
    each = (clock() - began) / size
    (clean if preemptions() == before else disturbed).append(each)
batches = sorted(clean or disturbed)
with open(sys.argv[1] + '.new', 'w') as result:
    result.write('print %.1f\\n' % batches[len(batches) // 2])
os.rename(sys.argv[1] + '.new', sys.argv[1])
";

impl Measurement for Print {
    fn name(&self) -> String {
        "python prints".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let what = "python3 print(i, flush=True) in a loop, a print".into();
        let each = Promise { id: ID.into(), what, unit: Unit::Microseconds, relation: Relation::Whole, limit: 10.0 };
        let what = "the same, prints that leave together, more than native".into();
        let together =
            Promise { id: TOGETHER.into(), what, unit: Unit::Percent, relation: Relation::Overhead, limit: 50.0 };
        vec![each, together]
    }

    fn rounds(&self) -> usize {
        9
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let before = ["python3", "-c", SCRIPT].map(Into::into).to_vec();
        let trial = Trial { user: User::Own, before, after: Vec::new(), figures: 1 };
        let (native, protected, conditions) = trial.pair(number, workshop, EACH)?;
        collected.conditions(&conditions);
        collected.add(ID, Some(native[0] / 1000.0), protected[0] / 1000.0);
        let (native, protected, _) = trial.pair(number, workshop, &[])?;
        collected.add(TOGETHER, Some(native[0] / 1000.0), protected[0] / 1000.0);
        Ok(())
    }
}
