//! What each row promises, checked one row a test, and what the table promises as a whole.

use crate::{
    commands, count, look, row as find, unknown, Amount, Class, Interrupted, Len, Row, Witness, CLASS, LEN, TABLE,
};
use std::collections::{BTreeMap, BTreeSet};

/// `__NR_` constants of the newest kernel headers that a crate carries, and what came after them.
pub(crate) mod numbers {
    pub(crate) use linux_raw_sys::general::*;
    /// Since 6.18, in `arch/x86/entry/syscalls/syscall_64.tbl`.
    #[allow(non_upper_case_globals, reason = "the name is the header's")]
    pub(crate) const __NR_uprobe: u32 = 336;
}

/// `ARCH_` constants of `arch/x86/include/uapi/asm/prctl.h`, 6.18.
pub(crate) mod arch {
    pub(crate) const ARCH_SET_GS: u32 = 0x1001;
    pub(crate) const ARCH_SET_FS: u32 = 0x1002;
    pub(crate) const ARCH_GET_FS: u32 = 0x1003;
    pub(crate) const ARCH_GET_GS: u32 = 0x1004;
    pub(crate) const ARCH_GET_CPUID: u32 = 0x1011;
    pub(crate) const ARCH_SET_CPUID: u32 = 0x1012;
    pub(crate) const ARCH_GET_XCOMP_SUPP: u32 = 0x1021;
    pub(crate) const ARCH_GET_XCOMP_PERM: u32 = 0x1022;
    pub(crate) const ARCH_REQ_XCOMP_PERM: u32 = 0x1023;
    pub(crate) const ARCH_GET_XCOMP_GUEST_PERM: u32 = 0x1024;
    pub(crate) const ARCH_REQ_XCOMP_GUEST_PERM: u32 = 0x1025;
    pub(crate) const ARCH_MAP_VDSO_X32: u32 = 0x2001;
    pub(crate) const ARCH_MAP_VDSO_32: u32 = 0x2002;
    pub(crate) const ARCH_MAP_VDSO_64: u32 = 0x2003;
    pub(crate) const ARCH_GET_UNTAG_MASK: u32 = 0x4001;
    pub(crate) const ARCH_ENABLE_TAGGED_ADDR: u32 = 0x4002;
    pub(crate) const ARCH_GET_MAX_TAG_BITS: u32 = 0x4003;
    pub(crate) const ARCH_FORCE_TAGGED_SVA: u32 = 0x4004;
    pub(crate) const ARCH_SHSTK_ENABLE: u32 = 0x5001;
    pub(crate) const ARCH_SHSTK_DISABLE: u32 = 0x5002;
    pub(crate) const ARCH_SHSTK_LOCK: u32 = 0x5003;
    pub(crate) const ARCH_SHSTK_UNLOCK: u32 = 0x5004;
    pub(crate) const ARCH_SHSTK_STATUS: u32 = 0x5005;
}

/// `PR_` constants of the newest kernel headers that a crate carries, and the engine's own option.
pub(crate) mod prctl {
    pub(crate) use linux_raw_sys::prctl::*;
    /// "Outl"; the engine has it from `image/src/taking_part.rs`.
    pub(crate) const PR_OUTLAST: u32 = u32::from_le_bytes(*b"Outl");
}

/// The header of the C library's kernel interface on this machine, if it is installed: name to number.
fn header() -> Option<BTreeMap<String, u16>> {
    let text = std::fs::read_to_string("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").ok()?;
    Some(
        text.lines()
            .filter_map(|line| line.strip_prefix("#define __NR_")?.split_once(' '))
            .map(|(name, nr)| (name.to_owned(), nr.trim().parse().expect("a number")))
            .collect(),
    )
}

/// Checks one row; called by the test that the row's macro made.
pub(crate) fn row(name: &str, nr: u16, kernel: u32) {
    assert_eq!(u32::from(nr), kernel, "the kernel has another number for {name}");
    if let Some(&number) = header().as_ref().and_then(|header| header.get(name)) {
        assert_eq!(nr, number, "the header has another number for {name}");
    }
    let row = find(u64::from(nr)).expect("the row is in the table");
    assert_eq!((row.name, row.nr), (name, nr));
    assert_eq!(Class::ALL.iter().filter(|&&class| class == row.class).count(), 1);
    assert_eq!(CLASS[nr as usize], row.class as u8);
    if matches!(row.class, Class::Redo | Class::Once | Class::Object | Class::Unknown) {
        assert!(!row.note.is_empty(), "{name} is {} and needs a note", row.class.name());
    }
    if let Some(arg) = row.decided_by {
        assert!(arg < 6);
        assert_ne!(row.class, Class::Pure, "the gate passes Pure calls without looking at an argument");
        assert!(!row.note.is_empty(), "{name} is decided by an argument: the note must say how");
    }
    assert!(!row.waits || row.interrupted != Interrupted::Never, "{name} waits, so a signal must reach it");
    if row.interrupted == Interrupted::Special {
        assert!(!row.note.is_empty(), "{name}: the note must say what a signal leaves of it");
    }
    if row.class == Class::Once {
        assert!(row.ring.is_some() || row.witness != Witness::None, "{name} happens once: what tells that it did?");
    } else {
        assert_eq!(row.witness, Witness::None, "{name}: only Once needs a witness");
    }
    if row.class == Class::Absent {
        assert!(row.outs().is_empty() && row.descriptors() == 0 && !row.waits && row.note.is_empty());
    }
    outs(row);
}

/// Checks the row of one command; called by the test that the row's macro made.
pub(crate) fn command(nr: u16, name: &str, value: u32, kernel: u32) {
    assert_eq!(value, kernel, "the kernel has another number for {name}");
    let asm = std::fs::read_to_string("/usr/include/x86_64-linux-gnu/asm/prctl.h").unwrap_or_default();
    if let Some(number) = asm
        .lines()
        .filter_map(|line| line.strip_prefix("#define ")?.split_once(char::is_whitespace))
        .find(|define| define.0 == name)
    {
        assert_eq!(format!("{value:#x}"), number.1.trim(), "the header has another number for {name}");
    }
    let call = find(u64::from(nr)).expect("the call");
    let mut args = [0; 6];
    // The kernel takes the low half only.
    args[call.decided_by.expect("a command") as usize] = 0x7777 << 32 | u64::from(value);
    let row = look(u64::from(nr), &args).expect("the command");
    assert_eq!((row.nr, row.name), (nr, name), "two rows have the same number");
    assert_eq!(row.descriptors(), call.descriptors());
    assert!(!matches!(row.class, Class::Once | Class::Unknown | Class::Absent));
    assert!(!row.waits || row.interrupted != Interrupted::Never && call.waits);
    outs(row);
}

fn outs(row: &Row) {
    let mut seen = BTreeSet::new();
    for out in row.outs() {
        assert!(out.arg < 6, "{}: argument {}", row.name, out.arg);
        assert!(seen.insert(out.arg), "{}: argument {} is described twice", row.name, out.arg);
        assert_eq!(row.descriptors() >> out.arg & 1, 0, "{}: argument {} is a descriptor", row.name, out.arg);
        let counted = match out.len {
            Len::Fixed(bytes) => {
                assert!(bytes > 0, "{}: nothing is written", row.name);
                None
            }
            Len::Word(arg) => {
                let word = row.outs().iter().find(|other| other.arg == arg);
                assert_eq!(word.map(|out| out.len), Some(Len::Fixed(4)), "{}: the length is written back", row.name);
                Some(arg)
            }
            Len::Bytes(amount)
            | Len::BytesPlus(amount, _)
            | Len::Items(amount, _)
            | Len::Bits(amount)
            | Len::Pages(amount)
            | Len::Iovec(amount)
            | Len::Messages(amount) => match amount {
                Amount::Whole(arg) | Amount::Low(arg) => Some(arg),
            },
            Len::Special => {
                assert!(!row.note.is_empty(), "{}: the note must say what is written", row.name);
                None
            }
            Len::Message | Len::Handle | Len::XattrArgs => None,
        };
        if let Some(arg) = counted {
            assert!(arg < 6 && arg != out.arg, "{}: argument {arg} is no count", row.name);
            assert_eq!(row.descriptors() >> arg & 1, 0, "{}: argument {arg} is a descriptor", row.name);
        }
    }
}

#[test]
fn every_number_of_the_header_has_a_row() {
    let Some(header) = header() else {
        println!("skipped: no kernel headers installed");
        return;
    };
    assert!(header.len() > 350);
    for (name, nr) in header {
        assert_eq!(find(u64::from(nr)).map(|row| row.name), Some(name.as_str()), "number {nr}");
    }
}

#[test]
fn the_only_gap_is_the_kernels() {
    for nr in 0..LEN as u64 {
        assert_eq!(find(nr).is_none(), (337..424).contains(&nr), "number {nr}");
    }
    for nr in [LEN as u64, 511, 512, 547, 0x4000_0000, u64::MAX] {
        assert!(find(nr).is_none(), "number {nr}");
    }
}

#[test]
fn unknown_commands_are_unknown() {
    for row in TABLE.iter().flatten() {
        let args = [0x7eee_eeee; 6];
        let looked = look(u64::from(row.nr), &args).expect("a row");
        if !commands(u64::from(row.nr)).is_empty() {
            assert_eq!((looked.class, looked.nr, looked.name), (Class::Unknown, row.nr, row.name));
            assert_ne!(row.class, Class::Pure);
        } else {
            assert!(std::ptr::eq(looked, row));
        }
    }
    assert!(look(400, &[0; 6]).is_none());
}

#[test]
fn names_are_unique() {
    let mut names = BTreeSet::new();
    for row in TABLE.iter().flatten() {
        assert!(names.insert(row.name), "{} has two rows", row.name);
    }
}

#[test]
fn the_gate_passes_nothing_that_has_no_row() {
    for nr in 0..512 {
        let class = find(nr).map_or(Class::Unknown, |row| row.class);
        assert_eq!(CLASS[nr as usize], class as u8, "number {nr}");
    }
}

#[test]
fn class_values_are_stable() {
    let values: Vec<(u8, &str)> = Class::ALL.iter().map(|&class| (class as u8, class.name())).collect();
    let names = [
        "Pure", "Map", "Open", "Close", "Offset", "Input", "Output", "Redo", "Once", "Signal", "Thread", "Spawn",
        "Exec", "Wait", "Exit", "Object", "Security", "Absent", "Unknown",
    ];
    assert_eq!(values, (0..).zip(names).collect::<Vec<_>>());
}

#[test]
fn figures() {
    let mut total = 0;
    for &class in Class::ALL {
        println!("{:>4} {}", count(class), class.name());
        total += count(class);
    }
    println!("{total:>4} rows, {} of them still Unknown", unknown());
    assert_eq!(total, TABLE.iter().flatten().count());
    assert_eq!(total, 383);
    assert!(unknown() <= 5, "{} rows are still Unknown", unknown());
}
