"""Writes a folder as an archive that the kernel unpacks as its first file system (cpio, `newc`; the
kernel's Documentation/driver-api/early-userspace/buffer-format.rst).

    pack.py FOLDER > initramfs
"""

import os
import stat
import sys


def padding(length):
    return b"\0" * (-length % 4)


def entry(number, name, mode, data):
    name = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + b"".join(b"%08x" % field for field in fields) + name
    return header + padding(len(header)) + data + padding(len(data))


def main():
    root = sys.argv[1]
    paths = []
    for folder, folders, files in os.walk(root):
        paths += [os.path.join(folder, name) for name in folders + files]
    out = sys.stdout.buffer
    # Parents come before what is in them.
    for number, path in enumerate(sorted(paths), start=1):
        mode = os.lstat(path).st_mode
        data = b""
        if stat.S_ISREG(mode):
            with open(path, "rb") as file:
                data = file.read()
        out.write(entry(number, os.path.relpath(path, root), mode, data))
    out.write(entry(0, "TRAILER!!!", 0, b""))


main()
