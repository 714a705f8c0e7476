//! A client that does at random what can be done to a file system, and has the kernel's own do the same.

use outlast_glue_rt::{Buffer, CallError};
use outlast_services::fs::{APPEND, CREATE, EXCLUSIVE, FOLDER, TRUNCATE};
use outlast_services::{by_hand, stubs};

use crate::oracle::{Said, Twin};
use crate::support::Chance;

/// The file system's calls, by whatever stubs.
macro_rules! files {
    ([$($client:ty),*] $functions:tt) => {
        files! { declare $functions }
        $(files! { implement $client, $functions })*
    };
    (declare { $($function:ident($($argument:ident: $ty:ty),*) -> $result:ty;)* }) => {
        pub trait Files: Clone + Send + Sync {
            $(fn $function(&self, $($argument: $ty),*) -> Result<$result, CallError>;)*
        }
    };
    (implement $client:ty, { $($function:ident($($argument:ident: $ty:ty),*) -> $result:ty;)* }) => {
        impl Files for $client {
            $(fn $function(&self, $($argument: $ty),*) -> Result<$result, CallError> {
                <$client>::$function(self, $($argument),*)
            })*
        }
    };
}

files! { [stubs::fs::Client, by_hand::fs::Client] {
    fs_split(parent: u64, name: &[u8], flags: u32) -> (u64, u64);
    fs_read(file: u64, most: u32) -> (i32, Vec<u8>, u32);
    fs_write(file: u64, data: &[u8]) -> (i32, i64);
    fs_get(file: u64, data: &Buffer, most: u32) -> (i32, u32);
    fs_put(file: u64, data: &Buffer, length: u32) -> (i32, i64);
    fs_seek(file: u64, whence: u32, to: i64) -> (i64, i64);
    fs_truncate(file: u64, size: u64) -> i32;
    fs_rename(file: u64, name: &[u8]) -> i32;
    fs_remove(file: u64) -> i32;
    fs_status(file: u64) -> (i32, u64, u32);
    fs_list(file: u64, most: u32, skip: u32) -> (i32, Vec<u8>);
    fs_release(file: u64) -> i32;
}}

pub fn said<T>(result: Result<T, CallError>) -> Said<T> {
    result.map_err(|error| match error {
        CallError::Service(errno) => errno,
        error => panic!("{error}"),
    })
}

/// Names in a folder.
fn list<F: Files>(client: &F, folder: u64) -> Said<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    loop {
        let (count, names) = said(client.fs_list(folder, 300, all.len() as u32))?;
        let before = all.len();
        all.extend(names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec));
        assert_eq!(all.len(), before + count as usize);
        if count == 0 {
            return Ok(all);
        }
    }
}

/// The same bytes; where they are not, not all of them are shown.
pub fn alike(here: &Said<Vec<u8>>, there: &Said<Vec<u8>>) {
    if let (Ok(ours), Ok(theirs)) = (here, there) {
        let first = ours.iter().zip(theirs).position(|(one, other)| one != other);
        let lengths = (ours.len(), theirs.len());
        assert!(first.is_none() && lengths.0 == lengths.1, "they differ at {first:?}; lengths {lengths:?}");
    } else {
        assert_eq!(here.as_ref().map(Vec::len), there.as_ref().map(Vec::len));
    }
}

/// One client and what it has open, here and there.
pub struct User<F> {
    pub client: F,
    /// What is more than a call carries.
    pub buffer: Buffer,
    pub chance: Chance,
    pub top: (u64, Twin),
    pub open: Vec<(u64, Twin)>,
}

impl<F: Files> User<F> {
    fn name(&mut self) -> Vec<u8> {
        let mut part =
            || [b"one".to_vec(), b"two".to_vec(), b"a-longer-name".to_vec()][self.chance.below(3) as usize].clone();
        let name = part();
        let inner = part();
        match self.chance.below(3) {
            0 => [name, inner].join(&b'/'),
            _ => name,
        }
    }

    pub fn step(&mut self) {
        let which = self.chance.below(12);
        if self.open.is_empty() || which < 3 && self.open.len() < 12 {
            return self.open_one();
        }
        let at = self.chance.below(self.open.len() as u64) as usize;
        let (file, twin) = self.open[at].clone();
        let client = &self.client;
        let chance = &mut self.chance;
        match which {
            0..=4 => {
                let (byte, lends) = (chance.below(256) as u8, chance.below(3) == 0);
                let length = chance.below(if lends { 20_000 } else { 4_097 });
                let data: Vec<u8> = (0..length).map(|at| byte.wrapping_add(at as u8)).collect();
                let written = match lends {
                    true => {
                        self.buffer.write(0, &data).expect("ours");
                        client.fs_put(file, &self.buffer, data.len() as u32)
                    }
                    false => client.fs_write(file, &data),
                };
                assert_eq!(said(written).map(|(count, _)| count as usize), twin.write(&data));
            }
            5 | 6 => {
                let lends = chance.below(3) == 0;
                let most = chance.below(if lends { 20_000 } else { 4_097 }) as usize;
                let data = match lends {
                    true => client
                        .fs_get(file, &self.buffer, most as u32)
                        .map(|(got, _)| self.buffer.read(0, got as usize).expect("ours")),
                    false => client.fs_read(file, most as u32).map(|(_, data, _)| data),
                };
                alike(&said(data), &twin.read(most));
            }
            7 => {
                let (whence, to) = (chance.below(3) as u32, chance.below(20_000) as i64 - 5_000);
                assert_eq!(
                    said(client.fs_seek(file, whence, to)).map(|(there, _)| there as u64),
                    twin.seek(whence, to)
                );
            }
            8 => {
                let size = chance.below(20_000);
                assert_eq!(said(client.fs_truncate(file, size)).map(drop), twin.truncate(size));
            }
            9 => {
                let name = self.name();
                assert_eq!(said(self.client.fs_rename(file, &name)).map(drop), twin.rename(&name), "{name:?}");
            }
            10 if chance.below(2) == 0 => assert_eq!(said(client.fs_remove(file)).map(drop), twin.remove()),
            10 => {
                let size = said(client.fs_status(file)).map(|(_, size, folder)| (size, folder == 1));
                assert_eq!(size, twin.size());
                assert_eq!(list(client, file), twin.list());
            }
            _ => {
                client.fs_release(file).expect("ours");
                self.open.swap_remove(at);
            }
        }
    }

    fn open_one(&mut self) {
        let folders: Vec<(u64, Twin)> = self.open.iter().filter(|(_, twin)| twin.folder).cloned().collect();
        let below = match self.chance.below(3) {
            0 if !folders.is_empty() => &folders[self.chance.below(folders.len() as u64) as usize],
            _ => &self.top,
        };
        let (parent, twin) = below.clone();
        let name = self.name();
        let mut flags = if self.chance.below(3) == 0 { FOLDER } else { 0 };
        for (flag, one_in) in [(TRUNCATE, 5), (APPEND, 4)] {
            flags |= if flags & FOLDER == 0 && self.chance.below(one_in) == 0 { flag } else { 0 };
        }
        flags |= [0, CREATE, CREATE, CREATE | EXCLUSIVE][self.chance.below(4) as usize];
        match (said(self.client.fs_split(parent, &name, flags)), twin.open(&name, flags)) {
            (Ok((file, _)), Ok(twin)) => self.open.push((file, twin)),
            (here, there) => assert_eq!(here.map(drop), there.map(drop), "{name:?} {flags}"),
        }
    }
}

/// Everything below is the same here and there.
pub fn same<F: Files>(client: &F, folder: u64, twin: &Twin) -> usize {
    let names = list(client, folder).expect("a folder");
    assert_eq!(Ok(&names), twin.list().as_ref());
    let mut count = names.len();
    for name in names {
        match name.strip_suffix(b"/") {
            Some(name) => {
                let (inner, _) = client.fs_split(folder, name, FOLDER).expect("a folder");
                count += same(client, inner, &twin.open(name, FOLDER).expect("a folder"));
            }
            None => {
                let (file, _) = client.fs_split(folder, &name, 0).expect("a file");
                let there = twin.open(&name, 0).expect("a file");
                loop {
                    let (_, data, _) = client.fs_read(file, 4096).expect("data");
                    let over = data.is_empty();
                    alike(&Ok(data), &there.read(4096));
                    if over {
                        break;
                    }
                }
            }
        }
    }
    count
}
