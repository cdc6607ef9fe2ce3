/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison of two sets of runs, where the page has one: head.comparison is the report of `pysym diff -f json`, and
 * head.compared says how the samples of the runs are put together (formats/compare/report/page.h). Nothing here knows of
 * elements.
 *
 * The first set of samples are those of the new runs, the second those of the old ones. A weight is the mean of the runs of
 * its side, per unit of work where that is known, else by the size of the run, so that both sides can be set side by side.
 * What is said to have changed comes from the comparison alone, which judges by run: never from the weights shown.
 */

const SET_NEW = 0, SET_OLD = 1;

/* What is known of a box, a function or a line: nothing, surely more, surely less, or that it moved with another row. */
const VERDICT_NONE = 0, VERDICT_MORE = 1, VERDICT_LESS = 2, VERDICT_TOLD = 3;
/* They differ by more than colour. */
const VERDICT_MARKS = ['', '▲', '▼', '◇'];

/* Callers are searched for recursion; no more steps than so many. */
const PATH_STEPS_LIMIT = 5e7;

function isCompared(data) {
    return Boolean(data.head.comparison);
}

function verdictOfRow(row) {
    return !row || row.answer === 'cannot_tell' ? VERDICT_NONE : row.answer === 'slower' ? VERDICT_MORE
        : row.answer === 'faster' ? VERDICT_LESS : VERDICT_TOLD;
}

/* Rows that are surely changed, and not told under another. */
function isFinding(row) {
    return row.because === null && (row.answer === 'slower' || row.answer === 'faster');
}

/* ---- samples ---- */

/* How many runs a side has. */
function countRuns(head, side) {
    return head.comparison.runs.filter(run => run.side === side).length;
}

/*
 * Makes two sets of the samples, with weights that can be compared. Those of runs that were left out are gone. Call it once,
 * before anything is worked out of the samples.
 */
function splitSamples(data) {
    const {head, samples} = data, {captures} = head.compared;
    const counts = {new: countRuns(head, 'new') || 1, old: countRuns(head, 'old') || 1};
    let kept = 0;

    head.sets = ['new', 'old'];
    head.events.forEach(event => event.isMean = true);
    for (let i = 0; i < samples.count; i++) {
        const capture = captures[samples.capture[i]];
        if (!capture)
            continue;
        for (const column of SAMPLE_COLUMNS)
            samples[column][kept] = samples[column][i];
        samples.set[kept] = capture[0] === 'new' ? SET_NEW : SET_OLD;
        samples.value[kept++] /= capture[1] * counts[capture[0]];
    }
    for (const column of SAMPLE_COLUMNS)
        samples[column] = samples[column].subarray(0, kept);
    samples.count = kept;
    makeExact(samples.value);
}

/* Rounds numbers to multiples of so small a power of two that all their sums are exact: parts then add up to the whole. */
function makeExact(values) {
    const sum = values.reduce((all, value) => all + value, 0), unit = 2 ** (Math.ceil(Math.log2(sum || 1)) - 50);
    for (let i = 0; i < values.length; i++)
        values[i] = Math.round(values[i] / unit) * unit;
}

/* ---- functions ---- */

/*
 * What makes functions one: file and name, and where names are not qualified the line; as in the comparison. Functions of the
 * old runs have the names of those that they became.
 */
class ComparedFunctions {
    constructor(head) {
        this.unqualified = new Set();
        this.renamed = new Map(); /* functions: old key -> new key */
        this.files = new Map();   /* of functions that moved: old -> new */
        for (const {name, file, unqualified} of head.compared.functions) {
            if (unqualified)
                this.unqualified.add(file + '\n' + name);
        }
        for (const row of head.comparison.rows) {
            if (row.old_function === undefined)
                continue;
            this.renamed.set(row.old_file + '\n' + row.old_function, row.file + '\n' + row.function);
            if (row.old_function === row.function)
                this.files.set(row.old_file, row.file);
        }
    }

    keyOf(name, file, line) {
        const own = file + '\n' + name, moved = (this.files.get(file) || file) + '\n' + name;
        const key = this.renamed.get(own) || moved;
        return this.unqualified.has(own) ? key + '\n' + line : key;
    }
}

/* ---- call paths ---- */

/*
 * Paths of Python functions, in which recursion is collapsed: a call of a function that is on the path leads back there.
 * Paths are numbers; 0 is the root.
 */
class CallPaths {
    constructor(functionCount) {
        this.functionCount = functionCount;
        this.parent = [-1];
        this.id = [-1];
        this.known = new Map();
        this.steps = 0;
    }

    child(parent, id) {
        const key = parent * this.functionCount + id;
        let path = this.known.get(key);
        if (path === undefined) {
            path = this.parent.push(parent) - 1;
            this.id.push(id);
            this.known.set(key, path);
        }
        return path;
    }

    /* The path up to a function that is on it; -1: it is not. */
    upTo(path, id) {
        for (; path > 0; path = this.parent[path]) {
            if (this.id[path] === id)
                return path;
            if (++this.steps > PATH_STEPS_LIMIT)
                return 0;
        }
        return -1;
    }
}

/* ---- rows ---- */

/* What the page asks of the comparison. */
class Compared {
    constructor(data) {
        this.data = data;
        this.rows = data.head.comparison.rows;
        this.paths = new CallPaths(data.functions.list.length);
        this.byPath = new Map();     /* numbers of the rows of a path, in order */
        this.byFunction = new Map(); /* of a function of the page */
        const ofKey = new Map();
        data.functions.list.forEach((entry, id) => entry.key !== undefined && ofKey.set(entry.key, id));
        this.functionOf = (name, file, line) => ofKey.get(data.comparedFunctions.keyOf(name, file, line)) ?? -1;
        this.takePaths();
        this.rows.forEach((row, i) => {
            const id = row.function === undefined ? -1 : this.functionOf(row.function, row.file, row.function_line);
            if (id >= 0)
                addTo(this.byFunction, id, i);
        });
    }

    takePaths() {
        const {functions, nodes, rows} = this.data.head.compared;
        const ids = functions.map(({name, file, line}) => this.functionOf(name, file, line)), pathOf = [0];

        for (let node = 1; 2 * node < nodes.length; node++) {
            const parent = pathOf[nodes[2 * node]], id = ids[nodes[2 * node + 1]];
            pathOf[node] = parent < 0 || id < 0 ? -1 : this.paths.child(parent, id);
        }
        this.pathOfRow = rows.map(node => node < 0 ? -1 : pathOf[node]);
        this.pathOfRow.forEach((path, row) => path >= 0 && addTo(this.byPath, path, row));
    }

    /* The rows of each node of a tree from the root: lists of numbers; of what no row is about an empty one. */
    rowsOfTree(tree, names) {
        const pathOf = new Int32Array(tree.count), rows = new Array(tree.count).fill(NO_ROWS);

        for (let node = 1; node < tree.count; node++) {
            const above = pathOf[tree.parent[node]], id = tree.id[node];
            pathOf[node] = above;
            if (names[id].kind !== FRAME_PYTHON)
                continue;
            const back = this.paths.upTo(above, id);
            pathOf[node] = back >= 0 ? back : this.paths.child(above, id);
            if (back < 0)
                rows[node] = this.byPath.get(pathOf[node]) || NO_ROWS;
        }
        return rows;
    }

    /* The same of a tree whose boxes next to the root, or the root, stand for whole functions. */
    rowsOfFunctions(tree, rootId) {
        const rows = new Array(tree.count).fill(NO_ROWS), kind = rootId >= 0 ? 'function_total' : 'function_self';

        for (let node = 0; node < tree.count; node++) {
            const id = rootId >= 0 ? (node ? -1 : rootId) : tree.depth[node] === 1 ? tree.id[node] : -1;
            rows[node] = (this.byFunction.get(id) || NO_ROWS).filter(row => this.rows[row].kind === kind);
        }
        return rows;
    }

    /* What the first of some rows says that says anything: the surest. */
    verdictOf(rows) {
        for (const row of rows) {
            const verdict = verdictOfRow(this.rows[row]);
            if (verdict)
                return verdict;
        }
        return VERDICT_NONE;
    }

    /* The row that a function is told by: the surest of all that are about it; undefined: there is none. */
    rowOfFunction(id) {
        const rows = this.byFunction.get(id) || NO_ROWS;
        return this.rows[rows.find(row => verdictOfRow(this.rows[row])) ?? rows.find(row => this.rows[row].kind === 'function_self') ?? rows[0]];
    }
}

const NO_ROWS = [];

function addTo(map, key, value) {
    const list = map.get(key);
    if (list)
        list.push(value);
    else
        map.set(key, [value]);
}
