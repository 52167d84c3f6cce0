//! The declarations of csrc/shim.h.

use std::ffi::{c_char, c_int, c_void};

macro_rules! opaque {
    ($($name:ident),*) => {$(
        #[repr(C)]
        pub(super) struct $name {
            _opaque: [u8; 0],
        }
    )*};
}
opaque!(CStore, CGroup, CGuard, CWork, CReducer);

/// `c10d_bucket_times`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CBucketTimes {
    pub bytes: u64,
    pub ready_ns: i64,
    pub reduced_ns: i64,
}

/// `c10d_autocast`.
#[repr(C)]
#[derive(Default)]
pub(super) struct CAutocast {
    pub enabled: [c_int; 2],
    pub kinds: [c_int; 2],
}

pub(super) type CTensor = *mut c_void;
pub(super) type Message = *mut *mut c_char;

unsafe extern "C" {
    pub(super) fn c10d_free(text_or_bytes: *mut c_void);
    pub(super) fn c10d_compiled_version() -> *const c_char;
    pub(super) fn c10d_loaded_version() -> *mut c_char;

    pub(super) fn c10d_store_open(
        host: *const c_char,
        port: u16,
        serve: c_int,
        listener: c_int,
        n_workers: i64,
        timeout_ms: i64,
        out: *mut *mut CStore,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_store_close(store: *mut CStore);
    pub(super) fn c10d_store_port(store: *const CStore) -> u16;
    pub(super) fn c10d_store_set(
        store: *mut CStore,
        key: *const c_char,
        value: *const u8,
        length: usize,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_store_get(
        store: *mut CStore,
        key: *const c_char,
        value: *mut *mut u8,
        length: *mut usize,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_store_compare_set(
        store: *mut CStore,
        key: *const c_char,
        expected: *const u8,
        expected_length: usize,
        desired: *const u8,
        desired_length: usize,
        value: *mut *mut u8,
        length: *mut usize,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_store_add(
        store: *mut CStore,
        key: *const c_char,
        amount: i64,
        sum: *mut i64,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_store_wait(
        store: *mut CStore,
        keys: *const *const c_char,
        n_keys: usize,
        timeout_ms: i64,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_store_check(
        store: *mut CStore,
        keys: *const *const c_char,
        n_keys: usize,
        all_set: *mut c_int,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_store_delete(
        store: *mut CStore,
        key: *const c_char,
        deleted: *mut c_int,
        message: Message,
    ) -> c_int;

    pub(super) fn c10d_load_cuda(
        libtorch_cuda: *const c_char,
        nccl_part: *const u8,
        nccl_part_length: usize,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_use_gpu(device: c_int, message: Message) -> c_int;
    pub(super) fn c10d_wait_for_gpu(device: c_int, message: Message) -> c_int;
    pub(super) fn c10d_autocast_set(on: c_int, before: *mut CAutocast, message: Message) -> c_int;
    pub(super) fn c10d_autocast_restore(before: *const CAutocast);
    pub(super) fn c10d_forbid_tf32();

    pub(super) fn c10d_gloo_new(
        store: *mut CStore,
        path: *const c_char,
        rank: c_int,
        world_size: c_int,
        address: *const c_char,
        timeout_ms: i64,
        out: *mut *mut CGroup,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_nccl_new(
        store: *mut CStore,
        path: *const c_char,
        rank: c_int,
        world_size: c_int,
        device: c_int,
        timeout_ms: i64,
        out: *mut *mut CGroup,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_group_free(group: *mut CGroup, is_complete: c_int);
    pub(super) fn c10d_group_check(group: *mut CGroup, message: Message) -> c_int;
    pub(super) fn c10d_group_guard(group: *mut CGroup) -> *mut CGuard;
    pub(super) fn c10d_guard_fail(guard: *mut CGuard, message: *const c_char);
    pub(super) fn c10d_guard_free(guard: *mut CGuard);
    pub(super) fn c10d_group_is_broken(group: *mut CGroup) -> c_int;

    pub(super) fn c10d_all_reduce(
        group: *mut CGroup,
        tensor: CTensor,
        reduction: c_int,
        out: *mut *mut CWork,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_broadcast(
        group: *mut CGroup,
        tensor: CTensor,
        root: c_int,
        out: *mut *mut CWork,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_all_gather(
        group: *mut CGroup,
        output: CTensor,
        input: CTensor,
        direct: c_int,
        out: *mut *mut CWork,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_all_to_all(
        group: *mut CGroup,
        output: CTensor,
        input: CTensor,
        sent: *const i64,
        received: *const i64,
        out: *mut *mut CWork,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_reduce_scatter(
        group: *mut CGroup,
        output: CTensor,
        input: CTensor,
        reduction: c_int,
        out: *mut *mut CWork,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_barrier(group: *mut CGroup, out: *mut *mut CWork, message: Message) -> c_int;
    pub(super) fn c10d_send(
        group: *mut CGroup,
        tensor: CTensor,
        to: c_int,
        tag: c_int,
        out: *mut *mut CWork,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_receive(
        group: *mut CGroup,
        tensor: CTensor,
        from: c_int,
        tag: c_int,
        out: *mut *mut CWork,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_work_wait(work: *mut CWork, message: Message) -> c_int;
    pub(super) fn c10d_work_is_done(work: *mut CWork) -> c_int;
    pub(super) fn c10d_work_free(work: *mut CWork);

    pub(super) fn c10d_reducer_new(
        group: *mut CGroup,
        parameters: *const CTensor,
        n_parameters: usize,
        first_bucket_bytes: i64,
        bucket_bytes: i64,
        find_unused: c_int,
        mean: c_int,
        out: *mut *mut CReducer,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_reducer_prepare(
        reducer: *mut CReducer,
        outputs: *const CTensor,
        n_outputs: usize,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_reducer_finish(reducer: *mut CReducer, message: Message) -> c_int;
    pub(super) fn c10d_reducer_timeline(
        reducer: *mut CReducer,
        times: *mut CBucketTimes,
        capacity: usize,
        n: *mut usize,
        message: Message,
    ) -> c_int;
    pub(super) fn c10d_reducer_free(reducer: *mut CReducer);
}
