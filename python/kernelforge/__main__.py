"""python -m kernelforge --version"""

import argparse

from . import __version__


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m kernelforge",
        description="The Python package of KernelForge: see help('kernelforge').",
    )
    parser.add_argument(
        "--version", action="version", version=f"kernelforge {__version__}"
    )
    parser.parse_args()
    parser.print_help()


if __name__ == "__main__":
    main()
