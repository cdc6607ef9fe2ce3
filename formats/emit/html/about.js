/* SPDX-License-Identifier: Apache-2.0 */
/*
 * About this recording: how good it is, what was recorded and how, what was lost, how long threads waited; and the whole
 * summary, as `pysym -f summary -v` prints it.
 */

/* By number, as in emit_wait: what a thread did. */
const WAIT_WORDS = ['running on a CPU', 'blocked', 'blocked, uninterruptible', 'waiting for a lock', 'waiting for a CPU', 'preempted',
    'stopped', 'waiting for the GIL', 'waiting while the world is stopped', 'asleep', 'waiting for something else'];
const EXACT_TIMES_DRAWN = 200;

function textOfSampling(data, rate) {
    const event = data.head.events[rate.event], name = event ? event.name : 'event ' + rate.event;
    return rate.frequencyHz ? name + ' at ' + rate.frequencyHz.toLocaleString('en') + ' Hz'
        : rate.period ? name + ', each ' + rate.period.toLocaleString('en') : name;
}

function sectionOf(title, ...children) {
    return element('section', null, element('h2', null, title), ...children);
}

function captureFacts(data, capture) {
    const machine = [capture.kernel && 'Linux ' + capture.kernel, capture.machine, capture.cpuCount && countedText(capture.cpuCount, 'CPU', 'CPUs'),
        capture.memoryBytes && textOfSize(capture.memoryBytes) + ' of memory'].filter(Boolean);

    return factList([
        ['File', capture.name],
        ['Recorded', textOfRealTime(capture.startRealtimeNs)],
        ['For', capture.durationNs ? textOfAmount({isTime: true}, capture.durationNs) : ''],
        ['Host', [capture.hostname, ...machine].filter(Boolean).join(', ')],
        ['CPU', capture.cpuModel],
        ['Sampled', capture.rates.map(rate => textOfSampling(data, rate)).join('; ')],
        ['Recorder', capture.recorder],
        ['Settings', capture.settings.map(([key, value]) => key + ' ' + value).join(', '), 'Of pycap record: its manual explains them'],
    ]);
}

function tableOfLosses(data) {
    const rows = [];

    for (const capture of data.head.captures) {
        for (const loss of capture.losses)
            rows.push(element('tr', null, element('td', {className: 'number'}, loss.count.toLocaleString('en')),
                element('td', null, nameElement(loss.meaning || 'not known to this version')),
                element('td', null, loss.isSample ? 'samples are missing' : 'samples are there, but lack a part'),
                element('td', null, element('code', null, nameElement(loss.name))),
                data.head.captures.length > 1 && element('td', null, nameElement(capture.name))));
    }
    if (!rows.length)
        return element('p', null, 'Nothing is known to be lost.');
    const heads = ['How many', 'What happened', 'What that means', 'Name', ...(data.head.captures.length > 1 ? ['File'] : [])];
    return element('table', {className: 'wide'}, element('caption', null, 'What pycap could not record, or pysym not read, as both counted it'),
        element('thead', null, element('tr', null, ...heads.map((text, i) => element('th', {scope: 'col', className: i ? '' : 'number'}, text)))),
        element('tbody', null, ...rows));
}

function tableOfExactTimes(data) {
    const times = [...data.head.exactTimes].sort((a, b) => b.ns - a.ns);
    const rows = times.slice(0, EXACT_TIMES_DRAWN).map(time => {
        const thread = data.head.threads[time.thread];
        return element('tr', null, element('td', {className: 'number'}, textOfAmount({isTime: true}, time.ns)),
            element('td', {className: 'number'}, time.wait ? time.count.toLocaleString('en') : ''),
            element('td', null, WAIT_WORDS[time.wait] || WAIT_WORDS[WAIT_WORDS.length - 1]),
            element('td', null, nameElement(nameOfProcess(data.head.processes[thread.process]) + ' · ' + nameOfThread(data, thread))));
    });
    const caption = 'As the kernel counted them at each switch: no samples, no estimates.' +
        (times.length > rows.length ? ' The longest ' + rows.length + ' of ' + times.length.toLocaleString('en') + '.' : '');

    return element('table', {className: 'wide'}, element('caption', null, caption),
        element('thead', null, element('tr', null, element('th', {scope: 'col', className: 'number'}, 'Time'),
            element('th', {scope: 'col', className: 'number'}, 'Waits'), element('th', {scope: 'col'}, 'What the thread did'), element('th', {scope: 'col'}, 'Thread'))),
        element('tbody', null, ...rows));
}

function tableOfEvents(page) {
    const {data} = page;
    const rows = data.head.events.map((event, i) => {
        const total = data.head.totals[i] || {}, known = total.allSamples !== null && total.allSamples !== undefined;
        return element('tr', null, element('td', null, nameElement(event.name)), element('td', null, kindOfAmount(event).replace(/^of /, '')),
            element('td', {className: 'number'}, known ? textOfAmount(event, total.allValue) : 'not known'),
            element('td', {className: 'number'}, known ? total.allSamples.toLocaleString('en') : 'not known'),
            element('td', {className: 'number'}, textOfAmount(event, data.wholes[i][0])),
            element('td', {className: 'number'}, (total.shownSamples || 0).toLocaleString('en')));
    });
    const heads = [['Event'], ['What it measures'], ['Recorded', 1], ['Samples', 1], ['On this page', 1], ['Samples', 1]];

    return element('table', {className: 'wide'}, element('caption', null, 'A sample is one look at a thread: its stack, and the amount that it stands for'),
        element('thead', null, element('tr', null, ...heads.map(([text, isNumber]) => element('th', {scope: 'col', className: isNumber ? 'number' : ''}, text)))),
        element('tbody', null, ...rows));
}

page.views.push({
    name: 'about',
    /* None of it depends on the state. */
    init(page) {
        const {data} = page, {head} = data;
        fill(byId('panel-about'), element('div', {className: 'about'},
            head.verdict ? sectionOf('How good it is', element('pre', null, nameElement(head.verdict.trimEnd()))) : '',
            head.filters ? sectionOf('Filters of this page', element('p', null, 'The page was made with ', element('code', null, nameElement(head.filters)),
                '. What these leave out is not in it.')) : '',
            sectionOf('What was counted', tableOfEvents(page)),
            sectionOf('What was lost', tableOfLosses(data)),
            ...head.captures.map((capture, i) => sectionOf(head.captures.length > 1 ? 'Recording ' + (i + 1) : 'How it was recorded', captureFacts(data, capture))),
            head.exactTimes.length ? sectionOf('Exact times of threads', tableOfExactTimes(data)) : '',
            head.summary ? sectionOf('The whole summary', element('pre', null, nameElement(head.summary.trimEnd()))) : '',
            element('p', {className: 'faint'}, 'Made by ', nameElement(head.exporter), '. This file has all that it shows; it loads nothing from any network.')));
    },
    draw() {},
});
