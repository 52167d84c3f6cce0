// The part that needs CUDA's and NCCL's headers to build and libtorch_cuda to run: a library of its own inside the
// program, loaded when a GPU is asked for.

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdlib>

// A reference that the caller takes over.
extern "C" c10d::Backend* c10d_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            int device, int64_t timeout_ms) {
  // At a time limit PyTorch would abort the process; this only ends the communication, and the caller reports it.
  setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2", /*overwrite=*/0);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::milliseconds(timeout_ms);
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
  // Bound to its device, the communicator is made now and not in the first collective.
  const auto bound = c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
  backend->setBoundDeviceId(bound);
  backend->eagerConnectSingleDevice(bound);
  return backend.release();
}
