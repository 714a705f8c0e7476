//! One call, made twice with different canaries, judged against its row.

use crate::arena::Arena;
use crate::child::call_in_child;
use outlast_calls::{look, written, Told, TABLE};

/// What the call must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Success.
    Success,
    /// Success where the kernel and the file system have it; a skip is printed where they have not.
    Support,
    /// Anything: success cannot be had here, but nothing may be written that the row does not know.
    Answer,
}

const ENOSYS: i64 = -38;
const EOPNOTSUPP: i64 = -95;
const ENOTTY: i64 = -25;
const EPERM: i64 = -1;
const CANARIES: [u8; 2] = [0xa5, 0x5a];

/// Arguments that are not slots: index and value.
pub type Given = Vec<(usize, u64)>;

/// Makes the call with every argument that `setup` does not give pointing to canary memory. Each out-parameter of the row
/// must be seen to change but for those in `quiet`, which this call has no reason to write.
pub fn probe(name: &str, want: Want, quiet: &[u8], setup: impl Fn(&mut Arena) -> Given) {
    let row = TABLE.iter().flatten().find(|row| row.name == name).expect("a known name");
    let mut seen = [false; 6];
    let mut looked = row;
    for canary in CANARIES {
        let mut arena = Arena::new(canary);
        let mut args = [0, 1, 2, 3, 4, 5].map(|arg| arena.slot(arg));
        for (arg, value) in setup(&mut arena) {
            args[arg] = value;
        }
        let before = arena.snapshot();
        looked = look(u64::from(row.nr), &args).expect("a row");
        let mut may = vec![false; before.len()];
        let told = written(looked, &args, &arena, |at, len| {
            let (start, end) = range(&arena, at, len, may.len());
            may[start..end].fill(true);
        });
        assert_eq!(told, Told::All, "{name}: the row does not tell everything");

        let result = call_in_child(&arena, u64::from(row.nr), args);
        println!("{name}: {result}");
        let after = arena.snapshot();
        for (at, (old, new)) in before.iter().zip(&after).enumerate() {
            assert!(old == new || may[at], "{name} wrote at {at:#x}, which its row does not say (result {result})");
        }
        if want == Want::Support && [ENOSYS, EOPNOTSUPP, ENOTTY, EPERM].contains(&result) {
            println!("skipped: not supported here");
            return;
        }
        assert!(result >= 0 || want == Want::Answer, "{name}: error {}", -result);
        for out in looked.outs() {
            out.written(&args, &arena, |at, len| {
                let (start, end) = range(&arena, at, len, before.len());
                seen[out.arg as usize] |= before[start..end] != after[start..end];
            });
        }
    }
    for out in looked.outs() {
        let quiet = quiet.contains(&out.arg) || want == Want::Answer;
        assert!(quiet || seen[out.arg as usize], "{name}: nothing was written at argument {}", out.arg);
    }
}

/// The part of a range of addresses that lies in a snapshot of `size` bytes: its offsets there.
fn range(arena: &Arena, at: u64, len: u64, size: usize) -> (usize, usize) {
    let start = arena.offset(at).min(size);
    (start, start.saturating_add(len as usize).min(size))
}

/// Makes a test of each line: `name(row) Want[quiet] arena => given;`, the row's name only where it is another.
macro_rules! probes {
    ($($test:ident $(($row:ident))? $want:ident $([$($quiet:literal),*])? $arena:ident => $given:expr;)*) => {
        /// The rows probed here.
        pub const PROBED: &[&str] = &[$(crate::probe::probes!(@ $test $($row)?),)*];
        /// The names of the tests.
        #[allow(dead_code, reason = "only those of commands are looked at")]
        pub const TESTS: &[&str] = &[$(stringify!($test)),*];

        $(
            #[test]
            fn $test() {
                crate::probe::probe(
                    crate::probe::probes!(@ $test $($row)?),
                    crate::probe::Want::$want,
                    &[$($($quiet),*)?],
                    |$arena| $given,
                );
            }
        )*
    };
    (@ $test:ident) => { stringify!($test) };
    (@ $test:ident $row:ident) => { stringify!($row) };
}
pub(crate) use probes;
