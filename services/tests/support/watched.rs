//! A client's program that runs while its component is killed.

#![allow(dead_code)]

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outlast_glue_rt::Handle;

use crate::support::{while_killed, Chance};

#[derive(Debug)]
pub struct Ended {
    pub output: String,
    pub errors: String,
    /// None: it made no progress and was ended.
    pub success: Option<bool>,
    pub kills: u32,
}

/// Until it ends or `patience` does. `grants`: names under which it is granted channels.
pub fn watch(handle: &Handle, grants: &[&str], mut command: Command, patience: Duration) -> Ended {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in grants {
        handle.grant().expect("a channel").pass(&mut command, name);
    }
    let mut client = command.spawn().expect("the client's program");
    let output = read(client.stdout.take().expect("piped"));
    let errors = read(client.stderr.take().expect("piped"));
    let mut chance = Chance::new();
    let (success, kills) = while_killed(handle, &mut chance, || {
        let begun = Instant::now();
        loop {
            if let Some(status) = client.try_wait().expect("a child") {
                break Some(status.success());
            }
            if begun.elapsed() > patience {
                client.kill().expect("a child");
                client.wait().expect("a child");
                break None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let [output, errors] = [output, errors].map(|reader| reader.join().expect("the reader"));
    print!("{errors}");
    Ended { output, errors, success, kills }
}

fn read(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        from.read_to_string(&mut text).expect("text");
        text
    })
}
