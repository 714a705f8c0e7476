//! Programs that talk to nobody but files, and have objects of the kernel's to themselves: those come back even when everything has died.

use std::time::Duration;

use super::servers::{GO, NODE, PYTHON};
use crate::case::{Case, Program, Stage};
use crate::drive::Drive;
use crate::failure::Outcome;
use crate::launch::program;

/// They show nothing while they start: killed more often they would never come further than that.
const LATE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(400));

pub const CASES: &[Case] = &[
    Case::new("alone", |_| Ok(Program::new(&[&program("alone"), "3000"])), files),
    Case::new("own_memfd_alone", |_| own_file("memfd"), files),
    Case::new("own_closed_alone", |_| own_file("closed"), files),
    Case::new("own_named_alone", |_| own_file("named"), files),
    Case::new("own_named_closed_alone", |_| own_file("named-closed"), files),
    Case::new("own_named_locked_closed_alone", |_| own_file("named-locked-closed"), files),
    Case::new("own_calls_alone", |_| own_calls("memfd"), files),
    Case::new("own_calls_tmpfile_alone", |_| own_calls("tmpfile"), files),
    Case::new("asyncio_alone", |_| Ok(Program::new(&[PYTHON, &program("alone.py"), "120"])), files)
        .needs(&[PYTHON])
        .pace(LATE),
    Case::new("node_alone", |_| Ok(Program::new(&[NODE, &program("alone.js"), "60"])), files).needs(&[NODE]).pace(LATE),
    Case::new("go_alone", |_| Ok(Program::new(&[&program("poller"), "1500"])), files).needs(&[GO]),
];

fn files(_: &Stage) -> Drive {
    Drive::Files(Vec::new())
}

fn own_file(kind: &'static str) -> Outcome<Program> {
    Ok(Program::new(&[&program("own_file"), "1500", kind, "told"]))
}

fn own_calls(kind: &'static str) -> Outcome<Program> {
    Ok(Program::new(&[&program("own_calls"), "1500", kind, "told"]))
}
