"""Asks the Linux kernel who owns one socket. Reading its tables of all sockets takes milliseconds."""

import socket
import struct
from ipaddress import IPv4Address, IPv6Address

_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_ANY_STATE = 0xFFFFFFFF
_ANSWER_BYTES = 4096
_WAIT_S = 1.0

# As in linux/netlink.h and linux/inet_diag.h; ports and addresses are in network order.
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBBI")
_PORTS = struct.Struct("!HH")
_ENDS = struct.Struct("=16s16s")
_REST = struct.Struct("=III")
_ANY_INTERFACE_AND_COOKIE = (0, 0xFFFFFFFF, 0xFFFFFFFF)
_ANSWER = struct.Struct("=BBBB4s32s12sIIIII")

Address = IPv4Address | IPv6Address


def socket_owner(near: Address, near_port: int, far: Address, far_port: int) -> int | None:
    """The account whose process holds the TCP socket between these ends; None if no process holds it.

    OSError if the kernel doesn't find the socket, or can't be asked.
    """
    if near.version != far.version:
        raise FileNotFoundError("No socket has ends of two kinds.")
    family = socket.AF_INET if near.version == 4 else socket.AF_INET6
    question = (
        _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
        + _PORTS.pack(near_port, far_port)
        + _ENDS.pack(near.packed, far.packed)
        + _REST.pack(*_ANY_INTERFACE_AND_COOKIE)
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(_WAIT_S)
        kernel.send(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 0, 0) + question)
        answer = kernel.recv(_ANSWER_BYTES)
    if len(answer) < _HEADER.size + _ANSWER.size or _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        raise FileNotFoundError("The kernel doesn't know this socket.")
    *_, ports, _, _, _, _, _, uid, inode = _ANSWER.unpack_from(answer, _HEADER.size)
    if ports != _PORTS.pack(near_port, far_port):  # one that listens at the near end
        raise FileNotFoundError("The kernel doesn't know this socket.")
    return uid if inode else None
