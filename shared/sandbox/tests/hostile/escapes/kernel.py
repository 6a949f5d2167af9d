# What the kernel has beside files and processes.
for function in ["mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
                 "setns", "quotactl", "quotactl_fd", "open_by_handle_at", "keyctl", "add_key", "request_key", "shmget", "shmat", "shmctl", "semget",
                 "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "bpf", "perf_event_open", "userfaultfd",
                 "fanotify_init", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
                 "acct", "syslog", "vhangup", "sethostname", "setdomainname", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime",
                 "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_create", "memfd_secret", "clone3", "pidfd_getfd",
                 "pidfd_send_signal", "process_mrelease", "iopl", "ioperm", "modify_ldt", "statmount", "listmount", "lsm_set_self_attr"]:
    for argument in [0, 1]:
        call(f"{function} {argument}", SYS[function], argument, 0, 0, 0, 0, 0)
for function in ["mount", "umount2", "chroot", "pivot_root"]:
    name = ctypes.create_string_buffer(b"/tmp")
    call(f"{function} /tmp", SYS[function], ctypes.addressof(name), ctypes.addressof(name), 0, 4096, 0)
for flag, name in [(0x20000, "mount"), (0x2000000, "cgroup"), (0x4000000, "uts"), (0x8000000, "ipc"), (0x10000000, "user"), (0x20000000, "pid"),
                   (0x40000000, "net"), (0x80, "time")]:
    call(f"unshare {name}", SYS["unshare"], flag)
    # The time namespace has a bit that means a signal here.
    if name != "time": call(f"clone {name}", SYS["clone"], flag | 17, 0, 0, 0, 0)
    for process in ["self", "1"]:
        def enters():
            fd = os.open(f"/proc/{process}/ns/{'mnt' if name == 'mount' else name}", os.O_RDONLY)
            check(libc.syscall(SYS["setns"], fd, 0))
        tries(f"enter {name} of {process}", enters)
call("clone beside the parent", SYS["clone"], 0x8000 | 17, 0, 0, 0, 0)
for number in [463, 464, 465, 466, 467, 468, 470, 500, 548, 1000, 0x40000000 + 39, 0x40000000 + 520, 0x40000000 + 545]:
    call(f"number {number}", number, 0, 0, 0, 0, 0, 0)

for name in ["mem", "kmem", "port", "kmsg", "vda", "vda1", "sda", "sda1", "nvme0n1", "loop0", "loop-control", "fuse", "net/tun", "tty0", "tty1", "ttyS0",
             "console", "ptmx", "pts/0", "tty", "kvm", "vhost-net", "vhost-vsock", "vsock", "uinput", "uhid", "input/event0", "snapshot", "hpet", "rtc0",
             "watchdog", "cuse", "userfaultfd", "mapper/control", "btrfs-control", "autofs", "mcelog", "cpu/0/msr", "dri/card0", "snd/timer",
             "nvram", "ppp", "rfkill", "zram0", "shm/x/y", "mqueue", "hugepages", "initctl", "log", "core", "random/x", "cpu_dma_latency", "gpiochip0"]:
    tries(f"device {name}", lambda: os.close(os.open("/dev/" + name, os.O_RDWR | os.O_NONBLOCK)))
import stat
for kind, number in [("char", stat.S_IFCHR), ("block", stat.S_IFBLK)]:
    for major, minor in [(1, 1), (1, 2), (1, 3), (1, 5), (5, 0), (7, 0), (8, 0), (10, 200), (10, 229), (254, 0), (259, 0)]:
        # A device of no number at all is how a union file system says that there is none: others are refused.
        tries(f"make {kind} {major}:{minor}", lambda: os.mknod("/tmp/device", number | 0o666, os.makedev(major, minor)))

for number in [0, 1, 1000, 65533, 4294967294]:
    if number == os.getuid(): continue
    tries(f"become {number}", lambda: os.setuid(number))
    tries(f"become group {number}", lambda: os.setgid(number))
    tries(f"become {number} of all kinds", lambda: os.setresuid(number, number, number))
    tries(f"become group {number} of all kinds", lambda: os.setresgid(number, number, number))
    tries(f"join group {number}", lambda: os.setgroups([number]))
    for function in ["setfsuid", "setfsgid"]:
        libc.syscall(SYS[function], number)
        tries(f"{function} {number}", lambda: libc.syscall(SYS[function], -1) == number or refuse(errno.EPERM))
header = ctypes.create_string_buffer((0x20080522).to_bytes(4, "little") + bytes(4))
everything = ctypes.create_string_buffer(b"\xff" * 24)
call("all capabilities", SYS["capset"], ctypes.addressof(header), ctypes.addressof(everything))
for option, name in [(24, "bounding set"), (47, "ambient"), (28, "secure bits")]:
    call(name, SYS["prctl"], option, 2 if option == 47 else 0, 21, 0, 0)
call("memory map", SYS["prctl"], 35, 1, 0, 0, 0)
call("privileges again", SYS["prctl"], 38, 0, 0, 0, 0)
call("without seccomp", SYS["prctl"], 22, 0, 0, 0, 0)
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
for name in ["CapInh", "CapPrm", "CapEff", "CapAmb"]:
    tries(f"{name} is something", lambda: int(status[name], 16) or refuse(errno.EPERM))
tries("new privileges", lambda: status["NoNewPrivs"].strip() == "1" and refuse(errno.EPERM))
tries("a tracer", lambda: status["Seccomp"].strip() == "2" and refuse(errno.EPERM))
for program in ["/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/newgrp", "/usr/bin/chsh", "/usr/bin/gpasswd", "/bin/ping"]:
    if os.path.exists(program) and os.stat(program).st_mode & 0o4000:
        tries(f"owner's bit of {program}", lambda: os.statvfs(program).f_flag & os.ST_NOSUID and refuse(errno.EPERM))
for bits in [0o4755, 0o2755, 0o6777]:
    open("/tmp/bits", "w").close()
    tries(f"bits {bits:o}", lambda: os.chmod("/tmp/bits", bits))
tries("no bits in /tmp", lambda: os.statvfs("/tmp").f_flag & os.ST_NOSUID and refuse(errno.EPERM))

for name, limit in [("NOFILE", resource.RLIMIT_NOFILE), ("NPROC", resource.RLIMIT_NPROC), ("DATA", resource.RLIMIT_DATA), ("FSIZE", resource.RLIMIT_FSIZE),
                    ("CPU", resource.RLIMIT_CPU), ("CORE", resource.RLIMIT_CORE)]:
    soft, hard = resource.getrlimit(limit)
    def raises(): 
        try: resource.setrlimit(limit, (hard + 1, hard + 1))
        except ValueError: refuse(errno.EPERM)
    tries(f"more {name}", raises)
    tries(f"no limit of {name}", lambda: hard == resource.RLIM_INFINITY or refuse(errno.EPERM))
tries("first in line", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
tries("round robin", lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)))
tries("nicer than others", lambda: os.setpriority(os.PRIO_PROCESS, 0, -5))
tries("nice to a user", lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
call("disk first", SYS["ioprio_set"], 1, 0, 1 << 13)
call("disk of a user first", SYS["ioprio_set"], 3, os.getuid(), 0)
one, other = socket.socketpair()
reads, writes = os.pipe()
for name, fd, command in [("owner of a pipe", reads, fcntl.F_SETOWN), ("owner of output", 1, fcntl.F_SETOWN), ("owner, in full", reads, 15)]:
    tries(name, lambda: fcntl.fcntl(fd, command, 1 if command != 15 else bytes(8)))
for name, request in [("FIOSETOWN", 0x8901), ("SIOCSPGRP", 0x8902), ("TIOCSTI", 0x5412), ("TIOCLINUX", 0x541c)]:
    for at, fd in [("a socket", one.fileno()), ("input", 0), ("output", 1)]:
        tries(f"{name} of {at}", lambda: fcntl.ioctl(fd, request, bytes(4)))
tries("terminal", lambda: os.tcgetpgrp(0))
tries("a terminal of its own", lambda: os.openpty())
libc.syscall(SYS["setsid"])
tries("its terminal", lambda: fcntl.ioctl(0, 0x540e, 0))

# Whatever of the system could be set.
count = 0
for folder, folders, files in os.walk("/proc/sys"):
    for name in files:
        path = os.path.join(folder, name)
        tries(f"set {path}", lambda: os.close(os.open(path, os.O_WRONLY)))
for path in ["/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg", "/proc/kpagecount", "/proc/kpageflags", "/proc/vmallocinfo", "/proc/timer_list", "/proc/slabinfo",
             "/proc/sched_debug", "/proc/iomem", "/proc/ioports", "/proc/bus/pci", "/proc/fs/ext4", "/proc/scsi/scsi", "/proc/acpi", "/proc/mtrr",
             "/proc/irq/default_smp_affinity", "/proc/self/uid_map", "/proc/self/gid_map", "/proc/self/setgroups", "/proc/self/oom_score_adj",
             "/proc/self/clear_refs", "/proc/self/mem", "/proc/self/attr/exec", "/proc/self/attr/current", "/proc/self/loginuid", "/proc/self/timens_offsets",
             "/proc/self/autogroup", "/proc/self/coredump_filter", "/proc/self/timerslack_ns", "/sys/kernel/mm/ksm/run", "/sys/power/state",
             "/sys/kernel/uevent_helper", "/sys/fs/cgroup", "/sys/fs/cgroup/release_agent", "/sys/module", "/sys/class/net", "/sys/devices/system/cpu/online",
             "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security", "/sys/firmware/efi"]:
    tries(f"write {path}", lambda: os.close(os.open(path, os.O_RDWR)))
