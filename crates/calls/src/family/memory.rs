//! The address space.

use crate::Amount::Whole;
use crate::Len::{Bits, Fixed, Items, Pages};
use crate::RingOp::Madvise;

rows! {
    9 mmap Map .fd(4) .note("a file mapped shared and writable is a degradation");
    10 mprotect Map;
    11 munmap Map;
    12 brk Map;
    25 mremap Map .note("a mapping that moves loses its dirty tracking");
    26 msync Redo .note("writes the same pages back to the file again");
    27 mincore Pure .out(2, Pages(Whole(1)));
    28 madvise Map .ring(Madvise)
        .note("MADV_DONTNEED, FREE and REMOVE change contents; WIPEONFORK, DONTFORK and DONTDUMP are state of the \
            region");
    149 mlock Map;
    150 munlock Map;
    151 mlockall Map;
    152 munlockall Map;
    216 remap_file_pages Map;
    237 mbind Map;
    238 set_mempolicy Thread .note("the policy of this thread: kept and set again");
    239 get_mempolicy Pure .out(0, Fixed(4)) .out(1, Bits(Whole(2)));
    256 migrate_pages Pure .process(0) .note("pages move between nodes, their contents stay");
    279 move_pages Pure .process(0) .out(4, Items(Whole(1), 4)) .note("pages move between nodes, their contents stay");
    325 mlock2 Map;
    329 pkey_mprotect Map;
    330 pkey_alloc Map .note("the key must be the same after a restore; the rights in PKRU are vector state");
    331 pkey_free Map;
    440 process_madvise Map .fd(0) .note("for itself any advice since 6.13, taken as madvise; for others only hints");
    448 process_mrelease Pure .fd(0) .note("only frees the memory of a process that is already dying");
    450 set_mempolicy_home_node Map;
    453 map_shadow_stack Map;
    462 mseal Map
        .note("a sealed mapping cannot be unmapped or protected anew: the tracker must not rely on mprotect there");
}
