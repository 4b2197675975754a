// assign-parallelism: defaults and the meshes that are refused.
// RUN: k31-opt --assign-parallelism %s | FileCheck %s
// RUN: k31-opt --assign-parallelism=mesh=tp=1,ep=1,node=1 %s | FileCheck %s
// RUN: k31-opt --assign-parallelism=mesh=tp=2 %s | FileCheck %s --check-prefix=TWO
// RUN: k31-opt --assign-parallelism=mesh=tp=4,ep=2,node=2 %s | FileCheck %s --check-prefix=COPIES
// RUN: k31-opt --assign-parallelism=mesh=tp=8,ep=16,node=8 %s | FileCheck %s --check-prefix=SIXTEEN
// RUN: k31-opt --assign-parallelism=mesh=ep=6 %s | FileCheck %s --check-prefix=SIX
// RUN: k31-opt --assign-parallelism=mesh=tp=2,ep=2,pp=2 %s | FileCheck %s --check-prefix=FOUR
// RUN: not k31-opt --assign-parallelism=mesh=tp=4,dp=1,ep=3 %s 2>&1 | FileCheck %s --check-prefix=UNEVEN
// RUN: not k31-opt --assign-parallelism=mesh=tp=4,dp=3,ep=6 %s 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: not k31-opt --assign-parallelism=mesh=tp=4,node=3 %s 2>&1 | FileCheck %s --check-prefix=NODE
// RUN: not k31-opt --assign-parallelism=mesh=cp=2 %s 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not k31-opt --assign-parallelism=mesh=tp=0 %s 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not k31-opt --assign-parallelism=mesh=tp=256,dp=512 %s 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not k31-opt --assign-parallelism=mesh=tp=1,tp=1 %s 2>&1 | FileCheck %s --check-prefix=TWICE

// CHECK: k31.mesh = {dp = 1 : i64, ep = 1 : i64, node = 1 : i64, pp = 1 : i64, tp = 1 : i64}
// TWO: k31.mesh = {dp = 1 : i64, ep = 2 : i64, node = 2 : i64, pp = 1 : i64, tp = 2 : i64}
// COPIES: k31.mesh = {dp = 1 : i64, ep = 2 : i64, node = 2 : i64, pp = 1 : i64, tp = 4 : i64}
// SIXTEEN: k31.mesh = {dp = 2 : i64, ep = 16 : i64, node = 8 : i64, pp = 1 : i64, tp = 8 : i64}
// SIX: k31.mesh = {dp = 6 : i64, ep = 6 : i64, node = 6 : i64, pp = 1 : i64, tp = 1 : i64}
// FOUR: k31.mesh = {dp = 1 : i64, ep = 2 : i64, node = 4 : i64, pp = 2 : i64, tp = 2 : i64}
// UNEVEN: ep=3 does not divide the 4 ranks of a stage (tp x dp)
// HALF: ep=6 and tp=4: a group of experts holds whole tp groups or lies inside one, so one must divide the other
// NODE: node=3 does not divide the 4 ranks
// AXIS: --mesh cp=2: no axis "cp", expected tp, dp, ep, pp or node
// MANY: --mesh tp=256,dp=512: 131072 ranks, at most 65536 are possible
// ZERO: tp is "0", expected an integer from 1 to
// TWICE: tp is given twice
module {}
