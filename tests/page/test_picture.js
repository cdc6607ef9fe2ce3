// SPDX-License-Identifier: Apache-2.0
// Where boxes of the flame graph are, and which is next (picture.js).

for (const [name, colour] of [['--back', '#fff'], ['--text', '#000'], ['--box-text', '#000'], ['--python', '#9cc8ee'], ['--native', '#ecc777'],
    ['--kernel', '#eeaab5'], ['--mark', '#ccc'], ['--match', '#d957c4'], ['--more', '#d33'], ['--less', '#36c']])
    document.documentElement.style.setProperty(name, colour)

const MAIN = 'P main app.py:1', WIDE = 'P wide app.py:2', THIN = 'N thin /lib/x.so'

function pictureOf(data, {zoom = [], matches = null, change = {}} = {}) {
    const box = document.createElement('div'), canvas = document.createElement('canvas')
    Object.assign(box.style, {width: '1000px', height: '100px'})
    canvas.style.width = '100%'
    box.append(canvas)
    document.body.append(box)
    const picture = new FlamePicture(canvas, box), result = aggregate(data, {...startOfView(data), ...change})
    picture.show({tree: result.tree(), entries: result.names(), rootText: 'all', matches, totals: result.totals, zoom})
    return {picture, result, canvas, named: node => node < 0 ? null : node ? result.names()[picture.tree.id[node]].name : 'root'}
}

test('the box below a point is found', () => {
    const data = recording([{stack: `${MAIN};${WIDE}`, value: 899}, {stack: `${MAIN};${THIN}`, value: 1}, {stack: MAIN, value: 100}])
    const {picture, named} = pictureOf(data)
    const at = (x, row) => named(picture.nodeAt(x, row * ROW_HEIGHT + 5))
    equal([at(0, 0), at(999, 1), at(898, 2), at(899.5, 2), at(900.5, 2), at(5, 3)], ['root', 'main', 'wide', 'thin', null, null])
    equal([picture.nodeAt(-1, 5), picture.nodeAt(1000, 5)], [-1, -1])
})

test('a zoomed box and its callers fill the width', () => {
    const data = recording([{stack: `${MAIN};${WIDE}`, value: 30}, {stack: `${MAIN};${THIN};${WIDE}`, value: 10}])
    const path = ['main (app.py:1)', 'thin'].map(text => data.functions.list.findIndex(entry => entry.text === text))
    const {picture, named} = pictureOf(data, {zoom: path})
    equal([0, 1, 2, 3].map(row => named(picture.nodeAt(500, row * ROW_HEIGHT + 5))), ['root', 'main', 'thin', 'wide'])
    equal(picture.leftOf(picture.zoomed), 0)
    equal(pictureOf(data, {zoom: [path[0], 999]}).picture.ancestors.length, 2, 'a path leads as far as there are boxes')
})

// The colours of a row of pixels of a picture: [red, green, blue] by pixel.
function pixelsOfRow(picture, row, y = 5) {
    const copy = document.createElement('canvas'), {width} = picture.canvas
    Object.assign(copy, {width, height: 1})
    const context = copy.getContext('2d', {willReadFrequently: true})
    context.drawImage(picture.canvas, 0, -Math.round((row * ROW_HEIGHT + y) * picture.ratio))
    const {data} = context.getImageData(0, 0, width, 1)
    return Array.from({length: width}, (unused, x) => [...data.slice(4 * x, 4 * x + 3)])
}

test('layers have their colours, and so do matches', () => {
    const data = recording([{stack: `${MAIN};${THIN}`, value: 1}, {stack: `${MAIN};K k [k]`, value: 1}])
    const {picture, result} = pictureOf(data)
    const isNear = (colour, wanted) => colour.every((part, i) => Math.abs(part - wanted[i]) < 40)
    ok(isNear(pixelsOfRow(picture, 1)[990], [0x9c, 0xc8, 0xee]), 'Python')
    const kernel = result.names()[picture.tree.id[picture.nodeAt(5, 2 * ROW_HEIGHT + 5)]].kind === FRAME_KERNEL ? 490 : 990
    ok(isNear(pixelsOfRow(picture, 2)[1480 - kernel], [0xec, 0xc7, 0x77]), 'native')
    const hatched = new Set(pixelsOfRow(picture, 2).slice(kernel - 100, kernel).map(String))
    ok(hatched.size > 1, 'the kernel is hatched')
    const {picture: found} = pictureOf(data, {matches: result.search('^thin$').matches})
    equal(pixelsOfRow(found, 2)[1480 - kernel], [0xd9, 0x57, 0xc4])
})

test('boxes that are too thin to be seen leave no gap', () => {
    const data = recording([...Array(4000).keys()].map(i => ({stack: `${MAIN};N f${i} /x.so`, value: 1})))
    const {picture, result} = pictureOf(data)
    const white = pixelsOfRow(picture, 2).filter(colour => colour.every(part => part === 255))
    equal(white.length, 0)
    const {picture: found} = pictureOf(data, {matches: result.search('^f1778$').matches})
    const marked = pixelsOfRow(found, 2).filter(colour => String(colour) === '217,87,196')
    ok(marked.length >= 1, 'a match among them is seen')
})

test('a deep stack scrolls, and the canvas stays as large as its box', () => {
    const depth = 5000
    const data = recording([{stack: 'P f a.py:1', value: 1}])
    data.stacks = {count: depth, caller: Int32Array.from({length: depth + 1}, (unused, i) => Math.max(0, i - 1)),
        frame: new Int32Array(depth + 1), depth: Int32Array.from({length: depth + 1}, (unused, i) => i)}
    data.samples.stack = Int32Array.of(depth)
    const {picture, canvas} = pictureOf(data)
    equal([canvas.clientHeight, picture.box.scrollHeight], [100, (depth + 1) * ROW_HEIGHT])
    picture.scrollToRow(depth)
    const node = picture.nodeAt(5, 99)
    equal(picture.tree.depth[node], depth)
})

test('keys go to callers, callees and neighbours', () => {
    const data = recording([{stack: `${MAIN};${WIDE}`, value: 5}, {stack: `${MAIN};${THIN}`, value: 1}])
    const {picture: {tree, layout}, named} = pictureOf(data)
    const go = (...directions) => named(directions.reduce((node, direction) => neighbourOfNode(tree, layout, node, direction), 0))
    equal([go('down'), go('down', 'down'), go('down', 'down', 'right'), go('down', 'down', 'right', 'left'), go('up')],
        ['main', 'wide', 'thin', 'wide', 'root'])
    equal([go('down', 'down', 'down'), go('down', 'down', 'right', 'right'), go('left'), go('down', 'down', 'up')],
        ['wide', 'thin', 'root', 'main'])
})

test('a short path leads to the same box', () => {
    const data = recording([{stack: `${MAIN};${MAIN};${MAIN};${WIDE}`, value: 5}, {stack: `${MAIN};${MAIN};${MAIN};${THIN};${WIDE}`, value: 1}])
    const {picture: {tree, layout}, result} = pictureOf(data)
    for (let node = 0; node < tree.count; node++)
        equal(nodeAtPath(tree, layout, shortPathOfNode(tree, layout, node)), node)
    const id = text => idOf(result, text), wide = id('wide (app.py:2)'), main = id('main (app.py:1)'), thin = id('thin')
    const deepest = nodeAtPath(tree, layout, [thin, wide])
    equal([tree.depth[deepest], shortPathOfNode(tree, layout, deepest)], [5, [thin, wide]])
    equal(tree.depth[nodeAtPath(tree, layout, [main, thin, main, wide])], 4, 'what is not there ends the way')
    equal(nodeAtPath(tree, layout, [999]), 0)
})

test('n goes through the outermost matches from left to right, and around', () => {
    const data = recording([{stack: `${MAIN};${WIDE};P get app.py:9;P get app.py:9`, value: 5}, {stack: `${MAIN};${THIN};P get app.py:9`, value: 3},
        {stack: 'P get app.py:9', value: 1}])
    const {picture: {tree, layout}, result} = pictureOf(data), {matches} = result.search('^get$')
    const callers = node => node ? pathOfNode(tree, node).map(id => result.names()[id].name).join(' ') : ''
    let node = 0
    const seen = [1, 1, 1, 1, -1].map(step => callers(node = nextMatch(tree, layout, matches, node, step)))
    equal(seen, ['main wide get', 'main thin get', 'get', 'main wide get', 'get'])
    equal(nextMatch(tree, layout, new Uint8Array(matches.length), 0, 1), 0)
})

test('a text is cut where the box ends, and not within a character', () => {
    const {picture} = pictureOf(recording([{stack: MAIN, value: 1}]))
    equal(picture.textThatFits('main', 500), 'main')
    const cut = picture.textThatFits('😀'.repeat(50), 100)
    ok(/^(😀)+…$/u.test(cut), cut)
    equal(picture.textThatFits('mmmmmm', 3), '')
})

test('what is surely changed has a colour and a line, and the rest is grey', () => {
    const data = recording([{stack: `${MAIN};${WIDE}`, value: 500}, {stack: `${MAIN};${THIN}`, value: 500}])
    const {picture} = pictureOf(data), [main, wide, thin] = ['main', 'wide', 'thin'].map(name =>
        [...picture.tree.id.keys()].find(node => node && data.functions.list[picture.tree.id[node]].name === name))
    picture.verdicts = new Uint8Array(picture.tree.count)
    Object.assign(picture.verdicts, {[wide]: VERDICT_MORE, [thin]: VERDICT_LESS})
    const {palette} = picture
    equal([main, wide, thin].map(node => picture.fillOf(node)), [palette.same, palette.more, palette.less])
    equal(new Set([palette.same, palette.more, palette.less]).size, 3)
    picture.draw()
    const at = (node, y) => pixelsOfRow(picture, 2, y)[Math.round((picture.leftOf(node) + 300) * picture.ratio)]
    const dark = [0, 0, 0]
    equal([at(wide, 1), at(thin, ROW_HEIGHT - 2)], [dark, dark], 'above what is more, below what is less')
    ok(String(at(wide, ROW_HEIGHT - 2)) !== String(dark) && String(at(thin, 1)) !== String(dark))
})

test('of boxes too thin to be seen one that is surely changed is shown', () => {
    const samples = Array.from({length: 5000}, (unused, i) => ({stack: `${MAIN};P f${i} app.py:${i + 2}`, value: 1}))
    const {picture} = pictureOf(recording(samples)), {order, rowStart} = picture.layout, from = rowStart[2]
    picture.verdicts = new Uint8Array(picture.tree.count)
    equal(picture.mostTelling(from, from + 5), order[from])
    picture.verdicts[order[from + 3]] = VERDICT_LESS
    picture.verdicts[order[from + 2]] = VERDICT_TOLD
    equal(picture.mostTelling(from, from + 5), order[from + 3])
})
