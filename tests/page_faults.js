/**
 * What a reader would stumble over on a page of this width: what reaches beyond the window, or beyond a box that cuts it
 * off (on a phone results and tables may be scrolled), text over text, intervals on two lines, empty header cells,
 * figures whose text is too small, broken pictures, and what should have been typeset.
 */
(phone) => {
  const found = [];
  const say = (fault, text) => found.push(`${fault}: ${text.trim().replace(/\s+/g, " ").slice(0, 80)}`);
  const scrolls = phone ? ", .cell_output, table, .pst-scrollable-table-container" : "";
  for (const element of document.querySelectorAll("article *, .prev-next-footer *")) {
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (!box.width || element.closest(`span.math, mjx-container > *, .headerlink${scrolls}`)) continue;
    const cut = element.clientWidth && element.scrollWidth > element.clientWidth + 2 && /auto|scroll|hidden|clip/.test(style.overflowX);
    const scrolled = element.parentElement.closest("pre, .cell_output, .pst-scrollable-table-container, mjx-container");
    if (cut || (box.right > innerWidth + 1 && !scrolled)) say("cut off", `${element.tagName}.${element.className}: ${element.innerText ?? ""}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push("wider than the window");

  const lines = [];  // of text, without the room above and below letters
  const walker = document.createTreeWalker(document.querySelector(".bd-article-container"), NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || parent.closest("mjx-container, script, style, option, .visually-hidden, .headerlink")) continue;
    if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    range.selectNodeContents(node);
    for (const { left, right, top, bottom, height } of range.getClientRects()) {
      lines.push({ node, left: left + 1, right: right - 1, top: top + height / 5, bottom: bottom - height / 5 });
    }
    for (const { index, 0: interval } of node.data.matchAll(/\([-−]?\d[^\s()]*\sto\s[^\s()]+\)/g)) {
      range.setStart(node, index);
      range.setEnd(node, index + interval.length);
      if (range.getClientRects().length > 1) say("on two lines", interval);
    }
  }
  lines.sort((a, b) => a.top - b.top);
  lines.forEach((a, i) => {
    for (let j = i + 1; j < lines.length && lines[j].top < a.bottom; j++) {
      const b = lines[j];
      if (a.node !== b.node && a.left < b.right && b.left < a.right) say("text over text", `${a.node.data} | ${b.node.data}`);
    }
  });

  for (const cell of document.querySelectorAll("article th")) {
    if (!cell.innerText.trim()) say("empty header cell", cell.closest("table").innerText);
  }
  for (const image of document.images) {
    if (!image.naturalWidth) say("broken", image.src);
    // text of 10 points on 200 dots an inch is 28 of the picture's pixels high
    if (image.closest(".cell_output") && 28 * image.width / image.naturalWidth < 8.95) say("small text", image.alt);
  }
  const page = document.querySelector("article").cloneNode(true);
  page.querySelectorAll("pre, code, script, mjx-container").forEach(element => element.remove());
  for (const [tex] of page.textContent.matchAll(/\\[a-zA-Z]{2,}|\$\$?[^$]+\$/g)) say("not typeset", tex);
  return found;
}
