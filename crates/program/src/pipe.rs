//! Pipes between programs.

use std::os::fd::AsFd;

use rustix::pipe::fcntl_setpipe_size;

/// Maximum capacity of a pipe for unprivileged users on Linux. The default is 64 KiB.
const BYTES: usize = 1 << 20;

/// Increases the capacity of a pipe, so that the programs at its ends wake up less often. This saves a tenth
/// to a sixth of the time of `mapper | sort | reducer`. Has no effect on files, nor if the user's pipes
/// exceed the kernel's limit.
pub fn widen(end: impl AsFd) {
    let _ = fcntl_setpipe_size(end, BYTES);
}

#[cfg(test)]
mod tests {
    use std::io;

    use rustix::pipe::fcntl_getpipe_size;

    use super::*;

    #[test]
    fn widening_enlarges_a_pipe_and_leaves_a_file_unchanged() {
        let (from, to) = io::pipe().unwrap();
        widen(&to);
        assert_eq!(fcntl_getpipe_size(&from).unwrap(), BYTES);
        widen(tempfile::tempfile().unwrap());
    }
}
