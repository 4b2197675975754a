# Settings that every target of the project shares.
set(CMAKE_CXX_STANDARD 20)  # MLIR 22 headers do not compile as C++23 with libstdc++ 12
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_package(Threads REQUIRED)

# Everything is included from the repository root; generated files mirror the tree under the build folder.
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
if(K31_SANITIZE)
  list(JOIN K31_SANITIZE "," sanitizers)
  add_compile_options(-fsanitize=${sanitizers} -fno-omit-frame-pointer -gline-tables-only)
  add_link_options(-fsanitize=${sanitizers})
endif()
