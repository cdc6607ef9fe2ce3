/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of the page and its controls: what is shown of what was recorded, which samples, the filters that are set, the
 * tabs, and the theme. Controls change the view through setView() alone, and show what the view says.
 */

/* By kind of frame: class, letter, word. */
const LAYER_MARKS = [['python', 'P', 'Python'], ['native', 'N', 'native'], ['kernel', 'K', 'kernel'],
    ['other', '·', 'a mark of the profiler']];
const TABS = ['flame', 'table', 'source', 'about'];
/* The tabs of this page, from left to right. */
function tabsOfPage() {
    return page.data.compared ? ['compare', ...TABS] : TABS;
}
/* A control's text is an expression; the view's key is beside it. */
const EXPRESSIONS = [['search', 'search'], ['focus', 'focus'], ['ignore', 'ignore'], ['root-at', 'rootAt']];
/* The switches of the flame graph's order. */
const ORDERS = {root: 'from-root', leaves: 'from-leaves', function: 'around-function'};
const TYPING_PAUSE_MS = 150;
/* How many programs the title has by name. */
const PROGRAMS_NAMED = 2;

/* What an event's amounts are of: "of CPU time", or nothing where the unit says it. */
function kindOfAmount(event) {
    if (!event.isTime)
        return event.isBytes || !event.name.endsWith(event.unit || '') ? 'of ' + event.name : '';
    return event.isBlame ? 'of other threads’ waiting' : event.isWall ? 'of wall time' : event.isTask ? 'of tasks’ waiting'
        : event.isWaiting ? 'of waiting' : event.isCounted ? 'of ' + event.name : 'of CPU time';
}

/* An event for people: "off-cpu: waiting", or its name where that is all there is to say. */
function textOfEvent(event) {
    return event.name + (event.isTime && !event.isCounted ? ': ' + kindOfAmount(event).replace(/^of /, '') : '');
}

/* "6.9 s of CPU time shown, 7.3 s in all" */
function textOfShown(page) {
    const {head} = page.data, event = head.events[page.view.event];
    if (!event)
        return 'no samples were recorded';
    if (page.data.compared)
        return textOfComparedShown(page);
    const total = head.totals[page.view.event], whole = page.data.wholes[page.view.event][0];
    const shown = page.result.totals[0], kind = kindOfAmount(event), all = total && total.allValue;
    const text = textOfAmount(event, shown) + (kind ? ' ' + kind : '') + ' shown';
    if (all && all > whole) /* filters of pysym left something out */
        return text + ', ' + textOfAmount(event, whole) + ' on this page, ' + textOfAmount(event, all) + ' recorded';
    return text + ', ' + (shown === whole ? 'all of it' : textOfAmount(event, whole) + ' in all');
}

/* "2026-11-22 09:39:00 UTC" of nanoseconds since 1970 in decimal digits. "": not known. */
function textOfRealTime(digits) {
    const ms = Number(digits) / 1e6;
    return ms ? new Date(ms).toISOString().slice(0, 19).replace('T', ' ') + ' UTC' : '';
}

function countedText(count, one, many) {
    return count.toLocaleString('en') + ' ' + (count === 1 ? one : many);
}

function listUnique(texts) {
    return [...new Set(texts.filter(text => text))];
}

/* Of "gunicorn (spawn)", a worker, the name of its program. */
function masterOf(name) {
    return name.replace(/ \([\w-]+\)$/, '');
}

/* The programs that were recorded, those with the most samples first, and before their workers: "gunicorn, sh and 3 other programs". */
function textOfPrograms(data) {
    const {processes, threads} = data.head, counts = new Map();

    for (const process of processes)
        counts.set(process.name, 0);
    for (const thread of data.samples.thread) {
        const {name, isKept} = processes[threads[thread].process];
        counts.set(name, isKept ? 0 : counts.get(name) + 1);
    }
    if (processes.some(process => process.isKept))
        counts.delete('baseline');
    counts.delete('');
    const ofMaster = new Map();
    for (const [name, count] of counts)
        ofMaster.set(masterOf(name), (ofMaster.get(masterOf(name)) || 0) + count);
    const names = [...counts.keys()].sort((a, b) => ofMaster.get(masterOf(b)) - ofMaster.get(masterOf(a)) ||
        (masterOf(b) === b) - (masterOf(a) === a) || counts.get(b) - counts.get(a));
    const others = names.length - PROGRAMS_NAMED;
    if (!names.length)
        return data.head.name;
    return names.slice(0, PROGRAMS_NAMED).join(', ') +
        (others > 0 ? ' and ' + countedText(others, 'other program', 'other programs') : '');
}

function drawHeadFacts(page) {
    const {head} = page.data, first = head.captures[0];
    const facts = [];
    let durationNs = 0;

    for (const capture of head.captures)
        durationNs += capture.durationNs;
    facts.push(page.data.compared ? textOfComparedRuns(head) : head.captures.length > 1 ? head.captures.length + ' recordings' : head.name);
    /* One that executed another program is in the list again. */
    const processes = head.processes.filter(process => !process.again);
    if (processes.length)
        facts.push(countedText(processes.length, 'process', 'processes'));
    facts.push(...listUnique(head.captures.map(capture => capture.hostname)));
    if (first)
        facts.push(textOfRealTime(first.startRealtimeNs));
    if (durationNs)
        facts.push('recorded for ' + textOfAmount({isTime: true}, durationNs));
    const parts = [];
    for (const fact of listUnique(facts))
        parts.push(parts.length ? ' · ' : '', nameElement(fact));
    fill(byId('head-facts'), ...parts);
    fill(byId('head-program'), textOfPrograms(page.data));
}

/* ---- choices ---- */

/* Puts options into a select: pairs of value and text. Hides its label if there is nothing to choose. */
function offer(select, pairs, least) {
    fill(select, ...pairs.map(([value, text]) => element('option', {value}, text)));
    select.parentElement.hidden = pairs.length < least;
}

/* A choice of samples by label: its value begins with "=", since "" is a value, too, that of samples without the label. */
function valuesOfLabel(data, key) {
    const values = [...new Set(data.head.labelSets.map(set => labelOf(set, key)))];
    return values.sort((a, b) => a.localeCompare(b, 'en', {numeric: true})).map(value => ['=' + value, value || 'none']);
}

/* Offers the threads of the process that is chosen. There may be very many: only another choice makes them anew. */
function offerThreads(page) {
    const {data, view} = page, {threads, processes} = data.head, pairs = [['', 'all']], select = byId('thread');
    const needsProcess = view.process === null && processes.length > 1;

    if (select.dataset.process === String(view.process))
        return;
    select.dataset.process = view.process;
    threads.forEach((thread, i) => {
        if (view.process === null || thread.process === view.process)
            pairs.push([i, nameOfThread(data, thread) + (needsProcess ? ' · ' + nameOfProcess(processes[thread.process]) : '')]);
    });
    offer(select, pairs, 3);
}

function offerChoices(page) {
    const {data} = page;

    offer(byId('event'), data.head.events.map((event, i) => [i, textOfEvent(event)]), 2);
    offer(byId('process'), [['', 'all'], ...data.head.processes.map((process, i) => [i, nameOfProcess(process)])], 3);
    for (const [id, key] of [['interpreter', LABEL_INTERPRETER], ['task', LABEL_TASK]])
        offer(byId(id), [['', 'all'], ...valuesOfLabel(data, key)], 3);
    byId('samples-of').hidden = !byId('samples-of').querySelector('label:not([hidden])');
}

function listenToChoices(page) {
    const choose = (id, change) => byId(id).addEventListener('change', () => setView(change(byId(id))));
    const index = select => select.value === '' ? null : Number(select.value);

    choose('event', select => ({event: Number(select.value)}));
    choose('process', select => ({process: index(select), thread: null}));
    choose('thread', select => ({thread: index(select)}));
    for (const key of ['interpreter', 'task'])
        choose(key, select => ({[key]: select.value ? select.value.slice(1) : null}));
    for (const layer of ['python', 'native', 'kernel'])
        choose('layer-' + layer, box => ({layers: {...page.view.layers, [layer]: box.checked}}));
    for (const [order, id] of Object.entries(ORDERS))
        choose(id, () => ({order}));
}

/* ---- expressions ---- */

function listenToExpressions(page) {
    let pause = null, isBegun = false; /* Back undoes a whole search: its first letter is a step, the others are not */

    for (const [id, key] of EXPRESSIONS) {
        const input = byId(id), apply = () => {
            const {value} = input, address = isBegun ? 'replace' : 'push';
            clearTimeout(pause);
            if (!input.reportValidity() || value === page.view[key])
                return;
            /* What is clicked to leave the field is what was seen there: that click comes first. */
            whenReleased(() => setView({[key]: value}, {address}));
            isBegun = true;
        };
        input.addEventListener('focus', () => isBegun = false);
        input.addEventListener('input', () => {
            input.setCustomValidity(isExpression(input.value) ? '' : 'This is no regular expression, or one whose search might never end');
            clearTimeout(pause);
            if (key === 'search')
                pause = setTimeout(apply, TYPING_PAUSE_MS);
        });
        input.addEventListener('change', apply);
    }
    byId('controls').addEventListener('submit', event => event.preventDefault());
}

function isExpression(text) {
    return !text || parsePatternOrNull(text) !== null;
}

function drawControls(page) {
    const {view} = page;

    offerThreads(page);
    byId('event').title = kindOfAmount(page.result.event || {}).replace(/^of /, '');
    for (const id of ['event', 'process', 'thread'])
        byId(id).value = view[id] === null ? '' : view[id];
    for (const id of ['interpreter', 'task'])
        byId(id).value = view[id] === null ? '' : '=' + view[id];
    for (const [id, key] of EXPRESSIONS) {
        if (byId(id) !== document.activeElement) /* what is being typed stays */
            byId(id).value = view[key];
    }
    for (const layer of ['python', 'native', 'kernel'])
        byId('layer-' + layer).checked = view.layers[layer];
    byId(ORDERS[view.order]).checked = true;
    byId('head-shown').textContent = textOfShown(page);
}

/* ---- the filters that are set ---- */

/* Of each filter that is set: what it says, and the change of the view that takes it off. */
function filtersOfView(page) {
    const {data, view} = page, set = [];

    if (view.from !== null || view.to !== null)
        set.push(['time: ' + textOfTime(data, view.from === null ? data.firstTime : view.from) + ' to ' +
            textOfTime(data, view.to === null ? data.endTime : view.to), {from: null, to: null}]);
    if (view.process !== null)
        set.push(['process: ' + nameOfProcess(data.head.processes[view.process]), {process: null}]);
    if (view.thread !== null)
        set.push(['thread: ' + nameOfThread(data, data.head.threads[view.thread]), {thread: null}]);
    for (const key of ['interpreter', 'task']) {
        if (view[key] !== null)
            set.push([key + ': ' + (view[key] || 'none'), {[key]: null}]);
    }
    for (const [key, word] of [['focus', 'only stacks with'], ['ignore', 'without stacks with'], ['rootAt', 'stacks begin at']]) {
        if (view[key])
            set.push([word + ': ' + view[key], {[key]: ''}]);
    }
    for (const [layer, word] of [['python', 'Python'], ['native', 'native'], ['kernel', 'kernel']]) {
        if (!view.layers[layer])
            set.push([word + ' frames hidden', {layers: {...view.layers, [layer]: true}}]);
    }
    return set;
}

/* The button that was used goes away: the next one gets the focus, or the open tab. */
function takeOff(change) {
    setView(change);
    (byId('chips').querySelector('button') || byId('tab-' + page.view.tab)).focus();
}

function drawChips(page) {
    const set = filtersOfView(page);
    const chips = set.map(([text, change]) => {
        const chip = element('button', {type: 'button', className: 'chip', title: text + ' (takes this filter off)',
            'aria-label': 'Take off the filter ' + text}, nameElement(text), ' ✕');
        chip.addEventListener('click', () => takeOff(change));
        return chip;
    });

    if (set.length > 1) {
        const change = Object.assign({}, ...set.map(([, off]) => off), {layers: {python: true, native: true, kernel: true}});
        chips.push(plainButton('Take all off', 'Shows everything again', () => takeOff(change)));
    }
    fill(byId('chips'), chips.length ? element('span', {className: 'faint'}, 'Filters') : '', ...chips);
}

/* ---- tabs ---- */

function drawTabs(page) {
    for (const tab of tabsOfPage()) {
        const isOpen = tab === page.view.tab, button = byId('tab-' + tab);
        button.setAttribute('aria-selected', isOpen);
        button.tabIndex = isOpen ? 0 : -1;
        byId('panel-' + tab).hidden = !isOpen;
    }
    byId('selected').hidden = page.view.tab === 'about' || page.view.tab === 'compare';
}

function listenToTabs() {
    for (const [i, tab] of tabsOfPage().entries()) {
        const button = byId('tab-' + tab);
        button.addEventListener('click', () => setView({tab}));
        button.addEventListener('keydown', event => {
            const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
            if (!step)
                return;
            const tabs = tabsOfPage(), next = tabs[(i + step + tabs.length) % tabs.length];
            event.preventDefault();
            setView({tab: next});
            byId('tab-' + next).focus();
        });
    }
}

/* ---- the theme ---- */

function applyTheme(theme) {
    const isDark = theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
    byId('theme').value = theme;
}

function listenToTheme(page) {
    const redraw = theme => {
        applyTheme(theme);
        for (const view of page.views)
            view.draw(page);
    };

    byId('theme').addEventListener('change', () => setView({theme: byId('theme').value}));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraw(page.view.theme));
    addEventListener('beforeprint', () => redraw('light'));
    addEventListener('afterprint', () => redraw(page.view.theme));
}

/* The first of the views: the others draw with the theme and the open panels that it has set. */
page.views.unshift({
    name: 'controls',
    init(page) {
        drawHeadFacts(page);
        offerChoices(page);
        listenToChoices(page);
        listenToExpressions(page);
        listenToTabs();
        listenToTheme(page);
    },
    draw(page) {
        applyTheme(page.view.theme);
        drawTabs(page);
        drawControls(page);
        drawChips(page);
    },
});
