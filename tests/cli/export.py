#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""export.py DIR [FORMAT...]: checks DIR/pprof, DIR/speedscope and DIR/firefox, or only these formats,
against what is published of them; then that each has the event counts of DIR/json (vmprof report --json)
and the stacks of DIR/folded.0, DIR/folded.1 ... (vmprof report --folded of each event there), the same
count for each stack. pprof is decoded here by its profile.proto."""
import gzip
import json
import sys
from decimal import Decimal


def read(path):
    data = open(path, "rb").read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def add(events, event, unit, stack, count):
    e = events.setdefault(event, {"unit": unit, "total": 0, "stacks": {}})
    e["total"] += count
    line = ";".join(name.replace(";", "\\x3b") for name in stack)
    if count:
        e["stacks"][line] = e["stacks"].get(line, 0) + count


# ---------- profile.proto ----------

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            assert shift <= 70
            return value, at


def fields(data):
    at, out = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            assert tag & 7 == 2, tag
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        out.append((tag >> 3, value))
    return out


def message(data, numbers=(), packed=(), repeated=()):
    """{field: value}; all fields are known ones, of the right kind."""
    out = {number: [] for number in (*packed, *repeated)}
    for number, value in fields(data):
        assert isinstance(value, int) == (number in numbers), (number, value)
        if number in packed:
            at = 0
            while at < len(value):
                item, at = varint(value, at)
                out[number].append(item)
        elif number in repeated:
            out[number].append(value)
        else:
            assert number not in out or number in numbers, number
            out[number] = value
    return out


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def pprof(data, names):
    top = message(data, numbers=(9, 10, 12, 13, 14), repeated=(1, 2, 3, 4, 5, 6, 11))
    strings = [s.decode("utf-8") for s in top[6]]
    assert strings[0] == "" and len(set(strings)) == len(strings)
    mappings, functions, locations = {}, {}, {}
    for m in top[3]:
        m = message(m, numbers=(1, 2, 3, 4, 5, 6, 7))
        mappings[m[1]] = m
        assert m.get(2, 0) < m[3] and strings[m.get(5, 0)] and m[7] == 1, m
        id = strings[m.get(6, 0)]
        assert len(id) in (0, 32, 40) and not id.strip("0123456789abcdef"), id
    assert sorted(mappings) == list(range(1, len(mappings) + 1))
    for f in top[5]:
        f = message(f, numbers=(1, 2, 3, 4, 5))
        assert f[1] not in functions
        functions[f[1]] = strings[f.get(2, 0)]
    for l in top[4]:
        l = message(l, numbers=(1, 2, 3), repeated=(4,))
        assert l[1] not in locations and l.get(2, 1) in mappings
        assert 2 not in l or l.get(3, 0) < mappings[l[2]][3]
        (line,) = l[4]
        locations[l[1]] = functions[message(line, numbers=(1,))[1]]
    types = [message(t, numbers=(1, 2)) for t in top[1]]
    types = [(strings[t[1]], strings[t[2]]) for t in types]
    assert all(unit in ("nanoseconds", "count") for _, unit in types) and types
    assert strings[top[14]] == types[0][0]
    events, seen = {}, set()
    for s in top[2]:
        s = message(s, packed=(1, 2), repeated=(3,))
        stack = [locations[l] for l in reversed(s[1])]
        labels = {}
        for label in s[3]:
            label = message(label, numbers=(1, 2, 3))
            labels[strings[label[1]]] = strings[label[2]] if 2 in label else signed(label.get(3, 0))
        assert set(labels) == {"vm", "comm", "pid"}, labels
        assert stack[0] == labels["vm"] and stack[1] == labels["comm"] or stack[0] == labels["comm"]
        key = (tuple(s[1]), tuple(labels.values()))
        assert key not in seen
        seen.add(key)
        assert len(s[2]) == len(types)
        for (event, unit), value in zip(types, s[2]):
            add(events, event, unit, stack, value)
    return events


# ---------- https://www.speedscope.app/file-format-schema.json ----------

def speedscope(data, names):
    root = json.loads(data.decode("utf-8"))
    assert root["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = root["shared"]["frames"]
    assert all(isinstance(f["name"], str) and set(f) <= {"name", "file"} for f in frames)
    assert len({(f["name"], f.get("file")) for f in frames}) <= len(frames)
    assert 0 <= root["activeProfileIndex"] < len(root["profiles"])
    events, profiles = {}, set()
    for p in root["profiles"]:
        assert p["type"] == "sampled" and p["unit"] in ("nanoseconds", "none")
        assert len(p["samples"]) == len(p["weights"]) > 0 and p["startValue"] == 0
        assert sum(p["weights"]) == p["endValue"]
        assert p["name"] not in profiles
        profiles.add(p["name"])
        vm, comma, event = p["name"].rpartition(", ")
        assert all(a != b for a, b in zip(p["samples"], p["samples"][1:]))
        for sample, weight in zip(p["samples"], p["weights"]):
            stack = ([vm] if comma else []) + [frames[i]["name"] for i in sample]
            add(events, event, "nanoseconds" if p["unit"] == "nanoseconds" else "count", stack, weight)
    return events


# ---------- github.com/firefox-devtools/profiler, src/types/profile.ts at version 60 ----------

COLUMNS = {
    "stackTable": {"frame": "frameTable", "prefix": "stackTable?"},
    "frameTable": {"address": int, "inlineDepth": int, "category": "categories", "subcategory": int,
                   "func": "funcTable", "nativeSymbol": None, "innerWindowID": None, "line": None,
                   "column": None},
    "funcTable": {"name": "stringArray", "isJS": bool, "relevantForJS": bool,
                  "resource": "resourceTable-", "source": None, "lineNumber": None,
                  "columnNumber": None},
    "resourceTable": {"lib": "libs", "name": "stringArray", "host": None, "type": int},
    "nativeSymbols": {"libIndex": "libs", "address": int, "name": "stringArray", "functionSize": int},
    "sources": {"uuid": None, "filename": "stringArray"},
}
COLORS = {"transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta",
          "red", "lightred", "darkgrey", "grey"}


def check_cell(value, kind, lengths):
    if kind is None or isinstance(kind, type):
        assert value is None if kind is None else type(value) is kind, (value, kind)
        return
    if (kind[-1] == "?" and value is None) or (kind[-1] == "-" and value == -1):
        return
    assert type(value) is int and 0 <= value < lengths[kind.rstrip("?-")], (value, kind)


def firefox(data, names):
    root = json.loads(data.decode("utf-8"), parse_float=Decimal)
    meta, shared = root["meta"], root["shared"]
    assert meta["preprocessedProfileVersion"] == 60 and meta["version"] > 30
    for key in "interval", "startTime":
        assert isinstance(meta[key], Decimal)
    assert meta["processType"] == 0 and meta["stackwalk"] == 1 and meta["markerSchema"] == []
    assert all(c["color"] in COLORS and c["subcategories"] for c in meta["categories"])
    assert any(c["color"] == "grey" for c in meta["categories"])
    for lib in root["libs"]:
        assert set(lib) == {"arch", "name", "path", "debugName", "debugPath", "breakpadId", "codeId"}
    lengths = {name: shared[name]["length"] for name in COLUMNS}
    lengths.update(stringArray=len(shared["stringArray"]), libs=len(root["libs"]),
                   categories=len(meta["categories"]))
    assert len(set(shared["stringArray"])) == lengths["stringArray"]
    for name, columns in COLUMNS.items():
        assert set(shared[name]) == {*columns, "length"}, name
        for column, kind in columns.items():
            assert len(shared[name][column]) == lengths[name], (name, column)
            for value in shared[name][column]:
                check_cell(value, kind, lengths)
    # stacks outermost first
    stacks = []
    for i, prefix in enumerate(shared["stackTable"]["prefix"]):
        assert prefix is None or prefix < i
        func = shared["frameTable"]["func"][shared["stackTable"]["frame"][i]]
        name = shared["stringArray"][shared["funcTable"]["name"][func]]
        stacks.append((stacks[prefix] if prefix is not None else []) + [name])
    events = {}
    for t in root["threads"]:
        s = t["samples"]
        assert isinstance(t["pid"], str) and t["markers"]["length"] == 0
        assert all(len(s[c]) == s["length"] for c in ("stack", "time", "weight"))
        assert s["time"] == sorted(s["time"]) and s["time"][0] >= 0
        assert s["time"][-1] < meta["profilingEndTime"]
        is_time = s["weightType"] == "tracing-ms"
        assert is_time == ("threadCPUDelta" in s) and s["weightType"] in ("tracing-ms", "samples")
        comm, event = t["name"], names[0]
        if len(names) > 1:
            comm, _, event = t["name"].rpartition(", ")
        vm = [t["processName"]] if ":" in t["tid"] else []
        for stack, weight in zip(s["stack"], s["weight"]):
            count = int(weight * 1000000) if is_time else weight
            add(events, event, "nanoseconds" if is_time else "count", vm + [comm] + stacks[stack], count)
    return events


def folded(path):
    return {line.rpartition(" ")[0] for line in open(path, encoding="utf-8", newline="\n")}


def main():
    where, formats = sys.argv[1], sys.argv[2:] or ["pprof", "speedscope", "firefox"]
    report = json.load(open(where + "/json", encoding="utf-8"))["events"]
    totals = {e["name"]: sum(row["event_count"] for row in e["rows"]) for e in report if e["rows"]}
    names = list(totals)
    stacks = {name: folded(f"{where}/folded.{i}") for i, name in enumerate(names)}
    first = None
    for name in formats:
        check = {"pprof": pprof, "speedscope": speedscope, "firefox": firefox}[name]
        found = check(read(f"{where}/{name}"), names)
        assert set(found) == set(totals), (name, set(found), totals)
        for event, e in found.items():
            assert e["total"] == totals[event], (name, event, e["total"], totals)
            # a stack whose samples count for nothing is in no sum
            assert set(e["stacks"]) <= stacks[event], (name, set(e["stacks"]) - stacks[event])
            assert not e["total"] or e["stacks"]
        first = first or found
        assert found == first, name
    print(" ".join(f"{event} {total}" for event, total in totals.items()))


if __name__ == "__main__":
    main()
