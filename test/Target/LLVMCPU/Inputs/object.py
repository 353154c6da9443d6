"""Takes the objects out of an executable file, an archive: object.py FROM TO"""

import sys

MAGIC, HEADER, SIZE = b"!<arch>\n", 60, slice(48, 58)

data = open(sys.argv[1], "rb").read()
begin = data.index(MAGIC)
end = begin + len(MAGIC)
# What stands behind the archive is no member's header.
while data[end + HEADER - 2 : end + HEADER] == b"`\n":
    size = int(data[end : end + HEADER][SIZE])
    end += HEADER + size + size % 2
with open(sys.argv[2], "wb") as file:
    file.write(data[begin:end])
