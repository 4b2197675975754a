#!/usr/bin/env python3
"""Prints "passed failed skipped" of a JUnit file; a file that is missing or broken counts as one failure."""
import sys
import xml.etree.ElementTree as tree

passed = failed = skipped = 0
try:
    for case in tree.parse(sys.argv[1]).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
except (OSError, tree.ParseError) as problem:
    print(f"count_tests: {problem}", file=sys.stderr)
    failed += 1
print(passed, failed, skipped)
