// SPDX-License-Identifier: Apache-2.0
// Makes recordings for tests, as loadData() returns them.

// Frames are written "LAYER function file:first line:line" or "LAYER function module", where LAYER is P, N, K or M (a mark).
// "M [wait: lock]" is the mark of a wait.
function frameOfText(text) {
    const [, layer, name, place = ''] = /^([PNKM]) (\[[^\]]*\]|\S+)(?: (.+))?$/.exec(text)
    const frame = {kind: 'PNKM'.indexOf(layer), function: name, file: '', module: '', builtin: '', wait: '', line: 0, column: 0,
        functionLine: 0, functionEnd: 0, inlined: 0, shown: name, shownLine: name}
    if (layer === 'P') {
        const [file, functionLine = 1, line = functionLine] = place.split(':')
        const shownAt = where => name + (file ? ` (${baseOf(file)}:${where})` : '')
        Object.assign(frame, {file, functionLine: Number(functionLine), line: Number(line), shown: shownAt(functionLine), shownLine: shownAt(line)})
    } else {
        frame.module = place
    }
    if (layer === 'K')
        frame.shown = frame.shownLine = name + '_[k]'
    if (name.startsWith('[wait: '))
        frame.wait = name.slice(7, -1)
    return frame
}

// A recording of samples {stack: 'P a a.py;P b a.py', value, event, thread, time, labels, flags, set}: frames are separated by
// ";", outermost first; the rest are numbers, 0 unless told, but `time`, which is the sample's number.
function recording(samples, head = {}) {
    const strings = [''], frames = [], texts = [], stacks = {caller: [0], frame: [0], depth: [0]}, known = new Map()
    const number = text => strings.includes(text) ? strings.indexOf(text) : strings.push(text) - 1
    const frameNumber = text => texts.includes(text) ? texts.indexOf(text) : (frames.push(frameOfText(text)), texts.push(text) - 1)

    function stackNumber(text) {
        let at = 0
        for (const part of text ? text.split(';') : []) {
            const key = at + ' ' + part
            if (!known.has(key)) {
                known.set(key, stacks.caller.length)
                stacks.caller.push(at)
                stacks.frame.push(frameNumber(part))
                stacks.depth.push(stacks.depth[at] + 1)
            }
            at = known.get(key)
        }
        return at
    }
    const column = (name, Type = Int32Array) => Type.from(samples, sample => sample[name] || 0)
    const ofSamples = {count: samples.length, stack: Int32Array.from(samples, sample => stackNumber(sample.stack)),
        time: Float64Array.from(samples, (sample, i) => sample.time ?? i), value: column('value', Float64Array)}
    for (const name of ['thread', 'event', 'labels', 'flags', 'capture', 'set'])
        ofSamples[name] = column(name)
    const ofFrames = {count: frames.length}
    for (const name of FRAME_COLUMNS)
        ofFrames[name] = Int32Array.from(frames, frame => typeof frame[name] === 'string' ? number(frame[name]) : frame[name])
    for (const name of Object.keys(stacks))
        stacks[name] = Int32Array.from(stacks[name])
    return completeData({
        head: {format: 1, timeUnitNs: 1000, events: [{name: 'cpu-clock', unit: 'ns', isTime: true, period: 1}], sets: ['one'],
            processes: [{pid: 7, name: 'app.py'}], threads: [{process: 0, tid: 7, name: 'MainThread'}], labelSets: [[]], totals: [],
            captures: [], ...head},
        strings, frames: ofFrames, stacks: {count: stacks.caller.length - 1, ...stacks}, samples: ofSamples,
    })
}

// The rows of a result as {name: [self, total]} of the first set.
function figures(result, by = 'function') {
    const names = result.names(by)
    return Object.fromEntries(result.rows(by).map(row => [names[row.id].text, [row.self[0], row.total[0]]]))
}

// A tree as nested objects: {name: [self, total, children]}.
function nested(tree, entries) {
    const at = [{}]
    for (let node = 1; node < tree.count; node++) {
        at[node] = {}
        at[tree.parent[node]][entries[tree.id[node]].text] = [tree.self[0][node], tree.total[0][node], at[node]]
    }
    return at[0]
}

// The number of a function or line with this name.
function idOf(result, text, by = 'function') {
    const id = result.names(by).findIndex(entry => entry.text === text)
    ok(id >= 0, text)
    return id
}
