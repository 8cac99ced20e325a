"""Tests share helpers by `from tests.… import …`; a regular package, because some wheels ship one too."""
