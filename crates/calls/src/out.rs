//! Which memory of the program the kernel writes.

/// How many: the value of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// The whole register (the kernel takes `long` or `size_t`).
    Whole(u8),
    /// Its low 32 bits (the kernel takes `int`; the upper half may hold anything).
    Low(u8),
}

/// How much the kernel may write at the address in an argument. A bound: it may write less, never more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Len {
    /// So many bytes.
    Fixed(u16),
    /// As many bytes as an argument says.
    Bytes(Amount),
    /// As many bytes as an argument says, and so many in front of them.
    BytesPlus(Amount, u8),
    /// As many elements as an argument says, of so many bytes each.
    Items(Amount, u8),
    /// As many bits as an argument says, in whole 64-bit words.
    Bits(Amount),
    /// A byte for each page of the length in an argument.
    Pages(Amount),
    /// As many bytes as the 32-bit word behind this argument says before the call (`socklen_t *`).
    Word(u8),
    /// The buffers of an array of `struct iovec`; an argument says how many. The array itself is only read.
    Iovec(Amount),
    /// A `struct msghdr` (56 bytes) with its name, its buffers and its control data.
    Message,
    /// An array of `struct mmsghdr` (64 bytes each), each with what [`Len::Message`] says; an argument says how many.
    Messages(Amount),
    /// A `struct file_handle`: 8 bytes and as many as its first 32-bit word says.
    Handle,
    /// The buffer named inside a `struct xattr_args`: its address in bytes 0..8, its length in bytes 8..12.
    XattrArgs,
    /// Cannot be told from the arguments alone: it depends on a command, or happens later; the row's note says more.
    Special,
}

/// An argument that points to memory which the kernel writes. A null pointer means that nothing is written there; an
/// address that is not mapped writable is the program's own error (EFAULT), not one of this description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Out {
    /// Index of the argument, from 0.
    pub arg: u8,
    pub len: Len,
}
