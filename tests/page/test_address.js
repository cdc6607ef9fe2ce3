// SPDX-License-Identifier: Apache-2.0
// The state in the address (address.js), and ranges of time (strip.js).

const STACK = 'P main app.py:1;P main app.py:1;N parse /lib/x.so'

function made() {
    return recording([{stack: STACK, value: 1, time: 0}, {stack: STACK, value: 1, time: 999, event: 1}], {
        events: [{name: 'page-faults', isBytes: true, unit: 'bytes'}, {name: 'cpu-clock', isTime: true, unit: 'ns'}],
        processes: [{pid: 7, name: 'app & co'}, {pid: 7, name: 'app & co'}],
        threads: [{process: 0, tid: 7, name: 'é=#'}, {process: 1, tid: 8, name: '<\/script>'}],
    })
}

function afterReload(data, change) {
    return readAddress(data, writeAddress(data, {...startOfView(data), ...change}))
}

test('nothing is written of the state at the start', () => {
    const data = made()
    equal(writeAddress(data, startOfView(data)), '')
    equal(readAddress(data, ''), startOfView(data))
    equal(startOfView(data).event, 1, 'an event of time comes first')
})

test('a link shows what its sender saw', () => {
    const data = made(), main = data.functions.list.findIndex(entry => entry.name === 'main')
    for (const change of [
        {tab: 'table', sort: '-total', by: 'line'}, {event: 0}, {process: 1}, {thread: 0}, {process: 1, thread: 1},
        {interpreter: '1', task: 'a&b=c #%+ é\u202e'}, {interpreter: '', task: ''}, {from: 17, to: 999}, {from: 17}, {to: 3},
        {layers: {python: true, native: false, kernel: true}}, {layers: {python: false, native: false, kernel: false}},
        {search: '^a|b&c$', focus: 'x y', ignore: '"', rootAt: '<'}, {order: 'leaves', zoom: [2, main, main]},
        {order: 'function', selected: main, zoom: [2], callerZoom: [main, 2]}, {selected: main},
        {tab: 'source', file: '/srv/a b.py', line: 12}, {theme: 'dark'},
    ])
        equal(afterReload(data, change), {...startOfView(data), ...change})
})

test('what is not of this recording, or not readable, is ignored', () => {
    const data = made(), start = startOfView(data)
    for (const text of ['event=none', 'process=99', 'thread=', 'selected=gone', 'tab=secret', 'by=%FF', 'theme=pink', 'time=x',
        'time=5-1', 'time=1', 'time=--', 'line=-3', 'line=x', 'zoom=gone', '%', '&&=&', '__proto__=1', 'constructor=2'])
        equal(readAddress(data, text), start, text)
    equal(readAddress(data, 'layers=none').layers, {python: false, native: false, kernel: false})
    equal(readAddress(data, 'zoom=gone&zoom=parse').zoom, [data.words.functionOf.get('parse')])
})

test('a range follows the keys', () => {
    const data = made(), all = {from: null, to: null}, some = {from: 100, to: 200}
    equal([data.firstTime, data.endTime], [0, 1000])
    equal(rangeAfterKey(data, all, 'ArrowRight', false), [0, 100])
    equal(rangeAfterKey(data, all, 'ArrowLeft', false), [900, 1000])
    equal(rangeAfterKey(data, some, 'ArrowRight', false), [120, 220])
    equal(rangeAfterKey(data, some, 'ArrowLeft', true), [100, 180])
    equal(rangeAfterKey(data, {from: 100, to: 110}, 'ArrowLeft', true), [100, 101])
    equal(rangeAfterKey(data, {from: 5, to: 110}, 'ArrowLeft', false), [0, 105])
    equal(rangeAfterKey(data, {from: 900, to: 995}, 'ArrowRight', false), [905, 1000])
    equal(rangeAfterKey(data, {from: 900, to: 995}, 'ArrowRight', true), [900, 1000])
    equal(rangeAfterKey(data, some, 'Home', false), [0, 100])
    equal(rangeAfterKey(data, some, 'End', false), [900, 1000])
    equal([rangeAfterKey(data, some, 'Escape', false), rangeAfterKey(data, some, 'a', false)], [null, undefined])
})

test('a range follows the mouse', () => {
    const data = made()
    equal(rangeOfDrag(data, 500, 250, 100), [200, 500])
    equal(rangeOfDrag(data, 500, 100, 101), null)
    equal(rangeOfDrag(data, 500, 400, 900), [800, 1000])
    equal(changeOfRange(data, null), {from: null, to: null})
    equal(changeOfRange(data, [0, 1000]), {from: null, to: null})
    equal(changeOfRange(data, [0, 999]), {from: 0, to: 999})
})

test('labels of time are at round numbers', () => {
    equal([stepOfLabels(10, 10), stepOfLabels(7, 3), stepOfLabels(0.03, 10), stepOfLabels(3600, 8)], [1, 5, 0.005, 500])
    equal(textOfBarHeight({isTime: true}, 3e9, 2), '1.5 CPUs')
    equal(textOfBarHeight({isTime: true, isWaiting: true}, 30e9, 2), '15 threads')
    equal(textOfBarHeight({isTime: true, isWaiting: true, isTask: true}, 30e9, 2), '15 tasks')
    equal(textOfBarHeight({isTime: true, isCounted: true}, 3e9, 2), '1.5 s/s')
    equal(textOfBarHeight({isBytes: true}, 4096, 2), '2.0 KiB/s')
    equal(textOfBarHeight({unit: 'switches'}, 5, 2), '2.5 switches/s')
})
