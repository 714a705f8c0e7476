//! A lock that is held while its component, or the template that this is forked from, is killed.

use outlast_glue_rt::{CallError, Handle};
use outlast_services::stubs::lock::Client;

use crate::support::{await_that, kill, kill_instance};

/// It stays held through micro-reboots, and its waiter waits on.
pub fn stays_held(handle: &Handle, client: &Client) {
    let lock = client.lock_alloc().expect("a lock");
    client.lock_take(lock, 1).expect("free");
    let waiter = {
        let client = client.clone();
        std::thread::spawn(move || client.lock_take(lock, 2))
    };
    for round in 1..=5 {
        kill_instance(handle);
        assert_eq!(handle.deaths().0, round);
        assert_eq!(client.lock_take(lock, 1), Err(CallError::Service(libc::EDEADLK)), "still ours");
        assert!(!waiter.is_finished());
    }
    client.lock_release(lock, 1).expect("ours");
    assert_eq!(waiter.join().expect("the waiter"), Ok(0));
    assert_eq!(client.lock_release(lock, 1), Err(CallError::Service(libc::EPERM)));
}

/// A template that dies is started again, and nobody notices.
pub fn outlives_templates(handle: &Handle, client: &Client) {
    let lock = client.lock_alloc().expect("a lock");
    client.lock_take(lock, 7).expect("free");
    for _ in 0..3 {
        let template = handle.template();
        kill(template, libc::SIGKILL);
        await_that(|| ![0, template].contains(&handle.template()));
        kill_instance(handle);
        assert_eq!(client.lock_take(lock, 7), Err(CallError::Service(libc::EDEADLK)));
    }
}
