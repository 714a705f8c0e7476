//! Encryption of older generations: the key file, and what the description of a program says of it. The key itself is never
//! written anywhere.

use crate::error::Error;
use crate::meta::{Meta, Text};
use crate::stores::StorePlace;
use outlast_archive::{Seal, ID};
use rustix::fs::{fstat, open, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::rand::{getrandom, GetRandomFlags};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A key file is no shorter: there is no work to be done per guess that would make up for it.
const LEAST: usize = 32;
/// And no longer, lest something else is taken for one.
const MOST: usize = 4096;

/// With what the generations of a program are encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encryption {
    /// Where the key file was last.
    pub key_file: Text,
    /// The random id of the archive.
    archive: [u8; ID],
}

impl Encryption {
    /// For a program whose archive is empty.
    pub fn begin(key_file: &Path) -> Result<Self, Error> {
        let failed = |e| Error::KeyFile(key_file.into(), Errno::from_io_error(&e).unwrap_or(Errno::INVAL).to_string());
        let key_file = std::path::absolute(key_file).map_err(failed)?.into();
        Ok(Self { key_file, archive: random_id()? })
    }

    /// The same key for another archive, which is empty.
    pub fn renewed(&self) -> Result<Self, Error> {
        Ok(Self { archive: random_id()?, ..self.clone() })
    }

    /// The key, read from its file.
    pub(crate) fn seal(&self) -> Result<Arc<Seal>, Error> {
        Ok(Arc::new(Seal::new(&secret(&self.key_file.to_path())?, self.archive)))
    }
}

/// Gives the archive of a program its key, if it is encrypted and has none yet. `key_file`: where it is now, if a person said so.
///
/// # Errors
/// `KeyFile`; `NotEncrypted`, if there is a key for nothing.
pub fn unlock(stores: &mut StorePlace, meta: &mut Meta, key_file: Option<&Path>) -> Result<(), Error> {
    let Some(known) = &mut meta.encryption else {
        return key_file.map_or(Ok(()), |path| Err(Error::NotEncrypted(path.into())));
    };
    if let Some(path) = key_file {
        let moved = Encryption { archive: known.archive, ..Encryption::begin(path)? };
        stores.seal = Some(moved.seal()?);
        *known = moved;
    }
    if stores.seal.is_none() {
        stores.seal = Some(known.seal()?);
    }
    Ok(())
}

fn random_id() -> Result<[u8; ID], Error> {
    let mut id = [0; ID];
    getrandom(&mut id, GetRandomFlags::empty()).map_err(|e| Error::Kernel("get random numbers", e))?;
    Ok(id)
}

/// What a key file holds. One that others can read is no secret.
fn secret(path: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    let failed = |why: String| Error::KeyFile(path.into(), why);
    // Services' secrets are links often; what counts is whose the file is that is read.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = open(path, flags, Mode::empty()).map_err(|e| failed(e.to_string()))?;
    let stat = fstat(&file).map_err(|e| failed(e.to_string()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(failed("is no file".into()));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() && stat.st_uid != 0 {
        return Err(failed("belongs to another user".into()));
    }
    if stat.st_mode & 0o077 != 0 {
        return Err(failed("others may read it, or write to it: make its mode 0600, and change the key".into()));
    }
    let mut secret = Zeroizing::new(Vec::with_capacity(MOST + 1));
    let read = File::from(file).take(MOST as u64 + 1).read_to_end(&mut secret);
    read.map_err(|e| failed(e.to_string()))?;
    match secret.len() {
        LEAST..=MOST => Ok(secret),
        len if len < LEAST => Err(failed(format!(
            "has {len} bytes, which is less than {LEAST}: make one with `(umask 077; head -c 32 /dev/urandom > FILE)`"
        ))),
        _ => Err(failed(format!("has more than {MOST} bytes: is it a key file?"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_file_is_private_and_long_enough() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let refused = |what: &str| {
            let told = secret(&path).unwrap_err().to_string();
            assert!(told.contains("key file") && told.contains(what), "{told}");
        };
        refused("No such file");
        std::fs::create_dir(&path).unwrap();
        refused("is no file");
        std::fs::remove_dir(&path).unwrap();
        let is_written = |len: usize, mode: u32| {
            std::fs::write(&path, vec![7; len]).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for (len, mode, what) in [
            (32, 0o640, "others may read it"),
            (32, 0o604, "others may read it"),
            (0, 0o600, "has 0 bytes"),
            (31, 0o600, "head -c 32"),
            (MOST + 1, 0o600, "more than 4096"),
        ] {
            is_written(len, mode);
            refused(what);
        }
        for (len, mode) in [(32, 0o600), (33, 0o400), (MOST, 0o600)] {
            is_written(len, mode);
            assert_eq!(secret(&path).unwrap().len(), len);
        }
    }
}
