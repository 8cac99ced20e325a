"""The command line: one file per command, each loaded when it runs (docs/cli.md)."""
