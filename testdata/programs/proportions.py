"""Burns CPU in three functions, a known share in each; prints what it measured itself.

usage: proportions.py SECONDS      of its own clock
"""
import json
import sys
import time

clock = getattr(time, "thread_time", None) or time.clock  # of one thread, the same


def burn(seconds):
    end = clock() + seconds
    while clock() < end:
        sum(range(50))


def six_tenths():
    burn(0.06)


def three_tenths():
    burn(0.03)


def one_tenth():
    burn(0.01)


spent = {f.__name__: 0.0 for f in (six_tenths, three_tenths, one_tenth)}
end = clock() + float(sys.argv[1])
while clock() < end:
    for function in (six_tenths, three_tenths, one_tenth):
        start = clock()
        function()
        spent[function.__name__] += clock() - start
print(json.dumps(spent))
