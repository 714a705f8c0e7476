//! Encryption at rest: XChaCha20-Poly1305, with a key that is derived from the person's key file for one archive alone.
//!
//! What is sealed is bound to its place: a block to its file and offset, an index to all that its head says. Files carry random
//! ids, which the index lists, so that a block of a file that once had the same name is none of this one.

use crate::error::ArchiveError;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::XChaCha20Poly1305;
use hkdf::Hkdf;
use rustix::rand::{getrandom, GetRandomFlags};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Bytes of a random id.
pub const ID: usize = 16;
/// Random for each sealed piece: of 192 bits, no two are ever alike.
const NONCE: usize = 24;
const TAG: usize = 16;
/// Bytes that sealing adds.
pub const ADDED: usize = NONCE + TAG;

/// A key for the generations of one program. It is nowhere but in memory.
pub struct Seal {
    cipher: XChaCha20Poly1305,
    archive: [u8; ID],
    check: [u8; ID],
}

impl Seal {
    /// `secret`: what the key file holds, of no less entropy than a key. `archive`: the random id of the archive.
    pub fn new(secret: &[u8], archive: [u8; ID]) -> Self {
        let derive = Hkdf::<Sha256>::new(Some(&archive), secret);
        let (mut key, mut check) = (Zeroizing::new([0; 32]), [0; ID]);
        for (info, out) in [(&b"outlast archive 1 key"[..], &mut key[..]), (b"outlast archive 1 check", &mut check)] {
            derive.expand(info, out).expect("shorter than 255 hashes");
        }
        Self { cipher: XChaCha20Poly1305::new((&*key).into()), archive, check }
    }

    /// Which archive it is for.
    pub fn archive(&self) -> [u8; ID] {
        self.archive
    }

    /// Tells keys apart, and nothing of them.
    pub fn check(&self) -> [u8; ID] {
        self.check
    }

    /// Encrypts, after these bytes, what `plain` holds; only who names the same place can read it again.
    pub fn close(&self, place: &[u8], mut bytes: Vec<u8>, plain: &[u8]) -> Result<Vec<u8>, ArchiveError> {
        let nonce = random::<NONCE>()?;
        bytes.reserve(plain.len() + ADDED);
        bytes.extend(nonce);
        let at = bytes.len();
        bytes.extend(plain);
        let tag = self.cipher.encrypt_inout_detached(&nonce.into(), place, (&mut bytes[at..]).into());
        // It refuses what is longer than 256 GiB.
        bytes.extend(tag.map_err(|_| ArchiveError::OverBudget)?);
        Ok(bytes)
    }

    /// Decrypts, in its place; None if anything is not as it was sealed.
    pub fn open<'b>(&self, place: &[u8], sealed: &'b mut [u8]) -> Option<&'b [u8]> {
        let (nonce, rest) = sealed.split_first_chunk_mut::<NONCE>()?;
        let (bytes, tag) = rest.split_last_chunk_mut::<TAG>()?;
        let nonce = (*nonce).into();
        self.cipher.decrypt_inout_detached(&nonce, place, (&mut *bytes).into(), &(*tag).into()).ok()?;
        Some(bytes)
    }
}

/// Random bytes from the kernel.
pub fn random<const N: usize>() -> Result<[u8; N], ArchiveError> {
    let mut bytes = [0; N];
    // Up to 256 bytes come whole, whatever signals do.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_with_the_same_key_at_the_same_place_only() {
        let seal = Seal::new(&[7; 32], [1; ID]);
        let sealed = seal.close(b"here", b"before".to_vec(), b"the content").unwrap();
        let sealed = sealed.strip_prefix(b"before").unwrap();
        assert_eq!(sealed.len(), b"the content".len() + ADDED);
        assert!(!sealed.windows(7).any(|bytes| bytes == b"content"));
        let opened = |seal: &Seal, place: &[u8], sealed: &[u8]| {
            let mut sealed = sealed.to_vec();
            seal.open(place, &mut sealed).map(<[u8]>::to_vec)
        };
        assert_eq!(opened(&seal, b"here", sealed).unwrap(), b"the content");
        assert_eq!(opened(&seal, b"there", sealed), None);
        assert_eq!(opened(&Seal::new(&[8; 32], [1; ID]), b"here", sealed), None);
        assert_eq!(opened(&Seal::new(&[7; 32], [2; ID]), b"here", sealed), None);
        for at in 0..sealed.len() {
            let mut altered = sealed.to_vec();
            altered[at] ^= 1;
            assert_eq!(opened(&seal, b"here", &altered), None, "at {at}");
            assert_eq!(opened(&seal, b"here", &sealed[..at]), None, "of {at} bytes");
        }
    }

    #[test]
    fn the_same_content_never_looks_alike_twice() {
        let seal = Seal::new(&[7; 32], [1; ID]);
        let close = || seal.close(b"", Vec::new(), b"same").unwrap();
        assert_ne!(close(), close());
    }

    /// RFC 5869's derivation, by hand with other tools: an archive stays readable from one version to the next.
    #[test]
    fn keys_are_derived_as_in_the_first_version() {
        let seal = Seal::new(&[0x2a; 32], [0x11; ID]);
        assert_eq!(seal.check(), CHECK);
        assert_eq!(seal.open(b"place", &mut SEALED.to_vec()).unwrap(), b"kept");
    }

    const CHECK: [u8; ID] =
        [0x75, 0xf1, 0xb0, 0x3b, 0xcb, 0x77, 0x60, 0x6c, 0x20, 0x53, 0xdd, 0x3d, 0x35, 0x47, 0xfd, 0xbd];
    const SEALED: [u8; 44] = [
        0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11,
        0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0xc6, 0x97, 0x86, 0x87, 0x1f, 0x20, 0x64, 0x9c, 0x26, 0x2e, 0xfc, 0xe2,
        0xa8, 0xbe, 0xfd, 0x13, 0x6c, 0xe5, 0xfb, 0xda,
    ];
}
