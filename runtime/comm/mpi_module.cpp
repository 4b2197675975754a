// The MPI module: built into libk31_mpi.so, which is opened at run time.
#include "runtime/comm/mpi_module.h"
#include <cstdio>
#include <mpi.h>
#include <new>

namespace {

MPI_Comm comm(void *group) { return *static_cast<MPI_Comm *>(group); }
MPI_Request *request_in(void **request) {
  auto *made = new (std::nothrow) MPI_Request(MPI_REQUEST_NULL);
  *request = made;
  return made;
}

int start(int *rank, int *size, int *local_rank, int *local_size) {
  int error = MPI_SUCCESS, provided = 0, ready = 0;
  MPI_Initialized(&ready);
  if (!ready && (error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided)))
    return error;
  if (!ready && provided < MPI_THREAD_SERIALIZED)
    return MPI_ERR_OTHER;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, size);
  MPI_Comm host;
  if ((error = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, *rank, MPI_INFO_NULL, &host)))
    return error;
  MPI_Comm_rank(host, local_rank);
  MPI_Comm_size(host, local_size);
  return MPI_Comm_free(&host);
}

int stop() { return MPI_Finalize(); }

void message(int error, char *text, int size) {
  char all[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, all, &length);
  std::snprintf(text, size_t(size), "%s", all);
}

int make_group(int color, int place, void **group) {
  auto *made = new (std::nothrow) MPI_Comm;
  const int error = MPI_Comm_split(MPI_COMM_WORLD, color, place, made);
  if (error == MPI_SUCCESS)
    MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
  *group = made;
  return error;
}
void free_group(void *group) {
  int ended = 0;
  if (MPI_Finalized(&ended); !ended)
    MPI_Comm_free(static_cast<MPI_Comm *>(group));
  delete static_cast<MPI_Comm *>(group);
}

int all_gather(void *group, const void *mine, void *all, int bytes, void **request) {
  return MPI_Iallgather(mine ? mine : MPI_IN_PLACE, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm(group), request_in(request));
}
int all_to_all(void *group, const void *source, void *dest, int piece, void **request) {
  return MPI_Ialltoall(source, piece, MPI_BYTE, dest, piece, MPI_BYTE, comm(group), request_in(request));
}
int exchange(void *group, const void *source, const int *sent, void *dest, const int *received, const int *places,
             void **request) {
  return MPI_Ialltoallv(source, sent, places, MPI_BYTE, dest, received, places, MPI_BYTE, comm(group), request_in(request));
}
int broadcast(void *group, void *bytes, int count, int root, void **request) {
  return MPI_Ibcast(bytes, count, MPI_BYTE, root, comm(group), request_in(request));
}
int send(void *group, const void *bytes, int count, int to, void **request) {
  return MPI_Isend(bytes, count, MPI_BYTE, to, 0, comm(group), request_in(request));
}
int receive(void *group, void *bytes, int count, int from, void **request) {
  return MPI_Irecv(bytes, count, MPI_BYTE, from, 0, comm(group), request_in(request));
}
int test(void *request, int *done) {
  auto *handle = static_cast<MPI_Request *>(request);
  const int error = MPI_Test(handle, done, MPI_STATUS_IGNORE);
  if (*done || error)
    delete handle;
  return error;
}

constexpr k31::comm::MpiModule module = {k31::comm::kMpiModuleVersion,
                                         start,
                                         stop,
                                         message,
                                         make_group,
                                         free_group,
                                         all_gather,
                                         all_to_all,
                                         exchange,
                                         broadcast,
                                         send,
                                         receive,
                                         test};

} // namespace

const k31::comm::MpiModule *k31_mpi_module() { return &module; }
