/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws a tree as a flame graph on a canvas. The canvas is as large as what is seen, and stays where it is while an element
 * behind it scrolls: a stack may be 100,000 frames deep, and browsers bound the size of a canvas. Boxes too thin to be seen
 * are drawn as one, so the work depends on the size of the canvas, not on that of the tree.
 *
 * A picture may grow upwards, from its lower edge. Then its root is not drawn: it stands in the picture below.
 */

const ROW_HEIGHT = 18;
/* Thinner boxes are drawn together, in pixels; narrower ones have no text. */
const THINNEST_BOX = 1, NARROWEST_TEXT = 24;
/* Browsers bound the height of an element, too. Deeper trees scroll faster. */
const SCROLL_LIMIT = 8e6;

class FlamePicture {
    /* `canvas` fills `box`, which scrolls. */
    constructor(canvas, box, {isUpward = false} = {}) {
        this.canvas = canvas;
        this.box = box;
        this.isUpward = isUpward;
        this.firstRow = isUpward ? 1 : 0;
        this.height = 0;
        this.context = canvas.getContext('2d', {alpha: false});
        this.tree = null;
        this.zoomed = this.current = 0; /* nodes */
        this.hovered = -1; /* none */
        this.spacer = document.createElement('div');
        box.append(this.spacer);
        Object.assign(box.style, {overflowX: 'hidden', overflowY: 'auto', overflowAnchor: 'none'});
        Object.assign(canvas.style, {display: 'block', position: 'sticky', top: '0', height: '0'});
        box.addEventListener('scroll', () => this.draw());
    }

    /*
     * Shows a tree. `entries` are what its ids are numbers of; `rootText` is the name of the root, and `rootId` the number
     * of the function that it stands for, if it does for one; `matches` is a Uint8Array by id, null for no search; `verdicts`
     * a Uint8Array by node (VERDICT_…), null where nothing is compared. The nodes that are zoomed and current become those at the same
     * path. Returns whether the tree is another than before.
     */
    show({tree, entries, rootText, rootId = -1, matches, verdicts = null, zoom}) {
        const isNew = tree !== this.tree;
        if (isNew) {
            const path = this.tree && rootId === this.rootId ? pathOfNode(this.tree, this.current) : [];
            this.tree = tree;
            this.layout = layOutTree(tree);
            this.current = nodeAtPath(tree, this.layout, path);
            this.hovered = -1;
        }
        Object.assign(this, {entries, rootText, rootId, matches, verdicts});
        this.zoomed = nodeAtPath(tree, this.layout, zoom);
        this.ancestors = ancestorsOf(tree, this.zoomed);
        this.resize();
        return isNew;
    }

    /* Fits the canvas to the box. Call when the size of the box or of the window changed. */
    resize() {
        if (!this.tree)
            return;
        const ratio = window.devicePixelRatio || 1, width = this.box.clientWidth;
        const heightBefore = this.height;
        this.canvas.style.height = this.box.clientHeight + 'px';
        this.height = this.box.clientHeight;
        this.spacer.style.height = Math.max(0, Math.min(this.fullHeight, SCROLL_LIMIT) - this.height) + 'px';
        if (this.isUpward)
            this.box.scrollTop += heightBefore - this.height; /* the lower edge stays */
        this.width = width;
        if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(this.height * ratio)) {
            this.canvas.width = Math.round(width * ratio);
            this.canvas.height = Math.round(this.height * ratio);
        }
        this.ratio = ratio;
        this.palette = paletteOf(this.context, ratio);
        this.draw();
    }

    get rowCount() {
        return this.layout.rowStart.length - 1;
    }

    /* In pixels, of all rows. */
    get fullHeight() {
        return (this.rowCount - this.firstRow) * ROW_HEIGHT;
    }

    /* The place of a row, counted from the top of the picture; and the row of a place. */
    placeOfRow(row) {
        return this.isUpward ? this.rowCount - 1 - row : row;
    }

    /* How far the picture is scrolled, in pixels of the picture. Negative: there is room above it. */
    get offset() {
        const most = this.fullHeight - this.height, range = this.box.scrollHeight - this.box.clientHeight;
        if (most <= 0)
            return this.isUpward ? most : 0;
        return range <= 0 ? 0 : Math.min(most, this.box.scrollTop * (most > SCROLL_LIMIT ? most / range : 1));
    }

    scrollToRow(row) {
        const top = this.placeOfRow(row) * ROW_HEIGHT, offset = this.offset, most = this.fullHeight - this.height;
        let to = offset;
        if (top < offset + ROW_HEIGHT)
            to = top - 2 * ROW_HEIGHT;
        else if (top + 2 * ROW_HEIGHT > offset + this.height)
            to = top + 3 * ROW_HEIGHT - this.height;
        const range = this.box.scrollHeight - this.box.clientHeight;
        this.box.scrollTop = Math.max(0, to) * (most > SCROLL_LIMIT ? range / most : 1);
    }

    /* Pixels per unit of weight. */
    get scale() {
        return this.width / (this.tree.total[0][this.zoomed] || 1);
    }

    leftOf(node) {
        return (this.layout.left[node] - this.layout.left[this.zoomed]) * this.scale;
    }

    /* ---- where is what ---- */

    /* The number of what a node is of; -1 of a root that stands for no function. */
    idOf(node) {
        return node ? this.tree.id[node] : this.rootId;
    }

    /* The first index in a row whose box ends behind a place, in units of weight. */
    firstEndingBehind(row, place) {
        const {order, rowStart, left} = this.layout, weight = this.tree.total[0];
        let low = rowStart[row], high = rowStart[row + 1];
        while (low < high) {
            const middle = (low + high) >> 1, node = order[middle];
            if (left[node] + weight[node] > place)
                high = middle;
            else
                low = middle + 1;
        }
        return low;
    }

    /* The node at a point of the canvas, in pixels; -1: there is none. */
    nodeAt(x, y) {
        if (!this.tree || x < 0 || x >= this.width)
            return -1;
        const row = this.placeOfRow(Math.floor((y + this.offset) / ROW_HEIGHT)), {order, rowStart, left} = this.layout;
        if (row < this.firstRow || row >= this.rowCount)
            return -1;
        if (row < this.ancestors.length)
            return this.ancestors[row];
        const place = left[this.zoomed] + x / this.scale, index = this.firstEndingBehind(row, place);
        return index < rowStart[row + 1] && left[order[index]] <= place ? order[index] : -1;
    }

    /* ---- drawing ---- */

    draw() {
        if (!this.tree || !this.height || !this.width)
            return;
        const {context, ratio, palette, offset} = this;
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.fillStyle = palette.back;
        context.fillRect(0, 0, this.width, this.height);
        context.font = '12px system-ui, sans-serif';
        context.textBaseline = 'middle';
        context.direction = 'ltr';
        const last = Math.min(this.rowCount - this.firstRow - 1, Math.floor((offset + this.height) / ROW_HEIGHT));
        for (let place = Math.max(0, Math.floor(offset / ROW_HEIGHT)); place <= last; place++) {
            const row = this.placeOfRow(place), top = place * ROW_HEIGHT - offset;
            if (row < this.ancestors.length)
                this.drawBox(this.ancestors[row], 0, this.width, top);
            else
                this.drawRow(row, top);
        }
        if (this.rootId >= 0 && !this.isUpward)
            this.frame(0, this.width, 0, palette.accent, 2);
        this.outline(this.hovered, palette.faint, 1);
        this.outline(this.current, palette.text, 2);
    }

    drawRow(row, top) {
        const {order, rowStart, left} = this.layout, {scale, width} = this, weight = this.tree.total[0];
        const from = left[this.zoomed], to = from + weight[this.zoomed], end = rowStart[row + 1];

        for (let i = this.firstEndingBehind(row, from); i < end && left[order[i]] < to;) {
            const node = order[i], x = (left[node] - from) * scale, boxWidth = Math.min(weight[node] * scale, width - x);
            if (boxWidth >= THINNEST_BOX) {
                this.drawBox(node, x, boxWidth, top);
                i++;
            } else {
                i = this.drawThin(row, i, x, top);
            }
        }
    }

    /* Draws the thin boxes from index `i` on that begin within a pixel, as one. Returns the index behind them. */
    drawThin(row, i, x, top) {
        const {order, rowStart} = this.layout, weight = this.tree.total[0], {scale} = this;
        const from = this.layout.left[this.zoomed], end = rowStart[row + 1];
        let next = Math.max(i + 1, this.firstEndingBehind(row, from + (x + THINNEST_BOX) / scale));
        /* The last of them may be wide. */
        if (next - 1 > i && weight[order[next - 1]] * scale >= THINNEST_BOX)
            next--;
        if (weight[order[i]] > 0) {
            this.context.fillStyle = this.fillOf(this.mostTelling(i, next));
            this.context.fillRect(x, top, THINNEST_BOX, ROW_HEIGHT - 1);
        }
        return Math.min(next, end);
    }

    /*
     * Of some nodes that are drawn as one the one to show: a match, else one that is surely changed, else the first, which is
     * the heaviest of its caller's.
     */
    mostTelling(from, behind) {
        const {order} = this.layout, {id} = this.tree;
        let telling = order[from];
        for (let i = from; (this.matches || this.verdicts) && i < behind; i++) {
            if (this.matches && this.matches[id[order[i]]])
                return order[i];
            if (this.isChanged(order[i]) && !this.isChanged(telling))
                telling = order[i];
        }
        return telling;
    }

    isChanged(node) {
        return this.verdicts !== null && (this.verdicts[node] === VERDICT_MORE || this.verdicts[node] === VERDICT_LESS);
    }

    fillOf(node) {
        const {palette, verdicts, matches} = this, id = this.idOf(node), entry = this.entries[id];
        if (!entry)
            return palette.root;
        if (matches && matches[id])
            return palette.match;
        if (verdicts)
            return colourOfVerdict(palette, verdicts[node]);
        return palette.layers[entry.kind][entry.shade === undefined ? entry.shade = shadeOf(entry.text) : entry.shade];
    }

    drawBox(node, x, boxWidth, top) {
        const {context, palette, matches, ratio} = this, entry = this.entries[this.idOf(node)];
        const snap = value => Math.round(value * ratio) / ratio;
        const left = snap(x), right = Math.max(left + 1 / ratio, snap(x + boxWidth) - (boxWidth > 3 ? 1 : 0));
        const isMatch = matches && matches[this.idOf(node)], kind = entry ? entry.kind : FRAME_MARK;

        context.fillStyle = this.fillOf(node);
        context.fillRect(left, top, right - left, ROW_HEIGHT - 1);
        if (kind === FRAME_KERNEL && !isMatch) {
            context.fillStyle = palette.hatch;
            context.fillRect(left, top, right - left, ROW_HEIGHT - 1);
        } else if (kind === FRAME_NATIVE) {
            context.fillStyle = palette.edge;
            context.fillRect(left, top + ROW_HEIGHT - 3, right - left, 2);
        }
        if (this.isChanged(node) && !isMatch) { /* a line above what is more, below what is less */
            context.fillStyle = palette.boxText;
            context.fillRect(left, this.verdicts[node] === VERDICT_MORE ? top : top + ROW_HEIGHT - 3, right - left, 2);
        }
        if (right - left >= NARROWEST_TEXT) {
            context.fillStyle = isMatch ? palette.matchText : entry ? palette.boxText : palette.text;
            const text = node ? entry.text : this.rootText, mark = this.verdicts ? VERDICT_MARKS[this.verdicts[node]] : '';
            context.fillText(this.textThatFits(mark ? mark + ' ' + text : text, right - left - 7),
                left + 4, top + ROW_HEIGHT / 2);
        }
    }

    /* As much of a text as has room, with "…" for the rest. */
    textThatFits(text, room) {
        const {context} = this;
        let low = 0, high = Math.min(text.length, Math.ceil(room / 2));
        if (high === text.length && context.measureText(text).width <= room)
            return text;
        while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (context.measureText(text.slice(0, middle) + '…').width <= room)
                low = middle;
            else
                high = middle - 1;
        }
        /* Half of a character that takes two places is none. */
        return low ? text.slice(0, low).replace(/[\ud800-\udbff]$/, '') + '…' : '';
    }

    outline(node, colour, thickness) {
        if (node <= 0)
            return;
        const depth = this.tree.depth[node], isAncestor = this.ancestors[depth] === node;
        const left = isAncestor ? 0 : Math.max(0, this.leftOf(node));
        const right = isAncestor ? this.width : Math.min(this.width, this.leftOf(node) + this.tree.total[0][node] * this.scale);
        if (right < 0 || left > this.width || (depth < this.ancestors.length && !isAncestor))
            return;
        this.frame(left, right, depth, colour, thickness);
    }

    frame(left, right, row, colour, thickness) {
        this.context.strokeStyle = colour;
        this.context.lineWidth = thickness;
        this.context.strokeRect(left + thickness / 2, this.placeOfRow(row) * ROW_HEIGHT - this.offset + thickness / 2,
            Math.max(1, right - left - 1 - thickness), ROW_HEIGHT - 1 - thickness);
    }
}

/* ---- places in trees ---- */

/* The ids on the way from the root to a node, without the root's. */
function pathOfNode(tree, node) {
    const path = [];
    for (; node > 0; node = tree.parent[node])
        path.push(tree.id[node]);
    return path.reverse();
}

/* The child of a node with this id; -1: there is none. */
function childWithId(tree, layout, node, id) {
    for (let i = layout.start[node]; i < layout.start[node + 1]; i++) {
        if (tree.id[layout.list[i]] === id)
            return layout.list[i];
    }
    return -1;
}

/* The only child of a node; -1: it has none, or several. */
function onlyChild(layout, node) {
    return layout.start[node + 1] - layout.start[node] === 1 ? layout.list[layout.start[node]] : -1;
}

/* The node that a path leads to, as far as the tree has it. The path may lack steps where there is only one way. */
function nodeAtPath(tree, layout, path) {
    let node = 0;
    for (const id of path) {
        let at = node, next;
        while ((next = childWithId(tree, layout, at, id)) < 0 && (at = onlyChild(layout, at)) >= 0)
            ;
        if (next < 0)
            break;
        node = next;
    }
    return node;
}

/* The path of a node without the steps to which there is no other way, for short links. */
function shortPathOfNode(tree, layout, node) {
    const path = pathOfNode(tree, node), nodes = ancestorsOf(tree, node);
    const short = path.filter((id, i) => i === path.length - 1 || onlyChild(layout, nodes[i]) < 0);
    /* A function that calls itself may be met too early. */
    return nodeAtPath(tree, layout, short) === node ? short : path;
}

/* A node and those above it, by depth. */
function ancestorsOf(tree, node) {
    const list = [];
    for (; node >= 0; node = tree.parent[node])
        list.push(node);
    return list.reverse();
}

/*
 * The neighbour of a node in a direction: 'up' the caller, 'down' the heaviest of what it calls, 'left' and 'right' the next
 * one of the same row. The node itself where there is none, or none with weight.
 */
function neighbourOfNode(tree, layout, node, direction) {
    const {order, rowStart, start, list} = layout, weight = tree.total[0];
    if (direction === 'up')
        return Math.max(0, tree.parent[node]);
    if (direction === 'down')
        return start[node] < start[node + 1] && weight[list[start[node]]] > 0 ? list[start[node]] : node;
    const row = tree.depth[node], step = direction === 'right' ? 1 : -1;
    const at = order.indexOf(node, rowStart[row]) + step;
    return at >= rowStart[row] && at < rowStart[row + 1] && weight[order[at]] > 0 ? order[at] : node;
}

/*
 * The next match of a search in the order in which boxes stand from left to right, callers first; of matches below others
 * only the outermost. After the last comes the first, if it is to go round. 0: there is none.
 */
function nextMatch(tree, layout, matches, node, step, goesRound = true) {
    const found = [], isBelow = new Uint8Array(tree.count);
    for (let i = 1; i < tree.count; i++) {
        const parent = tree.parent[i];
        isBelow[i] = isBelow[parent] || (parent && matches[tree.id[parent]]) ? 1 : 0;
        if (!isBelow[i] && matches[tree.id[i]] && tree.total[0][i] > 0)
            found.push(i);
    }
    const {left} = layout, {depth} = tree;
    const compare = (a, b) => left[a] - left[b] || depth[a] - depth[b];
    found.sort(compare);
    const next = step > 0 ? found.find(each => compare(each, node) > 0) : found.findLast(each => compare(each, node) < 0);
    return next || (goesRound && found.at(step > 0 ? 0 : -1)) || 0;
}
