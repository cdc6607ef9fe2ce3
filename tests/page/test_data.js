// SPDX-License-Identifier: Apache-2.0
// Reading the parts of the page (data.js), and names and amounts (names.js).

function varints(numbers) {
    const bytes = []
    for (let number of numbers) {
        for (; number >= 128; number = Math.floor(number / 128))
            bytes.push(number % 128 + 128)
        bytes.push(number)
    }
    return Uint8Array.from(bytes)
}

async function putPart(id, count, content) {
    const packed = await new Response(new Blob([content]).stream().pipeThrough(new CompressionStream('deflate'))).arrayBuffer()
    const part = document.createElement('script')
    Object.assign(part, {type: 'text/plain', id})
    part.dataset.count = count
    part.textContent = btoa(String.fromCharCode(...new Uint8Array(packed)))
    document.body.append(part)
}

const putNumbers = (id, numbers, count = numbers.length) => putPart(id, count, varints(numbers))

const HEAD = {format: 1, name: 'x', timeUnitNs: 1000, events: [{name: 'cpu-clock', unit: 'ns', isTime: true, period: 10000}],
    sets: ['x'], processes: [{pid: 1, name: 'é'}], threads: [{process: 0, tid: 1, name: ''}], labelSets: [[]], totals: [], captures: [], sampleCount: 3}

test('numbers of all sizes are read', () => {
    const numbers = [0, 1, 127, 128, 16383, 16384, 2 ** 31, 2 ** 32 + 5, 2 ** 53 - 1]
    equal(numberReader(varints(numbers))(numbers.length, Float64Array), numbers)
    const read = numberReader(varints([1, 300, 7]))
    equal([read(1), read(2)], [[1], [300, 7]])
})

test('a column that ends too early is an error', () => throws(() => numberReader(varints([1, 2]))(3), /ends too early/))

test('differences add up, also backwards and far', () => {
    const column = Float64Array.from([10, 1, 0, 2 ** 40, 2 ** 40 - 1])
    undoDifferences(column)
    equal(column, [5, 4, 4, 4 + 2 ** 39, 4])
})

test('a page is read', async () => {
    await putPart('head', 1, JSON.stringify(HEAD))
    await putPart('strings', 6, JSON.stringify(['', 'main', 'é.py', '<\/script>', 'main (é.py:1)', 'main (é.py:5)']))
    // By column: kind, function, file, module, builtin, wait, line, column, functionLine, functionEnd, inlined, shown, shownLine.
    await putNumbers('frames', [0, 1, 1, 3, 2, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 2 ** 32 - 1, 1, 0, 0, 0, 0, 0, 4, 3, 5, 3], 2)
    await putNumbers('stacks', [0, 1, 0, 0, 1, 1], 3)
    await putNumbers('sample-stack', [3, 2, 0])
    await putNumbers('sample-time', [0, 8, 3])
    await putNumbers('sample-value', [0, 1, 71])
    const data = await loadData()
    equal([data.frames.kind, data.frames.function, data.frames.line, data.frames.column], [[0, 1], [1, 3], [5, 0], [0, 2 ** 32 - 1]])
    equal(data.stacks, {count: 3, caller: [0, 0, 1, 0], frame: [0, 0, 1, 1], depth: [0, 1, 2, 1]})
    equal([data.samples.stack, data.samples.thread, data.samples.set], [[3, 2, 0], [0, 0, 0], [0, 0, 0]])
    equal([data.samples.time, data.samples.value], [[0, 4, 2], [10000, 0, 70]])
    equal([data.firstTime, data.endTime, data.wholes], [0, 5, [[10070]]])
    equal(data.functions.list.map(entry => entry.text), ['main (é.py:1)', '<\/script>', '[no frames]'])
    equal(data.lines.list[0].text, 'main (é.py:5)')
    equal(document.querySelectorAll('script[type="text/plain"]').length, 0)
})

test('a page of another format is refused', async () => {
    await putPart('head', 1, JSON.stringify({...HEAD, format: 2}))
    await throws(loadData, /format 2/)
})

test('functions have the names of the other formats, and their places', () => {
    const entry = (shown, frame) => {
        const data = {strings: [''], frames: {count: 1}}
        for (const column of FRAME_COLUMNS) {
            const value = {shown, ...frame}[column] || 0
            data.frames[column] = [typeof value === 'string' ? data.strings.push(value) - 1 : value]
        }
        const {text, name, place, shortFile} = nameFrames(data, false).list[0]
        return [text, name, place, shortFile].join('|')
    }
    const python = {kind: FRAME_PYTHON, function: 'C.run', file: '/srv/app.py', functionLine: 3}
    const native = {kind: FRAME_NATIVE, function: 'r_object', module: '/usr/bin/python3'}
    const same = (shown, frame, ...rest) => equal(entry(shown, frame), [shown, ...rest].join('|'))
    same('C.run (app.py:3)', python, 'C.run', 'app.py:3', 'app.py')
    same('C.run (app.py)', python, 'C.run', 'app.py', 'app.py')
    same('C.run (/srv/app.py:3:7)', python, 'C.run', '/srv/app.py:3:7', '/srv/app.py')
    same('f', {kind: FRAME_PYTHON, function: 'f'}, 'f', '', '')
    same('[unknown] (app.py:3)', {...python, function: ''}, '', 'app.py:3', 'app.py')
    same('r_object (marshal)', native, 'r_object', 'marshal', '')
    same('r_object (marshal.c:4)', {...native, file: '/src/marshal.c'}, 'r_object', 'marshal.c:4', 'marshal.c')
    same('r_object', {...native, file: '/src/marshal.c'}, 'r_object', 'marshal.c', 'marshal.c')
    same('r_object', native, 'r_object', 'python3', '')
    same('f(int) (x)', {...native, function: 'f(int) (x)'}, 'f(int) (x)', 'python3', '')
    same('[libfoo.so]', {kind: FRAME_NATIVE, module: '/usr/lib/libfoo.so'}, '', 'libfoo.so', '')
    same('[x (deleted)]', {kind: FRAME_NATIVE, module: '/tmp/x (deleted)'}, '', 'x (deleted)', '')
    same('vfs_read_[k]', {kind: FRAME_KERNEL, function: 'vfs_read', module: '[kernel.kallsyms]'}, 'vfs_read', '[kernel.kallsyms]', '')
    same('vfs_read_[k] (read.c:7)', {kind: FRAME_KERNEL, function: 'vfs_read', file: 'read.c'}, 'vfs_read', 'read.c:7', 'read.c')
    same('[torn]', {kind: FRAME_MARK, function: '[torn]'}, '[torn]', '', '')
})

test('functions of one name and file are one, those of one name that start at other lines are not', () => {
    const data = recording([{stack: 'P f a.py:1:2;P f a.py:1:3;P f a.py:7:8', value: 1}])
    equal(data.functions.list.map(entry => entry.text), ['f (a.py:1)', 'f (a.py:7)', '[no frames]'])
    equal(data.functions.ofFrame, [0, 0, 1])
    equal(data.lines.list.map(entry => entry.text), ['f (a.py:2)', 'f (a.py:3)', 'f (a.py:8)', '[no frames]'])
})

test('amounts for people', () => {
    const time = value => textOfAmount({isTime: true}, value), count = {unit: 'switches', name: 'context-switches'}
    equal([0, 1, 999, 1500, 12345678, 250e6, 99.94e9, 250e9].map(time), ['0 s', '1 ns', '999 ns', '1.5 µs', '12.3 ms', '250 ms', '99.9 s', '250 s'])
    equal(textOfAmount({isBytes: true}, 65536), '64.0 KiB')
    equal(textOfAmount({isBytes: true}, 12), '12 B')
    equal(textOfAmount(count, 12345), '12,345 switches')
    equal(textOfAmount({unit: '', name: 'cycles'}, 7), '7 cycles')
    equal([[0, 9], [9, 9], [1, 3], [1, 9999], [99999, 100000], [1, 0]].map(([part, whole]) => textOfShare(part, whole)),
        ['0 %', '100 %', '33.3 %', 'under 0.1 %', '99.9 %', ''])
})
