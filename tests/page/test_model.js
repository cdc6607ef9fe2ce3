// SPDX-License-Identifier: Apache-2.0
// Sums, trees and tables of a recording (filter.js, tree.js, model.js).

const MAIN = 'P main app.py:1:5', LOAD = 'P load app.py:10:11', PARSE = 'N parse /lib/_json.so', READ = 'K vfs_read [kernel.kallsyms]'
const SAMPLES = [
    {stack: '', value: 1},
    {stack: MAIN, value: 2},
    {stack: `${MAIN};${LOAD}`, value: 4},
    {stack: `${MAIN};${LOAD};P load app.py:10:12`, value: 8},
    {stack: `${MAIN};${LOAD};${PARSE}`, value: 16},
    {stack: `${MAIN};${LOAD};${PARSE};${READ}`, value: 32},
]

function resultOf(data, change = {}) {
    return aggregate(data, {...startOfView(data), ...change})
}

test('functions have what they take themselves and with what they call, recursion once', () => {
    const result = resultOf(recording(SAMPLES))
    equal(result.totals, [63, 6])
    equal(figures(result), {'main (app.py:1)': [2, 62], 'load (app.py:10)': [12, 60], parse: [16, 48], 'vfs_read_[k]': [32, 32],
        '[no frames]': [1, 1]})
})

test('lines are rows of their own', () => {
    equal(figures(resultOf(recording(SAMPLES)), 'line'), {'main (app.py:5)': [2, 62], 'load (app.py:11)': [4, 60],
        'load (app.py:12)': [8, 8], parse: [16, 48], 'vfs_read_[k]': [32, 32], '[no frames]': [1, 1]})
})

test('the time of a hidden layer is that of the caller', () => {
    const data = recording(SAMPLES)
    equal(figures(resultOf(data, {layers: {python: true, native: false, kernel: true}})), {'main (app.py:1)': [2, 62],
        'load (app.py:10)': [28, 60], 'vfs_read_[k]': [32, 32], '[no frames]': [1, 1]})
    equal(figures(resultOf(data, {layers: {python: false, native: false, kernel: true}})), {'vfs_read_[k]': [32, 32],
        '[no frames]': [31, 31]})
})

test('a wait is the time of the function that waits', () => {
    const lock = 'M [wait: lock]'
    const data = recording([{stack: `${MAIN};${LOAD};${READ};${lock}`, value: 5}, {stack: `${PARSE};${READ};${lock}`, value: 7},
        {stack: lock, value: 9}])
    equal(figures(resultOf(data)), {'main (app.py:1)': [0, 5], 'load (app.py:10)': [5, 5], 'vfs_read_[k]': [0, 12], parse: [7, 7],
        '[wait: lock]': [9, 9]})
})

test('trees of what is called, from the root and from the leaves', () => {
    const result = resultOf(recording(SAMPLES.slice(3)))
    equal(nested(result.tree(), result.names()), {'main (app.py:1)': [0, 56, {'load (app.py:10)': [0, 56, {
        'load (app.py:10)': [8, 8, {}], parse: [16, 48, {'vfs_read_[k]': [32, 32, {}]}]}]}]})
    const main = {'main (app.py:1)': [16, 16, {}]}
    equal(nested(result.inverted(), result.names()).parse, [0, 16, {'load (app.py:10)': [0, 16, main]}])
    equal(result.inverted().total[0][0], 56)
})

test('callers and callees of a function', () => {
    const result = resultOf(recording([...SAMPLES, {stack: 'P other app.py:30;' + LOAD, value: 100}]))
    const {callers, callees, own} = result.neighbours(idOf(result, 'load (app.py:10)'))
    const named = list => list.map(({id, weights}) => [result.names()[id].text, weights[0]])
    equal(named(callers), [['other (app.py:30)', 100], ['main (app.py:1)', 60]])
    equal(named(callees), [['parse', 48], ['load (app.py:10)', 8]])
    equal(own, [104, 2])
    equal(result.neighbours(idOf(result, 'main (app.py:1)')).callers, [{id: null, weights: [62, 5]}])
    equal(nested(result.callers(idOf(result, 'parse')), result.names()),
        {'load (app.py:10)': [0, 48, {'main (app.py:1)': [48, 48, {}]}]})
    equal(nested(result.callees(idOf(result, 'load (app.py:10)')), result.names()), {'load (app.py:10)': [8, 8, {}],
        parse: [16, 48, {'vfs_read_[k]': [32, 32, {}]}]})
})

test('callees of a line are functions', () => {
    const result = resultOf(recording(SAMPLES))
    const {callees} = result.neighbours(idOf(result, 'load (app.py:11)', 'line'), 'line')
    equal(callees.map(({id, weights}) => [result.names()[id].text, weights[0]]), [['parse', 48], ['load (app.py:10)', 8]])
})

test('filters choose samples', () => {
    const data = recording([
        {stack: MAIN, value: 1, thread: 0, labels: 0}, {stack: MAIN, value: 2, thread: 1, labels: 1},
        {stack: MAIN, value: 4, thread: 2, labels: 2}, {stack: MAIN, value: 8, thread: 2, event: 1},
    ], {
        events: [{name: 'cpu-clock', isTime: true}, {name: 'page-faults', isBytes: true}],
        processes: [{pid: 7, name: 'a'}, {pid: 8, name: 'b'}],
        threads: [{process: 0, tid: 7}, {process: 0, tid: 9}, {process: 1, tid: 8}],
        labelSets: [[], ['interpreter', '1'], ['interpreter', '2', 'asyncio task', 'fetch']],
    })
    const total = change => resultOf(data, change).totals[0]
    equal(total({}), 7)
    equal(total({event: 1}), 8)
    equal(total({process: 0}), 3)
    equal(total({thread: 1}), 2)
    equal(total({interpreter: '2'}), 4)
    equal(total({interpreter: ''}), 1)
    equal(total({task: 'fetch'}), 4)
    equal(total({from: 1}), 6)
    equal(total({from: 1, to: 2}), 2)
    equal(total({process: 0, thread: 2}), 0)
    equal(data.wholes, [[7], [8]])
})

test('filters choose stacks and where they begin', () => {
    const data = recording(SAMPLES)
    equal(resultOf(data, {focus: '^parse$'}).totals[0], 48)
    equal(resultOf(data, {focus: 'module:_json'}).totals[0], 48)
    equal(resultOf(data, {focus: 'module:app'}).totals[0], 0, 'the module of a Python function is the interpreter')
    equal(resultOf(data, {ignore: 'file:app'}).totals[0], 1)
    equal(resultOf(data, {ignore: 'vfs', focus: 'parse'}).totals[0], 16)
    equal(figures(resultOf(data, {rootAt: '^load$'})), {'load (app.py:10)': [12, 60], parse: [16, 48], 'vfs_read_[k]': [32, 32]})
    equal(figures(resultOf(data, {rootAt: '^load$', layers: {python: false, native: true, kernel: true}})),
        {'[no frames]': [12, 12], parse: [16, 48], 'vfs_read_[k]': [32, 32]})
    equal(resultOf(data, {focus: '(', ignore: '[', rootAt: '*'}).totals[0], 63, 'what is no expression is none')
})

test('a search counts each stack once', () => {
    const result = resultOf(recording(SAMPLES)), found = result.search('load')
    equal(found.weights, [60, 4])
    equal([...found.matches.keys()].filter(id => found.matches[id]), [idOf(result, 'load (app.py:10)')])
    equal(result.search('function:app'), {...result.search('nothing at all')})
    equal(result.search('(parse|main)').weights[0], 62)
    equal([result.search(''), result.search('(')], [null, null])
    const hidden = resultOf(recording(SAMPLES), {layers: {python: true, native: true, kernel: false}})
    equal(hidden.search('vfs').weights[0], 0, 'what is hidden is not found')
})

test('a second set of samples has weights of its own', () => {
    const data = recording([{stack: MAIN, value: 30}, {stack: `${MAIN};${LOAD}`, value: 10}, {stack: MAIN, value: 50, set: 1},
        {stack: `${MAIN};${PARSE}`, value: 50, set: 1}], {sets: ['new', 'old']})
    const result = resultOf(data)
    equal(result.totals, [40, 100, 2])
    const row = text => result.row(idOf(result, text))
    equal(row('main (app.py:1)').self, [30, 50, 1])
    equal(row('main (app.py:1)').total, [40, 100, 2])
    equal(row('parse').total, [0, 50, 0])
})

test('the set that is shown comes first', () => {
    const data = recording([{stack: MAIN, value: 30}, {stack: MAIN, value: 50, set: 1}, {stack: PARSE, value: 5, set: 1}], {sets: ['new', 'old']})
    const result = resultOf(data, {side: 'old'})
    equal(result.totals, [55, 30, 2])
    equal(result.row(idOf(result, 'parse')).total, [5, 0, 1])
})

test('time is spread over what a sample stands for', () => {
    // Samples of 2,000 ns at 1 and 4 µs: half of the second is between 3 and 4.
    const data = recording([{stack: MAIN, value: 2000, time: 4}, {stack: `${MAIN};${PARSE}`, value: 500, time: 0}])
    const {sums, width} = weightsOverTime(resultOf(data), 5)
    equal(width, 1)
    equal(sums[FRAME_PYTHON], [0, 0, 1000, 1000, 0])
    equal(sums[FRAME_NATIVE], [500, 0, 0, 0, 0])
    const range = weightsOverTime(resultOf(data, {from: 4}), 5)
    equal(range.sums, sums, 'the range that is shown does not matter')
    // What is owed came since what was owed for the same place before, or since the start.
    const owed = recording([{stack: MAIN, value: 200, time: 2, flags: FLAG_OWED}, {stack: MAIN, value: 400, time: 4, flags: FLAG_OWED}])
    equal(weightsOverTime(resultOf(owed), 5).sums[FRAME_PYTHON], [100, 100, 200, 200, 0])
})

test('all weight stays when it is spread', () => {
    const samples = []
    for (let i = 0; i < 500; i++)
        samples.push({stack: i % 3 ? MAIN : PARSE, value: i * 37 % 5000, time: i * 7919 % 1000})
    const {sums} = weightsOverTime(resultOf(recording(samples)), 61)
    const all = sums.reduce((sum, column) => sum + column.reduce((a, b) => a + b, 0), 0)
    ok(Math.abs(all - samples.reduce((sum, sample) => sum + sample.value, 0)) < 1e-6, String(all))
})

test('stacks of 100,000 frames need no recursion', () => {
    const depth = 100000, data = recording([{stack: 'P f a.py:1', value: 1}])
    data.stacks = {count: depth, caller: Int32Array.from({length: depth + 1}, (unused, i) => Math.max(0, i - 1)),
        frame: new Int32Array(depth + 1), depth: Int32Array.from({length: depth + 1}, (unused, i) => i)}
    data.samples.stack = Int32Array.of(depth)
    const result = resultOf(data), id = idOf(result, 'f (a.py:1)')
    equal(figures(result), {'f (a.py:1)': [1, 1]})
    equal([result.tree().count, result.inverted().count, result.callees(id).count, result.callers(id).count],
        [depth + 1, depth + 1, depth, 1])
    equal(layOutTree(result.tree()).rowStart.length, depth + 2)
    equal(result.neighbours(id).callees.length, 1)
})

test('callers are left out where there are too many, of the lightest stacks', () => {
    const depth = 3000, stacks = {caller: [0], frame: [0], depth: [0]}, data = recording([{stack: 'P f a.py:1', value: 1}])
    // One long stack, and samples on each of its frames.
    for (let i = 1; i <= depth; i++) {
        stacks.caller.push(i - 1)
        stacks.frame.push(0)
        stacks.depth.push(i)
    }
    data.stacks = {count: depth, caller: Int32Array.from(stacks.caller), frame: Int32Array.from(stacks.frame), depth: Int32Array.from(stacks.depth)}
    Object.assign(data.samples, {count: depth, stack: Int32Array.from({length: depth}, (unused, i) => i + 1),
        value: new Float64Array(depth).fill(1), time: new Float64Array(depth)})
    for (const name of ['thread', 'event', 'labels', 'flags', 'set'])
        data.samples[name] = new Int32Array(depth)
    const inverted = resultOf(data, {}).inverted()
    ok(inverted.cutWeight > 0 && inverted.cutWeight < depth, String(inverted.cutWeight))
    equal(inverted.total[0][0], depth, 'no weight is lost')
})

test('boxes of a row stand from left to right, the heaviest child first', () => {
    const result = resultOf(recording([{stack: `${MAIN};${PARSE}`, value: 1}, {stack: `${MAIN};${LOAD}`, value: 5}, {stack: READ, value: 3}]))
    const tree = result.tree(), {order, rowStart, left} = layOutTree(tree)
    const rows = rowStart.slice(0, -1).map((from, row) => [...order.slice(from, rowStart[row + 1])].map(node =>
        node ? [result.names()[tree.id[node]].name, left[node], tree.total[0][node]] : 'root'))
    equal(rows, [['root'], [['main', 0, 6], ['vfs_read', 6, 3]], [['load', 0, 5], ['parse', 5, 1]]])
})

test('many nodes are kept apart', () => {
    const tree = new TreeBuilder(1)
    const nodes = new Set()
    for (let parent = 0; parent < 300; parent++) {
        for (let id = 0; id < 300; id++)
            nodes.add(tree.child(parent, id))
    }
    equal([nodes.size, tree.count], [90000, 90001])
    equal(tree.child(123, 45), tree.child(123, 45))
    equal(tree.count, 90001)
})

test('expressions whose search might never end are refused', () => {
    for (const text of ['(a+)+$', '(a|a)*b', '(a|b)+', '((ab)*c)*', '(a?){40}a{40}', '(?:a*){2,}', 'function:(x+x+)+y', '(a*)*?b',
        'a?'.repeat(30) + 'a'.repeat(30), '(a|a)'.repeat(30) + 'b', '.*.*.*.*.*.*x', '((a)|b)*', '([)]+)+', '(a?)?'.repeat(20), '(a|b)?'.repeat(13), 'a'.repeat(200000)])
        equal(parsePatternOrNull(text), null, text.slice(0, 99))
    for (const text of ['a.*b.*c', '^parse$', 'foo|bar|baz', '(foo|bar)', '(ab)+', '[a*|b]*', '\\(a\\)+', 'a{3}', '(?:x)*', 'a??',
        '(json|re)\\.(load|dump)s?', '\\*\\*\\*\\*\\*\\*', '[(]+x', 'a+?b', '\\[a+\\]+', 'file:x|y', 'größe+', '(?=a)b', 'a*(b)+', 'a?|(b)+', '(a{3})+', 'a?(b)*'])
        ok(parsePatternOrNull(text), text)
})
