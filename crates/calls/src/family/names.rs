//! Names in directories, and the directories that paths start from.

use crate::Amount::Whole;
use crate::Len::Bytes;
use crate::RingOp::{Linkat, Mkdirat, Renameat, Symlinkat, Unlinkat};
use crate::{Place, Witness};

const MAKE: &str = "a second one answers EEXIST; the name was not there before and is there after";
const LINK: &str = "a second one answers EEXIST; the name was not there before and has the old one's inode after";
const NODE: &str = "a second one answers EEXIST; no ring operation; the name was not there before and is there after";
const REMOVE: &str = "a second one answers ENOENT; the name was there before and is gone after";
const MOVE: &str =
    "a second one answers ENOENT; the new name has the inode that the old one had; with RENAME_EXCHANGE a second one \
        would swap back, and the inodes of both names tell";

const fn created(place: Place) -> Witness {
    Witness::Created(place)
}

const fn removed(place: Place) -> Witness {
    Witness::Removed(place)
}

const fn moved(from: Place, to: Place) -> Witness {
    Witness::Moved { from, to }
}

rows! {
    79 getcwd Pure .out(0, Bytes(Whole(1)));
    80 chdir Once .witness(Witness::Moving)
        .note("a relative path must not be walked twice; if the directory is the same as before, it leads to the same \
            again");
    81 fchdir Redo .fd(0) .note("the directory behind a descriptor is the same one again");
    82 rename Once .ring(Renameat) .witness(moved(Place::path(0), Place::path(1))) .note(MOVE);
    83 mkdir Once .ring(Mkdirat) .witness(created(Place::path(0))) .note(MAKE);
    84 rmdir Once .ring(Unlinkat) .witness(removed(Place::path(0))) .note(REMOVE);
    86 link Once .ring(Linkat) .witness(created(Place::path(1))) .note(LINK);
    87 unlink Once .ring(Unlinkat) .witness(removed(Place::path(0))) .note(REMOVE);
    88 symlink Once .ring(Symlinkat) .witness(created(Place::path(1))) .note(MAKE);
    95 umask Redo
        .note("the same mask set again; the old one that it returns is the committed one, not what the kernel answers");
    133 mknod Once .witness(created(Place::path(0))) .note(NODE);
    258 mkdirat Once .fd(0) .ring(Mkdirat) .witness(created(Place::at(0, 1))) .note(MAKE);
    259 mknodat Once .fd(0) .witness(created(Place::at(0, 1))) .note(NODE);
    263 unlinkat Once .fd(0) .ring(Unlinkat) .witness(removed(Place::at(0, 1))) .note(REMOVE);
    264 renameat Once .fd(0) .fd(2) .ring(Renameat) .witness(moved(Place::at(0, 1), Place::at(2, 3))) .note(MOVE);
    265 linkat Once .fd(0) .fd(2) .ring(Linkat) .witness(created(Place::at(2, 3))) .note(LINK);
    266 symlinkat Once .fd(1) .ring(Symlinkat) .witness(created(Place::at(1, 2))) .note(MAKE);
    316 renameat2 Once .fd(0) .fd(2) .ring(Renameat) .witness(moved(Place::at(0, 1), Place::at(2, 3))) .note(MOVE);
}
