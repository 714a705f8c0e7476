//! How certain the instruction before a site is: against a straight decoding of whole libraries.

mod support;

use iced_x86::{Code, Decoder, DecoderOptions};
use outlast_rewrite::boundary::{may_start, preceding};

/// For the instructions of real functions (about fifteen thousand a library), what is said of the one before is true, and
/// none is said not to start where it does.
#[test]
fn never_names_a_wrong_instruction() {
    const ENOUGH: u64 = 15_000;
    for binary in support::binaries() {
        let (mut asked, mut answered, mut within, mut excluded) = (0u64, 0u64, 0u64, 0u64);
        let stride = binary.functions.iter().map(|function| function.len).sum::<u64>() / 4 / ENOUGH + 1;
        for function in binary.functions.iter().step_by(stride as usize) {
            let Some((text, start)) = binary.locate(function.address) else { continue };
            let Some(body) = text.bytes.get(start..start + function.len as usize) else { continue };
            let mut decoder = Decoder::with_ip(64, body, function.address, DecoderOptions::NONE);
            let mut before = None;
            while decoder.can_decode() {
                let at = start + decoder.position();
                if decoder.decode().code() == Code::INVALID {
                    break;
                }
                let shown = || format!("{:x} of {}", text.address + at as u64, binary.path.display());
                assert!(may_start(&text.bytes, at), "{}", shown());
                if let Some(before) = before {
                    asked += 1;
                    within += (at - before - 1) as u64;
                    excluded += (before + 1..at).filter(|inside| !may_start(&text.bytes, *inside)).count() as u64;
                    if let Some(said) = preceding(&text.bytes, at).next() {
                        answered += 1;
                        assert_eq!(said, before, "{}", shown());
                    }
                }
                before = Some(at);
            }
        }
        println!(
            "{}: asked {asked}, answered {answered}; {excluded} of {within} other offsets excluded",
            binary.path.display()
        );
        assert!(answered * 100 >= asked * 99, "an answer this rare is of little use");
        assert!(excluded * 100 >= within * 99, "a filter this weak is of little use");
    }
}

/// Where nothing is known, nothing is said.
#[test]
fn says_nothing_without_enough_code() {
    let code = [0x90; 63];
    assert_eq!(preceding(&code, 62).next(), None);
    assert!(may_start(&code, 62));
    let code = [0x90; 200];
    assert_eq!(preceding(&code, 150).take(3).collect::<Vec<_>>(), [149, 148, 147]);
}

/// `b8 3c 00 00 00` may be a whole instruction or the end of `mov $60,%r8d`: the code before decides.
#[test]
fn tells_a_prefix_from_the_end_of_another_instruction() {
    for (code, start) in [
        // test $0x41,%al; mov $60,%eax
        (&[0xa8, 0x41, 0xb8, 0x3c, 0, 0, 0][..], 2),
        // clc; mov $60,%r8d
        (&[0xf8, 0x41, 0xb8, 0x3c, 0, 0, 0][..], 1),
    ] {
        let mut bytes = vec![0x90; 250];
        let first = bytes.len();
        bytes.extend(code);
        let site = bytes.len();
        bytes.extend([0x0f, 0x05]);
        assert_eq!(preceding(&bytes, site).next(), Some(first + start));
    }
}
