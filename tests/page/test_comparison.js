// SPDX-License-Identifier: Apache-2.0
// How two sets of runs are put together, and which row of the comparison a box or a function has (comparison.js).

const MAIN = 'P main app.py:1', SMALL = 'P small app.py:5'

function rowOf(change) {
    return {kind: 'node', answer: 'cannot_tell', match: 'same', because: null, code: 'unknown', tested: true, words: 'words', function_line: 1, ...change}
}

// A comparison of captures; `captures` are pairs of side and factor, or null. Rows are of nodes, whose paths are names.
function compared(samples, captures, rows, {files = {}, ...more} = {}) {
    const functions = [], nodes = [0, -1], known = new Map([['', 0]])
    const functionOf = name => {
        if (!functions.some(each => each.name === name))
            functions.push({name, file: files[name] || 'app.py', line: 1, unqualified: false})
        return functions.findIndex(each => each.name === name)
    }
    const nodeOf = path => {
        const key = path.join(';')
        if (!known.has(key)) {
            nodes.push(nodeOf(path.slice(0, -1)), functionOf(path.at(-1)))
            known.set(key, nodes.length / 2 - 1)
        }
        return known.get(key)
    }
    const numbers = rows.map(row => row.path ? nodeOf(row.path) : -1)
    const runs = captures.filter(capture => capture).map(([side, factor]) => ({side, factor, name: side, samples: 1, total: 1, ticks: 1, lost: 0, work: 0}))
    return recording(samples, {
        comparison: {event: 'cpu-clock', rows, runs, problems: [], rules: [], by_work: false, conclusive: true, is_time: true, is_waiting: false, is_task: false, is_cpu: true, ...more},
        compared: {captures, functions, nodes, rows: numbers, sums: []},
    })
}

function resultOf(data, change = {}) {
    return aggregate(data, {...startOfView(data), ...change})
}

// The rows of the boxes from the root, by the names on the way: lists of numbers.
function rowsByPath(result) {
    const tree = result.tree(), rows = result.comparedRows(tree, 'root', null), out = {}
    rows.forEach((list, node) => list.length && (out[pathOfNode(tree, node).map(id => result.names()[id].name).join(' ')] = list))
    return out
}

const TWO = [['old', 2], ['old', 4], null, ['new', 0.5]]

test('weights are means of the runs of a side, by size; what was left out is gone', () => {
    const data = compared([{stack: MAIN, value: 8}, {stack: MAIN, value: 8, capture: 1}, {stack: MAIN, value: 1000, capture: 2},
        {stack: MAIN, value: 3, capture: 3}], TWO, [])
    equal(resultOf(data).totals, [6, (4 + 2) / 2, 1])
    equal(resultOf(data, {side: 'old'}).totals, [3, 6, 2])
    equal(data.samples.count, 3)
    equal(data.wholes[0], [6, 3])
})

test('a function is one wherever it stands in its file', () => {
    const data = compared([{stack: `${MAIN};P small app.py:5`, value: 2}, {stack: `${MAIN};P small app.py:9`, value: 3, capture: 3}], TWO, [])
    const result = resultOf(data), small = result.rows().filter(row => result.names()[row.id].name === 'small')
    equal(small.map(row => [result.names()[row.id].text, row.self[0], row.self[1]]), [['small (app.py:9)', 6, 0.5]])
})

test('a function that moved to another file is one, and so are the others of that file', () => {
    const rows = [rowOf({function: 'small', file: 'new.py', old_function: 'small', old_file: 'old.py', match: 'moved'}),
        rowOf({function: 'fresh', file: 'new.py', old_function: 'stale', old_file: 'old.py', match: 'renamed'})]
    const data = compared([{stack: 'P small old.py:5;P other old.py:7;P stale old.py:8', value: 2},
        {stack: 'P small new.py:5;P other new.py:7;P fresh new.py:8', value: 2, capture: 3}], TWO, rows)
    const result = resultOf(data)
    equal(result.rows().map(row => [result.names()[row.id].text, row.total[0], row.total[1]]).sort(),
        [['fresh (new.py:8)', 4, 0.5], ['other (new.py:7)', 4, 0.5], ['small (new.py:5)', 4, 0.5]])
})

test('boxes have the rows of their paths, through native code and recursion', () => {
    const rows = [rowOf({kind: 'total'}), rowOf({path: ['main', 'small'], answer: 'slower', function: 'small', file: 'app.py'}),
        rowOf({path: ['main', 'small', 'load'], answer: 'faster', function: 'load', file: 'app.py'})]
    const data = compared([{stack: `${MAIN};N call x.so;${SMALL};${MAIN};${SMALL};P load app.py:9`, value: 1, capture: 3}], TWO, rows)
    const layers = {python: true, native: true, kernel: true}, result = resultOf(data, {layers})
    // The second main leads back to the first, and what it calls with it.
    equal(rowsByPath(result), {'main call small': [1], 'main call small main small': [1], 'main call small main small load': [2]})
    equal(result.comparedRows(result.tree(), 'root', null).map(list => data.compared.verdictOf(list)), [0, 0, 0, 1, 0, 1, 2])
    equal(rowsByPath(resultOf(data, {rootAt: 'small', layers})), {}, 'stacks that begin elsewhere')
})

test('from the leaves and around a function only whole functions have rows', () => {
    const rows = [rowOf({kind: 'function_self', function: 'small', file: 'app.py', answer: 'slower'}),
        rowOf({kind: 'function_total', function: 'small', file: 'app.py', answer: 'of_callees', because: 0})]
    const data = compared([{stack: `${MAIN};${SMALL}`, value: 1, capture: 3}], TWO, rows), result = resultOf(data)
    const inverted = result.inverted(), id = idOf(result, 'small (app.py:5)')
    equal(result.comparedRows(inverted, 'leaves', null), [[], [0], []])
    equal(result.comparedRows(result.callees(id), 'function', id), [[1]])
    equal(result.comparedRows(result.callers(id), 'function', id), [[1], []], 'the picture above it has boxes of its own')
    equal([0, 1].map(row => verdictOfRow(rows[row])), [VERDICT_MORE, VERDICT_TOLD])
    equal(data.compared.rowOfFunction(id), rows[0])
})

test('without a comparison there is none', () => {
    const data = recording([{stack: MAIN, value: 1}]), result = resultOf(data)
    equal([data.compared, result.comparedRows(result.tree(), 'root', null), startOfView(data).tab], [null, null, 'flame'])
    equal(readAddress(data, 'tab=compare&side=old'), startOfView(data))
})

test('the address keeps the side; a comparison opens with what it says', () => {
    const data = compared([{stack: MAIN, value: 1}], TWO, [])
    equal([startOfView(data).tab, startOfView(data).layers], ['compare', {python: true, native: false, kernel: false}])
    const change = {side: 'old', tab: 'table', layers: {python: true, native: true, kernel: true}}
    equal(readAddress(data, writeAddress(data, {...startOfView(data), ...change})), {...startOfView(data), ...change})
})

test('rows are told under the finding that they go back to', () => {
    const rows = [rowOf({}), rowOf({answer: 'slower'}), rowOf({answer: 'of_callees', because: 1}), rowOf({answer: 'gave_way', because: 2})]
    equal(rowsTold(rows), new Map([[1, [2, 3]]]))
    rows[1].because = 3 // a hostile page
    ok(rowsTold(rows).size > 0)
})

test('of runs that a baseline keeps there are call paths', () => {
    const rows = [rowOf({path: ['main', 'small'], function: 'small', file: 'app.py'}), rowOf({path: ['main', 'gone'], function: 'gone', file: 'app.py'})]
    const made = compared([{stack: `${MAIN};P small app.py:5`, value: 6, capture: 0}], [['new', 2]], rows)
    // The same, with what two old runs have of the nodes: main 0.5 in three samples, small 4 in ten, gone 2 in five.
    const {head, samples} = made, data = recording([{stack: `${MAIN};P small app.py:5`, value: 6}], {
        comparison: {...head.comparison, runs: [...head.comparison.runs, {side: 'old', factor: 1}, {side: 'old', factor: 1}]},
        compared: {...head.compared, captures: [['new', 2]], sums: [1, 0, 0, 0.5, 3, 2, 0, 0, 4, 10, 3, 0, 0, 2, 5]},
    })
    equal([samples.count, data.samples.count, countKeptRuns(data.head, 'old'), countKeptRuns(data.head, 'new')], [1, 4, 2, 0])
    const result = resultOf(data), old = resultOf(data, {side: 'old'})
    equal([result.totals, old.totals], [[3, 3.25, 1], [3.25, 3, 18]])
    equal(old.rows().map(row => [old.names()[row.id].name, row.self]).sort(), [['gone', [1, 0, 5]], ['main', [0.25, 0, 3]], ['small', [2, 3, 10]]])
    equal(Object.keys(rowsByPath(old)).sort(), ['main gone', 'main small'])
    equal(resultOf(data, {side: 'old', from: 0}).totals, [0, 3, 0], 'they have no time')
    equal(weightsOverTime(old, 5).sums.flatMap(sums => [...sums]).reduce((a, b) => a + b, 0), 0)
})
