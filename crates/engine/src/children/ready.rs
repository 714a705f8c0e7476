//! Sessions and stores for children, which the supervisor has made ready: they wait in a socket, and whoever is about to make a child
//! receives one of them.

use crate::state::{Engine, OwnFd};
use crate::sys::{err, nr, syscall};

/// How often, and how long each time, is waited for one where none is ready. Milliseconds.
const TRIES: u32 = 100;
const PATIENCE: i64 = 20;

/// What a child begins with.
pub struct Ready {
    /// By which the supervisor knows it; not 0.
    pub member: u32,
    pub session: i32,
    pub store: i32,
}

impl Drop for Ready {
    fn drop(&mut self) {
        // SAFETY: received for this value.
        unsafe {
            syscall!(nr::CLOSE, self.session);
            syscall!(nr::CLOSE, self.store);
        }
    }
}

/// SCM_RIGHTS with two descriptors.
#[repr(C)]
#[derive(Default)]
struct Rights {
    len: u64,
    level: i32,
    kind: i32,
    fds: [i32; 2],
}

/// Receives one; none where the program may have no more descriptors, or nobody is there who makes any.
pub fn receive(e: &Engine) -> Option<Ready> {
    const DONTWAIT_CLOEXEC: u64 = 0x40 | 0x4000_0000;
    const POLLIN: u64 = 1;
    const SOL_SOCKET: i32 = 1;
    const SCM_RIGHTS: i32 = 1;
    let socket = e.own_fd(OwnFd::Children);
    let (mut member, mut rights) = (0u32, Rights { fds: [-1; 2], ..Rights::default() });
    let vector = [(&raw mut member) as u64, 4];
    let mut waited = 0;
    loop {
        // struct msghdr: name, its length, vector, its length, control, its length, flags.
        let mut message = [0, 0, vector.as_ptr() as u64, 1, (&raw mut rights) as u64, size_of::<Rights>() as u64, 0];
        // SAFETY: the message and what it points to are locals.
        let r = unsafe { syscall!(nr::RECVMSG, socket, message.as_mut_ptr(), DONTWAIT_CLOEXEC) };
        if r == err::EINTR {
            continue;
        }
        if r == err::EAGAIN && waited < TRIES {
            waited += 1;
            // Those that died before they had made a child with what they had received have told nobody.
            super::ring();
            let mut poll = socket as u32 as u64 | POLLIN << 32;
            // SAFETY: as above.
            unsafe { syscall!(nr::POLL, &raw mut poll, 1, PATIENCE) };
            continue;
        }
        let [session, store] = rights.fds;
        let came = (rights.level, rights.kind) == (SOL_SOCKET, SCM_RIGHTS) && message[5] > 0;
        if !came || r != 4 {
            return None;
        }
        let ready = Ready { member, session, store };
        return (member != 0 && session >= 0 && store >= 0 && message[5] as usize >= 24).then_some(ready);
    }
}
