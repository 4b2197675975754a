// Reads and writes of a cache keep their order: cse must not merge reads across a write, nor drop a write.
// RUN: k31-opt --cse %s | FileCheck %s

attn.pool @keys members [0] : !attn.cache<index, [256, 16], bf16>

// CHECK-LABEL: func.func @order
func.func @order(%k: tensor<8x16xbf16>, %q: tensor<8x32xbf16>, %w: tensor<8x2xf32>, %layer: index,
                 %batch: !attn.batch<rows = 8, segments = 2, blocks = 4>) -> (tensor<8x6xi32>, tensor<8x6xi32>, tensor<8x6xi32>) {
  %keys = attn.cache @keys[%layer] : !attn.cache<index, [256, 16], bf16>
  // CHECK: [[A:%.+]] = attn.index_select
  // CHECK-NOT: attn.index_select
  // CHECK: attn.append
  // CHECK: [[B:%.+]] = attn.index_select
  // CHECK: return [[A]], [[A]], [[B]]
  %a = attn.index_select %q weights %w keys %keys, %batch heads 2 top_k 6
    : tensor<8x32xbf16>, tensor<8x2xf32>, !attn.cache<index, [256, 16], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  %b = attn.index_select %q weights %w keys %keys, %batch heads 2 top_k 6
    : tensor<8x32xbf16>, tensor<8x2xf32>, !attn.cache<index, [256, 16], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  attn.append %k to %keys at 0, %batch : tensor<8x16xbf16>, !attn.cache<index, [256, 16], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  %c = attn.index_select %q weights %w keys %keys, %batch heads 2 top_k 6
    : tensor<8x32xbf16>, tensor<8x2xf32>, !attn.cache<index, [256, 16], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  return %a, %b, %c : tensor<8x6xi32>, tensor<8x6xi32>, tensor<8x6xi32>
}
