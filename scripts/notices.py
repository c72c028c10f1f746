#!/usr/bin/env python3
"""Prints the licences of every crate that the program links, with their texts; the same text is printed once."""
import glob, hashlib, json, os, subprocess

described = json.loads(subprocess.check_output(
    ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]))
packages = {package["id"]: package for package in described["packages"]}
nodes = {node["id"]: node for node in described["resolve"]["nodes"]}
own = set(described["workspace_members"])
top = next(id for id in own if packages[id]["name"] == "acheron")

linked, open_ = set(), [top]
while open_:
    at = open_.pop()
    if at in linked:
        continue
    linked.add(at)
    for dep in nodes[at]["deps"]:
        # Neither tests nor what only runs while building.
        if any(kind["kind"] is None for kind in dep["dep_kinds"]):
            open_.append(dep["pkg"])

print("Acheron links the following crates. Each is followed by the names of its licence texts, which stand below.\n")
texts = {}
for id in sorted(linked - own, key=lambda id: (packages[id]["name"], packages[id]["version"])):
    package = packages[id]
    folder = os.path.dirname(package["manifest_path"])
    names = []
    for file in sorted(glob.glob(folder + "/*")):
        base = os.path.basename(file).upper()
        if base.startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE")) and os.path.isfile(file):
            with open(file, encoding="utf-8", errors="replace") as opened:
                text = opened.read().strip()
            key = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:12]
            texts.setdefault(key, text)
            names.append(key)
    authors = ", ".join(package["authors"]) or "its authors"
    print(f"{package['name']} {package['version']}, {package['license'] or 'see its text'}, by {authors}")
    if package.get("repository"):
        print(f"    {package['repository']}")
    print(f"    texts: {', '.join(names) or 'none in the crate; see the licence by its name'}")
for key, text in texts.items():
    print(f"\n{'=' * 100}\n{key}\n{'=' * 100}\n\n{text}")
