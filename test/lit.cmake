# lit tests: `ninja check-lit`, or lit on the test folder of the build. A test that needs a tool which is not built is
# skipped only when it says so (REQUIRES: k31c).
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(K31_LIT_TOOLS "")
set(K31_LIT_TOOL_DIRS "")
foreach(tool k31-opt k31c k31-run k31-translate)
  if(TARGET ${tool})
    list(APPEND K31_LIT_TOOLS ${tool})
    list(APPEND K31_LIT_TOOL_DIRS $<TARGET_FILE_DIR:${tool}>)
  endif()
endforeach()
set(tools ${K31_LIT_TOOLS})
list(JOIN K31_LIT_TOOLS " " K31_LIT_TOOLS)
list(JOIN K31_LIT_TOOL_DIRS " " K31_LIT_TOOL_DIRS)
configure_file(lit.site.cfg.py.in ${CMAKE_CURRENT_BINARY_DIR}/lit.site.cfg.py.gen @ONLY)
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/lit.site.cfg.py INPUT ${CMAKE_CURRENT_BINARY_DIR}/lit.site.cfg.py.gen)
add_custom_target(check-lit
  COMMAND ${LLVM_TOOLS_BINARY_DIR}/lit -sv ${CMAKE_CURRENT_BINARY_DIR}
  DEPENDS ${tools} USES_TERMINAL COMMENT "lit tests")
