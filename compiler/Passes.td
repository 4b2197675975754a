#ifndef K31_COMPILER_PASSES_TD
#define K31_COMPILER_PASSES_TD
include "mlir/Pass/PassBase.td"

// The nine passes, in the order of the pipeline (compiler/Pipeline.cpp).

def AssignParallelism : Pass<"assign-parallelism", "::mlir::ModuleOp"> {
  let summary = "level 1: put the mesh on the module and refuse what it cannot hold";
  let options = [Option<"mesh", "mesh", "std::string", "\"\"", "tp=8,dp=2,ep=16,pp=1,node=8; empty: one rank">];
}

def ConvertK31ToOps : Pass<"convert-k31-to-ops", "::mlir::ModuleOp"> {
  let summary = "level 1 to 2: one function a bucket, per-rank static shapes, one shared body for equal layers";
  let description = "Reads k31.options (activations, kv_dtype, max_context, max_batch, prefill_chunk, logit_rows, sequence_parallel, mla, moe_exchange, target) and k31.mesh.";
}

def FuseOps : Pass<"fuse-ops", "::mlir::ModuleOp"> {
  let summary = "level 2: maps and rows into the ops next to them, gate and up into one paired product, products of the same rows into one";
}

def SelectKernels : Pass<"select-kernels", "::mlir::ModuleOp"> {
  let summary = "level 2: the best kernel, its Config and its split, as attribute k31.kernel on each op";
  let description = "Reads of k31.options transport and fuse_sums, and k31.mesh, where the module has them.";
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "cpu or sm_90a">];
}

def ConvertOpsToPlan : Pass<"convert-ops-to-plan", "::mlir::ModuleOp"> {
  let summary = "level 2 to 3: stacks to weights, pools to state members, ops to launches, bodies written out per layer";
  let description = [{
    Reads k31.model and k31.checkpoint for the plan's facts, k31.mesh, all of k31.options for its key, and of those cache_tokens,
    max_batch and max_context for its caches. Every op of level 2 must have k31.kernel. The four dictionaries are gone afterwards.
  }];
}

def Schedule : Pass<"schedule", "::mlir::ModuleOp"> {
  let summary = "level 3: streams and the events between them";
  let description = "Reads the target and the option overlap of plan.key, where the plan has one.";
}

def AssignMemory : Pass<"assign-memory", "::mlir::ModuleOp"> {
  let summary = "level 3: an offset for every buffer, by lifetime; arena sizes";
}

def CompileKernels : Pass<"compile-kernels", "::mlir::ModuleOp"> {
  let summary = "level 3: machine code for every plan.kernel";
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "cpu or sm_90a">,
                 Option<"cache", "cache", "std::string", "\"\"", "folder of compiled kernels, by content; empty: none">,
                 ListOption<"levels", "levels", "std::string", "processor levels of a host target; empty: all">];
}

def CheckPlan : Pass<"check-plan", "::mlir::ModuleOp"> {
  let summary = "level 3: nothing without memory or code, nothing outside its arena, no race between streams";
}
#endif
