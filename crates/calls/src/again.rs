//! Calls that may be issued again as a rule, and with some arguments answer with an error the second time.

use crate::{Place, Witness};

const FCNTL: u64 = 72;
const F_ADD_SEALS: u64 = 1033;

const SETXATTR: u64 = 188;
const LSETXATTR: u64 = 189;
const FSETXATTR: u64 = 190;
const SETXATTRAT: u64 = 463;
const XATTR_CREATE: u64 = 1;

const SETSOCKOPT: u64 = 54;
const SOL_IP: u64 = 0;
const SOL_SOCKET: u64 = 1;
const SOL_TCP: u64 = 6;
const SOL_IPV6: u64 = 41;
const SOL_TLS: u64 = 282;
const SO_BINDTODEVICE: u64 = 25;
const SO_DETACH_FILTER: u64 = 27;
const TCP_ULP: u64 = 31;
/// From IP_ADD_MEMBERSHIP to IP_DROP_SOURCE_MEMBERSHIP.
const IP_GROUPS: core::ops::RangeInclusive<u64> = 35..=40;
/// IPV6_JOIN_GROUP and IPV6_LEAVE_GROUP.
const IPV6_GROUPS: core::ops::RangeInclusive<u64> = 20..=21;
/// From MCAST_JOIN_GROUP to MCAST_LEAVE_SOURCE_GROUP, for either protocol.
const MCAST_GROUPS: core::ops::RangeInclusive<u64> = 42..=47;

/// What tells whether a call of class Redo happened, if the second of two may fail where the first did not.
pub fn again(number: u64, args: &[u64; 6]) -> Option<Witness> {
    match number {
        SETXATTR | LSETXATTR if is_creating(args[4]) => made(Place::path(0), 1),
        FSETXATTR if is_creating(args[4]) => made(Place::descriptor(0), 1),
        // Its flags are in a structure, and its attribute cannot be asked for on every kernel: as if it were creating.
        SETXATTRAT => made(Place::at(0, 1), 3),
        FCNTL if args[1] as u32 as u64 == F_ADD_SEALS => Some(Witness::Sealed),
        SETSOCKOPT => option(args[1] as u32 as u64, args[2] as u32 as u64),
        _ => None,
    }
}

fn is_creating(flags: u64) -> bool {
    flags & XATTR_CREATE != 0
}

const fn made(of: Place, name: u8) -> Option<Witness> {
    Some(Witness::AttributeMade { of, name })
}

fn option(level: u64, option: u64) -> Option<Witness> {
    match level {
        SOL_IP if IP_GROUPS.contains(&option) || MCAST_GROUPS.contains(&option) => Some(Witness::Member),
        SOL_IPV6 if IPV6_GROUPS.contains(&option) || MCAST_GROUPS.contains(&option) => Some(Witness::Member),
        SOL_SOCKET if matches!(option, SO_BINDTODEVICE | SO_DETACH_FILTER) => Some(Witness::Option),
        SOL_TCP if option == TCP_ULP => Some(Witness::Option),
        SOL_TLS => Some(Witness::Option),
        _ => None,
    }
}
