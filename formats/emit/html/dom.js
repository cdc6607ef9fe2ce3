/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes elements. What a program or a trace calls things gets into the page as text nodes and properties only, never as
 * markup; and no element gets a style or a handler as an attribute, which the page's policy forbids.
 */

function byId(id) {
    return document.getElementById(id);
}

/*
 * An element with properties ({className, title, tabIndex, type …}), attributes under their own names where these have a
 * dash or are `role`, `scope` and the like, and children: elements and texts. What is null or false is left out.
 */
function element(tag, properties, ...children) {
    const made = document.createElement(tag);

    for (const [key, value] of Object.entries(properties || {})) {
        if (value === null || value === false || value === undefined)
            continue;
        if (key in made && key !== 'list')
            made[key] = value;
        else
            made.setAttribute(key, value);
    }
    made.append(...children.filter(child => child !== null && child !== false && child !== undefined && child !== ''));
    return made;
}

/* Text from a trace: its direction is its own, and does not move what stands beside it. */
function nameElement(text, className) {
    return element('bdi', {className: className || 'name'}, text);
}

/* The same for a long name in a narrow place: its line may break behind dots, slashes, colons and underscores. */
function breakableName(text, className) {
    const name = nameElement('', className);
    for (const part of text.split(/(?<=[._/:])/))
        name.append(part, element('wbr'));
    return name;
}

/* Replaces what an element holds. */
function fill(parent, ...children) {
    parent.replaceChildren(...children.filter(child => child !== null && child !== false && child !== ''));
}

/* A button that looks like a link. */
function linkButton(text, title, use) {
    const button = element('button', {type: 'button', className: 'link', title}, breakableName(text));
    button.addEventListener('click', use);
    return button;
}

function plainButton(text, title, use) {
    const button = element('button', {type: 'button', title}, text);
    button.addEventListener('click', use);
    return button;
}

/* A list of facts: pairs of a word and what it is; pairs without the latter are left out. */
function factList(pairs) {
    const list = element('dl', {className: 'facts'});

    for (const [word, value, title] of pairs) {
        if (value !== null && value !== '' && value !== undefined)
            list.append(element('dt', {title}, word), element('dd', null, typeof value === 'string' ? nameElement(value) : value));
    }
    return list;
}

/* The mark of a layer: a colour and a letter. */
function layerMark(kind) {
    const [className, letter, word] = LAYER_MARKS[kind];
    return element('span', {className: 'mark ' + className, title: word, role: 'img', 'aria-label': word}, letter);
}

/* ---- the mouse ---- */

/* What waits for the mouse's button. */
const whileHeld = {isHeld: false, actions: []};

/*
 * Does something that draws; while the button of the mouse is held, only after its release. A click is of the element where
 * the button was pressed and released: drawn anew in between, another one is there, and nothing was clicked.
 */
function whenReleased(action) {
    if (whileHeld.isHeld)
        whileHeld.actions.push(action);
    else
        action();
}

addEventListener('mousedown', event => whileHeld.isHeld = event.button === 0, true);
/* Where something is dragged or a menu opens, no release is told of. */
for (const end of ['mouseup', 'dragend', 'contextmenu']) {
    addEventListener(end, () => {
        whileHeld.isHeld = false;
        /* The click is told of right behind the release, before any timer. */
        setTimeout(() => {
            for (const action of whileHeld.actions.splice(0))
                action();
        });
    }, true);
}
