// The declarations of Gloo that PyTorch's ProcessGroupGloo.hpp requires. PyTorch's wheels contain Gloo's code, inside
// libtorch_cpu, but not its headers. These types are only passed by pointer between PyTorch's functions, so
// declarations are enough and this crate does not depend on Gloo's layouts. If a later PyTorch no longer exports a
// symbol, linking fails.
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
