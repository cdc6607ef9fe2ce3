/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The panel beside the views: of the selected function what it takes, who calls it, what it calls, and its lines; beside
 * the source the same of the selected line (source.js). While none is selected, the hottest functions.
 */

const NEIGHBOURS_SHOWN = 12, HOTTEST_SHOWN = 15;
const NO_CALLER = 'nobody: stacks begin here';

/* An expression that matches a function's name and nothing else; see parsePattern(). */
function patternOfFunction(name) {
    return 'function:^' + name.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&') + '$';
}

function amountWithShare(result, value) {
    return textOfAmount(result.event, value) + ', ' + (textOfShare(value, result.totals[0]) || '0 %') + ' of what is shown';
}

/* A table of functions: {share of `whole`, amount, name}. `text` says what stands where there is none. */
function tableOfNeighbours(page, caption, rows, whole, text) {
    const {result} = page, names = result.names(), shown = rows.slice(0, NEIGHBOURS_SHOWN);
    const lines = shown.map(({id, weights}) => {
        const value = weights[0];
        return element('tr', null, ...figureCells(result.event, value, whole, 'total', whole),
            ...(id === null ? [element('td', {colSpan: 2, className: 'faint'}, text)] : functionCells(names[id], id)));
    });

    if (rows.length > shown.length)
        lines.push(element('tr', null, element('td', {colSpan: 4, className: 'faint'},
            'and ' + countedText(rows.length - shown.length, 'other function', 'other functions'))));
    return element('table', null, element('caption', null, caption), element('tbody', null, ...lines));
}

/* The hot lines of a function of Python. */
function tableOfLines(page, id) {
    const {result} = page, names = result.names('line'), functionOf = result.functionOf('line');
    const rows = result.rows('line').filter(row => functionOf[row.id] === id && names[row.id].line);
    const whole = result.row(id).total[0];

    if (!rows.length || !hasSource(result.names()[id]))
        return null;
    rows.sort((a, b) => b.total[0] - a.total[0] || names[a.id].line - names[b.id].line);
    return element('table', null, element('caption', null, 'Its lines, as shares of its total'),
        element('tbody', null, ...rows.slice(0, NEIGHBOURS_SHOWN).map(row => element('tr', null,
            ...figureCells(result.event, row.total[0], whole, 'total', whole),
            element('td', {className: 'function'},
                linkButton('line ' + names[row.id].line, 'Shows it in the source', () => showSource(names[row.id])))))));
}

function actionsFor(page, name) {
    const pattern = name.name && patternOfFunction(name.name);
    const actions = element('div', {className: 'actions'});

    if (pattern)
        actions.append(
            plainButton('Only stacks with it', 'Leaves out samples in which this function is not on the stack',
                () => setView({focus: pattern})),
            plainButton('Without it', 'Leaves out samples in which this function is on the stack',
                () => setView({ignore: pattern})),
            plainButton('Begin stacks here', 'Cuts off what called it; leaves out samples without it',
                () => setView({rootAt: pattern})));
    if (page.view.tab !== 'flame' || page.view.order !== 'function')
        actions.append(plainButton('Around it', 'Draws who called it above, and what it called below it',
            () => setView({tab: 'flame', order: 'function'})));
    if (hasSource(name))
        actions.append(plainButton('Lines', 'Shows its lines', () => showSource(name)));
    actions.append(plainButton('Close', 'Selects nothing', () => setView({selected: null})));
    return actions;
}

function panelOfFunction(page, id) {
    const {result} = page, name = result.names()[id], row = result.row(id), last = row.self.length - 1;
    const {callers, callees} = result.neighbours(id);
    /* Rows have a wait as time of the function that waits. */
    const totals = name.isWait ? result.callees(id).total.map(column => column[0]) : row.total, total = totals[0];

    return [
        element('h2', null, layerMark(name.kind), ' ', breakableName(ownName(name))),
        factList([
            ['Self', name.isWait ? '' : amountWithShare(result, row.self[0]), 'In the function itself, not in what it called'],
            ['Total', amountWithShare(result, total), 'In the function and in all that it called'],
            ['Samples', (name.isWait ? '' : row.self[last].toLocaleString('en') + ' in it, ') +
                totals[last].toLocaleString('en') + ' with it on the stack', 'Few samples: figures that are not exact'],
            ['File', name.file && cut(name.file) + (name.line ? ':' + name.line : '')],
            ['Binary', name.kind === FRAME_PYTHON ? '' : cut(name.module)],
            ['Work of', name.builtin, 'The built-in module of the interpreter that this code belongs to'],
        ]),
        actionsFor(page, name),
        name.isWait ? element('p', {className: 'hint'}, 'This is self time of the functions that waited.') : null,
        ...changesOfFunction(page, id),
        total ? null : element('p', {className: 'notice'}, 'This function is not in what is shown: filters leave it out.'),
        element('h3', null, 'Called by'),
        tableOfNeighbours(page, 'Callers, as shares of its total', callers, total, NO_CALLER),
        element('h3', null, 'Calls'),
        callees.length ? tableOfNeighbours(page, 'What it called, as shares of its total', callees, total, '')
            : element('p', {className: 'faint'}, 'Nothing that was met.'),
        tableOfLines(page, id),
    ];
}

/* The rows with the most self time, the largest first; only these are sorted in full, since there may be very many. */
function hottestRows(result) {
    const rows = result.rows().filter(row => row.self[0]), selfs = Float64Array.from(rows, row => row.self[0]).sort();
    const least = selfs[Math.max(0, selfs.length - HOTTEST_SHOWN)];

    return sortRows(rows.filter(row => row.self[0] >= least), result.names(), {sort: 'self'}).slice(0, HOTTEST_SHOWN);
}

function panelOfHottest(page) {
    const {result} = page, names = result.names(), rows = hottestRows(result);

    return [
        element('h2', null, result.event && result.event.isWaiting ? 'Longest waits' : 'Hottest functions'),
        element('p', {className: 'hint'}, 'Select a function, here or in the picture, to see who calls it and what it calls.'),
        element('table', null, element('caption', null, 'By their own share of what is shown'),
            element('tbody', null, ...rows.map(row => element('tr', null,
                ...figureCells(result.event, row.self[0], result.totals[0], 'self', rows[0].self[0]),
                ...functionCells(names[row.id], row.id))))),
    ];
}

page.views.push({
    name: 'sandwich',
    init() {},
    draw(page) {
        const {tab, selected} = page.view, ofLine = tab === 'source' && panelOfLine(page);
        const panel = byId('selected'), hadFocus = panel.contains(document.activeElement);

        if (tab === 'about' || tab === 'compare')
            return;
        fill(panel, ...ofLine || (selected === null ? panelOfHottest(page) : panelOfFunction(page, selected)));
        panel.querySelector('h2').tabIndex = -1;
        if (hadFocus) /* what was used is gone; go on from here, and not from the page's begin */
            panel.querySelector('h2').focus();
    },
});
