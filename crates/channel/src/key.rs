//! What a node is known by: an Ed25519 key, as with SSH and WireGuard, and no certificates that expire.

use base64::prelude::{Engine, BASE64_STANDARD};
use rustix::fs::{fstat, open, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::rand::{getrandom, GetRandomFlags};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use zeroize::{Zeroize, Zeroizing};

/// A SubjectPublicKeyInfo of Ed25519 is this and the 32 bytes (RFC 8410).
const PUBLIC_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// And a private key in PKCS #8.
const PRIVATE_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// No file of a key is longer.
const LONGEST: u64 = 4096;

/// By what others know a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    pub(crate) fn info(&self) -> Vec<u8> {
        [&PUBLIC_PREFIX[..], &self.0].concat()
    }

    /// None: it is of another kind.
    pub(crate) fn of_info(info: &[u8]) -> Option<Self> {
        info.strip_prefix(&PUBLIC_PREFIX).and_then(|key| key.try_into().ok()).map(Self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_STANDARD.encode(self.0))
    }
}

impl FromStr for PublicKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let key = BASE64_STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        key.map(Self).ok_or_else(|| "a key is what `outlast node key` prints there, 44 characters".into())
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error, displaydoc::Display)]
pub enum KeyError {
    /// cannot open {0}: {1}
    Open(PathBuf, Errno),
    /// cannot read {0}: {1}
    Read(PathBuf, std::io::Error),
    /// cannot write {0}: {1}
    Write(PathBuf, std::io::Error),
    /// {0} is not this user's alone: it must be a plain file of mode 0600
    Exposed(PathBuf),
    /// {0} holds no Ed25519 key (PEM, PKCS #8)
    Format(PathBuf),
}

/// This node's own key.
pub struct Key {
    secret: Zeroizing<Vec<u8>>,
    public: PublicKey,
}

impl Key {
    /// The one in this file, which is made if there is none.
    ///
    /// # Errors
    /// It cannot be read, others could have read it, or it is no such key.
    pub fn open_or_make(path: &Path) -> Result<Self, KeyError> {
        match Self::open(path) {
            Err(KeyError::Open(_, Errno::NOENT)) => match Self::make(path) {
                // Somebody else has made it just now.
                Err(KeyError::Open(_, Errno::EXIST)) => Self::open(path),
                made => made,
            },
            opened => opened,
        }
    }

    /// The one in this file.
    ///
    /// # Errors
    /// As above, or there is none.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty()).map_err(|e| KeyError::Open(path.into(), e))?;
        let stat = fstat(&file).map_err(|e| KeyError::Open(path.into(), e))?;
        let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_plain || stat.st_mode & 0o077 != 0 || stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(KeyError::Exposed(path.into()));
        }
        let mut text = Zeroizing::new(Vec::with_capacity(LONGEST as usize));
        let read = File::from(file).take(LONGEST).read_to_end(&mut text);
        read.map_err(|e| KeyError::Read(path.into(), e))?;
        let format = || KeyError::Format(path.into());
        let mut key = PrivatePkcs8KeyDer::from_pem_slice(&text).map_err(|_| format())?;
        let secret = Zeroizing::new(key.secret_pkcs8_der().to_vec());
        key.zeroize();
        Self::new(secret).ok_or_else(format)
    }

    /// Nobody reads half of it: the name is given to a file that is whole, and only if nobody has it.
    fn make(path: &Path) -> Result<Self, KeyError> {
        let failed = |e: std::io::Error| KeyError::Write(path.into(), e);
        let secret = Self::random().map_err(|e| failed(e.into()))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = open(folder, flags, Mode::RUSR | Mode::WUSR).map_err(|e| KeyError::Write(path.into(), e.into()))?;
        let mut file = File::from(file);
        let text = Zeroizing::new(format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            Zeroizing::new(BASE64_STANDARD.encode(&*secret)).as_str()
        ));
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        let own = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file.as_fd()));
        let follow = rustix::fs::AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(rustix::fs::CWD, own, rustix::fs::CWD, path, follow)
            .map_err(|e| KeyError::Open(path.into(), e))?;
        Self::new(secret).ok_or_else(|| KeyError::Format(path.into()))
    }

    /// One that is in no file.
    ///
    /// # Errors
    /// The kernel has no random bytes.
    pub fn transient() -> Result<Self, Errno> {
        // What was made just now is one.
        Self::random().and_then(|secret| Self::new(secret).ok_or(Errno::INVAL))
    }

    fn random() -> Result<Zeroizing<Vec<u8>>, Errno> {
        let mut secret = Zeroizing::new([&PRIVATE_PREFIX[..], &[0; 32]].concat());
        let seed = &mut secret[PRIVATE_PREFIX.len()..];
        match getrandom(&mut *seed, GetRandomFlags::empty())? {
            32 => Ok(secret),
            _ => Err(Errno::AGAIN),
        }
    }

    fn new(secret: Zeroizing<Vec<u8>>) -> Option<Self> {
        let signing = Self::signing(&secret)?;
        let public = PublicKey::of_info(signing.public_key()?.as_ref())?;
        Some(Self { secret, public })
    }

    fn signing(secret: &[u8]) -> Option<std::sync::Arc<dyn rustls::sign::SigningKey>> {
        rustls::crypto::ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(secret)).ok()
    }

    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn certified(&self) -> Option<rustls::sign::CertifiedKey> {
        let signing = Self::signing(&self.secret)?;
        Some(rustls::sign::CertifiedKey::new(vec![self.public.info().into()], signing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};

    #[test]
    fn a_key_is_made_once_private_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(matches!(Key::open(&path), Err(KeyError::Open(_, Errno::NOENT))));
        let made = Key::open_or_make(&path).unwrap().public();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(Key::open_or_make(&path).unwrap().public(), made);
        assert_eq!(made.to_string().parse(), Ok(made));
        assert_ne!(Key::transient().unwrap().public(), made);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_key_that_others_may_read_and_what_is_none_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        Key::open_or_make(&path).unwrap();
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(matches!(Key::open_or_make(&link), Err(KeyError::Open(_, Errno::LOOP))));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Key::open(&path), Err(KeyError::Exposed(_))));
        assert!(matches!(Key::open(folder.path()), Err(KeyError::Exposed(_))));
        let other = folder.path().join("other");
        std::fs::write(&other, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap();
        std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(Key::open(&other), Err(KeyError::Format(_))));
        assert!("AAAA".parse::<PublicKey>().is_err() && "".parse::<PublicKey>().is_err());
    }
}
