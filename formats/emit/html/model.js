/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the views show: the sums of the samples that the state of the page chooses, as trees and tables. Nothing here knows
 * of elements. Weights are in the event's unit: nanoseconds, bytes or counts.
 *
 * Lists of weights have an entry for each set of samples (head.sets), first that of the set that is shown, and a last one
 * that counts the samples of it. A second set is what that is compared with.
 */

/* By what frames are one: the function, or the line in it. */
function namesBy(data, by) {
    return by === 'line' ? data.lines : data.functions;
}

/*
 * The samples of a view. What is worked out from them is kept, so that views may ask as often as they like; a change of the
 * state makes a new one.
 */
class Result {
    constructor(data, view) {
        this.data = data;
        this.view = {...view, layers: {...view.layers}};
        this.event = data.head.events[view.event];
        this.stacks = stacksOfView(data, view);
        this.sums = sumByStack(data, view, this.stacks);
        /* The weights of all that is shown, a list as above. */
        this.totals = this.sums.totals;
        this.hidden = hiddenFrames(data, view.layers, this.stacks.begun);
        this.kept = new Map();
    }

    /* What make() returns; called once for each key, a text or one of the trees. */
    keep(key, make) {
        if (!this.kept.has(key))
            this.kept.set(key, make());
        return this.kept.get(key);
    }

    /* The functions or lines that ids are numbers of: see nameFrames(). */
    names(by = 'function') {
        return namesBy(this.data, by).list;
    }

    /* Calls from the root; ids are functions or lines. */
    tree(by = 'function') {
        return this.keep('tree ' + by, () => treeFromRoot(this.data, namesBy(this.data, by), this.sums.columns, this.hidden));
    }

    /* Callers from the leaves. */
    inverted(by = 'function') {
        return this.keep('inverted ' + by,
            () => treeFromLeaves(this.data, namesBy(this.data, by), this.sums.columns, this.hidden));
    }

    /* What a function or line calls, and who calls it, as trees whose root it is. */
    callees(id, by = 'function') {
        return this.keep('callees ' + by + id, () => treeOfCallees(this.tree(by), id));
    }

    callers(id, by = 'function') {
        return this.keep('callers ' + by + id, () => treeOfCallers(this.tree(by), id));
    }

    /* Functions, or lines, with what they take: {id, self, total}, in no order. `self` and `total` are lists of weights. */
    rows(by = 'function') {
        return this.keep('rows ' + by, () => rowsOfTree(this.tree(by), namesBy(this.data, by).list));
    }

    /* The row of a function or line; one of zeros where it has no samples in this view. */
    row(id, by = 'function') {
        const byId = this.keep('row by id ' + by, () => new Map(this.rows(by).map(row => [row.id, row])));
        const nothing = this.totals.map(() => 0);
        return byId.get(id) || {id, self: nothing, total: nothing};
    }

    /*
     * The direct callers and callees of a function or line: {callers, callees, own}. The first two are lists of {id,
     * weights} of functions, the heaviest first; the id is null where there is no caller. `own` are the weights of none of
     * the callees. Recursion counts once: callers and callees are those of outermost activations, and a function that calls
     * itself is its own callee. What it waited for, such as [wait: lock], stands among the callees.
     */
    neighbours(id, by = 'function') {
        return this.keep('neighbours ' + by + id, () => neighboursOf(this.tree(by), id, this.functionOf(by)));
    }

    /* The number of the function of each row: by function it is its own. */
    functionOf(by) {
        const {functions, lines, frames} = this.data;
        return this.keep('function of ' + by, () => {
            const of = Int32Array.from(namesBy(this.data, by).list, (unused, i) => i);
            for (let i = 0; by === 'line' && i < frames.count; i++)
                of[lines.ofFrame[i]] = functions.ofFrame[i];
            if (by === 'line')
                of[lines.noFrames] = functions.noFrames;
            return of;
        });
    }

    /*
     * The rows of a comparison that each box of a picture is of: lists of numbers by node; null: nothing is compared. `order`
     * is that of the picture, and `id` the function that it is around. Of an event that was not compared, and of stacks
     * that do not begin where they did, there are none.
     */
    comparedRows(tree, order, id) {
        const {compared, head} = this.data;
        return compared && this.keep(tree, () =>
            this.event.name !== head.comparison.event || (this.view.rootAt && order === 'root') ? new Array(tree.count).fill(NO_ROWS)
                : order === 'root' ? compared.rowsOfTree(tree, this.names()) : compared.rowsOfFunctions(tree, order === 'function' ? id : -1));
    }

    /* What an expression finds: see searchIn(). null: it is empty or not valid. */
    search(text) {
        const pattern = parsePatternOrNull(text);
        return pattern && this.keep('search ' + text, () => searchIn(this, pattern));
    }
}

function aggregate(data, view) {
    return new Result(data, view);
}

/*
 * The row of each function or line of a tree. A wait is the time of the function that waits: of the innermost one of
 * Python, else of the innermost native one, else of the kernel's.
 */
function rowsOfTree(tree, names) {
    const {id} = tree, rows = new Map();
    const nothing = () => tree.self.map(() => 0);
    const rowOf = number => {
        if (!rows.has(number))
            rows.set(number, {id: number, self: nothing(), total: nothing()});
        return rows.get(number);
    };
    const add = (to, columns, node) => columns.forEach((column, k) => to[k] += column[node]);
    const owners = ownersOfWaits(tree, names);

    eachOutermost(tree, names.length, (node, isOutermost) => {
        if (owners[node] === node && isOutermost)
            add(rowOf(id[node]).total, tree.total, node);
        if (isWeighed(tree.self, node))
            add(rowOf(id[owners[node]]).self, tree.self, node);
    });
    return [...rows.values()];
}

/* The node that has the self weight of each node: its own, but of a wait that of the function that waits. */
function ownersOfWaits(tree, names) {
    const {count, parent, id} = tree, owners = Int32Array.from({length: count}, (unused, node) => node);
    /* By node: the innermost one of each kind, of those up to it; 0: none. */
    const innermost = [FRAME_PYTHON, FRAME_NATIVE, FRAME_KERNEL].map(() => new Int32Array(count));

    for (let node = 1; node < count; node++) {
        for (const kind of [FRAME_PYTHON, FRAME_NATIVE, FRAME_KERNEL])
            innermost[kind][node] = names[id[node]].kind === kind ? node : innermost[kind][parent[node]];
        if (names[id[node]].isWait)
            owners[node] = innermost[FRAME_PYTHON][node] || innermost[FRAME_NATIVE][node] || innermost[FRAME_KERNEL][node] || node;
    }
    return owners;
}

/* Calls visit(node, isOutermost) for each node but the root: whether no caller of it has the same id. */
function eachOutermost(tree, idCount, visit) {
    const {parent, id} = tree, active = new Int32Array(idCount);
    let at = 0;

    for (const node of depthFirst(tree)) {
        for (; at !== parent[node]; at = parent[at])
            active[id[at]]--;
        visit(node, active[id[node]]++ === 0);
        at = node;
    }
}

/* The direct callers and callees, see Result.neighbours(). */
function neighboursOf(tree, id, functionOf) {
    const {count, parent} = tree, place = outermostOf(tree, id), callers = new Map(), callees = new Map();
    const own = tree.self.map(() => 0);
    const add = (to, key, node) => {
        if (!to.has(key))
            to.set(key, {id: key, weights: tree.total.map(() => 0)});
        to.get(key).weights.forEach((unused, k, weights) => weights[k] += tree.total[k][node]);
    };

    for (let node = 1; node < count; node++) {
        const above = parent[node];
        if (place[node] === 1) {
            add(callers, above ? functionOf[tree.id[above]] : null, node);
            own.forEach((unused, k) => own[k] += tree.self[k][node]);
        } else if (above && place[above] === 1) {
            add(callees, functionOf[tree.id[node]], node);
        }
    }
    const sorted = map => [...map.values()].sort((a, b) => b.weights[0] - a.weights[0] || a.id - b.id);
    return {callers: sorted(callers), callees: sorted(callees), own};
}

/*
 * What a pattern finds among the frames that are shown: {matches, weights}. `matches` is a Uint8Array by function; `weights`
 * are of the stacks with a match, each stack once.
 */
function searchIn(result, pattern) {
    const {data, hidden, sums} = result, {count, caller, frame} = data.stacks;
    const hit = framesThatMatch(data, pattern), found = new Uint8Array(count + 1);
    const matches = new Uint8Array(data.functions.list.length), weights = sums.totals.map(() => 0);

    for (let i = 0; i < hit.length; i++)
        matches[data.functions.ofFrame[i]] |= hit[i];
    for (let i = 1; i <= count; i++) {
        found[i] = found[caller[i]] | (hidden[i] ? 0 : hit[frame[i]]);
        for (let k = 0; found[i] && k < weights.length; k++)
            weights[k] += sums.columns[k][i];
    }
    return {matches, weights};
}

/* A sample with this flag has the time of other waits at the same place, which ended before it. */
const FLAG_OWED = 8;

/*
 * Weights over time: {sums, width}. `sums` has a Float64Array for each layer of innermost frames (FRAME_…), by part of the
 * time from data.firstTime on; parts are `width` units wide. A sample of time stands for the time before it, and is spread
 * over that: what is owed over all the time since the last sample that was owed for the same. The range of time that the
 * view selects does not matter.
 */
function weightsOverTime(result, partCount) {
    const {data, view, event, stacks} = result, {stack, thread, time, value, flags} = data.samples;
    const width = (data.endTime - data.firstTime) / partCount, partNs = width * data.head.timeUnitNs;
    const layer = layersOfStacks(data, result.hidden), lastOwed = new Map(), shown = shownSet(view);
    const sums = Array.from({length: 4}, () => new Float64Array(partCount));
    const rateChanges = sums.map(() => new Float64Array(partCount + 1));

    eachSample(data, view, stacks, false, i => {
        if (data.samples.set[i] !== shown || data.samples.capture[i] === NO_CAPTURE)
            return;
        const kind = layer[stack[i]], end = (time[i] - data.firstTime) / width;
        let begin = event.isTime && !event.isCounted ? end - value[i] / partNs : end;
        if (event.isTime && flags[i] & FLAG_OWED) {
            const place = thread[i] * (data.stacks.count + 1) + stack[i];
            begin = Math.min(begin, lastOwed.get(place) || 0);
            lastOwed.set(place, end);
        }
        spread(sums[kind], rateChanges[kind], value[i], Math.max(0, begin), end);
    });
    sums.forEach((column, kind) => {
        for (let part = 0, rate = 0; part < partCount; part++)
            column[part] = Math.max(0, column[part] + (rate += rateChanges[kind][part]));
    });
    return {sums, width};
}

/*
 * Adds a value evenly from `begin` to `end`, counted in parts, to `parts`: the first and the last of them at once. What those
 * between get is the sum of all `rateChanges` up to them.
 */
function spread(parts, rateChanges, value, begin, end) {
    const last = Math.min(Math.floor(end), parts.length - 1), first = Math.min(Math.floor(begin), last);
    if (first === last) {
        parts[last] += value;
        return;
    }
    const rate = value / (end - begin);
    parts[first] += rate * (first + 1 - begin);
    parts[last] += rate * (end - last);
    rateChanges[first + 1] += rate;
    rateChanges[last] -= rate;
}

/* The kind of the innermost frame that is shown of each stack; a mark's where there is none, and of a wait. */
function layersOfStacks(data, hidden) {
    const {count, caller, frame} = data.stacks, layer = new Uint8Array(count + 1).fill(FRAME_MARK);
    for (let i = 1; i <= count; i++)
        layer[i] = hidden[i] ? layer[caller[i]] : data.frames.kind[frame[i]];
    return layer;
}
