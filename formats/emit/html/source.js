/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source view: a file's lines with what they take. Where the page carries the text (--embed-source), the lines stand in
 * it; else there is a table of the lines that were met. A line that is selected shows its callers and what it calls.
 *
 * Of a line,
 *     self     time in which it ran itself
 *     native   time in native code that it called, such as a C extension, without Python in between
 *     kernel   the same of the kernel
 *     total    all time with it on the stack, each stack once
 */

/* A line is hot that takes one of so many parts of its file, as in `pysym annotate`; some lines around it are drawn, too. */
const HOT_PARTS = 100, HOT_CONTEXT = 3;
const BEHIND_END = '(behind the end of this text)';
/* Longer texts are drawn in parts, as tables of functions are. */
const SOURCE_LINES_DRAWN = 2000;

/* What a file's lines take: a Map from a line's number to {self, native, kernel, total, samples, ids}; ids of data.lines. */
function weightsOfLines(page, file) {
    const {result} = page, names = result.names('line'), lines = new Map();

    return result.keep('lines of ' + file, () => {
        names.forEach((name, id) => {
            if (!hasSource(name) || name.file !== file || !name.line)
                return;
            if (!lines.has(name.line))
                lines.set(name.line, {self: 0, native: 0, kernel: 0, total: 0, samples: 0, ids: []});
            lines.get(name.line).ids.push(id);
        });
        addWeightsOfLines(result.tree('line'), names, lines);
        return lines;
    });
}

/* Adds up over the tree of lines. A line of several functions, such as a comprehension's, is one here. */
function addWeightsOfLines(tree, names, lines) {
    const place = new Int32Array(names.length), last = tree.total.length - 1;
    /* By node: the line of the innermost frame of Python up to it, 0 if that is none of the file's. */
    const nearest = new Int32Array(tree.count), owners = ownersOfWaits(tree, names);

    for (const [line, {ids}] of lines)
        ids.forEach(id => place[id] = line);
    const placed = {...tree, id: Int32Array.from(tree.id, id => id < 0 ? 0 : place[id])};
    eachOutermost(placed, 1 + Math.max(0, ...lines.keys()), (node, isOutermost) => {
        const name = names[tree.id[node]], own = placed.id[node];
        nearest[node] = name.kind === FRAME_PYTHON ? own : nearest[tree.parent[node]];
        if (own && isOutermost) {
            lines.get(own).total += tree.total[0][node];
            lines.get(own).samples += tree.total[last][node];
        }
        const to = lines.get(nearest[node]), ran = names[tree.id[owners[node]]];
        if (to && tree.self[0][node])
            to[['self', 'native', 'kernel', 'self'][ran.kind]] += tree.self[0][node];
    });
}

/* Python's files, the heaviest first: {file, shortFile, self, total}, of the lines that were met. */
function filesWithLines(page) {
    return page.result.keep('files', () => {
        const names = page.result.names('line'), tree = page.result.tree('line'), numbers = new Map(), files = [];
        const fileOf = Int32Array.from(names, name => {
            if (!hasSource(name))
                return 0;
            if (!numbers.has(name.file)) {
                numbers.set(name.file, files.length + 1);
                files.push({file: name.file, shortFile: name.shortFile, self: 0, total: 0});
            }
            return numbers.get(name.file);
        });
        const placed = {...tree, id: Int32Array.from(tree.id, id => id < 0 ? 0 : fileOf[id])};
        const owners = ownersOfWaits(tree, names);
        eachOutermost(placed, files.length + 1, (node, isOutermost) => {
            if (placed.id[node] && isOutermost)
                files[placed.id[node] - 1].total += tree.total[0][node];
            const ran = placed.id[owners[node]];
            if (ran)
                files[ran - 1].self += tree.self[0][node];
        });
        return files.filter(file => file.total)
            .sort((a, b) => b.self - a.self || b.total - a.total || (a.file < b.file ? -1 : 1));
    });
}

/* Was the code in no file, as "<frozen importlib._bootstrap>" or "<string>"? */
function isNoFile(file) {
    return file.startsWith('<');
}

/*
 * The file that is shown: the chosen one, else that of the selected function, else the heaviest; of these rather one whose
 * text the page carries, or one that is a file. undefined: there is none.
 */
function fileOfSource(page) {
    const {view, result} = page, name = view.selected !== null && result.names()[view.selected];
    if (view.file || (name && hasSource(name)))
        return view.file || name.file;
    const files = filesWithLines(page).map(entry => entry.file);
    const texts = new Set((page.data.head.sources || []).map(source => source.file));
    return files.find(file => texts.has(file)) || files.find(file => !isNoFile(file)) || files[0];
}

/* What the selected line takes, its callers, and what it calls: elements. null: none is selected, or it was not met. */
function panelOfLine(page) {
    const {result, view} = page, file = fileOfSource(page);
    const weights = file && view.line ? weightsOfLines(page, file).get(view.line) : null;

    if (!weights || !weights.total)
        return null;
    const facts = [['Self', weights.self, 'The line itself ran'], ['Native', weights.native, 'Native code ran that the line called'],
        ['Kernel', weights.kernel, 'The kernel worked for the line'], ['Total', weights.total, 'The line and all that it called']]
        .filter(([, value]) => value);
    const panel = [element('h2', null, nameElement(cut(baseOf(file))), ', line ' + view.line),
        factList([...facts.map(([word, value, title]) => [word, amountWithShare(result, value), title]),
            ['Samples', weights.samples.toLocaleString('en'), 'With the line on the stack']]),
        element('div', {className: 'actions'}, plainButton('Close', 'Selects no line', () => setView({line: null})))];
    for (const id of weights.ids.filter(id => result.row(id, 'line').total[0])) {
        const {callers, callees} = result.neighbours(id, 'line'), total = result.row(id, 'line').total[0];
        panel.push(element('h3', null, nameElement(ownName(result.names('line')[id])), ' at this line'),
            tableOfNeighbours(page, 'Called by, as shares of its total', callers, total, NO_CALLER),
            callees.length ? tableOfNeighbours(page, 'What it called from this line', callees, total, '') : '');
    }
    return panel;
}

function headOfSource(hasText) {
    const figures = [['Line', 'Its number'], ['Self', 'The line itself ran', 2],
        ['Native', 'Native code ran that the line called, such as a C extension'], ['Kernel', 'The kernel worked for the line'],
        ['Total', 'The line and all that it called', 2]];
    const cells = figures.map(([text, title, colSpan]) =>
        element('th', {scope: 'col', title, colSpan: colSpan || 1, className: 'number'}, text));

    cells.push(hasText ? element('th', {scope: 'col', title: 'The text of the file'}, 'Source')
        : element('th', {scope: 'col', title: 'The function that the line is in'}, 'Function'));
    return element('thead', null, element('tr', null, ...cells));
}

class SourceView {
    constructor() {
        this.name = 'source';
        this.isHotOnly = true;
        this.drawn = SOURCE_LINES_DRAWN;
        this.shownLine = '';
    }

    init(page) {
        this.texts = new Map((page.data.head.sources || []).map(source => [source.file, source]));
        this.linesOfText = new Map();
        this.files = element('select', {id: 'source-file'});
        this.files.addEventListener('change', () => setView({file: this.files.value, line: null}));
        this.hotOnly = element('input', {type: 'checkbox', id: 'source-hot', checked: this.isHotOnly});
        this.hotOnly.addEventListener('change', () => {
            this.isHotOnly = this.hotOnly.checked;
            this.draw(page);
        });
        this.hotLabel = element('label', {title: 'Only lines with 1 % of the time of the file or more, and some around them'},
            this.hotOnly, ' only hot parts');
        this.notices = element('div');
        this.table = element('table', {className: 'figures source'});
        this.more = element('p', {className: 'tools'});
        fill(byId('panel-source'), element('div', {className: 'tools'}, element('label', null, 'File ', this.files), this.hotLabel),
            this.notices, this.table, this.more);
    }

    draw(page) {
        if (page.view.tab !== 'source')
            return;
        const file = fileOfSource(page), source = this.texts.get(file);

        this.offerFiles(page, filesWithLines(page), file);
        this.hotLabel.hidden = !source;
        fill(this.notices, ...this.noticesOf(page, file, source));
        this.drawTable(page, file, source);
        this.goToLine(page, file);
    }

    offerFiles(page, files, file) {
        const {result} = page, isListed = !file || files.some(entry => entry.file === file);
        const listed = isListed ? files : [...files, {file, shortFile: baseOf(file), self: 0}];
        fill(this.files, ...listed.map(entry => element('option', {value: entry.file, title: entry.file},
            entry.shortFile + ' — ' + (textOfShare(entry.self, result.totals[0]) || '0 %') + ' self')));
        this.files.value = file || '';
    }

    noticesOf(page, file, source) {
        const notices = [];
        if (!file)
            return [element('p', null, 'No Python code is in what is shown.')];
        notices.push(element('p', {className: 'faint'}, nameElement(cut(file))));
        if (!source && isNoFile(file))
            notices.push(element('p', {className: 'faint'}, 'There is no text: this code was in no file.'));
        else if (!source)
            notices.push(element('p', {className: 'notice'}, 'This page does not carry the text of this file. ',
                element('code', null, 'pysym ' + shellWord(page.data.head.name) + ' -o profile.html --source DIR --embed-source'),
                ' puts it in, where DIR is the folder that has the sources: / on the host where it ran.'));
        else if (source.match === 'changed')
            notices.push(element('p', {className: 'notice', role: 'alert'},
                'The file is not the one that ran: its size or time has changed since. Lines may be off.'));
        else if (source.match === 'unknown')
            notices.push(element('p', {className: 'faint'}, 'The recording does not say whether this text is the one that ran.'));
        return notices;
    }

    textOf(file, source) {
        if (!this.linesOfText.has(file))
            this.linesOfText.set(file, source.text.split(/\r\n|\n|\r/));
        return this.linesOfText.get(file);
    }

    drawTable(page, file, source) {
        const lines = file ? weightsOfLines(page, file) : new Map(), whole = page.result.totals[0];
        const text = source && this.textOf(file, source);
        const {total} = filesWithLines(page).find(each => each.file === file) || {total: 0};
        const met = [...lines.keys()].filter(line => lines.get(line).total).sort((a, b) => a - b);
        const numbers = text ? this.numbersWithText(text, lines, met, total, page.view.line) : met, rows = [];
        let before = 0;

        this.rowsMet = 0;
        this.longest = largestOf(met, line => lines.get(line).total);
        for (const number of numbers.slice(0, this.drawn)) {
            if (text && number !== before + 1)
                rows.push(this.gapRow(number - before - 1));
            rows.push(this.lineRow(page, file, number, lines.get(number), text));
            before = number;
        }
        fill(this.table, element('caption', null, 'Shares are of the ' + textOfAmount(page.result.event, whole) + ' shown. ' +
            countedText(met.length, 'line has samples', 'lines have samples') + '. Select a line for its callers and what it calls.'),
        headOfSource(Boolean(text)), element('tbody', null, ...rows));
        this.table.hidden = !numbers.length;
        this.drawMore(page, numbers.length);
    }

    /* The lines to be drawn: all, or the hot ones and some around them; and lines that were met behind the text's end. */
    numbersWithText(text, lines, met, total, selected) {
        const wanted = new Set(met.filter(line => line > text.length));
        const hot = met.filter(line => lines.get(line).total * HOT_PARTS >= total);
        for (const line of this.isHotOnly ? [...hot, ...(selected ? [selected] : [])] : []) {
            for (let near = Math.max(1, line - HOT_CONTEXT); near <= Math.min(text.length, line + HOT_CONTEXT); near++)
                wanted.add(near);
        }
        for (let line = 1; line <= text.length; line++) {
            if (!this.isHotOnly || (wanted.has(line - 1) && wanted.has(line + 1))) /* a gap of one line is longer than the line */
                wanted.add(line);
        }
        return [...wanted].sort((a, b) => a - b);
    }

    gapRow(count) {
        return element('tr', {className: 'gap'},
            element('td', {colSpan: 8}, countedText(count, 'line', 'lines') + ' without much time'));
    }

    lineRow(page, file, number, weights, text) {
        const {result, view} = page, whole = result.totals[0], isMet = weights !== undefined && weights.total > 0;
        const take = isMet ? weights : {self: 0, native: 0, kernel: 0, total: 0};
        const pair = (value, className) => value ? figureCells(result.event, value, whole, className, this.longest)
            : [element('td'), element('td')];
        const figure = value => element('td', {className: 'number'}, value ? textOfPercent(value, whole) : '');
        const row = element('tr', {id: 'line-' + number, className: heatOf(take.self + take.native + take.kernel, whole),
            'aria-current': view.line === number ? 'true' : null},
        element('td', {className: 'number line'}, String(number)), ...pair(take.self, 'self'),
        figure(take.native), figure(take.kernel), ...pair(take.total, 'total'),
        text ? element('td', {className: 'code'}, nameElement(number > text.length ? BEHIND_END : text[number - 1]))
            : element('td', {className: 'name'}, nameElement(this.functionsOfLine(result, weights))));
        if (isMet) {
            row.tabIndex = this.rowsMet++ ? -1 : 0;
            row.addEventListener('click', () => this.chooseLine(file, number));
            row.addEventListener('keydown', event => moveInRows(event, () => this.chooseLine(file, number)));
        }
        return row;
    }

    functionsOfLine(result, weights) {
        const used = weights.ids.filter(id => result.row(id, 'line').total[0]);
        return listUnique(used.map(id => cut(result.names('line')[id].name))).join(', ');
    }

    chooseLine(file, number) {
        setView({file, line: page.view.line === number ? null : number});
        const row = byId('line-' + number);
        if (row)
            row.focus();
    }

    /* Brings the selected line into view, once for each choice. */
    goToLine(page, file) {
        const wanted = file + ':' + page.view.line;
        const rows = page.view.line && wanted !== this.shownLine ? [...this.table.querySelectorAll('tr[id]')] : [];
        const row = rows.find(each => Number(each.id.slice('line-'.length)) >= page.view.line); /* a function may begin before */
        if (row)
            row.scrollIntoView({block: 'nearest'});
        this.shownLine = wanted;
    }

    drawMore(page, count) {
        fill(this.more);
        if (count > this.drawn)
            fill(this.more, plainButton('Draw more lines', 'Adds lines below', () => {
                this.drawn += SOURCE_LINES_DRAWN;
                this.draw(page);
            }));
    }
}

/* How strongly a line is coloured: by the time that was spent in it and in native code and the kernel for it. */
function heatOf(weight, whole) {
    const share = whole ? weight / whole : 0;
    return share >= 0.1 ? 'hot-3' : share >= 0.03 ? 'hot-2' : share >= 0.005 ? 'hot-1' : '';
}

/* A file's name for a command to be copied. */
function shellWord(name) {
    return /^[A-Za-z0-9._/+-]{1,60}$/.test(name) && name[0] !== '-' ? name : 'FILE';
}

page.views.push(new SourceView());
