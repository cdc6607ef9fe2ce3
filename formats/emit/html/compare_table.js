/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns that the table of functions has in a comparison: what is known of each, its change, and the shares of both sets.
 * Rows are in the order of the comparison: what is surest first; then by time.
 */

/* The order of what is not in the comparison: behind all that is. */
const RANK_NONE = 1e9;

/* The row of the comparison that a function is told by; undefined: there is none. */
function comparedRow(row) {
    const {data, view} = page;
    return data.head.events[view.event].name === data.head.comparison.event ? data.compared.rowOfFunction(row.id) : undefined;
}

/* Where an answer stands in the order of sureness; what there is no answer to comes behind. */
function rankOfRow(row) {
    const compared = comparedRow(row);
    return compared && verdictOfRow(compared) ? page.data.compared.rows.indexOf(compared) : RANK_NONE;
}

/* The weight of a set in a list of weights. */
function weightOfSet(weights, set) {
    return weights[set ^ shownSet(page.view)];
}

const COMPARED_COLUMNS = [
    {key: 'answer', title: 'Answer', meaning: 'What is known of the function, the surest first', value: rankOfRow},
    {key: 'change', title: 'Change', detail: '90 % interval', meaning: 'Of its own time, all else alike; of what is new or vanished its share',
        isNumber: true, cells: 2, value: row => (comparedRow(row) || {}).change ?? -Infinity},
    {key: 'old', title: 'Self, old', meaning: 'In the function itself, in old runs', isNumber: true,
        value: row => weightOfSet(row.self, SET_OLD)},
    {key: 'new', title: 'Self, new', meaning: 'In the function itself, in new runs', isNumber: true,
        value: row => weightOfSet(row.self, SET_NEW)},
    {key: 'oldtotal', title: 'Total, old', meaning: 'In the function and in all that it called, in old runs', isNumber: true,
        value: row => weightOfSet(row.total, SET_OLD)},
    {key: 'newtotal', title: 'Total, new', meaning: 'In the function and in all that it called, in new runs', isNumber: true,
        value: row => weightOfSet(row.total, SET_NEW)},
    ...TABLE_COLUMNS.filter(column => ['layer', 'name', 'place'].includes(column.key)),
];

/* What a row of the comparison is of, behind its answer: "itself", "under main". */
function textOfSubject(row) {
    return {function_total: 'with what it calls', node_self: 'itself, ' + textOfCaller(row), node: textOfCaller(row),
        line: 'line ' + row.line}[row.kind] || '';
}

/* The caller that the share is of, as the report names it. */
function textOfCaller(row) {
    const at = row.place.lastIndexOf(', under ');
    return at >= 0 ? row.place.slice(at + ', '.length) : 'where stacks begin';
}

/* "+10 %", "+4 to +17": with as many digits as the text report has. */
function changeCells(row) {
    const parts = row && row.tested ? /([+−]?[0-9.,]+ %) [a-z]+ \(90 % interval ([^)]*)\)/.exec(row.words) : null;
    const share = row && row.tested && !parts ? /90 % interval ([0-9.]+ to [0-9.]+)/.exec(row.words) : null;
    return [element('td', {className: 'number'}, parts ? parts[1] : ''),
        element('td', {className: 'number'}, parts ? parts[2] : share ? share[1] + ' %' : '')];
}

function comparedCells(page, row, longest) {
    const {result, data} = page, compared = comparedRow(row), verdict = verdictOfRow(compared);
    const answer = element('td', {className: 'verdict-cell', title: compared ? compared.words : 'Too few samples to compare'},
        verdictMark(verdict), compared ? wordOfAnswer(data.head.comparison, compared) + ' ' : '',
        compared ? nameElement(textOfSubject(compared), 'faint') : '');
    const cells = [['self', SET_OLD], ['self', SET_NEW], ['total', SET_OLD], ['total', SET_NEW]].map(([what, set]) => {
        const value = weightOfSet(row[what], set), [share] = figureCells(result.event, value, weightOfSet(result.totals, set), what, longest[what]);
        share.title = textOfAmount(result.event, value) + ' ' + textOfUnit(data.head.comparison);
        return share;
    });

    return [answer, ...changeCells(compared), ...cells];
}

function captionOfCompared(page) {
    const {result} = page;
    const amount = set => textOfAmount(result.event, weightOfSet(result.totals, set)) + ' of ' + (set === SET_OLD ? 'old' : 'new') + ' runs';
    return 'Shares are of the ' + amount(SET_OLD) + ', and of the ' + amount(SET_NEW) + ', ' + textOfUnit(page.data.head.comparison) +
        '. An answer is of all samples; of several about one function the surest is shown.';
}
