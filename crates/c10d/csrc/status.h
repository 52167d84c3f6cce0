// Converts exceptions into statuses: every function of shim.h runs its body in `guarded`.
#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include <c10/util/Exception.h>

#include "shim.h"

namespace shim {

// A communication ended by a guard or a time limit.
class Failure : public std::exception {
 public:
  Failure(c10d_status status, std::string text) : status_(status), text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  c10d_status status() const noexcept { return status_; }

 private:
  c10d_status status_;
  std::string text_;
};

inline char* copy_text(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

// Gloo reports a timeout only in its text.
inline bool is_timeout(const std::string& text) {
  return text.find("Timed out") != std::string::npos || text.find("timed out") != std::string::npos ||
         text.find("timeout") != std::string::npos;
}

// `invalid`: the status of other exceptions, which are neither PyTorch's argument checks nor Failure.
template <typename Body>
int guarded(char** message, c10d_status invalid, Body&& body) noexcept {
  *message = nullptr;
  auto fail = [message](c10d_status status, const std::string& text) -> int {
    *message = copy_text(text);
    return status;
  };
  try {
    body();
    return C10D_OK;
  } catch (const Failure& failure) {
    return fail(failure.status(), failure.what());
  } catch (const c10::DistStoreError& error) {
    return fail(C10D_STORE, error.what_without_backtrace());
  } catch (const c10::DistNetworkError& error) {
    return fail(invalid == C10D_STORE ? C10D_STORE : C10D_FAILED, error.what_without_backtrace());
  } catch (const c10::DistError& error) {
    const std::string text = error.what_without_backtrace();
    return fail(is_timeout(text) ? C10D_TIMED_OUT : C10D_FAILED, text);
  } catch (const c10::Error& error) {
    return fail(invalid, error.what_without_backtrace());
  } catch (const std::exception& error) {
    const std::string text = error.what();
    if (is_timeout(text)) return fail(C10D_TIMED_OUT, text);
    return fail(invalid, text);
  } catch (...) {
    return fail(C10D_FAILED, "unknown exception");
  }
}

}  // namespace shim
