//! A stretch of executable memory, as bytes and where it lies.

/// A contiguous executable and readable segment of the program, whole: branches from all of it are looked for, and the whole
/// of it stays one segment although `mprotect` splits its mapping.
///
/// The bytes must not change while they are planned with; [`crate::Overwrite::still_valid`] tells before writing whether they did.
#[derive(Clone, Copy)]
pub struct Code<'a> {
    /// Address of the first byte.
    pub address: u64,
    pub bytes: &'a [u8],
}

impl<'a> Code<'a> {
    /// Offset of `address`, if it lies within.
    pub(crate) fn offset(&self, address: u64) -> Option<usize> {
        let offset = address.checked_sub(self.address)?;
        (offset < self.bytes.len() as u64).then_some(offset as usize)
    }

    /// The bytes from `address` on, `len` of them.
    pub fn at(&self, address: u64, len: usize) -> Option<&'a [u8]> {
        let offset = self.offset(address)?;
        self.bytes.get(offset..offset.checked_add(len)?)
    }
}
