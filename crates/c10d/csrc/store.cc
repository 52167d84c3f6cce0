// TCPStore: the key-value store through which ranks find each other.

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "group.h"
#include "status.h"

using shim::guarded;

namespace {

std::vector<uint8_t> bytes(const uint8_t* data, size_t length) {
  return length == 0 ? std::vector<uint8_t>{} : std::vector<uint8_t>(data, data + length);
}

void copy_out(const std::vector<uint8_t>& value, uint8_t** data, size_t* length) {
  *data = static_cast<uint8_t*>(std::malloc(value.size() + 1));
  TORCH_CHECK(*data != nullptr, "out of memory for a value of ", value.size(), " bytes");
  if (!value.empty()) std::memcpy(*data, value.data(), value.size());
  *length = value.size();
}

std::vector<std::string> texts(const char* const* keys, size_t n_keys) { return {keys, keys + n_keys}; }

}  // namespace

extern "C" {

int c10d_store_open(const char* host, uint16_t port, int serve, int listener, int64_t n_workers, int64_t timeout_ms,
                    c10d_store** out, char** message) {
  return guarded(message, C10D_STORE, [&] {
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = serve != 0;
    // PyTorch's own socket would listen on every interface.
    if (listener >= 0) options.masterListenFd = listener;
    if (n_workers >= 0) options.numWorkers = static_cast<size_t>(n_workers);
    options.timeout = std::chrono::milliseconds(timeout_ms);
    // As in init_process_group: a second group of this process may use the server of the first.
    options.multiTenant = true;
    *out = new c10d_store{c10::make_intrusive<c10d::TCPStore>(host, options)};
  });
}

void c10d_store_close(c10d_store* store) { delete store; }

uint16_t c10d_store_port(const c10d_store* store) { return store->tcp->getPort(); }

int c10d_store_set(c10d_store* store, const char* key, const uint8_t* value, size_t length, char** message) {
  return guarded(message, C10D_STORE, [&] { store->tcp->set(key, bytes(value, length)); });
}

int c10d_store_get(c10d_store* store, const char* key, uint8_t** value, size_t* length, char** message) {
  return guarded(message, C10D_STORE, [&] { copy_out(store->tcp->get(key), value, length); });
}

int c10d_store_compare_set(c10d_store* store, const char* key, const uint8_t* expected, size_t expected_length,
                           const uint8_t* desired, size_t desired_length, uint8_t** value, size_t* length,
                           char** message) {
  return guarded(message, C10D_STORE, [&] {
    copy_out(store->tcp->compareSet(key, bytes(expected, expected_length), bytes(desired, desired_length)), value,
             length);
  });
}

int c10d_store_add(c10d_store* store, const char* key, int64_t amount, int64_t* sum, char** message) {
  return guarded(message, C10D_STORE, [&] { *sum = store->tcp->add(key, amount); });
}

int c10d_store_wait(c10d_store* store, const char* const* keys, size_t n_keys, int64_t timeout_ms, char** message) {
  return guarded(message, C10D_STORE,
                 [&] { store->tcp->wait(texts(keys, n_keys), std::chrono::milliseconds(timeout_ms)); });
}

int c10d_store_check(c10d_store* store, const char* const* keys, size_t n_keys, int* all_set, char** message) {
  return guarded(message, C10D_STORE, [&] { *all_set = store->tcp->check(texts(keys, n_keys)) ? 1 : 0; });
}

int c10d_store_delete(c10d_store* store, const char* key, int* deleted, char** message) {
  return guarded(message, C10D_STORE, [&] { *deleted = store->tcp->deleteKey(key) ? 1 : 0; });
}

}  // extern "C"
