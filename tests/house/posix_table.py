# Everything that ordinary programs do to a directory, attempt by attempt. Run on a directory of the disk, on the same one
# bound by the kernel and on the same one mirrored: all say the same.

def renameat2(old, new, flags):
    if libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags) != 0:
        raise OSError(ctypes.get_errno(), "")

def close(fd): os.close(fd)

def mapped():
    with open("map", "w+b") as f:
        f.truncate(8192)
        with mmap.mmap(f.fileno(), 8192) as m:
            m[0:3] = b"abc"
            m[8000:8003] = b"xyz"
            m.flush()
            f.seek(0)
            return f.read(3) + get("map")[8000:8003]

def mapped_after_append():
    fd = os.open("map", os.O_RDWR | os.O_APPEND)
    with mmap.mmap(fd, 8192) as m: m[10:12] = b"in"
    os.close(fd)
    return (os.stat("map").st_size, get("map")[10:12])

def flocked():
    with open("file") as a, open("file") as b:
        fcntl.flock(a, fcntl.LOCK_EX)
        fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB)

def posix_locked():
    with open("file", "r+b") as f:
        fcntl.lockf(f, fcntl.LOCK_EX, 10, 0)
        child = os.fork()
        if child == 0:
            with open("file", "r+b") as g:
                try: fcntl.lockf(g, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 5)
                except OSError as fault: os._exit(fault.errno)
                os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        fcntl.lockf(f, fcntl.LOCK_UN)
        return errno.errorcode[code]

def unlinked():
    with open("doomed", "w+b") as f:
        f.write(b"still here"); f.flush()
        os.unlink("doomed")
        f.seek(0)
        said = (f.read(), os.fstat(f.fileno()).st_nlink, os.path.exists("doomed"))
        f.truncate(5); os.fchmod(f.fileno(), 0o600)
        return said + (os.fstat(f.fileno()).st_size, oct(os.fstat(f.fileno()).st_mode))

def renamed_while_open():
    with open("a", "w+b") as f:
        f.write(b"one"); f.flush()
        os.rename("a", "b")
        f.write(b" two"); f.flush()
        return (get("b"), os.fstat(f.fileno()).st_ino == os.stat("b").st_ino)

def replaced_while_open():
    put("old", b"old"); put("new", b"new")
    with open("old", "rb") as f:
        os.rename("new", "old")
        return (f.read(), get("old"), os.fstat(f.fileno()).st_nlink)

def appended():
    put("log", b"")
    with open("log", "ab", 0) as a, open("log", "ab", 0) as b:
        a.write(b"1"); b.write(b"2"); a.write(b"3")
    return get("log")

def sparse():
    with open("sparse", "wb") as f: f.seek(1 << 20); f.write(b"end")
    fd = os.open("sparse", os.O_RDONLY)
    said = (os.lseek(fd, 0, os.SEEK_DATA), os.lseek(fd, 0, os.SEEK_HOLE), os.stat("sparse").st_blocks < 100)
    os.close(fd)
    return said

def allocated():
    fd = os.open("room", os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(fd, 0, 10000)
    os.close(fd)
    return os.stat("room").st_size

def masked():
    before = os.umask(0)
    try:
        os.close(os.open("open", os.O_CREAT | os.O_WRONLY, 0o666)); os.mkdir("wide", 0o777)
        os.umask(0o077)
        os.close(os.open("tight", os.O_CREAT | os.O_WRONLY, 0o666)); os.mkdir("narrow", 0o777)
    finally: os.umask(before)
    return [oct(os.stat(name).st_mode) for name in ("open", "wide", "tight", "narrow")]

def times():
    os.utime("file", ns=(1_000_000_007, 1_500_000_000_123_456_789))
    now = os.stat("file")
    return (now.st_atime_ns, now.st_mtime_ns)

def one_time():
    before = os.stat("file").st_mtime_ns
    UTIME_OMIT = (1 << 30) - 2
    spec = (ctypes.c_long * 4)(5, 6, 0, UTIME_OMIT)
    if libc.utimensat(-100, b"file", spec, 0) != 0: raise OSError(ctypes.get_errno(), "")
    return (os.stat("file").st_atime_ns, os.stat("file").st_mtime_ns == before)

def far(seconds):
    spec = (ctypes.c_long * 4)(seconds, 5, seconds, 5)
    if libc.utimensat(-100, b"file", spec, 0) != 0: raise OSError(ctypes.get_errno(), "")
    return os.stat("file").st_mtime_ns

def link_times():
    os.utime("soft", ns=(3, 4), follow_symlinks=False)
    return (os.lstat("soft").st_mtime_ns, os.stat("soft").st_mtime_ns != 4)

def attributes():
    os.setxattr("file", "user.a", b"1"); os.setxattr("file", "user.b", b"two")
    said = [os.getxattr("file", "user.b"), sorted(name for name in os.listxattr("file") if name.startswith("user."))]
    os.removexattr("file", "user.a")
    return said + [sorted(name for name in os.listxattr("file") if name.startswith("user."))]

def socketed():
    s = socket.socket(socket.AF_UNIX); s.bind("sock"); s.close()
    return stat.S_ISSOCK(os.lstat("sock").st_mode)

def piped():
    os.mkfifo("pipe")
    r = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK); w = os.open("pipe", os.O_WRONLY)
    os.write(w, b"through")
    said = os.read(r, 100)
    os.close(r); os.close(w)
    return (said, stat.S_ISFIFO(os.stat("pipe").st_mode))

def odd_names():
    names = [b"\xff\xfe", "é".encode(), b"new\nline", b" ", b"-", b"a" * 255]
    for name in names: put(name, name)
    said = [get(name) == name and name in os.listdir(b".") for name in names]
    for name in names: os.unlink(name)
    return said

def emptied():
    os.mkdir("full")
    for n in range(500): put("full/%d" % n)
    for entry in os.scandir("full"): os.unlink(entry.path)
    os.rmdir("full")

def gone_directory():
    os.mkdir("gone"); fd = os.open("gone", os.O_RDONLY); os.rmdir("gone")
    try: os.close(os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    finally: os.close(fd)

def copied():
    put("from", b"z" * 100000)
    src, dst = os.open("from", os.O_RDONLY), os.open("to", os.O_CREAT | os.O_WRONLY)
    left = 100000
    while left: left -= os.copy_file_range(src, dst, left)
    os.close(src); os.close(dst)
    return get("to") == get("from")

def big():
    data = os.urandom(3 << 20)
    put("big", data)
    return (get("big") == data, os.pread(os.open("big", os.O_RDONLY), 10, 1 << 21) == data[1 << 21:(1 << 21) + 10])

for what, act in [
    # open
    ("create", lambda: put("file", b"hello")),
    ("create exclusive", lambda: os.open("file", os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
    ("open missing", lambda: os.open("missing", os.O_RDONLY)),
    ("open below a file", lambda: os.open("file/x", os.O_RDONLY)),
    ("open with a slash", lambda: os.open("file/", os.O_RDONLY)),
    ("create below missing", lambda: put("missing/file")),
    ("open a directory to write", lambda: os.open(".", os.O_WRONLY)),
    ("create over a directory", lambda: os.open(".", os.O_CREAT | os.O_RDWR)),
    ("open as a directory", lambda: os.open("file", os.O_RDONLY | os.O_DIRECTORY)),
    ("long name", lambda: put("n" * 256)),
    ("long path", lambda: put("n/" * 2048 + "x")),
    ("empty name", lambda: os.open("", os.O_RDONLY)),
    ("cut while opening", lambda: (close(os.open("file", os.O_WRONLY | os.O_TRUNC)), os.stat("file").st_size)[1]),
    ("write again", lambda: put("file", b"hello")),
    ("read what is open to write", lambda: os.read(os.open("file", os.O_WRONLY), 1)),
    ("write what is open to read", lambda: os.write(os.open("file", os.O_RDONLY), b"x")),
    ("read behind the end", lambda: os.pread(os.open("file", os.O_RDONLY), 10, 100)),
    ("read a directory", lambda: os.read(os.open(".", os.O_RDONLY), 10)),
    ("masks", masked),
    # mkdir, rmdir
    ("mkdir", lambda: os.mkdir("dir")),
    ("mkdir again", lambda: os.mkdir("dir")),
    ("mkdir over a file", lambda: os.mkdir("file")),
    ("mkdir below missing", lambda: os.mkdir("missing/dir")),
    ("mkdir below a file", lambda: os.mkdir("file/dir")),
    ("mkdir with a long name", lambda: os.mkdir("n" * 256)),
    ("links of a directory", lambda: (os.mkdir("dir/sub"), os.stat("dir").st_nlink, os.rmdir("dir/sub"))[1]),
    ("put in it", lambda: put("dir/inner")),
    ("rmdir full", lambda: os.rmdir("dir")),
    ("rmdir a file", lambda: os.rmdir("file")),
    ("rmdir missing", lambda: os.rmdir("missing")),
    ("rmdir dot", lambda: os.rmdir("dir/.")),
    ("rmdir dots", lambda: os.rmdir("dir/..")),
    ("in a directory that is gone", gone_directory),
    # unlink
    ("unlink a directory", lambda: os.unlink("dir")),
    ("unlink missing", lambda: os.unlink("missing")),
    ("unlink below a file", lambda: os.unlink("file/x")),
    ("unlink what is open", unlinked),
    ("empty a directory", emptied),
    # link
    ("link", lambda: os.link("file", "hard")),
    ("link count", lambda: os.stat("file").st_nlink),
    ("one file", lambda: os.path.samefile("file", "hard")),
    ("write one, read the other", lambda: (put("hard", b"both"), get("file"))[1]),
    ("link over", lambda: os.link("file", "hard")),
    ("link missing", lambda: os.link("missing", "x")),
    ("link a directory", lambda: os.link("dir", "dir2")),
    ("link below missing", lambda: os.link("file", "missing/x")),
    ("unlink one", lambda: (os.unlink("hard"), os.stat("file").st_nlink)[1]),
    ("link again", lambda: os.link("file", "hard")),
    # rename
    ("rename", lambda: os.rename("hard", "moved")),
    ("rename over the same file", lambda: (os.rename("moved", "file"), os.path.exists("moved"))[1]),
    ("rename missing", lambda: os.rename("missing", "x")),
    ("rename below missing", lambda: os.rename("file", "missing/x")),
    ("rename a directory into itself", lambda: os.rename("dir", "dir/below")),
    ("rename a file over a directory", lambda: os.rename("file", "dir")),
    ("rename a directory over a file", lambda: os.rename("dir", "file")),
    ("rename over a full directory", lambda: (os.mkdir("other"), os.rename("other", "dir"))),
    ("rename over an empty directory", lambda: (os.rename("dir", "other"), os.listdir("other"))[1]),
    ("rename back", lambda: os.rename("other", "dir")),
    ("rename dot", lambda: os.rename("dir/.", "x")),
    ("rename without replacing", lambda: renameat2("file", "moved", 1)),
    ("rename without replacing, free", lambda: renameat2("moved", "free", 1)),
    ("exchange", lambda: (put("one", b"1"), put("two", b"2"), renameat2("one", "two", 2), get("one"))[3]),
    ("exchange a file and a directory", lambda: (renameat2("one", "dir", 2), os.path.isdir("one"), renameat2("one", "dir", 2))[1]),
    ("exchange with missing", lambda: renameat2("one", "missing", 2)),
    ("rename with odd flags", lambda: renameat2("one", "two", 3)),
    ("rename what is open", renamed_while_open),
    ("replace what is open", replaced_while_open),
    # truncate
    ("truncate", lambda: os.truncate("file", 2)),
    ("size", lambda: os.stat("file").st_size),
    ("truncate longer", lambda: os.truncate("file", 10)),
    ("holes are zeros", lambda: get("file")),
    ("truncate a directory", lambda: os.truncate("dir", 0)),
    ("truncate missing", lambda: os.truncate("missing", 0)),
    ("truncate below zero", lambda: os.truncate("file", -1)),
    ("truncate too far", lambda: os.truncate("file", 1 << 62)),
    ("ftruncate what is open to read", lambda: os.ftruncate(os.open("file", os.O_RDONLY), 0)),
    # symlink
    ("symlink", lambda: os.symlink("file", "soft")),
    ("symlink over", lambda: os.symlink("file", "soft")),
    ("size of a symlink", lambda: os.lstat("soft").st_size),
    ("readlink", lambda: os.readlink("soft")),
    ("readlink of a file", lambda: os.readlink("file")),
    ("readlink missing", lambda: os.readlink("missing")),
    ("read through a symlink", lambda: get("soft")),
    ("open a symlink itself", lambda: os.open("soft", os.O_RDONLY | os.O_NOFOLLOW)),
    ("empty symlink", lambda: os.symlink("", "void")),
    ("long symlink", lambda: os.symlink("x" * 4096, "void")),
    ("dangling", lambda: (os.symlink("nowhere", "dangling"), get("dangling"))),
    ("create through dangling", lambda: (put("dangling", b"made"), get("nowhere"))[1]),
    ("exclusive through a symlink", lambda: os.open("soft", os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
    ("link to a symlink", lambda: (os.link("soft", "soft2", follow_symlinks=False), os.readlink("soft2"))[1]),
    ("loop", lambda: (os.symlink("loop", "loop"), open("loop"))),
    ("absolute", lambda: (os.symlink("/dev/null", "null"), get("null"))[1]),
    # chmod, chown
    ("chmod", lambda: os.chmod("file", 0o640)),
    ("mode", lambda: oct(os.stat("file").st_mode)),
    ("chmod a directory", lambda: (os.chmod("dir", 0o2750), oct(os.stat("dir").st_mode))[1]),
    ("chmod missing", lambda: os.chmod("missing", 0o600)),
    ("chmod below a file", lambda: os.chmod("file/x", 0o600)),
    ("sticky bits", lambda: (os.chmod("file", 0o7755), oct(os.stat("file").st_mode), os.chmod("file", 0o640))[1]),
    ("chown", lambda: (os.chown("file", -1, -1), os.stat("file").st_uid)[1]),
    ("chown a symlink", lambda: os.chown("soft", -1, os.getgid(), follow_symlinks=False)),
    ("access", lambda: [os.access("file", how) for how in (os.F_OK, os.R_OK, os.W_OK, os.X_OK)]),
    ("access missing", lambda: os.access("missing", os.F_OK)),
    ("give away", lambda: os.chown("file", 0, 0)),
    ("read what is closed", lambda: (os.chmod("tight", 0), get("tight"))[1]),
    ("write what is only to be read", lambda: (os.chmod("tight", 0o444), put("tight"))),
    ("list a closed directory", lambda: (put("narrow/x"), os.chmod("narrow", 0), os.listdir("narrow"))[2]),
    ("look into it", lambda: os.stat("narrow/x").st_size),
    ("write into a directory that is only to be read", lambda: (os.chmod("narrow", 0o555), put("narrow/y"))),
    ("remove from it", lambda: os.unlink("narrow/x")),
    ("open it again", lambda: (os.chmod("narrow", 0o755), os.chmod("tight", 0o644), sorted(os.listdir("narrow")))[2]),
    ("run", lambda: (put("run", b"#!/bin/sh\necho ran"), os.chmod("run", 0o755), os.popen("./run").read())[2]),
    ("run what is no program", lambda: os.execv("./file", ["x"])),
    # utimens
    ("utimens", times),
    ("utimens of one", one_time),
    ("utimens of a symlink", link_times),
    ("utimens before 1970", lambda: (os.utime("file", ns=(-1, -1_500_000_001)), os.stat("file").st_mtime_ns)[1]),
    ("utimens at the beginning of time", lambda: far(-2**63)),
    ("utimens at its end", lambda: far(2**63 - 1)),
    ("utimens missing", lambda: os.utime("missing")),
    ("writing moves the time", lambda: (put("file", b"hello"), os.stat("file").st_mtime_ns > 10**18)[1]),
    # bytes
    ("append", lambda: (open("file", "ab").write(b"end"), get("file"))[1]),
    ("append by two", appended),
    ("big", big),
    ("sparse", sparse),
    ("allocate", allocated),
    ("copy", copied),
    ("sync", lambda: (lambda fd: (os.write(fd, b"x"), os.fsync(fd), os.fdatasync(fd)))(os.open("synced", os.O_CREAT | os.O_RDWR)) and "done"),
    ("sync a directory", lambda: os.fsync(os.open(".", os.O_RDONLY))),
    ("mmap", mapped),
    ("mmap of what is appended to", mapped_after_append),
    # locks
    ("flock", flocked),
    ("lock", posix_locked),
    ("lock what is open to read", lambda: fcntl.lockf(open("file", "rb"), fcntl.LOCK_EX)),
    # extended attributes
    ("xattr", attributes),
    ("missing xattr", lambda: os.getxattr("file", "user.none")),
    ("xattr must be new", lambda: os.setxattr("file", "user.b", b"v", os.XATTR_CREATE)),
    ("xattr must be there", lambda: os.setxattr("file", "user.none", b"v", os.XATTR_REPLACE)),
    ("xattr without a name", lambda: os.setxattr("file", "user.", b"v")),
    ("xattr of an unknown kind", lambda: os.setxattr("file", "odd.name", b"v")),
    ("xattr of a symlink", lambda: os.setxattr("soft", "user.k", b"v", follow_symlinks=False)),
    ("xattr too large", lambda: os.setxattr("file", "user.k", b"v" * 70000)),
    ("remove a missing xattr", lambda: os.removexattr("file", "user.none")),
    # the rest
    ("pipe", piped),
    ("socket", socketed),
    ("odd names", odd_names),
    ("room", lambda: os.statvfs(".").f_bsize > 0 and os.statvfs(".").f_namemax),
    ("names", lambda: sorted(os.listdir("."))),
    ("kinds", lambda: sorted((entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in os.scandir("."))),
    ("walk", lambda: sum(len(files) for _, _, files in os.walk("."))),
]: attempt(what, act)
