//! Users, groups, capabilities and labels; the administration of the clock where it only asks.

use crate::probe::probes;

const LSM_ATTR_CURRENT: u64 = 100;
/// `_LINUX_CAPABILITY_VERSION_1` and `_3`.
const VERSION_1: u32 = 0x1998_0330;
const VERSION_3: u32 = 0x2008_0522;

fn header(version: u32) -> Vec<u8> {
    [version.to_ne_bytes(), [0; 4]].concat()
}

probes! {
    getuid Success _arena => vec![];
    getgid Success _arena => vec![];
    geteuid Success _arena => vec![];
    getegid Success _arena => vec![];
    getgroups Success[1] _arena => vec![(0, 70_000)];
    getresuid Success _arena => vec![];
    getresgid Success _arena => vec![];
    capget Success[0] arena => vec![(0, arena.put(0, &header(VERSION_3)))];
    capget_of_version_1(capget) Success[0] arena => vec![(0, arena.put(0, &header(VERSION_1)))];
    capget_of_no_version(capget) Answer arena => vec![(0, arena.put(0, &header(7)))];
    lsm_get_self_attr Support arena => {
        vec![(0, LSM_ATTR_CURRENT), (2, arena.put(2, &2048_u32.to_ne_bytes())), (3, 0)]
    };
    lsm_list_modules Support arena => vec![(1, arena.put(1, &512_u32.to_ne_bytes())), (2, 0)];
    adjtimex Success arena => vec![(0, arena.put(0, &[0; 4]))];
    clock_adjtime Support arena => vec![(0, 0), (1, arena.put(1, &[0; 4]))];
}
