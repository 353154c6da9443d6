#!/usr/bin/env python3
"""Makes a wheel of the module that a build has made, installs it, and tests that.

  run_installed.py --source CHECKOUT --build FOLDER --kf-run FILE

FOLDER has kernelforge/_kernelforge*.so. The wheel and the environment that it is
installed in are made there, without the network: by this interpreter's packages,
which are scikit-build-core and numpy. Where one of them is missing, a line says
that the test is skipped.
"""

import argparse
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig


def run(*command, **options):
    command = list(map(str, command))
    code = subprocess.run(command, **options).returncode
    if code:
        sys.exit(f"exit status {code}: {' '.join(command)}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("source", "build", "kf-run"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    for package in ("pip", "scikit_build_core", "numpy"):
        if not importlib.util.find_spec(package):
            print(f"skipped: {sys.executable} has no {package}")
            return

    wheels, environment = arguments.build / "wheels", arguments.build / "installed"
    for folder in (wheels, environment):
        shutil.rmtree(folder, ignore_errors=True)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    offline = ("--no-index", "--no-deps")
    module = arguments.build.resolve() / "kernelforge"
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    is_stable = not (module / f"_kernelforge{suffix}").exists()
    run(
        *(*pip, "wheel", *offline, "--no-build-isolation", "-w", wheels),
        *("--config-settings", f"cmake.define.KF_PYTHON_PREBUILT={module}"),
        *("--config-settings", f"build-dir={arguments.build.resolve() / 'wheel'}"),
        # What pyproject.toml asks for is for compiling.
        *("--config-settings", "cmake.version=>=3.25"),
        *("--config-settings", f"wheel.py-api={'cp312' if is_stable else ''}"),
        arguments.source,
    )
    (wheel,) = wheels.glob("*.whl")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")

    run(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment.resolve() / "bin" / "python"
    (packages,) = environment.glob("lib/python*/site-packages")
    # numpy is taken from here.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(*pip, "--python", python, "install", *offline, wheel)
    run(
        *(
            python,
            "-m",
            "unittest",
            "discover",
            "-s",
            arguments.source.resolve() / "python/tests",
        ),
        cwd=environment,
        env={
            **os.environ,
            "KF_RUN": str(arguments.kf_run.resolve()),
            # Tests share no cache with the person who runs them.
            "XDG_CACHE_HOME": str(arguments.build.resolve() / "cache"),
        },
    )


if __name__ == "__main__":
    main()
