# SPDX-License-Identifier: Apache-2.0
"""Programs that nobody here wrote, at work: how to start each, and what drives it.

Each entry is a generator that yields the pid to look at, and ends what it has
started.  Missing is raised with the reason where a program cannot be had.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

from programs import (ROOT, WORK, Program, answers, free_port, is_busy, nginx,
                      redis)

sys.path.insert(0, str(ROOT / "test" / "e2e"))

JS = """const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
function work(i) { const m = new Map();
  for (let j = 0; j < 300; j++) m.set('k' + j, {x: j, y: [i]});
  const s = JSON.stringify([...m.keys()]).replace(/k(\\d+)/g, (a, d) => d);
  return [...m.values()].map(o => o.x).sort((p, q) => q - p)[3] + s.length +
    fib(15); }
"""
JAVA = """import java.util.*;
public class Work { static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  static void park(int d, Object o) throws Exception {
    if (d == 0) synchronized (o) { o.wait(); } else park(d - 1, o); }
  public static void main(String[] a) throws Exception {
    for (int i = 0; i < 4; i++) new Thread(() -> { try { park(9, new Object()); }
      catch (Exception e) { } }).start();
    for (long t = 0, i = 0; ; i++) { t += fib(18); Map<Integer, String> m = new TreeMap<>();
      for (int j = 0; j < 500; j++) m.put(j * 7919 % 500, "x" + i); t += m.hashCode(); } } }
"""
ERLANG = ("F = fun G(N) -> lists:sort([X * 7 rem 1000 || X <- lists:seq(1, 1000)]), "
          "G(N + 1) end, spawn(fun() -> F(0) end), timer:sleep(infinity).")


class Missing(Exception):
    """The reason why a program is not looked at."""


def exe(name):
    path = shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    if not path:
        raise Missing(f"no {name}")
    return path


@contextlib.contextmanager
def alone(*argv, **kwargs):
    with Program([exe(argv[0]), *argv[1:]], ready=None, **kwargs) as program:
        yield program.pid


@contextlib.contextmanager
def driven(server, *argv):
    """SERVER, which is ready, with ARGV as its client."""
    with server, alone(*argv):
        yield server.pid


def source(name, text):
    path = WORK / name
    path.write_text(text)
    return path


def of_redis():
    exe("redis-server")
    server = redis()
    return driven(server, "redis-benchmark", "-p", str(server.port), "-n",
                  "100000000", "-q")


def of_nginx():
    exe("nginx")
    server = nginx()
    port = (WORK / "nginx.conf").read_text().split("127.0.0.1:")[1].split(";")[0]
    return driven(server, "wrk", "-t1", "-c8", "-d600",
                  f"http://127.0.0.1:{port}/")


def of_caddy():
    port = free_port()
    server = Program([exe("caddy"), "respond", "--listen", f"127.0.0.1:{port}",
                      "ok"], ready=None, env={**os.environ, "HOME": str(WORK)})
    server.until(lambda: answers(port, b"GET / HTTP/1.0\r\n\r\n", b"ok"))
    return driven(server, "wrk", "-t1", "-c8", "-d600",
                  f"http://127.0.0.1:{port}/")


def of_memcached():
    port = free_port()
    server = Program([exe("memcached"), "-u", "root", "-l", "127.0.0.1", "-p",
                      port], ready=None)
    server.until(lambda: answers(port, b"version\r\n", b"VERSION"))
    return driven(server, sys.executable, "-c", "import socket\n"
                  f"s = socket.create_connection(('127.0.0.1', {port}))\n"
                  "while 1: s.sendall(b'get x\\r\\n' * 100); s.recv(65536)")


def of_mariadb():
    data = WORK / "mariadb"
    server = exe("mariadbd")
    subprocess.run([exe("mariadb-install-db"), "--user=root", "--auth-root-"
                    "authentication-method=normal", f"--datadir={data}"],
                   check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    sock = data / "sock"
    program = Program([server, "--no-defaults", "--user=root",
                       f"--datadir={data}", f"--socket={sock}",
                       "--skip-networking"], ready=None)
    program.until(sock.exists)
    return driven(program, "sh", "-c", "while :; do echo 'select benchmark("
                  "300000, sha2(1, 256));'; done | mariadb --no-defaults -S "
                  f"{sock}")


def of_node():
    return alone("node", source("work.js", JS + "for (let i = 0; ; i++) "
                                "work(i & 7);"))


def of_java(*flags):
    exe("javac")
    subprocess.run(["javac", source("Work.java", JAVA)], cwd=WORK, check=True)
    return alone("java", *flags, "-Xmx256m", "-cp", WORK, "Work")


def of_erlang(*flags):
    # erl is a shell script that executes beam.smp.
    return alone("erl", *flags, "-noshell", "-eval", ERLANG)


def of_esbuild():
    try:
        import npm
    except ImportError as e:
        raise Missing("no pytest") from e
    place = npm.fetch("@esbuild/linux-x64", "0.28.0")
    if not place:
        raise Missing("no @esbuild/linux-x64 from npm")
    path = source("many.ts", "".join(
        f"export class C{i} {{ f(x: number) {{ return [x, {i}].map(q => q + "
        f"`s${{x}}`) }} }}\n" for i in range(400000)))
    return alone(place / "bin" / "esbuild", path, "--bundle", "--minify",
                 f"--outfile={WORK / 'out.js'}")


@contextlib.contextmanager
def of_chromium():
    """The renderer of a page that computes."""
    page = source("page.html", f"<script>{JS}\nfor (let i = 0; ; i++) "
                  "work(i & 7);</script>")
    with alone("chromium", "--headless", "--no-sandbox", "--disable-gpu",
               f"--user-data-dir={WORK / 'chromium'}", f"file://{page}"):
        yield wait_for_child("--type=renderer")


def wait_for_child(word):
    """The process of ours that has WORD in its command line and stays busy; others may
    be kept in reserve."""
    for _ in range(100):
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                text, pid = path.read_text(errors="replace"), path.parent.name
                if (word in text and str(WORK) in text and
                        all(is_busy(pid) for _ in range(5))):
                    return int(pid)
        time.sleep(0.05)
    raise Missing(f"no process {word}")


LOOPS = {
    "bash": ["bash", "-c", "while :; do x=$((i++ % 7)); y=${x//1/2}; done"],
    "perl": ["perl", "-e", "while (1) { my $s = join ',', sort map { $_ * 2 } "
             "1..50; $s =~ s/(\\d)/x$1/g; }"],
    "python3": ["python3", "-c", "import re, json\nwhile True: "
                "json.dumps(re.findall('a+b', 'aaab' * 10))"],
    "php": ["php", "-r", "while (1) { $a = range(1, 99); shuffle($a); sort($a); "
            "$s = preg_replace('/1/', 'x', implode(',', $a)); }"],
    "ruby": ["ruby", "-e", "loop { (1..99).map { |x| x * 7 % 9 }.sort"
             ".join(',').gsub(/1/, 'x') }"],
    "sbcl": ["sbcl", "--noinform", "--non-interactive", "--eval",
             "(labels ((fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))) "
             "(loop (fib 20) (sort (loop for i below 1000 collect (random 100)) "
             "#'<)))"],
    "busybox (static)": ["busybox", "sh", "-c",
                         "while :; do i=$((i+1)); x=\"${x#y}z$i\"; done"],
    "ripgrep": ["rg", "-c", "--no-ignore", "[a-z]+_[a-z]+q", "/usr"],
    "fd": ["fdfind", "-H", "q[a-z]*x$", "/"],
    # libjpeg-turbo's code for vectors has no unwind info, and aligns its stack.
    "gstreamer": ["gst-launch-1.0", "videotestsrc", "pattern=ball", "!",
                  "video/x-raw,width=640,height=480", "!", "videoconvert", "!",
                  "queue", "!", "jpegenc", "!", "queue", "!", "fakesink"],
}

PROGRAMS = {
    "redis": of_redis, "nginx": of_nginx, "memcached": of_memcached,
    "mariadb": of_mariadb, "caddy (Go)": of_caddy,
    "esbuild (Go 1.26)": of_esbuild, "node": of_node, "chromium": of_chromium,
    "java, frame pointers": lambda: of_java("-XX:+PreserveFramePointer"),
    "java -Xint": lambda: of_java("-Xint"), "java": of_java,
    "erlang, frame pointers": lambda: of_erlang("+JPperf", "true"),
    "erlang": of_erlang,
    **{name: (lambda argv=argv: alone(*argv)) for name, argv in LOOPS.items()},
}
