"""Whatever a server or a resolver does, `fetch` comes back at its deadline or when it is told to stop."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time

import pytest

from collectors.contract import Request
from collectors.errors import Cancelled, Retriable

BASE = "https://prices.example"


@pytest.fixture
def stop_soon():
    stop = threading.Event()
    timer = threading.Timer(0.2, stop.set)
    timer.start()
    yield stop
    timer.cancel()
    timer.join()


def seconds_to_fail(fetcher, kind, match):
    began = time.monotonic()
    with pytest.raises(kind, match=match):
        fetcher.fetch(Request(f"{BASE}/a"))
    return time.monotonic() - began


def test_a_drip_ends_at_the_total_deadline_although_no_read_times_out(local_server, local_fetcher):
    local_server.route("/a", local_server.drip(b"x" * 1000, 0.05))
    took_s = seconds_to_fail(local_fetcher(total_s=0.5, read_s=0.3), Retriable, "not finished at its deadline")
    assert 0.4 < took_s < 1.2


def test_a_silent_server_ends_at_the_read_timeout(local_server, local_fetcher):
    local_server.route("/a", local_server.hang())
    took_s = seconds_to_fail(local_fetcher(read_s=0.2, attempts=2), Retriable, "no data for 0.2 s")
    assert 0.4 <= took_s < 1.2
    assert len(local_server.received) == 2


def test_a_silent_server_ends_at_the_deadline_and_says_what_came_before(local_server, local_fetcher):
    local_server.route("/a", local_server.answer("down", 502), local_server.hang())
    took_s = seconds_to_fail(local_fetcher(total_s=0.5), Retriable, "deadline; before that: .* answers 502")
    assert took_s < 1.2


def test_stop_ends_a_silent_request_and_the_next_one_does_not_start(local_server, local_fetcher, stop_soon):
    local_server.route("/a", local_server.hang())
    fetcher = local_fetcher(stop=stop_soon)
    assert seconds_to_fail(fetcher, Cancelled, "stopped") < 1.0
    assert seconds_to_fail(fetcher, Cancelled, "stopped") < 0.1
    assert len(local_server.received) == 1


def test_stop_ends_a_drip(local_server, local_fetcher, stop_soon):
    local_server.route("/a", local_server.drip(b"x" * 1000, 0.05))
    assert seconds_to_fail(local_fetcher(stop=stop_soon), Cancelled, "stopped") < 1.0


def test_stop_ends_a_wait_before_a_retry(local_server, local_fetcher, stop_soon):
    local_server.route("/a", local_server.too_many("4"))
    assert seconds_to_fail(local_fetcher(stop=stop_soon), Cancelled, "stopped") < 1.0


def test_a_fetcher_works_on_after_a_request_was_left_behind(local_server, local_fetcher):
    local_server.route("/a", local_server.drip(b"x" * 1000, 0.05))
    local_server.text("/b", "ok")
    fetcher = local_fetcher(total_s=0.4)
    seconds_to_fail(fetcher, Retriable, "deadline")
    assert fetcher.fetch(Request(f"{BASE}/b")).body == b"ok"


def test_a_hanging_name_lookup_ends_at_the_deadline(local_fetcher, monkeypatch):
    released = threading.Event()

    def never_answers(*_args, **_kwargs):
        released.wait(10)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    monkeypatch.setattr(socket, "getaddrinfo", never_answers)
    fetcher = local_fetcher(fetch_map={}, total_s=0.4, attempts=1)
    took_s = seconds_to_fail(fetcher, Retriable, "not finished at its deadline")
    released.set()
    assert took_s < 1.2


def test_a_fault_in_the_thread_reaches_the_caller(local_server, local_fetcher):
    def broken_clock():
        raise ZeroDivisionError("broken clock")

    local_server.text("/a", "ok")
    with pytest.raises(ZeroDivisionError, match="broken clock"):
        local_fetcher(clock=broken_clock).fetch(Request(f"{BASE}/a"))


def test_a_request_left_behind_does_not_keep_the_process_alive(local_server):
    local_server.route("/a", local_server.hang())
    script = f"""
from collectors.contract import Request
from collectors.errors import Retriable
from collectors.http import Fetcher, FetchLimits
fetcher = Fetcher(provider="p", allowed_hosts=frozenset({{"prices.example"}}), limits=FetchLimits(total_s=0.3),
                  fetch_map={{"{BASE}": "{local_server.url}"}})
import socket
socket.getaddrinfo = lambda *a, **k: __import__("time").sleep(20)
try:
    with fetcher:
        fetcher.fetch(Request("{BASE}/a"))
except Retriable:
    print("left")
"""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=15, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("left\n", "", 0)
    assert time.monotonic() - began < 10
