/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of functions or lines with their weights, as a flame graph shows them. Nodes are numbers, callers before what they
 * call; the root is 0. Nothing here calls itself: stacks may be 100,000 frames deep.
 *
 * A tree is {count, parent, id, depth, self, total}: arrays by node. `id` is the number of a function or line, -1 of the
 * root; `self` and `total` are lists of Float64Arrays, one for each set of samples and a last one that counts the samples
 * of the first set. The totals of children add up to the parent's without its own self weight. Trees of callers also have
 * cutWeight: the weight of what has no callers here, or not all, since there are too many; of the first set.
 */

/* Trees from the leaves hold each caller of each stack; no more of these than so many are taken, of the heaviest stacks. */
const CALLER_STEPS_LIMIT = 4e6;

class TreeBuilder {
    constructor(columnCount) {
        this.count = 1;
        this.parent = new Int32Array(1024);
        this.id = new Int32Array(1024);
        this.depth = new Int32Array(1024);
        this.self = Array.from({length: columnCount}, () => new Float64Array(1024));
        this.parent[0] = this.id[0] = -1;
        this.slots = new Int32Array(4096); /* of a hash table; a node by its parent and id, 0: free */
    }

    /* The child of a node; made if there is none yet. */
    child(parent, id) {
        const mask = this.slots.length - 1;
        let slot = this.slotOf(parent, id, mask);
        for (let node; (node = this.slots[slot]); slot = (slot + 1) & mask) {
            if (this.parent[node] === parent && this.id[node] === id)
                return node;
        }
        if (this.count === this.parent.length)
            this.grow();
        const node = this.count++;
        this.slots[slot] = node;
        this.parent[node] = parent;
        this.id[node] = id;
        this.depth[node] = this.depth[parent] + 1;
        if (this.count * 2 > this.slots.length)
            this.rehash();
        return node;
    }

    slotOf(parent, id, mask) {
        let hash = Math.imul(parent + 1, 0x9e3779b1) ^ Math.imul(id + 1, 0x85ebca6b);
        hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
        return (hash ^ (hash >>> 13)) & mask;
    }

    grow() {
        const larger = old => {
            const column = new old.constructor(2 * old.length);
            column.set(old);
            return column;
        };
        for (const column of ['parent', 'id', 'depth'])
            this[column] = larger(this[column]);
        this.self = this.self.map(larger);
    }

    rehash() {
        const slots = new Int32Array(2 * this.slots.length), mask = slots.length - 1;
        for (let node = 1; node < this.count; node++) {
            let slot = this.slotOf(this.parent[node], this.id[node], mask);
            while (slots[slot])
                slot = (slot + 1) & mask;
            slots[slot] = node;
        }
        this.slots = slots;
    }

    /* Adds what row `from` of some columns holds to a node. */
    add(node, columns, from) {
        for (let k = 0; k < this.self.length; k++)
            this.self[k][node] += columns[k][from];
    }

    finish() {
        const cut = column => column.subarray(0, this.count);
        const total = this.self.map(column => cut(column).slice());
        for (const column of total) {
            for (let node = this.count - 1; node > 0; node--)
                column[this.parent[node]] += column[node];
        }
        return {count: this.count, parent: cut(this.parent), id: cut(this.id), depth: cut(this.depth),
            self: this.self.map(cut), total};
    }
}

/* Does any column hold something in this row? */
function isWeighed(columns, row) {
    for (const column of columns) {
        if (column[row])
            return true;
    }
    return false;
}

/* Which stacks, or stacks that begin with them, have samples: a Uint8Array by stack. */
function stacksInUse(stacks, columns) {
    const used = new Uint8Array(stacks.count + 1);
    for (let i = stacks.count; i > 0; i--) {
        used[i] |= isWeighed(columns, i) ? 1 : 0;
        used[stacks.caller[i]] |= used[i];
    }
    return used;
}

/*
 * Which frames are left out, so that their weight goes to the callers: a Uint8Array by stack, of its innermost frame.
 * `layers` says which kinds are shown; `begun` is that of stacksOfView().
 */
function hiddenFrames(data, layers, begun) {
    const shown = [layers.python, layers.native, layers.kernel, true];
    const {count, frame} = data.stacks, kind = data.frames.kind;
    const hidden = new Uint8Array(count + 1);
    for (let i = 1; i <= count; i++)
        hidden[i] = shown[kind[frame[i]]] && (!begun || begun[i]) ? 0 : 1;
    return hidden;
}

/* The tree of calls from the outermost frames on. `names` are data.functions or data.lines; `columns` sums by stack. */
function treeFromRoot(data, names, columns, hidden) {
    const {count, caller, frame} = data.stacks, used = stacksInUse(data.stacks, columns);
    const tree = new TreeBuilder(columns.length), nodeOf = new Int32Array(count + 1);

    for (let i = 1; i <= count; i++) {
        if (!used[i])
            continue;
        const above = nodeOf[caller[i]];
        nodeOf[i] = hidden[i] ? above : tree.child(above, names.ofFrame[frame[i]]);
    }
    for (let i = 0; i <= count; i++) {
        if (isWeighed(columns, i))
            tree.add(nodeOf[i] || tree.child(0, names.noFrames), columns, i);
    }
    return tree.finish();
}

/* The tree from the innermost frames outwards: children are callers. */
function treeFromLeaves(data, names, columns, hidden) {
    const {count, caller, frame, depth} = data.stacks, tree = new TreeBuilder(columns.length);
    const leaves = [];
    let steps = 0, cutWeight = 0;

    for (let i = 0; i <= count; i++) {
        if (isWeighed(columns, i))
            leaves.push(i);
    }
    leaves.sort((a, b) => columns[0][b] - columns[0][a] || a - b);
    for (const leaf of leaves) {
        let node = 0;
        steps += depth[leaf];
        cutWeight += steps > CALLER_STEPS_LIMIT ? columns[0][leaf] : 0;
        for (let i = leaf; i && (!node || steps <= CALLER_STEPS_LIMIT); i = caller[i]) {
            if (!hidden[i])
                node = tree.child(node, names.ofFrame[frame[i]]);
        }
        tree.add(node || tree.child(0, names.noFrames), columns, leaf);
    }
    return {...tree.finish(), cutWeight};
}

/* Marks the nodes of a function or line that are not below another of the same: a Uint8Array by node, 1 there, 2 below. */
function outermostOf(tree, id) {
    const place = new Uint8Array(tree.count);
    for (let node = 1; node < tree.count; node++)
        place[node] = place[tree.parent[node]] ? 2 : tree.id[node] === id ? 1 : 0;
    return place;
}

/* What a function calls, wherever it is called, as a tree whose root stands for it; recursion counts once. */
function treeOfCallees(from, id) {
    const place = outermostOf(from, id), tree = new TreeBuilder(from.self.length), nodeOf = new Int32Array(from.count);

    for (let node = 1; node < from.count; node++) {
        if (!place[node])
            continue;
        if (place[node] === 2)
            nodeOf[node] = tree.child(nodeOf[from.parent[node]], from.id[node]);
        tree.add(nodeOf[node], from.self, node);
    }
    return tree.finish();
}

/* Who calls a function, as a tree whose root stands for it: children are callers; recursion counts once. */
function treeOfCallers(from, id) {
    const place = outermostOf(from, id), tree = new TreeBuilder(from.self.length), weight = from.total[0], nodes = [];
    let steps = 0, cutWeight = 0;

    for (let node = 1; node < from.count; node++) {
        if (place[node] === 1)
            nodes.push(node);
    }
    nodes.sort((a, b) => weight[b] - weight[a] || a - b);
    for (const node of nodes) {
        let to = 0;
        steps += from.depth[node];
        cutWeight += steps > CALLER_STEPS_LIMIT ? weight[node] : 0;
        for (let up = from.parent[node]; up > 0 && steps <= CALLER_STEPS_LIMIT; up = from.parent[up])
            to = tree.child(to, from.id[up]);
        tree.add(to, from.total, node);
    }
    return {...tree.finish(), cutWeight};
}

/* The children of all nodes: {start, list}; those of a node are list[start[node]] until before list[start[node + 1]]. */
function childrenOf(tree) {
    const {count, parent} = tree, start = new Int32Array(count + 1), list = new Int32Array(count - 1);
    for (let node = 1; node < count; node++)
        start[parent[node] + 1]++;
    for (let node = 0; node < count; node++)
        start[node + 1] += start[node];
    const next = start.slice();
    for (let node = 1; node < count; node++)
        list[next[parent[node]]++] = node;
    return {start, list};
}

/* The nodes but the root, each directly before what it calls: an Int32Array. */
function depthFirst(tree) {
    const {start, list} = childrenOf(tree), order = new Int32Array(tree.count - 1), todo = [0];
    for (let end = 0; todo.length;) {
        const node = todo.pop();
        if (node)
            order[end++] = node;
        for (let i = start[node + 1]; i-- > start[node];)
            todo.push(list[i]);
    }
    return order;
}

/*
 * How a tree is drawn, a row for each depth: {order, rowStart, left, start, list}. Row d is the part of `order` from
 * rowStart[d] until before rowStart[d + 1], from left to right; `left` is by node, in the unit of weights. The heaviest
 * child stands first; where the totals are equal, the one whose id is smaller. `start` and `list` are those of
 * childrenOf(), with the children in this order.
 */
function layOutTree(tree) {
    const {count, id} = tree, weight = tree.total[0];
    const {start, list} = childrenOf(tree);
    const order = new Int32Array(count), left = new Float64Array(count), rowStart = [0];
    let end = 1;
    for (let i = 0, row = -1; i < count; i++) {
        const node = order[i], children = list.subarray(start[node], start[node + 1]);
        if (tree.depth[node] !== row) {
            row = tree.depth[node];
            rowStart[row] = i;
        }
        if (children.length > 1)
            children.sort((a, b) => weight[b] - weight[a] || id[a] - id[b]);
        let at = left[node];
        for (const next of children) {
            order[end++] = next;
            left[next] = at;
            at += weight[next];
        }
    }
    rowStart.push(count);
    return {order, rowStart, left, start, list};
}
