//! Questions about the address space.

use crate::probe::probes;

probes! {
    // The length is not a whole number of pages.
    mincore Success arena => vec![(0, arena.slot(5)), (1, 3 * 4096 + 1)];
    get_mempolicy Support[0, 1] _arena => vec![(2, 1025), (3, 0), (4, 0)];
    migrate_pages Answer arena => {
        let nodes = arena.words(&[1]);
        vec![(0, 0), (1, 2), (2, nodes), (3, nodes)]
    };
    move_pages Support arena => {
        let pages = [arena.slot(0), arena.slot(1), arena.slot(2)];
        vec![(0, 0), (1, 3), (2, arena.words(&pages)), (3, 0), (5, 0)]
    };
    process_mrelease Answer _arena => vec![(0, u64::MAX), (1, 0)];
}
