// RUN: k31-translate --mlir-to-plan %s -split-input-file -verify-diagnostics -o /dev/null

// expected-error@+1 {{the plan has 2 plan.key, expected one}}
module {
  plan.key "k31c test" target "cpu" options {} checkpoint "c0" digest "d0"
  plan.key "k31c test" target "cpu" options {} checkpoint "c1" digest "d1"
}

// -----

// expected-error@+1 {{the plan has 2 plan.mesh, expected one}}
module {
  plan.key "k31c test" target "cpu" options {} checkpoint "c0" digest "d0"
  plan.mesh tp 1 dp 1 ep 1 pp 1 node 1
  plan.mesh tp 2 dp 1 ep 1 pp 1 node 1
}

// -----

// expected-error@+1 {{the plan has 0 plan.model, expected one}}
module {
  plan.key "k31c test" target "cpu" options {} checkpoint "c0" digest "d0"
  plan.mesh tp 1 dp 1 ep 1 pp 1 node 1
}
