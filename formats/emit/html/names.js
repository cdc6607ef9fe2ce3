/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions and lines, and amounts, as text. They are those of `pysym -f top`: what has one name there is one
 * function here, and each text of the page can be found in the others' output.
 */

const NO_FRAMES = '[no frames]';

/* Characters that are not seen, or change the order of those around them. */
const CONTROLS = new RegExp('[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e' +
    '\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]', 'gu');

/* A name of somebody's program as one line of text without surprises; may be "". */
function cleanName(text) {
    return text.replace(/^ +| +$/g, '').replace(CONTROLS, '_').replace(/;/g, ':');
}

/* ---- files ---- */

const LIBRARY_FOLDER = /^(?:python|pypy)(?:[0-9]+(?:\.[0-9]+)?\.zip|[0-9]*\.[0-9]+[td]?)$/;

function baseOf(path) {
    const slash = path.lastIndexOf('/');
    return slash >= 0 && slash < path.length - 1 ? path.slice(slash + 1) : path;
}

/* Where one more component on the left of the short name begins. */
function startEarlier(path, start) {
    while (start && path[start - 1] === '/')
        start--;
    while (start && path[start - 1] !== '/')
        start--;
    return start;
}

/* Where the part of a path begins that an import names, if site-packages or the like shows it; else the last component. */
function importStart(path) {
    if (path[0] === '<')
        return 0;
    let start = -1, at = 0;
    for (let slash; (slash = path.indexOf('/', at)) >= 0; at = slash + 1) {
        const folder = path.slice(at, slash);
        if (slash + 1 < path.length && (/^(?:site|dist)-packages$/.test(folder) || LIBRARY_FOLDER.test(folder)))
            start = slash + 1;
    }
    if (start >= 0)
        return start;
    const base = baseOf(path);
    start = path.length - base.length;
    return base === '__init__.py' || base === '__main__.py' ? startEarlier(path, start) : start;
}

/* A short name for each path: longer where two would have the same. Returns a Map. */
function shortNamesOfFiles(paths) {
    const starts = new Map([...new Set(paths)].map(path => [path, importStart(path)]));

    for (let again = true; again;) {
        const users = new Map();
        again = false;
        for (const [path, start] of starts)
            users.set(path.slice(start), (users.get(path.slice(start)) || 0) + 1);
        for (const [path, start] of starts) {
            if (start && users.get(path.slice(start)) > 1) {
                starts.set(path, startEarlier(path, start));
                again = true;
            }
        }
    }
    return new Map([...starts].map(([path, start]) => [path, path.slice(start)]));
}

/* ---- frames ---- */

/* The binary of a frame without a function: [libfoo.so], [jit], [unknown]. */
function nameOfModule(module) {
    if (!module)
        return '[unknown]';
    if (/^\/tmp\/perf-[0-9]+\.map$/.test(module))
        return '[jit]';
    return module[0] === '[' ? cleanName(module) : '[' + cleanName(baseOf(module)) + ']';
}

/*
 * The name of frame `i`, of its function or its line. `files` are the short names of Python's files. The end of a name that
 * looks like a count is changed as everywhere in pysym.
 */
function nameOfFrame(data, i, byLine, files) {
    const f = data.frames, text = column => data.strings[f[column][i]];
    const kind = f.kind[i], file = text('file');
    const line = byLine ? f.line[i] : kind === FRAME_PYTHON ? f.functionLine[i] : 0;
    let name = cleanName(text('function'));

    if (!name)
        name = kind === FRAME_NATIVE || kind === FRAME_KERNEL ? nameOfModule(text('module')) : '[unknown]';
    if (kind === FRAME_KERNEL)
        name += '_[k]';
    if (file && (kind === FRAME_PYTHON || line)) {
        const shown = kind === FRAME_PYTHON ? files.get(file) : baseOf(file);
        name += ' (' + cleanName(shown) + (line ? ':' + line : '') + ')';
    } else if (text('builtin')) {
        name += ' (' + text('builtin') + ')';
    }
    return name.replace(/ ([0-9.]+)$/, '_$1');
}

/*
 * Groups frames by name: {list, ofFrame, noFrames}. `ofFrame` is the number of each frame's function or line in `list`,
 * and `noFrames` that of what stands for samples without frames. An entry is {text, kind, name, file, shortFile, module,
 * builtin, line, isWait}: `name` is the function's own name, and `line` where it starts, or the line itself.
 */
function nameFrames(data, byLine) {
    const f = data.frames, string = data.strings;
    const python = [];
    for (let i = 0; i < f.count; i++) {
        if (f.kind[i] === FRAME_PYTHON)
            python.push(string[f.file[i]]);
    }
    const files = shortNamesOfFiles(python), numbers = new Map(), list = [], ofFrame = new Int32Array(f.count);
    for (let i = 0; i < f.count; i++) {
        const text = nameOfFrame(data, i, byLine, files), key = f.kind[i] + text;
        let number = numbers.get(key);
        if (number === undefined) {
            numbers.set(key, number = list.length);
            const file = string[f.file[i]];
            list.push({text, kind: f.kind[i], name: string[f.function[i]], file, shortFile: files.get(file) || baseOf(file),
                module: string[f.module[i]], builtin: string[f.builtin[i]], isWait: f.wait[i] !== 0,
                line: byLine ? f.line[i] : f.functionLine[i]});
        }
        ofFrame[i] = number;
    }
    list.push({text: NO_FRAMES, kind: FRAME_MARK, name: NO_FRAMES, file: '', shortFile: '', module: '', builtin: '', isWait: false, line: 0});
    return {list, ofFrame, noFrames: list.length - 1};
}

/* ---- processes and threads ---- */

function nameOfProcess(process) {
    return (cleanName(process.name) || 'unknown') + ' ' + process.pid;
}

/* Of a thread in its process; a main thread's number is that of its process. */
function nameOfThread(data, thread) {
    const process = data.head.processes[thread.process];
    return (cleanName(thread.name) || 'thread') + (thread.tid === process.pid ? '' : ' ' + thread.tid);
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
        return value.toLocaleString('en') + ' ' + cleanName(event.unit || event.name);
    for (const [ns, unit] of [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']]) {
        if (value >= ns)
            return (value / ns).toFixed(value < 100 * ns ? 1 : 0) + ' ' + unit;
    }
    return value ? value + ' ns' : '0 s';
}

function textOfSize(bytes) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let i = 0;
    for (; bytes >= 1024 && i < units.length - 1; i++)
        bytes /= 1024;
    return (i ? bytes.toFixed(1) : bytes) + ' ' + units[i];
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
