//! The file system through micro-reboots: the kernel's own does the same, and nobody can tell the two apart.

#[path = "support/oracle.rs"]
mod oracle;
mod support;
#[path = "support/user.rs"]
mod user;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use oracle::Twin;
use outlast_glue_rt::{CallError, Channel, Handle, System};
use outlast_services::by_hand;
use outlast_services::fs::{APPEND, CREATE, FOLDER};
use outlast_services::stubs::fs::Client;
use support::{kill_instance, start, while_killed, Chance};
use user::{alike, said, same, Files, User};

mod without_d1 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/fs_without_d1.rs"));
}

fn channel(handle: &Handle) -> outlast_glue_rt::Channel {
    handle.grant().expect("a channel").open().expect("a channel")
}

#[test]
fn nobody_can_tell_it_from_the_kernels_while_it_is_killed() {
    is_as_the_kernels(Client::new);
}

#[test]
fn recovery_that_is_written_by_hand_makes_it_no_other_one() {
    is_as_the_kernels(by_hand::fs::Client::new);
}

fn is_as_the_kernels<F: Files>(client: fn(Channel) -> F) {
    const CLIENTS: usize = 12;
    const STEPS: u32 = 500;
    let mut system = System::new();
    let handle = start(&mut system, "fs");
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let mut chance = Chance::new();
    let mut users: Vec<User<F>> = (0..CLIENTS)
        .map(|number| {
            let channel = channel(&handle);
            let buffer = channel.buffer().expect("one");
            let client = client(channel);
            let name = number.to_string();
            std::fs::create_dir(folder.path().join(&name)).expect("a folder");
            let (top, _) = client.fs_split(0, name.as_bytes(), CREATE | FOLDER).expect("a folder");
            let twin = Twin::root(&folder.path().join(&name));
            User { client, buffer, chance: chance.fork(), top: (top, twin), open: Vec::new() }
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
    let client = client(channel(&handle));
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
