// The functions of NCCL that this runtime calls: K31_NCCL_FUNCTION(result, name, symbol, parameters). Included by nccl.cpp, once
// for the table and once to fill it. All are in NCCL 2.14 and later. An int is an error number.
K31_NCCL_FUNCTION(int, unique_id, "ncclGetUniqueId", (UniqueId * id))
K31_NCCL_FUNCTION(int, init, "ncclCommInitRank", (Comm * comm, int ranks, UniqueId id, int rank))
K31_NCCL_FUNCTION(int, destroy, "ncclCommDestroy", (Comm comm))
K31_NCCL_FUNCTION(int, abort, "ncclCommAbort", (Comm comm))
K31_NCCL_FUNCTION(int, async_error, "ncclCommGetAsyncError", (Comm comm, int *error))
K31_NCCL_FUNCTION(int, all_reduce, "ncclAllReduce",
                  (const void *source, void *dest, size_t count, int type, int op, Comm comm, Stream stream))
K31_NCCL_FUNCTION(int, reduce_scatter, "ncclReduceScatter",
                  (const void *source, void *dest, size_t count, int type, int op, Comm comm, Stream stream))
K31_NCCL_FUNCTION(int, all_gather, "ncclAllGather",
                  (const void *source, void *dest, size_t count, int type, Comm comm, Stream stream))
K31_NCCL_FUNCTION(int, broadcast, "ncclBroadcast",
                  (const void *source, void *dest, size_t count, int type, int root, Comm comm, Stream stream))
K31_NCCL_FUNCTION(int, send, "ncclSend", (const void *source, size_t count, int type, int peer, Comm comm, Stream stream))
K31_NCCL_FUNCTION(int, receive, "ncclRecv", (void *dest, size_t count, int type, int peer, Comm comm, Stream stream))
K31_NCCL_FUNCTION(int, group_start, "ncclGroupStart", ())
K31_NCCL_FUNCTION(int, group_end, "ncclGroupEnd", ())
K31_NCCL_FUNCTION(const char *, error_string, "ncclGetErrorString", (int error))
K31_NCCL_FUNCTION(const char *, last_error, "ncclGetLastError", (Comm comm))
