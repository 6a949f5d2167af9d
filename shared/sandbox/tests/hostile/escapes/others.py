# Processes of others: of the host, one of the same user, and process 1 of these namespaces.
host, victim = map(int, sys.argv[3:5])
assert max(int(name) for name in os.listdir("/proc") if name.isdigit()) < min(host, victim), "numbers differ"
looks = ["environ", "mem", "maps", "smaps", "smaps_rollup", "numa_maps", "auxv", "io", "stack", "syscall", "pagemap", "wchan", "personality",
         "timers", "cmdline", "status", "stat", "statm", "comm", "cgroup", "mountinfo", "limits", "sched", "schedstat", "oom_score_adj",
         "loginuid", "patch_state", "ksm_stat", "setgroups", "uid_map", "attr/current", "net/tcp", "net/unix"]
folders = ["fd", "fdinfo", "cwd", "root", "map_files", "ns", "task"]
links = ["exe", "cwd", "root", "fd/0", "fd/3", "ns/net", "ns/user", "ns/mnt", "ns/pid"]
for name, process in [("host", host), ("victim", victim)]:
    for what in looks: shown(f"look at {what} of {name}", lambda: open(f"/proc/{process}/{what}", "rb").read(200))
    for what in folders: tries(f"list {what} of {name}", lambda: os.listdir(f"/proc/{process}/{what}"))
    for what in links: tries(f"follow {what} of {name}", lambda: os.readlink(f"/proc/{process}/{what}"))
    for what in ["mem", "oom_score_adj", "comm", "clear_refs", "coredump_filter", "uid_map", "attr/exec", "timerslack_ns", "loginuid"]:
        tries(f"write {what} of {name}", lambda: open(f"/proc/{process}/{what}", "wb").write(b"0"))
# Of the first one its name may be seen, and what it is made of not.
for what in ["environ", "mem", "maps", "smaps", "auxv", "io", "stack", "syscall", "pagemap", "personality", "map_files", "timers"]:
    tries(f"look at {what} of the first", lambda: open(f"/proc/1/{what}", "rb").read(1))
for what in ["fd", "fdinfo", "cwd", "root", "map_files", "task/1/fd"]: tries(f"list {what} of the first", lambda: os.listdir(f"/proc/1/{what}"))
for what in links: tries(f"follow {what} of the first", lambda: os.readlink(f"/proc/1/{what}"))
for what in ["mem", "oom_score_adj", "comm", "clear_refs", "attr/exec"]:
    tries(f"write {what} of the first", lambda: open(f"/proc/1/{what}", "wb").write(b"0"))

signals = [0, 1, 2, 3, 9, 10, 15, 17, 18, 19, 20, 23, 34, 64]
info = ctypes.create_string_buffer(128)
for name, process in [("host", host), ("victim", victim)]:
    for number in signals:
        tries(f"kill {name} {number}", lambda: os.kill(process, number))
        tries(f"kill the group of {name} {number}", lambda: os.killpg(process, number))
        call(f"tkill {name} {number}", SYS["tkill"], process, number)
        call(f"tgkill {name} {number}", SYS["tgkill"], process, process, number)
        call(f"queue to {name} {number}", SYS["rt_sigqueueinfo"], process, number, ctypes.addressof(info))
    tries(f"limit {name}", lambda: resource.prlimit(process, resource.RLIMIT_NOFILE))
    tries(f"nice {name}", lambda: os.setpriority(os.PRIO_PROCESS, process, 19))
    tries(f"pin {name}", lambda: os.sched_setaffinity(process, {0}))
    tries(f"schedule {name}", lambda: os.sched_setscheduler(process, os.SCHED_OTHER, os.sched_param(0)))
    tries(f"group of {name}", lambda: os.getpgid(process))
    tries(f"join the group of {name}", lambda: os.setpgid(0, process))
    tries(f"session of {name}", lambda: os.getsid(process))
    tries(f"wait for {name}", lambda: os.waitpid(process, os.WNOHANG))
    for request in [0, 1, 4, 7, 8, 16, 17, 24, 0x4206, 0x4207, 0x420e]:
        call(f"ptrace {request} {name}", SYS["ptrace"], request, process, 0, 0)
    for function in ["process_vm_readv", "process_vm_writev", "pidfd_open", "kcmp", "migrate_pages", "move_pages", "process_madvise", "get_robust_list"]:
        call(f"{function} {name}", SYS[function], process, process, 0, 0, 0, 0)
for number in [9, 15, 19, 1]:
    # The kernel takes them and gives them to nobody.
    harmless(f"kill the first {number}", lambda: os.kill(1, number))
tries("limit the first", lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (10, 10)))
tries("trace the first", lambda: check(libc.syscall(SYS["ptrace"], 16, 1, 0, 0)))
harmless("everybody", lambda: os.kill(-1, 0))
visible = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
tries("somebody else is here", lambda: len(visible) > 2 or refuse(errno.ESRCH))
