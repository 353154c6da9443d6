"""Runs kf-run with too little address space, and without new threads.

check_memory_limits.py KF_RUN FOLDER EXEC_FILE
"""
import os
import resource
import signal
import subprocess
import sys

kf_run, folder, exec_file = sys.argv[1:]
MIB = 1 << 20
LEAST, MOST, STEP = 16 * MIB, 2048 * MIB, 4 * MIB


def run(arguments, limits, user=None):
    def prepare():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for which, value in limits.items():
            resource.setrlimit(which, (value, value))
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

    return subprocess.run(
        [kf_run, *arguments],
        preexec_fn=prepare,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=300,
    )


def is_loaded(done):
    """Not by the dynamic linker, which has errors of its own."""
    return done.returncode != 127 or b"shared librar" not in done.stderr


def is_ended_by_libc(done):
    """The C library has the last word where it finds no memory for a destructor
    of a thread's variable, which MLIR's caches are: it takes that from no
    allocator of the program's. One limit of some thousands is such a one."""
    return b"Fatal glibc error: failed to register TLS destructor" in done.stderr


def least(arguments, condition):
    """The least limit of address space with which `condition` holds."""
    low, high = LEAST, MOST
    while high - low > STEP:
        middle = (low + high) // 2
        if condition(run(arguments, {resource.RLIMIT_AS: middle})):
            high = middle
        else:
            low = middle
    return high


def check(arguments, limits, done):
    what = (arguments, limits, done.returncode, done.stdout[-200:], done.stderr)
    assert done.returncode in (0, 1), what
    lines = done.stderr.decode().splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == done.returncode, what
    if errors:
        assert lines[-1] == errors[0], what
        assert all(line.startswith("warning: ") for line in lines[:-1]), what


# A text is measured before it is copied.
large = os.path.join(folder, "large.mlir")
with open(large, "w") as file:
    file.truncate(5 << 30)
done = run(["exec", large], {resource.RLIMIT_AS: 7 << 30})
os.remove(large)
assert done.returncode == 1 and b"is longer than 67108864 bytes" in done.stderr, done

# Between the limit with which a command can begin and the one with which it is
# done, at odd distances, so that memory ends in another place each time.
out = os.path.join(folder, "out.gguf")
all_failures = 0
# Below that, what comes before main() ends by faults of its own.
loads = least(["--version"], lambda done: done.returncode == 0) + STEP
for arguments, count in (
    (["inspect"], 8),
    (["quantize", out, "--type", "q4_0"], 8),
    (["exec", exec_file, "--function=two", *["--input=2x2xf32=1,2,3,4"] * 2], 16),
    (["generate", "--prompt=Once", "-n3", "-t2", "--no-cache"], 16),
    (["generate", "--prompt=Once", "-n3", "-t2"], 8),
):
    if arguments[0] == "generate":  # with and without programs in the cache
        run(arguments, {})

    def succeeds(done):
        if os.path.exists(out):
            os.remove(out)
        return done.returncode == 0

    enough = max(least(arguments, succeeds), loads)
    for i in range(count):
        limit = loads + (enough - loads) * i // count + i * 12288
        limits = {resource.RLIMIT_AS: limit}
        done = run(arguments, limits)
        if not is_loaded(done) or is_ended_by_libc(done):
            continue
        check(arguments, limits, done)
        all_failures += done.returncode
        assert done.returncode == 0 or not os.path.exists(out), limits
        if os.path.exists(out):
            os.remove(out)
# Some commands are done with what the program takes to begin, but not those
# that compile.
assert all_failures > 16, all_failures

# The handler that tells faults for want of memory is no shield from a signal
# that somebody sends.
with subprocess.Popen(
    [kf_run, "chat"],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
) as process:
    process.stdin.write(b"/help\n")
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGSEGV)
    try:
        assert process.wait(timeout=300) == -signal.SIGSEGV, process.returncode
    finally:
        process.kill()

# Limits of processes are not root's; an unprivileged user may be unable to
# reach the build.
user = 65534 if os.getuid() == 0 else None
arguments = ["generate", "--prompt=Once", "-n3", "-t4", "--no-cache"]
try:
    done = run(arguments, {resource.RLIMIT_NPROC: 1}, user)
except PermissionError:
    sys.exit(0)
assert done.returncode == 1 and done.stderr == (
    b"error: cannot start thread 2 of 4: Resource temporarily unavailable; "
    b"use fewer threads\n"
), done
