//! The families merged into one array, indexed by number.

use crate::family::FAMILIES;
use crate::{Class, Row};

/// One more than the highest number that Linux 6.18 knows.
pub const LEN: usize = 470;

/// The rows by number; `None` where the kernel has a gap (337 to 423).
pub static TABLE: [Option<Row>; LEN] = merge();

/// The classes by number, for the gate: a byte each, [`Class::Unknown`] where there is no row. Numbers from 512 on
/// have no byte here and are Unknown too.
pub const CLASS: [u8; 512] = classes();

/// What is known about a call; `None` if nothing is ([`Class::Unknown`]).
pub fn row(nr: u64) -> Option<&'static Row> {
    TABLE.get(usize::try_from(nr).ok()?)?.as_ref()
}

/// How many rows are of a class.
pub const fn count(class: Class) -> usize {
    let mut found = 0;
    let mut nr = 0;
    while nr < LEN {
        if let Some(row) = &TABLE[nr] {
            if row.class as u8 == class as u8 {
                found += 1;
            }
        }
        nr += 1;
    }
    found
}

/// How many rows are still [`Class::Unknown`].
pub const fn unknown() -> usize {
    count(Class::Unknown)
}

const fn merge() -> [Option<Row>; LEN] {
    let mut rows = [None; LEN];
    let mut family = 0;
    while family < FAMILIES.len() {
        let mut at = 0;
        while at < FAMILIES[family].len() {
            let row = FAMILIES[family][at];
            assert!(rows[row.nr as usize].is_none(), "two rows have the same number");
            rows[row.nr as usize] = Some(row);
            at += 1;
        }
        family += 1;
    }
    rows
}

const fn classes() -> [u8; 512] {
    let mut classes = [Class::Unknown as u8; 512];
    let mut nr = 0;
    while nr < LEN {
        if let Some(row) = &TABLE[nr] {
            classes[nr] = row.class as u8;
        }
        nr += 1;
    }
    classes
}
