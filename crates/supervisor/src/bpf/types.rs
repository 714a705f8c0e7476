//! The kernel's description of its own types (BTF), from which it is learnt where in its structures fields lie. Each kernel has them elsewhere.

use std::ops::Range;

const FILE: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;

/// Kinds of types.
mod kind {
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const TYPEDEF: u32 = 8;
    pub const RESTRICT: u32 = 11;
    pub const VAR: u32 = 14;
    pub const TYPE_TAG: u32 = 18;
    pub const POINTER: u32 = 2;
}

/// All types of a kernel.
pub struct Types {
    bytes: Vec<u8>,
    names: Range<usize>,
    /// Where each begins; the first has the number 1.
    starts: Vec<usize>,
}

/// A field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub offset: u32,
    pub size: u32,
}

impl Types {
    /// Those of the kernel that runs. None: it does not tell, or in a way that is not known here.
    pub fn of_the_kernel() -> Option<Self> {
        Self::parse(std::fs::read(FILE).ok()?)
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        if half(0)? != MAGIC {
            return None;
        }
        let word = |at| word(&bytes, at);
        let header = word(4)? as usize;
        let part = |at| Some(header + word(at)? as usize..header + word(at)? as usize + word(at + 4)? as usize);
        let (types, names) = (part(8)?, part(16)?);
        if types.end > bytes.len() || names.end > bytes.len() {
            return None;
        }
        let (mut starts, mut at) = (vec![0], types.start);
        while at < types.end {
            starts.push(at);
            let (of, count) = info(word(at + 4)?);
            at += 12 + beyond(of, count)?;
        }
        Some(Self { bytes, names, starts })
    }

    /// Where a field lies in a structure, by its path: `["cfs", "h_nr_queued"]` is `cfs.h_nr_queued`.
    pub fn field(&self, structure: &str, path: &[&str]) -> Option<Field> {
        let mut of = self.structure(structure)?;
        let mut offset = 0;
        for name in path {
            let (at, member) = self.member(of, name)?;
            (of, offset) = (self.bare(member)?, offset + at);
        }
        Some(Field { offset, size: self.size(of)? })
    }

    /// Offset and type of a member, also of one without a name that holds it.
    fn member(&self, of: u32, name: &str) -> Option<(u32, u32)> {
        let start = self.start(of)?;
        let head = self.word(start + 4)?;
        let (kind, count) = info(head);
        if ![kind::STRUCT, kind::UNION].contains(&kind) {
            return None;
        }
        let (bits, has_sizes) =
            (|offset: u32, has: bool| if has { offset & 0xff_ffff } else { offset }, head >> 31 != 0);
        (0..count as usize).find_map(|n| {
            let at = start + 12 + 12 * n;
            let (of, offset) = (self.word(at + 4)?, bits(self.word(at + 8)?, has_sizes) / 8);
            match self.name(at)? {
                b"" => self.member(self.bare(of)?, name).map(|(inner, of)| (offset + inner, of)),
                own => (own == name.as_bytes()).then_some((offset, of)),
            }
        })
    }

    /// What a type is but for its name and qualifiers.
    fn bare(&self, mut of: u32) -> Option<u32> {
        // No chain of them is longer.
        for _ in 0..32 {
            let start = self.start(of)?;
            let (kind, _) = info(self.word(start + 4)?);
            if !(kind::TYPEDEF..=kind::RESTRICT).contains(&kind) && kind != kind::TYPE_TAG {
                return Some(of);
            }
            of = self.word(start + 8)?;
        }
        None
    }

    fn size(&self, of: u32) -> Option<u32> {
        let start = self.start(of)?;
        match info(self.word(start + 4)?).0 {
            kind::POINTER => Some(8),
            // The type of its elements, of its indexes, and how many there are.
            kind::ARRAY => self.size(self.bare(self.word(start + 12)?)?)?.checked_mul(self.word(start + 20)?),
            _ => self.word(start + 8),
        }
    }

    fn structure(&self, name: &str) -> Option<u32> {
        let is = |at: usize| {
            self.word(at + 4).is_some_and(|head| info(head).0 == kind::STRUCT) && self.name(at) == Some(name.as_bytes())
        };
        (1..self.starts.len()).find(|n| is(self.starts[*n])).map(|n| n as u32)
    }

    fn start(&self, of: u32) -> Option<usize> {
        self.starts.get(of as usize).copied().filter(|_| of != 0)
    }

    /// The name whose offset stands at `at`.
    fn name(&self, at: usize) -> Option<&[u8]> {
        let names = &self.bytes[self.names.clone()];
        names.get(self.word(at)? as usize..)?.split(|byte| *byte == 0).next()
    }

    fn word(&self, at: usize) -> Option<u32> {
        word(&self.bytes, at)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A type's kind, and how many members or so it has.
fn info(word: u32) -> (u32, u32) {
    (word >> 24 & 0x1f, word & 0xffff)
}

/// How many bytes follow the twelve that every type has.
fn beyond(kind: u32, count: u32) -> Option<usize> {
    let each = match kind {
        4 | 5 | 15 | 19 => 12 * count,
        6 | 13 => 8 * count,
        kind::ARRAY => 12,
        1 | kind::VAR | 17 => 4,
        2 | 7..=12 | 16 | kind::TYPE_TAG => 0,
        _ => return None,
    };
    Some(each as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `int` (1), a pointer to it (2), `union { int *b; }` (3), `struct s { int a; <3>; }` (4), a variable `v` of it (5).
    fn sample() -> Vec<u8> {
        let names = b"\0int\0a\0b\0s\0v\0";
        let types: [&[u32]; 5] = [
            &[1, 1 << 24, 4, 32],
            &[0, 2 << 24, 1],
            &[0, 5 << 24 | 1, 8, 7, 2, 0],
            &[9, 4 << 24 | 2, 16, 5, 1, 0, 0, 3, 64],
            &[11, 14 << 24, 4, 0],
        ];
        let types: Vec<u8> = types.concat().iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, types.len() as u32, types.len() as u32, names.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        [bytes, types, names.to_vec()].concat()
    }

    #[test]
    fn fields_are_found_also_within_what_has_no_name() {
        let types = Types::parse(sample()).expect("it can be read");
        assert_eq!(types.field("s", &["a"]), Some(Field { offset: 0, size: 4 }));
        assert_eq!(types.field("s", &["b"]), Some(Field { offset: 8, size: 8 }));
        assert_eq!((types.field("s", &["c"]), types.field("s", &["a", "b"])), (None, None));
    }

    #[test]
    fn what_is_cut_short_or_changed_is_refused_or_read_as_something_else() {
        let whole = sample();
        for length in 0..whole.len() {
            let _ = Types::parse(whole[..length].to_vec()).map(|types| types.field("s", &["b"]));
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            let _ = Types::parse(changed).map(|types| types.field("s", &["b"]));
        }
    }
}
