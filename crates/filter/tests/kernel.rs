//! The interpreter beside the kernel's: the same filter, the same calls, the same answers.

use std::io;

use outlast_filter::{strictest, verdict, verdicts, Instruction, Question, Verdict, Verdicts};
use proptest::prelude::*;

/// A call that exists nowhere and that takes any arguments.
const NOWHERE: u32 = 500;

const LOAD: u16 = 0x20;
const RETURN: u16 = 0x06;
const ERRNO: u32 = 0x0005_0000;
const ALLOW: u32 = 0x7fff_0000;

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
    Instruction { code, jt, jf, k }
}

/// What the kernel answers, in a thread of its own, to `NOWHERE` with each of these arguments under these filters; 38 is ENOSYS:
/// the call is allowed.
fn ask_kernel(filters: &[Vec<Instruction>], calls: &[[u64; 6]]) -> Vec<i32> {
    let (filters, calls) = (filters.to_vec(), calls.to_vec());
    std::thread::spawn(move || {
        // SAFETY: the filters are read during the calls; they bind this thread only.
        unsafe {
            assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            for filter in &filters {
                let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr() as *mut _ };
                let r = libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program);
                assert_eq!(r, 0, "{}", io::Error::last_os_error());
            }
            let ask = |a: &[u64; 6]| match libc::syscall(NOWHERE as i64, a[0], a[1], a[2], a[3], a[4], a[5]) {
                -1 => io::Error::last_os_error().raw_os_error().unwrap(),
                _ => 0,
            };
            calls.iter().map(ask).collect()
        }
    })
    .join()
    .unwrap()
}

fn ask(filters: &[Vec<Instruction>], args: [u64; 6]) -> i32 {
    let question = Question { nr: NOWHERE, address: None, args: args.map(Some) };
    let value = filters.iter().map(|f| verdict(f, &question).expect("all is known")).fold(ALLOW, strictest);
    match Verdict::of(value) {
        Verdict::Errno(number) => number as i32,
        _ => libc::ENOSYS,
    }
}

/// An instruction that can stand at `at` of a filter with `len` instructions before its two returns.
fn some_instruction(at: usize, len: usize) -> impl Strategy<Value = Instruction> {
    let rest = (len - at) as u8;
    let word = prop_oneof![0..8u32, Just(0x1234), any::<u32>()];
    let offsets = prop_oneof![Just(0u32), Just(4), (4..16u32).prop_map(|i| i * 4)];
    let computes = prop_oneof![
        Just(0x04u16),
        Just(0x0c),
        Just(0x14),
        Just(0x1c),
        Just(0x24),
        Just(0x2c),
        Just(0x44),
        Just(0x4c),
        Just(0x54),
        Just(0x5c),
        Just(0x84),
        Just(0xa4),
        Just(0xac),
        Just(0x3c)
    ];
    let tests =
        prop_oneof![Just(0x15u16), Just(0x1d), Just(0x25), Just(0x2d), Just(0x35), Just(0x3d), Just(0x45), Just(0x4d)];
    prop_oneof![
        offsets.prop_map(|k| instruction(LOAD, 0, 0, k)),
        word.clone().prop_map(|k| instruction(0x00, 0, 0, k)),
        word.clone().prop_map(|k| instruction(0x01, 0, 0, k)),
        Just(instruction(0x80, 0, 0, 0)),
        Just(instruction(0x07, 0, 0, 0)),
        Just(instruction(0x87, 0, 0, 0)),
        (computes, word.clone()).prop_map(|(code, k)| instruction(code, 0, 0, k)),
        (1..32u32).prop_map(|k| instruction(0x64, 0, 0, k)),
        (1..32u32).prop_map(|k| instruction(0x74, 0, 0, k)),
        (tests, 0..=rest, 0..=rest, word).prop_map(|(code, jt, jf, k)| instruction(code, jt, jf, k)),
    ]
}

fn some_filter() -> impl Strategy<Value = Vec<Instruction>> {
    (1..24usize).prop_flat_map(|len| {
        // The kernel wants memory to be written before it is read.
        // No other call is filtered: the thread needs them.
        let stores = Just(vec![
            instruction(LOAD, 0, 0, 0),
            instruction(0x15, 1, 0, NOWHERE),
            instruction(RETURN, 0, 0, ALLOW),
            instruction(LOAD, 0, 0, 16),
            instruction(0x02, 0, 0, 3),
        ]);
        let middle: Vec<_> = (0..len).map(|at| some_instruction(at, len)).collect();
        (stores, middle, any::<bool>(), 0..200u32).prop_map(|(mut all, middle, recalls, errno)| {
            all.extend(middle);
            if recalls {
                all.push(instruction(0x61, 0, 0, 3));
                all.push(instruction(0x1d, 1, 0, 0));
            } else {
                all.push(instruction(0x15, 1, 0, 5));
            }
            all.push(instruction(RETURN, 0, 0, ERRNO | errno));
            all.push(instruction(RETURN, 0, 0, ALLOW));
            all
        })
    })
}

fn some_args() -> impl Strategy<Value = [u64; 6]> {
    prop::array::uniform6(prop_oneof![0..8u64, Just(0x1234), any::<u64>()])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_kernel_says_the_same(
        filters in prop::collection::vec(some_filter(), 1..4),
        calls in prop::collection::vec(some_args(), 8),
    ) {
        let divides = |f: &Vec<Instruction>| f.iter().any(|i| i.code == 0x3c);
        // A division by zero would end this process's thread: those are asked without the kernel, below.
        prop_assume!(!filters.iter().any(divides));
        let kernel = ask_kernel(&filters, &calls);
        for (args, said) in calls.iter().zip(kernel) {
            prop_assert_eq!(ask(&filters, *args), said, "{:x?}", args);
        }
    }

    #[test]
    fn what_is_said_of_a_call_is_among_what_is_said_with_less_known(
        filter in some_filter(),
        args in some_args(),
        known in prop::array::uniform6(any::<bool>()),
    ) {
        let whole = Question { nr: NOWHERE, address: None, args: args.map(Some) };
        let mut part = whole;
        for (arg, known) in part.args.iter_mut().zip(known) {
            *arg = arg.filter(|_| known);
        }
        let said = Verdict::of(verdict(&filter, &whole).expect("all is known"));
        prop_assert!(verdicts(&filter, &part).contains(said));
        prop_assert!(verdicts(&filter, &Question::any(NOWHERE)).contains(said));
    }

    #[test]
    fn no_bytes_make_it_panic(
        words in prop::collection::vec(any::<(u16, u8, u8, u32)>(), 0..64),
        args in some_args(),
    ) {
        let filter: Vec<_> = words.into_iter().map(|(code, jt, jf, k)| instruction(code, jt, jf, k)).collect();
        verdict(&filter, &Question { nr: 1, address: Some(0), args: args.map(Some) });
        verdicts(&filter, &Question::any(1));
    }
}

#[test]
fn a_filter_with_too_many_ways_may_say_anything() {
    let mut filter = Vec::new();
    for arg in 0..40 {
        filter.push(instruction(LOAD, 0, 0, 16 + arg % 6 * 8));
        filter.push(instruction(0x15, 0, 1, arg));
        filter.push(instruction(0x00, 0, 0, arg));
    }
    filter.push(instruction(RETURN, 0, 0, ALLOW));
    assert_eq!(verdicts(&filter, &Question::any(1)), Verdicts::ALL);
    assert!(verdict(&filter, &Question { nr: 1, address: None, args: [Some(0); 6] }).is_some());
}
