//! `steady SERVICE SEED STEPS`: a component and clients that each make so many steps, all in one run that ends: a target for
//! `outlast inject`. What it prints is the same whenever nothing that must not be has been.

use std::process::ExitCode;
use std::sync::mpsc::channel;

use outlast_glue_rt::{Channel, System};

use crate::bench::start;
use crate::load::{steps, CLIENTS};

pub fn run(service: &str, seed: u64, count: u64) -> ExitCode {
    let mut system = System::new();
    let handle = start(&mut system, service);
    let open = |_| handle.grant().expect("a channel").open().expect("a channel");
    let channels: Vec<Channel> = (0..CLIENTS).map(open).collect();
    let outcome = steps(service, &channels, seed).and_then(|steps| {
        let (done, ended) = channel();
        let clients = steps.len() as u64;
        for mut step in steps {
            let done = done.clone();
            std::thread::spawn(move || {
                let _ = done.send((0..count).try_for_each(|_| step()));
            });
        }
        drop(done);
        // The first failure ends the process: others may wait for who has failed.
        ended.iter().collect::<Result<Vec<()>, _>>().map(|ended| (ended.len() as u64, clients, clients * count))
    });
    match outcome {
        Ok((ended, clients, steps)) if ended == clients => {
            println!("{service}: {steps} steps right");
            ExitCode::SUCCESS
        }
        Ok(_) => ExitCode::FAILURE,
        Err(trouble) => {
            println!("{trouble}");
            ExitCode::from(3)
        }
    }
}
