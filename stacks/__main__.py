"""The Pulumi program of every stack: what its lock holds, and how to reach it."""

from gputier.program import main

main()
