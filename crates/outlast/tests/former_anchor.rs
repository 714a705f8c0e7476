//! An anchor that another one has replaced may live on for a while. Nobody takes it for the program.

mod support;

use outlast_image::control::{request, Control, MAGIC};
use outlast_image::layout::PAGE;
use rustix::mm::{mmap, MapFlags, ProtFlags};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::atomic::Ordering::SeqCst;
use support::{finish, kill, said, Home};

/// The signal by which the engine is asked to look at what is wanted of it.
const KNOCK: i32 = 64;

/// The control page of a program's session, to which whoever may trace the program can write.
fn control(home: &Home, name: &str) -> &'static Control {
    let path = home.state().join(name).join("session");
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: the page holds nothing but atomics, and stays mapped.
    let control: &Control =
        unsafe { &*mmap(std::ptr::null_mut(), PAGE as usize, access, shared, &file, 0).unwrap().cast() };
    assert_eq!(control.magic.load(SeqCst), MAGIC);
    control
}

#[test]
fn a_former_anchor_is_not_taken_for_the_program_when_the_present_one_dies() {
    let home = Home::new();
    let script = format!("echo one; {}; echo two; exit 3", home.door().wait());
    let out = std::fs::File::create(home.file("out")).unwrap();
    let child = home.run_script("it", &script).stdout(out).stderr(Stdio::piped()).spawn().unwrap();
    let first = home.await_status("it", |status| status["protected"] == true && status["anchor"].is_i64());
    // As if its maker had died before anybody heard of it: the program is asked for another one.
    kill(&first["anchor"], libc::SIGSTOP);
    control(&home, "it").request.fetch_or(request::ANCHOR, SeqCst);
    kill(&first["pid"], KNOCK);
    let second = home.await_status("it", |status| status["anchor"].is_i64() && status["anchor"] != first["anchor"]);
    // The present one does not come to do what it is asked for.
    kill(&second["anchor"], libc::SIGSTOP);
    kill(&second["pid"], libc::SIGKILL);
    support::until("the request for a process", || control(&home, "it").anchor_command.load(SeqCst) != 0);
    kill(&second["anchor"], libc::SIGKILL);
    home.await_event("it", "resumed", 1);
    home.door().open();
    let output = finish(child);
    let seen = std::fs::read_to_string(home.file("out")).unwrap();
    assert!(
        output.status.code() == Some(3) && seen == "one\ntwo\n",
        "{:?} {seen} {}",
        output.status.signal(),
        said(&output)
    );
}
