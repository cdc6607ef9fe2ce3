/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the page's address behind '#' holds the state, so that a link shows what its sender saw:
 *
 *     #event=cpu-clock&thread=worker+26041&time=1.5-2.25&layers=python,native&search=json&zoom=main&zoom=render
 *
 * What is as at the start is not written. Functions, threads and the like have their names, not numbers. What cannot be
 * read, or is not of this recording, is ignored.
 */

/* The state at the start. */
function startOfView(data) {
    return {tab: isCompared(data) ? 'compare' : 'flame', event: firstEvent(data), order: 'root', process: null, thread: null, interpreter: null, task: null,
        from: null, to: null, layers: layersAtStart(data), search: '', focus: '', ignore: '', rootAt: '',
        zoom: [], callerZoom: [], selected: null, file: null, line: null, by: 'function', sort: '', theme: '',
        side: 'new'};
}

/* A comparison is of Python functions, to which the time of native code below them belongs. */
function layersAtStart(data) {
    return {python: true, native: !isCompared(data), kernel: !isCompared(data)};
}

/* The event that is shown at first: that of a comparison; else of time, if there is one with samples; of these the first. */
function firstEvent(data) {
    const compared = isCompared(data) ? data.head.events.findIndex(event => event.name === data.head.comparison.event) : -1;
    if (compared >= 0)
        return compared;
    const used = data.wholes.map(sums => sums.some(sum => sum > 0));
    const events = data.head.events, number = events.findIndex((event, i) => used[i] && event.isTime);
    return number >= 0 ? number : Math.max(0, used.indexOf(true));
}

/* Makes texts differ: the second of two equal ones gets "~2" at its end, and so on. */
function makeDistinct(texts) {
    const seen = new Map();
    return texts.map(text => {
        const count = (seen.get(text) || 0) + 1;
        seen.set(text, count);
        return count > 1 ? text + '~' + count : text;
    });
}

/* The words for what the state has numbers for: arrays of texts by number. */
function wordsOfAddress(data) {
    const {head} = data;
    if (!data.words) {
        data.words = {
            event: makeDistinct(head.events.map(event => event.name)),
            process: makeDistinct(head.processes.map(nameOfProcess)),
            thread: makeDistinct(head.threads.map(thread =>
                nameOfProcess(head.processes[thread.process]) + '/' + nameOfThread(data, thread))),
            selected: makeDistinct(data.functions.list.map(entry => entry.text)),
        };
        data.words.functionOf = new Map(data.words.selected.map((text, i) => [text, i]));
    }
    return data.words;
}

/* Seconds since the start of the recording, as `pysym --time` takes them; exact to the unit of times. */
function writeTime(data, time) {
    return time === null ? '' : String(Number((time * data.head.timeUnitNs / 1e9).toFixed(9)));
}

function readTime(data, text) {
    const seconds = text.trim() === '' ? NaN : Number(text);
    return Number.isFinite(seconds) ? Math.round(seconds * 1e9 / data.head.timeUnitNs) : null;
}

const NUMBERS = ['event', 'process', 'thread', 'selected'];
const PLAIN_TEXTS = ['search', 'focus', 'ignore', 'rootAt', 'sort', 'file', 'interpreter', 'task'];
const CHOICES = {tab: ['compare', 'flame', 'table', 'source', 'about'], side: ['new', 'old'], order: ['root', 'leaves', 'function'], by: ['function', 'line'],
    theme: ['light', 'dark']};
const ZOOMS = {zoom: 'zoom', callerZoom: 'caller-zoom'};

/* The state as text, without '#'. */
function writeAddress(data, view) {
    const start = startOfViewCached(data), words = wordsOfAddress(data), out = new URLSearchParams();
    const put = (key, text) => out.append(key, text);
    const isSet = key => view[key] !== null && view[key] !== start[key];

    for (const key of Object.keys(CHOICES).filter(isSet))
        put(key, view[key]);
    for (const key of NUMBERS.filter(isSet))
        put(key, words[key][view[key]]);
    for (const key of PLAIN_TEXTS.filter(isSet))
        put(key, view[key]);
    if (view.from !== null || view.to !== null)
        put('time', writeTime(data, view.from) + '-' + writeTime(data, view.to));
    const layers = Object.keys(view.layers);
    if (layers.some(layer => view.layers[layer] !== start.layers[layer]))
        put('layers', layers.filter(layer => view.layers[layer]).join(','));
    if (view.line)
        put('line', view.line);
    for (const [key, name] of Object.entries(ZOOMS))
        view[key].forEach(id => put(name, words.selected[id]));
    return out.toString();
}

function startOfViewCached(data) {
    return data.startOfView = data.startOfView || startOfView(data);
}

function readRange(data, text, view) {
    const range = /^([0-9.e]*)-([0-9.e]*)$/.exec(text);
    const from = range && readTime(data, range[1]), to = range && readTime(data, range[2]);
    if (range && (from === null || to === null || from < to))
        Object.assign(view, {from, to});
}

/* The state that a text, without '#', says. */
function readAddress(data, text) {
    const start = startOfViewCached(data), view = {...start, layers: {...start.layers}};
    const words = wordsOfAddress(data), given = new URLSearchParams(text);

    for (const key of Object.keys(CHOICES)) {
        const isOfComparison = key === 'side' || given.get(key) === 'compare';
        if (CHOICES[key].includes(given.get(key)) && (isCompared(data) || !isOfComparison))
            view[key] = given.get(key);
    }
    for (const key of NUMBERS) {
        const number = given.has(key) ? words[key].indexOf(given.get(key)) : -1;
        if (number >= 0)
            view[key] = number;
    }
    for (const key of PLAIN_TEXTS) {
        if (given.has(key))
            view[key] = given.get(key);
    }
    readRange(data, given.get('time') || '', view);
    for (const layer of given.has('layers') ? Object.keys(view.layers) : [])
        view.layers[layer] = given.get('layers').split(',').includes(layer);
    view.line = Number(given.get('line')) > 0 ? Math.floor(Number(given.get('line'))) : null;
    for (const [key, name] of Object.entries(ZOOMS))
        view[key] = given.getAll(name).map(word => words.functionOf.get(word)).filter(id => id !== undefined);
    return view;
}
