/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions or lines: the figures of the flame graph for those who read, listen or use the keyboard alone.
 * All rows are sorted and searched, but only some are drawn, since there may be 50,000: a button draws more.
 *
 * view.sort is a column's key; with "-" in front its order is the other one.
 */

const ROWS_DRAWN = 200, ROWS_MORE = 1000;
/* How long a text of another program may be in a cell; its title has all of it. */
const NAME_CHARACTERS = 400;

/* By a column's key: its title, what it means, what rows are sorted by; numbers begin with the largest. */
const TABLE_COLUMNS = [
    {key: 'self', title: 'Self', meaning: 'In the function itself, not in what it called', isNumber: true, cells: 2,
        value: row => row.self[0]},
    {key: 'total', title: 'Total', meaning: 'In the function and in all that it called', isNumber: true, cells: 2,
        value: row => row.total[0]},
    {key: 'samples', title: 'Samples', detail: 'self / total',
        meaning: 'How many samples found the function itself running, and how many found it anywhere on the stack; the fewer, ' +
            'the less exact the figures', isNumber: true, value: row => row.self[row.self.length - 1]},
    {key: 'layer', title: 'Layer', meaning: 'Python code; native code, such as C extensions and libraries; or the kernel',
        value: (row, name) => name.kind},
    {key: 'name', title: 'Function', meaning: 'Its name', value: (row, name) => name.name || name.text},
    {key: 'place', title: 'Where', meaning: 'Source file and line; of native code without them the binary',
        value: (row, name) => name.place},
];

/* An amount beside others of `whole`, all to the same number of digits, as in `pysym -f top`. */
function textOfFigure(event, value, whole) {
    if (event.isBytes)
        return textOfSize(value);
    if (!event.isTime)
        return value.toLocaleString('en');
    return whole >= 1e9 ? (value / 1e9).toFixed(2) + ' s' : (value / 1e6).toFixed(1) + ' ms';
}

/* "12.3%", to one digit, so that figures stand below each other. */
function textOfPercent(part, whole) {
    return (whole ? 100 * part / whole : 0).toFixed(1) + '%';
}

function largestOf(list, valueOf) {
    return list.reduce((largest, each) => Math.max(largest, valueOf(each)), 0);
}

function cut(text) {
    return text.length > NAME_CHARACTERS ? text.slice(0, NAME_CHARACTERS) + '…' : text;
}

/* The cells of a figure: its share with a bar, and the amount. The bar of the `longest` amount fills its cell. */
function figureCells(event, value, whole, className, longest) {
    const share = element('td', {className: 'number share ' + className}, textOfPercent(value, whole));

    share.style.setProperty('--part', (longest ? 100 * value / longest : 0) + '%');
    return [share, element('td', {className: 'number'}, value ? textOfFigure(event, value, whole) : '')];
}

/* The name of a function without its place, and what it has instead where it has none. */
function ownName(name) {
    return cut(name.name || name.text);
}

/* A cell with the mark of a function's layer, and one with its name, which selects it, and its place. */
function functionCells(name, id) {
    const {place} = name;
    return [element('td', null, layerMark(name.kind)),
        element('td', {className: 'function'}, linkButton(ownName(name), 'Selects it: ' + name.text, () => setView({selected: id})),
            ' ', place && breakableName(cut(place), 'place'))];
}

/* The columns of the table; of a comparison functions have others. */
function columnsOfTable(view) {
    return page.data && page.data.compared && view.by === 'function' ? COMPARED_COLUMNS : TABLE_COLUMNS;
}

/* {column, isReversed} of view.sort; at the start the first column sorts. */
function sortOfView(view) {
    const columns = columnsOfTable(view), text = view.sort || '', isReversed = text[0] === '-', key = isReversed ? text.slice(1) : text;
    const column = columns.find(each => each.key === key);
    return column ? {column, isReversed} : {column: columns[0], isReversed: false};
}

/* Equal rows are in the order of their names, so that the same figures are the same table. */
function sortRows(rows, names, view) {
    const {column, isReversed} = sortOfView(view);
    const sign = (column.isNumber ? -1 : 1) * (isReversed ? -1 : 1);
    const keyed = rows.map(row => ({row, value: column.value(row, names[row.id]), text: names[row.id].text}));

    keyed.sort((a, b) => (a.value < b.value ? -sign : a.value > b.value ? sign : 0) ||
        b.row.total[0] - a.row.total[0] || (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
    return keyed.map(entry => entry.row);
}

/* The rows that the table shows: those that match the search. */
function rowsOfTable(page) {
    const {view, result, data} = page, names = result.names(view.by), found = result.search(view.search);
    const functionOf = result.functionOf(view.by);
    const rows = result.rows(view.by).filter(row => !found || found.matches[functionOf[row.id]]);

    return {names, rows: sortRows(rows, names, view), all: result.rows(view.by).length, isSearched: Boolean(found), data};
}

function headOfTable(view) {
    const {column: sorted, isReversed} = sortOfView(view);
    const cells = columnsOfTable(view).map(column => {
        const isSorted = column === sorted, isDescending = Boolean(column.isNumber) !== isReversed;
        const title = column.key === 'name' && view.by === 'line' ? 'Function with the line' : column.title;
        const button = plainButton(title, column.meaning + '. Sorts by it.', () => {
            setView({sort: isSorted && !isReversed ? '-' + column.key : column.key});
            byId('sort-' + column.key).focus();
        });
        button.id = 'sort-' + column.key;
        if (column.detail)
            button.append(element('small', null, ' ' + column.detail));
        return element('th', {scope: 'col', className: column.isNumber ? 'number' : '', colSpan: column.cells || 1,
            'aria-sort': isSorted ? (isDescending ? 'descending' : 'ascending') : null}, button);
    });
    return element('thead', null, element('tr', null, ...cells));
}

function rowOfTable(page, row, name, number, longest) {
    const {view, result} = page, event = result.event, whole = result.totals[0], last = row.self.length - 1;
    const isSelected = view.selected !== null && view.selected === result.functionOf(view.by)[row.id];
    const place = cut(name.place), title = [name.text, name.file, name.module].filter(Boolean).join('\n');
    const line = element('tr', {tabIndex: number ? -1 : 0, 'aria-current': isSelected ? 'true' : null},
        ...columnsOfTable(view) === COMPARED_COLUMNS ? comparedCells(page, row, longest) : [
            ...figureCells(event, row.self[0], whole, 'self', longest.self),
            ...figureCells(event, row.total[0], whole, 'total', longest.total),
            element('td', {className: 'number'}, row.self[last].toLocaleString('en') + ' / ' + row.total[last].toLocaleString('en'))],
        element('td', null, layerMark(name.kind)),
        element('td', {className: 'name', title}, nameElement(ownName(name))),
        element('td', {className: 'place'}, hasSource(name)
            ? linkButton(place, 'Shows the lines of ' + name.file, () => showSource(name)) : nameElement(place)));
    line.addEventListener('click', event => {
        if (!event.target.closest('button'))
            selectRow(page, row.id);
    });
    line.addEventListener('keydown', event => moveInRows(event, () => selectRow(page, row.id)));
    return line;
}

/* Keys of a row: arrows go to the next, Home and End to the first and the last, Enter and Space use it. */
function moveInRows(event, use) {
    const row = event.currentTarget;
    if (event.target !== row)
        return;
    const rows = [...row.parentElement.querySelectorAll('tr[tabindex]')], at = rows.indexOf(row);
    const to = {ArrowDown: rows[at + 1], ArrowUp: rows[at - 1], Home: rows[0], End: rows[rows.length - 1]}[event.key];

    if (event.key === 'Enter' || event.key === ' ') {
        event.preventDefault();
        use();
    } else if (to) {
        event.preventDefault();
        row.tabIndex = -1;
        to.tabIndex = 0;
        to.focus();
    }
}

function selectRow(page, id) {
    setView({selected: page.result.functionOf(page.view.by)[id]});
}

function hasSource(name) {
    return name.kind === FRAME_PYTHON && name.file !== '';
}

function showSource(name) {
    setView({tab: 'source', file: name.file, line: name.line || null});
}

/* What shares in the table are of. */
function captionOfShares(page) {
    const {result, data, view} = page;
    if (columnsOfTable(view) === COMPARED_COLUMNS)
        return captionOfCompared(page);
    return 'Shares are of the ' + textOfAmount(result.event, result.totals[0]) + ' shown' + (data.compared ? ', of ' + view.side + ' runs.' : '.');
}

class FunctionTable {
    constructor() {
        this.name = 'table';
        this.drawn = ROWS_DRAWN;
        this.last = '';
    }

    init() {
        this.by = element('fieldset', {className: 'switch'}, element('legend', null, 'Rows are'),
            ...[['function', 'functions'], ['line', 'lines']].map(([value, text]) => this.choiceOfBy(value, text)));
        this.table = element('table', {className: 'figures'});
        this.more = element('p', {className: 'tools'});
        fill(byId('panel-table'), element('div', {className: 'tools'}, this.by), this.table, this.more);
    }

    choiceOfBy(value, text) {
        const input = element('input', {type: 'radio', name: 'by', value});
        input.addEventListener('change', () => setView({by: value}));
        return element('label', {title: 'A row for each ' + value + ' that was met'}, input, element('span', null, text));
    }

    draw(page) {
        if (page.view.tab !== 'table')
            return;
        const {names, rows, all, isSearched} = rowsOfTable(page), {view} = page;
        const word = view.by === 'line' ? ['line', 'lines'] : ['function', 'functions'];
        const what = [view.event, view.by, view.search, view.sort].join('\n');

        this.drawn = what === this.last ? this.drawn : ROWS_DRAWN;
        this.last = what;
        this.by.querySelector('[value="' + (view.by === 'line' ? 'line' : 'function') + '"]').checked = true;
        const focused = this.focusedRow(), counted = countedText(all, ...word);
        const longest = {self: largestOf(rows, row => row.self[0]), total: largestOf(rows, row => row.total[0])};
        const body = element('tbody', null, ...rows.slice(0, this.drawn).map((row, i) =>
            rowOfTable(page, row, names[row.id], i, longest)));
        fill(this.table, element('caption', null,
            isSearched ? rows.length.toLocaleString('en') + ' of ' + counted + ' match the search. ' : counted + '. ',
            captionOfShares(page)), headOfTable(view), body);
        if (focused >= 0 && body.children[focused])
            body.children[focused].focus();
        this.drawMore(page, rows.length, word);
    }

    /* The number of the row that has the focus; -1: none has. */
    focusedRow() {
        const row = document.activeElement && document.activeElement.closest('#panel-table tbody tr');
        return row ? row.sectionRowIndex : -1;
    }

    drawMore(page, count, word) {
        const draw = more => () => {
            const first = this.drawn;
            this.drawn += more;
            this.draw(page);
            this.table.tBodies[0].children[first].focus();
        };

        fill(this.more);
        if (count > this.drawn)
            fill(this.more, element('span', {className: 'faint'},
                this.drawn.toLocaleString('en') + ' of ' + countedText(count, ...word) + ' are drawn.'),
            plainButton('Draw ' + Math.min(ROWS_MORE, count - this.drawn).toLocaleString('en') + ' more', 'Adds rows below',
                draw(ROWS_MORE)));
    }
}

page.views.push(new FunctionTable());
