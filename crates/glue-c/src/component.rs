//! A component whose service is written in C.

use std::ffi::{c_char, c_int};

use outlast_glue_rt::{run, Component, Operation, Point, Stop};

use crate::call::CCall;
use crate::client::WORDS;
use crate::error;
use crate::memory::{slice, text};

/// `struct glue_operation`.
#[repr(C)]
pub struct COperation {
    pub name: *const c_char,
    pub words: u32,
    pub bytes: c_int,
    pub file: c_int,
    pub closes: u32,
}

/// `struct glue_service`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CService {
    pub operations: *const COperation,
    pub count: usize,
    pub global: c_int,
    pub dispatch: unsafe extern "C" fn(*mut CCall<'_, '_>) -> c_int,
    pub reached: Option<unsafe extern "C" fn(c_int, u32)>,
    pub born: Option<unsafe extern "C" fn() -> c_int>,
}

/// Its state is memory of the process, of which every instance begins with a copy, as it was at the fork.
#[derive(Clone)]
struct Service {
    operations: &'static [Operation],
    service: CService,
}

// SAFETY: what it points to stays as it is (the header asks for that), and C's functions run under the monitor's lock.
unsafe impl Send for Service {}

impl Component for Service {
    fn operations(&self) -> &'static [Operation] {
        self.operations
    }

    fn is_global(&self) -> bool {
        self.service.global != 0
    }

    fn born(&mut self) -> std::io::Result<()> {
        // SAFETY: a function of the service's.
        match self.service.born.map_or(0, |born| unsafe { born() }) {
            0 => Ok(()),
            number => Err(std::io::Error::other(error::described(number))),
        }
    }

    fn dispatch(&mut self, call: &mut outlast_glue_rt::Call<'_>) -> Result<(), Stop> {
        let mut call = CCall { call, stop: None };
        // SAFETY: the stub's function, and a call that lives until it returns.
        match unsafe { (self.service.dispatch)(&mut call) } {
            0 => Ok(()),
            // Nobody said why: then it is no service that can be believed.
            error::STOP => Err(call.stop.take().unwrap_or(Stop::Errno(libc::EPROTO))),
            errno => Err(Stop::Errno(errno)),
        }
    }

    fn reached(&self, point: Point, operation: u32) {
        if let Some(reached) = self.service.reached {
            let at = Point::ALL.iter().position(|known| *known == point).unwrap_or(0);
            // SAFETY: a function of the service's.
            unsafe { reached(at as c_int, operation) }
        }
    }
}

#[no_mangle]
unsafe extern "C" fn glue_run(service: &CService) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    let operation = |operation: &COperation| unsafe {
        Operation {
            name: text(operation.name).leak(),
            words: operation.words,
            bytes: operation.bytes != 0,
            file: operation.file != 0,
            closes: operation.closes.checked_sub(1).map(|word| word as usize).filter(|word| *word < WORDS),
        }
    };
    // SAFETY: as above. It is needed until the process ends.
    let all: Vec<Operation> = unsafe { slice(service.operations, service.count) }.iter().map(operation).collect();
    let service = Service { operations: all.leak(), service: *service };
    error::of_io(&run(|| service))
}
