#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""qmp.py SOCKET COMMAND [KEY=VALUE...]: one QMP command; prints what it returns. Numbers are numbers."""

import json
import os
import socket
import sys


def value_of(text):
    try:
        return int(text, 0)
    except ValueError:
        return text


def main():
    path, command, *pairs = sys.argv[1:]
    arguments = {key: value_of(text) for key, _, text in (pair.partition("=") for pair in pairs)}
    os.chdir(os.path.dirname(path))  # a socket's path has room for 107 bytes
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        sock.connect(os.path.basename(path))
        stream = sock.makefile("rw")
        json.loads(stream.readline())  # greeting
        for name, args in (("qmp_capabilities", {}), (command, arguments)):
            stream.write(json.dumps({"execute": name, "arguments": args}) + "\n")
            stream.flush()
            while True:
                answer = json.loads(stream.readline())
                if "error" in answer:
                    sys.exit("qmp: %s: %s" % (name, answer["error"]["desc"]))
                if "return" in answer:
                    break
        print(json.dumps(answer["return"]))


main()
