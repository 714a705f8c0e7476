//! The file system through micro-reboots: the kernel's own does the same, and nobody can tell the two apart.

#[path = "support/oracle.rs"]
mod oracle;
mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use oracle::{Said, Twin};
use outlast_glue_rt::{CallError, Handle, System};
use outlast_services::fs::{APPEND, CREATE, EXCLUSIVE, FOLDER, TRUNCATE};
use outlast_services::stubs::fs::Client;
use support::{kill_instance, start, while_killed, Chance};

mod without_d1 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/fs_without_d1.rs"));
}

fn channel(handle: &Handle) -> outlast_glue_rt::Channel {
    handle.grant().expect("a channel").open().expect("a channel")
}

fn said<T>(result: Result<T, CallError>) -> Said<T> {
    result.map_err(|error| match error {
        CallError::Service(errno) => errno,
        error => panic!("{error}"),
    })
}

/// Names in a folder.
fn list(client: &Client, folder: u64) -> Said<Vec<Vec<u8>>> {
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
fn alike(here: &Said<Vec<u8>>, there: &Said<Vec<u8>>) {
    if let (Ok(ours), Ok(theirs)) = (here, there) {
        let first = ours.iter().zip(theirs).position(|(one, other)| one != other);
        let lengths = (ours.len(), theirs.len());
        assert!(first.is_none() && lengths.0 == lengths.1, "they differ at {first:?}; lengths {lengths:?}");
    } else {
        assert_eq!(here.as_ref().map(Vec::len), there.as_ref().map(Vec::len));
    }
}

/// One client and what it has open, here and there.
struct User {
    client: Client,
    chance: Chance,
    top: (u64, Twin),
    open: Vec<(u64, Twin)>,
}

impl User {
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

    fn step(&mut self) {
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
                let byte = chance.below(256) as u8;
                let data: Vec<u8> = (0..chance.below(4097)).map(|at| byte.wrapping_add(at as u8)).collect();
                assert_eq!(said(client.fs_write(file, &data)).map(|(count, _)| count as usize), twin.write(&data));
            }
            5 | 6 => {
                let most = chance.below(4097) as usize;
                alike(&said(client.fs_read(file, most as u32)).map(|(_, data, _)| data), &twin.read(most));
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
fn same(client: &Client, folder: u64, twin: &Twin) -> usize {
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

#[test]
fn nobody_can_tell_it_from_the_kernels_while_it_is_killed() {
    const CLIENTS: usize = 12;
    const STEPS: u32 = 500;
    let mut system = System::new();
    let handle = start(&mut system, "fs");
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let mut chance = Chance::new();
    let mut users: Vec<User> = (0..CLIENTS)
        .map(|number| {
            let client = Client::new(channel(&handle));
            let name = number.to_string();
            std::fs::create_dir(folder.path().join(&name)).expect("a folder");
            let (top, _) = client.fs_split(0, name.as_bytes(), CREATE | FOLDER).expect("a folder");
            let twin = Twin::root(&folder.path().join(&name));
            User { client, chance: chance.fork(), top: (top, twin), open: Vec::new() }
        })
        .collect();
    let (steps, kills) = while_killed(&handle, &mut chance, || {
        std::thread::scope(|scope| {
            let all: Vec<_> = users
                .iter_mut()
                .map(|user| {
                    let handle = &handle;
                    scope.spawn(move || {
                        let mut steps = 0;
                        while steps < STEPS || handle.deaths().0 < 20 {
                            user.step();
                            steps += 1;
                        }
                        steps
                    })
                })
                .collect();
            all.into_iter().map(|user| user.join().expect("a user")).sum::<u32>()
        })
    });
    kill_instance(&handle);
    // Whoever comes later finds the same.
    let client = Client::new(channel(&handle));
    let (root, _) = client.fs_split(0, b"", FOLDER).expect("the root");
    let count = same(&client, root, &Twin::root(folder.path()));
    println!("{kills} kills, {steps} steps, {count} names in the end");
    assert!(count >= CLIENTS);
}

#[test]
fn an_append_of_nothing_leaves_the_offset_where_it_was_as_the_kernels_does() {
    let mut system = System::new();
    let handle = start(&mut system, "fs");
    let client = Client::new(channel(&handle));
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let root = Twin::root(folder.path());
    let (file, _) = client.fs_split(0, b"file", CREATE | APPEND).expect("a file");
    let twin = root.open(b"file", CREATE | APPEND).expect("a file");
    for data in [&b"some words"[..], b""] {
        assert_eq!(said(client.fs_write(file, data)).map(|(count, _)| count as usize), twin.write(data));
        assert_eq!(said(client.fs_seek(file, 1, 0)).map(|(there, _)| there as u64), twin.seek(1, 0));
        assert_eq!(said(client.fs_seek(file, 0, 3)).map(|(there, _)| there as u64), twin.seek(0, 3));
    }
    alike(&said(client.fs_read(file, 100)).map(|(_, data, _)| data), &twin.read(100));
}

#[test]
fn what_many_clients_append_to_one_file_is_there_once_while_it_is_killed() {
    const CLIENTS: usize = 8;
    let mut system = System::new();
    let handle = start(&mut system, "fs");
    let mut chance = Chance::new();
    let clients: Vec<Client> = (0..CLIENTS).map(|_| Client::new(channel(&handle))).collect();
    let (counts, kills) = while_killed(&handle, &mut chance, || {
        std::thread::scope(|scope| {
            let all: Vec<_> = clients
                .iter()
                .enumerate()
                .map(|(number, client)| {
                    let handle = &handle;
                    scope.spawn(move || {
                        let (log, _) = client.fs_split(0, b"log", CREATE | APPEND).expect("a file");
                        let over = AtomicBool::new(false);
                        std::thread::scope(|scope| {
                            // Others have the descriptor recovered while a line's reply is on its way.
                            let look = || {
                                while !over.load(Ordering::SeqCst) {
                                    client.fs_status(log).expect("open");
                                }
                            };
                            scope.spawn(look);
                            let mut count = 0;
                            while count < 150 || handle.deaths().0 < 15 {
                                let line = format!("{number} {count}\n");
                                let (written, _) = client.fs_write(log, line.as_bytes()).expect("room");
                                assert_eq!(written as usize, line.len());
                                count += 1;
                            }
                            over.store(true, Ordering::SeqCst);
                            count
                        })
                    })
                })
                .collect();
            all.into_iter().map(|client| client.join().expect("a client")).collect::<Vec<usize>>()
        })
    });
    let (log, _) = clients[0].fs_split(0, b"log", 0).expect("a file");
    let mut text = Vec::new();
    loop {
        let (_, data, _) = clients[0].fs_read(log, 4096).expect("data");
        if data.is_empty() {
            break;
        }
        text.extend(data);
    }
    let mut next = HashMap::new();
    for line in String::from_utf8(text).expect("text").lines() {
        let (client, number) = line.split_once(' ').expect("two numbers");
        let (client, number): (usize, usize) = (client.parse().expect("one"), number.parse().expect("one"));
        let next = next.entry(client).or_insert(0);
        assert_eq!(number, *next, "of client {client}");
        *next += 1;
    }
    println!("{kills} kills, {counts:?} lines");
    assert!(counts.iter().enumerate().all(|(client, count)| next[&client] == *count));
}

#[test]
fn an_open_file_stays_open_through_a_micro_reboot_where_it_was_and_under_another_name() {
    let mut system = System::new();
    let handle = start(&mut system, "fs");
    let (here, there) = (Client::new(channel(&handle)), Client::new(channel(&handle)));
    let (folder, _) = here.fs_split(0, b"folder", CREATE | FOLDER).expect("a folder");
    let (file, number) = here.fs_split(folder, b"file", CREATE).expect("a file");
    here.fs_write(file, b"some words").expect("room");
    here.fs_seek(file, 0, 5).expect("there");
    // The folder's descriptor is closed; the file's still means names below it.
    here.fs_release(folder).expect("ours");
    assert_eq!(here.count(), 2, "remembered for the file's sake");
    kill_instance(&handle);
    let (other, same) = there.fs_split(0, b"folder/file", 0).expect("there");
    assert_eq!(same, number);
    there.fs_rename(other, b"elsewhere").expect("free");
    kill_instance(&handle);
    assert_eq!(here.fs_read(file, 100), Ok((5, b"words".to_vec(), 5)));
    here.fs_rename(file, b"back").expect("free");
    kill_instance(&handle);
    assert!(there.fs_split(0, b"folder/back", 0).is_ok_and(|(_, same)| same == number));
    there.fs_remove(other).expect("there");
    kill_instance(&handle);
    assert_eq!(here.fs_read(file, 1), Err(CallError::Service(libc::ESTALE)));
    here.fs_release(file).expect("ours");
    assert_eq!(here.count(), 0);
}

#[test]
fn a_folder_that_was_recovered_only_to_be_closed_is_recovered_for_its_files() {
    let mut system = System::new();
    let handle = start(&mut system, "fs");
    let client = Client::new(channel(&handle));
    let (folder, _) = client.fs_split(0, b"folder", CREATE | FOLDER).expect("a folder");
    let (file, _) = client.fs_split(folder, b"file", CREATE).expect("a file");
    kill_instance(&handle);
    client.fs_release(folder).expect("ours");
    client.fs_rename(file, b"other").expect("free");
    client.fs_split(0, b"folder/other", 0).expect("there");
}

#[test]
fn without_g1_a_file_is_gone_with_its_server() {
    let mut system = System::new();
    let handle = start(&mut system, "fs-without-g1");
    let client = Client::new(channel(&handle));
    let (file, _) = client.fs_split(0, b"file", CREATE).expect("a file");
    client.fs_write(file, b"words").expect("room");
    client.fs_seek(file, 0, 0).expect("there");
    assert_eq!(client.fs_read(file, 10), Ok((5, b"words".to_vec(), 5)));
    kill_instance(&handle);
    assert_eq!(client.fs_read(file, 10), Err(CallError::Service(libc::ESTALE)));
    assert_eq!(client.fs_split(0, b"file", 0), Err(CallError::Service(libc::ENOENT)));
}

#[test]
fn without_d1_a_file_has_lost_its_folder() {
    let mut system = System::new();
    let handle = start(&mut system, "fs");
    let client = without_d1::Client::new(channel(&handle));
    let (folder, _) = client.fs_split(0, b"folder", CREATE | FOLDER).expect("a folder");
    let (file, _) = client.fs_split(folder, b"file", CREATE).expect("a file");
    client.fs_rename(file, b"name").expect("free");
    kill_instance(&handle);
    assert_eq!(client.fs_rename(file, b"other"), Err(CallError::Refused(libc::EBADF)));
}
