// The NCCL part: builds only with the headers of CUDA and NCCL, and runs only with libtorch_cuda. It is a shared
// library embedded in the program, loaded when a GPU is requested.

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdlib>

// Returns a reference that the caller must release.
extern "C" c10d::Backend* c10d_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            int device, int64_t timeout_ms) {
  // At a time limit, PyTorch aborts the process by default. This setting only ends the communication, and the caller
  // reports it.
  setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2", /*overwrite=*/0);
  // By default, each rank would write a dump, wait a minute for those of the others before it aborts, and 8 minutes
  // later abort the processes of all that share the store, also restarted ones.
  setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", /*overwrite=*/0);
  setenv("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "0", /*overwrite=*/0);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::milliseconds(timeout_ms);
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
  // Binding to the device creates the communicator now instead of in the first collective.
  const auto bound = c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
  backend->setBoundDeviceId(bound);
  backend->eagerConnectSingleDevice(bound);
  return backend.release();
}
