// Compiles the shim as one unit: PyTorch's headers take most of the compile time and are read only once.
#include "store.cc"
#include "group.cc"
#include "reducer.cc"
