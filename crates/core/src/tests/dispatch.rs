//! Pins, modules and what goes between them.

use super::*;
use std::cell::Cell;

type Start = fn(&mut Calls) -> Result<(), Failure>;

fn first() -> Box<dyn Module> {
    Box::new(Listener { name: "first", events: &["tick"], body: idle, clock: None })
}

fn second() -> Box<dyn Module> {
    Box::new(Listener { name: "second", events: &["tick", "hour"], body: idle, clock: None })
}

fn striker() -> Box<dyn Module> {
    let body = |calls: &mut Calls, clock, event: &Event| match event.name {
        "tick" => {
            calls.issue_cmd(clock, "strike", &Payload::NONE)?;
            tell("struck".into());
            Ok(())
        }
        _ => Ok(()),
    };
    Box::new(Listener { name: "striker", events: &["tick", "hour"], body, clock: None })
}

#[test]
fn a_pin_is_loaded_by_the_first_module_that_asks_for_it_and_unloaded_with_the_last() {
    let (mut kernel, wanted) = kernel();
    let is_loaded = |kernel: &Microkernel| kernel.pins().any(|(pin, loaded)| pin.name == "clock" && loaded);
    assert!(!is_loaded(&kernel));
    kernel.load(manifest("first", first)).unwrap();
    kernel.load(manifest("second", second)).unwrap();
    assert!(is_loaded(&kernel));
    kernel.unload("first").unwrap();
    assert!(is_loaded(&kernel));
    kernel.unload("second").unwrap();
    assert!(!is_loaded(&kernel));
    let all = [("tick", "wanted"), ("hour", "wanted"), ("tick", "less"), ("hour", "unwanted"), ("tick", "unwanted")];
    assert_eq!(*wanted.borrow(), all);
}

/// RMK, §3: system hang detection and application hang detection both want to know of context switches.
#[test]
fn two_modules_share_an_event_and_the_one_that_comes_later_takes_it_from_nobody() {
    let (mut kernel, _) = kernel();
    kernel.load(manifest("first", first)).unwrap();
    kernel.raise(tick("tick", None));
    kernel.load(manifest("second", second)).unwrap();
    kernel.raise(tick("tick", None));
    kernel.unload("second").unwrap();
    kernel.raise(tick("tick", None));
    assert_eq!(told(), ["first tick", "first tick", "second tick", "first tick"]);
}

#[test]
fn a_pin_is_uninstalled_when_nobody_uses_it_and_installed_again() {
    let (mut kernel, notes) = kernel();
    let is_known = |kernel: &Microkernel| kernel.pins().any(|(pin, _)| pin.name == "clock");
    kernel.load(manifest("first", first)).unwrap();
    kernel.load(manifest("second", second)).unwrap();
    assert_eq!(kernel.uninstall_pin("clock").unwrap_err().to_string(), "the pin clock is used by first, second");
    kernel.unload("first").unwrap();
    assert_eq!(kernel.uninstall_pin("clock").unwrap_err().to_string(), "the pin clock is used by second");
    kernel.raise(tick("tick", None));
    kernel.unload("second").unwrap();
    kernel.uninstall_pin("clock").unwrap();
    assert!(!is_known(&kernel));
    assert_eq!(kernel.uninstall_pin("clock").unwrap_err().to_string(), "there is no pin called clock");
    assert_eq!(kernel.load(manifest("first", first)).unwrap_err().to_string(), "there is no pin called clock");
    // An event of one that is gone is nobody's.
    kernel.raise(tick("tick", None));
    let make = notes.clone();
    kernel.install_pin(&CLOCK, Box::new(move || Ok(Box::new(Clock { wanted: make.clone(), sum: 0 }))));
    assert!(is_known(&kernel));
    kernel.load(manifest("first", first)).unwrap();
    kernel.raise(tick("tick", None));
    assert_eq!(told(), ["second tick", "first tick"]);
}

#[test]
fn a_pin_that_is_installed_anew_under_its_users_serves_them_on() {
    let (mut kernel, notes) = kernel();
    kernel.load(manifest("striker", striker)).unwrap();
    let make = notes.clone();
    kernel.install_pin(&CLOCK, Box::new(move || Ok(Box::new(Clock { wanted: make.clone(), sum: 0 }))));
    kernel.raise(tick("tick", None));
    assert_eq!(told(), ["striker tick", "struck", "striker hour"]);
}

#[test]
fn what_a_pin_raises_while_a_module_runs_comes_after_it() {
    let (mut kernel, _) = kernel();
    kernel.load(manifest("striker", striker)).unwrap();
    kernel.raise(tick("tick", None));
    assert_eq!(told(), ["striker tick", "struck", "striker hour"]);
}

#[test]
fn an_event_of_a_program_reaches_the_modules_that_protect_it_at_that_time() {
    let (mut kernel, _) = kernel();
    kernel.load(manifest("first", first)).unwrap();
    kernel.load(manifest("second", second)).unwrap();
    kernel.protect("first", "db", Payload::of(&1u64).unwrap()).unwrap();
    kernel.raise(tick("tick", Some("db")));
    kernel.raise(tick("tick", Some("web")));
    kernel.release("first", "db").unwrap();
    kernel.protect("second", "db", Payload::of(&2u64).unwrap()).unwrap();
    kernel.raise(tick("tick", Some("db")));
    kernel.unload("second").unwrap();
    let expected = [
        "first protects db 1",
        "first tick",
        "first releases db",
        "second protects db 2",
        "second tick",
        "second releases db",
    ];
    assert_eq!(told(), expected);
}

#[test]
fn settings_that_a_module_refuses_protect_nothing() {
    let (mut kernel, _) = kernel();
    kernel.load(manifest("first", first)).unwrap();
    assert_eq!(kernel.protect("first", "db", Payload::of(&"text").unwrap()), Err(Failure::Argument));
    kernel.raise(tick("tick", Some("db")));
    assert_eq!(told(), [""; 0]);
}

#[test]
fn what_is_not_there_is_told_by_name() {
    static HERE: Interface = Interface { name: "here", what: "", operations: &[], events: &[] };
    let (mut kernel, _) = kernel();
    kernel.install_pin(&HERE, Box::new(|| Err("needs another kernel".into())));
    let wants = |kernel: &mut Microkernel, what: Start| {
        struct Wants(Start);
        impl Module for Wants {
            fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
                (self.0)(calls)
            }
            fn protect(&mut self, _: &mut Calls, _: &str, _: &Payload) -> Result<(), Failure> {
                Ok(())
            }
            fn on_event(&mut self, _: &mut Calls, _: &Event) -> Result<(), Failure> {
                Ok(())
            }
        }
        thread_local!(static WHAT: Cell<Option<Start>> = const { Cell::new(None) });
        WHAT.set(Some(what));
        let make: fn() -> Box<dyn Module> = || Box::new(Wants(WHAT.get().unwrap()));
        let loaded = kernel.load(manifest("wants", make));
        let _ = kernel.unload("wants");
        loaded.map_err(|failure| failure.to_string())
    };
    let mut error = |what| wants(&mut kernel, what).unwrap_err();
    assert_eq!(error(|calls| calls.use_pin("clokc").map(drop)), "there is no pin called clokc");
    assert_eq!(error(|calls| calls.use_pin("here").map(drop)), "the pin here cannot be had: needs another kernel");
    assert_eq!(
        error(|calls| {
            let clock = calls.use_pin("clock")?;
            calls.issue_cmd(clock, "subtract", &Payload::NONE).map(drop)
        }),
        "the pin clock has no operation subtract"
    );
    assert_eq!(
        error(|calls| {
            let clock = calls.use_pin("clock")?;
            calls.subscr_event(clock, "minute")
        }),
        "the pin clock raises no event minute"
    );
    assert_eq!(
        error(|calls| {
            let clock = calls.use_pin("clock")?;
            calls.release_pin(clock);
            calls.issue_cmd(clock, "add", &Payload::NONE).map(drop)
        }),
        "the pin clock was not asked for with use_pin"
    );
    assert_eq!(
        error(|calls| {
            let clock = calls.use_pin("clock")?;
            calls.issue_cmd(clock, "add", &Payload::NONE).map(drop)
        }),
        "an argument is not of the type that the interface names"
    );
    assert_eq!(kernel.unload("wants"), Err(Failure::NoSuchModule("wants".into())));
    assert!(kernel.pins().all(|(_, loaded)| !loaded));
}

#[test]
fn a_result_comes_back_from_a_pin() {
    let sums = |calls: &mut Calls, clock, _: &Event| {
        let sum: u64 = calls.issue_cmd(clock, "add", &Payload::of(&20u64)?)?.read()?;
        tell(sum.to_string());
        Ok(())
    };
    thread_local!(static BODY: Cell<Option<Body>> = const { Cell::new(None) });
    BODY.set(Some(sums));
    let (mut kernel, _) = kernel();
    let make = || -> Box<dyn Module> {
        Box::new(Listener { name: "sums", events: &["tick"], body: BODY.get().unwrap(), clock: None })
    };
    kernel.load(manifest("sums", make)).unwrap();
    kernel.raise(tick("tick", None));
    kernel.raise(tick("tick", None));
    assert_eq!(told(), ["sums tick", "20", "sums tick", "40"]);
    assert_eq!(kernel.load(manifest("sums", make)), Err(Failure::Loaded("sums".into())));
}
