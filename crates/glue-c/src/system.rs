//! The manager's part: components, and programs that are granted channels to them.

use std::ffi::{c_char, c_int, OsString};
use std::process::{Command, Stdio};

use outlast_glue_rt::{Grant, Handle, Spec, System};

use crate::error;
use crate::memory::{end, file, made, own, path, paths, put, slice, text};

#[no_mangle]
extern "C" fn glue_system_new() -> *mut System {
    Box::into_raw(Box::default())
}

#[no_mangle]
unsafe extern "C" fn glue_system_end(system: *mut System) {
    // SAFETY: see the head of `lib.rs`.
    unsafe { end(system) }
}

#[no_mangle]
unsafe extern "C" fn glue_component_start(
    system: &mut System,
    name: *const c_char,
    program: *const c_char,
    arguments: *const *const c_char,
    error: *mut c_int,
) -> *mut Handle {
    // SAFETY: see the head of `lib.rs`.
    unsafe { glue_component_start_with(system, name, program, arguments, std::ptr::null(), 0, error) }
}

#[no_mangle]
unsafe extern "C" fn glue_component_start_with(
    system: &mut System,
    name: *const c_char,
    program: *const c_char,
    arguments: *const *const c_char,
    passes: *const Pass,
    count: usize,
    error: *mut c_int,
) -> *mut Handle {
    // SAFETY: see the head of `lib.rs`; each grant is taken here, once.
    unsafe {
        let granted = |pass: &Pass| (text(pass.name), *Box::from_raw(pass.grant));
        let grants = slice(passes, count).iter().map(granted).collect();
        let arguments: Result<Vec<String>, _> = paths(arguments).into_iter().map(OsString::into_string).collect();
        let started = match arguments {
            Err(_) => Err(error::of_io(&std::io::Error::from_raw_os_error(libc::EILSEQ))),
            Ok(arguments) => {
                let spec = Spec { name: text(name), program: path(program).into(), arguments };
                system.start_with(spec, grants).map_err(|error| error::of_system(&error))
            }
        };
        made(started, error)
    }
}

#[no_mangle]
unsafe extern "C" fn glue_component_end(component: *mut Handle) {
    // SAFETY: see the head of `lib.rs`.
    unsafe { end(component) }
}

#[no_mangle]
unsafe extern "C" fn glue_component_instance(component: &Handle) -> libc::pid_t {
    component.instance() as libc::pid_t
}

#[no_mangle]
unsafe extern "C" fn glue_component_deaths(component: &Handle) -> u32 {
    component.deaths().0
}

#[no_mangle]
unsafe extern "C" fn glue_component_given_up(component: &Handle) -> c_int {
    component.given_up().into()
}

#[no_mangle]
unsafe extern "C" fn glue_component_grant(component: &Handle, error: *mut c_int) -> *mut Grant {
    // SAFETY: see the head of `lib.rs`.
    unsafe { made(component.grant().map_err(|error| error::of_system(&error)), error) }
}

/// `struct glue_pass`.
#[repr(C)]
pub struct Pass {
    name: *const c_char,
    grant: *mut Grant,
}

#[no_mangle]
unsafe extern "C" fn glue_spawn(
    arguments: *const *const c_char,
    files: *const c_int,
    passes: *const Pass,
    count: usize,
    process: *mut libc::pid_t,
) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    let (arguments, files, passes) = unsafe { (paths(arguments), slice(files, 3), slice(passes, count)) };
    let mut command = Command::new(arguments.first().cloned().unwrap_or_default());
    command.args(arguments.iter().skip(1));
    for pass in passes {
        // SAFETY: as above; each grant is taken here, once.
        unsafe { Box::from_raw(pass.grant).pass(&mut command, &text(pass.name)) };
    }
    for (at, number) in files.iter().enumerate().filter(|(_, number)| **number >= 0) {
        // SAFETY: as above; the program gets a copy.
        let Some(file) = own(unsafe { file(*number) }) else {
            return error::of_io(&std::io::Error::last_os_error());
        };
        match at {
            0 => command.stdin(Stdio::from(file)),
            1 => command.stdout(Stdio::from(file)),
            _ => command.stderr(Stdio::from(file)),
        };
    }
    match command.spawn() {
        Ok(child) => {
            // SAFETY: as above.
            unsafe { put(process, child.id() as libc::pid_t) };
            0
        }
        Err(error) => error::of_io(&error),
    }
}
