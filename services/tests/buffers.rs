//! Bulk data between a client and a component: buffers that are lent for a call.

mod support;

use outlast_glue_rt::{Buffer, CallError, Channel, Handle, Interrupted, Request, System};
use outlast_services::fs::CREATE;
use outlast_services::stubs::fs::{operation, Client};
use support::{start, while_killed, Chance};

fn channel(handle: &Handle) -> Channel {
    handle.grant().expect("a channel").open().expect("a channel")
}

#[test]
fn whole_buffers_come_and_go_while_the_component_is_killed_and_each_is_its_clients_again() {
    let mut system = System::new();
    let handle = start(&mut system, "fs");
    let mut chance = Chance::new();
    let (rounds, kills) = while_killed(&handle, &mut chance, || {
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..6u64)
                .map(|number| {
                    let (client, handle) = (Client::new(channel(&handle)), &handle);
                    scope.spawn(move || {
                        let (out, back) = (client.channel().buffer(), client.channel().buffer());
                        let (out, back) = (out.expect("a buffer"), back.expect("a buffer"));
                        let (file, _) = client.fs_split(0, number.to_string().as_bytes(), CREATE).expect("a file");
                        let mut rounds = 0u64;
                        while rounds < 60 || handle.deaths().0 < 20 {
                            let byte = (rounds * 7 + number) as u8;
                            let data: Vec<u8> = (0..Buffer::SIZE).map(|at| byte.wrapping_mul(at as u8 | 1)).collect();
                            out.write(0, &data).expect("ours");
                            client.fs_seek(file, 0, 0).expect("there");
                            let (put, _) = client.fs_put(file, &out, Buffer::SIZE as u32).expect("room");
                            client.fs_seek(file, 0, 0).expect("there");
                            let (got, _) = client.fs_get(file, &back, u32::MAX).expect("bytes");
                            assert_eq!((put as usize, got as usize), (Buffer::SIZE, Buffer::SIZE));
                            assert!(back.read(0, Buffer::SIZE).expect("ours") == data, "round {rounds}");
                            rounds += 1;
                        }
                        rounds
                    })
                })
                .collect();
            all.into_iter().map(|one| one.join().expect("a client")).sum::<u64>()
        })
    });
    println!("{kills} kills, {rounds} rounds");
}

#[test]
fn a_call_reaches_only_buffers_that_are_its_clients_to_lend() {
    let mut system = System::new();
    let handle = start(&mut system, "fs");
    let (here, there) = (Client::new(channel(&handle)), Client::new(channel(&handle)));
    let (mine, theirs) = (here.channel().buffer().expect("one"), there.channel().buffer().expect("one"));
    theirs.write(0, b"a secret").expect("ours");
    mine.write(0, b"known").expect("ours");
    // The same number: each channel has its own.
    assert_eq!(mine.number(), theirs.number());
    let (file, _) = here.fs_split(0, b"file", CREATE).expect("a file");
    here.fs_put(file, &mine, 5).expect("room");
    here.fs_seek(file, 0, 0).expect("there");
    assert_eq!(here.fs_read(file, 10).expect("bytes").1, b"known");
    // What the component calls it: the first that was opened.
    let put = |number: u64, length: u64| {
        let (operation, words) = (operation::FS_PUT, &[1, number, length]);
        let epoch = here.channel().epoch();
        match here.channel().call(&Request { operation, epoch, words, ..Request::default() }) {
            Err(Interrupted::Failed(error)) => Err(error),
            Err(Interrupted::Fault { .. }) => panic!("nobody harms the component"),
            Ok(_) => Ok(()),
        }
    };
    let number = u64::from(mine.number());
    assert_eq!(put(number, 5), Ok(()));
    assert_eq!(put(number, Buffer::SIZE as u64 + 1), Err(CallError::Service(libc::EINVAL)));
    for wrong in [number + 1, 64, u64::from(u32::MAX), 1 << 40] {
        assert_eq!(put(wrong, 5), Err(CallError::Refused(libc::EINVAL)), "{wrong}");
    }
    drop(mine);
    assert_eq!(put(number, 5), Err(CallError::Refused(libc::EINVAL)), "given back");
    assert_eq!(handle.deaths().0, 0);
}

#[test]
fn buffers_of_a_client_that_died_are_there_for_the_next() {
    let mut system = System::new();
    let handle = start(&mut system, "fs");
    let grant = handle.grant().expect("a channel");
    let all = |channel: &Channel| -> Vec<Buffer> { std::iter::from_fn(|| channel.buffer().ok()).collect() };
    let first = grant.again().expect("a descriptor").open().expect("a channel");
    let taken = all(&first);
    assert_eq!(taken.len(), 64);
    assert!(matches!(first.buffer(), Err(CallError::NoBuffer)));
    // As one that is killed leaves them.
    std::mem::forget(taken);
    assert_eq!(all(&grant.open().expect("a channel")).len(), 64);
}
