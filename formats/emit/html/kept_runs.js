/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of a comparison that a baseline keeps. There are no samples of them, but the own time of each call path: a sample
 * is made of each, without a time, a thread and lines, so that all views can show it.
 */

/* Of samples that are made of sums. */
const NO_CAPTURE = -1;

/* How many runs of a side are only kept. */
function countKeptRuns(head, side) {
    return countRuns(head, side) - head.compared.captures.filter(capture => capture && capture[0] === side).length;
}

/* A copy of an array of numbers, with more of them behind. */
function withMore(column, more) {
    const longer = new column.constructor(column.length + more.length);
    longer.set(column);
    longer.set(more, column.length);
    return longer;
}

/* The frames of the functions: those that samples have, else new ones. Returns their numbers. */
function framesOfFunctions(data, functions) {
    const {frames, strings} = data, known = new Map(), added = Object.fromEntries(FRAME_COLUMNS.map(column => [column, []]));
    const keyOf = (name, file) => file + '\n' + name, numberOf = new Map(strings.map((text, i) => [text, i]));
    const stringOf = text => numberOf.get(text) ?? (numberOf.set(text, strings.length), strings.push(text) - 1);

    for (let i = 0; i < frames.count; i++) {
        if (frames.kind[i] === FRAME_PYTHON)
            known.set(keyOf(strings[frames.function[i]], strings[frames.file[i]]), i);
    }
    const numbers = functions.map(({name, file, line}) => {
        const key = keyOf(name, file), shown = name + ' (' + baseOf(file) + ':' + line + ')';
        if (known.has(key))
            return known.get(key);
        const frame = {kind: FRAME_PYTHON, function: stringOf(name), file: stringOf(file), functionLine: line, shown: stringOf(shown),
            shownLine: stringOf(shown)};
        FRAME_COLUMNS.forEach(column => added[column].push(frame[column] || 0));
        known.set(key, frames.count + added.kind.length - 1);
        return known.get(key);
    });
    for (const column of FRAME_COLUMNS)
        frames[column] = withMore(frames[column], added[column]);
    frames.count += added.kind.length;
    return numbers;
}

/* The stacks of the nodes, as new ones; returns their numbers. */
function stacksOfNodes(data, nodes, frameOf) {
    const {stacks} = data, caller = [], frame = [], depth = [], numbers = [0];

    for (let node = 1; 2 * node < nodes.length; node++) {
        const above = numbers[nodes[2 * node]];
        numbers[node] = stacks.count + caller.length + 1;
        caller.push(above);
        frame.push(frameOf[nodes[2 * node + 1]]);
        depth.push(above ? depth[above - stacks.count - 1] + 1 : 1);
    }
    Object.assign(stacks, {caller: withMore(stacks.caller, caller), frame: withMore(stacks.frame, frame),
        depth: withMore(stacks.depth, depth), count: stacks.count + caller.length});
    return numbers;
}

/* The number of the event that was compared; one is made if no trace has it. */
function eventOfComparison(head) {
    const {event: name, unit, is_time: isTime, is_waiting: isWaiting, is_task: isTask, is_cpu: isCpu} = head.comparison;
    const number = head.events.findIndex(event => event.name === name);

    return number >= 0 ? number : head.events.push({name, unit, isTime, isWaiting, isTask, isCounted: isTime && !isWaiting && !isCpu, isMean: true, period: 0}) - 1;
}

/* Adds samples of the runs that are only kept, if there are any. Call it once, after splitSamples(). */
function addKeptRuns(data) {
    const {head, samples} = data, {functions, nodes, sums} = head.compared, more = [];

    if (!sums.length)
        return;
    const stackOf = stacksOfNodes(data, nodes, framesOfFunctions(data, functions)), event = eventOfComparison(head);
    const process = head.processes.push({pid: 0, name: 'baseline', comm: '', container: '', isKept: true}) - 1;
    const thread = head.threads.push({process, tid: 0, name: 'all threads'}) - 1;
    for (let i = 0; i < sums.length; i += 5) {
        for (const [set, side, at] of [[SET_NEW, 'new', i + 1], [SET_OLD, 'old', i + 3]]) {
            if (sums[at])
                more.push({set, stack: stackOf[sums[i]], value: sums[at] / countRuns(head, side), copies: Math.round(sums[at + 1]), event,
                    thread, labels: 0, flags: 0, capture: NO_CAPTURE, time: -Infinity});
        }
    }
    samples.copies = withMore(new Float64Array(samples.count).fill(1), more.map(each => each.copies));
    for (const column of SAMPLE_COLUMNS)
        samples[column] = withMore(samples[column], more.map(each => each[column]));
    samples.count += more.length;
    makeExact(samples.value);
}
