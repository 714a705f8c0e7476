//! Extended attributes.

use crate::Amount::Whole;
use crate::Len::{Bytes, XattrArgs};
use crate::RingOp::{Fgetxattr, Fsetxattr, Getxattr, Setxattr};
use crate::{Place, Witness};

const SET: &str =
    "the same value set again is the same value; XATTR_CREATE answers EEXIST the second time: the attribute was not there \
        before and is after";
const REMOVE: &str =
    "a second removal answers ENODATA; no ring operation; the attribute was there before and is gone after";

const fn removed(of: Place, name: u8) -> Witness {
    Witness::AttributeRemoved { of, name }
}

rows! {
    188 setxattr Redo .decided_by(4) .ring(Setxattr) .note(SET);
    189 lsetxattr Redo .decided_by(4) .note(SET);
    190 fsetxattr Redo .fd(0) .decided_by(4) .ring(Fsetxattr) .note(SET);
    191 getxattr Pure .ring(Getxattr) .out(2, Bytes(Whole(3)));
    192 lgetxattr Pure .out(2, Bytes(Whole(3)));
    193 fgetxattr Pure .fd(0) .ring(Fgetxattr) .out(2, Bytes(Whole(3)));
    194 listxattr Pure .out(1, Bytes(Whole(2)));
    195 llistxattr Pure .out(1, Bytes(Whole(2)));
    196 flistxattr Pure .fd(0) .out(1, Bytes(Whole(2)));
    197 removexattr Once .witness(removed(Place::path(0), 1)) .note(REMOVE);
    198 lremovexattr Once .witness(removed(Place::path(0), 1)) .note(REMOVE);
    199 fremovexattr Once .fd(0) .witness(removed(Place::descriptor(0), 1)) .note(REMOVE);
    463 setxattrat Redo .fd(0) .decided_by(4) .note(SET);
    464 getxattrat Pure .fd(0) .out(4, XattrArgs);
    465 listxattrat Pure .fd(0) .out(3, Bytes(Whole(4)));
    466 removexattrat Once .fd(0) .witness(removed(Place::at(0, 1), 3)) .note(REMOVE);
}
