"""Takes the object file out of an executable file: object.py FROM TO"""

import sys

data = open(sys.argv[1], "rb").read()
with open(sys.argv[2], "wb") as file:
    file.write(data[data.index(b"\x7fELF"):])
