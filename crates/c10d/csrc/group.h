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

// c10d's classes are no stable interface: another version needs this shim read again (README.md says how).
static_assert(TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 11 && TORCH_VERSION_PATCH == 0,
              "c10d's shim is written for PyTorch 2.11.0; bootstrap/laptop.sh torch installs it");

namespace shim {

// Work that a guard can end.
class Endable : public c10d::Work {
 public:
  using c10d::Work::Work;
  virtual void end(std::exception_ptr failure) = 0;
};

// What a group's work asks whether it may go on, and what a watching thread tells that it may not.
//
// Gloo waits for a silent peer until its time limit, which is meant for slow peers and therefore long, and its
// calls cannot be interrupted. So the work that callers and the Reducer wait for is a stand-in that Gloo's own
// work completes, or this guard; Gloo's may then wait on, on its own thread, holding its tensors, until the process
// ends.
class Guard : public std::enable_shared_from_this<Guard> {
 public:
  // Ends everything pending and everything later with this message. The first message stays.
  void fail(const std::string& message);
  // Throws where the group has failed.
  void check() const;
  bool is_broken() const;
  // Whether no work is pending.
  bool is_idle() const;

  // Wraps a collective, whose end its future tells.
  c10::intrusive_ptr<c10d::Work> watch_collective(c10::intrusive_ptr<c10d::Work> work);
  // Wraps a send or a receive, which have no future.
  c10::intrusive_ptr<c10d::Work> watch_pair(c10::intrusive_ptr<c10d::Work> work);

  // What else is to be done on failure: a backend that can abort.
  void on_failure(std::function<void()> action);
  void forget_action();

  // For the works.
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
  // Owned: a send or receive that its caller dropped is carried out all the same, where Gloo would stop reading from
  // that peer for good.
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
