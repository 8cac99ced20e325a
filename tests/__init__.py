"""Tests share helpers by `from tests.… import …`: a regular package, since some wheels ship one."""
