// Collectives that a kernel of the plan does: where --transport asks for it, or where it is cheaper.
// RUN: sed 's/WISH/peer/' %s | k31-opt --select-kernels=target=sm_90a | FileCheck %s --check-prefix=PEER
// RUN: sed 's/WISH/auto/' %s | k31-opt --select-kernels=target=sm_90a | FileCheck %s --check-prefix=AUTO
// RUN: sed 's/WISH/peer/' %s | k31-opt --select-kernels=target=cpu | FileCheck %s --check-prefix=HOST
// RUN: sed 's/WISH/auto/' %s | k31-opt --select-kernels=target=cpu | FileCheck %s --check-prefix=NONE
// RUN: sed 's/WISH/library/' %s | k31-opt --select-kernels=target=sm_90a | FileCheck %s --check-prefix=NONE
// RUN: sed 's/WISH/maybe/' %s | not k31-opt --select-kernels=target=cpu 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: k31.options: transport is "maybe", expected library, peer, auto
module attributes {k31.mesh = {tp = 4 : i64, dp = 2 : i64, ep = 8 : i64, pp = 1 : i64, node = 4 : i64}, k31.options = {transport = "WISH"}} {
  // NONE-NOT: via peer
  // PEER-LABEL: func.func @collectives
  func.func @collectives(%row: tensor<1x7168xbf16>, %rows: tensor<512x7168xf32>, %odd: tensor<3xf32>, %ids: tensor<4x4xi32>,
                         %pieces: tensor<4x4096xui8>, %units: tensor<4xi32>)
      -> (tensor<1x7168xbf16>, tensor<512x7168xf32>, tensor<128x7168xf32>, tensor<3xf32>, tensor<4x4xi32>, tensor<16x4xi32>, tensor<4x4096xui8>) {
    // One row: every rank gets all addends, 896 words.
    // PEER: coll.all_reduce %{{.*}} over tp size 4 via peer
    // PEER-SAME: k31.kernel = {block = 256 : i64, config = {blocks = 128 : i64, ranks = 4 : i64, region = 2048 : i64, words = 896 : i64}, grid = array<i32: 4, 1, 1>
    // PEER-SAME: about = "transport", candidates = ["library", "peer"], choice = "peer"
    // PEER-SAME: 14336 bytes over tp, 4 ranks of one host; a kernel of the plan writes to its peers; asked for by --transport
    // HOST: coll.all_reduce %{{.*}} over tp size 4 via peer
    // HOST-SAME: config = {ranks = 4 : i64, region = 16384 : i64, words = 896 : i64}
    // AUTO: coll.all_reduce %{{.*}} over tp size 4 via peer
    %0 = coll.all_reduce %row over tp size 4 : tensor<1x7168xbf16>
    // 512 rows: by pieces, 229376 words each.
    // PEER: coll.all_reduce %{{.*}} over tp size 4 via peer
    // PEER-SAME: form = 1 : i64{{.*}} words = 229376 : i64
    %1 = coll.all_reduce %rows over tp size 4 : tensor<512x7168xf32>
    // PEER: coll.reduce_scatter %{{.*}} over tp size 4 via peer
    // PEER-SAME: form = 3 : i64{{.*}} words = 229376 : i64
    %2 = coll.reduce_scatter %rows over tp size 4 : tensor<512x7168xf32>
    // PEER: coll.all_reduce %{{.*}} over tp size 4 {
    // PEER-SAME: 12 bytes over tp, 4 ranks of one host; NCCL; pieces of 12 bytes are no whole words of 16
    %3 = coll.all_reduce %odd over tp size 4 : tensor<3xf32>
    // PEER: coll.all_reduce %{{.*}} over tp size 4 {
    // PEER-SAME: NCCL; peers add up fp32 and bf16
    %4 = coll.all_reduce %ids over tp size 4 : tensor<4x4xi32>
    // PEER: coll.all_gather %{{.*}} over tp size 4 via peer
    // PEER-SAME: form = 2 : i64{{.*}} words = 4 : i64
    %5 = coll.all_gather %ids over tp size 4 : tensor<4x4xi32>
    // An expert group spans two hosts; its ranks on one are peers.
    // PEER: coll.dispatch %{{.*}} over node size 4 unit 16 via peer
    // PEER-SAME: form = 4 : i64{{.*}} unit = 1 : i64, words = 256 : i64
    %6 = coll.dispatch %pieces live %units over node size 4 unit 16 : tensor<4x4096xui8>, tensor<4xi32>
    return %0, %1, %2, %3, %4, %5, %6 : tensor<1x7168xbf16>, tensor<512x7168xf32>, tensor<128x7168xf32>, tensor<3xf32>, tensor<4x4xi32>, tensor<16x4xi32>, tensor<4x4096xui8>
  }
}
