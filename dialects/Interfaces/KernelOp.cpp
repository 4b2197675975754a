#include "dialects/Interfaces/KernelOp.h"

#include "dialects/Interfaces/KernelOp.cpp.inc"
