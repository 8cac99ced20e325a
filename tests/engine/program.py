"""Runs one Pulumi program against an engine; language.py starts it as a process of its own.

A process for each run, as in real life: no module, event loop or setting is left from the last.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import runpy
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pulumi
from pulumi import log, runtime

# What the language host and this script agree on: the error has been shown, just stop.
ALREADY_REPORTED = 32


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("monitor", "engine", "project", "stack", "organization", "root", "pwd"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("program")
    found = parser.parse_args()

    runtime.set_all_config(runtime.get_config_env(), runtime.get_config_secret_keys_env())
    runtime.configure(
        runtime.Settings(
            project=found.project,
            stack=found.stack,
            monitor=found.monitor,
            engine=found.engine,
            parallel=found.parallel,
            dry_run=found.dry_run,
            organization=found.organization,
            root_directory=found.root,
        )
    )
    os.chdir(found.pwd)
    sys.argv = [found.program]
    # Futures that a failed program leaves behind are no news.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    return _run(found.program, max(found.parallel, 1))


def _program(program: str) -> None:
    runpy.run_path(program, run_name="__main__")


def _run(program: str, parallel: int) -> int:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    pool = ThreadPoolExecutor(max_workers=min(parallel, 16) * 4)
    loop.set_default_executor(pool)
    try:
        loop.run_until_complete(runtime.run_in_stack(partial(_program, program)))
    except pulumi.RunError as error:
        log.error(str(error))
        return 1
    except Exception:
        log.error(f"Program failed with an unhandled exception:\n{traceback.format_exc()}")
        return ALREADY_REPORTED
    else:
        return 0
    finally:
        pool.shutdown(wait=True)
        loop.close()


if __name__ == "__main__":
    sys.exit(main())
