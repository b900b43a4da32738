"""Landlock, by which the Linux kernel limits a process and everything that it starts.

A process can only give up rights, never get them back. Standard library only: what uses this starts often.
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH, _PORT = 1, 2
_DROP_FROM_BOUND, _NO_NEW_PRIVILEGES = 24, 38
_CAPABILITIES_VERSION = 0x2008_0522
_MOST_CAPABILITIES = 64
_LAST_PORT = 65535

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_CHANGE_TREE = 0b1_1111_1111_0000  # remove and make folders, files, links, pipes, sockets and devices
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_BIND, _CONNECT = 1, 2
_SIGNALS_AND_SOCKETS = 3
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE

LIST = _READ_DIR
READ = _EXECUTE | _READ_FILE | _READ_DIR
USE = _READ_FILE | _WRITE_FILE
"""Read and write what is there; for devices."""
CHANGE = READ | _WRITE_FILE | _CHANGE_TREE | _REFER | _TRUNCATE

SINCE_PORTS, SINCE_SIGNALS = 4, 6
"""The versions that can close ports, and that keep signals and abstract sockets inside."""

DAC_CAPABILITIES = 0b110
"""Root's right to read and write files whatever their mode."""

Rule = tuple[str | int, int]
"""A path or an open file, and what is allowed there and below."""


class NotConfined(Exception):
    """The kernel refused to confine us; nothing may run."""


def landlock_version() -> int:
    """The kernel's Landlock version; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    return max(0, ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))


def restrict(rules: Iterable[Rule], *, closed_ports: Collection[int] = (), closes_tcp: bool = False) -> None:
    """Gives up every access to files but these, and to TCP ports if the kernel can close them.

    Raises NotConfined. Rules for what doesn't exist have no effect.
    """
    version = landlock_version()
    everything = CHANGE & ~(0 if version >= 2 else _REFER) & ~(0 if version >= 3 else _TRUNCATE)
    net = _network(version, closed_ports, closes_tcp=closes_tcp)
    asked = [everything, *([net] if version >= SINCE_PORTS else [])]
    asked += [_SIGNALS_AND_SOCKETS] if version >= SINCE_SIGNALS else []
    ruleset = _system_call(_CREATE_RULESET, struct.pack(f"={len(asked)}Q", *asked), len(asked) * 8, 0)
    try:
        for place, access in rules:
            _allow(ruleset, place, access & everything)
        if net and not closes_tcp:
            _open_ports_but(ruleset, closed_ports)
        _process_control(_NO_NEW_PRIVILEGES, 1)
        _system_call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def drop_capabilities(*, kept: int = 0) -> None:
    """Gives up what root may do beyond its own files, such as inspecting other processes."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(_MOST_CAPABILITIES):
        if not kept >> capability & 1:
            libc.prctl(_DROP_FROM_BOUND, capability, 0, 0, 0)
    header, held = struct.pack("=Ii", _CAPABILITIES_VERSION, 0), ctypes.create_string_buffer(24)
    if libc.capget(header, held):
        raise NotConfined(os.strerror(ctypes.get_errno()))
    effective, permitted = struct.unpack_from("=2I", held.raw)
    left = struct.pack("=6I", effective & kept, permitted & kept, 0, 0, 0, 0)
    if libc.capset(header, left):
        raise NotConfined(os.strerror(ctypes.get_errno()))


def _network(version: int, closed_ports: Collection[int], *, closes_tcp: bool) -> int:
    if version < SINCE_PORTS:
        return 0
    return _BIND | _CONNECT if closes_tcp else _CONNECT if closed_ports else 0


def _allow(ruleset: int, place: str | int, access: int) -> None:
    if isinstance(place, int):
        _allow_open(ruleset, place, access)
        return
    try:
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # deleted meanwhile, or not visible to us
        return
    try:
        _allow_open(ruleset, descriptor, access)
    finally:
        os.close(descriptor)


def _allow_open(ruleset: int, descriptor: int, access: int) -> None:
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        access &= _OF_FILES
    rule = struct.pack("=Qi", access, descriptor)
    with suppress(NotConfined):  # some kinds of file can't be allowed; they stay denied
        _system_call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)


def _open_ports_but(ruleset: int, closed: Collection[int]) -> None:
    """Landlock can only allow, so that closing one port takes a rule for each other: a fifth of a second."""
    add = ctypes.CDLL(None, use_errno=True).syscall
    add.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint)
    rule = (ctypes.c_uint64 * 2)(_CONNECT, 0)
    where = ctypes.addressof(rule)
    for port in range(_LAST_PORT + 1):
        rule[1] = port
        if port not in closed and add(_ADD_RULE, ruleset, _PORT, where, 0):
            raise NotConfined(f"couldn't create the sandbox: {os.strerror(ctypes.get_errno())}")


def _process_control(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise NotConfined(os.strerror(ctypes.get_errno()))


def _system_call(*arguments: int | bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(*(ctypes.c_long(it) if isinstance(it, int) else it for it in arguments))
    if result < 0:
        raise NotConfined(f"couldn't create the sandbox: {os.strerror(ctypes.get_errno())}")
    return result
