"""The tests of `landed`: a package, so that one test file may use another's helpers."""
