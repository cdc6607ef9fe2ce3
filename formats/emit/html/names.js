/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions and lines, and amounts, as text. pysym has spelled the names as in its other formats, and nothing in
 * them changes how the text around them looks: what has one name there is one function here.
 */

const NO_FRAMES = '[no frames]';

function baseOf(path) {
    const slash = path.lastIndexOf('/');
    return slash >= 0 && slash < path.length - 1 ? path.slice(slash + 1) : path;
}

/* ---- frames ---- */

/*
 * What stands in parentheses behind a function in its text: "app.py:42", or the built-in module. "": nothing does. A kernel's
 * function has "_[k]" between; one without a name has its binary, "[libfoo.so]", in its place.
 */
function placeInText(text, kind, name) {
    const mark = kind === FRAME_KERNEL && name ? '_[k]'.length : 0, end = name ? name.length + mark : text.indexOf('] (') + 1;
    return text.startsWith(' (', end) && text.endsWith(')') ? text.slice(end + 2, -1) : '';
}

/* What a text stands for. `i` is one of its frames. */
function entryOfFrame(data, i, text, line) {
    const f = data.frames, textIn = column => data.strings[f[column][i]];
    const kind = f.kind[i], name = textIn('function'), file = textIn('file'), module = textIn('module');
    const place = placeInText(text, kind, name);

    return {text, kind, name, file, module, line, place: place || baseOf(file || module),
        shortFile: kind === FRAME_PYTHON ? place.replace(/(:[0-9]+){1,2}$/, '') || baseOf(file) : baseOf(file),
        builtin: textIn('builtin'), isWait: f.wait[i] !== 0};
}

/*
 * Groups frames by how rows of functions, or of lines, show them: {list, ofFrame, noFrames}. `ofFrame` is the number of each
 * frame's function or line in `list`, and `noFrames` that of what stands for samples without frames. An entry is {text, kind,
 * name, place, file, shortFile, module, builtin, line, isWait}: `name` is the function's own name, "" if it is not known;
 * `place` is where it is, for people; `shortFile` is the file of it; and `line` where it starts, or the line itself.
 */
function nameFrames(data, byLine) {
    const f = data.frames, shown = byLine ? f.shownLine : f.shown, line = byLine ? f.line : f.functionLine;
    const numbers = new Map(), list = [], ofFrame = new Int32Array(f.count);
    const compared = byLine ? null : data.comparedFunctions;

    for (let i = 0; i < f.count; i++) {
        const isOne = compared && f.kind[i] === FRAME_PYTHON && f.function[i];
        const key = isOne ? compared.keyOf(data.strings[f.function[i]], data.strings[f.file[i]], line[i])
            : shown[i] * (FRAME_MARK + 1) + f.kind[i];
        if (!numbers.has(key))
            numbers.set(key, list.length);
        ofFrame[i] = numbers.get(key);
        /* Of a function that is not at the same line in both sets the last is the new one. */
        if (ofFrame[i] === list.length || (isOne && list[ofFrame[i]].text !== data.strings[shown[i]]))
            list[ofFrame[i]] = {...entryOfFrame(data, i, data.strings[shown[i]], line[i]), ...isOne ? {key} : {}};
    }
    list.push({text: NO_FRAMES, kind: FRAME_MARK, name: NO_FRAMES, place: '', file: '', shortFile: '', module: '', builtin: '',
        isWait: false, line: 0});
    return {list, ofFrame, noFrames: list.length - 1};
}

/* ---- processes and threads ---- */

/* With the title that it gave itself, if it has one: 'gunicorn "shop: worker" 26041'. */
function nameOfProcess(process) {
    return (process.name || 'unknown') + (process.title ? ' "' + process.title.replaceAll('"', '\'') + '" ' : ' ') + process.pid;
}

/* Of a thread in its process; a main thread's number is that of its process. */
function nameOfThread(data, thread) {
    const process = data.head.processes[thread.process];
    return (thread.name || 'thread') + (thread.tid === process.pid ? '' : ' ' + thread.tid);
}

/* The value of a label in a set of labels; "": it has none. */
function labelOf(set, key) {
    for (let i = 0; i < set.length; i += 2) {
        if (set[i] === key)
            return set[i + 1];
    }
    return '';
}

/* ---- amounts ---- */

/* A sum of weights of an event, for people: "12.3 s", "840 ms", "64.0 KiB", "32 switches". */
function textOfAmount(event, value) {
    if (event.isBytes)
        return textOfSize(value);
    if (!event.isTime)
        return value.toLocaleString('en') + ' ' + (event.unit || event.name);
    for (const [ns, unit] of [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']]) {
        if (value >= ns)
            return (value / ns).toFixed(value < 100 * ns ? 1 : 0) + ' ' + unit;
    }
    return value ? Number(value.toPrecision(3)) + ' ns' : '0 s';
}

function textOfSize(bytes) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let i = 0;
    for (; bytes >= 1024 && i < units.length - 1; i++)
        bytes /= 1024;
    return (i ? bytes.toFixed(1) : Math.round(bytes)) + ' ' + units[i];
}

/* "12.3 %": what is not all is never "100 %", and what is not nothing never "0 %". "" of nothing. */
function textOfShare(part, whole) {
    if (!whole)
        return '';
    const percent = 100 * part / whole;
    if (part && percent < 0.05)
        return 'under 0.1 %';
    return (part && part !== whole ? Math.min(percent, 99.9).toFixed(1) : percent.toFixed(0)) + ' %';
}
