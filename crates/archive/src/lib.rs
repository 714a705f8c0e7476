//! Older generations of a program: what its store held at earlier commits, so that it can go back further than to the last.
//!
//! # Files of an archive
//!
//! They lie beside the store and begin with its name; `N` is the generation's number.
//!
//! | file | content |
//! |---|---|
//! | `STORE.gen.N` | the index: which page is in which block, and all objects; renamed to this name once it is whole |
//! | `STORE.gen.N.pages` | blocks: up to 64 pages each, compressed, those that had changed since the generation before |
//!
//! An index names blocks of its own file and of those of earlier generations, so that a generation takes the room of what
//! changed. A generation that is given up loses its index first; then blocks that no other index names are punched out of
//! their files. So whatever is stopped at any point leaves whole generations, and files without an index, which are removed
//! when the archive is opened.
//!
//! # How a generation is made
//!
//! By somebody who only looks on ([`outlast_store::Store::still_holds`]): the program is neither stopped nor asked. What is
//! asked of it is to put off folding its store, which costs room but no time; if it folds all the same, what was read is
//! compared and completed until a look held.
//!
//! # Encryption
//!
//! Where there is a key, blocks are compressed and then sealed ([`seal`]), and so is what an index lists; its head is legible,
//! so that generations can be listed without the key, but altered ones cannot be read any more. Each file of blocks has a random
//! id, which is in the indices that name it: no block of another file, program or time takes the place of one, though
//! whoever may write to the folder can put back all files of an older time together.
//!
//! All files are untrusted: indices and blocks carry a CRC-32C, and every number in them is checked before it is used.

mod archive;
mod block;
mod copying;
mod error;
mod generation;
mod index;
mod pages;
mod place;
mod policy;
mod room;
mod seal;

pub use archive::Archive;
pub use copying::{Hold, Writer};
pub use error::ArchiveError;
pub use generation::{Generation, Target};
pub use index::Kept;
pub use place::Place;
pub use policy::{surplus, Policy};
pub use seal::{Seal, ID};
