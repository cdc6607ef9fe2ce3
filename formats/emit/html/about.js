/* SPDX-License-Identifier: Apache-2.0 */
/*
 * About this recording: how good it is, what was recorded and how, what was lost, how long threads waited; and the whole
 * summary, as `pysym -f summary -v` prints it.
 */

/* By number, as in emit_wait: what a thread did. */
const WAIT_WORDS = ['running on a CPU', 'blocked', 'blocked, uninterruptible', 'waiting for a lock', 'waiting for a CPU',
    'preempted', 'stopped', 'waiting for the GIL', 'waiting while the world is stopped', 'asleep', 'waiting for a task', 'waiting for a future',
    'waiting for the event loop', 'waiting for something else'];
const EXACT_TIMES_DRAWN = 200;

function textOfSampling(data, rate) {
    const event = data.head.events[rate.event], name = event ? event.name : 'event ' + rate.event;
    if (event && event.isTask && rate.period)
        return name + ', a look at all tasks every ' + textOfAmount(event, rate.period);
    return rate.frequencyHz ? name + ' at ' + rate.frequencyHz.toLocaleString('en') + ' Hz'
        : rate.period > 1 ? name + ', a sample for about every ' + textOfAmount(event || {unit: ''}, rate.period) : name;
}

/* Times are recorded in nanoseconds, as their names say. */
function textOfSetting([key, value]) {
    return key.endsWith('_ns') ? key.slice(0, -'_ns'.length) + ' ' + textOfAmount({isTime: true}, Number(value))
        : key + ' ' + value;
}

function sectionOf(title, ...children) {
    return element('section', null, element('h2', null, title), ...children);
}

function captureFacts(data, capture) {
    const host = [capture.hostname, capture.kernel && 'Linux ' + capture.kernel, capture.machine,
        capture.cpuCount && countedText(capture.cpuCount, 'CPU', 'CPUs'),
        capture.memoryBytes && textOfSize(capture.memoryBytes) + ' of memory'].filter(Boolean);

    return factList([
        ['File', capture.name],
        ['Recorded', textOfRealTime(capture.startRealtimeNs)],
        ['For', capture.durationNs ? textOfAmount({isTime: true}, capture.durationNs) : ''],
        ['Host', host.join(', ')],
        ['CPU', capture.cpuModel],
        ['Sampled', capture.rates.map(rate => textOfSampling(data, rate)).join('; ')],
        ['Recorder', capture.recorder],
        ['Settings', capture.settings.map(textOfSetting).join(', '),
            'Of pycap record: its manual explains them'],
    ]);
}

/* A table of rows of cells; `heads` are pairs of a title, and whether the column is of numbers. */
function plainTable(caption, heads, rows) {
    const titles = heads.map(([text, isNumber]) => element('th', {scope: 'col', className: isNumber ? 'number' : ''}, text));

    return element('table', null, element('caption', null, caption), element('thead', null, element('tr', null, ...titles)),
        element('tbody', null, ...rows.map(cells => element('tr', null, ...cells.map((cell, i) =>
            element('td', {className: heads[i][1] ? 'number' : ''}, cell))))));
}

function tableOfLosses(data) {
    const rows = [], severalFiles = data.head.captures.length > 1;

    for (const capture of data.head.captures) {
        for (const loss of capture.losses)
            rows.push([loss.count.toLocaleString('en'), nameElement(loss.meaning || 'not known to this version'),
                loss.isSample ? 'samples are missing' : 'no samples are missing',
                element('code', null, nameElement(loss.name)), ...(severalFiles ? [nameElement(capture.name)] : [])]);
    }
    if (!rows.length)
        return element('p', null, 'Nothing is known to be lost.');
    return plainTable('What pycap could not record, or pysym not read, as both counted it',
        [['How many', true], ['What happened'], ['What that means'], ['Name'], ...(severalFiles ? [['File']] : [])], rows);
}

function tableOfExactTimes(data) {
    const times = [...data.head.exactTimes].sort((a, b) => b.ns - a.ns);
    const rows = times.slice(0, EXACT_TIMES_DRAWN).map(time => {
        const thread = data.head.threads[time.thread], process = data.head.processes[thread.process];
        return [textOfAmount({isTime: true}, time.ns), time.wait ? time.count.toLocaleString('en') : '',
            WAIT_WORDS[time.wait] || WAIT_WORDS[WAIT_WORDS.length - 1],
            nameElement(nameOfProcess(process) + ' · ' + nameOfThread(data, thread))];
    });
    const caption = 'As the kernel counted them at each switch: no samples, no estimates.' +
        (times.length > rows.length ? ' The longest ' + rows.length + ' of ' + times.length.toLocaleString('en') + '.' : '');

    return plainTable(caption, [['Time', true], ['Waits that ended', true], ['What the thread did'], ['Thread']], rows);
}

function tableOfEvents(page) {
    const {data} = page, isFiltered = data.head.filters !== '';
    const rows = data.head.events.map((event, i) => {
        const total = data.head.totals[i] || {}, isKnown = total.allSamples !== null && total.allSamples !== undefined;
        return [nameElement(event.name), kindOfAmount(event).replace(/^of /, ''),
            isKnown ? textOfAmount(event, total.allValue) : 'not known',
            isKnown ? total.allSamples.toLocaleString('en') : 'not known',
            ...(isFiltered ? [textOfAmount(event, data.wholes[i][0]), (total.shownSamples || 0).toLocaleString('en')] : [])];
    });
    const heads = [['Event'], ['What it measures'], ['Recorded', true], ['Samples', true]];

    return plainTable('A sample is one look at a thread, or a task: its stack, and the amount that it stands for',
        isFiltered ? [...heads, ['On this page', true], ['Samples', true]] : heads, rows);
}

page.views.push({
    name: 'about',
    /* None of it depends on the state. */
    init(page) {
        const {data} = page, {head} = data, isOne = head.captures.length === 1;
        const text = summary => element('pre', {tabIndex: 0}, nameElement(summary.trimEnd()));

        fill(byId('panel-about'), element('div', {className: 'about'},
            head.verdict ? sectionOf('How good it is', text(head.verdict)) : '',
            head.filters ? sectionOf('Filters of this page', element('p', null, 'The page was made with ',
                element('code', null, nameElement(head.filters)), '. What these leave out is not in it.')) : '',
            sectionOf('What was counted', tableOfEvents(page)),
            sectionOf('What was lost', tableOfLosses(data)),
            ...head.captures.map((capture, i) =>
                sectionOf(isOne ? 'How it was recorded' : 'Recording ' + (i + 1), captureFacts(data, capture))),
            head.exactTimes.length ? sectionOf('Exact times of threads', tableOfExactTimes(data)) : '',
            head.summary ? sectionOf('The whole summary', text(head.summary)) : '',
            element('p', {className: 'faint'}, 'Made by ', nameElement(head.exporter),
                '. This file has all that it shows; it loads nothing from any network.')));
    },
    draw() {},
});
