/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strip of time: what was sampled when, as bars of the layers of innermost frames, and the range that is shown. Dragging
 * chooses a range, a click gives all time back; arrow keys move a range, with Shift its end.
 */

const STRIP_BAR = 3, STRIP_LABELS = 13, STRIP_KEY_STEP = 0.02;

const strip = {canvas: null, dragged: null, bars: null, barsOf: ''};

/* ---- ranges ---- */

/* The range that is shown: [from, to]. */
function rangeOfView(data, view) {
    return [view.from === null ? data.firstTime : view.from, view.to === null ? data.endTime : view.to];
}

/*
 * The range after a key: a new [from, to], null for all time, undefined for a key that does nothing. Without a range, arrows
 * begin with a tenth of the time at one of its ends.
 */
function rangeAfterKey(data, view, key, isShift) {
    const length = data.endTime - data.firstTime, step = Math.max(1, Math.round(length * STRIP_KEY_STEP));
    const sign = {ArrowRight: 1, ArrowLeft: -1}[key], tenth = Math.max(1, Math.round(length / 10));
    let [from, to] = rangeOfView(data, view);

    if (key === 'Escape' || key === 'Delete')
        return null;
    if (key === 'Home')
        return [data.firstTime, data.firstTime + to - from];
    if (key === 'End')
        return [data.endTime - (to - from), data.endTime];
    if (!sign)
        return undefined;
    if (view.from === null && view.to === null)
        return sign > 0 ? [data.firstTime, data.firstTime + tenth] : [data.endTime - tenth, data.endTime];
    if (isShift) {
        to = Math.min(data.endTime, Math.max(from + 1, to + sign * step));
    } else {
        const move = Math.max(data.firstTime - from, Math.min(data.endTime - to, sign * step));
        from += move;
        to += move;
    }
    return [from, to];
}

/* The change of the state that shows a range; one of all time is none. */
function changeOfRange(data, range) {
    if (!range || (range[0] <= data.firstTime && range[1] >= data.endTime))
        return {from: null, to: null};
    return {from: range[0], to: range[1]};
}

/* The range between two places on the strip, in pixels; null: they are too close for a drag. */
function rangeOfDrag(data, width, a, b) {
    if (Math.abs(a - b) < 3)
        return null;
    const time = x => data.firstTime + Math.round((data.endTime - data.firstTime) * Math.max(0, Math.min(1, x / width)));
    const from = time(Math.min(a, b)), to = time(Math.max(a, b));
    return [from, Math.max(to, from + 1)];
}

/* ---- words ---- */

/* A time since the start of the recording, exact to about a hundredth of what is shown. */
function textOfTime(data, time) {
    const seconds = time * data.head.timeUnitNs / 1e9;
    const all = (data.endTime - data.firstTime) * data.head.timeUnitNs / 1e9;
    return seconds.toFixed(all < 0.1 ? 4 : all < 10 ? 2 : all < 1000 ? 1 : 0) + ' s';
}

/* What the height of a bar says, of a weight in so many seconds: "1.9 CPUs". */
function textOfBarHeight(event, weight, seconds) {
    const rate = weight / seconds;
    if (event.isBytes)
        return textOfSize(rate) + '/s';
    if (!event.isTime)
        return rate.toLocaleString('en', {maximumFractionDigits: rate < 10 ? 1 : 0}) + ' ' + (event.unit || event.name) + '/s';
    const count = rate / 1e9, digits = count.toFixed(count < 10 ? 1 : 0);
    if (event.isCounted)
        return digits + ' s/s';
    return digits + (event.isTask ? ' tasks' : event.isWaiting || event.isWall || event.isBlame ? ' threads' : ' CPUs');
}

/* A distance between labels of time that is 1, 2 or 5 times a power of ten, in seconds, with room for so many labels. */
function stepOfLabels(seconds, most) {
    const least = seconds / Math.max(1, most), power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= least * 0.999);
}

/* ---- drawing ---- */

/* The sums of the bars, kept while they do not change: the range that is shown does not matter. */
function barsOfStrip(page, width) {
    const {view, result} = page, key = JSON.stringify([width, ...KEYS_OF_RESULT.map(name => name === 'from' || name === 'to' ? 0 : view[name])]);
    if (key !== strip.barsOf) {
        const samples = page.data.samples.count;
        const count = Math.max(1, Math.min(Math.floor(width / STRIP_BAR), Math.max(20, Math.floor(samples / 3))));
        strip.bars = weightsOverTime(result, count);
        strip.barsOf = key;
    }
    return strip.bars;
}

function drawBars(context, palette, bars, width, height) {
    const count = bars.sums[0].length;
    let highest = 0;
    for (let i = 0; i < count; i++)
        highest = Math.max(highest, bars.sums[0][i] + bars.sums[1][i] + bars.sums[2][i] + bars.sums[3][i]);
    for (let i = 0; i < count && highest > 0; i++) {
        const left = Math.round(i * width / count), right = Math.round((i + 1) * width / count);
        let bottom = height;
        for (let kind = 0; kind < 4; kind++) {
            const part = bars.sums[kind][i] / highest * (height - 2);
            context.fillStyle = palette.layers[kind][0];
            context.fillRect(left, bottom - part, right - left, part);
            bottom -= part;
        }
    }
    return highest;
}

function drawTimeLabels(context, palette, data, width, height) {
    const unit = data.head.timeUnitNs / 1e9, from = data.firstTime * unit, seconds = (data.endTime - data.firstTime) * unit;
    const step = stepOfLabels(seconds, width / 90), digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    context.fillStyle = palette.faint;
    for (let i = Math.ceil(from / step); i * step <= from + seconds; i++) {
        const x = (i * step - from) / seconds * width, text = (i * step).toFixed(digits) + ' s';
        context.fillRect(Math.round(x), height - STRIP_LABELS, 1, 4);
        if (x + context.measureText(text).width + 4 < width)
            context.fillText(text, x + 3, height - STRIP_LABELS / 2);
    }
}

function drawRange(context, palette, page, width, height) {
    const {data} = page, length = data.endTime - data.firstTime;
    const [from, to] = strip.dragged && strip.dragged.range || rangeOfView(data, page.view);
    const left = (from - data.firstTime) / length * width, right = (to - data.firstTime) / length * width;
    if (left <= 0 && right >= width)
        return;
    context.fillStyle = palette.shade;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.fillStyle = palette.accent;
    context.fillRect(Math.min(left, width - 2), 0, 2, height);
    context.fillRect(Math.max(0, right - 2), 0, 2, height);
}

function drawStrip(page) {
    const {canvas} = strip, ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height)
        return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext('2d', {alpha: false}), palette = paletteOf(context, ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.back;
    context.fillRect(0, 0, width, height);
    context.font = '10px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const bars = barsOfStrip(page, width), highest = drawBars(context, palette, bars, width, height - STRIP_LABELS);
    drawTimeLabels(context, palette, page.data, width, height);
    drawRange(context, palette, page, width, height);
    if (highest > 0) {
        const text = 'up to ' + textOfBarHeight(page.result.event, highest, bars.width * page.data.head.timeUnitNs / 1e9);
        const room = context.measureText(text).width + 8;
        context.fillStyle = palette.back;
        context.fillRect(width - room, 1, room - 1, 13);
        context.fillStyle = palette.text;
        context.fillText(text, width - room + 4, 8);
    }
    tellRange(page);
}

function tellRange(page) {
    const {data, view} = page, range = strip.dragged && strip.dragged.range;
    const [from, to] = range || rangeOfView(data, view), isAll = !range && view.from === null && view.to === null;
    const part = textOfTime(data, from) + ' to ' + textOfTime(data, to);
    byId('time-range').textContent = isAll ? (from > 0 ? part : 'All ' + textOfTime(data, to)) + '. Drag above to show a part of the time.'
        : part + ' of ' + textOfTime(data, data.endTime) + '. A click above, or Esc, shows all.';
}

/* ---- mouse and keys ---- */

/* All views follow the mouse, as fast as they can draw. */
function showWhileDragging(page, dragged) {
    if (dragged.isDrawing || !dragged.range)
        return;
    dragged.isDrawing = true;
    requestAnimationFrame(() => {
        dragged.isDrawing = false;
        if (strip.dragged === dragged && dragged.range)
            setView(changeOfRange(page.data, dragged.range), {address: 'keep'});
    });
}

function listenToStrip(page) {
    const {canvas} = strip;

    canvas.addEventListener('pointerdown', event => {
        if (event.button)
            return;
        canvas.setPointerCapture(event.pointerId);
        strip.dragged = {start: event.offsetX, range: null, before: {from: page.view.from, to: page.view.to}, isDrawing: false};
    });
    canvas.addEventListener('pointermove', event => {
        const {dragged} = strip;
        if (!dragged)
            return;
        dragged.range = rangeOfDrag(page.data, canvas.clientWidth, dragged.start, event.offsetX);
        drawStrip(page);
        showWhileDragging(page, dragged);
    });
    canvas.addEventListener('pointerup', event => endDrag(event.offsetX));
    canvas.addEventListener('pointercancel', () => endDrag(null));
    const endDrag = x => {
        const {dragged} = strip;
        strip.dragged = null;
        if (dragged)
            setView(x === null ? dragged.before : changeOfRange(page.data, rangeOfDrag(page.data, canvas.clientWidth, dragged.start, x)));
    };
    canvas.addEventListener('keydown', event => {
        const range = event.ctrlKey || event.altKey || event.metaKey ? undefined
            : rangeAfterKey(page.data, page.view, event.key, event.shiftKey);
        if (range === undefined)
            return;
        event.preventDefault();
        setView(changeOfRange(page.data, range), {address: 'replace'});
    });
    new ResizeObserver(() => page.result && drawStrip(page)).observe(canvas);
}

page.views.push({
    name: 'strip',
    init(page) {
        strip.canvas = byId('strip');
        strip.canvas.setAttribute('role', 'application');
        strip.canvas.setAttribute('aria-label', 'Time. Arrow keys choose and move a range, with Shift its end; Escape shows all time.');
        strip.canvas.setAttribute('aria-describedby', 'time-range');
        byId('time-range').setAttribute('aria-live', 'polite');
        listenToStrip(page);
    },
    draw: drawStrip,
});
