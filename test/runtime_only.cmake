# The runtime configures and builds where no LLVM or MLIR can be found, and what it builds needs none.
#   cmake -DSOURCE=... -DBINARY=... -P runtime_only.cmake      BINARY is kept, so that a second run is quick
execute_process(
  COMMAND ${CMAKE_COMMAND} --fresh --preset runtime-only -S ${SOURCE} -B ${BINARY} -DK31_BUILD_TESTS=OFF
          -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON -DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON -DCMAKE_DISABLE_FIND_PACKAGE_LLD=ON
  WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE out ERROR_VARIABLE out RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the preset runtime-only does not configure:\n${out}")
endif()

# A compiler from /usr/lib/llvm-22/bin is no use of LLVM; its headers and libraries are.
file(STRINGS ${BINARY}/build.ninja used REGEX "llvm[^ ]*/include|libLLVM|libMLIR|libclang|liblld|mlir-tblgen")
if(used)
  message(FATAL_ERROR "the runtime uses the compiler's libraries: ${used}")
endif()

execute_process(COMMAND ${CMAKE_COMMAND} --build ${BINARY} --target k31-run
                OUTPUT_VARIABLE out ERROR_VARIABLE out RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "k31-run does not build:\n${out}")
endif()
execute_process(COMMAND ldd ${BINARY}/bin/k31-run OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
if(libraries MATCHES "LLVM|MLIR")
  message(FATAL_ERROR "k31-run is linked with the compiler's libraries:\n${libraries}")
endif()
execute_process(COMMAND ${BINARY}/bin/k31-run --help OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
