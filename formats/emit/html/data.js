/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the data that the page carries. Each part is the text of an element <script type="text/plain" id="NAME"
 * data-count="N">: base64 of a zlib stream, of JSON or of a column of numbers. A number is written seven bits at a time,
 * the lowest first, with the eighth bit set in all bytes but the last; it is below 2^53. A column of zeros may be missing.
 *
 * Stacks are numbered from 1 on, outermost frames first, so that a stack's caller has a smaller number; 0 is the stack of a
 * sample without frames, and the caller of an outermost frame.
 */

/* The layers of frames, as in emit_frame_kind. */
const FRAME_PYTHON = 0, FRAME_NATIVE = 1, FRAME_KERNEL = 2, FRAME_MARK = 3;

/* The columns of frames, in the order in which they are written. */
const FRAME_COLUMNS = ['kind', 'function', 'file', 'module', 'builtin', 'wait', 'line', 'column', 'functionLine',
    'functionEnd', 'inlined', 'shown', 'shownLine'];

/* The columns of samples, in memory. */
const SAMPLE_COLUMNS = ['stack', 'thread', 'event', 'labels', 'flags', 'capture', 'set', 'time', 'value'];

const LABEL_INTERPRETER = 'interpreter', LABEL_TASK = 'asyncio task';

function bytesOfBase64(text) {
    if (Uint8Array.fromBase64)
        return Uint8Array.fromBase64(text);
    const binary = atob(text), bytes = new Uint8Array(binary.length);
    for (let i = 0; i < bytes.length; i++)
        bytes[i] = binary.charCodeAt(i);
    return bytes;
}

async function unpackText(text) {
    const stream = new Blob([bytesOfBase64(text)]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

/* The part of this name, unpacked: {bytes, count}. null: the page has no such part. */
async function unpackPart(name) {
    const element = document.querySelector('script#' + name);
    if (!element)
        return null;
    const part = {bytes: await unpackText(element.textContent), count: Number(element.dataset.count)};
    element.remove(); /* the text is no longer needed, and may be large */
    return part;
}

async function unpackJson(name) {
    const part = await unpackPart(name);
    return JSON.parse(new TextDecoder().decode(part.bytes));
}

/*
 * Returns a function that reads the next `count` numbers into a new array: an Int32Array, or the type that is given for
 * numbers that may be larger.
 */
function numberReader(bytes) {
    let at = 0;

    return (count, Type = Int32Array) => {
        const out = new Type(count);
        for (let i = 0; i < count; i++) {
            let value = bytes[at] & 127;
            for (let unit = 128; bytes[at++] & 128; unit *= 128)
                value += (bytes[at] & 127) * unit;
            out[i] = value;
        }
        if (at > bytes.length)
            throw new Error('the data of this page ends too early');
        return out;
    };
}

async function readColumn(name, count, Type = Int32Array) {
    const part = await unpackPart(name);
    return part ? numberReader(part.bytes)(count, Type) : new Type(count);
}

async function readFrames() {
    const part = await unpackPart('frames');
    const frames = {count: part.count};
    const read = numberReader(part.bytes);
    for (const column of FRAME_COLUMNS)
        frames[column] = read(part.count, Uint32Array);
    return frames;
}

/* Stacks: {count, caller, frame, depth}, arrays by the number of a stack. Depth is 1 for an outermost frame. */
async function readStacks() {
    const part = await unpackPart('stacks');
    const read = numberReader(part.bytes);
    const stacks = {count: part.count};
    for (const column of ['caller', 'frame', 'depth'])
        stacks[column] = new Int32Array(part.count + 1);
    stacks.caller.set(read(part.count), 1);
    stacks.frame.set(read(part.count), 1);
    for (let i = 1; i <= part.count; i++) {
        const distance = stacks.caller[i];
        stacks.caller[i] = distance ? i - distance : 0;
        stacks.depth[i] = stacks.depth[stacks.caller[i]] + 1;
    }
    return stacks;
}

/* Turns differences, written as 0, -1, 1, -2, 2 … = 0, 1, 2, 3, 4 …, into their running sum. */
function undoDifferences(column) {
    let value = 0;

    for (let i = 0; i < column.length; i++) {
        const written = column[i];
        value += written % 2 ? -(written + 1) / 2 : written / 2;
        column[i] = value;
    }
}

/* Samples: {count, stack, thread, event, time, value, labels, flags, capture, set}, arrays by sample. */
async function readSamples({events, sampleCount: count}) {
    const samples = {count};
    for (const column of ['stack', 'thread', 'event', 'labels', 'flags', 'capture'])
        samples[column] = await readColumn('sample-' + column, count);
    samples.set = await readColumn('sample-set', count, Uint8Array);
    samples.time = await readColumn('sample-time', count, Float64Array);
    undoDifferences(samples.time);
    samples.value = await readColumn('sample-value', count, Float64Array);
    for (let i = 0; i < count; i++)
        samples.value[i] = samples.value[i] ? samples.value[i] - 1 : events[samples.event[i]].period;
    return samples;
}

/*
 * Reads everything: {head, strings, frames, stacks, samples}, and what is worked out once for all views:
 *
 *     functions   {list, ofFrame, noFrames}: what has one row in a table of functions, see names.js
 *     lines       the same for lines
 *     compared    of a comparison: see Compared; null: the page has one set of samples
 *     wholes      the weights of all samples of each event: arrays by event of arrays by set
 *     firstTime, endTime   of the strip of time, in units of head.timeUnitNs since the start of the recording: all of it,
 *                          but where pysym chose samples those of the samples; endTime is behind the last
 */
async function loadData() {
    if (typeof DecompressionStream === 'undefined')
        throw new Error('this browser is too old to unpack the data: Chromium 80, Firefox 113 or Safari 16.4 can');
    const head = await unpackJson('head');
    if (head.format !== 1)
        throw new Error('the data of this page has the format ' + head.format + ', which its program does not know');
    const strings = await unpackJson('strings');
    return completeData({head, strings, frames: await readFrames(), stacks: await readStacks(),
        samples: await readSamples(head)});
}

/* Works out what loadData() promises beside the data itself. */
function completeData(data) {
    const {head, samples} = data;

    if (isCompared(data)) {
        splitSamples(data);
        data.comparedFunctions = new ComparedFunctions(head);
    }
    data.firstTime = Infinity;
    data.endTime = -Infinity;
    for (const time of samples.time) {
        data.firstTime = Math.min(data.firstTime, time);
        data.endTime = Math.max(data.endTime, time + 1);
    }
    if (!head.filters || !samples.count) {
        data.firstTime = 0;
        data.endTime = Math.max(data.endTime, 1, ...head.captures.map(capture => Math.ceil(capture.durationNs / head.timeUnitNs)));
    }
    if (isCompared(data))
        addKeptRuns(data);
    data.functions = nameFrames(data, false);
    data.lines = nameFrames(data, true);
    data.wholes = sumByEvent(data);
    data.compared = isCompared(data) ? new Compared(data) : null;
    return data;
}
