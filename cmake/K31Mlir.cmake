# MLIR, LLVM and lld 22 from Debian: shared libraries, one precompiled header for every file that includes MLIR.
list(PREPEND CMAKE_PREFIX_PATH /usr/lib/llvm-22)
find_package(MLIR REQUIRED CONFIG)
find_package(LLD REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
separate_arguments(llvm_definitions NATIVE_COMMAND ${LLVM_DEFINITIONS})

# k31_mlir_library(NAME SOURCES...): a static library on top of the shared MLIR and LLVM.
# The imported targets carry no link interface, so both are always named.
function(k31_mlir_library name)
  add_library(${name} STATIC ${ARGN})
  k31_uses_mlir(${name})
endfunction()

function(k31_uses_mlir name)
  target_include_directories(${name} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_definitions(${name} PUBLIC ${llvm_definitions})
  target_link_libraries(${name} PUBLIC MLIR LLVM)
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_compile_options(${name} PRIVATE -fPIC)  # the precompiled header is PIC, and PIE is another mode to clang
  endif()
  if(NOT name STREQUAL "k31_mlir_pch")
    target_precompile_headers(${name} REUSE_FROM k31_mlir_pch)
  endif()
endfunction()

# Header parsing is nearly all of an MLIR file's compile time; this header is parsed once.
file(WRITE ${PROJECT_BINARY_DIR}/pch.cpp "")
add_library(k31_mlir_pch STATIC ${PROJECT_BINARY_DIR}/pch.cpp)
k31_uses_mlir(k31_mlir_pch)
target_precompile_headers(k31_mlir_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/mlir_pch.h)
