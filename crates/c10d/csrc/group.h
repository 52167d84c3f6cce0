// A process group whose pending work another thread can end.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/version.h>

#include "status.h"

// c10d's classes are not a stable interface: check this shim before moving to another version (see README.md).
static_assert(TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 11 && TORCH_VERSION_PATCH == 0,
              "c10d's shim is written for PyTorch 2.11.0; bootstrap/laptop.sh torch installs it");

namespace shim {

// Work that a guard can end.
class Endable : public c10d::Work {
 public:
  using c10d::Work::Work;
  virtual void end(std::exception_ptr failure) = 0;
};

// Ends a group's pending work when the watching thread reports a failure.
//
// Gloo waits for a silent peer until its time limit. The limit must allow for slow peers, so it is long, and Gloo's
// calls cannot be interrupted. Callers and the Reducer therefore wait for a wrapper. Gloo's work or this guard
// completes the wrapper. After a failure, Gloo's work may wait on its own thread, holding its tensors, until the
// process exits.
class Guard : public std::enable_shared_from_this<Guard> {
 public:
  // Ends all pending and later work with this message. Only the first call has an effect.
  void fail(const std::string& message);
  // Throws if the group has failed.
  void check() const;
  bool is_broken() const;
  // Whether no work is pending.
  bool is_idle() const;

  // Wraps a collective, which signals its end through a future.
  c10::intrusive_ptr<c10d::Work> watch_collective(c10::intrusive_ptr<c10d::Work> work);
  // Wraps a send or a receive, which have no future.
  c10::intrusive_ptr<c10d::Work> watch_pair(c10::intrusive_ptr<c10d::Work> work);

  // A further action on failure, for a backend that can abort.
  void on_failure(std::function<void()> action);
  void forget_action();

  // Called by the works.
  uint64_t enter(const c10::intrusive_ptr<Endable>& work);
  void leave(uint64_t ticket);
  void note_broken();

 private:
  std::exception_ptr failure_locked() const;

  mutable std::mutex mutex_;
  std::string message_;
  bool failed_ = false;
  bool broken_ = false;
  uint64_t next_ticket_ = 0;
  // Owned: a send or receive that its caller dropped is still completed. Otherwise, Gloo would stop reading from that
  // peer.
  std::unordered_map<uint64_t, c10::intrusive_ptr<Endable>> pending_;
  std::function<void()> action_;
};

}  // namespace shim

struct c10d_store {
  c10::intrusive_ptr<c10d::TCPStore> tcp;
};

struct c10d_guard {
  std::shared_ptr<shim::Guard> guard;
};

struct c10d_group {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  c10::intrusive_ptr<c10d::Backend> backend;
  std::shared_ptr<shim::Guard> guard;
  c10::DeviceType device;
};
