/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses samples, and adds them up by stack: all further work is for each distinct stack, of which there are far fewer.
 *
 * Expressions are JavaScript's, found anywhere in a frame's function, source file or binary (not a Python function's: that
 * is the interpreter), as those of `pysym --focus`; "function:", "file:" or "module:" in front narrows them to one.
 */

/* Of a longer name only so much is searched. */
const SEARCHED_CHARACTERS = 4096;

/*
 * How long an expression may be, in how many ways it may be tried at one place of a name, and how many repetitions it may
 * have.
 */
const EXPRESSION_CHARACTERS = 10000, WAYS_MOST = 4096, REPETITIONS_MOST = 4;

/*
 * Whether a search could as good as never end, which nothing can stop then: a browser tries all ways in which an expression
 * could match, and a link may bring any. So what is repeated is always the same, (ab)* but not (a*b)* or (a|b)*.
 */
function isEndless(expression) {
    const groups = [{alternatives: 1, varies: false}]; /* those that are open */
    let ways = 1, repetitions = 0, varies = false, before = '('; /* does what stands before vary? */

    if (expression.length > EXPRESSION_CHARACTERS)
        return true;
    for (const token of expression.match(/\\[^]|\[(?:\\[^]|[^\]\\])*\]|\{[0-9,]*\}|[^]/gu) || []) {
        const isRepetition = /^([*+]|\{.*\})$/.test(token), group = groups[groups.length - 1];
        const isOption = token === '?' && before !== '(' && !varies; /* else it tells what a group or a repetition is like */
        if (isRepetition && varies)
            return true;
        varies = isOption || (isRepetition && !/^\{[0-9]*\}$/.test(token)) || (token === '?' && varies);
        repetitions += isRepetition && varies;
        ways *= isOption ? 2 : 1;
        if (token === '(') {
            groups.push({alternatives: 1, varies: false});
        } else if (token === ')' && groups.length > 1) {
            groups.pop();
            ways *= group.alternatives;
            varies = group.varies || group.alternatives > 1;
        }
        group.alternatives += token === '|';
        groups[groups.length - 1].varies ||= varies;
        before = token;
    }
    return ways > WAYS_MOST || repetitions > REPETITIONS_MOST;
}

/* {part, regex} of an expression; null for an empty one. Throws a SyntaxError, also for what could be searched for ever. */
function parsePattern(text) {
    if (!text)
        return null;
    const narrowed = /^(function|file|module):([^]*)$/.exec(text), expression = narrowed ? narrowed[2] : text;
    if (isEndless(expression))
        throw new SyntaxError('a search for it might never end');
    return {part: narrowed ? narrowed[1] : '', regex: new RegExp(expression, 'u')};
}

/* The same, but null for what is no expression. */
function parsePatternOrNull(text) {
    try {
        return parsePattern(text);
    } catch (error) {
        return null;
    }
}

/* Which frames match: a Uint8Array by frame. */
function framesThatMatch(data, pattern) {
    const f = data.frames, matches = new Uint8Array(f.count);
    const known = new Uint8Array(data.strings.length); /* 0: not searched yet, 1: no match, 2: match */
    const found = string => {
        if (string && !known[string])
            known[string] = 1 + pattern.regex.test(data.strings[string].slice(0, SEARCHED_CHARACTERS));
        return known[string] === 2;
    };

    for (let i = 0; i < f.count; i++) {
        if (!pattern.part || pattern.part === 'function')
            matches[i] |= found(f.function[i]);
        if (!pattern.part || pattern.part === 'file')
            matches[i] |= found(f.file[i]);
        if ((!pattern.part || pattern.part === 'module') && f.kind[i] !== FRAME_PYTHON)
            matches[i] |= found(f.module[i]);
    }
    return matches;
}

/* Which stacks have a frame that matches: a Uint8Array by stack. */
function stacksThatMatch(data, pattern) {
    const {count, caller, frame} = data.stacks, matches = new Uint8Array(count + 1);
    const hit = framesThatMatch(data, pattern);

    for (let i = 1; i <= count; i++)
        matches[i] = matches[caller[i]] | hit[frame[i]];
    return matches;
}

/* Which threads, and which sets of labels, the view shows: {threads, labels}, Uint8Arrays. */
function ownersOfView(data, view) {
    const threads = Uint8Array.from(data.head.threads, (thread, i) =>
        (view.process === null || thread.process === view.process) && (view.thread === null || i === view.thread) ? 1 : 0);
    const labels = Uint8Array.from(data.head.labelSets, set =>
        (view.interpreter === null || labelOf(set, LABEL_INTERPRETER) === view.interpreter) &&
        (view.task === null || labelOf(set, LABEL_TASK) === view.task) ? 1 : 0);
    return {threads, labels};
}

/*
 * What the view says of stacks: {kept, begun}, Uint8Arrays by stack; null: all. `kept` stacks are shown, of their frames
 * those from the first `begun` one on.
 */
function stacksOfView(data, view) {
    const focus = parsePatternOrNull(view.focus), ignore = parsePatternOrNull(view.ignore);
    const rootAt = parsePatternOrNull(view.rootAt), begun = rootAt && stacksThatMatch(data, rootAt);
    if (!focus && !ignore && !rootAt)
        return {kept: null, begun: null};
    const kept = new Uint8Array(data.stacks.count + 1).fill(1);
    for (const [pattern, wanted] of [[focus, 1], [ignore, 0]]) {
        const matches = pattern && stacksThatMatch(data, pattern);
        for (let i = 0; matches && i < kept.length; i++)
            kept[i] &= matches[i] === wanted ? 1 : 0;
    }
    for (let i = 0; begun && i < kept.length; i++)
        kept[i] &= begun[i];
    return {kept, begun};
}

/*
 * Calls use(i) for each sample that passes all filters of the view but those of time, or also those of time. `stacks` are
 * those of stacksOfView().
 */
function eachSample(data, view, stacks, withTime, use) {
    const {count, stack, thread, event, time, labels} = data.samples;
    const owners = ownersOfView(data, view), kept = stacks.kept;
    const from = withTime && view.from !== null ? view.from : -Infinity, to = withTime && view.to !== null ? view.to : Infinity;
    const wanted = view.event;

    for (let i = 0; i < count; i++) {
        if (event[i] === wanted && time[i] >= from && time[i] < to && owners.threads[thread[i]] && owners.labels[labels[i]] &&
            (!kept || kept[stack[i]]))
            use(i);
    }
}

/*
 * The sums of the samples that the view shows, by stack: {columns, totals}. There is a column, a Float64Array by stack, for
 * the weights of each set of samples, the one that is shown first, and a last one for the number of samples of that; `totals` are the columns'
 * sums.
 */
function sumByStack(data, view, stacks) {
    const setCount = data.head.sets.length, {stack, value, set, copies} = data.samples;
    const columns = Array.from({length: setCount + 1}, () => new Float64Array(data.stacks.count + 1));
    const counts = columns[setCount], shown = shownSet(view);

    eachSample(data, view, stacks, true, i => {
        columns[set[i] ^ shown][stack[i]] += value[i];
        if (set[i] === shown)
            counts[stack[i]] += copies ? copies[i] : 1;
    });
    return {columns, totals: columns.map(column => column.reduce((sum, v) => sum + v, 0))};
}

/* The number of the set that is shown; the other is what it is compared with. */
function shownSet(view) {
    return view.side === 'old' ? SET_OLD : SET_NEW;
}

/* The weights of all samples of each event, whatever the view shows: an array by event of arrays by set. */
function sumByEvent(data) {
    const {count, event, value, set} = data.samples;
    const sums = data.head.events.map(() => new Float64Array(data.head.sets.length));

    for (let i = 0; i < count; i++)
        sums[event[i]][set[i]] += value[i];
    return sums;
}
