/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph of the page: mouse, keys, the path above it, the text beside the pointer and in the status line, and how
 * much a search finds.
 *
 * There are two pictures. The lower one has the calls from the root or from the leaves, or what the selected function
 * called; above it the upper one then has who called that, and grows upwards.
 */

const flame = {page: null, lower: null, upper: null, used: null /* the picture that has the keys */};

function isAroundFunction() {
    return flame.page.view.order === 'function';
}

/* The pictures that are drawn, from top to bottom. */
function picturesDrawn() {
    const isDrawn = flame.page.view.tab === 'flame' && !byId('flame-area').hidden;
    return [flame.upper, flame.lower].filter(picture => isDrawn && picture.tree && !picture.box.hidden);
}

/* The text of the function that the pictures are around. */
function textOfSelected() {
    return flame.page.result.names()[flame.page.view.selected].text;
}

/* ---- what a box says ---- */

const LAYER_WORDS = ['Python', 'native code', 'kernel', 'mark of the profiler'];

function amountOf(value) {
    const {result} = flame.page;
    return textOfAmount(result.event, value) + ' (' + (textOfShare(value, result.totals[0]) || '0 %') + ')';
}

/* What a node takes. */
function amountsOfNode(picture, node) {
    const {page} = flame, {tree} = picture, total = amountOf(tree.total[0][node]), self = tree.self[0][node];

    if (picture.isUpward)
        return total + ' of ' + textOfSelected() + ' is called this way';
    if (page.view.order === 'leaves')
        return node && tree.depth[node] > 1 ? total + ' of ' + page.result.names()[leafOf(tree, node)].text + ' is called this way'
            : node ? total + ' in itself' : total;
    /* A function has all of its self time where it stands for itself: that of calls of itself below it, and of its waits. */
    const isWhole = isAroundFunction() && !node && !page.result.names()[picture.rootId].isWait;
    const own = isWhole ? page.result.row(picture.rootId).self[0] : self;
    return (isAroundFunction() && node ? 'below ' + textOfSelected() + ': ' : '') + 'total ' + total + ', self ' + amountOf(own);
}

/* The lines about a node: what it is, where it is from, what it takes. */
function describeNode(picture, node) {
    const {result} = flame.page, {tree} = picture, entry = result.names()[picture.idOf(node)], lines = [];
    const last = tree.total.length - 1, total = tree.total[0][node], samples = tree.total[last][node];

    lines.push(...entry ? [entry.text, [LAYER_WORDS[entry.kind], entry.file || entry.module].filter(text => text).join(' · ')]
        : [picture.rootText]);
    lines.push(amountsOfNode(picture, node), countedText(samples, 'sample', 'samples'));
    if ((picture.zoomed || isAroundFunction()) && tree.depth[node] > tree.depth[picture.zoomed])
        lines[lines.length - 1] += ', ' + textOfShare(total, tree.total[0][picture.zoomed]) + ' of ' +
            (picture.zoomed ? 'the box that fills the width' : textOfSelected());
    return last > 1 ? [...lines, ...describeChange(flame.page, tree, picture.rows[node], node)] : lines;
}

/* The function of the innermost frame: of the ancestor below the root. */
function leafOf(tree, node) {
    while (tree.depth[node] > 1)
        node = tree.parent[node];
    return tree.id[node];
}

function tellNode(picture, node) {
    byId('status').textContent = node >= 0 ? describeNode(picture, node).join(' — ') : '';
}

function hideTip() {
    byId('flame-tip').hidden = true;
}

/* Shows the text beside the pointer, within the area of the pictures. */
function showTip(picture, node, x, y) {
    const tip = byId('flame-tip'), area = byId('flame-area');
    tip.hidden = node < 0;
    if (node < 0)
        return;
    const [name, ...facts] = describeNode(picture, node), pointer = picture.box.offsetTop + y;
    const title = document.createElement('b');
    title.append(nameElement(name));
    tip.replaceChildren(title, '\n' + facts.join('\n'));
    const below = pointer + 18, isRoom = below + tip.offsetHeight < area.clientHeight;
    tip.style.left = Math.max(0, Math.min(x + 12, area.clientWidth - tip.offsetWidth - 4)) + 'px';
    tip.style.top = Math.max(0, isRoom ? below : pointer - tip.offsetHeight - 10) + 'px';
}

/* ---- choices ---- */

/* The zooms as the address has them. */
function zoomsForAddress() {
    return Object.fromEntries(picturesDrawn().map(picture =>
        [picture.zoomKey, shortPathOfNode(picture.tree, picture.layout, picture.zoomed)]));
}

/* Zooms to a node; the root: shows everything. */
function zoomTo(picture, node, change = {}) {
    picture.current = node;
    flame.used = picture;
    setView({[picture.zoomKey]: pathOfNode(picture.tree, node), ...change});
    picture.scrollToRow(picture.tree.depth[node]);
}

/* Zooms to a node, and selects its function; but what the pictures are around stays. */
function useNode(picture, node) {
    zoomTo(picture, node, node && !isAroundFunction() ? {selected: picture.idOf(node)} : {});
}

/* Selects a function. Pictures around it begin anew, and so do the keys. */
function selectNode(picture, node) {
    if (!node)
        return;
    setView({selected: picture.idOf(node)});
    if (isAroundFunction())
        moveTo(flame.lower, 0);
}

/* Brings the keys to a node. */
function moveTo(picture, node) {
    for (const other of picturesDrawn().filter(each => each !== picture)) {
        if (other.canvas === document.activeElement)
            picture.canvas.focus();
        other.current = 0;
        other.draw();
    }
    flame.used = picture;
    picture.current = node;
    picture.scrollToRow(picture.tree.depth[node]);
    picture.draw();
    tellNode(picture, node);
}

/* Goes to the next match of the search, or the one before; zooms to what is too thin to see. */
function goToMatch(step) {
    const found = flame.page.result.search(flame.page.view.search), pictures = picturesDrawn();
    const at = Math.max(0, pictures.indexOf(flame.used));
    /* On from where the keys are, then in the other picture, then from the begin of this one. */
    for (let i = 0; found && i <= pictures.length; i++) {
        const picture = pictures[(at + i) % pictures.length];
        const node = nextMatch(picture.tree, picture.layout, found.matches, i ? 0 : picture.current, step, i > 0);
        if (!node)
            continue;
        const x = picture.leftOf(node), width = picture.tree.total[0][node] * picture.scale;
        if (width < 3 || x < -0.5 || x + width > picture.width + 0.5)
            zoomTo(picture, node);
        moveTo(picture, node);
        return;
    }
}

/* The node that an arrow leads to. Where the picture is zoomed, there is one way down to what fills the width. */
function nodeInDirection(picture, node, direction) {
    const {tree, layout, ancestors} = picture, depth = tree.depth[node];
    if (direction === 'down' && ancestors[depth] === node && depth + 1 < ancestors.length)
        return ancestors[depth + 1];
    return neighbourOfNode(tree, layout, node, direction);
}

const FLAME_MOVES = {ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right'};
const UPWARD_MOVES = {...FLAME_MOVES, ArrowUp: 'down', ArrowDown: 'up'};

/* Arrows go from the one picture to the other: both have the selected function for a root, which the lower one draws. */
function moveByArrow(picture, key) {
    const isFromRoot = picture === flame.lower && key === 'ArrowUp' && !picture.current;
    const into = isFromRoot && picturesDrawn().includes(flame.upper) ? flame.upper : picture;
    const node = nodeInDirection(into, into === picture ? picture.current : 0, (into.isUpward ? UPWARD_MOVES : FLAME_MOVES)[key]);

    moveTo(into.isUpward && !node ? flame.lower : into, node);
}

function useFlameKey(picture, event) {
    if (event.ctrlKey || event.altKey || event.metaKey)
        return;
    if (FLAME_MOVES[event.key])
        moveByArrow(picture, event.key);
    else if (event.key === 'Enter')
        useNode(picture, picture.current);
    else if (event.key === ' ')
        selectNode(picture, picture.current);
    else if (event.key === 'Escape')
        zoomTo(picture, picture.zoomed ? picture.tree.parent[picture.zoomed] : 0);
    else if (event.key === 'Home')
        zoomTo(picture, 0);
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

/* The way from the root of a picture to the box that fills its width: each step zooms to it. */
function pathOfPicture(picture) {
    const {tree, ancestors} = picture, names = flame.page.result.names(), parts = [];
    const shown = ancestors.length > 5 ? [0, -1, ...ancestors.slice(-3)] : ancestors;
    const textOf = node => node ? names[tree.id[node]].text : isAroundFunction() ? textOfSelected() : 'everything';

    for (const node of ancestors.length > 1 ? shown : []) {
        if (parts.length)
            parts.push(picture.isUpward ? ' ‹ ' : ' › ');
        if (node < 0)
            parts.push('…');
        else if (node === picture.zoomed)
            parts.push(nameElement(textOf(node)));
        else
            parts.push(linkButton(textOf(node), 'Zooms out to it', () => zoomTo(picture, node)));
    }
    return parts;
}

function drawPath() {
    const paths = picturesDrawn().map(pathOfPicture).filter(parts => parts.length);
    byId('flame-path').replaceChildren(...paths.flatMap((parts, i) => i ? [' · ', ...parts] : parts));
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

/* Why nothing can be drawn around a function; "": it can. */
function whyNotAround(page) {
    const {result, view} = page;
    if (view.selected === null)
        return 'Select a function: in the list of the hottest, in the table, or in the flame graph from the root. ' +
            'Who called it is then drawn above it, and what it called below.';
    return result.callees(view.selected).total[0][0] ? ''
        : result.names()[view.selected].text + ' is not in what is shown: filters leave it out.';
}

/* What a reader has to know of the pictures: how to read those around a function, and which callers are missing. */
function noteOfPictures(page, callers) {
    const {result} = page, {cutWeight} = callers, notes = [];

    if (isAroundFunction()) {
        const begun = callers.self[0][0] - cutWeight;
        notes.push('Above the function stands who called it, the direct callers next to it; below, what it called. ' +
            'A double click goes around another function.');
        if (begun > 0)
            notes.push(textOfAmount(result.event, begun) + ' of it has no caller: stacks begin with it.');
    }
    if (cutWeight)
        notes.push('Callers are not drawn for ' + textOfAmount(result.event, cutWeight) + ' (' +
            textOfShare(cutWeight, result.totals[0]) + ') of the lightest stacks: there are too many.');
    return notes.join(' ');
}

/* Of the two pictures the upper one is as high as it must be, but leaves the lower one half of the room if that needs it. */
function fitPictures() {
    const {upper, lower} = flame, room = byId('flame-area').clientHeight;

    if (!upper.box.hidden && upper.tree && lower.tree)
        upper.box.style.height = Math.floor(Math.min(upper.fullHeight, Math.max(room / 2, room - lower.fullHeight))) + 'px';
    upper.resize();
    lower.resize();
}

/* What a picture shows of a comparison. */
function comparedBoxes(picture, tree, page) {
    const {result, data, view} = page;
    picture.rows = result.comparedRows(tree, view.order, view.selected);
    return {verdicts: picture.rows && Uint8Array.from(picture.rows, rows => data.compared.verdictOf(rows))};
}

function drawPictures(page) {
    const {result, view} = page, {upper, lower} = flame, isAround = isAroundFunction(), id = view.selected;
    const found = result.search(view.search), callers = isAround ? result.callers(id) : null;
    const common = {entries: result.names(), matches: found && found.matches, rootId: isAround ? id : -1};
    const tree = isAround ? result.callees(id) : view.order === 'leaves' ? result.inverted() : result.tree();
    const rootText = isAround ? textOfSelected() + ': ' + textOfAmount(result.event, tree.total[0][0])
        : 'all that is shown: ' + textOfAmount(result.event, result.totals[0]);

    upper.box.hidden = !callers || callers.count === 1;
    byId('flame-note').textContent = noteOfPictures(page, callers || tree);
    const isNew = new Map([[lower, lower.show({...common, ...comparedBoxes(lower, tree, page), tree, rootText, zoom: view.zoom})]]);
    if (callers)
        isNew.set(upper, upper.show({...common, ...comparedBoxes(upper, callers, page), tree: callers, rootText, zoom: view.callerZoom}));
    fitPictures();
    for (const picture of picturesDrawn()) {
        view[picture.zoomKey] = pathOfNode(picture.tree, picture.zoomed); /* all of it, where a link has a short one */
        if (isNew.get(picture) && (picture.isUpward || picture.zoomed))
            picture.scrollToRow(picture.tree.depth[picture.zoomed] || picture.firstRow);
    }
}

function drawFlame(page) {
    flame.page = page;
    drawSearchShare(page);
    if (page.view.tab !== 'flame')
        return;
    const why = isAroundFunction() ? whyNotAround(page) : '';
    byId('flame-area').hidden = why !== '';
    if (why)
        byId('flame-note').textContent = why;
    else
        drawPictures(page);
    drawPath();
}

function listenToPicture(picture) {
    const {canvas} = picture, nodeOf = event => picture.nodeAt(event.offsetX, event.offsetY);
    let clicked = -1; /* by the first click of two: what is there may be another box then */

    canvas.addEventListener('pointermove', event => {
        const node = nodeOf(event);
        if (node !== picture.hovered) {
            picture.hovered = node;
            picture.draw();
            tellNode(picture, node);
        }
        showTip(picture, event.pointerType === 'touch' ? -1 : node, event.offsetX, event.offsetY);
    });
    canvas.addEventListener('pointerleave', () => {
        picture.hovered = -1;
        picture.draw();
        hideTip();
    });
    canvas.addEventListener('click', event => {
        if (event.detail > 1 && isAroundFunction())
            return;
        clicked = nodeOf(event);
        if (clicked >= 0)
            useNode(picture, clicked);
    });
    canvas.addEventListener('dblclick', () => {
        if (isAroundFunction() && clicked > 0)
            selectNode(picture, clicked);
    });
    canvas.addEventListener('focus', () => {
        flame.used = picture;
        tellNode(picture, picture.current);
    });
    canvas.addEventListener('keydown', event => useFlameKey(picture, event));
}

function makePicture(canvas, box, zoomKey, label, options) {
    const picture = Object.assign(new FlamePicture(canvas, box, options), {zoomKey});
    canvas.setAttribute('role', 'application');
    canvas.setAttribute('aria-label', label + ' Arrow keys go from box to box, Enter zooms in, Escape zooms out. ' +
        'The table has the same figures.');
    listenToPicture(picture);
    return picture;
}

page.views.push({
    name: 'flame',
    init(page) {
        flame.page = page;
        flame.lower = flame.used = makePicture(byId('flame'), byId('flame-box'), 'zoom', 'Flame graph.');
        flame.upper = makePicture(byId('callers'), byId('callers-box'), 'callerZoom', 'Callers of the selected function.',
            {isUpward: true});
        document.addEventListener('keydown', useMatchKey);
        new ResizeObserver(fitPictures).observe(byId('flame-area'));
    },
    draw: drawFlame,
});
