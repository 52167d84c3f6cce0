"""Runs a command, and writes to a file what it used: seconds, CPU seconds, peak memory in KiB, and its exit code.

usage: child.py FILE COMMAND [ARGUMENT ...]

Linux counts the peak memory of the process that starts a command as that of the command. The process of all experiments
holds reviews and models; this one holds nothing.
"""

import os
import sys
import time

figures, command = sys.argv[1], sys.argv[2:]
begin = time.monotonic()
process = os.posix_spawnp(command[0], command, os.environ)
_, status, used = os.wait4(process, 0)
wall_s = time.monotonic() - begin
with open(figures, "w") as file:
    print(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss, os.waitstatus_to_exitcode(status), file=file)
