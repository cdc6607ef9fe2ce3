/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a comparison says, in the words of `pysym diff`: its findings, notes, rules and runs, and how it was judged; and what
 * the other views say of it.
 */

const COMPARE_ROWS_DRAWN = 100, CHANGES_SHOWN = 8;
const ANSWER_WORDS = {cannot_tell: 'cannot tell', slower: 'slower', faster: 'faster', gave_way: 'gave way',
    of_callers: 'by its callers', of_callees: 'by what it calls'};
const ANSWERS_OF_COUNTS = {slower: 'more', faster: 'less'}; /* of events that are no CPU time */

/* "per run" or "per unit of work": what weights are of. */
function textOfUnit(comparison) {
    return comparison.by_work ? 'per unit of work' : 'per run';
}

function countedRuns(head, side) {
    return countedText(countRuns(head, side), side + ' run', side + ' runs');
}

/* The answer of a row in a word or two. */
function wordOfAnswer(comparison, row) {
    if (row.match === 'new' && row.answer === 'slower')
        return 'new';
    if (row.match === 'vanished' && row.answer === 'faster')
        return 'vanished';
    return (!comparison.is_cpu && ANSWERS_OF_COUNTS[row.answer]) || ANSWER_WORDS[row.answer];
}

/* The mark of a verdict, which stands beside its word. */
function verdictMark(verdict) {
    return element('span', {className: 'verdict ' + ['', 'more', 'less', 'told'][verdict], 'aria-hidden': 'true'}, VERDICT_MARKS[verdict]);
}

/* ---- what other views say ---- */

/* "0.41 s of CPU time per run: the mean of 10 new runs, scaled to one size" */
function textOfComparedShown(page) {
    const {head} = page.data, {comparison} = head, event = head.events[page.view.event], kind = kindOfAmount(event);
    const shown = page.result.totals[0], whole = page.data.wholes[page.view.event][shownSet(page.view)];

    return textOfAmount(event, shown) + (kind ? ' ' + kind : '') + ' ' + textOfUnit(comparison) + ' shown, ' +
        (Math.abs(shown - whole) <= whole * 1e-9 ? 'all of it' : textOfAmount(event, whole) + ' in all') + ': the mean of ' +
        countedRuns(head, page.view.side);
}

/* What is compared, beside the name of the program. */
function textOfComparedRuns(head) {
    return countedRuns(head, 'old') + ' compared with ' + countedRuns(head, 'new');
}

/* What a filter does to what is said: nothing. "": there is none. */
function noteOfFilters(page) {
    const {data, view} = page, notes = [];

    if (data.head.events[view.event].name !== data.head.comparison.event)
        notes.push('Only ' + data.head.comparison.event + ' was compared: of this event nothing is known to have changed.');
    else if (filtersOfView(page).length > Object.values(view.layers).filter(isShown => !isShown).length)
        notes.push('Filters change what is shown. What is said to have changed was judged on all samples.');
    if (view.tab === 'flame' && view.rootAt && view.order === 'root')
        notes.push('Stacks that begin elsewhere are not coloured.');
    if (view.tab === 'flame' && view.order !== 'root')
        notes.push('Only whole functions are coloured here: the outermost boxes. Each call has its own colour from the root.');
    return notes.join(' ');
}

/* The lines about a box: the other set's weight, and what is known of it. `rows` are numbers of rows. */
function describeChange(page, tree, rows, node) {
    const {result, data, view} = page, event = result.event, other = view.side === 'old' ? 'new' : 'old';
    const lines = [view.side + ' ' + amountOfSet(result, event, tree, 0, node) + ', ' + other + ' ' +
        amountOfSet(result, event, tree, 1, node) + ', each ' + textOfUnit(data.head.comparison)];

    for (const row of rows)
        lines.push(data.compared.rows[row].words);
    return lines;
}

function amountOfSet(result, event, tree, set, node) {
    return textOfAmount(event, tree.total[set][node]) + ' (' + (textOfShare(tree.total[set][node], result.totals[set]) || '0 %') + ')';
}

/* What is known of the selected function, in a comparison. */
function changesOfFunction(page, id) {
    const {compared} = page.data, rows = compared ? (compared.byFunction.get(id) || NO_ROWS).filter(row => verdictOfRow(compared.rows[row])) : NO_ROWS;
    if (!rows.length)
        return [];
    return [element('h3', null, 'What changed'), element('ul', {className: 'changes'}, ...rows.slice(0, CHANGES_SHOWN).map(row =>
        element('li', null, verdictMark(verdictOfRow(compared.rows[row])), nameElement(compared.rows[row].words))))];
}

/* ---- the panel ---- */

/* Shows what a row is about: of a call its box in the flame graph, of a function the function. */
function showRow(page, number) {
    const {compared} = page.data, row = compared.rows[number];
    const id = row.function === undefined ? -1 : compared.functionOf(row.function, row.file, row.function_line);
    const path = compared.pathOfRow[number], zoom = [];

    if (id < 0)
        return;
    for (let at = path; at > 0; at = compared.paths.parent[at])
        zoom.unshift(compared.paths.id[at]);
    setView({tab: 'flame', order: 'root', rootAt: '', selected: id, zoom, side: row.match === 'vanished' ? 'old' : page.view.side,
        event: firstEvent(page.data)});
    moveTo(flame.lower, flame.lower.zoomed);
}

/* A row as the text report has it, with the rows that are told under it. */
function itemOfRow(page, number, told) {
    const {compared} = page.data, row = compared.rows[number], verdict = verdictOfRow(row);
    const [, word, text] = /^([^:]*): ([^]*)$/.exec(row.words), below = told.get(number) || [];
    const canShow = row.function !== undefined && compared.functionOf(row.function, row.file, row.function_line) >= 0;

    return element('li', {className: 'finding'}, verdictMark(verdict), element('b', null, word), ' ',
        canShow ? linkButton(text, 'Shows it in the flame graph', () => showRow(page, number)) : nameElement(text),
        below.length ? element('ul', null, ...below.slice(0, COMPARE_ROWS_DRAWN).map(each => itemOfRow(page, each, NO_ROWS_TOLD))) : null);
}

const NO_ROWS_TOLD = new Map();

/* By row: those that are told under it, however far. */
function rowsTold(rows) {
    const told = new Map();

    rows.forEach((row, number) => {
        let cause = row.because;
        for (let i = 0; cause !== null && rows[cause].because !== null && i < rows.length; i++)
            cause = rows[cause].because;
        if (cause !== null)
            addTo(told, cause, number);
    });
    return told;
}

function listOfRows(page, numbers, told) {
    const list = element('ul', {className: 'findings'}, ...numbers.slice(0, COMPARE_ROWS_DRAWN).map(number => itemOfRow(page, number, told)));

    if (numbers.length > COMPARE_ROWS_DRAWN)
        list.append(element('li', {className: 'faint'}, 'and ' + countedText(numbers.length - COMPARE_ROWS_DRAWN, 'other', 'others') + ': the table has all functions'));
    return list;
}

function sectionOfFindings(page) {
    const {rows} = page.data.compared, {comparison} = page.data.head, told = rowsTold(rows), found = [], others = [];

    rows.forEach((row, number) => {
        if (number && isFinding(row))
            found.push(number);
        else if (number && row.because === null && verdictOfRow(row))
            others.push(number);
    });
    return [
        sectionOf('What changed', element('p', {className: 'answer'}, nameElement(rows[0].words)),
            found.length ? listOfRows(page, found, told)
                : element('p', null, comparison.conclusive ? 'No function, call or line has surely changed. That does not say that none has.'
                    : 'Nothing can be concluded from these runs.')),
        others.length ? sectionOf('What moved with something else', element('p', {className: 'hint'},
            'Their time moved, but not by themselves: no single other row could be named.'), listOfRows(page, others, told)) : null,
    ];
}

/* What the page lacks of runs that a baseline keeps. */
function notesOfKeptRuns(head) {
    return ['old', 'new'].filter(side => countKeptRuns(head, side)).map(side =>
        countedText(countKeptRuns(head, side), side + ' run is', side + ' runs are') + ' of a baseline, which keeps call paths of Python ' +
        'functions: there are no times, threads, native frames and lines.');
}

function sectionOfNotes(head) {
    const notes = [...head.comparison.problems.map(problem => problem.text), ...notesOfKeptRuns(head)];
    return notes.length ? sectionOf('Notes', element('ul', null, ...notes.map(text =>
        element('li', {className: 'notice'}, nameElement(text))))) : null;
}

function percentOf(fraction) {
    return (fraction > 0 ? '+' : fraction < 0 ? '−' : '') + Number(Math.abs(100 * fraction).toPrecision(3)) + ' %';
}

function sectionOfRules(page) {
    const {rules, rows} = page.data.head.comparison;

    if (!rules.length)
        return null;
    const isRow = rule => rule.row !== null;
    return sectionOf('Rules', plainTable('Each was judged at its own level; the row is the one that came nearest to breaking it',
        [['Answer'], ['Rule'], ['Change', true], ['Interval', true], ['Row, or why']], rules.map(rule => [
            element('b', null, rule.answer), element('code', null, nameElement(rule.rule)), isRow(rule) ? percentOf(rule.change) : '',
            isRow(rule) ? percentOf(rule.low) + ' to ' + percentOf(rule.high) : '',
            nameElement([isRow(rule) ? rows[rule.row].place : '', rule.reason].filter(Boolean).join('; '))])));
}

function sectionOfRuns(page) {
    const {comparison, events} = page.data.head, event = events.find(each => each.name === comparison.event) ||
        {name: comparison.event, unit: comparison.unit, isTime: comparison.is_time};
    const heads = [['Side'], ['Run'], ['Recorded'], ['Samples', true], ['Lost', true], ['Total', true],
        [comparison.by_work ? 'Work' : 'Size', true], [comparison.by_work ? 'Total per unit of work' : 'Total by size', true]];

    return sectionOf('Runs', plainTable(comparison.by_work ? 'Totals are divided by the work that each run did'
        : 'Weights are divided by the size of each run: how much longer than usual its functions took as a whole',
    heads, comparison.runs.map(run => [run.side, nameElement(run.name), textOfRealTime(String(run.start_realtime_ns)),
        run.samples.toLocaleString('en'), textOfShare(run.lost, run.ticks) || '0 %', textOfAmount(event, run.total),
        comparison.by_work ? run.work.toLocaleString('en') : run.factor.toFixed(2), textOfAmount(event, run.total / run.factor)])));
}

const HOW_IT_WAS_JUDGED = [
    ['Surely', 'Runs of one program differ, so a change counts only if it is larger than what runs of one side differ by. ' +
        'Of what is called slower or faster here about one in twenty is not.'],
    ['Cannot tell', 'The runs do not say. It is not “no change”: the interval says how large a change may be.'],
    ['90 % interval', 'Where the true change lies, in nine cases of ten.'],
    ['Functions', 'Those of Python: the time of native code and of the kernel counts for the Python function that called it, as ' +
        'in the flame graph while these layers are switched off.'],
    ['Change', 'Of its own time, all else alike: a call is measured by its share of its caller’s time, so that a slower ' +
        'machine or a longer run does not matter.'],
    ['Gave way', 'Its share only moved because that of another call below the same caller did.'],
    ['By its callers', 'Its time moved, but not its share of each caller: they called it more or less, or took longer.'],
    ['By what it calls', 'Its time moved with that of a call below it, which is told above it.'],
    ['q', 'How likely such a finding is a false one, with all rows that were tested taken into account.'],
    ['Its code changed', 'The bytecode of the function is another than before. This is the best hint at a cause.'],
];

function sectionOfMethod(page) {
    const {comparison} = page.data.head;
    return sectionOf('How it was judged', element('p', null, nameElement(comparison.method)),
        factList([...HOW_IT_WAS_JUDGED, ['Colours', 'In the flame graph ▲ and red is surely slower, or more; ▼ and blue surely ' +
            'faster, or less; ◇ moved with something else; grey is all that is not known to have changed, and all native code. ' +
            'Widths are those of the new runs, or of the old ones.']].map(([word, text]) => [word, element('span', null, text)])));
}

function sideChoice() {
    const switches = element('fieldset', {className: 'switch', id: 'side-switch'}, element('legend', null, 'Widths and figures of'));

    for (const side of ['new', 'old']) {
        const input = element('input', {type: 'radio', name: 'side', value: side});
        input.addEventListener('change', () => setView({side}));
        switches.append(element('label', {title: side === 'old' ? 'Also shows what vanished' : 'Also shows what is new'}, input,
            element('span', null, side + ' runs')));
    }
    return switches;
}

page.views.push({
    name: 'compare',
    init(page) {
        if (!page.data.compared)
            return;
        const {head} = page.data;
        byId('tab-compare').hidden = false;
        byId('controls').append(sideChoice());
        fill(byId('panel-compare'), element('div', {className: 'about'},
            sectionOf('The answer', element('p', {className: 'answer'}, element('b', null, nameElement(head.comparison.verdict))),
                element('p', {className: 'faint'}, textOfComparedRuns(head) + ': ' + head.comparison.event + ' ' + textOfUnit(head.comparison))),
            ...[sectionOfRules(page), ...sectionOfFindings(page), sectionOfNotes(head), sectionOfRuns(page),
                sectionOfMethod(page)].filter(section => section)));
    },
    draw(page) {
        if (!page.data.compared)
            return;
        document.querySelector('#side-switch [value="' + page.view.side + '"]').checked = true;
        const note = noteOfFilters(page);
        byId('compare-note').textContent = note;
        byId('compare-note').hidden = note === '' || page.view.tab === 'about' || page.view.tab === 'compare';
    },
});
