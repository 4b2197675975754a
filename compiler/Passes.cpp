#include "compiler/Passes.h"
