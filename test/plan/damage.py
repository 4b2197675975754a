"""damage.py IN OUT flip|tables|unaligned|code|cut|segments|version|zero: a copy of a plan with a changed byte, or, under a right trailer, with
a root offset that points outside or between two fields, with garbage for machine code, with machine code that ends early or whose segments
are too large, of minor version 250, or with 0 for the number 7654321."""
import ctypes
import struct
import sys

source, target, how = sys.argv[1:]
data = bytearray(open(source, "rb").read())
if how == "flip":
    data[100] ^= 1
else:
    number = struct.pack("<I", 7654321)
    if how == "tables":
        data[0:4] = struct.pack("<I", 0x7FFFFFF0)
    elif how == "unaligned":
        struct.pack_into("<I", data, 0, struct.unpack_from("<I", data, 0)[0] + 1)
    elif how == "code":
        assert data.count(b"\x7fELF") > 0
        data = data.replace(b"\x7fELF", b"\x7fFLE")
    elif how in ("cut", "segments"):
        at, images = 0, 0
        while (at := data.find(b"\x7fELF", at)) >= 0:
            if how == "cut":  # the length of the vector stands before its bytes
                struct.pack_into("<I", data, at - 4, struct.unpack_from("<I", data, at - 4)[0] - 1)
            for i in range(struct.unpack_from("<H", data, at + 56)[0] if how == "segments" else 0):
                struct.pack_into("<Q", data, at + 64 + 56 * i + 32, 1 << 40)  # bytes of the segment in the file
            at, images = at + 4, images + 1
        assert images > 0
    elif how == "version":
        table = struct.unpack_from("<I", data, 0)[0]
        vtable = table - struct.unpack_from("<i", data, table)[0]
        minor = struct.unpack_from("<H", data, vtable + 6)[0]  # the second field of the root table
        struct.pack_into("<H", data, table + minor, 250)
    else:
        assert data.count(number) == 1
        data = data.replace(number, bytes(4))
    xxhash = ctypes.CDLL("libxxhash.so.0")

    class Hash(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]

    xxhash.XXH3_128bits.restype = Hash
    body = bytes(data[:-32])
    digest = xxhash.XXH3_128bits(body, ctypes.c_size_t(len(body)))
    data[-24:-8] = struct.pack(">QQ", digest.high, digest.low)
open(target, "wb").write(data)
