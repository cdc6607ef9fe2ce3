"""Burns CPU in three functions, a known share in each; prints what it measured itself.

usage: proportions.py SECONDS
"""
import json
import sys
import time


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(50))


def six_tenths():
    burn(0.06)


def three_tenths():
    burn(0.03)


def one_tenth():
    burn(0.01)


spent = {f.__name__: 0.0 for f in (six_tenths, three_tenths, one_tenth)}
end = time.time() + float(sys.argv[1])
while time.time() < end:
    for function in (six_tenths, three_tenths, one_tenth):
        start = time.thread_time()
        function()
        spent[function.__name__] += time.thread_time() - start
print(json.dumps(spent))
