// The shim in one unit: most of the time to compile it goes into PyTorch's headers, which are read once here.
#include "store.cc"
#include "group.cc"
#include "reducer.cc"
