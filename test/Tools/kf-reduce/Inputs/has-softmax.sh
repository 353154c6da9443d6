#!/bin/sh
# Interesting (1) while the module passes the verifier and holds a softmax.
kf-opt "$1" | grep -q kf.softmax && exit 1
exit 0
