// The C interface of PyTorch's distributed engine: all functions that src/ffi.rs calls.
//
// A tensor is an at::Tensor*, the type inside a tch tensor, so nothing is copied. A call that can fail returns a
// status. If the status is not C10D_OK, *message is a text to free with c10d_free. No function throws. Handles must
// not be null.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum c10d_status {
  C10D_OK = 0,
  C10D_INVALID = 1,   // invalid arguments: nothing was sent, the group remains usable
  C10D_STORE = 2,     // the store did not answer, or too late
  C10D_FAILED = 3,    // the communication failed: the group is unusable
  C10D_TIMED_OUT = 4  // as above, at the time limit
};

enum c10d_reduction {
  C10D_SUM = 0,
  C10D_MEAN = 1,
  C10D_PRODUCT = 2,
  C10D_MIN = 3,
  C10D_MAX = 4,
  C10D_BIT_AND = 5,
  C10D_BIT_OR = 6,
  C10D_BIT_XOR = 7
};

typedef void* c10d_tensor;
typedef struct c10d_store c10d_store;
typedef struct c10d_group c10d_group;
typedef struct c10d_guard c10d_guard;
typedef struct c10d_work c10d_work;
typedef struct c10d_reducer c10d_reducer;

void c10d_free(void* text_or_bytes);

// "2.11.0": the version of PyTorch's headers at compile time.
const char* c10d_compiled_version(void);
// The version of the loaded libtorch; null if it is unknown. Free with c10d_free.
char* c10d_loaded_version(void);

// Store. n_workers < 0: any number of clients. `listener`: the listening socket that the server takes over, bound to
// `port`; < 0 if a store of this process already serves that port.
int c10d_store_open(const char* host, uint16_t port, int serve, int listener, int64_t n_workers, int64_t timeout_ms,
                    c10d_store** out, char** message);
void c10d_store_close(c10d_store* store);
uint16_t c10d_store_port(const c10d_store* store);
int c10d_store_set(c10d_store* store, const char* key, const uint8_t* value, size_t length, char** message);
int c10d_store_get(c10d_store* store, const char* key, uint8_t** value, size_t* length, char** message);
// Sets `desired` if the value is `expected`; an empty `expected` means that the key is not set. Returns the resulting
// value.
int c10d_store_compare_set(c10d_store* store, const char* key, const uint8_t* expected, size_t expected_length,
                           const uint8_t* desired, size_t desired_length, uint8_t** value, size_t* length,
                           char** message);
int c10d_store_add(c10d_store* store, const char* key, int64_t amount, int64_t* sum, char** message);
int c10d_store_wait(c10d_store* store, const char* const* keys, size_t n_keys, int64_t timeout_ms, char** message);
int c10d_store_check(c10d_store* store, const char* const* keys, size_t n_keys, int* all_set, char** message);
int c10d_store_delete(c10d_store* store, const char* key, int* deleted, char** message);

// CUDA. Both libraries stay loaded. `nccl_part` is the library built from nccl.cc.
int c10d_load_cuda(const char* libtorch_cuda, const uint8_t* nccl_part, size_t nccl_part_length, char** message);
// Makes a GPU the current one of the calling thread.
int c10d_use_gpu(int device, char** message);
// Waits until a GPU has computed everything that it was given.
int c10d_wait_for_gpu(int device, char** message);
// Autocast of a thread on the CPU and on GPUs: whether it is on, and its kind.
typedef struct c10d_autocast {
  int enabled[2];
  int kinds[2];
} c10d_autocast;
// Calls of this thread for which PyTorch regards it as safe compute in bfloat16, on every device; without `on`, all
// calls compute in the kinds of their arguments. `before` gets the state for c10d_autocast_restore.
int c10d_autocast_set(int on, c10d_autocast* before, char** message);
void c10d_autocast_restore(const c10d_autocast* before);
void c10d_forbid_tf32(void);

// Group. `path` is the prefix of its keys in the store: "default_pg/0/" for the default group of init_process_group.
// `address`: this rank's address, on which Gloo listens unless GLOO_SOCKET_IFNAME names interfaces.
int c10d_gloo_new(c10d_store* store, const char* path, int rank, int world_size, const char* address,
                  int64_t timeout_ms, c10d_group** out, char** message);
int c10d_nccl_new(c10d_store* store, const char* path, int rank, int world_size, int device, int64_t timeout_ms,
                  c10d_group** out, char** message);
// `is_complete`: no call failed, and all ranks have finished. Otherwise, work on GPUs is aborted.
void c10d_group_free(c10d_group* group, int is_complete);
// Fails if a communication of the group has failed, also if its call returned before.
int c10d_group_check(c10d_group* group, char** message);
// A handle with which another thread makes the group's pending and later calls fail with one message.
c10d_guard* c10d_group_guard(c10d_group* group);
void c10d_guard_fail(c10d_guard* guard, const char* message);
void c10d_guard_free(c10d_guard* guard);
// Whether a communication of the group has failed or its guard has ended it.
int c10d_group_is_broken(c10d_group* group);

// Collectives: each starts and returns immediately. Tensors must be contiguous; they stay alive until the work is
// freed.
int c10d_all_reduce(c10d_group* group, c10d_tensor tensor, int reduction, c10d_work** out, char** message);
int c10d_broadcast(c10d_group* group, c10d_tensor tensor, int root, c10d_work** out, char** message);
// `direct`: with Gloo, each rank sends its tensor to all others at once, instead of in a ring.
int c10d_all_gather(c10d_group* group, c10d_tensor output, c10d_tensor input, int direct, c10d_work** out,
                    char** message);
// Rows, the first dimension, go to the ranks in order: `sent[r]` of them to rank r, and `received[r]` come from rank r.
int c10d_all_to_all(c10d_group* group, c10d_tensor output, c10d_tensor input, const int64_t* sent,
                    const int64_t* received, c10d_work** out, char** message);
int c10d_reduce_scatter(c10d_group* group, c10d_tensor output, c10d_tensor input, int reduction, c10d_work** out,
                        char** message);
int c10d_barrier(c10d_group* group, c10d_work** out, char** message);
int c10d_send(c10d_group* group, c10d_tensor tensor, int to, int tag, c10d_work** out, char** message);
int c10d_receive(c10d_group* group, c10d_tensor tensor, int from, int tag, c10d_work** out, char** message);
int c10d_work_wait(c10d_work* work, char** message);
int c10d_work_is_done(c10d_work* work);
void c10d_work_free(c10d_work* work);

// Reducer: the engine of DistributedDataParallel. All ranks must pass parameters with the same shapes in the same
// order.
typedef struct c10d_bucket_times {
  uint64_t bytes;
  int64_t ready_ns;    // the last gradient was computed and the reduction started
  int64_t reduced_ns;  // the reduction ended; -1 on a device that computes asynchronously
} c10d_bucket_times;

int c10d_reducer_new(c10d_group* group, const c10d_tensor* parameters, size_t n_parameters,
                     int64_t first_bucket_bytes, int64_t bucket_bytes, int find_unused, int mean,
                     c10d_reducer** out, char** message);
int c10d_reducer_prepare(c10d_reducer* reducer, const c10d_tensor* outputs, size_t n_outputs, char** message);
// After backward: fails if a bucket was not reduced.
int c10d_reducer_finish(c10d_reducer* reducer, char** message);
// Buckets reduced since the last prepare, with times relative to it. Writes at most `capacity` of them, and their
// number into `n`.
int c10d_reducer_timeline(c10d_reducer* reducer, c10d_bucket_times* times, size_t capacity, size_t* n, char** message);
void c10d_reducer_free(c10d_reducer* reducer);

#ifdef __cplusplus
}
#endif
