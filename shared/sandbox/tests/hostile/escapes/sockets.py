# Sockets, and what may be behind them.
network = sys.argv[5] == "network"
port, address = int(sys.argv[6]), sys.argv[7]
own = {2, 10, 16} if network else set()
for family in range(0, 47):
    for kind in [1, 2, 3, 4, 5]:
        if family in own and kind in ([1, 2] if family != 16 else [2, 3]): continue
        call(f"family {family} kind {kind}", SYS["socket"], family, kind, 0)
for kind in [2, 3]: call(f"pair of kind {kind}", SYS["socketpair"], 1, kind, 0, bytes(8))
for kind in [socket.SOCK_STREAM, socket.SOCK_SEQPACKET]:
    tries(f"a pair of kind {kind} that is turned", lambda: socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b"x", root + "/stream"))
    tries(f"a pair of kind {kind} that connects", lambda: socket.socketpair(socket.AF_UNIX, kind)[0].connect(root + "/stream"))
def connects(family, kind, to):
    with socket.socket(family, kind) as it:
        it.settimeout(2)
        it.connect(to)
        if kind == socket.SOCK_DGRAM: it.send(b"x")
for name in [root + "/stream", "/run/dbus/system_bus_socket", "/var/run/docker.sock", "/run/systemd/private", "/tmp/.X11-unix/X0", "\0abstract", "\0buildscale"]:
    tries(f"unix {name!r}", lambda: connects(socket.AF_UNIX, socket.SOCK_STREAM, name))
    tries(f"unix by letters {name!r}", lambda: connects(socket.AF_UNIX, socket.SOCK_DGRAM, name))
for host in ["127.0.0.1", "127.0.0.2", "0.0.0.0", address, "10.0.0.1", "169.254.169.254", "169.254.170.2", "192.0.2.1", "192.168.1.1", "255.255.255.255"]:
    for at in [port, 80, 22]:
        tries(f"tcp {host}:{at}", lambda: connects(socket.AF_INET, socket.SOCK_STREAM, (host, at)))
    # Nobody is behind a loopback of one's own, and nothing is said of that.
    if not host.startswith("127.") and host != "0.0.0.0":
        tries(f"udp {host}", lambda: connects(socket.AF_INET, socket.SOCK_DGRAM, (host, port)))
for host in ["::1", "::ffff:127.0.0.1", "fe80::1", "fd00::1", "2001:db8::1"]:
    tries(f"tcp [{host}]", lambda: connects(socket.AF_INET6, socket.SOCK_STREAM, (host, port, 0, 0)))
if network:
    def through(request):
        with socket.create_connection(("127.0.0.1", 3128), 20) as it:
            it.sendall(request.encode())
            answer = b""
            while more := it.recv(4096): answer += more
        first = answer.decode(errors="replace").split("\r\n")[0]
        if not any(code in first for code in [" 200 ", " 201 "]): refuse(errno.ECONNREFUSED)
        raise SystemExit(f"came through: {request!r}: {answer!r}")
    for host in ["127.0.0.1", "localhost", "127.1", "0", "0x7f.1", "2130706433", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", address, "10.0.0.1",
                 "169.254.169.254", "169.254.170.2", "metadata", "[fd00:ec2::254]", "[fe80::1]", "100.100.100.200", "a@127.0.0.1"]:
        tries(f"through to {host}", lambda: through(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n"))
        tries(f"through with a URL to {host}", lambda: through(f"GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"))
    netlink = socket.socket(16, 3, 0)
    def asks(kind, flags=0x5):
        netlink.send((32).to_bytes(4, "little") + kind.to_bytes(2, "little") + flags.to_bytes(2, "little") + bytes(24))
        code = int.from_bytes(netlink.recv(4096)[16:20], "little", signed=True)
        if code: refuse(-code)
    for kind in [16, 17, 20, 21, 24, 25, 28, 29, 32, 36]: tries(f"set the network {kind}", lambda: asks(kind))
    for family in [4, 6, 9, 12, 15]:
        tries(f"netlink {family}", lambda: socket.socket(16, 3, family).bind((0, 1)))
    tries("an interface", lambda: [name for _, name in socket.if_nameindex() if name != "lo"] and None or refuse(errno.ENODEV))
