/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The colours that the canvases draw with: those of page.css, which differ for light and dark pages. Neighbours of one layer
 * get shades of its colour, always the same for one function. Layers differ by more than colour: native code has a line
 * below it, the kernel's is hatched.
 */

const LAYER_COLOURS = ['--python', '--native', '--kernel', '--mark'];
const SHADES = 5;

/* The numbers of a colour that the canvas understands: [red, green, blue]. */
function partsOfColour(context, colour) {
    context.fillStyle = '#888888';
    context.fillStyle = colour.trim();
    const read = context.fillStyle;
    if (read[0] === '#')
        return [1, 3, 5].map(i => parseInt(read.slice(i, i + 2), 16));
    return read.match(/[0-9.]+/g).slice(0, 3).map(Number);
}

/* A colour so much on the way to another: 0 is the first, 1 the other. */
function mixColours(from, to, share) {
    return 'rgb(' + from.map((part, i) => Math.round(part + (to[i] - part) * share)).join(' ') + ')';
}

/* Lines from the lower left to the upper right. */
function hatching(context, colour, ratio) {
    const tile = document.createElement('canvas'), size = Math.round(6 * ratio);
    tile.width = tile.height = size;
    const draw = tile.getContext('2d');
    draw.strokeStyle = colour;
    draw.lineWidth = ratio;
    for (const offset of [-size, 0, size]) {
        draw.moveTo(offset, size);
        draw.lineTo(offset + size, 0);
    }
    draw.stroke();
    const pattern = context.createPattern(tile, 'repeat');
    pattern.setTransform(new DOMMatrix().scale(1 / ratio));
    return pattern;
}

/*
 * What to draw with on a canvas of so many device pixels per pixel: {layers, hatch, edge, text, back, …}. `layers` are lists
 * of shades by layer.
 */
function paletteOf(context, ratio) {
    const style = getComputedStyle(document.documentElement);
    const parts = name => partsOfColour(context, style.getPropertyValue(name));
    const back = parts('--back'), text = parts('--text'), boxText = parts('--box-text');
    const plain = name => mixColours(parts(name), back, 0);
    const layers = LAYER_COLOURS.map(name =>
        Array.from({length: SHADES}, (unused, i) => mixColours(parts(name), back, 0.26 * i / (SHADES - 1))));
    return {
        layers,
        hatch: hatching(context, mixColours(parts('--kernel'), boxText, 0.22), ratio),
        edge: mixColours(parts('--native'), boxText, 0.3),
        back: plain('--back'), text: plain('--text'), boxText: plain('--box-text'), faint: plain('--faint'),
        accent: plain('--accent'), match: plain('--match'), matchText: plain('--match-text'), line: plain('--line'),
        root: mixColours(back, text, 0.13),
        more: plain('--more'), less: plain('--less'), same: mixColours(back, text, 0.2),
        shade: style.getPropertyValue('--strip-shade').trim() || 'rgba(128, 128, 128, 0.4)',
    };
}

/* Which shade a function has. */
function shadeOf(text) {
    let hash = 0;
    for (let i = 0; i < text.length; i++)
        hash = Math.imul(hash, 31) + text.charCodeAt(i) | 0;
    return ((hash ^ hash >>> 15) >>> 0) % SHADES;
}

/* Of what is compared: grey is all that is not surely more or less. */
function colourOfVerdict(palette, verdict) {
    return verdict === VERDICT_MORE ? palette.more : verdict === VERDICT_LESS ? palette.less : palette.same;
}
