// Process groups, their collectives, and the guard that ends pending work.

#include "group.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <future>
#include <iterator>
#include <sstream>
#include <thread>

#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

using shim::Endable;
using shim::Failure;
using shim::Guard;
using shim::guarded;

namespace shim {

namespace {

std::string text_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown exception";
  }
}

// Wraps one of Gloo's collectives.
class Collective : public Endable {
 public:
  Collective(c10::intrusive_ptr<c10d::Work> inner, std::shared_ptr<Guard> guard)
      : Endable(-1, inner->retrieveOpType()), inner_(std::move(inner)), guard_(std::move(guard)) {}

  // Separate from the constructor, because both the guard and the callback hold the constructed object.
  void start(const c10::intrusive_ptr<Collective>& self) {
    auto inner_future = inner_->getFuture();
    future_ = c10::make_intrusive<c10::ivalue::Future>(inner_future->elementType());
    ticket_ = guard_->enter(self);
    inner_future->addCallback([self](c10::ivalue::Future& done) { self->complete(done); });
  }

  void end(std::exception_ptr failure) override {
    if (done_.exchange(true)) return;
    future_->setError(failure);
    finish(std::move(failure));
  }

  bool wait(std::chrono::milliseconds) override {
    future_->wait();
    if (future_->hasError()) std::rethrow_exception(future_->exception_ptr());
    return true;
  }

  bool isCompleted() override { return future_->completed(); }
  std::vector<at::Tensor> result() override { return inner_->result(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  uint64_t getSequencenumber() const override { return inner_->getSequencenumber(); }

 private:
  void complete(c10::ivalue::Future& inner_future) {
    guard_->leave(ticket_);
    if (inner_future.hasError()) {
      guard_->note_broken();
      // A runtime error, because its text has no stack trace of one of Gloo's threads.
      end(std::make_exception_ptr(std::runtime_error(text_of(inner_future.exception_ptr()))));
      return;
    }
    if (done_.exchange(true)) return;
    future_->markCompleted(inner_future.value());
    finish();
  }

  c10::intrusive_ptr<c10d::Work> inner_;
  std::shared_ptr<Guard> guard_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  uint64_t ticket_ = 0;
  std::atomic<bool> done_{false};
};

// Wraps one of Gloo's sends or receives, which can be aborted.
class Pair : public Endable {
 public:
  Pair(c10::intrusive_ptr<c10d::Work> inner, std::shared_ptr<Guard> guard)
      : Endable(-1, inner->retrieveOpType()), inner_(std::move(inner)), guard_(std::move(guard)) {}

  void start(const c10::intrusive_ptr<Pair>& self) { ticket_ = guard_->enter(self); }

  void end(std::exception_ptr) override { inner_->abort(); }

  bool wait(std::chrono::milliseconds timeout) override {
    guard_->check();
    bool arrived = false;
    try {
      arrived = inner_->wait(timeout);
    } catch (...) {
      guard_->leave(ticket_);
      guard_->check();
      guard_->note_broken();
      throw;
    }
    guard_->leave(ticket_);
    if (!arrived) {
      guard_->check();
      throw Failure(C10D_FAILED, "the send or receive was aborted");
    }
    return true;
  }

  bool isCompleted() override { return inner_->isCompleted(); }

 private:
  c10::intrusive_ptr<c10d::Work> inner_;
  std::shared_ptr<Guard> guard_;
  uint64_t ticket_ = 0;
};

}  // namespace

std::exception_ptr Guard::failure_locked() const {
  return std::make_exception_ptr(Failure(C10D_FAILED, message_));
}

void Guard::fail(const std::string& message) {
  std::vector<c10::intrusive_ptr<Endable>> pending;
  std::exception_ptr failure;
  std::function<void()> action;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failed_) return;
    failed_ = broken_ = true;
    message_ = message;
    failure = failure_locked();
    for (auto& [ticket, work] : pending_) pending.push_back(std::move(work));
    pending_.clear();
    action = std::move(action_);
  }
  // Without the lock: a thread that waits for the work may call this guard immediately.
  for (auto& work : pending) work->end(failure);
  if (action) action();
}

void Guard::check() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failed_) throw Failure(C10D_FAILED, message_);
}

bool Guard::is_broken() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return broken_;
}

void Guard::note_broken() {
  std::lock_guard<std::mutex> lock(mutex_);
  broken_ = true;
}

void Guard::on_failure(std::function<void()> action) {
  std::lock_guard<std::mutex> lock(mutex_);
  action_ = std::move(action);
}

uint64_t Guard::enter(const c10::intrusive_ptr<Endable>& work) {
  std::exception_ptr failure;
  uint64_t ticket = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ticket = next_ticket_++;
    if (failed_) {
      failure = failure_locked();
    } else {
      pending_.emplace(ticket, work);
    }
  }
  if (failure) work->end(failure);
  return ticket;
}

void Guard::leave(uint64_t ticket) {
  // Freed without the lock: freeing a work may call this guard.
  c10::intrusive_ptr<Endable> done;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto at = pending_.find(ticket);
  if (at == pending_.end()) return;
  done = std::move(at->second);
  pending_.erase(at);
}

bool Guard::is_idle() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return pending_.empty();
}

void Guard::forget_action() {
  std::function<void()> action;
  std::lock_guard<std::mutex> lock(mutex_);
  action.swap(action_);
}

c10::intrusive_ptr<c10d::Work> Guard::watch_collective(c10::intrusive_ptr<c10d::Work> inner) {
  auto work = c10::make_intrusive<Collective>(std::move(inner), shared_from_this());
  work->start(work);
  return work;
}

c10::intrusive_ptr<c10d::Work> Guard::watch_pair(c10::intrusive_ptr<c10d::Work> inner) {
  auto work = c10::make_intrusive<Pair>(std::move(inner), shared_from_this());
  work->start(work);
  return work;
}

namespace {

// PyTorch's flight recorder is global and records a group's first collective without a lock. Groups in several
// threads therefore start collectives one at a time. Starting a collective only queues it.
std::mutex starting;

// Gloo, with a guard around every call of this crate or the Reducer.
class GuardedGloo : public c10d::ProcessGroupGloo {
 public:
  GuardedGloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
              c10::intrusive_ptr<Options> options, std::shared_ptr<Guard> guard)
      : ProcessGroupGloo(store, rank, size, std::move(options)), guard_(std::move(guard)) {}

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    return guard_->watch_collective(begin([&] { return ProcessGroupGloo::allreduce(tensors, options); }));
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return guard_->watch_collective(begin([&] { return ProcessGroupGloo::broadcast(tensors, options); }));
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                           std::vector<at::Tensor>& inputs,
                                           const c10d::AllgatherOptions& options) override {
    return guard_->watch_collective(begin([&] { return ProcessGroupGloo::allgather(outputs, inputs, options); }));
  }
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_parts,
                                               std::vector<int64_t>& input_parts,
                                               const c10d::AllToAllOptions& options) override {
    return guard_->watch_collective(
        begin([&] { return ProcessGroupGloo::alltoall_base(output, input, output_parts, input_parts, options); }));
  }
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override {
    return guard_->watch_collective(begin([&] { return ProcessGroupGloo::barrier(options); }));
  }
  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int to, int tag) override {
    return guard_->watch_pair(begin([&] { return ProcessGroupGloo::send(tensors, to, tag); }));
  }
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors, int from, int tag) override {
    return guard_->watch_pair(begin([&] { return ProcessGroupGloo::recv(tensors, from, tag); }));
  }
  // Gloo itself does not support it.
  c10d::ErrorType getError() override {
    return guard_->is_broken() ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::SUCCESS;
  }

 private:
  template <typename Start>
  c10::intrusive_ptr<c10d::Work> begin(Start&& start) {
    guard_->check();
    std::lock_guard<std::mutex> lock(starting);
    try {
      return start();
    } catch (const c10::Error&) {
      throw;  // PyTorch rejected the arguments; nothing was sent.
    } catch (const std::exception& error) {
      // A send or receive fails immediately if its connection is closed.
      guard_->note_broken();
      throw Failure(is_timeout(error.what()) ? C10D_TIMED_OUT : C10D_FAILED, error.what());
    }
  }

  std::shared_ptr<Guard> guard_;
};

// Uses the interfaces in GLOO_SOCKET_IFNAME, as init_process_group does; otherwise the interface of this address.
// Gloo's default is the address of the host name, which may be in another network.
void choose_devices(c10d::ProcessGroupGloo::Options& options, const char* address) {
  const bool lazy = c10d::getDefaultGlooLazyInit();
  if (const char* names = std::getenv("GLOO_SOCKET_IFNAME")) {
    std::istringstream list(names);
    for (std::string name; std::getline(list, name, ',');) {
      if (!name.empty()) options.devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(name, lazy));
    }
  }
  if (options.devices.empty()) {
    options.devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address, lazy));
  }
  options.threads = static_cast<int>(options.devices.size()) * 2;
}

// The same key prefixes as in torch.distributed.
c10::intrusive_ptr<c10d::Store> prefixed(const c10d_store* store, const char* path, const char* device) {
  auto group = c10::make_intrusive<c10d::PrefixStore>(path, store->tcp);
  return c10::make_intrusive<c10d::PrefixStore>(std::string(device) + "/", group);
}

c10d_group* assemble(const c10d_store* store, int rank, int size, c10::DeviceType device,
                     c10d::ProcessGroup::BackendType type, const c10::intrusive_ptr<c10d::Backend>& backend,
                     std::shared_ptr<Guard> guard) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store->tcp, rank, size);
  // setBackend gives the backend the group's device, also if the group has none.
  const auto bound = backend->getBoundDeviceId();
  if (bound) group->setBoundDeviceId(bound);
  group->setBackend(device, type, backend);
  group->setDefaultBackend(type);
  return new c10d_group{std::move(group), backend, std::move(guard), device};
}

// Makes a GPU the current one of this thread. A thread begins on GPU 0. PyTorch's calls that wait for a GPU or record
// its events return to the current one, and so would create a context of each rank on GPU 0.
void use_gpu(int device) {
  const c10::impl::VirtualGuardImpl gpu(c10::DeviceType::CUDA);
  gpu.setDevice(c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device)));
}

// Ends communicators by `end` on another thread, because this may wait for the kernels of a rank that has failed.
// Returns whether it ended them in time. Otherwise, that thread may still use the backend.
bool end_in_time(c10d::Backend& backend, void (c10d::Backend::*end)()) {
  constexpr std::chrono::seconds limit(5);
  auto promise = std::make_shared<std::promise<bool>>();
  auto ended = promise->get_future();
  std::thread([promise, &backend, end] {
    bool is_ended = true;
    try {
      if (const auto bound = backend.getBoundDeviceId()) use_gpu(bound->index());
      (backend.*end)();
    } catch (...) {
      // A communicator, or the GPU, had failed.
      is_ended = false;
    }
    promise->set_value(is_ended);
  }).detach();
  return ended.wait_for(limit) == std::future_status::ready && ended.get();
}

// Devices on which models compute.
constexpr c10::DeviceType computing[] = {c10::DeviceType::CPU, c10::DeviceType::CUDA};

using NcclNew = c10d::Backend* (*)(const c10::intrusive_ptr<c10d::Store>&, int, int, int, int64_t);
NcclNew nccl_new = nullptr;

}  // namespace
}  // namespace shim

// A started collective.
struct c10d_work {
  c10::intrusive_ptr<c10d::Work> work;  // null if there was nothing to send
  std::shared_ptr<Guard> guard;
  std::function<void()> afterwards;
};

namespace {

at::Tensor& tensor_of(c10d_tensor tensor) { return *static_cast<at::Tensor*>(tensor); }

// Tensors that are only copied are passed as bytes, so that every element kind is supported.
at::Tensor as_bytes(const at::Tensor& tensor) { return tensor.view(-1).view(at::kByte); }

c10d::ReduceOp reduce_op(int reduction) {
  switch (reduction) {
    case C10D_SUM: return c10d::ReduceOp::SUM;
    case C10D_MEAN: return c10d::ReduceOp::AVG;
    case C10D_PRODUCT: return c10d::ReduceOp::PRODUCT;
    case C10D_MIN: return c10d::ReduceOp::MIN;
    case C10D_MAX: return c10d::ReduceOp::MAX;
    case C10D_BIT_AND: return c10d::ReduceOp::BAND;
    case C10D_BIT_OR: return c10d::ReduceOp::BOR;
    case C10D_BIT_XOR: return c10d::ReduceOp::BXOR;
    default: TORCH_CHECK(false, "unknown reduction ", reduction);
  }
}

// Starts a collective; `begin` creates its work. If no rank has an element, nothing is sent.
template <typename Begin>
int start(c10d_group* group, bool empty, c10d_work** out, char** message, Begin&& begin) {
  return guarded(message, C10D_INVALID, [&] {
    group->guard->check();
    auto work = std::make_unique<c10d_work>();
    work->guard = group->guard;
    if (!empty) begin(*work);
    *out = work.release();
  });
}

bool is_gloo(const c10d_group* group) { return group->device == c10::DeviceType::CPU; }

// Gloo has no mean: the sum is divided after the reduction.
c10d::ReduceOp prepare_reduction(const c10d_group* group, int reduction, const at::Tensor& result, c10d_work& work) {
  if (reduction != C10D_MEAN || !is_gloo(group)) return reduce_op(reduction);
  work.afterwards = [result, size = group->backend->getSize()] {
    at::NoGradGuard no_grad;
    result.div_(size);
  };
  return c10d::ReduceOp::SUM;
}

}  // namespace

extern "C" {

void c10d_free(void* text_or_bytes) { std::free(text_or_bytes); }

const char* c10d_compiled_version(void) { return TORCH_VERSION; }

char* c10d_loaded_version(void) {
  // The build settings contain "TORCH_VERSION=2.11.0, ".
  const std::string settings = at::show_config();
  const std::string name = "TORCH_VERSION=";
  const auto at = settings.find(name);
  if (at == std::string::npos) return nullptr;
  const auto begin = at + name.size();
  return shim::copy_text(settings.substr(begin, settings.find_first_of(", \n", begin) - begin));
}

int c10d_gloo_new(c10d_store* store, const char* path, int rank, int world_size, const char* address,
                  int64_t timeout_ms, c10d_group** out, char** message) {
  return guarded(message, C10D_FAILED, [&] {
    auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::milliseconds(timeout_ms));
    shim::choose_devices(*options, address);
    auto guard = std::make_shared<Guard>();
    auto backend = c10::make_intrusive<shim::GuardedGloo>(shim::prefixed(store, path, "cpu"), rank, world_size,
                                                          options, guard);
    *out = shim::assemble(store, rank, world_size, c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO,
                          backend, guard);
  });
}

int c10d_load_cuda(const char* libtorch_cuda, const uint8_t* nccl_part, size_t nccl_part_length, char** message) {
  return guarded(message, C10D_INVALID, [&] {
    if (shim::nccl_new != nullptr) return;
    TORCH_CHECK(dlopen(libtorch_cuda, RTLD_NOW | RTLD_GLOBAL) != nullptr, dlerror());
    // The library is embedded in the program, but the loader requires a file. A memory file leaves nothing behind.
    const int file = memfd_create("c10d-nccl", MFD_CLOEXEC);
    TORCH_CHECK(file >= 0, "cannot create a memory file for the NCCL part: ", std::strerror(errno));
    for (size_t written = 0; written < nccl_part_length;) {
      const ssize_t n = write(file, nccl_part + written, nccl_part_length - written);
      TORCH_CHECK(n > 0, "cannot write the memory file of the NCCL part: ", std::strerror(errno));
      written += static_cast<size_t>(n);
    }
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    void* part = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    close(file);
    TORCH_CHECK(part != nullptr, dlerror());
    void* made = dlsym(part, "c10d_nccl_backend");
    TORCH_CHECK(made != nullptr, dlerror());
    shim::nccl_new = reinterpret_cast<shim::NcclNew>(made);
  });
}

int c10d_use_gpu(int device, char** message) {
  return guarded(message, C10D_FAILED, [&] { shim::use_gpu(device); });
}

int c10d_wait_for_gpu(int device, char** message) {
  return guarded(message, C10D_FAILED, [&] {
    const c10::impl::VirtualGuardImpl gpu(c10::DeviceType::CUDA);
    gpu.synchronizeDevice(static_cast<c10::DeviceIndex>(device));
  });
}

int c10d_autocast_set(int on, c10d_autocast* before, char** message) {
  return guarded(message, C10D_FAILED, [&] {
    // What can fail comes before what changes the state.
    for (size_t i = 0; i < std::size(shim::computing); ++i) {
      before->enabled[i] = at::autocast::is_autocast_enabled(shim::computing[i]);
      before->kinds[i] = static_cast<int>(at::autocast::get_autocast_dtype(shim::computing[i]));
    }
    for (const auto device : shim::computing) {
      // The default of a GPU is float16, whose small gradients are 0 without a scale of the loss.
      if (on) at::autocast::set_autocast_dtype(device, at::kBFloat16);
      at::autocast::set_autocast_enabled(device, on != 0);
    }
    at::autocast::increment_nesting();
  });
}

void c10d_autocast_restore(const c10d_autocast* before) {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  for (size_t i = 0; i < std::size(shim::computing); ++i) {
    at::autocast::set_autocast_dtype(shim::computing[i], static_cast<at::ScalarType>(before->kinds[i]));
    at::autocast::set_autocast_enabled(shim::computing[i], before->enabled[i] != 0);
  }
}

void c10d_forbid_tf32(void) {
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
}

int c10d_nccl_new(c10d_store* store, const char* path, int rank, int world_size, int device, int64_t timeout_ms,
                  c10d_group** out, char** message) {
  return guarded(message, C10D_FAILED, [&] {
    TORCH_CHECK(shim::nccl_new != nullptr, "CUDA has not been loaded");
    // ProcessGroup::new has set it for the computing thread; this thread is another one.
    shim::use_gpu(device);
    auto guard = std::make_shared<Guard>();
    auto backend = c10::intrusive_ptr<c10d::Backend>::reclaim(
        shim::nccl_new(shim::prefixed(store, path, "cuda"), rank, world_size, device, timeout_ms));
    // Ends kernels that wait for a dead peer, and with them the stream on which this process waits.
    guard->on_failure([backend] { backend->abort(); });
    *out = shim::assemble(store, rank, world_size, c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL,
                          backend, guard);
  });
}

void c10d_group_free(c10d_group* group, int is_complete) {
  // The guard would keep the backend alive after this call, because the watching thread may free the guard last.
  group->guard->forget_action();
  bool is_ended = !group->guard->is_broken() && group->guard->is_idle();
  if (is_ended && !is_gloo(group)) {
    const auto end = is_complete ? &c10d::Backend::shutdown : &c10d::Backend::abort;
    try {
      is_ended = shim::end_in_time(*group->backend, end) && is_complete;
    } catch (...) {
      is_ended = false;  // no thread
    }
  }
  if (!is_ended) {
    // The destructor would wait for work that never ends, or abort it once more, and throw if this fails. The process
    // is about to exit, so the group is leaked.
    group->group.release();
    group->backend.release();
  }
  delete group;
}

int c10d_group_check(c10d_group* group, char** message) {
  return guarded(message, C10D_FAILED, [&] {
    group->guard->check();
    const auto error = group->backend->getError();
    if (error == c10d::ErrorType::SUCCESS) return;
    group->guard->note_broken();
    const bool is_late = error == c10d::ErrorType::TIMEOUT;
    throw Failure(is_late ? C10D_TIMED_OUT : C10D_FAILED,
                  is_late ? "a communication reached its time limit" : "an earlier communication failed");
  });
}

c10d_guard* c10d_group_guard(c10d_group* group) { return new c10d_guard{group->guard}; }

void c10d_guard_fail(c10d_guard* guard, const char* message) {
  try {
    guard->guard->fail(message);
  } catch (...) {
    // Only an allocation can fail here; the pending works then end at their time limit.
  }
}

void c10d_guard_free(c10d_guard* guard) { delete guard; }

int c10d_group_is_broken(c10d_group* group) { return group->guard->is_broken() ? 1 : 0; }

int c10d_all_reduce(c10d_group* group, c10d_tensor tensor, int reduction, c10d_work** out, char** message) {
  auto& values = tensor_of(tensor);
  return start(group, values.numel() == 0, out, message, [&](c10d_work& work) {
    c10d::AllreduceOptions options;
    options.reduceOp = prepare_reduction(group, reduction, values, work);
    std::vector<at::Tensor> tensors{values.is_complex() ? at::view_as_real(values) : values};
    work.work = group->backend->allreduce(tensors, options);
  });
}

int c10d_broadcast(c10d_group* group, c10d_tensor tensor, int root, c10d_work** out, char** message) {
  auto& values = tensor_of(tensor);
  return start(group, values.numel() == 0, out, message, [&](c10d_work& work) {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    std::vector<at::Tensor> tensors{as_bytes(values)};
    work.work = group->backend->broadcast(tensors, options);
  });
}

int c10d_all_gather(c10d_group* group, c10d_tensor output, c10d_tensor input, int direct, c10d_work** out,
                    char** message) {
  auto& values = tensor_of(input);
  return start(group, values.numel() == 0, out, message, [&](c10d_work& work) {
    const auto n_ranks = group->backend->getSize();
    auto bytes = as_bytes(values);
    auto all = as_bytes(tensor_of(output));
    if (direct && is_gloo(group)) {
      auto copies = bytes.repeat({n_ranks});
      std::vector<int64_t> equal_parts;
      work.work = group->backend->alltoall_base(all, copies, equal_parts, equal_parts, c10d::AllToAllOptions());
      return;
    }
    if (!is_gloo(group)) {
      // The list of outputs costs a copy of each.
      work.work = group->backend->_allgather_base(all, bytes);
      return;
    }
    std::vector<std::vector<at::Tensor>> outputs{all.chunk(n_ranks)};
    std::vector<at::Tensor> inputs{bytes};
    work.work = group->backend->allgather(outputs, inputs, c10d::AllgatherOptions());
  });
}

int c10d_all_to_all(c10d_group* group, c10d_tensor output, c10d_tensor input, const int64_t* sent,
                    const int64_t* received, c10d_work** out, char** message) {
  return start(group, false, out, message, [&](c10d_work& work) {
    const auto n_ranks = group->backend->getSize();
    std::vector<int64_t> to_ranks(sent, sent + n_ranks);
    std::vector<int64_t> from_ranks(received, received + n_ranks);
    work.work = group->backend->alltoall_base(tensor_of(output), tensor_of(input), from_ranks, to_ranks,
                                              c10d::AllToAllOptions());
  });
}

int c10d_reduce_scatter(c10d_group* group, c10d_tensor output, c10d_tensor input, int reduction, c10d_work** out,
                        char** message) {
  auto& shares = tensor_of(input);
  auto& share = tensor_of(output);
  return start(group, shares.numel() == 0, out, message, [&](c10d_work& work) {
    if (!is_gloo(group)) {
      c10d::ReduceScatterOptions options;
      options.reduceOp = reduce_op(reduction);
      work.work = group->backend->_reduce_scatter_base(share, shares, options);
      return;
    }
    // Gloo's implementation also reduces the whole tensor and then copies the share.
    auto sums = shares.clone();
    c10d::AllreduceOptions options;
    options.reduceOp = prepare_reduction(group, reduction, share, work);
    work.afterwards = [share, sums, rank = group->backend->getRank(), divide = work.afterwards] {
      at::NoGradGuard no_grad;
      share.view(-1).copy_(sums.view(-1).narrow(0, rank * share.numel(), share.numel()));
      if (divide) divide();
    };
    std::vector<at::Tensor> tensors{sums.is_complex() ? at::view_as_real(sums) : sums};
    work.work = group->backend->allreduce(tensors, options);
  });
}

int c10d_barrier(c10d_group* group, c10d_work** out, char** message) {
  return start(group, false, out, message,
               [&](c10d_work& work) { work.work = group->backend->barrier(c10d::BarrierOptions()); });
}

int c10d_send(c10d_group* group, c10d_tensor tensor, int to, int tag, c10d_work** out, char** message) {
  auto& values = tensor_of(tensor);
  return start(group, values.numel() == 0, out, message, [&](c10d_work& work) {
    std::vector<at::Tensor> tensors{as_bytes(values)};
    work.work = group->backend->send(tensors, to, tag);
  });
}

int c10d_receive(c10d_group* group, c10d_tensor tensor, int from, int tag, c10d_work** out, char** message) {
  auto& values = tensor_of(tensor);
  return start(group, values.numel() == 0, out, message, [&](c10d_work& work) {
    std::vector<at::Tensor> tensors{as_bytes(values)};
    work.work = group->backend->recv(tensors, from, tag);
  });
}

int c10d_work_wait(c10d_work* work, char** message) {
  return guarded(message, C10D_FAILED, [&] {
    if (work->work) {
      if (!work->work->wait()) throw Failure(C10D_FAILED, "the communication was aborted");
    }
    work->guard->check();
    if (work->afterwards) {
      work->afterwards();
      work->afterwards = nullptr;
    }
  });
}

int c10d_work_is_done(c10d_work* work) { return !work->work || work->work->isCompleted() ? 1 : 0; }

void c10d_work_free(c10d_work* work) { delete work; }

}  // extern "C"
