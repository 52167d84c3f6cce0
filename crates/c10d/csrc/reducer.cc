// c10d::Reducer, the engine of DistributedDataParallel. It sums gradients over the ranks in buckets while backward is
// still running.

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <chrono>
#include <limits>

#include "group.h"
#include "status.h"

using shim::Failure;
using shim::guarded;

namespace {

// Records when each bucket was ready and when it was reduced. Written by autograd's and Gloo's threads. Calls of a GPU
// return before they are computed, so events of its stream record when a bucket was ready.
class Timeline {
 public:
  explicit Timeline(c10::Device device) : device_(device) {}

  void begin() {
    std::lock_guard<std::mutex> lock(mutex_);
    start_ = std::chrono::steady_clock::now();
    buckets_.clear();
    events_.clear();
    record();
  }

  size_t ready(uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    buckets_.push_back({bytes, device_.is_cpu() ? now() : -1, -1});
    record();
    return buckets_.size() - 1;
  }

  void reduced(size_t bucket) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (bucket < buckets_.size()) buckets_[bucket].reduced_ns = now();
  }

  uint64_t bytes() {
    std::lock_guard<std::mutex> lock(mutex_);
    uint64_t sum = 0;
    for (const auto& bucket : buckets_) sum += bucket.bytes;
    return sum;
  }

  size_t copy(c10d_bucket_times* times, size_t capacity) {
    std::lock_guard<std::mutex> lock(mutex_);
    // The first event is that of begin().
    for (size_t i = 0; i + 1 < events_.size(); ++i) {
      constexpr double ns_per_ms = 1e6;
      events_[i + 1].synchronize();
      buckets_[i].ready_ns = static_cast<int64_t>(events_.front().elapsedTime(events_[i + 1]) * ns_per_ms);
    }
    std::copy_n(buckets_.begin(), std::min(capacity, buckets_.size()), times);
    return buckets_.size();
  }

 private:
  int64_t now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
  }

  // On a GPU, records an event after the calls so far.
  void record() {
    if (device_.is_cpu()) return;
    const c10::impl::VirtualGuardImpl guard(device_.type());
    events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT).record(guard.getStream(device_));
  }

  std::mutex mutex_;
  c10::Device device_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<c10d_bucket_times> buckets_;
  std::vector<c10::Event> events_;
};

// Sums a bucket over the ranks, divides it for a mean, and records the times.
class ReduceBucket : public c10d::CommHookInterface {
 public:
  ReduceBucket(c10::intrusive_ptr<c10d::ProcessGroup> group, c10::DeviceType device, bool mean,
               std::shared_ptr<Timeline> timeline)
      : group_(std::move(group)), device_(device), mean_(mean), timeline_(std::move(timeline)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    auto gradients = bucket.getBufferRef();
    const auto index = timeline_->ready(gradients.nbytes());
    // Division before the sum: the sum of many ranks then overflows no sooner than their mean.
    if (mean_) gradients.div_(group_->getSize());
    std::vector<at::Tensor> tensors{gradients};
    auto future = group_->getBackend(device_)->allreduce(tensors, c10d::AllreduceOptions())->getFuture();
    if (device_ != c10::DeviceType::CPU) return future;
    // A separate future that completes after the time is recorded. The original future completes before its callbacks
    // run.
    return future->then(
        [timeline = timeline_, index](c10::ivalue::Future& done) {
          timeline->reduced(index);
          return done.value();
        },
        future->elementType());
  }

  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  c10::DeviceType device_;
  bool mean_;
  std::shared_ptr<Timeline> timeline_;
};

// Runs an empty backward, after which c10d rebuilds the buckets in the order of the gradients. Here that order is
// always from the last parameter to the first. In the first step of a training it could differ. With more than two
// ranks, a gradient's position in a bucket determines the order of its sum, so a training resumed from a checkpoint
// must use the same buckets.
void rehearse(c10d::Reducer& reducer, std::vector<at::Tensor>& parameters) {
  if (!reducer.should_rebuild_buckets()) return;
  std::vector<at::Tensor> gradients;
  for (auto& parameter : parameters) {
    gradients.push_back(parameter.mutable_grad());
    parameter.mutable_grad() = at::Tensor();
  }
  at::AutoGradMode enabled(true);
  at::Tensor loss;
  for (const auto& parameter : parameters) {
    auto nothing = (parameter * 0).sum().to(at::kDouble);
    loss = loss.defined() ? loss + nothing : nothing;
  }
  if (loss.defined()) {
    reducer.prepare_for_forward();
    reducer.prepare_for_backward({loss});
    loss.backward();
    reducer.rebuild_buckets();
  }
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].mutable_grad() = gradients[i];
}

std::vector<at::Tensor> tensors_of(const c10d_tensor* tensors, size_t n) {
  std::vector<at::Tensor> list;
  list.reserve(n);
  for (size_t i = 0; i < n; ++i) list.push_back(*static_cast<at::Tensor*>(tensors[i]));
  return list;
}

}  // namespace

struct c10d_reducer {
  std::shared_ptr<shim::Guard> guard;
  std::shared_ptr<Timeline> timeline;
  std::unique_ptr<c10d::Reducer> reducer;
  uint64_t parameter_bytes;
  bool find_unused;
};

extern "C" {

int c10d_reducer_new(c10d_group* group, const c10d_tensor* parameters, size_t n_parameters,
                     int64_t first_bucket_bytes, int64_t bucket_bytes, int find_unused, int mean,
                     c10d_reducer** out, char** message) {
  return guarded(message, C10D_INVALID, [&] {
    group->guard->check();
    auto list = tensors_of(parameters, n_parameters);
    // From the last parameter to the first, the order in which backward computes gradients.
    auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
        list, {static_cast<size_t>(first_bucket_bytes), static_cast<size_t>(bucket_bytes)});
    std::reverse(buckets.begin(), buckets.end());
    auto reducer = std::make_unique<c10d_reducer>();
    reducer->guard = group->guard;
    reducer->timeline = std::make_shared<Timeline>(list.front().device());
    reducer->find_unused = find_unused != 0;
    for (const auto& parameter : list) reducer->parameter_bytes += parameter.nbytes();
    reducer->reducer = std::make_unique<c10d::Reducer>(
        list, std::move(buckets), group->group, std::vector<bool>(list.size(), false), bucket_bytes,
        find_unused != 0, /*gradient_as_bucket_view=*/false, std::unordered_map<size_t, std::string>{},
        first_bucket_bytes, /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
        std::vector<int64_t>{});
    reducer->reducer->register_comm_hook(
        std::make_unique<ReduceBucket>(group->group, group->device, mean != 0, reducer->timeline));
    rehearse(*reducer->reducer, list);
    *out = reducer.release();
  });
}

int c10d_reducer_prepare(c10d_reducer* reducer, const c10d_tensor* outputs, size_t n_outputs, char** message) {
  return guarded(message, C10D_INVALID, [&] {
    reducer->guard->check();
    reducer->reducer->prepare_for_forward();
    reducer->timeline->begin();
    reducer->reducer->prepare_for_backward(tensors_of(outputs, n_outputs));
  });
}

int c10d_reducer_finish(c10d_reducer* reducer, char** message) {
  return guarded(message, C10D_INVALID, [&] {
    // c10d::Reducer's check runs only in the next step, and misses a loss that used no parameter.
    if (reducer->timeline->bytes() == reducer->parameter_bytes) return;
    throw Failure(C10D_INVALID, reducer->find_unused
                                    ? "this rank's loss used no parameter at all"
                                    : "this rank's loss did not use every parameter, and `find_unused` is not set");
  });
}

int c10d_reducer_timeline(c10d_reducer* reducer, c10d_bucket_times* times, size_t capacity, size_t* n, char** message) {
  return guarded(message, C10D_FAILED, [&] { *n = reducer->timeline->copy(times, capacity); });
}

void c10d_reducer_free(c10d_reducer* reducer) {
  auto* engine = reducer->reducer.release();
  try {
    if (reducer->guard->is_broken()) {
      // An autograd thread may still be running in the reducer. Without its hooks it takes no part in later
      // backwards.
      engine->remove_autograd_hooks();
    } else {
      delete engine;
    }
  } catch (...) {
    // c10d::Reducer's destructor may throw, and there is no caller to report the error to.
  }
  delete reducer;
}

}  // extern "C"
