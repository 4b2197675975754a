// The functions of NCCL that this runtime calls: K31_NCCL_FUNCTION(name, symbol, parameters). Included by nccl.cpp, once for the
// table and once to fill it. All are in NCCL 2.14 and later.
K31_NCCL_FUNCTION(unique_id, "ncclGetUniqueId", (UniqueId * id))
K31_NCCL_FUNCTION(init, "ncclCommInitRank", (Comm * comm, int ranks, UniqueId id, int rank))
K31_NCCL_FUNCTION(destroy, "ncclCommDestroy", (Comm comm))
K31_NCCL_FUNCTION(abort, "ncclCommAbort", (Comm comm))
K31_NCCL_FUNCTION(async_error, "ncclCommGetAsyncError", (Comm comm, int *error))
K31_NCCL_FUNCTION(all_reduce, "ncclAllReduce",
                  (const void *source, void *dest, size_t count, int type, int op, Comm comm, Stream stream))
K31_NCCL_FUNCTION(reduce_scatter, "ncclReduceScatter",
                  (const void *source, void *dest, size_t count, int type, int op, Comm comm, Stream stream))
K31_NCCL_FUNCTION(all_gather, "ncclAllGather", (const void *source, void *dest, size_t count, int type, Comm comm, Stream stream))
K31_NCCL_FUNCTION(broadcast, "ncclBroadcast",
                  (const void *source, void *dest, size_t count, int type, int root, Comm comm, Stream stream))
K31_NCCL_FUNCTION(send, "ncclSend", (const void *source, size_t count, int type, int peer, Comm comm, Stream stream))
K31_NCCL_FUNCTION(receive, "ncclRecv", (void *dest, size_t count, int type, int peer, Comm comm, Stream stream))
K31_NCCL_FUNCTION(group_start, "ncclGroupStart", ())
K31_NCCL_FUNCTION(group_end, "ncclGroupEnd", ())
K31_NCCL_FUNCTION(error_string, "ncclGetErrorString", (int error))
K31_NCCL_FUNCTION(last_error, "ncclGetLastError", (Comm comm))
