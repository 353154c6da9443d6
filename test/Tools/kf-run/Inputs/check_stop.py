"""Whether a text is what comes before a stop text in another one.

usage: check_stop.py ALL CUT STOP
"""

import sys

whole, cut = (open(name, encoding="utf-8").read() for name in sys.argv[1:3])
assert sys.argv[3] in whole, whole
assert cut == whole[: whole.index(sys.argv[3])] + "\n", (whole, cut)
