//! Every site of real binaries: how many can be rewritten, and whether what moves into the stub means the same there.

mod support;

use iced_x86::{Code, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use outlast_rewrite::{plan, BranchMap, Patch, Plan, Refusal, Stub};
use support::Text;

const GATE: u64 = 0x2000_0000_1000;

fn decode(bytes: &[u8], address: u64) -> Vec<Instruction> {
    Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).iter().collect()
}

/// A stub as near as it may be, and as far.
fn places(plan: &Plan) -> [u64; 2] {
    let reach = plan.reach();
    [(plan.at() + 0x10_0000) & !0xfff, (reach.end - outlast_rewrite::AREA_LEN) & !0xfff]
}

/// What an instruction does, wherever it stands.
fn meaning(instruction: &Instruction) -> String {
    let branch =
        matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
    if branch {
        return format!(
            "{:?} {:?} to {:x}",
            instruction.mnemonic(),
            instruction.condition_code(),
            instruction.near_branch_target()
        );
    }
    let operands: Vec<String> = (0..instruction.op_count())
        .map(|operand| match instruction.op_kind(operand) {
            OpKind::Register => format!("{:?}", instruction.op_register(operand)),
            OpKind::Memory => format!(
                "{:?} {:?}:[{:?}+{:?}*{}+{:x}]",
                instruction.memory_size(),
                instruction.memory_segment(),
                instruction.memory_base(),
                instruction.memory_index(),
                instruction.memory_index_scale(),
                instruction.memory_displacement64()
            ),
            _ => format!("{:x}", instruction.immediate(operand)),
        })
        .collect();
    format!("{:?} {operands:?}", instruction.code())
}

fn unconditional(instruction: &Instruction) -> bool {
    instruction.condition_code() == ConditionCode::None
        && matches!(
            instruction.flow_control(),
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
        )
}

/// Decodes the original code and the stub, and compares.
fn check(text: &Text, plan: &Plan, patch: &Patch) {
    let at = |address: u64| (address - text.address) as usize;
    let overwritten = plan.overwritten();
    let before = decode(&text.bytes[at(overwritten.start)..at(plan.site())], overwritten.start);
    let behind = plan.site() + 2;
    let mut after = decode(&text.bytes[at(behind)..at(overwritten.end.max(behind))], behind);
    if let Some(end) = after.iter().position(unconditional) {
        after.truncate(end + 1);
    }
    let offset = |address: u64| (address - patch.stub_address) as usize;
    let stub = &patch.stub[..patch.stub_len()];
    let stub_before = decode(&stub[offset(patch.entry())..offset(patch.restart())], patch.entry());
    let call = decode(&stub[offset(patch.restart())..offset(patch.tail())], patch.restart());
    let mut stub_after = decode(&stub[offset(patch.tail())..], patch.tail());
    if !after.last().is_some_and(unconditional) {
        let back = stub_after.pop().unwrap();
        assert_eq!(back.near_branch_target(), overwritten.end.max(behind));
    }
    assert_eq!(call.len(), 3);
    assert_eq!((call[2].code(), call[2].next_ip()), (Code::Syscall, patch.tail()));
    assert_eq!((call[0].ip_rel_memory_address(), call[1].ip_rel_memory_address()), (patch.tail(), patch.gate_slot()));
    let read = Stub::read(patch.stub_address, &patch.stub).unwrap();
    for (original, moved) in [(before, stub_before), (after, stub_after)] {
        assert_eq!(original.iter().map(meaning).collect::<Vec<_>>(), moved.iter().map(meaning).collect::<Vec<_>>());
        for (original, moved) in original.iter().zip(&moved) {
            assert_eq!(read.program_address(moved.ip()), Some(original.ip()));
            assert_eq!(read.stub_address(original.ip()), Some(moved.ip()));
        }
    }
    assert_eq!(read.program_address(patch.restart()), Some(plan.site()));
    assert_eq!(read.stub_address(plan.site()), Some(patch.restart()));
    let overwrite = patch.overwrite();
    assert!(overwrite.still_valid(&text.bytes[at(overwritten.start)..]));
    // No instruction but the first starts inside: or the patch says so.
    let inside = decode(&text.bytes[at(overwritten.start)..at(overwritten.end)], overwritten.start).len() > 1;
    assert_eq!(overwrite.holds_boundary(), inside);
}

fn plans(text: &Text) -> Vec<(u64, Result<Plan, Refusal>)> {
    let mut bits = vec![0; BranchMap::words(text.bytes.len())];
    let map = BranchMap::new(text.code(), &mut bits).unwrap();
    text.sites().into_iter().map(|site| (site, plan(&map, site, &|_| false))).collect()
}

#[test]
fn moved_instructions_mean_the_same() {
    let mut all = 0;
    for binary in support::binaries() {
        for text in &binary.texts {
            for plan in plans(text).into_iter().filter_map(|(_, plan)| plan.ok()) {
                for place in places(&plan) {
                    check(text, &plan, &plan.link(place, GATE).unwrap());
                }
                all += 1;
            }
        }
    }
    println!("{all} sites");
    assert!(all > 500);
}

/// At least 95 of 100 sites of the C library, and all of the calls that programs make often.
#[test]
fn hot_sites_of_the_c_library_can_be_rewritten() {
    let libc = support::binaries().into_iter().next().unwrap();
    let mut hot =
        vec!["read", "write", "poll", "getpid", "getppid", "clock_gettime", "pread", "pwrite", "recv", "send"];
    hot.extend([
        "epoll_wait",
        "sendto",
        "recvfrom",
        "sendmsg",
        "recvmsg",
        "readv",
        "writev",
        "select",
        "ppoll",
        "pselect",
    ]);
    hot.extend([
        "open", "openat", "close", "lseek", "fstat", "fstatat", "ioctl", "fcntl", "accept", "accept4", "connect",
    ]);
    hot.extend([
        "mmap",
        "munmap",
        "mprotect",
        "madvise",
        "nanosleep",
        "clock_nanosleep",
        "sched_yield",
        "gettimeofday",
    ]);
    hot.extend(["pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_signal", "sem_post", "syscall", "dup2"]);
    hot.extend(["sigprocmask", "pthread_sigmask", "kill", "wait4", "waitid", "pipe2", "eventfd", "getrandom", "brk"]);
    let (mut sites, mut planned) = (0, 0);
    let mut named = 0;
    for text in &libc.texts {
        for (site, plan) in plans(text) {
            sites += 1;
            planned += plan.is_ok() as u32;
            let function = libc.functions.iter().rfind(|f| f.address <= site && site < f.address + f.len);
            if function.is_some_and(|f| hot.contains(&f.name.trim_start_matches("__libc_").trim_start_matches("__"))) {
                named += 1;
                let name = &function.unwrap().name;
                assert!(plan.is_ok(), "{name} at {site:x}: {}", plan.unwrap_err());
            }
        }
    }
    println!("{planned} of {sites} sites, {named} of them hot");
    assert!(planned * 100 >= sites * 95 && named >= 30);
}
