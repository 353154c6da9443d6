#!/usr/bin/env python3
"""Becomes a kf-run whose model has a name of 10,000 letters."""

import os

os.execvp("kf-run", ["kf-run", "generate", "m" * 10000, "-p", "x"])
