// What the mesh decided: shares of weights, and who moves the bytes of collectives.
// RUN: k31-opt --select-kernels=target=sm_90a %s | FileCheck %s --check-prefixes=BOTH,CUDA
// RUN: k31-opt --select-kernels=target=cpu %s | FileCheck %s --check-prefixes=BOTH,HOST
module attributes {k31.mesh = {tp = 8 : i64, dp = 2 : i64, ep = 16 : i64, pp = 1 : i64, node = 8 : i64}} {
  nn.tensor @q_proj "q_proj" members [] files [0] offsets [0] : tensor<1024x256xbf16>
  nn.tensor @o_proj "o_proj" members [] files [0] offsets [0] : tensor<256x1024xbf16>
  nn.tensor @gate "gate" members [] files [0] offsets [0] : tensor<64x256xbf16>
  nn.stack @stack.q_proj [@q_proj] rows [128] shard tp rows : tensor<128x256xbf16>
  nn.stack @stack.o_proj [@o_proj] rows [256] shard tp columns : tensor<256x128xbf16>
  nn.stack @stack.gate [@gate] rows [64] : tensor<64x256xbf16>

  // BOTH-LABEL: func.func @products
  func.func @products(%x: tensor<4x256xbf16>, %live: tensor<1xi32>) -> (tensor<4x256xbf16>, tensor<4x64xf32>) {
    %q = nn.weight @stack.q_proj : tensor<128x256xbf16>
    %o = nn.weight @stack.o_proj : tensor<256x128xbf16>
    %g = nn.weight @stack.gate : tensor<64x256xbf16>
    // BOTH: = nn.linear
    // BOTH-SAME: about = "share", choice = "rows over tp", reason = "128 of 1024 rows a rank, 65536 bytes; a rank makes its own columns of the result"
    %a = nn.linear %x, %q live %live : (tensor<4x256xbf16>, tensor<128x256xbf16>, tensor<1xi32>) -> tensor<4x128xbf16>
    // BOTH: = nn.linear
    // BOTH-SAME: about = "share", choice = "columns over tp", reason = "128 of 1024 columns a rank, 65536 bytes; a rank has these columns of x; the products of all ranks add up"
    %b = nn.linear %a, %o live %live : (tensor<4x128xbf16>, tensor<256x128xbf16>, tensor<1xi32>) -> tensor<4x256xbf16>
    // BOTH: coll.all_reduce
    // 7.4 us, 1.5 us for each of two doublings, and two times 7/8 of 2048 bytes.
    // By peer 3.5 us, as many doublings, and seven times 2048 bytes.
    // CUDA-SAME: about = "transport", candidates = ["library", "peer"], choice = "library", nanoseconds = array<i64: 10412, 6550>, reason = "2048 bytes over tp, 8 ranks of one host; NCCL; --transport auto would take peer"
    // HOST-SAME: about = "transport", choice = "library", reason = "2048 bytes over tp, 8 ranks of one host; shared memory or MPI; sums in the order of ranks, so that all get the same bits"
    %sum = coll.all_reduce %b over tp size 8 : tensor<4x256xbf16>
    // BOTH: = nn.linear
    // BOTH-SAME: about = "share", choice = "whole on every rank", reason = "32768 bytes; every rank needs the whole result, and parts of it would have to be gathered"
    %logits = nn.linear %sum, %g live %live : (tensor<4x256xbf16>, tensor<64x256xbf16>, tensor<1xi32>) -> tensor<4x64xf32>
    return %sum, %logits : tensor<4x256xbf16>, tensor<4x64xf32>
  }
  // BOTH-LABEL: func.func @hosts
  func.func @hosts(%x: tensor<4x256xbf16>) -> tensor<8x256xbf16> {
    // BOTH: coll.all_gather
    // CUDA-SAME: reason = "4096 bytes over edp, 2 ranks of several hosts; NCCL
    %all = coll.all_gather %x over edp size 2 : tensor<4x256xbf16>
    return %all : tensor<8x256xbf16>
  }
}
