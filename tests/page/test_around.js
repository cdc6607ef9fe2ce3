// SPDX-License-Identifier: Apache-2.0
// The pictures around a function: callers above it, what it called below (flame.js, picture.js, tree.js).

const MAIN = 'P main app.py:1', OTHER = 'P other app.py:9', LOAD = 'P load app.py:20', PARSE = 'N parse /lib/x.so', SECOND = 1e9
const SAMPLES = [
    {stack: `${MAIN};${LOAD}`, value: 2 * SECOND},
    {stack: `${MAIN};${LOAD};${PARSE};${LOAD}`, value: 3 * SECOND},
    {stack: `${MAIN};${OTHER};${LOAD};${PARSE}`, value: 4 * SECOND},
    {stack: `${LOAD};${PARSE}`, value: SECOND},
    {stack: MAIN, value: 10 * SECOND},
]
const LOADED = 'load (app.py:20)'

// The page with these samples, drawn; `change` is of the state, with the name of a function for `selected`.
function drawn(samples, change = {}) {
    const data = recording(samples), selected = data.functions.list.findIndex(entry => entry.text === change.selected)
    page.data = data
    page.view = {...startOfView(data), ...change, selected: selected < 0 ? null : selected}
    page.result = aggregate(data, page.view)
    const view = page.views.find(each => each.name === 'flame')
    if (!flame.lower)
        view.init(page)
    Object.assign(byId('flame-area').style, {display: 'flex', flexDirection: 'column', width: '1000px', height: '180px'})
    Object.assign(byId('flame-box').style, {flex: '1', minHeight: '0'})
    byId('callers-box').style.flex = 'none'
    view.draw(page)
    return page.result
}
const around = selected => ({order: 'function', selected})

// What the pictures have at a place, counted in rows from the top of both: a name, null for nothing.
function nameAt(x, row) {
    const y = row * ROW_HEIGHT + 5, {upper, lower} = flame, height = upper.box.hidden ? 0 : upper.box.clientHeight
    const picture = y < height ? upper : lower, node = picture.nodeAt(x, y < height ? y : y - height)
    return node < 0 ? null : page.result.names()[picture.idOf(node)].name
}

test('callers stand above a function, the direct ones next to it, and what it called below', () => {
    drawn(SAMPLES, around(LOADED))
    const column = x => [0, 1, 2, 3, 4, 5].map(row => nameAt(x, row))
    // Of 10 s main called it for 5, other for 4, and nobody for 1; it called parse for 8.
    equal(column(10), [null, 'main', 'load', 'parse', 'load', null])
    equal(column(600), ['main', 'other', 'load', 'parse', null, null])
    equal(column(950), [null, null, 'load', null, null, null])
})

test('a picture around a function has the figures of its row and of its neighbours', () => {
    const result = drawn(SAMPLES, around(LOADED)), id = idOf(result, LOADED), {upper, lower} = flame
    equal(upper.tree.total.map(column => column[0]), result.row(id).total)
    equal(lower.tree.total.map(column => column[0]), result.row(id).total)
    const direct = tree => [...tree.id.keys()].filter(node => tree.depth[node] === 1).map(node => [tree.id[node], tree.total.map(column => column[node])])
    const rows = list => list.filter(row => row.id !== null).map(row => [row.id, row.weights])
    const sorted = list => list.sort((a, b) => b[1][0] - a[1][0])
    equal(sorted(direct(upper.tree)), rows(result.neighbours(id).callers))
    equal(sorted(direct(lower.tree)), rows(result.neighbours(id).callees))
    equal(describeNode(lower, 0), [LOADED, 'Python · app.py', 'total 10.0 s (50.0 %), self 5.0 s (25.0 %)', '4 samples'])
    for (const [name, self] of [['[wait: lock]', '1.0 s (100 %)'], [LOADED, '1.0 s (100 %)'], ['main (app.py:1)', '0 s (0 %)']]) {
        drawn([{stack: `${MAIN};${LOAD};M [wait: lock]`, value: SECOND}], around(name))
        equal(describeNode(lower, 0)[2], `total 1.0 s (100 %), self ${self}`, name)
    }
})

test('boxes around a function say what they are of', () => {
    drawn(SAMPLES, around(LOADED))
    const {upper, lower} = flame, main = upper.nodeAt(10, upper.height - 5), parse = lower.nodeAt(10, ROW_HEIGHT + 5)
    equal(describeNode(upper, main).slice(2), [`5.0 s (25.0 %) of ${LOADED} is called this way`, `2 samples, 50.0 % of ${LOADED}`])
    equal(describeNode(lower, parse).slice(2), [`below ${LOADED}: total 8.0 s (40.0 %), self 5.0 s (25.0 %)`, `3 samples, 80.0 % of ${LOADED}`])
    ok(byId('flame-note').textContent.endsWith('1.0 s of it has no caller: stacks begin with it.'), byId('flame-note').textContent)
})

test('without a function, or with one that is not shown, the page says what to do', () => {
    drawn(SAMPLES, around(null))
    equal([byId('flame-area').hidden, /^Select a function/.test(byId('flame-note').textContent)], [true, true])
    drawn(SAMPLES, {...around('parse'), focus: 'nothing'})
    equal([byId('flame-area').hidden, byId('flame-note').textContent], [true, 'parse is not in what is shown: filters leave it out.'])
    drawn(SAMPLES, around('parse'))
    equal(byId('flame-area').hidden, false)
    drawn(SAMPLES)
    equal([byId('flame-area').hidden, byId('callers-box').hidden, byId('flame-note').textContent], [false, true, ''])
})

test('arrows go through both pictures', () => {
    drawn(SAMPLES, around(LOADED))
    const go = key => {
        moveByArrow(flame.used, key)
        return [flame.used.isUpward, page.result.names()[flame.used.idOf(flame.used.current)].name]
    }
    moveTo(flame.lower, 0)
    equal(['ArrowUp', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'ArrowLeft'].map(go),
        [[true, 'main'], [true, 'other'], [true, 'main'], [true, 'other'], [true, 'main']])
    equal(['ArrowDown', 'ArrowDown', 'ArrowUp'].map(go), [[false, 'load'], [false, 'parse'], [false, 'load']])
    drawn(SAMPLES, around('main (app.py:1)'))
    moveTo(flame.lower, 0)
    equal(go('ArrowUp'), [false, 'main'], 'nobody calls it')
})

test('a search steps through both pictures, and around', () => {
    drawn(SAMPLES, {...around('parse'), search: '^(load|main)$'})
    moveTo(flame.lower, 0)
    const next = step => {
        goToMatch(step)
        return [flame.used.isUpward, pathOfNode(flame.used.tree, flame.used.current).map(id => page.result.names()[id].name).join(' ')]
    }
    equal([1, 1, 1, -1].map(next), [[false, 'load'], [true, 'load'], [false, 'load'], [true, 'load']])
})

test('many callers scroll, from the function upwards, and leave it half of the room', () => {
    const deep = Array.from({length: 300}, (unused, i) => `P f${i} a.py:1`).join(';')
    drawn([{stack: `${deep};${LOAD};${deep}`, value: 1}], around(LOADED))
    const {upper, lower} = flame
    equal([upper.box.clientHeight, lower.box.clientHeight], [90, 90])
    equal([nameAt(5, 4), nameAt(5, 5)], ['f299', 'load'])
    upper.scrollToRow(300)
    equal([upper.box.scrollTop, upper.tree.depth[upper.nodeAt(5, 5)]], [0, 300])
    upper.scrollToRow(1)
    equal(upper.tree.depth[upper.nodeAt(5, 85)], 1)
    byId('flame-area').style.height = '120px'
    fitPictures()
    equal([upper.box.clientHeight, upper.tree.depth[upper.nodeAt(5, 55)]], [60, 1], 'the lower edge stays')
    drawn([{stack: `${deep};${LOAD}`, value: 1}], around(LOADED))
    equal(upper.box.clientHeight, 180 - ROW_HEIGHT, 'what the other does not need')
})

test('callers that are too many are left out of the lightest stacks, which is said', () => {
    const depth = 3000, stacks = {caller: [0], frame: [0], depth: [0]}
    const data = recording([{stack: 'P f a.py:1;P leaf a.py:5', value: 1}])
    // A stack of f; and on each of its frames a call of leaf, with a sample of 1 ms, but of 5 s on the deepest.
    for (let i = 1; i <= depth; i++) {
        stacks.caller.push(i - 1)
        stacks.frame.push(0)
        stacks.depth.push(i)
    }
    for (let i = 1; i <= depth; i++) {
        stacks.caller.push(i)
        stacks.frame.push(1)
        stacks.depth.push(i + 1)
    }
    for (const name of Object.keys(stacks))
        stacks[name] = Int32Array.from(stacks[name])
    data.stacks = {count: 2 * depth, ...stacks}
    Object.assign(data.samples, {count: depth, stack: Int32Array.from({length: depth}, (unused, i) => depth + 1 + i),
        value: new Float64Array(depth).fill(1e6), time: new Float64Array(depth)})
    data.samples.value[depth - 1] = 5 * SECOND
    for (const name of ['thread', 'event', 'labels', 'flags', 'set'])
        data.samples[name] = new Int32Array(depth)
    const result = aggregate(data, startOfView(data)), id = idOf(result, 'leaf (a.py:5)'), callers = result.callers(id)
    equal(callers.total[0][0], result.row(id).total[0], 'no weight is lost')
    equal(Math.max(...callers.depth), depth, 'the heaviest has all')
    ok(callers.cutWeight > 0 && callers.cutWeight < 2.999 * SECOND, String(callers.cutWeight))
    equal(callers.self[0][0], callers.cutWeight, 'all of it is without any')
    equal(result.inverted().cutWeight, callers.cutWeight)
    Object.assign(page, {data, result, view: {...startOfView(data), ...around(null), selected: id}})
    const note = noteOfPictures(page, callers)
    ok(note.includes(`${textOfAmount(result.event, callers.cutWeight)} (`) && note.endsWith('of the lightest stacks: there are too many.'), note)
    ok(!note.includes('has no caller'), note)
    page.view.order = 'leaves'
    ok(noteOfPictures(page, result.inverted()).startsWith('Callers are not drawn for'))
    equal(noteOfPictures(page, result.tree()), '')
})

test('another function, or another order, is not zoomed', () => {
    const data = recording(SAMPLES), id = text => data.functions.list.findIndex(entry => entry.text === text)
    drawn(SAMPLES, around(LOADED))
    const views = page.views.splice(0, page.views.length, page.views.find(view => view.name === 'flame'))
    const zooms = () => [page.view.zoom, page.view.callerZoom]
    zoomTo(flame.lower, 1)
    zoomTo(flame.upper, 1)
    equal(zooms().map(path => path.length), [1, 1])
    setView({selected: id('parse')}, {address: 'keep'})
    equal(zooms(), [[], []])
    zoomTo(flame.upper, 1)
    setView({order: 'root'}, {address: 'keep'})
    equal(zooms(), [[], []])
    zoomTo(flame.lower, 1)
    setView({selected: id(LOADED)}, {address: 'keep'})
    equal(zooms()[0].length, 1, 'the whole stays zoomed whatever is selected')
    page.views.splice(0, 1, ...views)
})
