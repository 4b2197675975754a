// What k31-run takes from its MPI module, a shared object of its own beside the executable: k31-run starts without MPI, and a
// site builds the module alone against its own MPI. C functions; every one returns 0 or an error number of MPI.
#pragma once
#include <cstddef>

namespace k31::comm {

constexpr int kMpiModuleVersion = 2;

struct MpiModule {
  int version;
  // Starts MPI: this process, and its place on its host.
  int (*start)(int *rank, int *size, int *local_rank, int *local_size);
  int (*stop)();
  void (*message)(int error, char *text, int size);
  // Members have the same color; their order is that of `place`. Called by all processes.
  int (*make_group)(int color, int place, void **group);
  void (*free_group)(void *group);
  // These start; `request` takes the place of a handle, which test() gives free once it is done.
  int (*all_gather)(void *group, const void *mine, void *all, int bytes, void **request); // mine null: in place
  int (*all_to_all)(void *group, const void *source, void *dest, int piece, void **request);
  // Bytes for each rank and from each rank; those of rank r begin at places[r] on both sides. The arrays live until it is done.
  int (*exchange)(void *group, const void *source, const int *sent, void *dest, const int *received, const int *places,
                  void **request);
  int (*broadcast)(void *group, void *bytes, int count, int root, void **request);
  int (*send)(void *group, const void *bytes, int count, int to, void **request);
  int (*receive)(void *group, void *bytes, int count, int from, void **request);
  int (*test)(void *request, int *done);
};

} // namespace k31::comm

// The module's one symbol.
extern "C" const k31::comm::MpiModule *k31_mpi_module();
