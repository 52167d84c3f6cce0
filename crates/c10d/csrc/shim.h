// The C face of PyTorch's distributed engine: everything src/ffi.rs calls.
//
// A tensor is an at::Tensor*, which is what a tch tensor holds, so nothing is copied on the way in.
// Each call that can fail returns a status; where it is not C10D_OK, *message is text for
// c10d_free. No exception leaves these functions. None may be given a null handle.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum c10d_status {
  C10D_OK = 0,
  C10D_INVALID = 1,   // the arguments: nothing was sent, the group lives on
  C10D_STORE = 2,     // the store did not answer, or not in time
  C10D_FAILED = 3,    // the communication: the group is of no more use
  C10D_TIMED_OUT = 4  // the same, because time ran out
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

// "2.11.0": the PyTorch whose headers this was compiled with.
const char* c10d_compiled_version(void);
// The same of the libtorch that the process has loaded; null where it does not say. For c10d_free.
char* c10d_loaded_version(void);

// Store. n_workers < 0: any number of clients. `listener`: the socket that a server is to take over, bound to `port`; < 0
// where a store of this process serves that port already.
int c10d_store_open(const char* host, uint16_t port, int serve, int listener, int64_t n_workers, int64_t timeout_ms,
                    c10d_store** out, char** message);
void c10d_store_close(c10d_store* store);
uint16_t c10d_store_port(const c10d_store* store);
int c10d_store_set(c10d_store* store, const char* key, const uint8_t* value, size_t length, char** message);
int c10d_store_get(c10d_store* store, const char* key, uint8_t** value, size_t* length, char** message);
// Sets `desired` where the value is `expected`, and where nothing is set if `expected` is empty; the value after.
int c10d_store_compare_set(c10d_store* store, const char* key, const uint8_t* expected, size_t expected_length,
                           const uint8_t* desired, size_t desired_length, uint8_t** value, size_t* length,
                           char** message);
int c10d_store_add(c10d_store* store, const char* key, int64_t amount, int64_t* sum, char** message);
int c10d_store_wait(c10d_store* store, const char* const* keys, size_t n_keys, int64_t timeout_ms, char** message);
int c10d_store_check(c10d_store* store, const char* const* keys, size_t n_keys, int* all_set, char** message);
int c10d_store_delete(c10d_store* store, const char* key, int* deleted, char** message);

// CUDA: both libraries stay loaded. `nccl_part` is the library built from nccl.cc.
int c10d_load_cuda(const char* libtorch_cuda, const uint8_t* nccl_part, size_t nccl_part_length, char** message);

// Group. `path` stands before its keys in the store: "default_pg/0/" for the default group of init_process_group.
// `address`: this rank's own, where Gloo listens unless GLOO_SOCKET_IFNAME names interfaces.
int c10d_gloo_new(c10d_store* store, const char* path, int rank, int world_size, const char* address,
                  int64_t timeout_ms, c10d_group** out, char** message);
int c10d_nccl_new(c10d_store* store, const char* path, int rank, int world_size, int device, int64_t timeout_ms,
                  c10d_group** out, char** message);
void c10d_group_free(c10d_group* group);
// For another thread: what fails the group's pending and later calls with one message.
c10d_guard* c10d_group_guard(c10d_group* group);
void c10d_guard_fail(c10d_guard* guard, const char* message);
void c10d_guard_free(c10d_guard* guard);
// Whether a communication of the group has failed, by itself or by its guard.
int c10d_group_is_broken(c10d_group* group);

// Collectives: each starts and returns at once. Tensors must be contiguous; they stay alive until the work is freed.
int c10d_all_reduce(c10d_group* group, c10d_tensor tensor, int reduction, c10d_work** out, char** message);
int c10d_broadcast(c10d_group* group, c10d_tensor tensor, int root, c10d_work** out, char** message);
int c10d_all_gather(c10d_group* group, c10d_tensor output, c10d_tensor input, c10d_work** out, char** message);
int c10d_reduce_scatter(c10d_group* group, c10d_tensor output, c10d_tensor input, int reduction, c10d_work** out,
                        char** message);
int c10d_barrier(c10d_group* group, c10d_work** out, char** message);
int c10d_send(c10d_group* group, c10d_tensor tensor, int to, int tag, c10d_work** out, char** message);
int c10d_receive(c10d_group* group, c10d_tensor tensor, int from, int tag, c10d_work** out, char** message);
int c10d_work_wait(c10d_work* work, char** message);
int c10d_work_is_done(c10d_work* work);
void c10d_work_free(c10d_work* work);

// Reducer: the engine of DistributedDataParallel. The ranks' parameters are taken to be alike.
typedef struct c10d_bucket_times {
  uint64_t bytes;
  int64_t ready_ns;    // its last gradient was computed, and its reduction began
  int64_t reduced_ns;  // its reduction ended; -1 on a device whose work the processor does not see
} c10d_bucket_times;

int c10d_reducer_new(c10d_group* group, const c10d_tensor* parameters, size_t n_parameters,
                     int64_t first_bucket_bytes, int64_t bucket_bytes, int find_unused, int mean,
                     c10d_reducer** out, char** message);
int c10d_reducer_prepare(c10d_reducer* reducer, const c10d_tensor* outputs, size_t n_outputs, char** message);
// After backward: fails where not all buckets have been reduced.
int c10d_reducer_finish(c10d_reducer* reducer, char** message);
// The buckets reduced since the last prepare, times counted from it; at most `capacity`, and how many there are.
size_t c10d_reducer_timeline(c10d_reducer* reducer, c10d_bucket_times* times, size_t capacity);
void c10d_reducer_free(c10d_reducer* reducer);

#ifdef __cplusplus
}
#endif
