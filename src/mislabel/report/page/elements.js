"use strict";
/* Elements of the page, made one by one: whatever stands in a file is text and never markup. */
const $ = (id) => document.getElementById(id);
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
};
const svg = (tag, attributes, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
/* One line of text that any program can show: no control or direction characters, no halves of characters. */
const printable = (text) => text.replace(/[\p{Zl}\p{Zp}\t\r\n\v\f]+/gu, " ").replace(/[\p{Cc}\p{Cs}\u202a-\u202e\u2066-\u2069]/gu, "").trim();
const announce = (message) => { $("live").textContent = message; };
const notice = (id, text, ...buttons) => {
  $(id)?.remove();
  if (text) $("notices").append(make("p", { class: "notice", id, dir: "auto" }, text, ...buttons.map(([name, action]) => make("button", { type: "button", onclick: action }, name))));
};
