//! The C functions of csrc/shim.h behind safe types. An owner type frees each handle.
//!
//! The only module of this crate with `unsafe`. `Send` and `Sync` mark what several threads may use.
#![allow(unsafe_code)]

mod shim;

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::marker::PhantomData;
use std::net::TcpListener;
use std::os::fd::IntoRawFd;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use tch::Tensor;

use crate::reduce_op::ReduceOp;
pub(crate) use shim::CBucketTimes;
use shim::{CAutocast, CGroup, CGuard, CReducer, CStore, CTensor, CWork, Message};

/// The cause of a failed call: `c10d_status` without C10D_OK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Invalid,
    Store,
    Failed,
    TimedOut,
}

/// A failed call.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub status: Status,
    pub text: String,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Runs one call of the shim and converts its status and message into a result.
fn call(function: impl FnOnce(Message) -> c_int) -> Result<()> {
    let mut message = null_mut();
    let status = match function(&mut message) {
        0 => return Ok(()),
        1 => Status::Invalid,
        2 => Status::Store,
        4 => Status::TimedOut,
        _ => Status::Failed,
    };
    Err(Failure { status, text: take_text(message).unwrap_or_else(|| "no message".to_owned()) })
}

/// Copies a text allocated by the shim, and frees it.
fn take_text(text: *mut c_char) -> Option<String> {
    let text = NonNull::new(text)?;
    // SAFETY: the shim's texts end with a zero byte. They belong to the caller, which frees them once, here.
    unsafe {
        let owned = CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned();
        shim::c10d_free(text.as_ptr().cast());
        Some(owned)
    }
}

/// Copies a value allocated by the shim, and frees it.
fn take_bytes(data: *mut u8, length: usize) -> Vec<u8> {
    // SAFETY: the shim wrote `length` bytes at `data`. They belong to the caller, which frees them once, here.
    unsafe {
        let owned = std::slice::from_raw_parts(data, length).to_vec();
        shim::c10d_free(data.cast());
        owned
    }
}

/// Converts a text for C. A text with a zero byte is refused, because C would end it there.
fn c_text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Failure {
        status: Status::Invalid,
        text: format!("{text:?}: a name must not contain a zero byte"),
    })
}

/// The tensor's handle. The shim adds a reference to the tensor if it keeps it.
fn handle(tensor: &Tensor) -> CTensor {
    tensor.as_ptr().cast_mut().cast()
}

fn owned<T>(pointer: *mut T) -> NonNull<T> {
    NonNull::new(pointer).expect("a call that succeeds sets its result")
}

/// The PyTorch whose headers the shim was compiled with.
pub fn compiled_version() -> &'static str {
    // SAFETY: a literal of the shim.
    unsafe { CStr::from_ptr(shim::c10d_compiled_version()) }.to_str().expect("a version is ASCII")
}

/// The version of the loaded libtorch, if it is known.
pub(crate) fn loaded_version() -> Option<String> {
    // SAFETY: no arguments; the caller owns the text.
    take_text(unsafe { shim::c10d_loaded_version() })
}

/// Loads libtorch_cuda and the NCCL part. Both stay loaded.
pub(crate) fn load_cuda(libtorch_cuda: &Path, nccl_part: &[u8]) -> Result<()> {
    let path = c_text(&libtorch_cuda.to_string_lossy())?;
    // SAFETY: both arguments outlive the call.
    call(|message| unsafe {
        shim::c10d_load_cuda(path.as_ptr(), nccl_part.as_ptr(), nccl_part.len(), message)
    })
}

/// Makes a GPU the current one of this thread.
pub(crate) fn use_gpu(device: usize) -> Result<()> {
    // SAFETY: no pointers but the message, which the shim sets.
    call(|message| unsafe { shim::c10d_use_gpu(device as c_int, message) })
}

/// Waits until a GPU has computed everything that it was given.
pub(crate) fn wait_for_gpu(device: c_int) -> Result<()> {
    // SAFETY: no pointers but the message, which the shim sets.
    call(|message| unsafe { shim::c10d_wait_for_gpu(device, message) })
}

pub(crate) fn forbid_tf32() {
    // SAFETY: no arguments; sets PyTorch's options, which other calls read.
    unsafe { shim::c10d_forbid_tf32() }
}

/// While it exists, calls of this thread compute with another autocast. It stays on its thread.
pub(crate) struct Autocast {
    before: CAutocast,
    of_thread: PhantomData<*const ()>,
}

impl Autocast {
    pub(crate) fn in_bfloat16() -> Result<Self> {
        Self::set(1)
    }

    pub(crate) fn off() -> Result<Self> {
        Self::set(0)
    }

    fn set(on: c_int) -> Result<Self> {
        let mut before = CAutocast::default();
        // SAFETY: the state outlives the call, which writes it.
        call(|message| unsafe { shim::c10d_autocast_set(on, &mut before, message) })?;
        Ok(Self { before, of_thread: PhantomData })
    }

    /// Whether it was on before, on any device.
    pub(crate) fn was_on(&self) -> bool {
        self.before.enabled != [0; 2]
    }
}

impl Drop for Autocast {
    fn drop(&mut self) {
        // SAFETY: the state is that of this thread before; those of later calls are restored before it.
        unsafe { shim::c10d_autocast_restore(&self.before) }
    }
}

/// The server of a store that is opened.
pub(crate) enum Server {
    /// Another process.
    None,
    /// This process, on a listening socket.
    On(TcpListener),
    /// This process, which already has a store open on the same port.
    OfThisProcess,
}

/// A client of a TCPStore, and its server if this process runs it.
pub(crate) struct Store(NonNull<CStore>);

// SAFETY: TCPStore takes a lock around each call.
unsafe impl Send for Store {}
// SAFETY: as above.
unsafe impl Sync for Store {}

impl Store {
    /// Also starts the server, depending on `server`.
    pub fn open(
        host: &str,
        port: u16,
        server: Server,
        n_workers: Option<usize>,
        timeout_ms: i64,
    ) -> Result<Self> {
        let host = c_text(host)?;
        let n_workers = n_workers.map_or(-1, |n| n as i64);
        let (serve, listener) = match server {
            Server::None => (0, -1),
            Server::OfThisProcess => (1, -1),
            // From here on, the server owns the socket and closes it when it ends.
            Server::On(listener) => (1, listener.into_raw_fd()),
        };
        let mut out = null_mut();
        // SAFETY: the host outlives the call, no one else owns the listener, and `out` is written on success.
        call(|message| unsafe {
            shim::c10d_store_open(
                host.as_ptr(),
                port,
                serve,
                listener,
                n_workers,
                timeout_ms,
                &mut out,
                message,
            )
        })?;
        Ok(Self(owned(out)))
    }

    pub fn port(&self) -> u16 {
        // SAFETY: the store is open.
        unsafe { shim::c10d_store_port(self.0.as_ptr()) }
    }

    pub fn set(&self, key: &str, value: &[u8]) -> Result<()> {
        let key = c_text(key)?;
        // SAFETY: the store is open, the arguments outlive the call.
        call(|message| unsafe {
            shim::c10d_store_set(self.0.as_ptr(), key.as_ptr(), value.as_ptr(), value.len(), message)
        })
    }

    pub fn get(&self, key: &str) -> Result<Vec<u8>> {
        let key = c_text(key)?;
        let (mut data, mut length) = (null_mut(), 0);
        // SAFETY: the store is open, the arguments outlive the call, data and length are written on success.
        call(|message| unsafe {
            shim::c10d_store_get(self.0.as_ptr(), key.as_ptr(), &mut data, &mut length, message)
        })?;
        Ok(take_bytes(data, length))
    }

    pub fn compare_set(&self, key: &str, expected: &[u8], desired: &[u8]) -> Result<Vec<u8>> {
        let key = c_text(key)?;
        let (mut data, mut length) = (null_mut(), 0);
        // SAFETY: the store is open, the arguments outlive the call, data and length are written on success.
        call(|message| unsafe {
            shim::c10d_store_compare_set(
                self.0.as_ptr(),
                key.as_ptr(),
                expected.as_ptr(),
                expected.len(),
                desired.as_ptr(),
                desired.len(),
                &mut data,
                &mut length,
                message,
            )
        })?;
        Ok(take_bytes(data, length))
    }

    pub fn add(&self, key: &str, amount: i64) -> Result<i64> {
        let key = c_text(key)?;
        let mut sum = 0;
        // SAFETY: the store is open, the arguments outlive the call.
        call(|message| unsafe {
            shim::c10d_store_add(self.0.as_ptr(), key.as_ptr(), amount, &mut sum, message)
        })?;
        Ok(sum)
    }

    pub fn wait(&self, keys: &[String], timeout_ms: i64) -> Result<()> {
        let keys = keys.iter().map(|key| c_text(key)).collect::<Result<Vec<_>>>()?;
        let pointers: Vec<_> = keys.iter().map(|key| key.as_ptr()).collect();
        // SAFETY: the store is open, the keys outlive the call.
        call(|message| unsafe {
            shim::c10d_store_wait(self.0.as_ptr(), pointers.as_ptr(), pointers.len(), timeout_ms, message)
        })
    }

    pub fn check(&self, key: &str) -> Result<bool> {
        let key = c_text(key)?;
        let mut all_set = 0;
        // SAFETY: the store is open, the key outlives the call.
        call(|message| unsafe {
            shim::c10d_store_check(self.0.as_ptr(), &key.as_ptr(), 1, &mut all_set, message)
        })?;
        Ok(all_set != 0)
    }

    pub fn delete(&self, key: &str) -> Result<bool> {
        let key = c_text(key)?;
        let mut deleted = 0;
        // SAFETY: the store is open, the key outlives the call.
        call(|message| unsafe {
            shim::c10d_store_delete(self.0.as_ptr(), key.as_ptr(), &mut deleted, message)
        })?;
        Ok(deleted != 0)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: freed once. Groups created from it hold their own references.
        unsafe { shim::c10d_store_close(self.0.as_ptr()) }
    }
}

/// Lets another thread end a group's pending calls.
pub(crate) struct Guard(NonNull<CGuard>);

// SAFETY: the guard has its own lock.
unsafe impl Send for Guard {}
// SAFETY: as above.
unsafe impl Sync for Guard {}

impl Guard {
    pub fn fail(&self, message: &str) {
        let text = CString::new(message.replace('\0', " ")).expect("its zero bytes were replaced");
        // SAFETY: the guard is alive, the text outlives the call.
        unsafe { shim::c10d_guard_fail(self.0.as_ptr(), text.as_ptr()) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: freed once; the group has its own reference.
        unsafe { shim::c10d_guard_free(self.0.as_ptr()) }
    }
}

/// A process group. Only one thread at a time may call it, because all ranks must make calls in the same order.
pub(crate) struct Group {
    group: NonNull<CGroup>,
    /// Connections stay open until the process exits. A Cell, so that the type is not Sync.
    stays_connected: Cell<bool>,
    is_complete: Cell<bool>,
}

// SAFETY: nothing in it belongs to the creating thread; it is not Sync.
unsafe impl Send for Group {}

impl Group {
    pub fn gloo(
        store: &Arc<Store>,
        path: &str,
        rank: usize,
        world_size: usize,
        address: &str,
        timeout_ms: i64,
    ) -> Result<Self> {
        let (path, address) = (c_text(path)?, c_text(address)?);
        let mut out = null_mut();
        // SAFETY: the store is open, path and address outlive the call, `out` is written on success.
        call(|message| unsafe {
            shim::c10d_gloo_new(
                store.0.as_ptr(),
                path.as_ptr(),
                rank as c_int,
                world_size as c_int,
                address.as_ptr(),
                timeout_ms,
                &mut out,
                message,
            )
        })?;
        Ok(Self::of(out))
    }

    pub fn nccl(
        store: &Arc<Store>,
        path: &str,
        rank: usize,
        world_size: usize,
        device: usize,
        timeout_ms: i64,
    ) -> Result<Self> {
        let path = c_text(path)?;
        let mut out = null_mut();
        // SAFETY: as in `gloo`.
        call(|message| unsafe {
            shim::c10d_nccl_new(
                store.0.as_ptr(),
                path.as_ptr(),
                rank as c_int,
                world_size as c_int,
                device as c_int,
                timeout_ms,
                &mut out,
                message,
            )
        })?;
        Ok(Self::of(out))
    }

    fn of(group: *mut CGroup) -> Self {
        Self { group: owned(group), stays_connected: Cell::new(false), is_complete: Cell::new(false) }
    }

    /// Drop keeps the connections and threads until the process exits.
    pub fn stay_connected(&self) {
        self.stays_connected.set(true);
    }

    /// Drop ends the communicators of GPUs after their work, in place of aborting it: no call failed, and all ranks have
    /// finished.
    pub fn complete(&self) {
        self.is_complete.set(true);
    }

    pub fn guard(&self) -> Guard {
        // SAFETY: the group is alive.
        Guard(owned(unsafe { shim::c10d_group_guard(self.group.as_ptr()) }))
    }

    pub fn is_broken(&self) -> bool {
        // SAFETY: the group is alive.
        unsafe { shim::c10d_group_is_broken(self.group.as_ptr()) != 0 }
    }

    /// Fails if a communication has failed, also if its call returned before.
    pub fn check(&self) -> Result<()> {
        // SAFETY: the group is alive.
        call(|message| unsafe { shim::c10d_group_check(self.group.as_ptr(), message) })
    }

    pub fn all_reduce(&self, tensor: &Tensor, op: ReduceOp) -> Result<WorkHandle> {
        // SAFETY: here and below, the group and the tensors are alive. The shim holds its own references.
        WorkHandle::start(|out, message| unsafe {
            shim::c10d_all_reduce(self.group.as_ptr(), handle(tensor), op as c_int, out, message)
        })
    }

    pub fn broadcast(&self, tensor: &Tensor, root: usize) -> Result<WorkHandle> {
        // SAFETY: as in `all_reduce`.
        WorkHandle::start(|out, message| unsafe {
            shim::c10d_broadcast(self.group.as_ptr(), handle(tensor), root as c_int, out, message)
        })
    }

    pub fn all_gather(&self, output: &Tensor, input: &Tensor, direct: bool) -> Result<WorkHandle> {
        // SAFETY: as in `all_reduce`.
        WorkHandle::start(|out, message| unsafe {
            shim::c10d_all_gather(
                self.group.as_ptr(),
                handle(output),
                handle(input),
                direct.into(),
                out,
                message,
            )
        })
    }

    /// `sent` and `received` have a number of rows for each rank.
    pub fn all_to_all(
        &self,
        output: &Tensor,
        input: &Tensor,
        sent: &[i64],
        received: &[i64],
    ) -> Result<WorkHandle> {
        // SAFETY: as in `all_reduce`; the shim copies the numbers of rows.
        WorkHandle::start(|out, message| unsafe {
            shim::c10d_all_to_all(
                self.group.as_ptr(),
                handle(output),
                handle(input),
                sent.as_ptr(),
                received.as_ptr(),
                out,
                message,
            )
        })
    }

    pub fn reduce_scatter(&self, output: &Tensor, input: &Tensor, op: ReduceOp) -> Result<WorkHandle> {
        // SAFETY: as in `all_reduce`.
        WorkHandle::start(|out, message| unsafe {
            shim::c10d_reduce_scatter(
                self.group.as_ptr(),
                handle(output),
                handle(input),
                op as c_int,
                out,
                message,
            )
        })
    }

    pub fn barrier(&self) -> Result<WorkHandle> {
        // SAFETY: as in `all_reduce`.
        WorkHandle::start(|out, message| unsafe { shim::c10d_barrier(self.group.as_ptr(), out, message) })
    }

    pub fn send(&self, tensor: &Tensor, to: usize, tag: i32) -> Result<WorkHandle> {
        // SAFETY: as in `all_reduce`.
        WorkHandle::start(|out, message| unsafe {
            shim::c10d_send(self.group.as_ptr(), handle(tensor), to as c_int, tag, out, message)
        })
    }

    pub fn receive(&self, tensor: &Tensor, from: usize, tag: i32) -> Result<WorkHandle> {
        // SAFETY: as in `all_reduce`.
        WorkHandle::start(|out, message| unsafe {
            shim::c10d_receive(self.group.as_ptr(), handle(tensor), from as c_int, tag, out, message)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.stays_connected.get() {
            return;
        }
        // SAFETY: freed once.
        unsafe { shim::c10d_group_free(self.group.as_ptr(), self.is_complete.get().into()) }
    }
}

/// A started communication.
pub(crate) struct WorkHandle(NonNull<CWork>);

impl WorkHandle {
    fn start(function: impl FnOnce(*mut *mut CWork, Message) -> c_int) -> Result<Self> {
        let mut out = null_mut();
        call(|message| function(&mut out, message))?;
        Ok(Self(owned(out)))
    }

    pub fn wait(&self) -> Result<()> {
        // SAFETY: the work is alive.
        call(|message| unsafe { shim::c10d_work_wait(self.0.as_ptr(), message) })
    }

    pub fn is_done(&self) -> bool {
        // SAFETY: the work is alive.
        unsafe { shim::c10d_work_is_done(self.0.as_ptr()) != 0 }
    }
}

impl Drop for WorkHandle {
    fn drop(&mut self) {
        // SAFETY: freed once; unfinished work holds its own references to itself and its tensors.
        unsafe { shim::c10d_work_free(self.0.as_ptr()) }
    }
}

/// The gradient reducer. It stays on the thread that created it.
pub(crate) struct ReducerHandle(NonNull<CReducer>);

impl ReducerHandle {
    pub fn new(
        group: &Group,
        parameters: &[Tensor],
        first_bucket_bytes: usize,
        bucket_bytes: usize,
        find_unused: bool,
        mean: bool,
    ) -> Result<Self> {
        let handles: Vec<_> = parameters.iter().map(handle).collect();
        let mut out = null_mut();
        // SAFETY: the group and the parameters outlive the call, and the reducer holds its own references.
        call(|message| unsafe {
            shim::c10d_reducer_new(
                group.group.as_ptr(),
                handles.as_ptr(),
                handles.len(),
                first_bucket_bytes.min(i64::MAX as usize) as i64,
                bucket_bytes.min(i64::MAX as usize) as i64,
                c_int::from(find_unused),
                c_int::from(mean),
                &mut out,
                message,
            )
        })?;
        Ok(Self(owned(out)))
    }

    pub fn prepare(&self, outputs: &[&Tensor]) -> Result<()> {
        let handles: Vec<_> = outputs.iter().map(|tensor| handle(tensor)).collect();
        // SAFETY: the reducer and the outputs outlive the call.
        call(|message| unsafe {
            shim::c10d_reducer_prepare(self.0.as_ptr(), handles.as_ptr(), handles.len(), message)
        })
    }

    pub fn finish(&self) -> Result<()> {
        // SAFETY: the reducer is alive.
        call(|message| unsafe { shim::c10d_reducer_finish(self.0.as_ptr(), message) })
    }

    pub fn timeline(&self) -> Result<Vec<CBucketTimes>> {
        let mut times = vec![CBucketTimes::default(); 64];
        loop {
            let mut n = 0;
            // SAFETY: the reducer is alive, and at most `times.len()` entries are written.
            call(|message| unsafe {
                let (times, capacity) = (times.as_mut_ptr(), times.len());
                shim::c10d_reducer_timeline(self.0.as_ptr(), times, capacity, &mut n, message)
            })?;
            if n <= times.len() {
                times.truncate(n);
                return Ok(times);
            }
            times.resize(n, CBucketTimes::default());
        }
    }
}

impl Drop for ReducerHandle {
    fn drop(&mut self) {
        // SAFETY: freed once.
        unsafe { shim::c10d_reducer_free(self.0.as_ptr()) }
    }
}
