#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a profile says of its events' counters: a line "VM EVENT COUNT ENABLED RUNNING" for each."""
import json
import sys

names, counts = {}, {}
data = open(sys.argv[1], "rb").read().decode("latin-1")
at = data.find('{"machine":')
while at >= 0:
    try:
        record, _ = json.JSONDecoder().raw_decode(data, at)
    except ValueError:
        record = {}
    if "name" in record:
        names[record["machine"]] = record["name"]
    if "events" in record:
        counts[record["machine"]] = record["events"]
    at = data.find('{"machine":', at + 1)
for machine, events in sorted(counts.items(), key=lambda c: names.get(c[0], "")):
    for event, c in events.items():
        print(names.get(machine, "-"), event, c["count"], c["enabled"], c["running"])
