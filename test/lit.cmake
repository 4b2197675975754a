# lit tests: `ninja check-lit`, or lit on the test folder of the build. A test that needs a tool which is not built is
# skipped only when it says so (REQUIRES: k31c).
find_package(Python3 REQUIRED COMPONENTS Interpreter)
# The end-to-end tests need numpy, which not every python3 on PATH has; Debian's package serves /usr/bin/python3.
set(K31_LIT_PYTHON ${Python3_EXECUTABLE})
foreach(candidate /usr/bin/python3 ${Python3_EXECUTABLE})
  execute_process(COMMAND ${candidate} -c "import numpy" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed EQUAL 0)
    set(K31_LIT_PYTHON ${candidate})
    break()
  endif()
endforeach()
set(K31_LIT_TOOLS "")
set(K31_LIT_TOOL_DIRS "")
foreach(tool k31-opt k31c k31-run k31-translate k31-e2e)
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
