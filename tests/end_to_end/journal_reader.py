# SPDX-License-Identifier: Apache-2.0
"""A reader of the journal, written from docs/journal.md alone and sharing no code with the tools: if the page were wrong,
or the format moved away from it, the tests that hold the two against each other would fail."""

import ctypes
import os
import struct

sector = 4096
xxhash = ctypes.CDLL("libxxhash.so.0")


class Halves(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


xxhash.XXH3_128bits.restype = Halves
xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
xxhash.XXH3_64bits_withSeed.restype = ctypes.c_uint64
xxhash.XXH3_64bits_withSeed.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]


def digest(data):
    halves = xxhash.XXH3_128bits(data, len(data))
    return struct.pack("<QQ", halves.low, halves.high)


def hash64(data, seed=0):
    return xxhash.XXH3_64bits_withSeed(data, len(data), seed)


def text(value):
    """A digest as the tools print it."""
    return value[::-1].hex()


def hard_state(directory):
    with open(os.path.join(directory, "hardstate"), "rb") as file:
        content = file.read()
    assert len(content) == 69632
    found = []
    for copy, at in enumerate((0, 65536)):
        page = bytearray(content[at:at + sector])
        assert page[16:24] == b"LKSTHARD" and page[26] == copy
        page[26] = 0
        assert digest(bytes(page[16:])) == page[:16], "a copy of the hard state is damaged"
        sequence, oldest, newest = (struct.unpack_from("<Q", page, offset)[0] for offset in (56, 104, 112))
        found.append({"sequence": sequence, "cluster": bytes(page[32:48]), "oldest": oldest, "newest": newest})
    return max(found, key=lambda state: state["sequence"])


def records(payload):
    at = 0
    while at < len(payload):
        header = payload[at:at + 64]
        length, = struct.unpack_from("<I", header, 0)
        check, seq, stamp = struct.unpack_from("<IQq", header, 44)
        body = payload[at + 64:at + 64 + length]
        assert check == hash64(body, hash64(header[:44])) & 0xFFFFFFFF, "a record's check differs"
        yield {"kind": header[4], "seq": seq, "time_ns": stamp, "body": body}
        at += 64 + (length + 15) // 16 * 16


def blocks(segment):
    """The blocks of a segment's bytes, verified, up to the first that does not verify."""
    assert segment[16:24] == b"LKSTSEG1" and digest(segment[16:sector]) == segment[:16]
    at, number, before = sector, 1, segment[:16]
    while segment[at + 16:at + 24] == b"LKSTBLK1":
        header_bytes, = struct.unpack_from("<I", segment, at + 28)
        own_offset, block_no, flags, total, length = struct.unpack_from("<QIIII", segment, at + 64)
        if digest(segment[at + 16:at + header_bytes]) != segment[at:at + 16]:
            return
        assert (own_offset, block_no) == (at, number) and segment[at + 56:at + 64] == segment[64:72]
        assert segment[at + 208:at + 224] == before
        start, end = (at + 256, at + sector) if flags & 1 else (at + header_bytes, at + total)
        payload = segment[start:start + length]
        assert digest(payload) == segment[at + 160:at + 176] and set(segment[start + length:end]) <= {0xA5}
        yield segment[at + 26], segment[at:at + 256], payload
        at, number, before = at + total, number + 1, segment[at:at + 16]


def read(directory):
    """Batches of a journal, as (index, chain as text, records)."""
    state = hard_state(directory)
    index, seq, chain = 0, 0, bytes(16)
    segment_id = state["oldest"]
    while True:
        path = os.path.join(directory, f"seg-{segment_id:016x}.jnl")
        if not os.path.exists(path):
            assert segment_id > state["newest"]
            return
        with open(path, "rb") as file:
            segment = file.read()
        assert segment[32:48] == state["cluster"]
        for kind, header, payload in blocks(segment):
            if kind != 1:
                assert header[192:208] == chain or index == 0
                continue
            fields = {name: header[at:at + size] for name, at, size in (
                ("previous", 176, 16), ("first_seq", 104, 8), ("first_time", 120, 8), ("last_time", 128, 8),
                ("schema", 136, 8), ("count", 112, 4), ("bytes", 84, 4), ("digest", 160, 16))}
            if index == 0:
                index, chain = struct.unpack_from("<Q", header, 88)[0] - 1, fields["previous"]
                seq = struct.unpack("<Q", fields["first_seq"])[0] - 1
            index += 1
            assert struct.unpack_from("<Q", header, 88)[0] == index and fields["previous"] == chain
            chain = digest(b"".join(fields.values()))
            assert header[192:208] == chain, f"batch {index}: the chain differs"
            content = list(records(payload))
            assert [record["seq"] for record in content] == list(range(seq + 1, seq + 1 + len(content)))
            seq += len(content)
            yield index, text(chain), content
        segment_id += 1
