//! A process that was harmed is better dead than wrong: its calls are made again by the next one.

use std::io;

/// What the kernel says of a call that no sound process makes: no such call, descriptor, address or argument.
const NEVER: [i32; 7] =
    [libc::EBADF, libc::EFAULT, libc::EINVAL, libc::ENOSYS, libc::ENOTSOCK, libc::ENOTTY, libc::EOPNOTSUPP];

/// For what a service asks of the kernel, where it made the arguments itself: panics, which ends a component, where the answer says that
/// they did not arrive as they were meant. Lack of memory, of descriptors and the like is an error as any.
pub fn sound<T>(result: io::Result<T>) -> io::Result<T> {
    if let Err(error) = &result {
        let harmed = error.raw_os_error().is_some_and(|errno| NEVER.contains(&errno));
        assert!(!harmed, "the kernel refuses what it always takes ({error}): this process is not what it was");
    }
    result
}

#[cfg(test)]
mod tests {
    use std::io::Error;
    use std::panic::catch_unwind;

    use super::sound;

    #[test]
    fn a_process_whose_calls_do_not_arrive_as_they_were_meant_ends_and_one_that_lacks_something_does_not() {
        let said = |errno: i32| catch_unwind(|| sound::<()>(Err(Error::from_raw_os_error(errno))).is_err());
        for errno in [libc::ENOMEM, libc::EMFILE, libc::ENFILE, libc::EAGAIN, libc::EPIPE, libc::ETOOMANYREFS] {
            assert!(said(errno).is_ok_and(|is_error| is_error), "{errno}");
        }
        for errno in [libc::EBADF, libc::EFAULT, libc::EINVAL, libc::ENOSYS] {
            assert!(said(errno).is_err(), "{errno}");
        }
        assert!(sound(Ok(())).is_ok());
    }
}
