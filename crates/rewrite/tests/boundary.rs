//! How certain the instruction before a site is: against a straight decoding of whole libraries.

mod support;

use iced_x86::{Code, Decoder, DecoderOptions};
use outlast_rewrite::boundary::{may_start, preceding};

/// For every instruction of real functions, what is said of the one before it is true.
#[test]
fn never_names_a_wrong_instruction() {
    for binary in support::binaries() {
        let (mut asked, mut answered, mut wrong, mut within, mut excluded) = (0u64, 0u64, 0u64, 0u64, 0u64);
        let mut functions: Vec<_> = binary.functions.iter().map(|f| (f.address, f.len)).collect();
        functions.sort();
        functions.dedup_by_key(|f| f.0);
        for text in &binary.texts {
            for &(address, len) in &functions {
                let Some(start) = address.checked_sub(text.address).map(|at| at as usize) else { continue };
                let Some(body) = text.bytes.get(start..start + len as usize) else { continue };
                let mut decoder = Decoder::with_ip(64, body, address, DecoderOptions::NONE);
                let mut before = None;
                while decoder.can_decode() {
                    let at = start + decoder.position();
                    let instruction = decoder.decode();
                    if instruction.code() == Code::INVALID {
                        break;
                    }
                    assert!(may_start(&text.bytes, at), "{:x} of {}", at, binary.path.display());
                    if let Some(before) = before.filter(|_| asked < 300_000) {
                        asked += 1;
                        for inside in before + 1..at {
                            within += 1;
                            excluded += !may_start(&text.bytes, inside) as u64;
                        }
                        if let Some(said) = preceding(&text.bytes, at).next() {
                            answered += 1;
                            wrong += (said != before) as u64;
                        }
                    }
                    before = Some(at);
                }
            }
        }
        println!(
            "{}: asked {asked}, answered {answered}, wrong {wrong}; {excluded} of {within} others excluded",
            binary.path.display()
        );
        assert_eq!(wrong, 0);
        assert!(answered * 100 >= asked * 80, "an answer this rare is of no use");
    }
}
