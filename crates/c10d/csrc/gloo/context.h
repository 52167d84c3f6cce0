// What PyTorch's ProcessGroupGloo.hpp names of Gloo, and no more. Its wheels hold Gloo's code, inside
// libtorch_cpu, but not Gloo's headers. Everything here is only passed by pointer between PyTorch's
// own functions, so a declaration is enough: no layout of Gloo's is known to this crate, and a symbol
// that a later PyTorch no longer exports is an error of the linker.
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
