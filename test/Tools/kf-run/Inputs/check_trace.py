"""Checks a trace of --profile: valid, and with emit-mlir's names of kernels.

check_trace.py TRACE TABLE MODULE...
"""

import json
import re
import sys

trace_path, table_path, *modules = sys.argv[1:]
events = json.load(open(trace_path))["traceEvents"]
known = set()
for path in modules:
    known |= set(re.findall(r"kf\.kernel @(\w+)", open(path).read()))
tracks = {
    event["tid"]: event["args"]["name"]
    for event in events
    if event["ph"] == "M" and event["name"] == "thread_name"
}
spans = [event for event in events if event["ph"] == "X"]
steps = [event for event in spans if tracks[event["tid"]] == "steps"]
stream = [event for event in spans if tracks[event["tid"]] == "stream of cpu"]
threads = [e for e in spans if tracks[e["tid"]].startswith("thread ")]
assert steps and stream and threads, tracks
assert len(spans) == len(steps) + len(stream) + len(threads), tracks
names = {event["name"] for event in stream}
assert names and names <= known, names - known
assert {event["name"] for event in threads} <= names
assert {event["name"] for event in steps} == {
    "body_1",
    "body_16",
    "head_1",
    "choose_1",
}, steps
assert "thread 0" in tracks.values()
# Dispatches lie within a step, and parts of threads within a dispatch.
slack = 2.0  # microseconds, for the digits that numbers have
for inner, outer in ((stream, steps), (threads, stream)):
    for event in inner:
        assert any(
            event["ts"] >= around["ts"] - slack
            and event["ts"] + event["dur"] <= around["ts"] + around["dur"] + slack
            for around in outer
        ), event
assert all(event["args"]["workgroups"] >= 1 for event in threads)
attention = [
    event
    for event in stream
    if "attention" in event["name"] and event["args"]["program"] == "body_1"
]
assert attention[-1]["args"]["bytes"] > attention[0]["args"]["bytes"] > 0

table = open(table_path).read()
rows = set(re.findall(r"^(\w+) +\d+ +[\d.]+ +[\d.]+%", table, re.M)) - {"all"}
assert rows == names, rows ^ names
