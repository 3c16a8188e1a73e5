# SPDX-License-Identifier: Apache-2.0
"""A program outside the tree, as docs/your-program.md builds it: from an installed lockstep, by the template's Makefile. The
README's actor must compile too, as it stands there.
usage: own_program_test.py BUILD SOURCE COMPILER"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

from node import Node, run

build, source, compiler = sys.argv[1:]


def install(stage):
    run("meson", "install", "-C", build, "--no-rebuild", "--tags", "devel", "--destdir", stage)
    found = [path for path, _, files in os.walk(stage) if "lockstep.pc" in files]
    assert len(found) == 1, f"lockstep.pc in {found}"
    os.environ["PKG_CONFIG_PATH"] = found[0]
    prefix = run("pkg-config", "--variable=prefix", "lockstep").strip()
    return ["pkg-config", f"--define-variable=prefix={stage}{prefix}"]


def make(folder, *targets):
    done = subprocess.run(["make", "-C", folder, f"CXX={compiler}", "CXXFLAGS=-std=c++23 -O0 -Wall -Wextra -Werror",
                           f"PKG_CONFIG={' '.join(pkg_config)}", *targets],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


def template(folder):
    shutil.copytree(f"{source}/actors/examples/standalone", folder)
    make(folder, "all", "test")
    data = folder + "/data"
    with Node(folder + "/shelf", data) as node:
        said = run(folder + "/shelf_client", str(node.port("listen")))
        assert said == "add 5: 5 there\ntake 2: 3 there\ntake 9: refused, 3 there\nhow many: 3 there\n", said
        node.stop()
    run(folder + "/shelf", "replay", "verify", "--data", data, "--executors", "4")
    dump = run(folder + "/shelf", "journal", "dump", data, "1..end")
    assert "shelf.Take" in dump and "HowMany" not in dump, dump


def readme_actor(folder):
    os.mkdir(folder)
    with open(source + "/README.md") as file:
        (actor,) = re.findall(r"```cpp\n(.*?)```", file.read(), re.DOTALL)
    with open(folder + "/bank.cpp", "w") as file:
        file.write(actor)
    options = run(*pkg_config, "--variable=flatc_options", "lockstep").split()
    run("flatc", *options, "-o", folder, source + "/actors/examples/bank/bank.fbs")
    flags = run(*pkg_config, "--cflags", "lockstep").split()
    run(*compiler.split(), "-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *flags, folder + "/bank.cpp")


with tempfile.TemporaryDirectory(prefix="lockstep-own-") as work:
    pkg_config = install(work + "/stage")
    template(work + "/shelf")
    readme_actor(work + "/readme")
