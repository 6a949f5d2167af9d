# Files of others, by every name they may have here, and everything that can be done to one; then the same to files that are only to
# be read.
root, latest = sys.argv[1:3]
secrets = [
    root + "/secret", root + "/files/other/latest/c.md", latest + "/outside/b.md", latest + "/inside/a.md",
    root + "/buildscale.toml", root + "/scratch", "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/root" + "/.ssh/id_rsa", "/root" + "/.bashrc",
    "/home", "/var/log/dpkg.log", "/var/lib/dpkg/status", "/run/secrets", "/boot", "/srv", "/mnt", "/media", "/sys/kernel",
    "/sys/fs/cgroup/cgroup.procs", "/lost+found", "/host", "/oldroot", "/.dockerenv", "/data", "/work",
]
up = "/".join([".."] * 12)
ways = {
    "plain": lambda path: path,
    "up": lambda path: up + path,
    "cwd": lambda path: "/proc/self/cwd/" + up + path,
    "root": lambda path: "/proc/self/root" + path,
    "first": lambda path: "/proc/1/root" + path,
    "first cwd": lambda path: "/proc/1/cwd" + path,
    "task": lambda path: "/proc/thread-self/root" + path,
    "tmp": lambda path: "/tmp/../" + path,
    "dev": lambda path: "/dev/fd/../root/" + path,
}
for path in secrets:
    for way, name in ways.items():
        shown(f"read {path} {way}", lambda: open(name(path), "rb").read(200) if not os.path.isdir(name(path)) else os.listdir(name(path)))

own = "/tmp/own"
def fresh():
    open(own, "w").close()
def write(name, mode): open(name, mode).close()
def tmpfile(name): os.close(os.open(os.path.dirname(name), os.O_TMPFILE | os.O_RDWR))
def reopen(name):
    fd = os.open(name, os.O_PATH)
    os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDWR))
def mapped(name):
    import mmap
    with open(name, "rb") as file:
        # A file of no length has nothing to map.
        try: mmap.mmap(file.fileno(), 1, mmap.MAP_SHARED, mmap.PROT_WRITE)
        except ValueError: refuse(errno.EINVAL)
def by_descriptor(name, do):
    fd = os.open(name, os.O_RDONLY)
    try: do(fd)
    finally: os.close(fd)
operations = {
    "append": lambda name: write(name, "a"),
    "cut": lambda name: os.truncate(name, 0),
    "open and cut": lambda name: os.close(os.open(name, os.O_RDONLY | os.O_TRUNC)),
    "open to write": lambda name: os.close(os.open(name, os.O_WRONLY)),
    "reopen": reopen,
    "map": mapped,
    "remove": os.unlink,
    "rename": lambda name: os.rename(name, "/tmp/taken"),
    "rename onto": lambda name: os.rename(own, name),
    "exchange": lambda name: renameat2(own, name, 2),
    "link": lambda name: os.link(name, "/tmp/linked"),
    "link as": lambda name: os.link(own, name + ".new"),
    "symlink beside": lambda name: os.symlink("/", name + ".link"),
    "make beside": lambda name: write(name + ".new", "w"),
    "make a folder beside": lambda name: os.mkdir(name + ".folder"),
    "make a pipe beside": lambda name: os.mkfifo(name + ".fifo"),
    "nameless beside": tmpfile,
    "bits": lambda name: os.chmod(name, 0o666),
    "bits by descriptor": lambda name: by_descriptor(name, lambda fd: os.fchmod(fd, 0o666)),
    "owner's bits": lambda name: os.chmod(name, 0o4755),
    "owner": lambda name: os.chown(name, os.getuid(), os.getgid()) if os.stat(name).st_uid != os.getuid() else os.chown(name, 0, 0),
    "owner of a link": lambda name: os.lchown(name, 0, 0),
    "times": lambda name: os.utime(name, (1, 1)),
    "times by descriptor": lambda name: by_descriptor(name, lambda fd: os.utime(fd, (1, 1))),
    "attribute": lambda name: os.setxattr(name, "user.a", b"x"),
    "access list": lambda name: os.setxattr(name, "system.posix_acl_access", b"\2\0\0\0"),
    "no attribute": lambda name: os.removexattr(name, "user.a"),
    "watch": lambda name: check(libc.inotify_add_watch(libc.inotify_init(), name.encode(), 0xfff)),
    "lease": lambda name: by_descriptor(name, lambda fd: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)),
    "notice": lambda name: by_descriptor(os.path.dirname(name), lambda fd: fcntl.fcntl(fd, fcntl.F_NOTIFY, 1)),
    "flags": lambda name: by_descriptor(name, lambda fd: fcntl.ioctl(fd, 0x40086602, (0x10).to_bytes(8, "little"))),
    "copy into": lambda name: by_descriptor(own, lambda fd: os.sendfile(os.open(name, os.O_WRONLY), fd, 0, 1)),
    "room": lambda name: os.posix_fallocate(os.open(name, os.O_RDWR), 0, 1),
}
only_read = [
    "/workspace/inside/a.md", "/workspace/outside/b.md", "/usr/bin/env", "/etc/hosts", "/etc/passwd", "/etc/ld.so.cache",
    "/lib/x86_64-linux-gnu/libc.so.6", "/workspace", "/usr/bin", "/etc", "/", "/proc/version", "/proc/self/status", "/proc/1/status",
]
for path in only_read + secrets[:6]:
    for operation, do in operations.items():
        fresh()
        tries(f"{operation} {path}", lambda: do(path))
