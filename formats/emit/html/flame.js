/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph of the page: mouse, keys, the path above it, the text beside the pointer and in the status line, and how
 * much a search finds.
 */

const flame = {picture: null, page: null};

/* ---- what a box says ---- */

const LAYER_WORDS = ['Python', 'native code', 'kernel', 'mark of the profiler'];

/* The lines about a node: what it is, where it is from, what it takes. */
function describeNode(page, picture, node) {
    const {result} = page, {tree} = picture, event = result.event;
    const last = tree.total.length - 1, total = tree.total[0][node], self = tree.self[0][node];
    const samples = tree.total[last][node];
    const lines = [], amount = value => textOfAmount(event, value) + ' (' + (textOfShare(value, result.totals[0]) || '0 %') + ')';

    if (node) {
        const entry = result.names()[tree.id[node]];
        lines.push(entry.text, [LAYER_WORDS[entry.kind], entry.file || entry.module].filter(text => text).join(' · '));
    } else {
        lines.push(picture.rootText);
    }
    if (page.view.inverted)
        lines.push(node && tree.depth[node] > 1 ? amount(total) + ' of ' + result.names()[leafOf(tree, node)].text + ' is called this way'
            : node ? amount(total) + ' in itself' : amount(total));
    else
        lines.push('total ' + amount(total) + ', self ' + amount(self));
    lines.push(samples.toLocaleString('en') + (samples === 1 ? ' sample' : ' samples'));
    if (picture.zoomed && node && node !== picture.zoomed && tree.depth[node] > tree.depth[picture.zoomed])
        lines[lines.length - 1] += ', ' + textOfShare(total, tree.total[0][picture.zoomed]) + ' of the box that fills the width';
    if (last > 1)
        lines.push('compared with ' + textOfAmount(event, tree.total[1][node]) +
            ' (' + (textOfShare(tree.total[1][node], result.totals[1]) || '0 %') + ')');
    return lines;
}

/* The function of the innermost frame: of the ancestor below the root. */
function leafOf(tree, node) {
    while (tree.depth[node] > 1)
        node = tree.parent[node];
    return tree.id[node];
}

function tellNode(node) {
    const status = byId('status');
    status.textContent = node >= 0 ? describeNode(flame.page, flame.picture, node).join(' — ') : '';
}

/* Shows the text beside the pointer, within the box. */
function showTip(node, x, y) {
    const tip = byId('flame-tip'), {box} = flame.picture;
    tip.hidden = node < 0;
    if (node < 0)
        return;
    const [name, ...facts] = describeNode(flame.page, flame.picture, node);
    const title = document.createElement('b');
    title.append(nameElement(name));
    tip.replaceChildren(title, '\n' + facts.join('\n'));
    const below = y + 18, isRoom = below + tip.offsetHeight < box.clientHeight;
    tip.style.left = Math.max(0, Math.min(x + 12, box.clientWidth - tip.offsetWidth - 4)) + 'px';
    tip.style.top = box.scrollTop + Math.max(0, isRoom ? below : y - tip.offsetHeight - 10) + 'px';
}

/* ---- choices ---- */

/* The zoom as the address has it. */
function zoomForAddress(view) {
    const {picture} = flame;
    const isCurrent = picture && picture.tree && view.tab === 'flame';
    return isCurrent ? shortPathOfNode(picture.tree, picture.layout, picture.zoomed) : view.zoom;
}

/* Zooms to a node and selects its function; the root: shows everything. */
function zoomTo(node, change = {}) {
    const {tree} = flame.picture;
    flame.picture.current = node;
    setView({zoom: pathOfNode(tree, node), ...change});
    flame.picture.scrollToRow(tree.depth[node]);
}

function useNode(node) {
    zoomTo(node, node ? {selected: flame.picture.tree.id[node]} : {});
}

function moveTo(node) {
    const {picture} = flame;
    picture.current = node;
    picture.scrollToRow(picture.tree.depth[node]);
    picture.draw();
    tellNode(node);
}

/* Goes to the next match of the search, or the one before; zooms to what is too thin to see. */
function goToMatch(step) {
    const {picture} = flame, found = flame.page.result.search(flame.page.view.search);
    const node = found ? nextMatch(picture.tree, picture.layout, found.matches, picture.current, step) : 0;
    if (!node)
        return;
    const x = picture.leftOf(node), width = picture.tree.total[0][node] * picture.scale;
    if (width < 3 || x < -0.5 || x + width > picture.width + 0.5)
        zoomTo(node);
    moveTo(node);
}

const FLAME_MOVES = {ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right'};

function useFlameKey(event) {
    const {picture} = flame;
    if (event.ctrlKey || event.altKey || event.metaKey)
        return;
    if (FLAME_MOVES[event.key])
        moveTo(neighbourOfNode(picture.tree, picture.layout, picture.current, FLAME_MOVES[event.key]));
    else if (event.key === 'Enter')
        useNode(picture.current);
    else if (event.key === ' ' && picture.current)
        setView({selected: picture.tree.id[picture.current]});
    else if (event.key === 'Escape')
        zoomTo(picture.zoomed ? picture.tree.parent[picture.zoomed] : 0);
    else if (event.key === 'Home')
        zoomTo(0);
    else
        return;
    event.preventDefault();
}

/* Keys that work wherever no text is written. */
function useMatchKey(event) {
    const isText = event.target.closest && event.target.closest('input, select, textarea, dialog');
    if (isText || event.ctrlKey || event.altKey || event.metaKey || flame.page.view.tab !== 'flame')
        return;
    if (event.key === 'n' || event.key === 'N')
        goToMatch(event.key === 'n' ? 1 : -1);
}

/* ---- drawing ---- */

/* The way from the root to the box that fills the width: each step zooms to it. */
function drawPath() {
    const {picture} = flame, {tree, ancestors} = picture, names = flame.page.result.names();
    const shown = ancestors.length > 5 ? [0, -1, ...ancestors.slice(-3)] : ancestors;
    const parts = [];
    for (const node of ancestors.length > 1 ? shown : []) {
        if (parts.length)
            parts.push(' › ');
        if (node < 0)
            parts.push('…');
        else if (node === picture.zoomed)
            parts.push(nameElement(names[tree.id[node]].text));
        else
            parts.push(linkButton(node ? names[tree.id[node]].text : 'everything', 'Zooms out to it', () => zoomTo(node)));
    }
    byId('flame-path').replaceChildren(...parts);
}

function drawSearchShare(page) {
    const found = page.result.search(page.view.search), share = byId('search-share');
    if (!found)
        share.textContent = '';
    else if (!found.weights[found.weights.length - 1])
        share.textContent = 'not found';
    else
        share.textContent = textOfShare(found.weights[0], page.result.totals[0]) + ' of the samples’ ' +
            (page.result.event.isTime ? 'time' : 'weight') + ' (n: next)';
}

function drawFlame(page) {
    const {result, view} = page, found = result.search(view.search);
    drawSearchShare(page);
    if (view.tab !== 'flame')
        return;
    flame.picture.show({tree: view.inverted ? result.inverted() : result.tree(), entries: result.names(),
        rootText: 'all that is shown: ' + textOfAmount(result.event, result.totals[0]),
        matches: found && found.matches, zoom: view.zoom});
    view.zoom = pathOfNode(flame.picture.tree, flame.picture.zoomed); /* all of it, where a link has a short one */
    drawPath();
}

function listenToFlame(canvas) {
    const {picture} = flame;
    const nodeOf = event => picture.nodeAt(event.offsetX, event.offsetY);

    canvas.addEventListener('pointermove', event => {
        const node = nodeOf(event);
        if (node !== picture.hovered) {
            picture.hovered = Math.max(0, node);
            picture.draw();
            tellNode(node);
        }
        showTip(event.pointerType === 'touch' ? -1 : node, event.offsetX, event.offsetY);
    });
    canvas.addEventListener('pointerleave', () => {
        picture.hovered = 0;
        picture.draw();
        showTip(-1);
    });
    canvas.addEventListener('click', event => {
        const node = nodeOf(event);
        if (node >= 0)
            useNode(node);
    });
    canvas.addEventListener('focus', () => tellNode(picture.current));
    canvas.addEventListener('keydown', useFlameKey);
    document.addEventListener('keydown', useMatchKey);
    new ResizeObserver(() => picture.resize()).observe(picture.box);
}

page.views.push({
    name: 'flame',
    init(page) {
        const canvas = byId('flame');
        flame.page = page;
        flame.picture = new FlamePicture(canvas, byId('flame-box'));
        canvas.setAttribute('role', 'application');
        canvas.setAttribute('aria-label', 'Flame graph. Arrow keys go from box to box, Enter zooms in, Escape zooms out. ' +
            'The table has the same figures.');
        listenToFlame(canvas);
    },
    draw: drawFlame,
});
