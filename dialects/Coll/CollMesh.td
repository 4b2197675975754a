#ifndef K31_COLL_MESH_TD
#define K31_COLL_MESH_TD
include "mlir/IR/EnumAttr.td"

// edp: the ranks of one expert group with equal tp coordinate, one a dp group that the expert group spans. node: its ranks on one
// host; rail: those at the same place of each of its hosts.
def Coll_Axis : I32EnumAttr<"Axis", "a mesh axis", [
  I32EnumAttrCase<"tp", 1>, I32EnumAttrCase<"dp", 2>, I32EnumAttrCase<"ep", 3>, I32EnumAttrCase<"pp", 4>,
  I32EnumAttrCase<"edp", 5>, I32EnumAttrCase<"node", 6>, I32EnumAttrCase<"rail", 7>]> {
  let cppNamespace = "::k31::coll";
}
def Coll_Transport : I32EnumAttr<"Transport", "who moves rows between ranks", [
  I32EnumAttrCase<"library", 0>, I32EnumAttrCase<"peer", 1>]> {
  let cppNamespace = "::k31::coll";
}
def Coll_ShardOf : I32EnumAttr<"ShardOf", "what of a weight the ranks of an axis share out", [
  I32EnumAttrCase<"rows", 0>, I32EnumAttrCase<"columns", 1>, I32EnumAttrCase<"members", 2>]> {
  let cppNamespace = "::k31::coll";
}
#endif
