// A sum by peer and the row op behind it as one op: where --fuse-sums and the target want it and it is possible.
// RUN: sed 's/WISH/on/' %s | k31-opt --select-kernels=target=cpu | FileCheck %s --check-prefixes=ON,HOST
// RUN: sed 's/WISH/on/' %s | k31-opt --select-kernels=target=sm_90a | FileCheck %s --check-prefixes=ON,CUDA
// RUN: sed 's/WISH/auto/' %s | k31-opt --select-kernels=target=sm_90a | FileCheck %s --check-prefix=FEW
// RUN: sed 's/WISH/auto/' %s | k31-opt --select-kernels=target=cpu | FileCheck %s --check-prefix=AUTO
// RUN: sed 's/WISH/off/' %s | k31-opt --select-kernels=target=cpu | FileCheck %s --check-prefix=OFF
// RUN: sed 's/WISH/on/; s/"peer"/"library"/' %s | k31-opt --select-kernels=target=cpu | FileCheck %s --check-prefix=LIBRARY
// RUN: sed 's/WISH/maybe/' %s | not k31-opt --select-kernels=target=cpu 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: k31.options: fuse_sums is "maybe", expected auto, on, off
// AUTO-NOT: coll.sum_row
// OFF-NOT: coll.sum_row
// LIBRARY-NOT: coll.sum_row
// LIBRARY-NOT: "apart"
module attributes {k31.mesh = {tp = 4 : i64, dp = 1 : i64, ep = 4 : i64, pp = 1 : i64, node = 4 : i64}, k31.options = {transport = "peer", fuse_sums = "WISH"}} {
  // Others read the sum in front of the row op, which moves up to it.
  // ON-LABEL: func.func @norm
  // ON: [[S:%.+]], [[Y:%.+]] = coll.sum_row ["rms_norm"] of %arg0 over tp size 4 at 1 live %arg1(%arg2) attributes {k31.kernel = {
  // HOST-SAME: config = {at = 1 : i64, peer = {ranks = 4 : i64, region = 16384 : i64, words = 896 : i64}, row = {cols = 7168 : i64, inputs = 2 : i64, kind = array<i32: 2>,
  // HOST-SAME: rows = 4 : i64}, name = "coll.sum_row", tasks = 1 : i64
  // CUDA-SAME: block = 896 : i64, config = {at = 1 : i64, peer = {blocks = 128 : i64, ranks = 4 : i64, region = 2048 : i64, words = 896 : i64}, row = {cols = 7168 : i64, inputs = 2 : i64, kind = array<i32: 2>,
  // CUDA-SAME: rows = 4 : i64}, grid = array<i32: 4, 1, 1>, name = "coll.sum_row"
  // ON-SAME: about = "transport"{{.*}} choice = "peer"
  // ON-SAME: about = "fusion", choice = "rms_norm into coll.all_reduce", reason = "a launch less; what a block has summed of 57344 bytes goes on in it, and is stored for others"
  // ON: [[G:%.+]] = coll.all_gather [[S]]
  // ON-NEXT: return [[Y]], [[G]]
  // FEW-LABEL: func.func @norm
  // FEW: coll.sum_row
  // AUTO-LABEL: func.func @norm
  // AUTO: nn.row ["rms_norm"]
  // AUTO-SAME: about = "apart", choice = "rms_norm from coll.all_reduce", reason = "a launch of the host costs less than what its other threads give the row op"
  // OFF: nn.row ["rms_norm"]
  // OFF-SAME: about = "apart", choice = "rms_norm from coll.all_reduce", reason = "asked for by --fuse-sums"
  func.func @norm(%x: tensor<4x7168xbf16>, %live: tensor<1xi32>, %gain: tensor<7168xf32>) -> (tensor<4x7168xbf16>, tensor<16x7168xbf16>) {
    %s = coll.all_reduce %x over tp size 4 : tensor<4x7168xbf16>
    %g = coll.all_gather %s over tp size 4 : tensor<4x7168xbf16>
    %y = nn.row ["rms_norm"] live %live (%gain, %s) {
    ^bb0(%w: f32, %v: f32):
      %q = arith.mulf %v, %v : f32
      %m = nn.sum %q : f32
      %r = math.rsqrt %m : f32
      %n = arith.mulf %v, %r : f32
      %o = arith.mulf %n, %w : f32
      nn.yield %o : f32
    } : (tensor<1xi32>, tensor<7168xf32>, tensor<4x7168xbf16>) -> tensor<4x7168xbf16>
    return %y, %g : tensor<4x7168xbf16>, tensor<16x7168xbf16>
  }

  // Nobody reads the share of a sum in front of the addition: the sum moves down to it, behind its other operand.
  // ON-LABEL: func.func @add_to_share
  // ON: [[O:%.+]] = nn.map ["neg"]
  // ON: %{{.+}}, [[Y:%.+]] = coll.sum_row ["add"] of %arg0 over tp size 4 scatter at 0 live %arg1([[O]])
  // HOST-SAME: peer = {form = 3 : i64,
  // HOST-SAME: rows = 2 : i64}
  // ON: return [[Y]]
  func.func @add_to_share(%x: tensor<8x32xf32>, %live: tensor<1xi32>, %prefix: tensor<2x32xf32>) -> tensor<2x32xf32> {
    %s = coll.reduce_scatter %x over tp size 4 : tensor<8x32xf32>
    %o = nn.map ["neg"] live %live (%prefix) {
    ^bb0(%v: f32):
      %n = arith.negf %v : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<2x32xf32>) -> tensor<2x32xf32>
    %y = nn.map ["add"] live %live (%s, %o) {
    ^bb0(%v: f32, %w: f32):
      %n = arith.addf %v, %w : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<2x32xf32>, tensor<2x32xf32>) -> tensor<2x32xf32>
    return %y : tensor<2x32xf32>
  }

  // What the second sum adds up is the result of a row op that went into the first.
  // ON-LABEL: func.func @one_behind_the_other
  // ON: %{{.+}}, [[A:%.+]] = coll.sum_row ["neg"] of %arg0 over tp size 4 at 0
  // ON: %{{.+}}, [[B:%.+]] = coll.sum_row ["neg"] of [[A]] over tp size 4 scatter at 0
  // ON: return [[B]]
  func.func @one_behind_the_other(%x: tensor<8x32xf32>, %live: tensor<1xi32>) -> tensor<2x32xf32> {
    %s = coll.all_reduce %x over tp size 4 : tensor<8x32xf32>
    %a = nn.map ["neg"] live %live (%s) {
    ^bb0(%v: f32):
      %n = arith.negf %v : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<8x32xf32>) -> tensor<8x32xf32>
    %t = coll.reduce_scatter %a over tp size 4 : tensor<8x32xf32>
    %b = nn.map ["neg"] live %live (%t) {
    ^bb0(%v: f32):
      %n = arith.negf %v : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<2x32xf32>) -> tensor<2x32xf32>
    return %b : tensor<2x32xf32>
  }

  // ON-LABEL: func.func @read_before
  // ON: coll.all_reduce
  // ON: nn.map ["add"] live %arg1(
  // ON-SAME: reason = "others read the sum before the rest of its operands is known"
  func.func @read_before(%x: tensor<4x32xf32>, %live: tensor<1xi32>) -> tensor<4x32xf32> {
    %s = coll.all_reduce %x over tp size 4 : tensor<4x32xf32>
    %g = coll.all_gather %s over tp size 4 : tensor<4x32xf32>
    %p, %own = coll.own_rows %g live %live at %live size 4 : tensor<16x32xf32>, tensor<1xi32>, tensor<1xi32>
    %y = nn.map ["add"] live %live (%s, %p) {
    ^bb0(%v: f32, %w: f32):
      %n = arith.addf %v, %w : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
    return %y : tensor<4x32xf32>
  }

  // ON-LABEL: func.func @not_by_element
  // ON: nn.map ["scale"]
  // ON-SAME: reason = "it does not read the sum element by element"
  // ON: nn.map ["square"]
  // ON-SAME: reason = "it reads the sum twice"
  func.func @not_by_element(%x: tensor<4x1xf32>, %z: tensor<4x32xf32>, %live: tensor<1xi32>) -> (tensor<4x32xf32>, tensor<4x32xf32>) {
    %s = coll.all_reduce %x over tp size 4 : tensor<4x1xf32>
    %y = nn.map ["scale"] live %live (%s, %z) {
    ^bb0(%v: f32, %w: f32):
      %n = arith.mulf %v, %w : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<4x1xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
    %t = coll.all_reduce %z over tp size 4 : tensor<4x32xf32>
    %u = nn.map ["square"] live %live (%t, %t) {
    ^bb0(%v: f32, %w: f32):
      %n = arith.mulf %v, %w : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
    return %y, %u : tensor<4x32xf32>, tensor<4x32xf32>
  }

  // ON-LABEL: func.func @rows_of_other_lengths
  // ON: nn.map ["neg"]
  // ON-SAME: reason = "rows of 8 bytes are no whole words of 16"
  // ON: nn.map ["neg"]
  // HOST-SAME: reason = "a row has 262160 bytes, of which a block writes 262144 at a time"
  // CUDA-SAME: reason = "a row has 262160 bytes, of which a block writes 32768 at a time"
  // ON: nn.map ["neg"]
  // ON-SAME: reason = "a long sum goes by pieces, and rows come back whole only at its end"
  func.func @rows_of_other_lengths(%x: tensor<4x4xbf16>, %y: tensor<4x131080xbf16>, %z: tensor<512x7168xf32>, %live: tensor<1xi32>)
      -> (tensor<4x4xbf16>, tensor<1x131080xbf16>, tensor<512x7168xf32>) {
    %s = coll.all_reduce %x over tp size 4 : tensor<4x4xbf16>
    %a = nn.map ["neg"] live %live (%s) {
    ^bb0(%v: f32):
      %n = arith.negf %v : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
    %t = coll.reduce_scatter %y over tp size 4 : tensor<4x131080xbf16>
    %b = nn.map ["neg"] live %live (%t) {
    ^bb0(%v: f32):
      %n = arith.negf %v : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<1x131080xbf16>) -> tensor<1x131080xbf16>
    %u = coll.all_reduce %z over tp size 4 : tensor<512x7168xf32>
    %c = nn.map ["neg"] live %live (%u) {
    ^bb0(%v: f32):
      %n = arith.negf %v : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<512x7168xf32>) -> tensor<512x7168xf32>
    return %a, %b, %c : tensor<4x4xbf16>, tensor<1x131080xbf16>, tensor<512x7168xf32>
  }

  // ON-LABEL: func.func @many_rows
  // ON: coll.sum_row ["neg"]
  // CUDA-SAME: block = 128 : i64, {{.*}} grid = array<i32: 128, 1, 1>
  // HOST: coll.sum_row ["neg"]
  // CUDA: nn.map ["neg"]
  // CUDA-SAME: reason = "160 rows, one a block, and of blocks that wait for their peers 128 run at once"
  // FEW-LABEL: func.func @many_rows
  // FEW: nn.map ["neg"]
  // FEW-SAME: reason = "128 rows: a launch less saves little"
  func.func @many_rows(%x: tensor<128x1024xbf16>, %y: tensor<160x1024xbf16>, %live: tensor<1xi32>) -> (tensor<128x1024xbf16>, tensor<160x1024xbf16>) {
    %s = coll.all_reduce %x over tp size 4 : tensor<128x1024xbf16>
    %a = nn.map ["neg"] live %live (%s) {
    ^bb0(%v: f32):
      %n = arith.negf %v : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<128x1024xbf16>) -> tensor<128x1024xbf16>
    %t = coll.all_reduce %y over tp size 4 : tensor<160x1024xbf16>
    %b = nn.map ["neg"] live %live (%t) {
    ^bb0(%v: f32):
      %n = arith.negf %v : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<160x1024xbf16>) -> tensor<160x1024xbf16>
    return %a, %b : tensor<128x1024xbf16>, tensor<160x1024xbf16>
  }
}
